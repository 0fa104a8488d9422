// SPDX-License-Identifier: Apache-2.0
// Tensors in the page: read from replies and .npy files, summed up, drawn as a picture, bars or a
// table.
import {add, fill, h, number} from "./dom.js";

/**
 * @typedef {{shape: number[], dtype: string, data: number[] | Float32Array | Float64Array | any}}
 * Tensor
 */

/** @param {number} bits of a float16 */
function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1,
        exponent = (bits >> 10) & 31,
        fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return exponent === 31
        ? fraction
            ? NaN
            : sign * Infinity
        : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** @param {ArrayBuffer} buffer @param {string} dtype @returns {number[] | Float32Array | any} */
export function decode(buffer, dtype) {
    switch (dtype) {
        case "float32":
            return new Float32Array(buffer);
        case "float64":
            return new Float64Array(buffer);
        case "int64":
            return Array.from(new BigInt64Array(buffer), Number);
        case "int32":
            return new Int32Array(buffer);
        case "int16":
            return new Int16Array(buffer);
        case "int8":
            return new Int8Array(buffer);
        case "uint8":
        case "bool":
            return new Uint8Array(buffer);
        case "float16":
            return Float32Array.from(new Uint16Array(buffer), half);
        case "bfloat16": {
            const wide = Uint32Array.from(new Uint16Array(buffer), (v) => v << 16);
            return new Float32Array(wide.buffer);
        }
        case "complex64":
            return new Float32Array(buffer).filter((_, i) => i % 2 === 0);
        default:
            return [];
    }
}

/** @param {any} output of a reply @returns {Tensor | null} */
export function tensorOf(output) {
    if (!output || !Array.isArray(output.shape)) return null;
    if (typeof output.b64 === "string") {
        const raw = Uint8Array.from(atob(output.b64), (c) => c.charCodeAt(0));
        return {shape: output.shape, dtype: output.dtype, data: decode(raw.buffer, output.dtype)};
    }
    if (output.data === undefined) return null;
    const data = Array.isArray(output.data) ? output.data.flat(Infinity) : [output.data];
    return {
        shape: output.shape,
        dtype: output.dtype,
        data: data.map((v) => (v === true ? 1 : v === false ? 0 : v === null ? NaN : Number(v)))
    };
}

const NPY = {
    f4: "float32",
    f8: "float64",
    i8: "int64",
    i4: "int32",
    i2: "int16",
    i1: "int8",
    u1: "uint8",
    b1: "bool",
    f2: "float16"
};

/** @param {ArrayBuffer} buffer a .npy file @returns {Tensor} */
export function readNpy(buffer) {
    const bytes = new Uint8Array(buffer),
        view = new DataView(buffer);
    if (bytes.length < 12 || bytes[0] !== 0x93 || String.fromCharCode(...bytes.slice(1, 6)) !== "NUMPY")
        throw new Error("this is no .npy file");
    const wide = bytes[6] >= 2,
        n = wide ? view.getUint32(8, true) : view.getUint16(8, true),
        start = wide ? 12 : 10;
    const head = new TextDecoder().decode(bytes.slice(start, start + n));
    const descr = /'descr': '[<|=]?(\w\d)'/.exec(head),
        shape = /'shape': \(([^)]*)\)/.exec(head);
    if (!descr || !shape || !NPY[descr[1]] || /'fortran_order': True/.test(head))
        throw new Error("a .npy file of this kind can be run but not shown");
    return {
        shape: shape[1]
            .split(",")
            .filter((t) => t.trim())
            .map(Number),
        dtype: NPY[descr[1]],
        data: decode(buffer.slice(start + n), NPY[descr[1]])
    };
}

/** As a run body takes it. @param {Tensor} tensor */
export const flat = (tensor) => ({shape: tensor.shape, dtype: tensor.dtype, data: Array.from(tensor.data)});

/** @param {Tensor} tensor */
export function summary(tensor) {
    let least = Infinity,
        most = -Infinity,
        sum = 0,
        squares = 0,
        nan = 0,
        inf = 0,
        zeros = 0,
        n = 0;
    for (const v of tensor.data) {
        if (Number.isNaN(v)) nan++;
        else if (!Number.isFinite(v)) inf++;
        else {
            n++;
            sum += v;
            squares += v * v;
            zeros += v === 0 ? 1 : 0;
            if (v < least) least = v;
            if (v > most) most = v;
        }
    }
    const mean = sum / n;
    return {
        n: tensor.data.length,
        least,
        most,
        mean,
        std: Math.sqrt(Math.max(0, squares / n - mean * mean)),
        nan,
        inf,
        zeros
    };
}

