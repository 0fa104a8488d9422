// SPDX-License-Identifier: Apache-2.0
// The page: the bar on top, which view an address shows, dialogs and keys.
import {ApiError, calls, curlOf, hooks, setToken} from "./api.js";
import {addressOf, placeOf} from "./address.js";
import {copyText, fill, h} from "./dom.js";
import {forgetScopes} from "./scopes.js";
import {current, openSession} from "./session.js";
import {startView} from "./start.js";
import {graphView} from "./graph_view.js";
import {runView} from "./run_view.js";
import {timeView} from "./time_view.js";
import {changeView} from "./change_view.js";
import {findDialog} from "./find.js";

/** @typedef {import("./address.js").Place} Place */
/** @typedef {{close?: () => void, key?: (event: KeyboardEvent) => boolean}} View */

const TABS = {
    graph: ["Graph", graphView],
    run: ["Run", runView],
    time: ["Time", timeView],
    change: ["Change", changeView]
};
const KEYS = [
    ["/", "find a node or a module"],
    ["?", "these keys"],
    ["g r t c", "graph, run, time, change"],
    ["s", "start"],
    ["d", "dark or light"],
    ["f", "the whole graph"],
    ["+ −", "zoom"],
    ["↑ ↓ ← →", "walk from node to node"],
    ["Enter", "open or close a module"],
    ["o", "open all modules, close them again"],
    ["h", "heat on or off"],
    ["p", "parameters on or off"],
    ["k", "code beside the drawing"],
    ["Tab ↑ ↓", "lines of the code, rows of what is found"],
    ["v", "values of a run, node by node"],
    [", .", "the node before, the next one"],
    ["Esc", "nothing is chosen"]
];

const main = h("main"),
    bar = h("header.bar");
/** @type {View} */
let view = {};
let number = 0;

const dropToast = () => document.querySelectorAll(".toast").forEach((old) => old.remove());

/** A line that goes away by itself, and with the view. @param {string} text */
export function toast(text) {
    dropToast();
    const line = h("div.toast", {role: "status"}, text);
    document.body.append(line);
    setTimeout(() => line.remove(), 2600);
}

/** A failure and its cure. @param {any} error @returns {HTMLElement} */
export function failure(error) {
    const code = error instanceof ApiError && error.code ? ` (${error.code})` : "";
    return h(
        "div.error",
        {role: "alert"},
        h("b", error && error.message ? "" : "failed"),
        error ? error.message : "",
        h("span.soft", code)
    );
}

/** @param {string} title @param {...any} content @returns {any} */
export function dialog(title, ...content) {
    const box = h("dialog", {"aria-label": title}, title ? h("h2", title) : null, content);
    box.addEventListener("close", () => box.remove());
    box.addEventListener("click", (event) => {
        if (event.target === box) box.close();
    });
    document.body.append(box);
    box.showModal();
    return box;
}

hooks.askToken = (wrong) =>
    new Promise((resolve) => {
        const field = h("input", {
            type: "password",
            class: "grow",
            "aria-label": "token",
            autocomplete: "off"
        });
        let done = false;
        const take = () => {
            done = true;
            setToken(field.value.trim());
            forgetScopes();
            box.close();
        };
        const box = dialog(
            "This server wants a token",
            wrong ? h("p.bad", "The server does not know this token.") : null,
            h("p.soft.small", "It is kept for this tab only, and sent to this server only."),
            h(
                "form",
                {
                    method: "dialog",
                    class: "row",
                    style: {marginTop: "12px"},
                    onsubmit: (event) => {
                        event.preventDefault();
                        take();
                    }
                },
                field,
                h("button.first", "Use it")
            )
        );
        box.addEventListener("close", () => resolve(done));
        field.focus();
    });

function keysDialog() {
    dialog(
        "Keys",
        h(
            "div.keys",
            KEYS.map(([key, does]) => [
                h(
                    "span",
                    key.split(" ").map((k) => [h("kbd", k), " "])
                ),
                h("span", does)
            ])
        )
    );
}

/** The last calls as curl commands: all that the page can do. */
function curlDialog() {
    const rows = calls.map((entry) => {
        const text = curlOf(entry),
            shown = text.length > 600 ? `${text.slice(0, 600)}…` : text;
        return [
            h(
                "div.row",
                {style: {marginTop: "10px"}},
                h("span.small.soft.grow", `${entry.method} ${entry.path.split("?")[0]}`),
                h(
                    "button.plain.small",
                    {
                        onclick: async () =>
                            toast((await copyText(text)) ? "copied" : "the browser does not let me copy")
                    },
                    "copy"
                )
            ),
            h("pre.code", shown)
        ];
    });
    dialog(
        "The same with curl",
        h("p.soft.small", "What this page has asked the server lately, the newest first."),
        rows.length ? rows : h("p", "nothing yet")
    );
}

/** @param {string} [wanted] */
function setTheme(wanted) {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset.theme = wanted || localStorage.getItem("fxserve-theme") || system;
    window.dispatchEvent(new Event("themechange"));
}

