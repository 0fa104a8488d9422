// SPDX-License-Identifier: Apache-2.0
// Run inside of the page by page.py: 80 frames while the drawing moves at several scales. Of each scale
// the shapes that are seen, the times between frames and those in scripts, sorted.
(async () => {
    const rows = [];
    for (const scale of [0, 0.05, 0.12, 0.3, 0.6, 1]) {
        board.fit();
        if (scale) board.scale = scale;
        const {width, height} = board.host.getBoundingClientRect(),
            times = /** @type {number[]} */ ([]),
            scripts = /** @type {number[]} */ ([]);
        board.x = board.scene.w / 2 - width / 2 / board.scale;
        board.y = board.scene.h / 2 - height / 2 / board.scale;
        board.draw();
        await new Promise(requestAnimationFrame);
        await new Promise((resolve) => {
            let last = 0;
            const step = (now) => {
                if (last) times.push(now - last);
                last = now;
                const began = performance.now();
                board.pan(times.length % 20 < 10 ? 4 : -4, times.length % 40 < 20 ? 14 : -14);
                cancelAnimationFrame(board.frame);
                board.frame = 0;
                board.paint();
                scripts.push(performance.now() - began);
                if (times.length < 80) requestAnimationFrame(step);
                else resolve(0);
            };
            requestAnimationFrame(step);
        });
        const {x, y} = board,
            [x1, y1] = [x + width / board.scale, y + height / board.scale];
        const seen = board.scene.shapes.filter((s) => s.x < x1 && s.x + s.w > x && s.y < y1 && s.y + s.h > y);
        const sorted = (list) => list.sort((a, b) => a - b);
        rows.push({scale: board.scale, seen: seen.length, times: sorted(times), scripts: sorted(scripts)});
    }
    return rows;
})();
