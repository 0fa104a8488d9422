// SPDX-License-Identifier: Apache-2.0
// What happens now, as a list: runs with their progress, builds, changes. The last ones only.
import {follow} from "./events.js";
import {addressOf} from "./address.js";
import {fill, h, refill, us} from "./dom.js";

const MOST = 12;
const STATES = {
    connecting: "connecting …",
    live: "Nothing has happened since this page was opened.",
    paused: "The server does not answer; the next attempt follows.",
    forbidden: "To follow what happens, a token needs the scope admin."
};

/**
 * @typedef {{key: string, what: string, graph: string, state: string, share: number | null,
 * isRun?: boolean}} Row
 */

/** @param {import("./events.js").Happening} happening @returns {Row | null} */
export function rowOf({kind, data}) {
    const key = String(data.id || data.program || ""),
        graph = String(data.graph || data.name || "");
    if (kind === "build") {
        const what = `program ${key.slice(0, 10)}`;
        return {key, what, graph: "", state: `built in ${us(data.took_us)}`, share: null};
    }
    if (kind === "change") {
        const state = `${data.method} ${data.route}`;
        return {key, what: graph, graph: data.method === "DELETE" ? "" : graph, state, share: null};
    }
    if (kind === "progress") {
        const share = data.nodes ? data.done / data.nodes : null;
        return {key, what: graph, graph, state: `runs for ${us(data.elapsed_us)}`, share: share ?? 0};
    }
    if (kind !== "run") return null;
    if (data.state === "begun") return {key, what: graph, graph, state: "runs", share: 0};
    const state = data.status === 200 ? us(data.run_us) : `${data.status} ${data.code || ""}`;
    const isRun = data.status === 200;
    return {key, what: graph || "a graph of a request", graph, state, share: null, isRun};
}

/** @param {Row} row */
function lineOf(row) {
    const place = {name: row.graph, version: ""},
        address = row.isRun ? addressOf(place, "time", {run: row.key}) : addressOf(place, "graph");
    return h(
        "li",
        row.graph ? h("a", {href: address}, row.what) : h("span", row.what),
        row.share === null ? null : h("progress", {max: 1, value: row.share || null, "aria-label": "run"}),
        h("span", row.state)
    );
}

/**
 * A card with the last events.
 * @param {(kind: string, data: any) => void} changed is called for each event
 * @returns {{element: HTMLElement, close: () => void}}
 */
export function livePanel(changed) {
    /** @type {Map<string, Row>} the newest last */
    const rows = new Map(),
        list = h("ul.nodes.live"),
        said = h("p.soft.small", STATES.connecting);
    let timer = 0;
    const draw = () => {
        timer = 0;
        refill(list, [...rows.values()].reverse().map(lineOf));
    };
    const stop = follow(
        (happening) => {
            const row = rowOf(happening);
            if (row) {
                rows.delete(row.key);
                rows.set(row.key, row);
                if (rows.size > MOST) rows.delete(rows.keys().next().value);
                fill(said);
                timer = timer || setTimeout(draw, 100);
            }
            changed(happening.kind, happening.data);
        },
        (state) => fill(said, rows.size && state === "live" ? "" : STATES[state])
    );
    return {
        element: h("div.card", h("h2", "Now"), said, list),
        close: () => {
            clearTimeout(timer);
            stop();
        }
    };
}

/** Calls `work` once after a while, however often it was wanted. @param {() => void} work
 * @param {number} ms */
export function seldom(work, ms) {
    let timer = 0;
    return () => {
        timer =
            timer ||
            setTimeout(() => {
                timer = 0;
                work();
            }, ms);
    };
}
