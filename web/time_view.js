// SPDX-License-Identifier: Apache-2.0
// One run's time, node by node and module by module, and what the server remembers of many runs.
import {get} from "./api.js";
import {ago, bytes, count, fill, h, percent, us} from "./dom.js";
import {addressOf, setQuery} from "./address.js";
import {failure} from "./main.js";
import {heatColor, THEMES} from "./paint.js";
import {howRun} from "./run_view.js";
import {current, inputsOf, pathOf, run, takeProfile} from "./session.js";
import {describe} from "./words.js";

/** @typedef {import("./session.js").Session} Session */
const MOST = 400;

/** Steps of a request before and after the run. @param {any} profile */
function steps(profile) {
    const rows = [
        ["wait", profile.queue_us],
        ["decode", profile.decode_us],
        ["compile", profile.compile_us],
        ["run", profile.run_us],
        ["encode", profile.encode_us]
    ].filter(([, value]) => value > 0);
    const total = rows.reduce((sum, [, value]) => sum + value, 0),
        colors = {
            wait: "#98a2b3",
            decode: "#5b8fa8",
            compile: "#7a5af0",
            run: "#f06048",
            encode: "#12a17c"
        };
    return h(
        "div",
        h(
            "div.row",
            {style: {gap: "2px", flexWrap: "nowrap", height: "18px"}},
            rows.map(([name, value]) =>
                h("span", {
                    title: `${name} ${us(value)}`,
                    style: {
                        width: `${(value / total) * 100}%`,
                        minWidth: "3px",
                        height: "14px",
                        borderRadius: "3px",
                        background: colors[name]
                    }
                })
            )
        ),
        h(
            "p.small.soft.row",
            {style: {gap: "14px"}},
            rows.map(([name, value]) =>
                h(
                    "span",
                    h("i", {
                        style: {
                            display: "inline-block",
                            width: "9px",
                            height: "9px",
                            borderRadius: "2px",
                            marginRight: "5px",
                            background: colors[name]
                        }
                    }),
                    `${name} ${us(value)}`
                )
            )
        )
    );
}

/** @param {any} row of a profile */
function rowTitle(row) {
    const speed = row.flops ? `${(row.flops / row.us / 1e3).toFixed(1)} GFLOP/s` : "";
    return [row.nodes.join(", "), row.kernel, speed, row.bytes ? bytes(row.bytes) : ""]
        .filter(Boolean)
        .join("\n");
}

/** @param {Session} session @param {any} profile */
function lanes(session, profile) {
    const theme = THEMES[document.documentElement.dataset.theme === "dark" ? "dark" : "light"],
        total = profile.run_us || 1;
    return profile.nodes.slice(0, MOST).map((row) => {
        const node = session.graph.byName.get(row.nodes[0]),
            words = node ? describe(node) : row.nodes[0];
        const more = row.nodes.length > 1 ? ` + ${row.nodes.length - 1}` : "";
        return h(
            "button.lane",
            {
                title: rowTitle(row),
                onclick: () => {
                    location.hash = addressOf(session, "graph", {node: row.nodes[0]});
                }
            },
            h("span", words, h("span.soft", more)),
            h(
                "span.track",
                h("i", {
                    style: {
                        left: `${Math.min(99.5, (row.start_us / total) * 100)}%`,
                        width: `${Math.max(0.3, (row.us / total) * 100)}%`,
                        background: heatColor(Math.max(0.12, row.share), theme)
                    }
                })
            ),
            h("span.right", us(row.us))
        );
    });
}

