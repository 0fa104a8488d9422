// SPDX-License-Identifier: Apache-2.0
// Memory over a run: bytes that are live at each node, the peak, and who holds it.
import {bytes, h} from "./dom.js";
import {themeNow} from "./theme.js";

const SVG = "http://www.w3.org/2000/svg",
    WIDE = 1000,
    HIGH = 120,
    HOLDERS = 8;

/** @param {string} tag @param {Record<string, any>} attributes */
function shape(tag, attributes) {
    const made = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    return made;
}

/**
 * When each node runs, as a part of the run; nodes without a time of their own run with the one
 * before.
 * @param {any[]} nodes of a report
 * @param {any} profile of a run, or null: all nodes take as long
 */
function startsOf(nodes, profile) {
    const at = new Map();
    for (const row of profile ? profile.nodes : [])
        for (const name of row.nodes) at.set(name, Math.min(1, row.start_us / (profile.run_us || 1)));
    let last = 0;
    return nodes.map(({node}, i) => {
        last = at.size ? Math.max(last, at.get(node) ?? last) : i / nodes.length;
        return last;
    });
}

/**
 * @param {any} report of a graph
 * @param {any} profile of a run, or null
 * @param {(name: string) => string} wordsOf a node
 * @param {(name: string) => void} choose what a click on a node does
 */
export function memoryOver(report, profile, wordsOf, choose) {
    const {memory, nodes} = report,
        most = memory.peak_bytes || 1,
        starts = startsOf(nodes, profile),
        high = (live) => HIGH - (live / most) * (HIGH - 8),
        peak = nodes.findIndex((row) => row.node === memory.peak_node);
    const svg = shape("svg", {
        viewBox: `0 0 ${WIDE} ${HIGH}`,
        preserveAspectRatio: "none",
        class: "memory",
        role: "img",
        "aria-label": `memory over the run, ${bytes(memory.peak_bytes)} at ${memory.peak_node}`
    });
    let path = `M0 ${HIGH}`;
    nodes.forEach((row, i) => {
        path += `L${(starts[i] * WIDE).toFixed(1)} ${high(i ? nodes[i - 1].live_bytes : 0).toFixed(1)}`;
        path += `L${(starts[i] * WIDE).toFixed(1)} ${high(row.live_bytes).toFixed(1)}`;
    });
    const {accent, bad} = themeNow(),
        x = (starts[peak] || 0) * WIDE;
    svg.append(
        shape("path", {d: `${path}L${WIDE} ${HIGH}Z`, fill: accent, "fill-opacity": 0.25, stroke: accent}),
        shape("line", {x1: x, x2: x, y1: 0, y2: HIGH, stroke: bad, "stroke-dasharray": "4 3"})
    );
    const held = memory.held.slice().sort((a, b) => b.bytes - a.bytes),
        rest = held.slice(HOLDERS).reduce((sum, one) => sum + one.bytes, 0);
    const link = (name) => h("button.plain.small", {onclick: () => choose(name)}, wordsOf(name));
    return [
        h(
            "p",
            h("b", bytes(memory.peak_bytes)),
            h("span.soft", " at the peak, at "),
            link(memory.peak_node)
        ),
        svg,
        h("p.small.soft", "Results and inputs of a run node by node, without weights. At the peak live:"),
        h(
            "table.small",
            held
                .slice(0, HOLDERS)
                .map((one) =>
                    h(
                        "tr",
                        h("td", link(one.node), h("code.soft", ` ${one.node}`)),
                        h("td.num", bytes(one.bytes)),
                        h("td", {style: {width: "30%"}}, meter(one.bytes / most))
                    )
                ),
            rest
                ? h("tr", h("td.soft", `${held.length - HOLDERS} more`), h("td.num", bytes(rest)), h("td"))
                : null
        )
    ];
}

/** @param {number} share */
const meter = (share) => h("div.meter", h("i", {style: {width: `${Math.max(1, share * 100)}%`}}));
