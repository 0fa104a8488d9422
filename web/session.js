// SPDX-License-Identifier: Apache-2.0
// The graph that is open: what the server said of it, the last run, the rules and
// steps that are being tried.
import {call, get, post} from "./api.js";
import {readGraph} from "./graph.js";

/**
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {{us: number, share: number}} Time
 * @typedef {{name: string, version: string, info: any, graph: Graph, report: any, profile: any,
 * inputs: any, result: any, rules: any[], steps: any[], times: Map<string, Time>, scopeTimes: Map<string,
 * Time>, fused: Map<string, number>, texts?: Map<string, string>, listeners: Set<() => void>}}
 * Session
 */

/** @type {{now: Session | null}} */
export const current = {now: null};

/** The path of a graph, or of one version. @param {{name: string, version: string}} of */
export const pathOf = (of) =>
    `/v1/graphs/${encodeURIComponent(of.name)}` +
    (of.version ? `/versions/${encodeURIComponent(of.version)}` : "");

/** @param {string} path of a graph @returns {Promise<[any, Graph]>} what is known of it, and itself */
const read = (path) =>
    Promise.all([get(path), get(`${path}/text?form=json`).then((json) => readGraph(json))]);

/** @type {{path: string, answer: Promise<[any, Graph]>} | null} */
let early = null;

/** Begins to read a graph that will be opened. @param {string} name @param {string} version */
export function askEarly(name, version) {
    const path = pathOf({name, version});
    early = {path, answer: read(path)};
    early.answer.catch(() => {}); // whoever opens the graph asks again
}

/** @param {string} name @param {string} version @returns {Promise<Session>} */
export async function openSession(name, version) {
    const path = pathOf({name, version}),
        begun = early && early.path === path ? early.answer : null;
    early = null;
    const [info, graph] = await (begun ? begun.catch(() => read(path)) : read(path));
    /** @type {Session} */
    const session = {
        name,
        version,
        info,
        graph,
        report: null,
        profile: null,
        inputs: null,
        result: null,
        rules: [],
        steps: [],
        times: new Map(),
        scopeTimes: new Map(),
        fused: new Map(),
        listeners: new Set()
    };
    current.now = session;
    lastRun(session).catch(() => {});
    return session;
}

/** The last run that the server remembers, if it is not known already.
 * @param {Session} session */
export async function lastRun(session) {
    const before = session.profile,
        {profiles} = await get("/v1/profiles?limit=100"),
        {version, id} = session.info;
    // a name and a number come again after a delete
    const found = profiles.find(
        (entry) => entry.graph === session.name && entry.version === version && entry.content === id
    );
    if (!found || found.id === before?.id) return;
    const profile = await get(`/v1/profiles/${encodeURIComponent(found.id)}`);
    if (session.profile === before) takeProfile(session, profile); // else a newer run came meanwhile
}

/** Operations, bytes and fusion of each node; asked for when somebody looks.
 * @param {Session} session */
export async function reportOf(session) {
    if (session.report) return session.report;
    const {profile} = session,
        shapes = profile ? shapesOf(profile.signature) : "",
        more = shapes ? `?shapes=${encodeURIComponent(shapes)}` : "";
    const report = await get(`${pathOf(session)}/report${more}`)
        .catch(() => get(`${pathOf(session)}/report`))
        .catch(() => ({nodes: []}));
    report.byNode = new Map(report.nodes.map((row) => [row.node, row]));
    if (session.profile !== profile) return reportOf(session); // another run came, maybe of other sizes
    session.report = report;
    return report;
}

/**
 * "x: float32[10, 1, 8, 8], y: ..." as the parameter `shapes` wants it.
 * @param {string} signature
 */
function shapesOf(signature) {
    const found = [...String(signature || "").matchAll(/(\w+): \w+\[([\d, ]*)\]/g)];
    return found.map((m) => `${m[1]}:${m[2].replace(/ /g, "")}`).join(";");
}

/** The times of a run, by node and by module. @param {Session} session @param {any} profile */
export function takeProfile(session, profile) {
    session.profile = profile;
    session.report = null;
    session.times = new Map();
    session.scopeTimes = new Map();
    const total = profile.run_us || 1;
    session.fused = new Map();
    for (const [index, row] of (profile.nodes || []).entries()) {
        for (const name of row.nodes || []) {
            const us = row.us / row.nodes.length,
                old = session.times.get(name),
                all = us + (old ? old.us : 0);
            session.times.set(name, {us: all, share: all / total});
            const node = session.graph.byName.get(name);
            if (row.nodes.length > 1) session.fused.set(name, index);
            for (let scope = node ? node.scope : null; scope; scope = scope.parent) {
                const sum = us + (session.scopeTimes.get(scope.id)?.us || 0);
                session.scopeTimes.set(scope.id, {us: sum, share: sum / total});
            }
        }
    }
    for (const listener of session.listeners) listener();
}

/**
 * @param {Session} session
 * @returns {Promise<any>} inputs for a run: what was typed, else the example
 */
export async function inputsOf(session) {
    if (!session.inputs) session.inputs = (await get(`${pathOf(session)}/example`)).inputs;
    return session.inputs;
}

/** Runs with a profile. @param {Session} session @param {any} body */
export async function run(session, body) {
    const reply = await post(`${pathOf(session)}/run`, {...body, profile: true});
    session.result = reply;
    if (reply.profile) takeProfile(session, reply.profile);
    return reply;
}

/** Runs with a file as the input. @param {Session} session @param {ArrayBuffer} file */
export async function runFile(session, file) {
    const reply = await call("POST", `${pathOf(session)}/run?profile=1&encoding=b64`, {body: file});
    session.result = reply;
    if (reply.profile) takeProfile(session, reply.profile);
    return reply;
}

/** Values of nodes; random ones are those of the last run.
 * @param {Session} session @param {string[]} names */
export async function valuesOf(session, names) {
    const reply = await post(`${pathOf(session)}/run`, {
        inputs: await inputsOf(session),
        outputs: names,
        encoding: "b64",
        ...(session.result && session.result.seed !== undefined ? {seed: session.result.seed} : {}),
        ...(session.rules.length ? {overrides: session.rules} : {})
    });
    return reply.outputs;
}
