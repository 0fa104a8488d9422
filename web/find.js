// SPDX-License-Identifier: Apache-2.0
// Find a node by its name, its words or its module.
import {fill, h, us} from "./dom.js";
import {describe} from "./words.js";
import {dialog} from "./main.js";

/** @typedef {import("./graph.js").Node} Node */

/** How well a node fits; 0: not at all. @param {Node} node @param {string} text */
function fits(node, text) {
    const name = node.name.toLowerCase();
    if (name === text) return 4;
    if (name.startsWith(text)) return 3;
    if (name.includes(text) || describe(node).toLowerCase().includes(text)) return 2;
    const path = (node.owner || node.scope).path.toLowerCase();
    return path.includes(text) || node.target.toLowerCase().includes(text) ? 1 : 0;
}

/** @param {import("./session.js").Session} session @param {string} text @returns {Node[]} */
export function find(session, text) {
    const wanted = text.trim().toLowerCase();
    const rows = session.graph.nodes.map((node) => ({
        node,
        rank: wanted ? fits(node, wanted) : node.kind === "call" ? 1 : 0
    }));
    return rows
        .filter((row) => row.rank > 0)
        .sort((a, b) => b.rank - a.rank || a.node.index - b.node.index)
        .slice(0, 200)
        .map((row) => row.node);
}

/** @param {import("./session.js").Session} session @param {(name: string) => void} chosen */
export function findDialog(session, chosen) {
    let found = /** @type {Node[]} */ ([]),
        at = 0;
    const list = h("ul.found", {role: "listbox", "aria-label": "nodes", id: "found"});
    const field = h("input.find", {
        placeholder: "a node, an operator, a module",
        "aria-label": "find",
        role: "combobox",
        "aria-expanded": "true",
        "aria-controls": "found",
        autocomplete: "off",
        oninput: () => {
            at = 0;
            draw();
        }
    });
    const take = (i) => {
        if (found[i]) {
            box.close();
            chosen(found[i].name);
        }
    };
    function draw() {
        found = find(session, field.value);
        fill(
            list,
            found.slice(0, 60).map((node, i) =>
                h(
                    "li",
                    {
                        role: "option",
                        id: `found-${i}`,
                        "aria-selected": i === at ? "true" : "false",
                        onclick: () => take(i)
                    },
                    h("span", describe(node)),
                    h("span.soft", node.name),
                    h(
                        "span",
                        session.times.has(node.name)
                            ? us(session.times.get(node.name)?.us)
                            : (node.owner || node.scope).path
                    )
                )
            )
        );
        list.children[at]?.scrollIntoView({block: "nearest"});
        field.setAttribute("aria-activedescendant", `found-${at}`);
    }
    const box = dialog("", field, list);
    box.addEventListener("keydown", (event) => {
        if (event.key === "ArrowDown") at = Math.max(0, Math.min(at + 1, Math.min(60, found.length) - 1));
        else if (event.key === "ArrowUp") at = Math.max(0, at - 1);
        else if (event.key === "Enter") return void (event.preventDefault(), take(at));
        else return;
        event.preventDefault();
        draw();
    });
    draw();
    field.focus();
}
