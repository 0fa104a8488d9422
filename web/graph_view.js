// SPDX-License-Identifier: Apache-2.0
// The drawing and, beside it, what is known of the graph or of the node that is chosen.
import {Board} from "./board.js";
import {download, fill, h} from "./dom.js";
import {codePanel} from "./code_panel.js";
import {graphPanel, modulePanel, nodePanel} from "./details.js";
import {failure} from "./main.js";
import {openText, openedIn, setQuery} from "./address.js";
import {follow} from "./events.js";
import {heatOf, HEATS, noHeat} from "./heat.js";
import {seldom} from "./live.js";
import {firstOpen} from "./scene.js";
import {Scrubber} from "./scrub.js";
import {current, lastRun} from "./session.js";
import {themeNow} from "./theme.js";

/** @typedef {import("./session.js").Session} Session */

const SHOWN = [
    ["product", "products"],
    ["norm", "norms"],
    ["activation", "activations"],
    ["attention", "attention"],
    ["shape", "shapes"],
    ["math", "arithmetic"],
    ["reduce", "pooling"],
    ["data", "data"]
];

/** @param {Board} board @param {HTMLElement} legend */
function drawLegend(board, legend) {
    const theme = themeNow();
    const {heat} = board,
        fused = board.fused.size ? h("span", h("i.thick"), "fused: one kernel") : null;
    if (heat.nodes.size)
        return fill(
            legend,
            h("span", heat.words),
            h("span", heat.low),
            h("span.ramp"),
            h("span", heat.high),
            fused
        );
    const used = new Set(board.scene ? board.scene.shapes.map((shape) => shape.family) : []);
    fill(
        legend,
        SHOWN.filter(([id]) => used.has(id)).map(([id, word]) =>
            h("span", h("i", {style: {background: theme.families[id]}}), word)
        ),
        fused
    );
}

class GraphView {
    /** @param {HTMLElement} host @param {import("./address.js").Place} place */
    constructor(host, place) {
        this.session = /** @type {Session} */ (current.now);
        this.all = false;
        this.code = false;
        this.holder = h("div.board");
        this.side = h("aside.side");
        this.legend = h("div.legend");
        this.panel = /** @type {{close?: () => void, showValue?: () => void}} */ ({});
        this.scrubber = new Scrubber(this.session, async (name) => {
            await this.board.show(name);
            if (this.panel.showValue) this.panel.showValue();
        });
        host.append(h("div.split", this.holder, this.side));
        this.board = new Board(this.holder, {
            select: (shape) => this.selected(shape),
            opened: () => setQuery({open: openText(this.session.graph, this.board.open)})
        });
        this.kind = place.query.get("heat") || "time";
        this.heat = h(
            "select",
            {
                title: "what colours nodes (h)",
                "aria-label": "heat",
                onchange: () => this.setHeat(this.heat.value)
            },
            Object.entries(HEATS).map(([value, words]) =>
                h(
                    "option",
                    {value, selected: value === this.kind},
                    value === "none" ? words : `Heat: ${words}`
                )
            )
        );
        this.parameters = toggle("Parameters", "draw weights, too (p)", false, (on) =>
            this.setParameters(on)
        );
        this.codeButton = toggle("Code", "the code beside the drawing (k)", false, (on) =>
            this.setCode(on)
        );
        this.said = h("div.said");
        this.stepButton = toggle("Step", "values of a run, node by node (v)", false, (on) => {
            const shape = this.board.selectedShape();
            setQuery({step: on ? "1" : null});
            this.scrubber.open(on, shape && shape.node ? shape.node.name : "");
        });
        this.holder.append(this.tools(), this.legend, this.said, this.scrubber.element);
        this.timed = () => this.showTimes();
        this.stop = this.follow();
        this.themed = () => this.redraw();
        this.session.listeners.add(this.timed);
        window.addEventListener("themechange", this.themed);
        delete document.documentElement.dataset.ready;
        this.begin(place);
    }

    tools() {
        const {board, session} = this;
        const savePng = async () => {
            const blob = await board.png();
            if (blob) download(`${session.name}.png`, blob);
        };
        return h(
            "div.tools",
            h("button", {title: "the whole graph (f)", onclick: () => board.fit()}, "Whole"),
            h("button", {title: "all modules, and back (o)", onclick: () => this.openAll()}, "Open all"),
            this.heat,
            this.parameters,
            this.codeButton,
            this.stepButton,
            h(
                "button",
                {title: "save the drawing", onclick: () => download(`${session.name}.svg`, board.svg())},
                "SVG"
            ),
            h("button", {title: "save the drawing", onclick: savePng}, "PNG")
        );
    }

    /** Runs of others colour the drawing, too. */
    follow() {
        const {session} = this,
            again = seldom(() => lastRun(session).catch(() => {}), 500);
        return follow(
            ({kind, data}) => {
                const ended = kind === "run" && data.state === "ended" && data.graph === session.name;
                if (ended && data.status === 200) again();
            },
            () => {}
        );
    }

