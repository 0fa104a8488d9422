// SPDX-License-Identifier: Apache-2.0
// What POST /v1/compare found: on the page, and in a file of its own (report.js).
import {h, number, us} from "./dom.js";

/** @param {any} side of a comparison */
export function sideText(side) {
    if (side.samples !== undefined) return `sample ${side.samples}`;
    const version = side.version === undefined ? "" : ` version ${side.version}`;
    return [`${side.graph}${version}`, side.mode, side.precision].filter(Boolean).join(", ");
}

/** @param {any} row of outputs or nodes */
function nameOf(row) {
    const name = row.name || row.node || row.a || "";
    return row.b && row.a && row.a !== row.b ? `${row.a} / ${row.b}` : name;
}

/** @param {any} row of outputs or nodes */
function errorCells(row) {
    const known = (value) => (value === null || value === undefined ? "–" : number(value));
    return [
        h("td.num", known(row.max_abs)),
        h("td.num", known(row.max_rel)),
        h("td.num", row.mismatched === undefined ? "–" : `${row.mismatched} of ${row.of}`),
        h(row.close ? "td.good" : "td.bad", row.close ? "close" : "differs")
    ];
}

/** @param {number | undefined} a @param {number | undefined} b microseconds of both sides */
function timeCells(a, b) {
    const both = a !== undefined && b !== undefined,
        more = both ? `${b > a ? "+" : "−"}${us(Math.abs(b - a))}` : "–";
    return [
        h("td.num", a === undefined ? "–" : us(a)),
        h("td.num", b === undefined ? "–" : us(b)),
        h(`td.num${both && b < a ? ".good" : ""}`, more)
    ];
}

/**
 * Times of nodes in two runs.
 * @param {string[]} names
 * @param {Map<string, {us: number}>} a
 * @param {Map<string, {us: number}>} b
 */
export const timeTable = (names, a, b) =>
    h(
        "table.values",
        h(
            "thead",
            h(
                "tr",
                h("th", "node"),
                ["a", "b", "b − a"].map((text) => h("th.num", text))
            )
        ),
        h(
            "tbody",
            names.map((name) => h("tr", h("td.mono", name), timeCells(a.get(name)?.us, b.get(name)?.us)))
        )
    );

/**
 * A table of values with their largest errors, and with the times of both sides where they are
 * known.
 * @param {any[]} rows
 * @param {{a: Map<string, any>, b: Map<string, any>} | null} times by node
 */
export function errorTable(rows, times) {
    const heads = [
        ...(times ? ["a", "b", "b − a"] : []),
        "largest difference",
        "relative",
        "elements that differ"
    ];
    return h(
        "table.values",
        h(
            "thead",
            h(
                "tr",
                h("th", "value"),
                heads.map((text) => h("th.num", text)),
                h("th", "")
            )
        ),
        h(
            "tbody",
            rows.map((row) =>
                h(
                    "tr",
                    h("td.mono", nameOf(row)),
                    times ? timeCells(times.a.get(row.a)?.us, times.b.get(row.b)?.us) : null,
                    errorCells(row)
                )
            )
        )
    );
}

/** In a word. @param {any} reply of /v1/compare */
export function verdict(reply) {
    const first = reply.first && (reply.first.a || reply.first.name || reply.first.node);
    return reply.equal
        ? h("p.good", "The results are close.")
        : h("p.bad", "The results differ", first ? `, at first at ${first}.` : ".");
}
