// SPDX-License-Identifier: Apache-2.0
// Run inside of the page by page_frames.py: frames while the drawing moves at a scale (0: all of it).
// Gives how many shapes are seen.
async (scale, frames) => {
    board.fit();
    if (scale) board.scale = scale;
    const {width, height} = board.host.getBoundingClientRect();
    board.x = board.scene.w / 2 - width / 2 / board.scale;
    board.y = board.scene.h / 2 - height / 2 / board.scale;
    board.draw();
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    performance.mark("pan begins");
    for (let i = 0; i < frames; i++) {
        board.pan(i % 20 < 10 ? 4 : -4, i % 40 < 20 ? 14 : -14);
        await new Promise(requestAnimationFrame);
    }
    performance.mark("pan ends");
    const {x, y} = board,
        [x1, y1] = [x + width / board.scale, y + height / board.scale];
    return board.scene.shapes.filter((s) => s.x < x1 && s.x + s.w > x && s.y < y1 && s.y + s.h > y).length;
};
