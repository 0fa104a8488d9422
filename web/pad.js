// SPDX-License-Identifier: Apache-2.0
// A pad to draw a digit on, for graphs that read small grey pictures and give ten values: each
// stroke is a run, whose times colour the graph.
import {fill, h, us} from "./dom.js";
import {howRun} from "./run_view.js";
import {pathOf, takeProfile} from "./session.js";
import {post} from "./api.js";
import {bars, softmax, tensorOf} from "./tensor.js";

/** @typedef {import("./session.js").Session} Session */

const FINE = 4; // strokes are drawn on a grid so much finer than the picture

/** A seven, on a grid of 32 by 32. */
const FIRST = [
    [8, 8, 22, 8],
    [22, 8, 20, 12],
    [20, 12, 15, 25]
];

/** @param {any} info of a graph @returns {{input: string, size: number, scale: number} | null} */
export function digitsOf(info) {
    const inputs = info.inputs || [],
        outputs = info.outputs || [];
    const x = inputs.length === 1 && inputs[0],
        y = outputs[0];
    if (!x || !y || !x.shape || !y.shape || !/^float/.test(x.dtype)) return null;
    const [, channels, rows, columns] = x.shape;
    const fits =
        x.shape.length === 4 &&
        channels === 1 &&
        rows === columns &&
        rows >= 8 &&
        rows <= 32 &&
        y.shape[y.shape.length - 1] === 10;
    return fits ? {input: x.name, size: rows, scale: rows === 8 ? 16 : 1} : null;
}

/**
 * Counts of marked points in each cell of the picture.
 * @param {Uint8Array} grid
 * @param {number} size
 * @param {number} scale
 */
export function sampled(grid, size, scale) {
    const wide = size * FINE,
        out = new Array(size * size).fill(0);
    for (let y = 0; y < wide; y++)
        for (let x = 0; x < wide; x++)
            out[Math.floor(y / FINE) * size + Math.floor(x / FINE)] +=
                (grid[y * wide + x] * scale) / (FINE * FINE);
    return out;
}

class Pad {
    /** @param {Session} session */
    constructor(session) {
        const found = /** @type {{input: string, size: number, scale: number}} */ (digitsOf(session.info));
        this.session = session;
        this.input = found.input;
        this.size = found.size;
        this.scale = found.scale;
        this.wide = this.size * FINE;
        this.grid = new Uint8Array(this.wide * this.wide);
        const label = "draw a digit here with the mouse";
        this.canvas = h("canvas", {
            width: this.wide * 8,
            height: this.wide * 8,
            "aria-label": label,
            role: "img"
        });
        this.result = h("div.grow");
        this.said = h("p.small.soft", {style: {marginTop: "8px"}});
        this.last = /** @type {number[] | null} */ (null);
        this.busy = this.again = this.gone = false;
        const clear = h("button.plain.small", {onclick: () => this.clear()}, "clear");
        this.element = h(
            "div",
            h("div.pad", this.canvas, this.result),
            h("div.row", this.said, h("span.grow"), clear)
        );
        const k = this.wide / 32;
        for (const [x0, y0, x1, y1] of FIRST) this.stroke(x0 * k, y0 * k, x1 * k, y1 * k);
        this.listen();
        this.changed();
    }

    listen() {
        this.canvas.addEventListener("pointerdown", (event) => {
            this.canvas.setPointerCapture(event.pointerId);
            this.last = this.point(event);
            this.draw(event);
        });
        this.canvas.addEventListener("pointermove", (event) => this.last && this.draw(event));
        this.canvas.addEventListener("pointerup", () => (this.last = null));
    }

    /** @param {PointerEvent} event @returns {number[]} on the grid */
    point(event) {
        const box = this.canvas.getBoundingClientRect(),
            k = this.wide / box.width;
        return [(event.clientX - box.left) * k, (event.clientY - box.top) * k];
    }

    /** @param {PointerEvent} event */
    draw(event) {
        const [x, y] = this.point(event),
            [x0, y0] = /** @type {number[]} */ (this.last);
        this.stroke(x0, y0, x, y);
        this.last = [x, y];
        this.changed();
    }

    clear() {
        this.grid.fill(0);
        this.changed();
    }

    changed() {
        this.paint();
        this.go();
    }

    paint() {
        const c = this.canvas.getContext("2d"),
            cell = this.canvas.width / this.size;
        sampled(this.grid, this.size, 1).forEach((v, i) => {
            const level = Math.round(13 + 230 * v);
            c.fillStyle = `rgb(${level},${Math.round(level * 0.98)},${Math.round(16 + 214 * v)})`;
            c.fillRect((i % this.size) * cell, Math.floor(i / this.size) * cell, cell, cell);
        });
    }

    /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
    stroke(x0, y0, x1, y1) {
        const steps = Math.ceil(Math.hypot(x1 - x0, y1 - y0)) + 1,
            r = (this.wide / 32) * 2.3;
        for (let s = 0; s <= steps; s++)
            this.dot(x0 + ((x1 - x0) * s) / steps, y0 + ((y1 - y0) * s) / steps, r);
    }

    /** @param {number} cx @param {number} cy @param {number} r */
    dot(cx, cy, r) {
        const inside = (v) => v >= 0 && v < this.wide;
        for (let y = Math.floor(cy - r); y <= cy + r; y++)
            for (let x = Math.floor(cx - r); x <= cx + r; x++)
                if (inside(x) && inside(y) && (x - cx) ** 2 + (y - cy) ** 2 <= r * r)
                    this.grid[y * this.wide + x] = 1;
    }

    /** One run at a time, of what is drawn then. */
    async go() {
        this.again = true;
        if (this.busy) return;
        this.busy = true;
        while (this.again && !this.gone) {
            this.again = false;
            const {size, session} = this,
                dtype = session.info.inputs[0].dtype;
            const tensor = {shape: [1, 1, size, size], dtype, data: sampled(this.grid, size, this.scale)};
            session.inputs = {[this.input]: tensor};
            try {
                this.took(await post(`${pathOf(session)}/run`, {inputs: session.inputs, profile: true}));
            } catch (error) {
                this.said.textContent = error.message;
            }
        }
        this.busy = false;
    }

    /** @param {any} reply */
    took(reply) {
        if (this.gone) return;
        this.session.result = reply;
        const tensor = tensorOf(reply.outputs[0]),
            share = (v) => `${(v * 100).toFixed(0)} %`;
        if (tensor) fill(this.result, bars(softmax(tensor.data.slice(0, 10)), undefined, share));
        this.said.textContent = `one run: ${us(reply.profile.run_us)}, ${howRun(reply)}`;
        takeProfile(this.session, reply.profile);
    }

    close() {
        this.gone = true;
    }
}

/** @param {Session} session @returns {{element: HTMLElement, close: () => void}} */
export const pad = (session) => new Pad(session);
