// SPDX-License-Identifier: Apache-2.0
// The drawing on the screen: a canvas that pans and zooms, modules that open at a click, the keys.
import {plan, keyed, sceneOf} from "./scene.js";
import {noHeat} from "./heat.js";
import {canvasPen, paint, svgPen} from "./paint.js";
import {themeNow} from "./theme.js";

/**
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {import("./scene.js").Shape} Shape
 * @typedef {{select: (shape: Shape | null) => void, opened: () => void}} Listener
 */

const MIN_SCALE = 0.02, // or what shows the whole of a large graph
    MAX_SCALE = 3,
    OVERHANG = 220, // how far texts and outlines reach beyond their shapes
    TOP = 46, // what lies over the picture, in pixels: buttons, and the legend
    BOTTOM = 48;

const STEP = 90; // pixels that an arrow key moves the picture
/** @type {Record<string, number[]>} */
const STEPS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

/** @param {number} value @param {number} low @param {number} high */
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

const newWorker = () => new Worker(new URL("layout_worker.js", import.meta.url), {type: "module"});
/** @type {Worker | null} made before there is something to lay out */
let ready = newWorker();

export class Board {
    /** @param {HTMLElement} host @param {Listener} listener */
    constructor(host, listener) {
        this.host = host;
        this.listener = listener;
        this.canvas = document.createElement("canvas");
        this.canvas.tabIndex = 0;
        this.canvas.setAttribute("role", "application");
        this.canvas.setAttribute(
            "aria-label",
            "drawing of the graph; arrow keys walk along its edges, Enter opens a module"
        );
        host.append(this.canvas);
        this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", {alpha: false}));
        this.x = this.y = 0;
        this.scale = 1;
        this.top = TOP;
        this.bottom = BOTTOM;
        /** @type {Graph | null} */
        this.graph = null;
        /** @type {import("./scene.js").Scene | null} */
        this.scene = null;
        this.open = new Set([""]);
        this.parameters = false;
        /** @type {import("./heat.js").Heat} */
        this.heat = noHeat();
        /** @type {Map<string, number>} */
        this.fused = new Map();
        this.marks = new Map();
        this.missing = new Set();
        /** @type {string | null} */
        this.selected = null;
        /** @type {Shape | null} */
        this.hover = null;
        this.waiting = new Map();
        this.number = 0;
        this.frame = 0;
        this.layoutMs = 0;
        /** @type {{x: number, y: number, k: number} | null} where the picture on the canvas
         * stands, in its pixels; null: it is not what should be seen */
        this.painted = null;
        this.worker = ready || newWorker();
        ready = null;
        this.worker.onmessage = (event) => {
            const done = this.waiting.get(event.data.id);
            this.waiting.delete(event.data.id);
            if (done) done(event.data);
        };
        this.observer = new ResizeObserver(() => this.resize());
        this.observer.observe(host);
        this.listen();
    }

    close() {
        this.observer.disconnect();
        this.worker.terminate();
        this.canvas.remove();
    }

    /**
     * Lays out what is open and draws it.
     * @param {{keep?: string, fit?: boolean}} [how] keep: the id of a shape that stays where it
     * is on the screen
     */
    async update(how = {}) {
        const graph = this.graph;
        if (!graph) return;
        const drafts = plan(graph, this.open, this.parameters),
            box = keyed(drafts, this.parameters),
            id = ++this.number;
        const answer = await new Promise((resolve) => {
            this.waiting.set(id, resolve);
            this.worker.postMessage({id, box: plain(box)});
        });
        if (id !== this.number || graph !== this.graph) return;
        const before = how.keep && this.scene && this.scene.byId.get(how.keep);
        this.scene = sceneOf(graph, drafts, answer.placed);
        this.layoutMs = answer.ms;
        const after = how.keep && this.scene.byId.get(how.keep);
        if (before && after) {
            this.x += after.x - before.x;
            this.y += after.y - before.y;
        }
        if (how.fit) this.fit(true);
        this.draw();
    }

    resize() {
        const ratio = window.devicePixelRatio || 1,
            box = this.host.getBoundingClientRect();
        this.canvas.width = Math.max(1, Math.round(box.width * ratio));
        this.canvas.height = Math.max(1, Math.round(box.height * ratio));
        this.painted = null;
        this.paint();
    }

    /** The least scale: that of the whole graph, if it is a large one. */
    least() {
        const {width, height} = this.host.getBoundingClientRect(),
            {w, h} = this.scene || {w: 1, h: 1};
        return Math.min(MIN_SCALE, width / (w + 20), (height - this.top - this.bottom) / h);
    }

