// SPDX-License-Identifier: Apache-2.0
// What is drawn: which nodes and modules can be seen when some modules are open, the tree of boxes
// for the layout, and afterwards a flat list of shapes with places.
import {common} from "./graph.js";
import {caption, describe, familyOf, last, leaf} from "./words.js";

/**
 * @typedef {import("./graph.js").Node} Node
 * @typedef {import("./graph.js").Scope} Scope
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {{kind: "node" | "module" | "open", x: number, y: number, w: number, h: number, title:
 * string, sub: string, family: string, node: Node | null, scope: Scope | null, depth: number,
 * shape: string}} Shape
 * @typedef {{points: number[], from: Node, label: string, x0: number, y0: number, x1: number, y1:
 * number, to: Node | null, end: Node | Scope | null}} Wire to: null when a module or its edge is
 * where it ends; end: null at the edge of an open module
 * @typedef {{shapes: Shape[], wires: Wire[], w: number, h: number, byId: Map<string, Shape>}}
 * Scene
 * @typedef {{items: any[], index: Map<any, number>, edges: any[], keys: Map<string, number>,
 * scope: Scope, things: any[], box: any}} Draft what is collected for one open module
 */

const HEAD = 30,
    PAD = 16,
    NODE_H = 44,
    SMALL_H = 30,
    MODULE_H = 54;

/** @param {string} text @param {string} font @returns {number} */
const widthOf = (() => {
    const context =
        typeof document === "undefined" ? null : document.createElement("canvas").getContext("2d");
    const known = new Map();
    return (text, font) => {
        const key = font + text;
        if (!known.has(key)) {
            if (known.size > 50000) known.clear();
            if (context) context.font = font;
            known.set(key, context ? context.measureText(text).width : text.length * 7);
        }
        return known.get(key);
    };
})();
export const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
export const TITLE = `600 13px ${FONT}`,
    SUB = `11px ${FONT}`,
    HEADING = `600 12px ${FONT}`;

/** @param {string} text @param {number} most */
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @param {Node} node @returns {Shape} */
function nodeShape(node) {
    const title = cut(describe(node), 40),
        sub = cut(caption(node), 40);
    const w = Math.max(widthOf(title, TITLE), widthOf(sub, SUB) + (node.kind === "call" ? 46 : 0)) + 30;
    return {
        kind: "node",
        x: 0,
        y: 0,
        w: Math.ceil(Math.max(72, w)),
        h: node.kind === "call" ? NODE_H : sub ? NODE_H - 4 : SMALL_H,
        title,
        sub,
        family: familyOf(node),
        node,
        scope: null,
        depth: 0,
        shape: ""
    };
}

/** @param {Scope} scope @param {boolean} open @returns {Shape} */
function moduleShape(scope, open) {
    const title = cut(last(scope.path) || leaf(scope.type) || "graph", 40),
        type = cut(leaf(scope.type), 32);
    const sub = open ? type : `${type ? `${type} · ` : ""}${scope.size} node${scope.size === 1 ? "" : "s"}`;
    const w = Math.max(widthOf(title, TITLE) + 26, widthOf(sub, SUB) + 50) + 26;
    return {
        kind: open ? "open" : "module",
        x: 0,
        y: 0,
        w: Math.ceil(Math.max(110, w)),
        h: MODULE_H,
        title,
        sub,
        family: "module",
        node: null,
        scope,
        depth: scope.depth,
        shape: ""
    };
}

/**
 * @param {Graph} graph
 * @param {Set<string>} open ids of scopes
 * @param {boolean} parameters whether they are drawn
 */
export function plan(graph, open, parameters) {
    /** @type {Map<Scope, Draft>} */
    const drafts = new Map();
    const seen = (node) => node.kind !== "parameter" || parameters;
    draft(graph.root, drafts, open, seen);
    for (const node of graph.nodes) {
        if (!seen(node)) continue;
        for (const from of node.inputs) if (seen(from)) connect(from, node, drafts);
    }
    for (const each of drafts.values()) each.box.edges = each.edges;
    return drafts;
}

/**
 * Opens boxes from the outside in; no recursion, since modules of a stranger may be deep.
 * @param {Scope} root
 * @param {Map<Scope, Draft>} drafts
 * @param {Set<string>} open
 * @param {(node: Node) => boolean} seen
 */
