// SPDX-License-Identifier: Apache-2.0
// Run inside of the page by page.py: what must hold for layouts of random graphs. The value is a list of
// problems.
import("/web/layout.js").then(({layout}) => {
    let seed = 1;
    const random = (n) => {
        seed = (seed * 1103515245 + 12345) % 2147483648;
        return Math.floor(seed / 65536) % n;
    };
    const problems = [];
    for (let round = 0; round < 200; round++) {
        const n = 1 + random(40),
            items = [],
            edges = [];
        for (let i = 0; i < n; i++) items.push({w: 30 + random(120), h: 20 + random(40)});
        const parts = random(2) === 0; // some items are not joined to those before
        for (let i = 1; i < n; i++)
            for (let k = parts && random(4) === 0 ? -1 : random(3); k >= 0; k--)
                edges.push({from: random(i), to: i});
        const l = layout(items, edges),
            again = layout(items, edges);
        if (JSON.stringify(l) !== JSON.stringify(again))
            problems.push(`${round}: two layouts of one graph differ`);
        for (let i = 0; i < n; i++) {
            if (
                l.x[i] < -0.5 ||
                l.y[i] < -0.5 ||
                l.x[i] + items[i].w > l.w + 0.5 ||
                l.y[i] + items[i].h > l.h + 0.5
            )
                problems.push(`${round}: ${i} is outside`);
            for (let k = 0; k < i; k++)
                if (
                    l.x[i] < l.x[k] + items[k].w &&
                    l.x[k] < l.x[i] + items[i].w &&
                    l.y[i] < l.y[k] + items[k].h &&
                    l.y[k] < l.y[i] + items[i].h
                )
                    problems.push(`${round}: ${k} and ${i} overlap`);
        }
        edges.forEach((e, k) => {
            if (l.y[e.to] < l.y[e.from] + items[e.from].h)
                problems.push(`${round}: edge ${k} does not go down`);
            const p = l.paths[k];
            if (
                Math.abs(p[1] - l.y[e.from] - items[e.from].h) > 0.5 ||
                Math.abs(p[p.length - 1] - l.y[e.to]) > 0.5
            )
                problems.push(`${round}: edge ${k} ends in the air`);
        });
    }
    const tree = {items: [], edges: []};
    for (let i = 0; i < 31; i++) {
        tree.items.push({w: 50, h: 20});
        if (i) tree.edges.push({from: (i - 1) >> 1, to: i});
    }
    const t = layout(tree.items, tree.edges),
        rows = new Map();
    t.y.forEach((y, i) => rows.set(y, [...(rows.get(y) || []), i]));
    for (const row of rows.values()) {
        const parents = row.sort((a, b) => t.x[a] - t.x[b]).map((i) => t.x[(i - 1) >> 1]);
        if (parents.some((x, i) => i && x < parents[i - 1])) problems.push("edges of a tree cross");
    }
    const node = {w: 80, h: 40},
        pin = (where) => ({w: 8, h: 0, pin: where}),
        aside = layout(
            [pin("top"), node, node, node, pin("bottom")],
            [
                {from: 0, to: 1},
                {from: 1, to: 2},
                {from: 1, to: 3},
                {from: 3, to: 4}
            ]
        );
    if (Math.abs(aside.x[0] - aside.x[4]) > 0.5)
        problems.push("a result leaves its module beside the input: many in a row are a staircase");
    return problems.slice(0, 5);
});
