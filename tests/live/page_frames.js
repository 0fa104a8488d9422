// SPDX-License-Identifier: Apache-2.0
// Run inside of the page by page.py: times between 40 frames while the drawing moves, sorted.
new Promise((resolve) => {
    const times = [];
    let last = performance.now(),
        n = 0;
    const step = () => {
        const now = performance.now();
        times.push(now - last);
        last = now;
        board.y += 40;
        board.paint();
        if (++n < 40) requestAnimationFrame(step);
        else resolve(times.sort((a, b) => a - b));
    };
    requestAnimationFrame(step);
});
