// SPDX-License-Identifier: Apache-2.0
// Layered drawing of one open module, from top to bottom: cycles are turned, layers are assigned by
// the longest path, long edges get a bend in each layer, layers are ordered by barycentres, and
// places within a layer are the least squares of what neighbours wish for. No DOM, no state.

/**
 * @typedef {{w: number, h: number, pin?: "top" | "bottom"}} Item
 * @typedef {{from: number, to: number, fromX?: number, toX?: number}} Edge fromX, toX: where the
 *   edge touches, from the middle of the item
 * @typedef {{w: number, h: number, x: number[], y: number[], paths: number[][]}} Layout x, y: upper
 *   left corners; paths: x, y, x, y ... from the bottom of one item to the top of another
 */

const GAP_X = 26,
    GAP_Y = 40,
    GAP_BEND = 12,
    SWEEPS = 12,
    MAX_BENDS_PER_ITEM = 6,
    MIN_BENDS = 20000;

/** Layers by the longest path; items that nobody feeds move down to their first reader.
 * @param {Item[]} items @param {Edge[]} edges that only point forward in `order`
 * @param {number[]} order @returns {number[]} */
function layersOf(items, edges, order) {
    const n = items.length,
        layer = new Array(n).fill(0),
        out = lists(n),
        into = lists(n);
    edges.forEach((edge) => {
        out[edge.from].push(edge.to);
        into[edge.to].push(edge.from);
    });
    for (const i of order) for (const k of out[i]) layer[k] = Math.max(layer[k], layer[i] + 1);
    for (let at = n - 1; at >= 0; at--) {
        const i = order[at];
        if (out[i].length > into[i].length && items[i].pin !== "top")
            layer[i] = Math.max(layer[i], least(out[i].map((k) => layer[k])) - 1);
    }
    return pinned(items, layer);
}

/** @param {number[]} values */
function least(values) {
    return values.reduce((a, b) => Math.min(a, b), Infinity);
}

/** Inputs of the module stand alone in the first layer, its results in the last one.
 * @param {Item[]} items @param {number[]} layer */
function pinned(items, layer) {
    const inner = layer.filter((_, i) => !items[i].pin),
        shift = items.some((i) => i.pin === "top") ? 1 : 0;
    const low = least(inner.length ? inner : [0]),
        high = -least((inner.length ? inner : [0]).map((v) => -v));
    return layer.map((v, i) =>
        items[i].pin === "top" ? 0 : items[i].pin === "bottom" ? high - low + shift + 1 : v - low + shift
    );
}

/** @param {number} n @returns {number[][]} */
function lists(n) {
    return Array.from({length: n}, () => []);
}

/**
 * Edges against the order in which items run, which close a cycle, are turned. What comes from
 * outside stands in front, what goes outside at the end.
 * @param {Item[]} items
 * @param {Edge[]} edges
 * @returns {{order: number[], forward: Edge[], turned: boolean[]}}
 */
function acyclic(items, edges) {
    const all = items.map((_, i) => i),
        place = new Array(items.length);
    const order = [
        ...all.filter((i) => items[i].pin === "top"),
        ...all.filter((i) => !items[i].pin),
        ...all.filter((i) => items[i].pin === "bottom")
    ];
    order.forEach((i, at) => {
        place[i] = at;
    });
    const turned = edges.map((edge) => place[edge.from] > place[edge.to]);
    const forward = edges.map((edge, i) =>
        turned[i] ? {from: edge.to, to: edge.from, fromX: edge.toX, toX: edge.fromX} : edge
    );
    return {order, forward, turned};
}

/**
 * The layered graph with a bend in each layer that an edge passes.
 * @typedef {{layer: number[], width: number[], bend: boolean[], links: {a: number, b: number, ax:
 * number, bx: number}[], chains: number[][]}} Net
 * @param {Item[]} items
 * @param {Edge[]} edges
 * @param {number[]} layer
 * @returns {Net}
 */
