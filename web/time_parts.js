// SPDX-License-Identifier: Apache-2.0
// What a run's profile looks like: on the page, and in a file of its own (report.js).
import {bytes, h, percent, us} from "./dom.js";
import {heatColor, themeNow} from "./theme.js";

/** @typedef {{label: string, path: string, share: number, parts: Part[]}} Part of a run */
/** So many rows of a run are shown. */
export const MOST_LANES = 400;

/** Steps of a request before and after the run. @param {any} profile */
export function steps(profile) {
    const rows = [
        ["wait", profile.queue_us],
        ["decode", profile.decode_us],
        ["compile", profile.compile_us],
        ["run", profile.run_us],
        ["encode", profile.encode_us]
    ].filter(([, value]) => value > 0);
    const total = rows.reduce((sum, [, value]) => sum + value, 0),
        colors = {
            wait: "#98a2b3",
            decode: "#5b8fa8",
            compile: "#7a5af0",
            run: "#f06048",
            encode: "#12a17c"
        };
    return h(
        "div",
        h(
            "div.row",
            {style: {gap: "2px", flexWrap: "nowrap", height: "18px"}},
            rows.map(([name, value]) =>
                h("span", {
                    title: `${name} ${us(value)}`,
                    style: {
                        width: `${(value / total) * 100}%`,
                        minWidth: "3px",
                        height: "14px",
                        borderRadius: "3px",
                        background: colors[name]
                    }
                })
            )
        ),
        h(
            "p.small.soft.row",
            {style: {gap: "14px"}},
            rows.map(([name, value]) =>
                h(
                    "span",
                    h("i", {
                        style: {
                            display: "inline-block",
                            width: "9px",
                            height: "9px",
                            borderRadius: "2px",
                            marginRight: "5px",
                            background: colors[name]
                        }
                    }),
                    `${name} ${us(value)}`
                )
            )
        )
    );
}

/** @param {any} row of a profile */
function rowTitle(row) {
    const speed = row.flops ? `${(row.flops / row.us / 1e3).toFixed(1)} GFLOP/s` : "";
    return [row.nodes.join(", "), row.kernel, speed, row.bytes ? bytes(row.bytes) : ""]
        .filter(Boolean)
        .join("\n");
}

/**
 * A line per row of a profile, where its time is.
 * @param {any} profile
 * @param {(row: any) => string} wordsOf what a row is
 * @param {((name: string) => void) | null} choose what a click on a row does
 */
export function lanes(profile, wordsOf, choose) {
    const theme = themeNow(),
        total = profile.run_us || 1;
    return profile.nodes.slice(0, MOST_LANES).map((row) => {
        return h(
            choose ? "button.lane" : "div.lane",
            {title: rowTitle(row), onclick: choose ? () => choose(row.nodes[0]) : () => {}},
            h("span", wordsOf(row)),
            h(
                "span.track",
                h("i", {
                    style: {
                        left: `${Math.min(99.5, (row.start_us / total) * 100)}%`,
                        width: `${Math.max(0.3, (row.us / total) * 100)}%`,
                        background: heatColor(Math.max(0.12, row.share), theme)
                    }
                })
            ),
            h("span.right", us(row.us))
        );
    });
}

/** @param {Part} part @param {number} at where it begins @param {boolean} isRoot */
function flameBox(part, at, isRoot) {
    return h(
        "span",
        {
            title: `${part.path || part.label}: ${percent(part.share)}`,
            class: "small nowrap flame",
            style: {
                left: `${at * 100}%`,
                width: `calc(${part.share * 100}% - 2px)`,
                background: heatColor(isRoot ? 0.05 : part.share, themeNow())
            }
        },
        `${part.label} ${percent(part.share)}`
    );
}

/** Modules within each other, as wide as their time. @param {Part} root */
export function flame(root) {
    const rows = [];
    /** @type {{part: Part, at: number}[]} */
    let level = [{part: root, at: 0}];
    while (level.length && rows.length < 6) {
        const isRoot = rows.length === 0;
        rows.push(
            h(
                "div.flames",
                level.map(({part, at}) => flameBox(part, at, isRoot))
            )
        );
        level = level.flatMap(({part, at}) => {
            let next = at;
            return part.parts.map((inner) => ({part: inner, at: (next += inner.share) - inner.share}));
        });
        level = level.filter(({part}) => part.share > 0.002);
    }
    return h("div", rows);
}

/** @param {any} stats */
export function statistics(stats) {
    const rows = stats.signatures || [];
    if (!rows.length) return h("p.soft", "No runs yet.");
    return h(
        "table",
        h(
            "thead",
            h(
                "tr",
                h("th", "inputs"),
                h("th", "program"),
                ["runs", "mean", "50 %", "90 %", "99 %", "most"].map((t) => h("th.num", t))
            )
        ),
        rows.map((row) =>
            h(
                "tr",
                h("td.small", row.signature),
                h("td.small.soft", row.program ? String(row.program).slice(0, 10) : "node by node"),
                h("td.num", row.run_us.count),
                ["mean", "p50", "p90", "p99", "max"].map((key) => h("td.num", us(row.run_us[key])))
            )
        )
    );
}
