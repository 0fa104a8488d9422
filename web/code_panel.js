// SPDX-License-Identifier: Apache-2.0
// The graph's code beside the drawing, linked both ways: a click on a line shows its node, and the
// line of the chosen node is marked. Tab leads to that line, arrows from line to line.
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
        const properties = {
            role: "button",
            tabindex: -1,
            onclick: () => go(name),
            "aria-current": name === chosen ? "true" : null
        };
        return h("span.line.link", properties, `${line}\n`);
    });
}

/** One of the lines is Tab's; it has the focus if that was here. @param {HTMLElement} line */
function moveTo(line, focused = true) {
    line.parentElement?.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    line.tabIndex = 0;
    if (focused) line.focus({preventScroll: true});
    line.scrollIntoView({block: focused ? "nearest" : "center"});
}

/** @param {KeyboardEvent} event on a line */
function walk(event) {
    const line = /** @type {HTMLElement} */ (event.target),
        lines = /** @type {HTMLElement[]} */ ([...(line.parentElement?.querySelectorAll(".link") || [])]);
    const at = lines.indexOf(line),
        to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1}[event.key];
    if (at < 0 || (to === undefined && event.key !== "Enter")) return;
    event.preventDefault();
    event.stopPropagation();
    if (to === undefined) line.click();
    else if (lines[to]) moveTo(lines[to]);
}

/**
 * @param {HTMLElement} side
 * @param {Session} session
 * @param {string} chosen
 * @param {(name: string) => void} go
 */
export async function codePanel(side, session, chosen, go) {
    const form = sessionStorage.getItem("fxserve-code") || "code",
        place = h("pre.code.tall", {onkeydown: walk});
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
        const held = document.activeElement,
            onForm = held?.matches("aside.side select"),
            inside = side.contains(held) && !onForm;
        fill(side, h("div.headline", h("h2.grow", "Code"), pick), place);
        fill(place, linesOf(session, texts.get(form), chosen, go));
        const line = place.querySelector("[aria-current]") || place.querySelector(".link");
        if (line) moveTo(/** @type {HTMLElement} */ (line), inside);
        if (onForm) pick.focus();
    } catch (error) {
        fill(side, failure(error));
    }
}