    /** All of it; with `first` not smaller than what can be read: then its beginning.
     * @param {boolean} [first] */
    fit(first) {
        if (!this.scene) return;
        const {width, height} = this.host.getBoundingClientRect(),
            {w, h} = this.scene;
        const room = height - this.top - this.bottom,
            whole = Math.min(width / (w + 20), room / h, 1.15);
        const readable = Math.max(0.5, Math.min(0.62, width / (w + 20)));
        this.scale = clamp(first ? Math.max(whole, readable) : whole, this.least(), MAX_SCALE);
        this.x = w / 2 - width / 2 / this.scale;
        this.y = this.scale > whole ? -this.top / this.scale : h / 2 - (this.top + room / 2) / this.scale;
        this.draw();
    }

    /** Draws all of it anew with the next frame. */
    draw() {
        this.painted = null;
        this.soon();
    }

    soon() {
        if (!this.frame)
            this.frame = requestAnimationFrame(() => {
                this.frame = 0;
                this.paint();
            });
    }

    /** Moves the picture. @param {number} dx @param {number} dy in pixels of the page */
    pan(dx, dy) {
        this.x += dx / this.scale;
        this.y += dy / this.scale;
        this.soon();
    }

    theme() {
        return themeNow();
    }

    /**
     * @param {number} scale
     * @param {{x0: number, y0: number, x1: number, y1: number}} view
     * @returns {import("./paint.js").Look}
     */
    look(scale, view) {
        const {nodes, scopes} = this.heat;
        const warmth = (shape) =>
            (shape.node ? nodes.get(shape.node.name) : shape.scope && scopes.get(shape.scope.id)) || null;
        return {
            theme: this.theme(),
            selected: this.selectedShape(),
            hover: this.hover,
            marks: this.marks,
            fused: this.fused,
            missing: this.missing,
            heat: nodes.size > 0,
            scale,
            view,
            warmth
        };
    }

    /** What is still right of the picture stays and moves; the rest is drawn. */
    paint() {
        const ratio = window.devicePixelRatio || 1,
            {width, height} = this.canvas,
            k = this.scale * ratio,
            x = Math.round(this.x * k),
            y = Math.round(this.y * k),
            old = this.painted;
        this.painted = {x, y, k};
        const dx = old ? x - old.x : width,
            dy = old ? y - old.y : height;
        if (!old || old.k !== k || Math.abs(dx) >= width || Math.abs(dy) >= height)
            return this.paintPart(0, 0, width, height);
        if (dx === 0 && dy === 0) return;
        const c = this.context;
        c.setTransform(1, 0, 0, 1, 0, 0);
        c.globalCompositeOperation = "copy";
        c.drawImage(this.canvas, -dx, -dy);
        c.globalCompositeOperation = "source-over";
        if (dx) this.paintPart(dx > 0 ? width - dx : 0, 0, Math.abs(dx), height);
        if (dy) this.paintPart(0, dy > 0 ? height - dy : 0, width, Math.abs(dy));
    }

    /** @param {number} left @param {number} top @param {number} width @param {number} height of a
     * part of the canvas, in its pixels */
    paintPart(left, top, width, height) {
        const c = this.context,
            {x, y, k} = /** @type {{x: number, y: number, k: number}} */ (this.painted);
        c.save();
        c.setTransform(1, 0, 0, 1, 0, 0);
        c.beginPath();
        c.rect(left, top, width, height);
        c.clip();
        c.fillStyle = this.theme().paper;
        c.fillRect(left, top, width, height);
        c.setTransform(k, 0, 0, k, -x, -y);
        const view = {
            x0: (left + x) / k - OVERHANG,
            y0: (top + y) / k - OVERHANG / 4,
            x1: (left + width + x) / k + OVERHANG / 4,
            y1: (top + height + y) / k + OVERHANG / 4
        };
        if (this.scene) paint(canvasPen(c), this.scene, this.look(this.scale, view));
        c.restore();
    }

    selectedShape() {
        return this.selected && this.scene ? this.scene.byId.get(this.selected) || null : null;
    }

    /**
     * @param {number} px
     * @param {number} py of the page
     * @returns {Shape | null} the innermost shape there
     */
    at(px, py) {
        if (!this.scene) return null;
        const box = this.canvas.getBoundingClientRect(),
            x = (px - box.left) / this.scale + this.x,
            y = (py - box.top) / this.scale + this.y;
        let found = null;
        for (const shape of this.scene.shapes)
            if (x >= shape.x && x <= shape.x + shape.w && y >= shape.y && y <= shape.y + shape.h)
                if (!found || shape.kind !== "open" || (found.kind === "open" && shape.depth > found.depth))
                    found = shape;
        return found;
    }

