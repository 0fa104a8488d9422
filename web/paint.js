// SPDX-License-Identifier: Apache-2.0
// Draws a scene with a pen: onto a canvas, or as SVG for export. Both know the same few strokes.
import {HEADING, SUB, TITLE} from "./scene.js";
import {heatColor} from "./theme.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./scene.js").Shape} Shape
 * @typedef {import("./scene.js").Wire} Wire
 * @typedef {{fill?: string | null, stroke?: string | null, width?: number, dash?: number[]}}
 * Style
 * @typedef {{rect: (x: number, y: number, w: number, h: number, r: number, style: Style) => void,
 * rects: (shapes: {x: number, y: number, w: number, h: number}[], style: Style) => void,
 * curve: (points: number[], style: Style) => void, lines: (lines: number[][], style: Style) =>
 * void, text: (text: string, x: number, y: number,
 * font: string, color: string, align?: "left" | "center" | "right") => void}} Pen
 * @typedef {import("./theme.js").Theme} Theme
 * @typedef {{theme: Theme, warmth: (shape: Shape) => import("./heat.js").Warmth | null, selected:
 * Shape | null, hover: Shape | null, marks: Map<string, string>, fused: Map<string, number>,
 * missing: Set<string>, heat: boolean, scale: number, view: {x0: number, y0: number, x1: number,
 * y1: number}}} Look
 */

/**
 * Smooth from top to bottom through all bends.
 * @param {number[]} p
 * @returns {number[][]} moves of [x1,y1,x2,y2,x,y]
 */
export function beziers(p) {
    const out = [];
    for (let i = 2; i < p.length; i += 2) {
        const x0 = p[i - 2],
            y0 = p[i - 1],
            x = p[i],
            y = p[i + 1],
            half = Math.abs(y - y0) / 2 || 8;
        const down = y >= y0 ? half : -half;
        out.push([x0, y0 + (y >= y0 ? down : 14), x, y - (y >= y0 ? down : 14), x, y]);
    }
    return out;
}

/** @param {CanvasRenderingContext2D} c @returns {Pen} */
export function canvasPen(c) {
    /** @param {Style} style */
    const stroke = ({fill, stroke: color, width = 1, dash}) => {
        if (fill) {
            c.fillStyle = fill;
            c.fill();
        }
        if (!color) return;
        c.strokeStyle = color;
        c.lineWidth = width;
        c.setLineDash(dash || []);
        c.stroke();
    };
    return {
        rect: (x, y, w, h, r, style) => {
            c.beginPath();
            if (r) c.roundRect(x, y, w, h, r);
            else c.rect(x, y, w, h);
            stroke(style);
        },
        rects: (shapes, style) => {
            if (style.fill && !style.stroke) {
                c.fillStyle = style.fill;
                for (const {x, y, w, h} of shapes) c.fillRect(x, y, w, h);
                return;
            }
            c.beginPath();
            for (const {x, y, w, h} of shapes) c.rect(x, y, w, h);
            stroke(style);
        },
        lines: (lines, style) => {
            c.beginPath();
            for (const p of lines) {
                c.moveTo(p[0], p[1]);
                for (let i = 2; i < p.length; i += 2) c.lineTo(p[i], p[i + 1]);
            }
            stroke(style);
        },
        curve: (points, style) => {
            c.beginPath();
            c.moveTo(points[0], points[1]);
            for (const b of beziers(points)) c.bezierCurveTo(b[0], b[1], b[2], b[3], b[4], b[5]);
            stroke(style);
        },
        text: (text, x, y, font, color, align = "left") => {
            c.font = font;
            c.fillStyle = color;
            c.textAlign = align;
            c.fillText(text, x, y);
        }
    };
}

const SVG = "http://www.w3.org/2000/svg";

/** @param {SVGElement} root @returns {Pen} */
export function svgPen(root) {
    const make = (tag, attributes, style) => {
        const element = document.createElementNS(SVG, tag);
        const all = {
            ...attributes,
            ...(style && {
                fill: style.fill || "none",
                stroke: style.stroke || "none",
                "stroke-width": style.width || 1
            })
        };
        for (const [key, value] of Object.entries(all)) element.setAttribute(key, String(value));
        if (style && style.dash && style.dash.length)
            element.setAttribute("stroke-dasharray", style.dash.join(" "));
        root.append(element);
        return element;
    };
    return {
        rect: (x, y, w, h, r, style) => {
            make("rect", {x, y, width: w, height: h, rx: r}, style);
        },
        rects: (shapes, style) => {
            for (const {x, y, w, h} of shapes) make("rect", {x, y, width: w, height: h}, style);
        },
        lines: (lines, style) => {
            const d = lines.map((p) => `M${p.map((v) => v.toFixed(1)).join(" ")}`).join("");
            make("path", {d}, style);
        },
        curve: (points, style) => {
            const moves = beziers(points)
                .map((b) => `C${b.map((v) => v.toFixed(1)).join(" ")}`)
                .join("");
            make("path", {d: `M${points[0]} ${points[1]}${moves}`}, style);
        },
        text: (text, x, y, font, color, align = "left") => {
            const [, weight, size, family] = /** @type {RegExpMatchArray} */ (
                font.match(/^(\d+ )?(\d+)px (.*)$/)
            );
            make("text", {
                x,
                y,
                fill: color,
                "font-size": size,
                "font-family": family,
                "font-weight": (weight || "400").trim(),
                "text-anchor": {left: "start", center: "middle", right: "end"}[align]
            }).textContent = text;
        }
    };
}

