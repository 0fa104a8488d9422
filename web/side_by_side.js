// SPDX-License-Identifier: Apache-2.0
// Two versions or modes of a graph beside each other: times and largest errors of each node.
import {post} from "./api.js";
import {errorTable, sideText, verdict} from "./compare_parts.js";
import {fill, h, us} from "./dom.js";
import {failure} from "./main.js";
import {inputsOf, pathOf} from "./session.js";

/** @typedef {import("./session.js").Session} Session */
const MOST = 1000;

/** Times by node of the second of two runs. @param {Session} session @param {any} side */
async function timesOf(session, side) {
    const path = `${pathOf({name: side.graph, version: String(side.version)})}/run`,
        body = {inputs: await inputsOf(session), mode: side.mode, profile: true};
    await post(path, body);
    const {profile} = await post(path, body),
        times = new Map();
    for (const row of profile.nodes)
        for (const name of row.nodes) {
            const before = times.get(name)?.us || 0;
            times.set(name, {us: before + row.us / row.nodes.length});
        }
    return {times, us: profile.run_us};
}

/** @param {Session} session @param {any} a @param {any} b @param {HTMLElement} place */
async function show(session, a, b, place) {
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

/** @param {Session} session @returns {HTMLElement} */
export function sideBySide(session) {
    const versions = session.info.versions || [session.info.version],
        now = session.info.version,
        sides = versions.flatMap((version) =>
            ["eager", "compiled"].map((mode) => ({graph: session.name, version, mode}))
        );
    const choice = (label, wanted) =>
        h(
            "select",
            {"aria-label": label},
            sides.map((side, i) => {
                const selected = side.version === now && side.mode === wanted;
                return h("option", {value: i, selected}, sideText(side));
            })
        );
    const a = choice("side a", "eager"),
        b = choice("side b", "compiled"),
        place = h("div");
    const start = () => show(session, sides[Number(a.value)], sides[Number(b.value)], place);
    return h("div.card", h("div.row", a, "against", b, h("button", {onclick: start}, "Compare")), place);
}