/** @param {Tensor} tensor @param {number} bins @param {{least: number, most: number}} range */
export function histogram(tensor, bins, {least, most}) {
    const counts = new Array(bins).fill(0),
        width = (most - least) / bins || 1;
    for (const v of tensor.data)
        if (Number.isFinite(v)) counts[Math.min(bins - 1, Math.floor((v - least) / width))]++;
    return counts;
}

/**
 * Blue below zero, orange above; grey levels when all is of one sign; NaN and inf are magenta.
 * @param {number} v
 * @param {{least: number, most: number}} range
 * @returns {[number, number, number]}
 */
export function pixel(v, {least, most}) {
    if (!Number.isFinite(v)) return [255, 0, 200];
    if (least >= 0) {
        const t = most > least ? (v - least) / (most - least) : 0.5;
        return [Math.round(13 + 242 * t), Math.round(16 + 226 * t), Math.round(23 + 200 * t ** 1.4)];
    }
    const t = Math.max(-1, Math.min(1, v / (Math.max(-least, most) || 1))),
        s = Math.sqrt(Math.abs(t));
    return t < 0
        ? [Math.round(247 - 210 * s), Math.round(247 - 140 * s), Math.round(247 - 40 * s)]
        : [Math.round(247 - 20 * s), Math.round(247 - 150 * s), Math.round(247 - 205 * s)];
}

/**
 * The last two dimensions are a picture; those before it are tiles, of the first sample.
 * @param {Tensor} tensor
 * @param {{least: number, most: number}} range
 * @returns {HTMLElement | null}
 */
export function picture(tensor, range) {
    const rank = tensor.shape.length;
    if (rank === 0 || tensor.data.length === 0) return null;
    let rows = rank >= 2 ? tensor.shape[rank - 2] : 1,
        columns = tensor.shape[rank - 1],
        tiles = 1;
    if (rank >= 3) tiles = tensor.shape[rank - 3];
    if (rank >= 3 && rows * columns === 1) [rows, columns, tiles] = [1, tiles, 1];
    if (rows === 1 && tiles === 1 && columns > 48) {
        const wide = Math.ceil(Math.sqrt(columns * 2));
        return tilesOf(tensor, range, 1, Math.ceil(columns / wide), wide);
    }
    return tilesOf(tensor, range, Math.min(tiles, 64), rows, columns);
}

/** Tiles beside each other: about so many, with few places left empty.
 * @param {number} tiles @param {number} about */
function acrossOf(tiles, about) {
    const middle = Math.min(tiles, Math.max(1, Math.round(about))),
        empty = (n) => Math.ceil(tiles / n) * n - tiles;
    const near = [0, 1, -1, 2, -2].map((d) => middle + d).filter((n) => n >= 1 && n <= tiles);
    return near.reduce((best, n) => (empty(n) < empty(best) ? n : best), middle);
}

/**
 * @param {Tensor} tensor
 * @param {{least: number, most: number}} range
 * @param {number} tiles
 * @param {number} rows
 * @param {number} columns
 */
function tilesOf(tensor, range, tiles, rows, columns) {
    const across = acrossOf(tiles, Math.sqrt(((tiles * rows) / columns) * 1.4)),
        down = Math.ceil(tiles / across),
        gap = tiles > 1 ? 1 : 0;
    const w = across * (columns + gap) - gap,
        hgt = down * (rows + gap) - gap;
    if (w > 4096 || hgt > 4096) return null;
    const canvas = h("canvas", {
        width: w,
        height: hgt,
        role: "img",
        "aria-label": `picture of ${tensor.shape.join("×")} values`
    });
    const c = canvas.getContext("2d"),
        image = c.createImageData(w, hgt);
    for (let t = 0; t < tiles; t++) {
        const x0 = (t % across) * (columns + gap),
            y0 = Math.floor(t / across) * (rows + gap);
        for (let r = 0; r < rows; r++)
            for (let k = 0; k < columns; k++) {
                const at = (t * rows + r) * columns + k;
                if (at >= tensor.data.length) continue;
                const p = ((y0 + r) * w + x0 + k) * 4,
                    [red, green, blue] = pixel(tensor.data[at], range);
                image.data[p] = red;
                image.data[p + 1] = green;
                image.data[p + 2] = blue;
                image.data[p + 3] = 255;
            }
    }
    c.putImageData(image, 0, 0);
    const k = Math.max(1, Math.min(28, Math.floor(336 / w), Math.floor(240 / hgt) || 1));
    canvas.style.width = `${w * k}px`;
    return canvas;
}

