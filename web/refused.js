// SPDX-License-Identifier: Apache-2.0
// A graph that cannot run is drawn, too: what is missing is red. It comes from the dropped file.
import {Board} from "./board.js";
import {fill, h} from "./dom.js";
import {readGraph} from "./graph.js";
import {failure} from "./main.js";
import {firstOpen} from "./scene.js";

/** @param {string} name @param {string} text FX JSON @param {any} error */
export function showRefused(name, text, error) {
    const main = /** @type {HTMLElement} */ (document.querySelector("main")),
        holder = h("div.board");
    const graph = readGraph(JSON.parse(text));
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
            (error.node === node.name || (node.kind === "call" && error.message.includes(node.target)))
        ) {
            board.missing.add(node.name);
            for (let scope = /** @type {any} */ (node.scope); scope; scope = scope.parent)
                board.open.add(scope.id);
        }
    board.update({fit: true});
}
