// SPDX-License-Identifier: Apache-2.0
// What is known of a graph, a module or a node, as the panel beside the drawing.
import {bytes, count, fill, h, number, percent, refill, us} from "./dom.js";
import {codeOf} from "./graph.js";
import {failure} from "./main.js";
import {digitsOf, pad} from "./pad.js";
import {peak} from "./peak.js";
import {howRun} from "./run_view.js";
import {needs} from "./scopes.js";
import {inputsOf, reportOf, run, valuesOf} from "./session.js";
import {tensorOf, tensorView} from "./tensor.js";
import {describe, familyOf, FAMILY_WORDS, last, leaf, shapeText} from "./words.js";
import {changePanel} from "./change_panel.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./graph.js").Node} Node
 * @typedef {import("./graph.js").Scope} Scope
 * @typedef {(name: string) => void} Go
 */

/** @param {[string, any][]} rows */
export const facts = (rows) =>
    h(
        "dl.facts",
        rows
            .filter(([, value]) => value !== null && value !== undefined && value !== "")
            .map(([key, value]) => [h("dt", key), h("dd", value)])
    );

/** @param {string} title @param {...any} content */
const section = (title, ...content) => [h("h3", title), content];

/** @param {Node[]} nodes @param {Go} go @param {number} [most] */
function nodeList(nodes, go, most = 12) {
    return h(
        "ul.nodes",
        nodes
            .slice(0, most)
            .map((node) =>
                h(
                    "li",
                    h("button", {onclick: () => go(node.name)}, describe(node)),
                    h("span", shapeText(node.shape))
                )
            ),
        nodes.length > most ? h("li.soft", `and ${nodes.length - most} more`) : null
    );
}

/**
 * The nodes that take longest.
 * @param {Session} session
 * @param {Go} go
 * @param {(node: Node) => boolean} [among]
 */
function slowest(session, go, among) {
    const rows = [...session.times]
        .map(([name, time]) => ({node: session.graph.byName.get(name), ...time}))
        .filter((row) => row.node && (!among || among(row.node)))
        .sort((a, b) => b.us - a.us)
        .slice(0, 6);
    return rows.length
        ? section(
              "Where time goes",
              h(
                  "table.small",
                  rows.map((row) =>
                      h(
                          "tr",
                          h(
                              "td",
                              h(
                                  "button.plain.small",
                                  {onclick: () => go(row.node.name)},
                                  describe(row.node)
                              )
                          ),
                          h("td.num", us(row.us)),
                          h(
                              "td",
                              {style: {width: "70px"}},
                              h(
                                  "div.meter",
                                  {title: percent(row.share)},
                                  h("i", {style: {width: `${Math.max(2, (row.us / rows[0].us) * 100)}%`}})
                              )
                          )
                      )
                  )
              )
          )
        : null;
}

/** @param {any} value "float32 [s77, 1, 8, 8]" of an input or output */
const typed = (value) =>
    `${value.dtype || value.type || ""}${value.shape ? ` [${value.shape.join(", ")}]` : ""}`;

/** @param {Session} session @param {HTMLElement} times @param {Go} go */
function showTimes(session, times, go) {
    const {profile} = session,
        said = h("div");
    const example = async () => {
        try {
            await run(session, {inputs: await inputsOf(session)});
        } catch (error) {
            fill(said, failure(error));
        }
    };
    const words =
        profile && [`last run: ${us(profile.run_us)}`, howRun(profile), profile.signature].join(", ");
    refill(
        times,
        profile
            ? h("p.small.soft", words)
            : h(
                  "p.note",
                  "It has not run yet. ",
                  needs("run", h("button", {onclick: example}, "Run the example"))
              ),
        said,
        slowest(session, go)
    );
}

/** What a run costs, without running. @param {Session} session @param {HTMLElement} place */
async function showCosts(session, place) {
    const report = await reportOf(session);
    if (!report.flops) return;
    const peak = `${bytes(report.memory.peak_bytes)} at the peak, at ${report.memory.peak_node}`;
    fill(
        place,
        facts([
            ["operations", `${count(report.flops)} per run`],
            ["memory", peak]
        ])
    );
}