    /** @param {Shape | null} shape */
    select(shape) {
        this.selected = shape ? idOf(shape) : null;
        this.draw();
        this.listener.select(shape);
    }

    /** Opens or closes a module. @param {import("./graph.js").Scope} scope */
    toggle(scope) {
        const id = `s ${scope.id}`;
        if (this.open.has(scope.id)) this.open.delete(scope.id);
        else this.open.add(scope.id);
        this.listener.opened();
        return this.update({keep: id});
    }

    /** Opens what is around a node, selects it and brings it to the middle. @param {string} name */
    async show(name) {
        const node = this.graph && this.graph.byName.get(name);
        if (!node) return;
        if (node.kind === "parameter") this.parameters = true;
        for (let scope = /** @type {any} */ (node.scope); scope; scope = scope.parent)
            this.open.add(scope.id);
        await this.update();
        this.reveal(`n ${name}`);
    }

    /** Selects a shape and brings it to the middle, if it cannot be seen. @param {string} id */
    reveal(id) {
        const shape = this.scene && this.scene.byId.get(id);
        if (!shape) return;
        const {width, height} = this.host.getBoundingClientRect(),
            left = (shape.x - this.x) * this.scale,
            top = (shape.y - this.y) * this.scale,
            right = left + shape.w * this.scale,
            low = top + Math.min(shape.h, 200) * this.scale;
        const seen = left > 0 && right < width && top > this.top && low < height - this.bottom;
        if (!seen || this.scale < 0.4) {
            if (this.scale < 0.5) this.scale = 0.9;
            this.x = shape.x + shape.w / 2 - width / 2 / this.scale;
            this.y = shape.y + Math.min(shape.h, 200) / 2 - height / 2 / this.scale;
        }
        this.select(shape);
    }

    /**
     * @param {number} factor
     * @param {number} [px]
     * @param {number} [py] a point of the page that stays
     */
    zoom(factor, px, py) {
        const box = this.canvas.getBoundingClientRect();
        const cx = px === undefined ? box.width / 2 : px - box.left,
            cy = py === undefined ? box.height / 2 : py - box.top;
        const next = clamp(this.scale * factor, this.least(), MAX_SCALE);
        this.x += cx / this.scale - cx / next;
        this.y += cy / this.scale - cy / next;
        this.scale = next;
        this.draw();
    }

    listen() {
        const canvas = this.canvas;
        let drag = /** @type {any} */ (null);
        canvas.addEventListener("pointerdown", (event) => {
            drag = {x: event.clientX, y: event.clientY, moved: false};
            canvas.setPointerCapture(event.pointerId);
        });
        canvas.addEventListener("pointermove", (event) => {
            if (drag) this.dragged(drag, event);
            else this.hovered(event);
        });
        canvas.addEventListener("pointerup", (event) => {
            const clicked = drag && !drag.moved;
            drag = null;
            canvas.classList.remove("dragging");
            if (clicked) this.clicked(event);
        });
        canvas.addEventListener("dblclick", (event) => {
            const shape = this.at(event.clientX, event.clientY);
            if (shape && shape.scope) this.toggle(shape.scope);
        });
        canvas.addEventListener(
            "wheel",
            (event) => {
                event.preventDefault();
                const unit = event.deltaMode === 1 ? 16 : 1;
                if (event.shiftKey) return this.pan((event.deltaY + event.deltaX) * unit, 0);
                const factor = Math.exp(-clamp(event.deltaY * unit, -240, 240) * 0.0018);
                this.zoom(factor, event.clientX, event.clientY);
            },
            {passive: false}
        );
        canvas.addEventListener("keydown", (event) => this.key(event));
    }

    /** @param {any} drag @param {PointerEvent} event */
    dragged(drag, event) {
        const dx = event.clientX - drag.x,
            dy = event.clientY - drag.y;
        if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        drag.moved = true;
        this.canvas.classList.add("dragging");
        drag.x = event.clientX;
        drag.y = event.clientY;
        this.pan(-dx, -dy);
    }

    /** @param {PointerEvent} event */
    hovered(event) {
        const shape = this.at(event.clientX, event.clientY);
        this.canvas.style.cursor =
            shape && (shape.kind !== "open" || this.onHead(shape, event)) ? "pointer" : "grab";
        if (shape === this.hover) return;
        this.hover = shape;
        this.draw();
    }

    /** @param {Shape} shape @param {PointerEvent} event */
    onHead(shape, event) {
        const y = (event.clientY - this.canvas.getBoundingClientRect().top) / this.scale + this.y;
        return y < shape.y + 28;
    }

