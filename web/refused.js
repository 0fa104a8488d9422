// SPDX-License-Identifier: Apache-2.0
// A graph that cannot run is drawn, too: what is missing is red. It comes from the dropped file.
import {graphOfArchive} from "./archive.js";
import {Board} from "./board.js";
import {fill, h} from "./dom.js";
import {readGraph} from "./graph.js";
import {failure} from "./main.js";
import {firstOpen} from "./scene.js";

/** Whether an error names an operator. @param {any} error @param {string} target */
function named(error, target) {
    const text = `${error.message} ${JSON.stringify(error.details || "")}`,
        short = target.replace(/^torch\.ops\./, ""),
        at = short ? text.indexOf(short) : -1;
    return at >= 0 && !/[\w.]/.test(text[at + short.length] || "") && !/\w/.test(text[at - 1] || "");
}

/** The graph of a file as FX JSON. @param {File} file */
export const graphOfFile = async (file) =>
    /json$/.test(file.name) ? JSON.parse(await file.text()) : graphOfArchive(file);

/** @param {string} name @param {any} json FX JSON @param {any} error */
export function showRefused(name, json, error) {
    const main = /** @type {HTMLElement} */ (document.querySelector("main")),
        holder = h("div.board");
    const graph = readGraph(json);
    fill(
        main,
        h(
            "div.split",
            holder,
            h(
                "aside.side",
                h("h2", name),
                failure(error),
                h("a", {href: "#/", onclick: () => location.reload()}, "back")
            )
        )
    );
    const board = new Board(holder, {select() {}, opened() {}});
    /** @type {any} */ (window).board = board; // for whoever looks from the console
    board.graph = graph;
    board.open = firstOpen(graph, 60);
    for (const node of graph.nodes)
        if (
            node.target &&
            (error.node === node.name || (node.kind === "call" && named(error, node.target)))
        ) {
            board.missing.add(node.name);
            for (let scope = /** @type {any} */ (node.scope); scope; scope = scope.parent)
                board.open.add(scope.id);
        }
    board.update({fit: true});
}
