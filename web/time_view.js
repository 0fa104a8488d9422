// SPDX-License-Identifier: Apache-2.0
// One run's time, node by node and module by module, and what the server remembers of many runs.
import {get} from "./api.js";
import {ago, count, download, fill, h, keepSight, refill, us} from "./dom.js";
import {addressOf, setQuery} from "./address.js";
import {follow} from "./events.js";
import {seldom} from "./live.js";
import {failure} from "./main.js";
import {howRun} from "./run_view.js";
import {memoryOver} from "./memory_parts.js";
import {needs} from "./scopes.js";
import {current, inputsOf, pathOf, reportOf, run, takeProfile} from "./session.js";
import {sideBySide} from "./side_by_side.js";
import {flame, lanes, MOST_LANES, statistics, steps} from "./time_parts.js";
import {describe} from "./words.js";

/** @typedef {import("./session.js").Session} Session */

/** Modules with their shares. @param {Session} session @param {any} scope @param {number} depth */
function partOf(session, scope, depth = 0) {
    return {
        label: scope.path.split(".").slice(-2).join(".") || session.name,
        path: scope.path,
        share: scope.parent ? session.scopeTimes.get(scope.id)?.share || 0 : 1,
        parts: depth < 6 ? scope.scopes.map((inner) => partOf(session, inner, depth + 1)) : []
    };
}

/** @param {any[]} list @param {(id: string) => void} show */
function runsTable(list, show) {
    return h(
        "table",
        h(
            "thead",
            h(
                "tr",
                h("th", "run"),
                h("th", "inputs"),
                ["when", "run", "request"].map((t) => h("th.num", t))
            )
        ),
        list.map((one) =>
            h(
                "tr.link",
                {onclick: () => show(one.id)},
                h("td", h("button.plain.mono", {title: "show this run"}, one.id)),
                h("td.small", one.signature),
                h("td.num.soft", ago(one.ended_ms)),
                h("td.num", us(one.run_us)),
                h("td.num", us(one.total_us))
            )
        )
    );
}

class TimeView {
    /** @param {HTMLElement} host @param {import("./address.js").Place} place */
    constructor(host, place) {
        this.session = /** @type {Session} */ (current.now);
        this.said = h("div");
        this.listed = false; // the lists were read once
        this.one = h("div");
        this.many = h("div.card");
        this.slow = h("div.card");
        this.beside = sideBySide(this.session);
        this.page = h(
            "div.page",
            h(
                "div.inner",
                h(
                    "div.row",
                    h("h1.titleline.grow", "Time"),
                    needs("run", h("button", {onclick: () => this.again(1)}, "Run again")),
                    needs("run", h("button", {onclick: () => this.again(20)}, "Run 20 times"))
                ),
                this.said,
                this.one,
                h("h3", "Side by side"),
                this.beside.element,
                h("h3", "All runs the server remembers"),
                this.many,
                h("h3", "Slowest runs"),
                this.slow
            )
        );
        host.append(this.page);
        const again = seldom(() => this.guarded(() => this.lists()), 500);
        this.stop = follow(
            ({kind, data}) => {
                const ended = kind === "run" && data.state === "ended";
                if (ended && data.graph === this.session.name) again();
            },
            () => {}
        );
        this.timed = () => this.draw();
        this.session.listeners.add(this.timed);
        this.draw();
        const id = place.query.get("run");
        this.guarded(() => this.lists());
        if (id) this.guarded(() => this.show(id));
    }

    draw() {
        const {session} = this,
            {profile} = session;
        if (!profile) return fill(this.one, h("p.note", "It has not run yet."));
        const all = profile.nodes.length,
            some = all > MOST_LANES ? `, the first ${MOST_LANES} of ${count(all)}` : "",
            {root} = session.graph;
        const words = (name) => {
            const node = session.graph.byName.get(name);
            return node ? describe(node) : name;
        };
        const wordsOf = (row) => row.nodes.map(words).join(" + "),
            memory = h("div.card", {style: {minHeight: "260px"}}, h("p.soft", "…"));
        const choose = (name) => (location.hash = addressOf(session, "graph", {node: name}));
        refill(
            this.one,
            h(
                "div.row",
                h("h3.grow", `Run ${profile.id}`),
                h("button.plain.small", {onclick: () => this.save(profile.id)}, "Save as HTML")
            ),
            h(
                "div.card",
                h(
                    "p",
                    h("b", us(profile.run_us)),
                    h("span.soft", `  ${howRun(profile)} · ${profile.signature}`)
                ),
                steps(profile)
            ),
            root.scopes.length ? [h("h3", "By module"), h("div.card", flame(partOf(session, root)))] : null,
            h("h3", "Memory"),
            memory,
            h("h3", `By node${some}`),
            h("div.card.timeline", lanes(profile, wordsOf, choose))
        );
        reportOf(session).then((report) =>
            fill(
                memory,
                report.memory
                    ? memoryOver(report, profile, words, choose)
                    : h("p.soft", "It is not known: the graph's sizes depend on values.")
            )
        );
    }

    /** @param {string} id of a run */
    async show(id) {
        takeProfile(this.session, await get(`/v1/profiles/${encodeURIComponent(id)}`));
        setQuery({run: id});
        this.page.scrollTo(0, 0);
        const heading = /** @type {HTMLElement | null} */ (this.one.querySelector("h3"));
        if (heading && this.slow.contains(document.activeElement)) {
            heading.tabIndex = -1; // the row that was pressed is out of sight
            heading.focus({preventScroll: true});
        }
    }

    /** A file to send to others. @param {string} id of a run */
    save(id) {
        return this.guarded(async () => {
            const page = await get(`/v1/profiles/${encodeURIComponent(id)}?form=html`, {as: "bytes"});
            download(`${this.session.name}.html`, new Blob([page], {type: "text/html"}));
        });
    }

    /** @param {number} times */
    again(times) {
        const {session} = this;
        return this.guarded(async () => {
            const body = {
                inputs: await inputsOf(session),
                ...(session.rules.length ? {overrides: session.rules} : {})
            };
            for (let i = 0; i < times; i++) await run(session, body);
            await this.lists();
        });
    }

    async lists() {
        const path = `${pathOf(this.session)}/profile?by=module&depth=1`;
        if (this.listed) this.beside.again();
        this.listed = true;
        const [stats, all] = await Promise.all([get(path), get("/v1/profiles?slowest=200")]);
        const {name, info} = this.session,
            mine = all.profiles.filter((one) => one.graph === name && one.content === info.id).slice(0, 10);
        const rows = mine.length
            ? runsTable(mine, (id) => this.guarded(() => this.show(id)))
            : h("p.soft", "none");
        keepSight(() => {
            fill(this.many, statistics(stats));
            refill(this.slow, rows);
        });
    }

    /** @param {() => Promise<any>} work */
    async guarded(work) {
        try {
            await work();
        } catch (error) {
            fill(this.said, failure(error));
        }
    }

    close() {
        this.stop();
        this.session.listeners.delete(this.timed);
    }
}

/** @param {HTMLElement} host @param {import("./address.js").Place} place */
export const timeView = (host, place) => new TimeView(host, place);