    /** @param {string} kind of HEATS */
    setHeat(kind) {
        this.kind = this.heat.value = kind;
        setQuery({heat: kind === "time" ? null : kind});
        return this.showTimes();
    }

    /** @param {boolean} on */
    setParameters(on) {
        this.board.parameters = on;
        setQuery({parameters: on ? "1" : null});
        this.board.update();
    }

    /** @param {boolean} on */
    setCode(on) {
        this.code = on;
        setQuery({code: on ? "1" : null});
        this.side.classList.toggle("wide", on);
        this.selected(this.board.selectedShape());
        if (this.board.selected) requestAnimationFrame(() => this.board.reveal(this.board.selected || ""));
    }

    redraw() {
        this.board.draw();
        drawLegend(this.board, this.legend);
    }

    openAll() {
        this.all = !this.all;
        this.board.open = this.all ? new Set(this.session.graph.scopes.keys()) : new Set([""]);
        setQuery({open: openText(this.session.graph, this.board.open)});
        return this.board.update({fit: true}).then(() => this.redraw());
    }

    /** @param {import("./scene.js").Shape | null} shape */
    selected(shape) {
        setQuery({
            node: shape && shape.node ? shape.node.name : null,
            module: shape && shape.scope ? shape.scope.id : null
        });
        if (this.panel.close) this.panel.close();
        this.panel = {};
        const {side, session, board} = this,
            held = side.contains(document.activeElement),
            go = (name) => board.show(name);
        if (this.code) return void codePanel(side, session, shape && shape.node ? shape.node.name : "", go);
        if (shape && shape.node) this.panel = nodePanel(side, session, shape.node, go);
        else if (shape && shape.scope)
            this.panel = modulePanel(side, session, shape.scope, go, () => board.toggle(shape.scope));
        else this.panel = graphPanel(side, session, go);
        if (held) focusHeading(side);
    }

    async showTimes() {
        const {board, session, kind} = this,
            named = session.rules.filter((rule) => rule.match && rule.match.name);
        board.fused = session.fused;
        board.marks = new Map(named.map((rule) => [rule.match.name, "rule"]));
        try {
            const heat = await heatOf(session, kind);
            if (kind === this.kind) board.heat = heat;
        } catch (error) {
            board.heat = noHeat();
            fill(this.said, failure(error));
        }
        this.redraw();
    }

    /** @param {import("./address.js").Place} place */
    async begin(place) {
        const {board, session} = this,
            {query} = place,
            [node, module] = [query.get("node"), query.get("module")];
        if (query.get("parameters")) this.parameters.click();
        if (query.get("code")) this.codeButton.click();
        board.graph = session.graph;
        this.all = query.get("open") === "*";
        board.open = openedIn(session.graph, query.get("open")) || firstOpen(session.graph, 36);
        await board.update({fit: true});
        performance.mark("picture");
        await this.showTimes();
        if (node) await board.show(node);
        else if (module && board.scene && board.scene.byId.has(`s ${module}`)) board.reveal(`s ${module}`);
        else this.selected(null);
        if (query.get("step")) this.stepButton.click();
        document.documentElement.dataset.ready = "graph";
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const {board} = this;
        const does = {
            f: () => board.fit(),
            o: () => this.openAll(),
            h: () => this.setHeat(this.kind === "none" ? "time" : "none"),
            p: () => this.parameters.click(),
            k: () => this.codeButton.click(),
            v: () => this.stepButton.click(),
            ",": () => this.scrubber.step(-1),
            ".": () => this.scrubber.step(1),
            Escape: () => board.select(null),
            "+": () => board.zoom(1.25),
            "-": () => board.zoom(0.8)
        }[event.key];
        if (does) return (does(), true);
        if (!event.key.startsWith("Arrow") && event.key !== "Enter") return false;
        board.canvas.focus();
        board.key(event);
        return true;
    }

    close() {
        this.stop();
        this.session.listeners.delete(this.timed);
        window.removeEventListener("themechange", this.themed);
        this.scrubber.close();
        this.board.close();
        if (this.panel.close) this.panel.close();
    }
}

/** Focus that was in a panel is on the heading of the one in its place. @param {HTMLElement} side */
function focusHeading(side) {
    const heading = side.querySelector("h2");
    if (!heading || document.activeElement !== document.body) return;
    heading.tabIndex = -1;
    heading.focus({preventScroll: true});
}

/**
 * A button that is on or off.
 * @param {string} text
 * @param {string} title
 * @param {boolean} on
 * @param {(on: boolean) => void} changed
 */
function toggle(text, title, on, changed) {
    const flip = () => {
        on = !on;
        made.setAttribute("aria-pressed", String(on));
        changed(on);
    };
    const made = h("button", {title, onclick: flip, "aria-pressed": String(on)}, text);
    return made;
}

/** @param {HTMLElement} host @param {import("./address.js").Place} place */
export function graphView(host, place) {
    const view = new GraphView(host, place);
    /** @type {any} */ (window).board = view.board; // for whoever looks from the console
    return view;
}
