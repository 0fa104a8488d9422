// SPDX-License-Identifier: Apache-2.0
// A graph as the page knows it: nodes with their readers, and the tree of module calls that they
// were made in. From FX JSON (GET .../text?form=json, or a dropped file). Texts come from
// strangers and may be anything; nothing here recurses into them.

/**
 * @typedef {"input" | "parameter" | "call" | "output"} Kind
 * @typedef {{name: string, op: string, target: string, kind: Kind, args: any[], kwargs:
 * Record<string, any>, index: number, shape: (number | string)[] | null, dtype: string | null,
 * stack: string, state: string, moduleType: string, inputs: Node[], users: Node[], scope: Scope,
 * owner: Scope | null}} Node state: the path of a parameter; owner: the module of which this node
 * is all that there is
 * @typedef {{id: string, path: string, type: string, parent: Scope | null, scopes: Scope[],
 * nodes: Node[], depth: number, first: number, size: number}} Scope one call of a module; size:
 * nodes in it, at any depth
 * @typedef {{nodes: Node[], byName: Map<string, Node>, root: Scope, scopes: Map<string, Scope>,
 * signature: any, state: Record<string, any>}} Graph
 */

const MAX_DEPTH = 64,
    MAX_THINGS = 500; // nodes and modules of one module; more are divided into parts

/** Names of nodes that an argument refers to, in order, each once.
 * @param {any} value @returns {string[]} */
export function references(value) {
    const found = /** @type {string[]} */ ([]),
        waiting = [value];
    while (waiting.length) {
        const at = waiting.pop();
        if (typeof at === "string") {
            if (at[0] === "%" && at[1] !== "%") found.push(at.slice(1));
        } else if (at && typeof at === "object") {
            const parts = Array.isArray(at) ? at : Object.values(at);
            for (let i = parts.length - 1; i >= 0; i--) waiting.push(parts[i]);
        }
    }
    return found.length > 1 ? [...new Set(found)] : found;
}

/**
 * @param {string} id
 * @param {string} path
 * @param {string} type
 * @param {Scope | null} parent
 * @returns {Scope}
 */
function newScope(id, path, type, parent) {
    const scope = {
        id,
        path,
        type,
        parent,
        scopes: [],
        nodes: [],
        depth: parent ? parent.depth + 1 : 0,
        first: Infinity,
        size: 0
    };
    if (parent) parent.scopes.push(scope);
    return scope;
}

/** @param {any} value */
const text = (value) =>
    typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);

/** @param {any} raw @param {number} index @param {Scope} root @returns {Node} */
function readNode(raw, index, root) {
    const meta = raw.meta && typeof raw.meta === "object" ? raw.meta : {},
        op = text(raw.op);
    const kind =
        op === "placeholder"
            ? "input"
            : op === "get_attr"
              ? "parameter"
              : op === "output"
                ? "output"
                : "call";
    return {
        name: text(raw.name) || `node_${index}`,
        op,
        target: text(raw.target),
        kind,
        index,
        args: Array.isArray(raw.args) ? raw.args : [],
        kwargs: raw.kwargs && typeof raw.kwargs === "object" ? raw.kwargs : {},
        shape: Array.isArray(meta.shape) ? meta.shape : null,
        dtype: meta.dtype ? text(meta.dtype) : null,
        stack: text(meta.stack_trace),
        state: op === "get_attr" ? text(raw.target) : "",
        moduleType: "",
        inputs: [],
        users: [],
        scope: root,
        owner: null
    };
}

/**
 * @param {Graph} graph
 * @param {any} raw
 * @returns {Scope | null} where its stack of modules says; null: unknown
 */