    /** A click selects; on a module's triangle it opens or closes. @param {PointerEvent} event */
    clicked(event) {
        const shape = this.at(event.clientX, event.clientY);
        this.canvas.focus({preventScroll: true});
        const x = (event.clientX - this.canvas.getBoundingClientRect().left) / this.scale + this.x;
        if (
            shape &&
            shape.scope &&
            x < shape.x + 26 &&
            (shape.kind === "module" || this.onHead(shape, event))
        ) {
            this.selected = idOf(shape);
            this.toggle(shape.scope);
            this.listener.select(shape);
            return;
        }
        this.select(shape && (shape.kind !== "open" || this.onHead(shape, event)) ? shape : null);
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const shape = this.selectedShape();
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "Enter" && shape && shape.scope) this.toggle(shape.scope);
        else if (event.key === "+" || event.key === "=") this.zoom(1.25);
        else if (event.key === "-") this.zoom(0.8);
        else if (event.key === "0") this.fit();
        else if (event.key.startsWith("Arrow")) {
            const [dx, dy] = STEPS[event.key] || [0, 0];
            if (event.shiftKey) this.pan(dx * STEP, dy * STEP);
            else if (shape) this.walk(shape, event.key);
            else if (this.scene && this.scene.shapes.length) this.reveal(idOf(this.scene.shapes[0]));
        } else return;
        event.preventDefault();
        event.stopPropagation();
    }

    /** The nearest shape in that direction. @param {Shape} from @param {string} key */
    walk(from, key) {
        if (!this.scene) return;
        const sideways = key === "ArrowLeft" || key === "ArrowRight",
            forth = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
        let best = null,
            least = Infinity;
        for (const shape of this.scene.shapes) {
            if (shape === from || shape.kind === "open") continue;
            const dx = shape.x + shape.w / 2 - from.x - from.w / 2,
                dy = shape.y + shape.h / 2 - from.y - from.h / 2;
            const ahead = (sideways ? dx : dy) * forth,
                aside = Math.abs(sideways ? dy : dx);
            if (ahead < 4 || (sideways && aside > 30)) continue;
            const cost = ahead + 2 * aside;
            if (cost < least) [best, least] = [shape, cost];
        }
        if (best) this.reveal(idOf(best));
    }

    /** The whole drawing as an SVG file. */
    svg() {
        const scene = /** @type {import("./scene.js").Scene} */ (this.scene);
        const root = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        root.setAttribute("xmlns", "http://www.w3.org/2000/svg");
        root.setAttribute("viewBox", `0 0 ${Math.ceil(scene.w)} ${Math.ceil(scene.h)}`);
        const pen = svgPen(root),
            all = {x0: -1e9, y0: -1e9, x1: 1e9, y1: 1e9};
        pen.rect(0, 0, scene.w, scene.h, 0, {fill: this.theme().paper});
        paint(pen, scene, this.look(1, all));
        return new Blob([new XMLSerializer().serializeToString(root)], {type: "image/svg+xml"});
    }

    /** @returns {Promise<Blob | null>} the whole drawing as a picture */
    png() {
        const scene = /** @type {import("./scene.js").Scene} */ (this.scene);
        const canvas = document.createElement("canvas"),
            most = 8000,
            k = Math.min(2, most / scene.w, most / scene.h);
        canvas.width = Math.ceil(scene.w * k);
        canvas.height = Math.ceil(scene.h * k);
        const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        c.scale(k, k);
        c.fillStyle = this.theme().paper;
        c.fillRect(0, 0, scene.w, scene.h);
        paint(canvasPen(c), scene, this.look(k, {x0: -1e9, y0: -1e9, x1: 1e9, y1: 1e9}));
        return new Promise((resolve) => canvas.toBlob(resolve));
    }
}

/** @param {Shape} shape */
export const idOf = (shape) =>
    shape.node ? `n ${shape.node.name}` : `s ${/** @type {any} */ (shape.scope).id}`;

/** What the worker needs of a box, without nodes. @param {any} box @returns {any} */
function plain(box) {
    const copy = (from) => ({
        key: from.key,
        head: from.head,
        pad: from.pad,
        minWidth: from.minWidth,
        items: from.items,
        edges: from.edges.map((e) => ({from: e.from, to: e.to, fromPort: e.fromPort, toPort: e.toPort}))
    });
    const top = copy(box),
        waiting = [top];
    while (waiting.length) {
        const at = /** @type {any} */ (waiting.pop());
        at.items = at.items.map((item) => {
            if (!item.box) return item;
            const made = {...item, box: copy(item.box)};
            waiting.push(made.box);
            return made;
        });
    }
    return top;
}