function draft(root, drafts, open, seen) {
    const waiting = [{scope: root, holder: null}];
    while (waiting.length) {
        const {scope, holder} = /** @type {any} */ (waiting.pop()),
            shape = moduleShape(scope, true),
            isRoot = scope === root;
        const box = {
            key: scope.id,
            items: [],
            edges: [],
            head: isRoot ? 0 : HEAD,
            pad: isRoot ? 24 : PAD,
            minWidth: isRoot ? 0 : shape.w
        };
        /** @type {Draft} */
        const made = {
            items: box.items,
            index: new Map(),
            edges: [],
            keys: new Map(),
            scope,
            things: [],
            box
        };
        drafts.set(scope, made);
        if (holder) holder.box = box;
        const things = [...scope.nodes.filter(seen), ...scope.scopes].sort((a, b) => first(a) - first(b));
        for (const thing of things) {
            const isScope = "scopes" in thing,
                opened = isScope && open.has(thing.id);
            const drawn = isScope ? moduleShape(thing, opened) : nodeShape(thing);
            /** @type {any} */
            const item = {w: drawn.w, h: drawn.h};
            add(made, thing, item, drawn);
            if (opened) waiting.push({scope: thing, holder: item});
        }
    }
}

/** @param {any} thing */
const first = (thing) => ("scopes" in thing ? thing.first : thing.index);

/** @param {Draft} made @param {any} key @param {any} item @param {any} thing */
function add(made, key, item, thing) {
    made.index.set(key, made.items.length);
    made.items.push(item);
    made.things.push(thing);
    return made.items.length - 1;
}

/** What stands for a node inside of an open module: itself, or the module there that holds it.
 * @param {Node} node @param {Scope} inside */
function standIn(node, inside) {
    let scope = node.scope;
    if (scope === inside) return node;
    while (scope.parent !== inside) scope = /** @type {Scope} */ (scope.parent);
    return scope;
}

/** The innermost open module around a node. @param {Node} node @param {Map<Scope, Draft>} drafts */
function openScope(node, drafts) {
    let scope = node.scope;
    for (let at = /** @type {Scope | null} */ (node.scope); at; at = at.parent)
        if (!drafts.has(at)) scope = /** @type {Scope} */ (at.parent);
    return scope;
}

/** A port of an open module: where the value of `from` comes in, or goes out.
 * @param {Draft} made @param {Node} from @param {"top" | "bottom"} pin */
function port(made, from, pin) {
    const key = `${pin} ${from.index}`;
    const known = made.keys.get(key);
    if (known !== undefined) return known;
    const at = add(made, key, {w: 8, h: 0, pin}, {port: true, from});
    made.keys.set(key, at);
    return at;
}

/** @param {Draft} made @param {any} edge @param {Node} from @param {Node} to */
function edge(made, edge, from, to) {
    const key = `${edge.from}.${edge.fromPort ?? ""}>${edge.to}.${edge.toPort ?? ""}`;
    if (edge.from === edge.to || made.keys.has(key)) return;
    made.keys.set(key, made.edges.length);
    made.edges.push({...edge, node: from, reader: to});
}

/** @param {Node} from @param {Node} to @param {Map<Scope, Draft>} drafts */
function connect(from, to, drafts) {
    const a = openScope(from, drafts),
        b = openScope(to, drafts),
        meet = common(a, b);
    let outOf,
        into,
        start = standIn(from, a),
        end = standIn(to, b);
    for (let scope = a; scope !== meet; scope = /** @type {Scope} */ (scope.parent)) {
        const made = /** @type {Draft} */ (drafts.get(scope)),
            at = port(made, from, "bottom");
        edge(made, {from: made.index.get(start), to: at, fromPort: outOf}, from, to);
        outOf = at;
        start = scope;
    }
    for (let scope = b; scope !== meet; scope = /** @type {Scope} */ (scope.parent)) {
        const made = /** @type {Draft} */ (drafts.get(scope)),
            at = port(made, from, "top");
        edge(made, {from: at, to: made.index.get(end), toPort: into}, from, to);
        into = at;
        end = scope;
    }
    const made = /** @type {Draft} */ (drafts.get(meet));
    edge(
        made,
        {from: made.index.get(start), to: made.index.get(end), fromPort: outOf, toPort: into},
        from,
        to
    );
}

/** Keys of boxes name all that their layout depends on.
 * @param {Map<Scope, Draft>} drafts @param {boolean} parameters */
export function keyed(drafts, parameters) {
    for (const made of [...drafts.values()].reverse()) {
        const inner = made.items
            .map((item, i) => (item.box ? `${i}:${item.box.key}` : ""))
            .filter(Boolean)
            .join(";");
        const ports = made.things.filter((thing) => thing.port).length;
        made.box.key = `${made.scope.id}{${inner}}${ports}${parameters ? "+" : ""}`;
    }
    return [...drafts.values()][0].box;
}

