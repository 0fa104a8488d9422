// SPDX-License-Identifier: Apache-2.0
// Rules and rewrites are tried here: what becomes faster, how much results differ, what the code is
// then; what is good is stored as a graph or a version, and a version is rolled back.
import {addressOf, setQuery} from "./address.js";
import {call, post} from "./api.js";
import {ruleText} from "./change_panel.js";
import {fill, h, refill} from "./dom.js";
import {failure, toast} from "./main.js";
import {needs} from "./scopes.js";
import {current, pathOf} from "./session.js";
import {showSides} from "./side_by_side.js";
import {diffOr, tryChange, variantOf} from "./trial.js";

/** @typedef {import("./session.js").Session} Session */

const PASSES = [
    "fuse",
    "remove_dropout",
    "cse",
    "constant_fold",
    "eliminate_dead_code",
    "normalise",
    "functionalise",
    "decompose"
];

const LONGEST = 4000; // letters of rules or steps that an address holds

/** @param {"rules" | "steps"} key @param {any[]} list what is tried now: the address says it, too */
function keepInAddress(key, list) {
    const text = JSON.stringify(list);
    setQuery({[key]: list.length && text.length <= LONGEST ? text : null});
}

/** What an address wants to be tried, unless there is something already.
 * @param {Session} session @param {URLSearchParams} query */
function takeFromAddress(session, query) {
    for (const key of /** @type {("rules" | "steps")[]} */ (["rules", "steps"])) {
        const text = query.get(key);
        if (!text || session[key].length) continue;
        try {
            const list = JSON.parse(text);
            if (Array.isArray(list)) session[key] = list;
        } catch {
            // an address that was cut off: there is nothing to try
        }
    }
}

/** @param {HTMLElement} host @param {import("./address.js").Place} place */
export function changeView(host, place) {
    const session = /** @type {Session} */ (current.now);
    takeFromAddress(session, place.query);
    host.append(
        h(
            "div.page",
            h(
                "div.inner",
                h("h1.titleline", "Change"),
                h(
                    "p.soft",
                    "Point at a node in ",
                    h("a", {href: addressOf(session, "graph")}, "Graph"),
                    " to make a rule, or write rules and steps here. ",
                    "The stored graph stays as it is until you store a result."
                ),
                new RulesCard(session).element,
                stepsCard(session),
                versionsCard(session)
            )
        )
    );
    return {};
}

class RulesCard {
    /** @param {Session} session */
    constructor(session) {
        this.session = session;
        this.list = h("div");
        this.place = h("div");
        this.area = h("textarea", {rows: 6, spellcheck: "false", "aria-label": "rules as JSON"});
        this.name = h("input", {
            value: `${session.name}-changed`.slice(0, 64),
            "aria-label": "name of the variant"
        });
        const trial = () => this.guarded((overrides) => tryChange(session, {overrides}, this.place)),
            store = () => this.guarded((rules) => this.store(rules)),
            tried = needs("run", h("button.first", {onclick: trial}, "Try them")),
            stored = needs("write", h("button", {onclick: store}, "Store as a graph"));
        this.element = h(
            "div.card",
            {style: {marginTop: "18px"}},
            h("h2", "Rules for a run"),
            this.list,
            h("details", h("summary", "as JSON"), this.area),
            h("div.row", {style: {marginTop: "12px"}}, tried, h("span.grow"), this.name, stored),
            this.place
        );
        this.write();
    }

    write() {
        this.area.value = JSON.stringify(this.session.rules, null, 1);
        this.draw();
    }

    draw() {
        const {rules} = this.session;
        const remove = (i) => () => {
            rules.splice(i, 1);
            this.write();
        };
        const row = (rule, i) =>
            h(
                "div.rule",
                h("code.grow", ruleText(rule)),
                h("button.plain.small", {onclick: remove(i)}, "remove")
            );
        keepInAddress("rules", rules);
        refill(this.list, rules.length ? rules.map(row) : h("p.soft", "no rules yet"));
    }

    /** @param {(rules: any[]) => any} work */
    async guarded(work) {
        try {
            this.session.rules = JSON.parse(this.area.value || "[]");
            this.draw();
            await work(this.session.rules);
        } catch (error) {
            fill(this.place, failure(error));
        }
    }