/** @param {HTMLElement} side @param {Session} session @param {Go} go */
export function graphPanel(side, session, go) {
    const {info} = session,
        costs = h("div"),
        times = h("div"),
        draw = digitsOf(info) ? pad(session) : null;
    const listen = () => showTimes(session, times, go),
        ops = Object.entries(info.ops || {}).slice(0, 14);
    fill(
        side,
        h(
            "div.headline",
            h("h2", session.name),
            h("span.tag", leaf(session.graph.root.type) || info.format)
        ),
        draw
            ? [
                  h("p.small.soft", {style: {margin: "0 0 8px"}}, "Draw a digit: every stroke is a run."),
                  draw.element
              ]
            : null,
        times,
        section("Inputs", facts((info.inputs || []).map((x) => [x.name, typed(x)]))),
        section("Outputs", facts((info.outputs || []).map((x) => [x.name, typed(x)]))),
        section(
            "Size",
            facts([
                ["nodes", count(info.nodes)],
                ["weights", bytes(info.weights_bytes || 0)],
                ["upload", bytes(info.upload_bytes || 0)]
            ]),
            costs
        ),
        section("Operators", facts(ops.map(([op, n]) => [`${n} ×`, h("code", op)])))
    );
    listen();
    session.listeners.add(listen);
    showCosts(session, costs);
    return {
        close: () => {
            session.listeners.delete(listen);
            if (draw) draw.close();
        }
    };
}

/**
 * @param {HTMLElement} side
 * @param {Session} session
 * @param {Scope} scope
 * @param {Go} go
 * @param {() => void} toggle
 */
export function modulePanel(side, session, scope, go, toggle) {
    const time = session.scopeTimes.get(scope.id),
        inside = (node) => {
            for (let at = node.scope; at; at = at.parent) if (at === scope) return true;
            return false;
        };
    fill(
        side,
        h(
            "div.headline",
            h("h2", last(scope.path) || "graph"),
            h("span.tag", leaf(scope.type) || "module")
        ),
        facts([
            ["path", h("code", scope.path)],
            ["class", h("code", scope.type)],
            ["nodes", scope.size],
            ["time", time ? `${us(time.us)} · ${percent(time.share)} of the run` : null]
        ]),
        h(
            "p",
            {style: {marginTop: "10px"}},
            h("button", {onclick: toggle}, "Open or close ", h("kbd", "Enter"))
        ),
        slowest(session, go, inside),
        section(
            "Nodes of its own",
            nodeList(
                scope.nodes.filter((node) => node.kind === "call"),
                go
            )
        )
    );
    return {};
}

/** The line of Python that made a node, the outermost first. @param {Node} node */
function source(node) {
    if (!node.stack) return null;
    const frames = [...node.stack.matchAll(/File "([^"]*)", line (\d+), in (\S+)\n\s*(.*)/g)];
    if (!frames.length) return section("Source", h("pre.code", node.stack));
    const [, file, line, , code] =
        frames[
            frames.length > 1 && /torch.nn.modules/.test(frames[frames.length - 1][1])
                ? frames.length - 2
                : frames.length - 1
        ];
    return section(
        "Source",
        h("p.small.soft", `${file.split("/").slice(-2).join("/")}:${line}`),
        h("pre.code", code),
        frames.length > 1
            ? h("details", h("summary", `all ${frames.length} frames`), h("pre.code", node.stack))
            : null
    );
}

/** @param {any} all a row of a profile @param {number | null} most GFLOP/s of a large product here */
function speedText(all, most) {
    const done = all.flops / all.us / 1e3,
        of = most && most > done ? ` of ${number(Math.round(most))} in large products` : "";
    return `${number(Number(done.toPrecision(3)))} GFLOP/s${of} · ${count(all.flops)} operations`;
}

/**
 * @param {Session} session
 * @param {Node} node
 * @param {any} row of the report
 * @param {number | null} most GFLOP/s of a large product here
 */
