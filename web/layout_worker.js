// SPDX-License-Identifier: Apache-2.0
// Lays out a tree of open modules, innermost first. What did not change since the last time is
// taken from memory.
import {layout} from "./layout.js";

/**
 * @typedef {{key: string, items: {w: number, h: number, pin?: "top" | "bottom", box?: Box}[],
 * edges: {from: number, to: number, fromPort?: number, toPort?: number}[], head: number, pad:
 * number}} Box An item with `box` is an open module, whose size is found here. Ports are indices
 * of the items of that box: where an edge enters or leaves it.
 * @typedef {{w: number, h: number, x: number[], y: number[], paths: number[][], inner:
 * (Placed|null)[], ports: number[]}} Placed ports: middles of all items
 */

/** @type {Map<string, Placed>} */
let remembered = new Map();

/** @param {Box} box @param {Map<string, Placed>} kept @returns {Placed} */
export function place(box, kept) {
    const known = remembered.get(box.key);
    if (known) {
        keep(known, box, kept);
        return known;
    }
    const inner = box.items.map((item) => (item.box ? place(item.box, kept) : null));
    const items = box.items.map((item, i) => {
        const placed = inner[i];
        return placed ? {w: placed.w, h: placed.h} : item;
    });
    const edges = box.edges.map((edge) => ({
        from: edge.from,
        to: edge.to,
        fromX: portOf(inner[edge.from], edge.fromPort),
        toX: portOf(inner[edge.to], edge.toPort)
    }));
    const found = layout(items, edges),
        pad = box.pad,
        width = Math.max(found.w, box.items.length ? 0 : 40);
    const least = Math.max(width, box.head ? /** @type {any} */ (box).minWidth || 0 : 0),
        shift = pad + (least - found.w) / 2;
    const placed = {
        w: least + 2 * pad,
        h: found.h + box.head + 2 * pad,
        inner,
        x: found.x.map((x) => x + shift),
        y: found.y.map((y) => y + box.head + pad),
        paths: found.paths.map((path) => path.map((v, i) => v + (i % 2 ? box.head + pad : shift))),
        ports: found.x.map((x, i) => x + shift + items[i].w / 2)
    };
    kept.set(box.key, placed);
    return placed;
}

/** @param {Placed} placed @param {Box} box @param {Map<string, Placed>} kept */
function keep(placed, box, kept) {
    kept.set(box.key, placed);
    box.items.forEach((item, i) => {
        if (item.box && placed.inner[i]) keep(placed.inner[i], item.box, kept);
    });
}

/** @param {Placed | null} placed @param {number} [port] */
function portOf(placed, port) {
    return placed && port !== undefined && port >= 0 ? placed.ports[port] - placed.w / 2 : 0;
}

if ("WorkerGlobalScope" in globalThis)
    self.onmessage = (event) => {
        const kept = new Map(),
            started = performance.now();
        const placed = place(event.data.box, kept);
        remembered = kept;
        self.postMessage({id: event.data.id, placed, ms: performance.now() - started});
    };
