// SPDX-License-Identifier: Apache-2.0
// What rules or steps are worth, before anything is stored: the diff of the code, the times before
// and after, and the largest error.
import {call, post} from "./api.js";
import {fill, h, number, us} from "./dom.js";
import {failure} from "./main.js";
import {may} from "./scopes.js";
import {inputsOf, pathOf} from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{overrides: any[]} | {steps: any[]}} Change */

const RUNS = 9,
    MOST_ROWS = 30;

/** Unified diff with colours. @param {string} text */
export function diffView(text) {
    return h(
        "pre.code",
        {style: {maxHeight: "420px", marginTop: "12px"}},
        text
            .split("\n")
            .map((line) =>
                h(
                    "span",
                    {class: line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : null},
                    `${line}\n`
                )
            )
    );
}

/** The body that stores rules as a graph. @param {Session} session @param {any[]} overrides */
export function variantOf(session, overrides) {
    const {name, version} = session;
    return {format: "fx-variant/1", base: name, ...(version ? {version} : {}), overrides};
}

/** Named as before the change. @param {any} row of a comparison */
const figuresOf = (row) =>
    h(
        "tr",
        h("td", row.name || row.b || row.node || ""),
        h("td.num", number(Number(row.max_abs))),
        h("td.num", number(Number(row.max_rel))),
        h("td.num", `${row.mismatched} of ${row.of}`)
    );

/** Outputs and nodes that differ. @param {any} reply of /v1/compare */
function differences(reply) {
    const rows = [...reply.outputs, ...(reply.nodes || [])].filter((row) => !row.close).slice(0, MOST_ROWS),
        heads = ["largest difference", "relative", "elements"].map((text) => h("th.num", text));
    return rows.length
        ? h("table.small", h("thead", h("tr", h("th", "value"), heads)), rows.map(figuresOf))
        : null;
}

/** @param {string} name @param {string} value @param {string} [kind] */
const figure = (name, value, kind) =>
    h(
        "div",
        h("div.small.soft", name),
        h("div", {class: kind || null, style: {fontSize: "20px", fontWeight: "650"}}, value)
    );

/** @param {number} ratio of the times before and after */
function speedFigure(ratio) {
    const faster = ratio >= 1,
        much = faster ? ratio : 1 / ratio;
    return much < 1.03
        ? figure("time", "the same")
        : figure(faster ? "faster" : "slower", `${much.toFixed(2)} ×`, faster ? "good" : "bad");
}

/** @param {any} reply of /v1/compare: a is what was changed, b what it was before */
function worth(reply) {
    const {a, b} = reply,
        most = Math.max(0, ...reply.outputs.map((row) => Number(row.max_abs)));
    const first = reply.first ? `; the first difference is at ${reply.first.node}` : "",
        close = reply.equal ? "; the results are close" : "";
    return [
        h(
            "div.row",
            {style: {gap: "26px", margin: "12px 0 10px"}},
            figure("before", us(b.us)),
            figure("after", us(a.us)),
            speedFigure(b.us / a.us),
            figure("largest error", number(most), reply.equal ? "good" : "bad")
        ),
        h("p.small.soft", `medians of ${RUNS} runs each, in turns, ${a.mode}${close}${first}`),
        differences(reply)
    ];
}

/** Runs with and without. @param {Session} session @param {Change} change */
async function comparisonOf(session, change) {
    const {info} = session,
        precision = info.precision && info.precision !== "f32" ? {precision: info.precision} : {},
        side = {graph: session.name, version: info.version, mode: "compiled", ...precision};
    const body = {a: {...side, ...change}, b: side, inputs: await inputsOf(session), times: RUNS};
    return worth(await post("/v1/compare", body));
}

/** What the code would be. @param {Session} session @param {Change} change */
async function codeOf(session, change) {
    if ("steps" in change) {
        const reply = await post(`${pathOf(session)}/transform`, {...change, dry_run: true}),
            of = (step) => [...(step.changed || []), ...(step.erased || [])],
            changed = new Set(reply.steps.flatMap(of));
        return [h("p.small.soft", `${changed.size} nodes made, changed or taken away`), diffOr(reply.diff)];
    }
    if (!(await may("write"))) return h("p.small.soft", "The diff of the code needs the scope write.");
    const body = {...variantOf(session, change.overrides), dry_run: true},
        path = `/v1/graphs/${encodeURIComponent(session.name)}`;
    return diffOr((await call("PUT", path, {body})).diff);
}

/** @param {string} diff */
export const diffOr = (diff) => (diff ? diffView(diff) : h("p.soft", "The code stays as it is."));

/** @param {HTMLElement} place @param {Promise<any>} content or why there is none */
const fillWith = (place, content) =>
    content.then(
        (children) => fill(place, children),
        (error) => fill(place, failure(error))
    );

/** @param {Session} session @param {Change} change @param {HTMLElement} place */
export async function tryChange(session, change, place) {
    const code = h("div"),
        figures = h("div", {role: "status"}, h("p.soft", "running with and without …"));
    fill(place, figures, code);
    await fillWith(code, codeOf(session, change));
    await fillWith(figures, (await may("run")) ? comparisonOf(session, change) : runsNeedScope());
}

const runsNeedScope = async () => h("p.small.soft", "Times and errors need the scope run.");