/** Modules within each other, as wide as their time. @param {Session} session */
function flame(session) {
    const theme = THEMES[document.documentElement.dataset.theme === "dark" ? "dark" : "light"],
        levels = [];
    let level = [session.graph.root];
    while (level.length && levels.length < 6) {
        levels.push(level);
        level = level
            .flatMap((scope) => scope.scopes)
            .filter((scope) => (session.scopeTimes.get(scope.id)?.share || 0) > 0.002);
    }
    const left = new Map([[session.graph.root, 0]]);
    return h(
        "div",
        levels.map((scopes) =>
            h(
                "div",
                {style: {position: "relative", height: "24px"}},
                scopes.map((scope) => {
                    const share = scope.parent ? session.scopeTimes.get(scope.id)?.share || 0 : 1,
                        at = left.get(scope) || 0;
                    let next = at;
                    for (const inner of scope.scopes) {
                        left.set(inner, next);
                        next += session.scopeTimes.get(inner.id)?.share || 0;
                    }
                    return h(
                        "span",
                        {
                            title: `${scope.path || session.name}: ${percent(share)}`,
                            class: "small nowrap",
                            style: {
                                position: "absolute",
                                left: `${at * 100}%`,
                                width: `calc(${share * 100}% - 2px)`,
                                height: "22px",
                                overflow: "hidden",
                                borderRadius: "4px",
                                padding: "2px 6px",
                                background: heatColor(scope.parent ? share : 0.05, theme),
                                border: "1px solid var(--line)"
                            }
                        },
                        `${scope.path.split(".").slice(-2).join(".") || session.name} ${percent(share)}`
                    );
                })
            )
        )
    );
}

/** @param {any} stats */
function statistics(stats) {
    const rows = stats.signatures || [];
    if (!rows.length) return h("p.soft", "No runs yet.");
    return h(
        "table",
        h(
            "thead",
            h(
                "tr",
                h("th", "inputs"),
                h("th", "program"),
                ["runs", "mean", "50 %", "90 %", "99 %", "most"].map((t) => h("th.num", t))
            )
        ),
        rows.map((row) =>
            h(
                "tr",
                h("td.small", row.signature),
                h("td.small.soft", row.program ? String(row.program).slice(0, 10) : "node by node"),
                h("td.num", row.run_us.count),
                ["mean", "p50", "p90", "p99", "max"].map((key) => h("td.num", us(row.run_us[key])))
            )
        )
    );
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
                h("td.mono", one.id),
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
        this.one = h("div");
        this.many = h("div.card");
        this.slow = h("div.card");
        this.page = h(
            "div.page",
            h(
                "div.inner",
                h(
                    "div.row",
                    h("h1.titleline.grow", "Time"),
                    h("button", {onclick: () => this.again(1)}, "Run again"),
                    h("button", {onclick: () => this.again(20)}, "Run 20 times")
                ),
                this.said,
                this.one,
                h("h3", "All runs the server remembers"),
                this.many,
                h("h3", "Slowest runs"),
                this.slow
            )
        );
        host.append(this.page);
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
        const some =
            profile.nodes.length > MOST ? `, the first ${MOST} of ${count(profile.nodes.length)}` : "";
        fill(
            this.one,
            h("h3", `Run ${profile.id}`),
            h(
                "div.card",
                h(
                    "p",
                    h("b", us(profile.run_us)),
                    h("span.soft", `  ${howRun(profile)} · ${profile.signature}`)
                ),
                steps(profile)
            ),
            session.graph.root.scopes.length ? [h("h3", "By module"), h("div.card", flame(session))] : null,
            h("h3", `By node${some}`),
            h("div.card.timeline", lanes(session, profile))
        );
    }

    /** @param {string} id of a run */
    async show(id) {
        takeProfile(this.session, await get(`/v1/profiles/${encodeURIComponent(id)}`));
        setQuery({run: id});
        this.page.scrollTo(0, 0);
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
        const [stats, all] = await Promise.all([get(path), get("/v1/profiles?slowest=200")]);
        const mine = all.profiles.filter((entry) => entry.graph === this.session.name).slice(0, 10);
        fill(this.many, statistics(stats));
        fill(
            this.slow,
            mine.length ? runsTable(mine, (id) => this.guarded(() => this.show(id))) : h("p.soft", "none")
        );
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
        this.session.listeners.delete(this.timed);
    }
}

/** @param {HTMLElement} host @param {import("./address.js").Place} place */
export const timeView = (host, place) => new TimeView(host, place);
