// SPDX-License-Identifier: Apache-2.0
// A run node by node: a slider over the nodes in the order in which they run; each stop shows the
// node's value.
import {h} from "./dom.js";
import {describe} from "./words.js";

/** @typedef {import("./session.js").Session} Session */

const PAUSE = 90; // milliseconds that the slider rests before a value is asked for

export class Scrubber {
    /**
     * @param {Session} session
     * @param {(name: string) => Promise<any>} show a node and its value
     */
    constructor(session, show) {
        this.nodes = session.graph.nodes.filter((node) => node.kind === "call" || node.kind === "input");
        this.show = show;
        this.timer = 0;
        this.said = h("span.nowrap");
        this.slider = h("input.grow", {
            type: "range",
            min: 0,
            max: Math.max(0, this.nodes.length - 1),
            value: 0,
            "aria-label": "node of the run",
            oninput: () => this.moved()
        });
        this.element = h(
            "div.legend.scrub",
            h("button.plain.small", {title: "the node before (,)", onclick: () => this.step(-1)}, "◀"),
            this.slider,
            h("button.plain.small", {title: "the next node (.)", onclick: () => this.step(1)}, "▶"),
            this.said
        );
        this.element.hidden = true;
    }

    /** @param {boolean} on @param {string} name of the node that is chosen, or "" */
    open(on, name) {
        this.element.hidden = !on;
        if (!on) return;
        this.slider.value = String(
            Math.max(
                0,
                this.nodes.findIndex((node) => node.name === name)
            )
        );
        this.moved();
    }

    /** @param {number} by */
    step(by) {
        this.slider.value = String(Number(this.slider.value) + by);
        this.moved();
    }

    moved() {
        const at = Number(this.slider.value),
            node = this.nodes[at];
        if (!node) return;
        this.said.textContent = `${at + 1} of ${this.nodes.length} · ${describe(node)}`;
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.show(node.name), PAUSE);
    }

    close() {
        clearTimeout(this.timer);
    }
}
