// SPDX-License-Identifier: Apache-2.0
// Two versions, modes or precisions of a graph beside each other: times and largest errors of each
// node. Two runs of the past: their times.
import {get, post} from "./api.js";
import {errorTable, sideText, timeTable, verdict} from "./compare_parts.js";
import {ago, fill, h, refill, us} from "./dom.js";
import {failure} from "./main.js";
import {needs} from "./scopes.js";
import {inputsOf, pathOf} from "./session.js";

/** @typedef {import("./session.js").Session} Session */
const MOST = 1000,
    HOW = [
        {mode: "eager"},
        {mode: "compiled"},
        {mode: "compiled", precision: "bf16"},
        {mode: "compiled", precision: "int8"}
    ];

/** Times by node. @param {any} profile */
function timesIn(profile) {
    const times = new Map();
    for (const row of profile.nodes)
        for (const name of row.nodes) {
            const before = times.get(name)?.us || 0;
            times.set(name, {us: before + row.us / row.nodes.length});
        }
    return {times, us: profile.run_us};
}

/** Times by node of the second of two runs. @param {Session} session @param {any} side */
async function timesOf(session, side) {
    const {graph, version, ...how} = side,
        path = `${pathOf({name: graph, version: String(version)})}/run`,
        body = {inputs: await inputsOf(session), ...how, profile: true};
    await post(path, body);
    return timesIn((await post(path, body)).profile);
}

/**
 * Runs both sides: what differs, and the times of each node.
 * @param {Session} session whose inputs are taken
 * @param {any} a graph, version, mode and precision
 * @param {any} b
 * @param {HTMLElement} place
 */
export async function showSides(session, a, b, place) {
    fill(place, h("p.soft", "running both …"));
    try {
        const reply = await post("/v1/compare", {a, b, nodes: true, inputs: await inputsOf(session)}),
            [left, right] = [await timesOf(session, a), await timesOf(session, b)];
        const rows = (reply.nodes || []).filter((row) => left.times.has(row.a) || right.times.has(row.b));
        fill(
            place,
            verdict(reply),
            h("p.small.soft", `a: ${sideText(a)}, ${us(left.us)}; b: ${sideText(b)}, ${us(right.us)}`),
            errorTable(rows.slice(0, MOST), {a: left.times, b: right.times})
        );
    } catch (error) {
        fill(place, failure(error));
    }
}

/** @param {string} a @param {string} b ids of runs @param {HTMLElement} place */
async function showRuns(a, b, place) {
    try {
        const [left, right] = await Promise.all(
            [a, b].map(async (id) => timesIn(await get(`/v1/profiles/${encodeURIComponent(id)}`)))
        );
        const names = [...new Set([...left.times.keys(), ...right.times.keys()])].slice(0, MOST);
        fill(
            place,
            h("p.small.soft", `a: run ${a}, ${us(left.us)}; b: run ${b}, ${us(right.us)}`),
            timeTable(names, left.times, right.times)
        );
    } catch (error) {
        fill(place, failure(error));
    }
}

/** @param {string} label @param {string[]} texts @param {number} chosen */
const choice = (label, texts, chosen) =>
    h(
        "select",
        {"aria-label": label},
        texts.map((text, i) => h("option", {value: i, selected: i === chosen}, text))
    );

/** Two runs of the past to choose. @param {Session} session @param {HTMLElement} place */
function runsRow(session, place) {
    const row = h("div.row", h("span.soft.small", "…")),
        chosen = {a: "", b: ""}; // by hand, which new runs do not change
    async function load() {
        const {profiles} = await get("/v1/profiles?limit=200"),
            mine = profiles.filter((one) => one.graph === session.name).slice(0, 50);
        if (mine.length < 2)
            return fill(row, h("span.soft.small", "Two past runs can be compared, once there are two."));
        const texts = mine.map((one) => `run ${one.id}, ${us(one.run_us)}, ${ago(one.ended_ms)}`),
            at = (id, otherwise) => {
                const before = mine.findIndex((one) => one.id === id);
                return before < 0 ? otherwise : before;
            };
        const a = choice("run a", texts, at(chosen.a, 1)),
            b = choice("run b", texts, at(chosen.b, 0)),
            ids = () => ({a: mine[Number(a.value)].id, b: mine[Number(b.value)].id});
        const start = () => showRuns(ids().a, ids().b, place),
            keep = () => Object.assign(chosen, ids());
        for (const list of [a, b]) list.addEventListener("change", keep);
        refill(row, a, "against", b, h("button", {onclick: start}, "Compare their times"));
    }
    load().catch((error) => fill(row, failure(error)));
    return {row, load};
}

/** @param {Session} session @returns {{element: HTMLElement, again: () => void}} again: the runs
 * that can be chosen are read again */
export function sideBySide(session) {
    const versions = session.info.versions || [session.info.version],
        now = session.info.version,
        sides = versions.flatMap((version) => HOW.map((how) => ({graph: session.name, version, ...how})));
    const at = (k) => sides.findIndex((side) => side.version === now) + k,
        texts = sides.map(sideText);
    const a = choice("side a", texts, at(0)),
        b = choice("side b", texts, at(1)),
        place = h("div"),
        runs = runsRow(session, place);
    const start = () => showSides(session, sides[Number(a.value)], sides[Number(b.value)], place);
    return {
        element: h(
            "div.card",
            h("div.row", a, "against", b, needs("run", h("button", {onclick: start}, "Compare"))),
            h("div", {style: {marginTop: "8px"}}, runs.row),
            place
        ),
        again: () => runs.load().catch(() => {})
    };
}
