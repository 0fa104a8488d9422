// SPDX-License-Identifier: Apache-2.0
// What can be done to a node: a button makes a rule for the next runs ("overrides" of a run), or steps
// that make another graph ("transform").
import {addressOf} from "./address.js";
import {fill, h} from "./dom.js";
import {toast} from "./main.js";

/** @typedef {import("./session.js").Session} Session */

const FUNCTIONS = [
    "torch.relu",
    "torch.sigmoid",
    "torch.tanh",
    "torch.abs",
    "torch.neg",
    "torch.nn.functional.gelu",
    "torch.nn.functional.silu",
    "torch.square"
];

/** A rule in words. @param {any} rule */
export function ruleText(rule) {
    const what = rule.match ? rule.match.name || rule.match.target || JSON.stringify(rule.match) : "?";
    if (rule.retarget !== undefined) return `${what} → ${rule.retarget.target || rule.retarget}`;
    if (rule.passthrough !== undefined) return `${what} is left out`;
    if (rule.constant !== undefined) return `${what} → a constant`;
    if (rule.patch) {
        const sign = ["set", "add", "scale"].find((key) => rule.patch[key] !== undefined) || "set",
            value = JSON.stringify(rule.patch[sign])?.slice(0, 40);
        return `${what}[${rule.patch.index}] ${{set: "", add: "+", scale: "*"}[sign]}= ${value}`;
    }
    return `${what}: ${JSON.stringify(rule).slice(0, 80)}`;
}

/** An index as it is written in Python: "0, :, 1:3". @param {string} text @returns {any[]} */
function indexOf(text) {
    const parts = text
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean);
    return parts.length
        ? parts.map((part) => (/^-?\d+$/.test(part) ? Number(part) : part === "None" ? null : part))
        : ["..."];
}

/** @param {Session} session @param {any} rule */
export function addRule(session, rule) {
    session.rules = session.rules
        .filter((old) => !old.match || old.match.name !== rule.match.name)
        .concat([rule]);
    for (const listener of session.listeners) listener();
    toast("a rule was added; Change tries it");
}

/**
 * What buttons do.
 * @param {import("./graph.js").Node} node
 * @returns {[string, string, any][]} text, title, rule
 */
function actions(node) {
    const rows = /** @type {[string, string, any][]} */ ([]);
    if (node.inputs.length)
        rows.push(["Leave out", "its readers get its first argument", {passthrough: 0}]);
    rows.push(["Zeros", "y[...] *= 0", {patch: {scale: 0}}]);
    rows.push(["Double", "y[...] *= 2", {patch: {scale: 2}}]);
    if (node.inputs.length)
        rows.push([
            "Ones",
            "as torch.ones_like",
            {retarget: {op: "call_function", target: "torch.ones_like", args: ["$0"]}}
        ]);
    return rows;
}

/**
 * Steps that rewrite the graph at a node.
 * @param {import("./graph.js").Node} node
 * @param {string} target of a function, "" where none was typed
 * @returns {[string, string, any[]][]} text, title, steps
 */
function rewrites(node, target) {
    const behind = `${node.name}_then`,
        call = {op: "call_function", name: behind, target, args: [`%${node.name}`]};
    const rows = /** @type {[string, string, any[]][]} */ ([
        [
            "Replace",
            "another function of the same arguments",
            [{edit: "set_target", node: node.name, target}]
        ],
        [
            "Insert behind",
            "its readers get the function of its result",
            [
                {edit: "insert_after", node: node.name, new: call},
                {edit: "replace_all_uses", node: node.name, with: behind, except: behind}
            ]
        ]
    ]);
    const first = node.inputs.find((from) => from.kind !== "parameter");
    if (first)
        rows.push([
            "Take out",
            "its readers get its first argument",
            [
                {edit: "replace_all_uses", node: node.name, with: first.name},
                {edit: "erase", node: node.name}
            ]
        ]);
    return rows;
}

/** A value that is set or scaled, all of it or a part; and other rules at a click.
 * @param {import("./graph.js").Node} node @param {(rule: any) => void} take */
function patches(node, take) {
    const patch = (how) => take({patch: {...how, index: indexOf(part.value)}});
    const buttons = actions(node).map(([text, title, rule]) =>
        h("button", {title, onclick: () => (rule.patch ? patch(rule.patch) : take(rule))}, text)
    );
    const part = h("input.grow", {
        placeholder: "at 0, 1:3",
        title: "the part that is set or scaled, as an index of Python; empty: all of it",
        "aria-label": "part of the value",
        autocomplete: "off"
    });
    const constant = h("input.grow", {
        type: "number",
        step: "any",
        placeholder: "0",
        "aria-label": "a constant"
    });
    const set = (event) => {
        event.preventDefault();
        patch({set: Number(constant.value || 0)});
    };
    return [
        h(
            "form.row",
            {style: {marginTop: "8px"}, onsubmit: set},
            constant,
            part,
            h("button", {title: "y[...] = a constant, or of a part"}, "Make constant")
        ),
        h("div.row", {style: {marginTop: "8px"}}, buttons)
    ];
}

/** @param {Session} session @param {import("./graph.js").Node} node */
export function changePanel(session, node) {
    const place = h("div", {style: {marginTop: "8px"}});
    const write = (text) => {
        const wanted = field.value.trim(),
            [, , steps] = rewrites(node, wanted).find(([name]) => name === text);
        if (!wanted && text !== "Take out") return void field.focus();
        session.steps = session.steps.concat(steps);
        const n = session.steps.length,
            words = n === 1 ? "1 step waits. " : `${n} steps wait. `;
        fill(
            place,
            h("p.small", words, h("a", {href: addressOf(session, "change")}, "See what they make →"))
        );
    };
    const take = (rule) => {
        addRule(session, {match: {name: node.name}, ...rule});
        const n = session.rules.length,
            words = n === 1 ? "1 rule waits. " : `${n} rules wait. `;
        fill(place, h("p.small", words, h("a", {href: addressOf(session, "change")}, "Try them →")));
    };
    const field = h("input.grow", {
        list: "functions",
        placeholder: "torch.sigmoid",
        "aria-label": "another function"
    });
    const replace = (event) => {
        event.preventDefault();
        if (field.value.trim()) take({retarget: field.value.trim()});
    };
    const known = h(
        "datalist",
        {id: "functions"},
        FUNCTIONS.map((name) => h("option", {value: name}))
    );
    return [
        h("h3", "Change"),
        h("form.row", {onsubmit: replace}, field, h("button", "Replace"), known),
        patches(node, take),
        h("p.small.soft", {style: {marginTop: "10px"}}, "In the graph, with the function above:"),
        h(
            "div.row",
            {style: {marginTop: "4px"}},
            rewrites(node, "").map(([text, title]) =>
                h("button.small", {title, onclick: () => write(text)}, text)
            )
        ),
        place
    ];
}