/**
 * Ten values or so as bars, the greatest one marked.
 * @param {ArrayLike<number>} values
 * @param {string[]} [labels]
 * @param {(v: number) => string} [written]
 */
export function bars(values, labels, written = number) {
    const list = Array.from(values),
        known = list.filter(Number.isFinite),
        most = Math.max(...known),
        least = Math.min(0, ...known),
        share = (v) => (most > least && v > least ? Math.min(1, (v - least) / (most - least)) : 0);
    return h(
        "div.bars",
        list.map((v, i) => {
            const best = v === most ? " best" : "";
            return [
                h("span", {class: `soft${best}`}, labels ? labels[i] : i),
                h(
                    "span",
                    {class: `bar${best}`},
                    h("i", {style: {width: `${share(v) * 100}%`}})
                ),
                h("span", {class: `right${best}`}, written(v))
            ];
        })
    );
}

/** @param {ArrayLike<number>} logits */
export function softmax(logits) {
    const most = Math.max(...Array.from(logits)),
        powers = Array.from(logits, (v) => Math.exp(v - most)),
        sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((v) => v / sum);
}

/** @param {Tensor} tensor */
function table(tensor) {
    const rank = tensor.shape.length,
        columns = rank ? tensor.shape[rank - 1] : 1,
        rows = Math.min(8, Math.ceil(tensor.data.length / (columns || 1)));
    return h(
        "div.code",
        Array.from(
            {length: rows},
            (_, r) =>
                Array.from(tensor.data.slice(r * columns, r * columns + Math.min(columns, 12)), (v) =>
                    number(v).padStart(9)
                ).join(" ") + (columns > 12 ? " …" : "")
        ).join("\n"),
        tensor.data.length > rows * columns ? "\n…" : ""
    );
}

const MOST_BARS = 64;

/** @param {Tensor} tensor @param {{least: number, most: number}} range @param {string} kind */
function viewOf(tensor, range, kind) {
    const {least, most} = range,
        columns = tensor.shape[tensor.shape.length - 1] || 1;
    if (kind === "table") return table(tensor);
    if (kind === "bars") return bars(tensor.data.slice(0, Math.min(columns, MOST_BARS)));
    if (kind === "heat map") {
        const reach = Math.max(-least, most, 1e-30);
        return picture(tensor, {least: -reach, most: reach});
    }
    if (least >= 0) return picture(tensor, range);
    const raised = Float32Array.from(tensor.data, (v) => v - least);
    return picture({...tensor, data: raised}, {least: 0, most: most - least});
}

/** A view of a tensor, with a choice of others. @param {Tensor} tensor @param {any} range
 * @param {string} first */
function chosenView(tensor, range, first) {
    const place = h("div"),
        show = (kind) => fill(place, viewOf(tensor, range, kind));
    const pick = h(
        "select.small",
        {"aria-label": "shown as", onchange: () => show(pick.value)},
        ["bars", "picture", "heat map", "table"].map((kind) => h("option", {selected: kind === first}, kind))
    );
    show(first);
    return h("div", h("p.row", {style: {margin: "4px 0 8px"}}, pick), place);
}

/** Everything about one tensor. @param {Tensor} tensor @returns {HTMLElement} */
export function tensorView(tensor) {
    const s = summary(tensor),
        box = h("div.tensor");
    const faulty = s.nan + s.inf > 0 ? h("span.tag.warm", `${s.nan} NaN, ${s.inf} inf`) : null;
    add(box, [h("p.small.soft", `${tensor.dtype} [${tensor.shape.join(", ")}] `, faulty)]);
    if (s.n === 0) return box;
    const columns = tensor.shape[tensor.shape.length - 1] || 1,
        few = columns > 1 && columns <= 20 && tensor.shape.length <= 2;
    add(box, [chosenView(tensor, s, few ? "bars" : s.least >= 0 ? "picture" : "heat map")]);
    if (s.n > 12 && s.most > s.least) {
        const counts = histogram(tensor, 48, s),
            most = Math.max(...counts);
        add(box, [
            h(
                "div.hist",
                {style: {marginTop: "10px"}, role: "img", "aria-label": "histogram"},
                counts.map((n) => h("i", {style: {height: `${(n / most) * 100}%`}}))
            ),
            h("p.small.soft.row", h("span.grow", number(s.least)), h("span", number(s.most)))
        ]);
    }
    add(box, [
        h(
            "dl.facts",
            [
                ["mean", number(s.mean)],
                ["std", number(s.std)],
                ["zeros", `${s.zeros} of ${s.n}`]
            ].map(([key, value]) => [h("dt", key), h("dd", value)])
        )
    ]);
    return box;
}