function scopeByStack(graph, raw) {
    const stack = raw.meta && raw.meta.nn_module_stack;
    if (!stack || typeof stack !== "object") return null;
    let scope = graph.root;
    for (const [key, entry] of Object.entries(stack).slice(0, MAX_DEPTH)) {
        const path = text(Array.isArray(entry) ? entry[0] : entry),
            type = text(Array.isArray(entry) ? entry[1] : "");
        if (path === "") {
            graph.root.type = type;
            continue;
        }
        scope = enter(graph, scope, key, path, type);
    }
    return scope;
}

/**
 * @param {Graph} graph
 * @param {Scope} scope
 * @param {string} key
 * @param {string} path
 * @param {string} type
 */
function enter(graph, scope, key, path, type) {
    const id = `${scope.id}/${key}`;
    let found = graph.scopes.get(id);
    if (!found) {
        found = newScope(id, path, type, scope);
        graph.scopes.set(id, found);
    }
    return found;
}

/** A module's path names the modules around it.
 * @param {Graph} graph @param {Node} node @returns {Scope | null} */
function scopeByPath(graph, node) {
    if (node.op !== "call_module") return null;
    const parts = node.target.split(".").slice(0, -1).slice(0, MAX_DEPTH);
    let scope = graph.root;
    parts.forEach((part, i) => {
        scope = enter(graph, scope, part, parts.slice(0, i + 1).join("."), "");
    });
    return scope;
}

/** What both are in. @param {Scope} a @param {Scope} b @returns {Scope} */
export function common(a, b) {
    while (a !== b) {
        if (a.depth < b.depth) [a, b] = [b, a];
        a = /** @type {Scope} */ (a.parent);
    }
    return a;
}

/** Calls without a known module stand where the calls before and behind them do.
 * @param {Node[]} nodes @param {(Scope | null)[]} known @param {Scope} root */
function fillScopes(nodes, known, root) {
    const calls = nodes.filter((node) => node.kind === "call");
    let last = root;
    const before = calls.map((node) => {
        last = known[node.index] || last;
        return last;
    });
    last = root;
    for (let i = calls.length - 1; i >= 0; i--) {
        const node = calls[i];
        last = known[node.index] || last;
        node.scope = known[node.index] || common(before[i], last);
    }
}

/** @param {Graph} graph */
function fillTree(graph) {
    for (const node of graph.nodes) {
        node.scope.nodes.push(node);
        for (let scope = /** @type {Scope | null} */ (node.scope); scope; scope = scope.parent) {
            scope.first = Math.min(scope.first, node.index);
            scope.size += node.kind === "call" ? 1 : 0;
        }
    }
    for (const scope of [...graph.scopes.values()].reverse()) {
        if (!scope.parent || scope.scopes.length > 0 || scope.nodes.length !== 1) continue;
        const node = scope.nodes[0];
        if (node.owner) continue;
        node.owner = scope;
        node.moduleType = scope.type;
        node.scope = scope.parent;
        scope.parent.nodes.push(node);
        scope.parent.scopes.splice(scope.parent.scopes.indexOf(scope), 1);
        graph.scopes.delete(scope.id);
    }
}

/** Calls of a module with very many of them stand in parts, in the order in which they run: else a
 * graph without modules could only be drawn as a whole. @param {Graph} graph */
function divide(graph) {
    const before = [...graph.scopes.values()];
    for (const scope of before) {
        const calls = scope.nodes.filter((node) => node.kind === "call"),
            things = [...calls, ...scope.scopes];
        if (things.length <= MAX_THINGS) continue;
        const start = (thing) => ("scopes" in thing ? thing.first : thing.index);
        things.sort((a, b) => start(a) - start(b));
        scope.nodes = scope.nodes.filter((node) => node.kind !== "call");
        scope.scopes = [];
        const most = Math.ceil(Math.sqrt(things.length));
        for (let at = 0; at < things.length; at += most) fillPart(scope, things.slice(at, at + most), at);
    }
    graph.scopes = new Map();
    const waiting = [graph.root];
    while (waiting.length) {
        const scope = /** @type {Scope} */ (waiting.pop());
        scope.depth = scope.parent ? scope.parent.depth + 1 : 0;
        graph.scopes.set(scope.id, scope);
        waiting.push(...scope.scopes.slice().reverse());
    }
}