function flipTheme() {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("fxserve-theme", next);
    setTheme(next);
}

function logo() {
    const SVG = "http://www.w3.org/2000/svg",
        svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 22 22");
    svg.setAttribute("width", "22");
    svg.setAttribute("aria-hidden", "true");
    const draw = (tag, attributes) => {
        const part = document.createElementNS(SVG, tag);
        for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
        svg.append(part);
    };
    draw("path", {
        d: "M11 5v4M11 9C11 13 5 11 5 16M11 9c0 4 6 2 6 7",
        fill: "none",
        stroke: "currentColor",
        "stroke-width": "1.6"
    });
    for (const [cx, cy, fill] of [
        [11, 4, "#2f6fed"],
        [5, 17, "#12a17c"],
        [17, 17, "#f06048"]
    ])
        draw("circle", {cx, cy, r: 3, fill});
    return svg;
}

/** @param {Place} place */
function drawBar(place) {
    const session = current.now,
        here = place.tab !== "start";
    const versions = here && session ? session.info.versions || [] : [];
    fill(
        bar,
        h("a.brand", {href: "#/"}, logo(), "fxserve"),
        here
            ? [
                  h("span.soft", "/"),
                  h("span.crumb", {title: place.name}, place.name),
                  versions.length > 1
                      ? h(
                            "select",
                            {
                                "aria-label": "version",
                                onchange: (event) => {
                                    const version = event.target.value;
                                    location.hash = addressOf({...place, version}, place.tab);
                                }
                            },
                            versions.map((v) =>
                                h(
                                    "option",
                                    {value: v, selected: String(v) === String(session?.info.version)},
                                    `version ${v}`
                                )
                            )
                        )
                      : null,
                  h(
                      "nav.tabs",
                      {"aria-label": "views"},
                      Object.entries(TABS).map(([id, [label]]) =>
                          h(
                              "a",
                              {
                                  href: addressOf(place, id),
                                  "aria-current": id === place.tab ? "page" : null
                              },
                              /** @type {string} */ (label)
                          )
                      )
                  )
              ]
            : null,
        h("span.grow"),
        here
            ? h("button.plain", {onclick: () => search(), title: "find a node"}, "Find ", h("kbd", "/"))
            : null,
        h(
            "button.plain",
            {onclick: curlDialog, title: "what this page has asked, as curl commands"},
            "curl"
        ),
        h("button.plain", {onclick: flipTheme, title: "dark or light", "aria-label": "dark or light"}, "◐"),
        h("button.plain", {onclick: keysDialog, title: "keys", "aria-label": "keys"}, "?")
    );
}

function search() {
    if (current.now)
        findDialog(current.now, (name) => {
            location.hash = addressOf(placeOf(), "graph", {node: name});
        });
}

/** Focus that went with the view before goes to the new one, for whoever has no pointer. */
function keepFocus() {
    const first = /** @type {HTMLElement | null} */ (main.querySelector("h1, .board > canvas"));
    if (!first || document.activeElement !== document.body) return;
    if (first.tabIndex < 0) first.tabIndex = -1;
    first.focus({preventScroll: true});
}

async function show() {
    const mine = ++number,
        place = placeOf();
    dropToast();
    if (view.close) view.close();
    view = {};
    document.title = place.tab === "start" ? "fxserve" : `${place.name} · fxserve`;
    const session = current.now,
        same = session && session.name === place.name && session.version === place.version;
    if (place.tab === "start") current.now = null;
    drawBar(place);
    if (place.tab !== "start" && !same) fill(main, h("div.page.soft", "…"));
    try {
        if (place.tab !== "start" && !same) await openSession(place.name, place.version);
        if (mine !== number) return;
        drawBar(place);
        fill(main);
        const made = place.tab === "start" ? startView : /** @type {any} */ (TABS)[place.tab][1];
        view = made(main, place) || {};
        if (mine > 1) keepFocus();
    } catch (error) {
        if (mine !== number) return;
        fill(
            main,
            h(
                "div.page",
                h("div.inner", failure(error), h("p", h("a", {href: "#/"}, "to the list of graphs")))
            )
        );
    }
}

/** @param {KeyboardEvent} event */
function onKey(event) {
    const target = /** @type {HTMLElement} */ (event.target),
        pressed = event.key === "Enter" && /^(A|BUTTON|SUMMARY)$/.test(target.tagName);
    if (
        pressed ||
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        document.querySelector("dialog[open]") ||
        /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
    )
        return;
    if (view.key && view.key(event)) return void event.preventDefault();
    const place = placeOf(),
        tab = {g: "graph", r: "run", t: "time", c: "change"}[event.key];
    if (event.key === "/" && place.tab !== "start") search();
    else if (event.key === "?") keysDialog();
    else if (event.key === "d") flipTheme();
    else if (event.key === "s") location.hash = "#/";
    else if (tab && place.tab !== "start") location.hash = addressOf(place, tab);
    else return;
    event.preventDefault();
}

setTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme());
document.body.append(bar, main);
window.addEventListener("hashchange", show);
window.addEventListener("keydown", onKey);
show();