function netOf(items, edges, layer) {
    const net = {
        layer: layer.slice(),
        width: items.map((item) => item.w),
        bend: items.map(() => false),
        links: [],
        chains: []
    };
    let room = Math.max(MIN_BENDS, items.length * MAX_BENDS_PER_ITEM);
    for (const edge of edges) {
        const chain = [edge.from],
            n = layer[edge.to] - layer[edge.from] - 1;
        for (let k = 1; k <= n && n <= room; k++) {
            chain.push(net.layer.length);
            net.layer.push(layer[edge.from] + k);
            net.width.push(0);
            net.bend.push(true);
        }
        room -= n <= room ? n : 0;
        chain.push(edge.to);
        for (let k = 0; k + 1 < chain.length; k++)
            net.links.push({
                a: chain[k],
                b: chain[k + 1],
                ax: k === 0 ? edge.fromX || 0 : 0,
                bx: k + 2 === chain.length ? edge.toX || 0 : 0
            });
        net.chains.push(chain);
    }
    return net;
}

/**
 * @param {Net} net
 * @param {number} n
 * @returns {{up: any[][], down: any[][]}} links of each place
 */
function neighbours(net, n) {
    const up = lists(n),
        down = lists(n);
    for (const link of net.links) {
        down[link.a].push(/** @type {any} */ ({k: link.b, shift: link.bx - link.ax}));
        up[link.b].push(/** @type {any} */ ({k: link.a, shift: link.ax - link.bx}));
    }
    return {up, down};
}

/** How many pairs of links cross between one layer and the next: inversions, by a Fenwick tree.
 * @param {number[][]} rows @param {number[]} place @param {any[][]} down */
export function crossings(rows, place, down) {
    let total = 0;
    for (let r = 0; r + 1 < rows.length; r++) {
        const size = rows[r + 1].length,
            tree = new Array(size + 1).fill(0);
        let seen = 0;
        for (const i of rows[r]) {
            const ends = down[i].map((l) => place[l.k]).sort((a, b) => a - b);
            for (const end of ends) {
                let before = 0;
                for (let t = end + 1; t > 0; t -= t & -t) before += tree[t];
                total += seen - before;
            }
            for (const end of ends) {
                for (let t = end + 1; t <= size; t += t & -t) tree[t]++;
                seen++;
            }
        }
    }
    return total;
}

/** @param {number[]} row @param {number[]} place @param {any[][]} links */
function byBarycentre(row, place, links) {
    const wish = new Map();
    row.forEach((i, at) => {
        const sum = links[i].reduce((s, l) => s + place[l.k] + l.shift * 1e-4, 0);
        wish.set(i, links[i].length ? sum / links[i].length : at);
    });
    row.sort((a, b) => wish.get(a) - wish.get(b) || place[a] - place[b]);
    row.forEach((i, at) => {
        place[i] = at;
    });
}

/** Rows of places, ordered for few crossings; the best of all sweeps counts.
 * @param {Net} net @param {any[][]} up @param {any[][]} down @returns {number[][]} */
function ordered(net, up, down) {
    const n = net.layer.length,
        rows = lists(1 + net.layer.reduce((a, b) => Math.max(a, b), 0)),
        place = new Array(n).fill(0);
    for (let i = 0; i < n; i++) rows[net.layer[i]].push(i);
    rows.forEach((row) =>
        row.forEach((i, at) => {
            place[i] = at;
        })
    );
    let best = rows.map((row) => row.slice()),
        count = crossings(rows, place, down);
    const sweeps = n > 4000 ? 2 : SWEEPS;
    for (let sweep = 0; sweep < sweeps && count > 0; sweep++) {
        if (sweep % 2 === 0) for (let r = 1; r < rows.length; r++) byBarycentre(rows[r], place, up);
        else for (let r = rows.length - 2; r >= 0; r--) byBarycentre(rows[r], place, down);
        const now = crossings(rows, place, down);
        if (now < count) {
            count = now;
            best = rows.map((row) => row.slice());
        }
    }
    return best;
}

/** The places nearest to `wish` (weighted squares) with at least `gap[i]` between i and i + 1:
 * neighbours that come too near are pooled.
 * @param {number[]} wish @param {number[]} weight @param {number[]} gap @returns {number[]} */