function speed(session, node, row, most) {
    const time = session.times.get(node.name);
    const all = session.profile
        ? (session.profile.nodes || []).find((one) => one.nodes.includes(node.name))
        : null;
    const together =
        all && all.nodes.length > 1
            ? all.nodes.filter((name) => name !== node.name)
            : row
              ? row.fused_with
              : [];
    const fusedWith = together && together.length ? together.join(", ") : "",
        isFused = Boolean(all && all.nodes.length > 1), // else a program would
        done = all && all.flops && all.us ? Number((all.flops / all.us / 1e3).toPrecision(3)) : 0,
        peakText = most && most > done ? ` of ${number(Math.round(most))}` : "";
    const sum = [
        time ? `${percent(time.share)} of the run` : "",
        done ? `${number(done)}${peakText} GFLOP/s here` : "",
        fusedWith ? `fused with ${fusedWith}${isFused ? "" : " when compiled"}` : ""
    ];
    return [
        time
            ? [
                  `${us(time.us)}${all && all.nodes.length > 1 ? " (its part)" : ""}`,
                  ` · ${percent(time.share)} of the run`
              ]
            : null,
        {
            flops:
                all && all.flops && all.us
                    ? speedText(all, most)
                    : row && row.flops
                      ? `${count(row.flops)} operations`
                      : null,
            traffic:
                all && all.bytes ? `${bytes(all.bytes)} · ${number(all.bytes / all.us / 1e3)} GB/s` : null,
            kernel: all ? all.kernel : null,
            fused: fusedWith
                ? `${fusedWith}${isFused ? "" : ", when compiled"}: one kernel, nothing in between is stored`
                : null,
            why: row && row.why_not && !fusedWith ? row.why_not : null,
            sum: sum.filter(Boolean).join(" · ")
        }
    ];
}

/** @param {Session} session @param {Node} node */
function valueSection(session, node) {
    const place = h("div");
    const show = async () => {
        fill(place, h("p.soft.small", "…"));
        try {
            const [output] = await valuesOf(session, [node.name]),
                tensor = tensorOf(output);
            fill(
                place,
                tensor ? tensorView(tensor) : h("pre.code", JSON.stringify(output, null, 1).slice(0, 4000))
            );
        } catch (error) {
            fill(place, failure(error));
        }
    };
    return {
        element: [
            h("h3", "Value"),
            needs(
                "run",
                h(
                    "button",
                    {onclick: show},
                    session.result ? "Show its value in the last run" : "Run, and show its value"
                )
            ),
            h("div", {style: {marginTop: "8px"}}, place)
        ],
        show
    };
}

/** @param {HTMLElement} side @param {Session} session @param {Node} node @param {Go} go */
export function nodePanel(side, session, node, go) {
    const family = familyOf(node),
        head = h("div"),
        parameters = node.inputs.filter((from) => from.kind === "parameter"),
        inputs = node.inputs.filter((from) => from.kind !== "parameter");
    const chain = [];
    for (let scope = node.owner || node.scope; scope && scope.parent; scope = scope.parent)
        chain.unshift(`${last(scope.path)}${scope.type ? ` (${leaf(scope.type)})` : ""}`);
    let row = /** @type {any} */ (null),
        most = /** @type {number | null} */ (null);
    function drawHead() {
        const [time, more] = /** @type {any} */ (speed(session, node, row, most));
        fill(
            head,
            more.sum ? h("p.sum", more.sum) : null,
            facts([
                ["time", time],
                ["speed", more.flops],
                ["memory", more.traffic],
                ["kernel", more.kernel],
                ["fused with", more.fused],
                ["not fused", more.why],
                ["result", node.shape ? `${node.dtype || ""} [${node.shape.join(", ")}]` : node.dtype],
                ["module", chain.join(" › ")],
                ["name", h("code", node.name)]
            ])
        );
    }
    const timed = () =>
        reportOf(session).then((report) => {
            row = report.byNode ? report.byNode.get(node.name) : null;
            drawHead();
        });
    drawHead();
    timed();
    session.listeners.add(timed);
    if (node.kind === "call")
        peak().then((found) => {
            most = found;
            drawHead();
        });
    const value = node.kind === "output" ? null : valueSection(session, node);
    fill(
        side,
        h("div.headline", h("h2", describe(node)), h("span.tag", FAMILY_WORDS[family])),
        head,
        section("Code", h("pre.code", codeOf(node))),
        source(node),
        value && value.element,
        node.kind === "call" ? changePanel(session, node) : null,
        inputs.length ? section("Reads", nodeList(inputs, go)) : null,
        node.users.length ? section("Is read by", nodeList(node.users, go)) : null,
        parameters.length ? section("Parameters", nodeList(parameters, go)) : null
    );
    return {close: () => session.listeners.delete(timed), showValue: value ? value.show : undefined};
}
