// SPDX-License-Identifier: Apache-2.0
// What colours nodes and modules: shares of the last run's time, of memory read and written, of
// operations, or how far values are from those of a float32 run node by node.
import {post} from "./api.js";
import {bytes, count, percent, us} from "./dom.js";
import {inputsOf, reportOf} from "./session.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {{share: number, text: string}} Warmth share: 0 is cold, 1 is hottest
 * @typedef {{nodes: Map<string, Warmth>, scopes: Map<string, Warmth>, words: string, low: string,
 * high: string}} Heat
 */

/** Kinds of heat, with the words of their choice. @type {Record<string, string>} */
export const HEATS = {
    none: "no heat",
    time: "time",
    memory: "memory traffic",
    operations: "operations",
    "error-compiled": "error, compiled",
    "error-bf16": "error of bf16",
    "error-int8": "error of int8"
};

/** @returns {Heat} */
export const noHeat = () => ({nodes: new Map(), scopes: new Map(), words: "", low: "", high: ""});

/** @param {Session} session @returns {Heat} */
function timeHeat(session) {
    const warm = (times, written) =>
        new Map([...times].map(([key, time]) => [key, {share: time.share, text: written(time)}]));
    return {
        nodes: warm(session.times, (time) => us(time.us)),
        scopes: warm(session.scopeTimes, (time) => percent(time.share)),
        words: "share of the run",
        low: "0 %",
        high: "64 % and more"
    };
}

/**
 * Values of nodes, and of modules what `join` makes of their nodes' values.
 * @param {Session} session
 * @param {Map<string, number>} values
 * @param {(a: number, b: number) => number} join
 * @param {(value: number) => Warmth} warm
 */
function spread(session, values, join, warm) {
    const scopes = new Map();
    for (const [name, value] of values) {
        const node = session.graph.byName.get(name);
        for (let scope = node ? node.scope : null; scope; scope = scope.parent)
            scopes.set(scope.id, join(scopes.get(scope.id) || 0, value));
    }
    const all = (map) => new Map([...map].map(([key, value]) => [key, warm(value)]));
    return {nodes: all(values), scopes: all(scopes)};
}

/**
 * @param {Session} session
 * @param {"bytes" | "flops"} member of a row of the report
 * @param {(value: number) => string} written
 * @param {string} words
 * @returns {Promise<Heat>}
 */
async function costHeat(session, member, written, words) {
    const rows = (await reportOf(session)).nodes.filter((row) => row[member] > 0),
        total = rows.reduce((sum, row) => sum + row[member], 0) || 1;
    const values = new Map(rows.map((row) => [row.node, row[member]]));
    const add = (a, b) => a + b,
        warm = (value) => ({share: value / total, text: written(value)});
    const {nodes, scopes} = spread(session, values, add, warm);
    for (const one of scopes.values()) one.text = percent(one.share);
    return {nodes, scopes, words, low: "0 %", high: "64 % and more"};
}

const LEAST = 1e-8; // an error as small as this is cold; a hundredth of the largest value is hottest

/**
 * Errors against a float32 run node by node, relative to the largest value.
 * @param {Session} session
 * @param {string} how compiled, bf16 or int8
 * @returns {Promise<Heat>}
 */
async function errorHeat(session, how) {
    const side = {graph: session.name, ...(session.version ? {version: session.version} : {})};
    const reply = await post("/v1/compare", {
        a: {...side, mode: "eager"},
        b: {...side, mode: "compiled", ...(how === "compiled" ? {} : {precision: how})},
        nodes: true,
        inputs: await inputsOf(session)
    });
    const rows = reply.nodes.filter((row) => typeof row.max_abs === "number" && row.a);
    const most = (a, b) => Math.max(a, b),
        warm = (value) => ({
            share: value > LEAST ? Math.min(1, Math.log10(value / LEAST) / 6) ** 2 * 0.64 : 0,
            text: `±${value < 1e-3 && value > 0 ? value.toExponential(1) : Number(value.toPrecision(2))}`
        });
    const values = new Map(rows.map((row) => [row.a, row.max_abs]));
    return {
        ...spread(session, values, most, warm),
        words: "largest error against float32, node by node",
        low: "none",
        high: "0.01 and more"
    };
}

/** @param {Session} session @param {string} kind of HEATS @returns {Promise<Heat>} */
export async function heatOf(session, kind) {
    const [what, how] = kind.split("-");
    if (what === "time") return timeHeat(session);
    if (what === "memory")
        return costHeat(session, "bytes", bytes, "share of the bytes that are read and written");
    if (what === "operations") return costHeat(session, "flops", count, "share of the operations");
    return what === "error" ? errorHeat(session, how) : noHeat();
}
