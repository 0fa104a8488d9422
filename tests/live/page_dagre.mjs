// SPDX-License-Identifier: Apache-2.0
// Layouts of the page against those of dagre, on 50 graphs: page_dagre.mjs PACKAGES, where PACKAGES
// has dagre in node_modules. Counted in the same way for both: crossings of edges drawn as straight
// pieces, and the area of the picture. The last line is `N passed, N failed`.
import {createRequire} from "node:module";
import {resolve} from "node:path";
import {layout} from "../../web/layout.js";

const MOST_CROSSINGS = 1.1,
    MOST_AREA = 1.2;
const dagre = createRequire(resolve(process.argv[2], "package.json"))("@dagrejs/dagre");

let state = 1;
function random(n) {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor(state / 65536) % n;
}

/** Items of the sizes that the page's nodes have. */
const items = (n) => Array.from({length: n}, () => ({w: 72 + random(110), h: 44}));

/** What graphs of models look like: each kind is drawn five times, in other sizes. */
const KINDS = {
    chain(n) {
        return Array.from({length: n - 1}, (_, i) => [i, i + 1]);
    },
    residual(n) {
        const edges = KINDS.chain(n);
        for (let i = 0; i + 4 < n; i += 4) edges.push([i, i + 4]);
        return edges;
    },
    dense(n) {
        const edges = KINDS.chain(n);
        for (let i = 0; i < n; i++) for (let k = i + 2; k < Math.min(n, i + 6); k++) edges.push([i, k]);
        return edges;
    },
    attention(n) {
        const edges = [];
        for (let i = 0; i + 7 < n; i += 7)
            edges.push(
                ...[[i, i + 1], [i, i + 2], [i, i + 3], [i + 1, i + 4], [i + 2, i + 4], [i + 4, i + 5]],
                ...[[i + 3, i + 5], [i + 5, i + 6], [i, i + 6], [i + 6, i + 7]]
            );
        return edges;
    },
    inception(n) {
        const edges = [];
        for (let i = 0; i + 8 < n; i += 8)
            edges.push(
                ...[[i, i + 1], [i, i + 2], [i + 2, i + 3], [i, i + 4], [i + 4, i + 5], [i + 5, i + 6]],
                ...[[i, i + 7], [i + 1, i + 8], [i + 3, i + 8], [i + 6, i + 8], [i + 7, i + 8]]
            );
        return edges;
    },
    unet(n) {
        const edges = KINDS.chain(n);
        for (let i = 0; 2 * i + 1 < n - 2; i += 2) edges.push([i, n - 1 - i]);
        return edges;
    },
    tree(n) {
        return Array.from({length: n - 1}, (_, i) => [i >> 1, i + 1]);
    },
    join(n) {
        return Array.from({length: n - 1}, (_, i) => [i, n - 1 - ((n - 2 - i) >> 1)]);
    },
    sparse(n) {
        return Array.from({length: n - 1}, (_, i) => [random(i + 1), i + 1]);
    },
    random(n) {
        const edges = [];
        for (let i = 1; i < n; i++) {
            const from = new Set([random(i), random(i)]);
            for (const k of from) edges.push([k, i]);
        }
        return edges;
    }
};

/** The pieces of all edges, as [x1, y1, x2, y2, edge]. */
function pieces(paths) {
    return paths.flatMap((p, e) => {
        const found = [];
        for (let i = 2; i < p.length; i += 2) found.push([p[i - 2], p[i - 1], p[i], p[i + 1], e]);
        return found;
    });
}

function side(ax, ay, bx, by, cx, cy) {
    return Math.sign(Math.round(((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) * 1e3));
}

/** Pairs of edges that cross, however often. */
function crossings(paths) {
    const all = pieces(paths),
        found = new Set();
    all.forEach(([ax, ay, bx, by, e], i) => {
        for (let k = i + 1; k < all.length; k++) {
            const [cx, cy, dx, dy, f] = all[k];
            if (e === f || Math.max(ay, by) <= Math.min(cy, dy) || Math.max(cy, dy) <= Math.min(ay, by)) continue;
            const turns =
                side(ax, ay, bx, by, cx, cy) * side(ax, ay, bx, by, dx, dy) < 0 &&
                side(cx, cy, dx, dy, ax, ay) * side(cx, cy, dx, dy, bx, by) < 0;
            if (turns) found.add(`${e} ${f}`);
        }
    });
    return found.size;
}

function ours(nodes, edges) {
    const found = layout(
        nodes,
        edges.map(([from, to]) => ({from, to}))
    );
    return {crossings: crossings(found.paths), area: found.w * found.h};
}

function theirs(nodes, edges) {
    const graph = new dagre.graphlib.Graph({multigraph: true});
    graph.setGraph({nodesep: 26, edgesep: 12, ranksep: 40, rankdir: "TB"});
    nodes.forEach((node, i) => graph.setNode(String(i), {width: node.w, height: node.h}));
    edges.forEach(([from, to], i) => graph.setEdge(String(from), String(to), {}, String(i)));
    dagre.layout(graph);
    const paths = edges.map(([from, to], i) =>
        graph.edge(String(from), String(to), String(i)).points.flatMap(({x, y}) => [x, y])
    );
    const {width, height} = graph.graph();
    return {crossings: crossings(paths), area: width * height};
}

const sum = {ours: 0, theirs: 0},
    areas = [];
for (const [kind, make] of Object.entries(KINDS)) {
    const line = {ours: 0, theirs: 0, area: []};
    for (const n of [9, 17, 25, 41, 65]) {
        const nodes = items(n),
            edges = make(n).filter(([a, b]) => a < b && b < n),
            a = ours(nodes, edges),
            b = theirs(nodes, edges);
        line.ours += a.crossings;
        line.theirs += b.crossings;
        line.area.push(a.area / b.area);
    }
    sum.ours += line.ours;
    sum.theirs += line.theirs;
    areas.push(...line.area);
    const mean = line.area.reduce((x, y) => x + y) / line.area.length;
    console.log(
        `${kind.padEnd(10)} crossings ${line.ours} (dagre ${line.theirs}), area ${mean.toFixed(2)} of dagre's`
    );
}
const ratio = sum.ours / Math.max(1, sum.theirs),
    area = Math.exp(areas.reduce((x, y) => x + Math.log(y), 0) / areas.length);
console.log(
    `${areas.length} graphs: crossings ${sum.ours} to ${sum.theirs} (${ratio.toFixed(2)}, at most ${MOST_CROSSINGS}), ` +
        `area ${area.toFixed(2)} (geometric mean, at most ${MOST_AREA})`
);
const failed = (ratio > MOST_CROSSINGS ? 1 : 0) + (area > MOST_AREA ? 1 : 0);
console.log(`${2 - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