/** @param {Scope} scope @param {(Node | Scope)[]} things @param {number} at number of the first one */
function fillPart(scope, things, at) {
    const words = `part ${at + 1}–${at + things.length}`,
        part = newScope(`${scope.id}/${words}`, scope.path ? `${scope.path}.${words}` : words, "", scope);
    for (const thing of things)
        if ("scopes" in thing) {
            thing.parent = part;
            part.scopes.push(thing);
            part.first = Math.min(part.first, thing.first);
            part.size += thing.size;
        } else {
            thing.scope = part;
            part.nodes.push(thing);
            part.first = Math.min(part.first, thing.index);
            part.size++;
        }
}

/** @param {Graph} graph @param {any} json */
function markState(graph, json) {
    const inputs = json.signature && Array.isArray(json.signature.inputs) ? json.signature.inputs : [];
    const places = graph.nodes.filter((node) => node.op === "placeholder");
    places.forEach((node, i) => {
        const entry = inputs[i];
        if (!entry || entry.kind !== "state") return;
        node.kind = "parameter";
        node.state = text(entry.target);
    });
}

/** @param {any} json FX JSON @returns {Graph} */
export function readGraph(json) {
    const root = newScope("", "", text(json.class_name), null);
    /** @type {Graph} */
    const graph = {
        nodes: [],
        byName: new Map(),
        root,
        scopes: new Map([["", root]]),
        signature: json.signature || {},
        state: json.state && typeof json.state === "object" ? json.state : {}
    };
    const raws = (Array.isArray(json.nodes) ? json.nodes : []).filter(
        (raw) => raw && typeof raw === "object"
    );
    graph.nodes = raws.map((raw, i) => readNode(raw, i, root));
    for (const node of graph.nodes) graph.byName.set(node.name, node);
    const stacks = raws.map((raw) => scopeByStack(graph, raw)),
        any = stacks.some((scope) => scope !== null);
    fillScopes(graph.nodes, any ? stacks : graph.nodes.map((node) => scopeByPath(graph, node)), root);
    for (const node of graph.nodes) {
        for (const name of references([node.args, node.kwargs])) {
            const from = graph.byName.get(name);
            if (!from || from.index >= node.index) continue;
            node.inputs.push(from);
            from.users.push(node);
        }
    }
    markState(graph, json);
    fillTree(graph);
    divide(graph);
    return graph;
}

/** The argument as Python would print it.
 * @param {any} value @returns {string} */
export function printed(value) {
    if (typeof value === "string")
        return value.startsWith("%%")
            ? JSON.stringify(value.slice(1))
            : value.startsWith("%")
              ? value.slice(1)
              : JSON.stringify(value);
    if (value === null || value === undefined) return "None";
    if (value === true) return "True";
    if (value === false) return "False";
    const json = JSON.stringify(value);
    return json
        .replace(/"%(\w+)"/g, "$1")
        .replace(/,/g, ", ")
        .slice(0, 400);
}

/** One line of code. @param {Node} node */
export function codeOf(node) {
    const args = [
        ...node.args.map(printed),
        ...Object.entries(node.kwargs).map(([key, value]) => `${key}=${printed(value)}`)
    ];
    if (node.op === "output") return `return ${node.args.map(printed).join(", ")}`;
    if (node.op === "placeholder")
        return `${node.name}  # ${node.kind === "parameter" ? node.state : "input"}`;
    if (node.op === "get_attr") return `${node.name} = self.${node.target}`;
    if (node.op === "call_method")
        return `${node.name} = ${args[0] || "?"}.${node.target}(${args.slice(1).join(", ")})`;
    return `${node.name} = ${node.op === "call_module" ? "self." : ""}${node.target}(${args.join(", ")})`;
}