export function spaced(wish, weight, gap) {
    const offset = [0],
        pools = [];
    for (let i = 0; i + 1 < wish.length; i++) offset.push(offset[i] + gap[i]);
    for (let i = 0; i < wish.length; i++) {
        let pool = {sum: (wish[i] - offset[i]) * weight[i], weight: weight[i], n: 1};
        while (
            pools.length &&
            pools[pools.length - 1].sum / pools[pools.length - 1].weight >= pool.sum / pool.weight
        ) {
            const last = pools.pop();
            pool = {sum: last.sum + pool.sum, weight: last.weight + pool.weight, n: last.n + pool.n};
        }
        pools.push(pool);
    }
    const out = [];
    for (const pool of pools)
        for (let k = 0; k < pool.n; k++) out.push(pool.sum / pool.weight + offset[out.length]);
    return out;
}

/** What links wish for. Items count before bends: else edges that pass beside a column would pull
 * it along, a little with each.
 * @param {any[]} links @param {number[]} x @param {boolean[]} bend */
function median(links, x, bend) {
    const items = links.filter((l) => !bend[l.k]),
        wishes = (items.length ? items : links).map((l) => x[l.k] + l.shift).sort((a, b) => a - b),
        half = wishes.length >> 1;
    return wishes.length % 2 ? wishes[half] : (wishes[half - 1] + wishes[half]) / 2;
}

/** Middles of all places.
 * @param {Net} net @param {number[][]} rows @param {any[][]} up @param {any[][]} down */
function middles(net, rows, up, down) {
    const x = new Array(net.layer.length).fill(0);
    const gaps = rows.map((row) =>
        row
            .slice(1)
            .map(
                (i, at) =>
                    (net.width[i] + net.width[row[at]]) / 2 +
                    (net.bend[i] && net.bend[row[at]] ? GAP_BEND : GAP_X)
            )
    );
    rows.forEach((row, r) => {
        let at = 0;
        row.forEach((i, k) => {
            x[i] = at;
            at += gaps[r][k] || 0;
        });
    });
    const rounds = net.layer.length > 4000 ? 4 : 14;
    for (let round = 0; round < rounds; round++) {
        const last = round === rounds - 1;
        const rowsNow = round % 2 === 0 ? rows.map((_, r) => r) : rows.map((_, r) => rows.length - 1 - r);
        for (const r of rowsNow) place(rows[r], gaps[r], round % 2 === 0 ? up : down, last ? null : x);
    }
    return x;

    function place(row, gap, links, keep) {
        const other = links === up ? down : up;
        const wish = row.map((i) =>
            links[i].length
                ? median(links[i], x, net.bend)
                : other[i].length && round2(i)
                  ? median(other[i], x, net.bend)
                  : x[i]
        );
        row.forEach((i, at) => {
            if (up[i].length || down[i].length) return;
            wish[at] = at ? wish[at - 1] + gap[at - 1] : row.length > 1 ? wish[1] - gap[0] : 0;
        });
        const weight = row.map((i) =>
            net.bend[i]
                ? links[i].every((l) => net.bend[l.k])
                    ? 8
                    : 0.01
                : links[i].length
                  ? 1 + Math.min(3, links[i].length)
                  : keep
                    ? 0.1
                    : 0.5
        );
        spaced(wish, weight, gap).forEach((value, k) => {
            x[row[k]] = value;
        });
    }

    function round2(i) {
        return up[i].length === 0 || down[i].length === 0;
    }
}

/** Which part of the picture each place belongs to: parts have no links between them.
 * @param {Net} net @returns {number[]} */
function partsOf(net) {
    const part = net.layer.map((_, i) => i);
    const find = (i) => {
        while (part[i] !== i) i = part[i] = part[part[i]];
        return i;
    };
    for (const {a, b} of net.links) part[find(a)] = find(b);
    return part.map((_, i) => find(i));
}

/**
 * Of each part: its places, and the least distance, in all of its rows, to what stands on its left
 * and on its right.
 * @param {Net} net
 * @param {number[][]} rows
 * @param {number[]} x
 * @param {number[]} part
 */
function roomOf(net, rows, x, part) {
    const room = new Map(),
        free = (a, b) => x[b] - x[a] - (net.width[a] + net.width[b]) / 2 - GAP_X;
    for (const row of rows)
        row.forEach((i, at) => {
            const found = room.get(part[i]) || {left: Infinity, right: Infinity, places: []},
                [before, after] = [row[at - 1], row[at + 1]];
            found.places.push(i);
            if (before !== undefined && part[before] !== part[i])
                found.left = Math.min(found.left, free(before, i));
            if (after !== undefined && part[after] !== part[i])
                found.right = Math.min(found.right, free(i, after));
            room.set(part[i], found);
        });
    return [...room.values()];
}