/**
 * @param {Shape | Wire | {x: number, y: number, w: number, h: number}} s
 * @param {Look["view"]} view
 */
function visible(s, view) {
    return "w" in s
        ? s.x < view.x1 && s.x + s.w > view.x0 && s.y < view.y1 && s.y + s.h > view.y0
        : s.x0 - 80 < view.x1 && s.x1 + 80 > view.x0 && s.y0 < view.y1 && s.y1 > view.y0;
}

/** Below these scales texts would be too small to read, and less is drawn. */
const READABLE = {title: 0.34, sub: 0.42, head: 0.3},
    DOT = 9, // pixels: what is lower is a plain rectangle
    LEAST = 0.7; // pixels: open modules that are lower are left out

/** @param {Pen} pen @param {Scene} scene @param {Look} look */
export function paint(pen, scene, look) {
    const {view, scale} = look,
        seen = scene.shapes.filter((shape) => visible(shape, view)),
        dots = seen.filter((shape) => shape.kind !== "open" && scale * shape.h < DOT);
    for (const shape of seen)
        if (shape.kind === "open" && scale * shape.h > LEAST) paintOpen(pen, shape, look);
    paintOutlines(pen, scene, look);
    const wires = scale > 0.04 ? scene.wires.filter((wire) => visible(wire, view)) : [];
    if (scale < 0.12) paintThreads(pen, wires, look);
    else for (const wire of wires) paintWire(pen, wire, look);
    paintDots(pen, dots, look);
    for (const shape of seen)
        if (shape.kind !== "open" && scale * shape.h >= DOT) paintCard(pen, shape, look);
}

/** Nodes that one kernel computes lie on one background. @param {Pen} pen @param {Scene} scene
 * @param {Look} look */
function paintOutlines(pen, scene, {fused, theme, view, scale}) {
    if (fused.size === 0 || scale < 0.1) return;
    for (const wire of scene.wires) {
        if (!wire.to || !visible(wire, view)) continue;
        const group = fused.get(wire.from.name);
        if (group !== undefined && group === fused.get(wire.to.name))
            pen.curve(wire.points, {stroke: theme.outline, width: 40});
    }
    for (const shape of scene.shapes)
        if (shape.node && visible(shape, view) && fused.has(shape.node.name))
            pen.rect(shape.x - 7, shape.y - 7, shape.w + 14, shape.h + 14, 12, {fill: theme.outline});
}

/** @param {Pen} pen @param {Shape} shape @param {Look} look */
function paintOpen(pen, shape, look) {
    const {theme} = look,
        chosen = look.selected === shape,
        warmth = look.warmth(shape),
        share = warmth ? warmth.share : 0;
    const fill = theme.dark ? "rgba(255,255,255,0.025)" : "rgba(30,50,90,0.028)";
    pen.rect(shape.x, shape.y, shape.w, shape.h, 10, {
        fill,
        stroke: chosen ? theme.accent : look.hover === shape ? theme.soft : theme.line,
        width: chosen ? 2 : 1
    });
    if (look.scale < READABLE.head) return;
    if (share > 0.005)
        pen.rect(shape.x + 10, shape.y + 24, Math.max(3, Math.min(1, share) * (shape.w - 20)), 3, 1.5, {
            fill: heatColor(Math.max(share, 0.1), theme)
        });
    pen.text("▾", shape.x + 10, shape.y + 17, HEADING, theme.soft);
    pen.text(shape.title, shape.x + 24, shape.y + 17, HEADING, theme.ink);
    const right = warmth && share > 0 ? warmth.text : shape.sub;
    pen.text(right, shape.x + shape.w - 10, shape.y + 17, SUB, theme.soft, "right");
}