/**
 * Shapes with their places in the picture.
 * @param {Graph} graph
 * @param {Map<Scope, Draft>} drafts
 * @param {any} placed the layout of the root
 * @returns {Scene}
 */
export function sceneOf(graph, drafts, placed) {
    /** @type {Scene} */
    const scene = {shapes: [], wires: [], w: placed.w, h: placed.h, byId: new Map()};
    const waiting = [{scope: graph.root, placed, x: 0, y: 0}];
    while (waiting.length) {
        const at = /** @type {any} */ (waiting.pop()),
            made = /** @type {Draft} */ (drafts.get(at.scope));
        made.things.forEach((thing, i) => {
            if (thing.port) return;
            const inner = at.placed.inner[i],
                x = at.x + at.placed.x[i],
                y = at.y + at.placed.y[i];
            const shape = {...thing, x, y, w: inner ? inner.w : thing.w, h: inner ? inner.h : thing.h};
            scene.shapes.push(shape);
            scene.byId.set(thing.node ? `n ${thing.node.name}` : `s ${thing.scope.id}`, shape);
            if (inner) waiting.push({scope: thing.scope, placed: inner, x, y});
        });
        addWires(scene, made, at);
    }
    spreadEnds(scene);
    return scene;
}

/** @param {Scene} scene @param {Draft} made @param {{placed: any, x: number, y: number}} at */
function addWires(scene, made, at) {
    made.edges.forEach((edge, e) => {
        const points = at.placed.paths[e].map((v, k) => v + (k % 2 ? at.y : at.x));
        const start = made.things[edge.from],
            end = made.things[edge.to];
        if (start.port) points[1] = at.y;
        if (end.port) points[points.length - 1] = at.y + at.placed.h;
        const labelled = !start.port && !(start.kind === "open");
        scene.wires.push({
            points,
            from: edge.node,
            to: end.node || null,
            end: end.node || (end.kind === "module" ? end.scope : null),
            x0: 0,
            y0: 0,
            x1: 0,
            y1: 0,
            label: labelled && edge.node.shape ? edge.node.shape.join("×") : ""
        });
    });
}

/** Wires into one item end side by side, and only the first wire of a value is labelled.
 * @param {Scene} scene */
function spreadEnds(scene) {
    const ends = new Map(),
        labelled = new Set();
    for (const wire of scene.wires) {
        const end = wire.end;
        if (end) ends.set(end, [...(ends.get(end) || []), wire]);
        if (labelled.has(wire.from)) wire.label = "";
        else if (wire.label) labelled.add(wire.from);
    }
    for (const [end, wires] of ends) {
        const shape = scene.byId.get("scopes" in end ? `s ${end.id}` : `n ${end.name}`);
        if (!shape || wires.length < 2) continue;
        wires.sort((a, b) => a.points[a.points.length - 4] - b.points[b.points.length - 4]);
        const step = Math.min(22, (shape.w - 20) / wires.length);
        wires.forEach((wire, i) => {
            wire.points[wire.points.length - 2] += (i - (wires.length - 1) / 2) * step;
        });
    }
    for (const wire of scene.wires) bound(wire);
}

/** @param {Wire} wire */
function bound(wire) {
    wire.x0 = wire.y0 = Infinity;
    wire.x1 = wire.y1 = -Infinity;
    for (let i = 0; i < wire.points.length; i += 2) {
        wire.x0 = Math.min(wire.x0, wire.points[i]);
        wire.x1 = Math.max(wire.x1, wire.points[i]);
        wire.y0 = Math.min(wire.y0, wire.points[i + 1]);
        wire.y1 = Math.max(wire.y1, wire.points[i + 1]);
    }
}

/** Which modules are open at first: from the outside in, all of one parent or none, while the
 * picture stays small.
 * @param {Graph} graph @param {number} most items */
export function firstOpen(graph, most) {
    const open = new Set([""]),
        waiting = [graph.root.scopes];
    let items =
        graph.root.scopes.length + graph.root.nodes.filter((node) => node.kind !== "parameter").length;
    while (waiting.length) {
        const group = /** @type {Scope[]} */ (waiting.shift());
        const more = group.reduce((sum, scope) => sum + scope.scopes.length + scope.nodes.length - 1, 0);
        if (items + more > most) continue;
        items += more;
        for (const scope of group) {
            open.add(scope.id);
            waiting.push(scope.scopes);
        }
    }
    return open;
}
