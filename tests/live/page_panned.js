// SPDX-License-Identifier: Apache-2.0
// Run inside of the page by page.py: the picture after it was moved against one that is drawn anew, at
// several scales. The value is a list of problems.
(async () => {
    const problems = [],
        pixels = () => {
            const {width, height} = board.canvas;
            return board.context.getImageData(0, 0, width, height).data;
        };
    for (const scale of [0.1, 0.3, 0.5, 1.13]) {
        board.scale = scale;
        board.x = board.scene.w / 2 - 200 / scale;
        board.y = board.scene.h / 2;
        board.painted = null;
        board.paint();
        for (const [dx, dy] of [[7, 40], [-33, 12], [0, -90], [21, 0], [-5, -61]]) {
            board.pan(dx, dy);
            board.paint();
        }
        const moved = pixels();
        board.painted = null;
        board.paint();
        const anew = pixels();
        let wrong = 0,
            some = 0;
        for (let i = 0; i < anew.length; i++) {
            wrong += Math.abs(anew[i] - moved[i]) > 2 ? 1 : 0;
            some += anew[i] !== anew[i % 4] ? 1 : 0;
        }
        if (wrong > 100) problems.push(`scale ${scale}: ${wrong} bytes of ${anew.length} differ`);
        if (some < 1000) problems.push(`scale ${scale}: the picture is empty`);
    }
    return problems;
})();