/** @param {Pen} pen @param {Wire} wire @param {Look} look */
function paintWire(pen, wire, look) {
    const {theme} = look,
        node = look.selected && look.selected.node;
    const near = node && (wire.from === node || wire.to === node);
    const p = wire.points;
    pen.curve(p, {
        stroke: near ? theme.accent : theme.line,
        width: Math.max(near ? 1.8 : 1.2, 0.7 / look.scale)
    });
    if (look.scale < 0.35) return;
    const x = p[p.length - 2],
        y = p[p.length - 1];
    if (wire.end) {
        pen.curve([x - 3.5, y - 5.5, x, y - 0.5], {stroke: near ? theme.accent : theme.line, width: 1.3});
        pen.curve([x + 3.5, y - 5.5, x, y - 0.5], {stroke: near ? theme.accent : theme.line, width: 1.3});
    }
    if (wire.label && look.scale > 0.45)
        pen.text(wire.label, p[0] + 6, p[1] + 14, SUB, near ? theme.accent : theme.soft);
}

/** Many wires from afar: straight pieces, in one stroke. @param {Pen} pen @param {Wire[]} wires
 * @param {Look} look */
function paintThreads(pen, wires, look) {
    const {theme, scale} = look,
        node = look.selected && look.selected.node,
        near = (wire) => node !== null && (wire.from === node || wire.to === node);
    for (const [some, stroke] of /** @type {[Wire[], string][]} */ ([
        [wires.filter((wire) => !near(wire)), theme.line],
        [node ? wires.filter(near) : [], theme.accent]
    ]))
        if (some.length) pen.lines(some.map((wire) => wire.points), {stroke, width: 0.7 / scale});
}

/** Nodes from afar: those of one colour at once. @param {Pen} pen @param {Shape[]} shapes
 * @param {Look} look */
function paintDots(pen, shapes, look) {
    /** @type {Map<string, Shape[]>} */
    const groups = new Map();
    for (const shape of shapes) {
        const fill = fillOf(shape, look) || look.theme.families[shape.family],
            group = groups.get(fill);
        if (group) group.push(shape);
        else groups.set(fill, [shape]);
    }
    for (const [fill, group] of groups) pen.rects(group, {fill});
    const {selected} = look;
    if (selected && shapes.includes(selected))
        pen.rects([selected], {stroke: look.theme.accent, width: 3 / look.scale});
    const missing = shapes.filter((shape) => shape.node && look.missing.has(shape.node.name));
    if (missing.length) pen.rects(missing, {fill: look.theme.bad});
}

/** @param {Shape} shape @param {Look} look */
function fillOf(shape, look) {
    const warmth = look.warmth(shape);
    return warmth && heatColor(warmth.share, look.theme);
}

/** @param {Pen} pen @param {Shape} shape @param {Look} look */
function paintCard(pen, shape, look) {
    const {theme} = look,
        {x, y, w, h} = shape,
        chosen = look.selected === shape;
    const mark = shape.node && look.marks.get(shape.node.name),
        missing = shape.node && look.missing.has(shape.node.name);
    const edge = missing
        ? theme.bad
        : chosen
          ? theme.accent
          : mark
            ? theme.families.math
            : look.hover === shape
              ? theme.soft
              : theme.line;
    const far = look.scale < READABLE.title,
        round = far ? 0 : shape.family === "end" ? h / 2 : 7,
        width = chosen || missing ? 2.2 : mark ? 2 : 1;
    if (shape.kind === "module")
        pen.rect(x + 4, y + 4, w, h, round, {fill: theme.card, stroke: theme.line});
    pen.rect(x, y, w, h, round, {
        fill: fillOf(shape, look) || (look.scale < 0.25 ? theme.families[shape.family] : theme.card),
        stroke: edge,
        width,
        dash: mark ? [5, 3] : undefined
    });
    if (shape.family !== "end" && shape.kind === "node")
        pen.rect(x + 6, y + 8, 3, h - 16, 1.5, {fill: missing ? theme.bad : theme.families[shape.family]});
    if (far) return;
    const left = shape.family === "end" ? x + w / 2 : x + 16,
        align = shape.family === "end" ? "center" : "left";
    if (shape.kind === "module") pen.text("▸", x + 9, y + 22, TITLE, theme.soft);
    const over = shape.kind === "module" ? 8 : 0;
    pen.text(
        shape.title,
        left + over,
        shape.sub ? y + (h < 48 ? 19 : 22) : y + h / 2 + 4.5,
        TITLE,
        theme.ink,
        align
    );
    if (look.scale < READABLE.sub || !shape.sub) return;
    const low = y + (h < 48 ? 35 : 39);
    const warmth = look.warmth(shape),
        hot = warmth && warmth.share > 0.2;
    pen.text(shape.sub, left + over, low, SUB, hot ? theme.ink : theme.soft, align);
    if (warmth && warmth.share > 0)
        pen.text(warmth.text.replace(" ", "\u2009"), x + w - 9, low, SUB, theme.ink, "right");
}