    /** @param {any[]} rules */
    async store(rules) {
        const body = variantOf(this.session, rules),
            info = await call("PUT", `/v1/graphs/${encodeURIComponent(this.name.value)}`, {body});
        fill(this.place, h("p.note", "stored: ", linkTo(info)), diffOr(info.derived?.diff));
    }
}

/** @param {{name: string, version: number}} info of a stored graph */
const linkTo = (info) =>
    h(
        "a",
        {href: addressOf({name: info.name, version: ""}, "graph")},
        `${info.name}, version ${info.version}`
    );

/** What was stored, and what it is worth beside the graph that it was made of.
 * @param {Session} session @param {{name: string, version: number}} stored */
function storedNote(session, stored) {
    const place = h("div"),
        {name, info} = session;
    const before = {graph: name, version: info.version, mode: "compiled"},
        after = {graph: stored.name, version: stored.version, mode: "compiled"};
    const compare = () => showSides(session, before, after, place),
        words = `Compare with version ${info.version}`;
    return [
        h(
            "p.note",
            "stored: ",
            linkTo(stored),
            " ",
            needs("run", h("button.small", {onclick: compare}, words))
        ),
        place
    ];
}

/** @param {Session} session */
function stepsCard(session) {
    const area = h("textarea", {
            rows: 5,
            spellcheck: "false",
            "aria-label": "steps as JSON",
            placeholder:
                '[{"pass": "fuse"}, {"edit": "set_target", "node": "relu", "target": "torch.sigmoid"}]',
            value: session.steps.length ? JSON.stringify(session.steps, null, 1) : ""
        }),
        place = h("div"),
        name = h("input", {value: session.name, "aria-label": "name to store under"});
    const steps = () => {
        session.steps = JSON.parse(area.value.trim() || "[]");
        keepInAddress("steps", session.steps);
        return session.steps;
    };
    keepInAddress("steps", session.steps);
    const guarded = async (work) => {
        try {
            await work(steps());
        } catch (error) {
            fill(place, failure(error));
        }
    };
    const trial = () => guarded((list) => tryChange(session, {steps: list}, place)),
        store = () =>
            guarded(async (list) => {
                const body = {steps: list, store_as: name.value},
                    reply = await post(`${pathOf(session)}/transform`, body);
                fill(place, storedNote(session, reply.stored), diffOr(reply.diff));
            });
    const addStep = (step) =>
        guarded((list) => (area.value = JSON.stringify([...list, step], null, 1)));
    return h(
        "div.card",
        {style: {marginTop: "18px"}},
        h("h2", "Rewrite the graph"),
        h(
            "div.row",
            {style: {margin: "8px 0"}},
            PASSES.map((pass) => h("button.small", {onclick: () => addStep({pass})}, pass))
        ),
        area,
        h(
            "div.row",
            {style: {marginTop: "10px"}},
            h("button.first", {onclick: trial}, "Try the steps"),
            h("span.grow"),
            name,
            needs("write", h("button", {onclick: store}, "Store as a version"))
        ),
        place
    );
}

/** @param {Session} session */
function versionsCard(session) {
    const body = h("div");
    async function draw() {
        const {versions} = await call("GET", `/v1/graphs/${encodeURIComponent(session.name)}/versions`);
        refill(
            body,
            h(
                "table",
                versions.map((one) =>
                    h(
                        "tr",
                        h(
                            "td",
                            h(
                                "a",
                                {href: addressOf({name: session.name, version: one.version}, "graph")},
                                `version ${one.version}`
                            ),
                            " ",
                            one.default ? h("span.tag", "serves") : null,
                            (one.aliases || []).map((alias) => h("span.tag", alias))
                        ),
                        h("td.small.soft.mono", one.id.slice(0, 12)),
                        h(
                            "td.num",
                            one.default
                                ? null
                                : needs(
                                      "write",
                                      h(
                                          "button.small",
                                          {onclick: () => serve(one.version)},
                                          "Serve this one"
                                      )
                                  )
                        )
                    )
                )
            )
        );
    }
    async function serve(version) {
        try {
            await call("PATCH", `/v1/graphs/${encodeURIComponent(session.name)}`, {
                body: {default_version: version}
            });
            toast(`version ${version} serves now`);
            await draw();
        } catch (error) {
            fill(body, failure(error));
        }
    }
    draw().catch((error) => fill(body, failure(error)));
    return h("div.card", {style: {marginTop: "18px"}}, h("h2", "Versions"), body);
}
