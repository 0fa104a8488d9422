// SPDX-License-Identifier: Apache-2.0
// The graph's code beside the drawing, linked both ways: a click on a line shows its node, and the
// line of the chosen node is marked.
import {get} from "./api.js";
import {fill, h} from "./dom.js";
import {failure} from "./main.js";
import {pathOf} from "./session.js";

/** @typedef {import("./session.js").Session} Session */

const FORMS = ["code", "readable", "graph", "tabular"],
    MOST = 1500;

/** The node that a line makes or lists, or null. @param {Session} session @param {string} line */
function nodeOf(session, line) {
    const found =
        /^\s*%?([A-Za-z_]\w*)\s*(?::[^=]*)?=/.exec(line) ||
        /^(?:placeholder|get_attr|call_\w+|output)\s+(\w+)\s/.exec(line); // a row of a table
    return found && session.graph.byName.has(found[1]) ? found[1] : null;
}

/**
 * @param {Session} session
 * @param {string} text
 * @param {string} chosen
 * @param {(name: string) => void} go
 */
function linesOf(session, text, chosen, go) {
    const all = text.split("\n").map((line) => ({line, name: nodeOf(session, line)}));
    const at = Math.max(
            0,
            all.findIndex((row) => row.name === chosen)
        ),
        from = all.length > MOST ? Math.max(0, at - MOST / 2) : 0;
    return all.slice(from, from + MOST).map(({line, name}) => {
        if (!name) return h("span.line", `${line}\n`);
        return h(
            "span.line.link",
            {onclick: () => go(name), "aria-current": name === chosen ? "true" : null},
            `${line}\n`
        );
    });
}

/**
 * @param {HTMLElement} side
 * @param {Session} session
 * @param {string} chosen
 * @param {(name: string) => void} go
 */
export async function codePanel(side, session, chosen, go) {
    const form = sessionStorage.getItem("fxserve-code") || "code",
        place = h("pre.code.tall");
    const pick = h(
        "select",
        {
            "aria-label": "form of the code",
            onchange: () => {
                sessionStorage.setItem("fxserve-code", pick.value);
                codePanel(side, session, chosen, go);
            }
        },
        FORMS.map((name) => h("option", {selected: name === form}, name))
    );
    try {
        const texts = (session.texts = session.texts || new Map());
        if (!texts.has(form))
            texts.set(form, await get(`${pathOf(session)}/text?form=${form}`, {as: "text"}));
        fill(side, h("div.headline", h("h2.grow", "Code"), pick), place);
        fill(place, linesOf(session, texts.get(form), chosen, go));
        place.querySelector("[aria-current]")?.scrollIntoView({block: "center"});
    } catch (error) {
        fill(side, failure(error));
    }
}
