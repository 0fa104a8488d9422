// SPDX-License-Identifier: Apache-2.0
// A report: a run's time, statistics, or a comparison, in one file without a server. Its data is
// the JSON block of the file.
import {count, fill, h, us} from "./dom.js";
import {flame, lanes, MOST_LANES, statistics, steps} from "./time_parts.js";
import {errorTable, sideText, verdict} from "./compare_parts.js";

/** Modules of folded stacks, "graph;module;node nanoseconds" in each line. @param {string} text */
function partsOf(text) {
    const make = (label, path) => ({label, path, share: 0, parts: [], byLabel: new Map()}),
        root = make("", "");
    for (const line of text.split("\n").filter(Boolean)) {
        const end = line.lastIndexOf(" "),
            ns = Number(line.slice(end + 1)),
            frames = line.slice(0, end).split(";");
        let part = root;
        root.label = frames[0];
        root.share += ns;
        for (const frame of frames.slice(1, 7)) {
            if (!part.byLabel.has(frame)) {
                const inner = make(frame, part.path ? `${part.path} / ${frame}` : frame);
                part.byLabel.set(frame, inner);
                part.parts.push(inner);
            }
            part = part.byLabel.get(frame);
            part.share += ns;
        }
    }
    const total = root.share || 1,
        all = [root];
    for (const part of all) {
        part.share /= total;
        all.push(...part.parts);
    }
    return root;
}

/** @param {any} row of a profile or of statistics */
function rowWords(row) {
    const op = String(row.target || "").replace(/^torch\.(ops\.)?/, "");
    const more = row.nodes.length > 1 ? ` + ${row.nodes.slice(1).join(" + ")}` : "";
    return `${row.nodes[0]}${op ? `  ${op}` : ""}${more}`;
}

/** @param {string} folded */
const flames = (folded) => (folded ? [h("h3", "By module"), h("div.card", flame(partsOf(folded)))] : null);

/** @param {any} data */
function runReport({profile, folded}) {
    const all = profile.nodes.length,
        more = all > MOST_LANES ? `, the first ${MOST_LANES} of ${count(all)}` : "";
    const title = profile.graph ? `${profile.graph} version ${profile.version}` : "A graph of a request";
    return [
        h("h1.titleline", title),
        h("p.soft", `Run ${profile.id} · ${new Date(profile.ended_ms).toISOString()}`),
        h(
            "div.card",
            h(
                "p",
                h("b", us(profile.run_us)),
                h("span.soft", `  ${profile.program ? "compiled" : "node by node"} · ${profile.signature}`)
            ),
            steps(profile)
        ),
        flames(folded),
        h("h3", `By node${more}`),
        h("div.card.timeline", lanes(profile, rowWords, null))
    ];
}

/** @param {any} data */
function statisticsReport(data) {
    return [
        h("h1.titleline", data.graph),
        h("h3", "All runs that the server remembers"),
        h("div.card", statistics(data.statistics)),
        flames(data.folded)
    ];
}

/** @param {any} data */
function comparisonReport({comparison}) {
    const nodes = (comparison.nodes || []).slice(0, 2000);
    return [
        h("h1.titleline", `${sideText(comparison.a)} against ${sideText(comparison.b)}`),
        verdict(comparison),
        h("h3", "Outputs"),
        h("div.card", errorTable(comparison.outputs || [], null)),
        nodes.length ? [h("h3", "Nodes"), h("div.card", errorTable(nodes, null))] : null
    ];
}

function main() {
    const data = JSON.parse(document.getElementById("data").textContent),
        body = h("div.inner");
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    document.body.append(h("div.page", body));
    const made = data.profile
        ? runReport(data)
        : data.comparison
          ? comparisonReport(data)
          : statisticsReport(data);
    fill(body, made);
    document.title = `${body.querySelector("h1").textContent} · fxserve`;
}

main();