/** Parts that stand beside the rest, where nothing holds them, move up to it: first those on the
 * left, then those on the right, so that no two move towards each other.
 * @param {Net} net @param {number[][]} rows @param {number[]} x */
function gathered(net, rows, x) {
    const part = partsOf(net);
    for (const toTheRight of [true, false])
        for (const {left, right, places} of roomOf(net, rows, x, part)) {
            const [free, beyond] = toTheRight ? [right, left] : [left, right];
            if (free === Infinity || beyond !== Infinity) continue;
            for (const i of places) x[i] += Math.max(0, free) * (toTheRight ? 1 : -1);
        }
}

/**
 * The first result leaves the module below the place where its first input enters, as far as the
 * module is wide there. Else each of many modules in a row would stand beside the one above it.
 * @param {Item[]} items
 * @param {number[]} x
 * @returns {number} how far results moved
 */
function alignPins(items, x) {
    const into = items.findIndex((item) => item.pin === "top"),
        results = items.map((_, i) => i).filter((i) => items[i].pin === "bottom");
    if (into < 0 || results.length === 0) return 0;
    const all = items.map((item, i) => ({low: x[i] - item.w / 2, high: x[i] + item.w / 2})),
        low = least(all.map((place) => place.low)) - least(results.map((i) => all[i].low)),
        high = least(results.map((i) => -all[i].high)) - least(all.map((place) => -place.high));
    const shift = Math.max(low, Math.min(high, x[into] - x[results[0]]));
    for (const i of results) x[i] += shift;
    return Math.abs(shift);
}

/** @param {Item[]} items @param {number[]} layer @param {boolean} bent edges to the last layer go aside */
function tops(items, layer, bent) {
    const height = [];
    items.forEach((item, i) => {
        height[layer[i]] = Math.max(height[layer[i]] || 0, item.h);
    });
    const top = [];
    let y = 0;
    for (let r = 0; r < height.length; r++) {
        top.push(y);
        const last = r + 2 === height.length,
            bare = (!height[r] || (r + 1 < height.length && !height[r + 1])) && !(bent && last);
        y += (height[r] || 0) + (r + 1 < height.length ? (bare ? GAP_Y / 2 : GAP_Y) : 0);
    }
    return {top, height, total: y};
}

/** Where items stand and which way edges go.
 * @param {Item[]} items in the order in which they run @param {Edge[]} edges @returns {Layout} */
export function layout(items, edges) {
    if (items.length === 0) return {w: 0, h: 0, x: [], y: [], paths: []};
    const {order, forward, turned} = acyclic(items, edges);
    const layer = layersOf(items, forward, order),
        net = netOf(items, forward, layer);
    const {up, down} = neighbours(net, net.layer.length);
    const rows = ordered(net, up, down),
        x = middles(net, rows, up, down);
    gathered(net, rows, x);
    const aside = alignPins(items, x),
        {top, height, total} = tops(items, layer, aside > GAP_X);
    let left = Infinity,
        right = -Infinity;
    x.forEach((value, i) => {
        left = Math.min(left, value - net.width[i] / 2);
        right = Math.max(right, value + net.width[i] / 2);
    });
    const y = items.map((item, i) => top[layer[i]] + (height[layer[i]] - item.h) / 2);
    const paths = net.chains.map((chain, e) => {
        const edge = forward[e],
            points = [];
        chain.forEach((i, k) => {
            const first = k === 0,
                end = k === chain.length - 1,
                r = net.layer[i];
            const px = x[i] - left + (first ? edge.fromX || 0 : end ? edge.toX || 0 : 0);
            if (first) points.push(px, y[i] + items[i].h);
            else if (end) points.push(px, y[i]);
            else points.push(px, top[r], px, top[r] + (height[r] || 0));
        });
        return turned[e] ? flipped(points) : points;
    });
    return {w: right - left, h: total, x: items.map((item, i) => x[i] - item.w / 2 - left), y, paths};
}

/** @param {number[]} points */
function flipped(points) {
    const out = [];
    for (let i = points.length - 2; i >= 0; i -= 2) out.push(points[i], points[i + 1]);
    return out;
}
