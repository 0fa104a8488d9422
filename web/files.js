// SPDX-License-Identifier: Apache-2.0
// Files that are inputs: tensors of .npy, .npz and .safetensors, and pictures.
import {entriesOf, entryOf} from "./archive.js";
import {decode, readNpy} from "./tensor.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */

const SAFETENSORS = {
    F64: "float64",
    F32: "float32",
    F16: "float16",
    BF16: "bfloat16",
    I64: "int64",
    I32: "int32",
    I16: "int16",
    I8: "int8",
    U8: "uint8",
    BOOL: "bool"
};
const MOST_HEADER = 10 * 2 ** 20,
    PIXELS = 224; // of a side that the graph leaves open
/** What the file dialog offers. */
export const INPUT_FILES = ".npy,.npz,.safetensors,image/*";

/** @param {ArrayBuffer} buffer @returns {Map<string, Tensor>} by name */
function readSafetensors(buffer) {
    const n = buffer.byteLength < 8 ? Infinity : Number(new DataView(buffer).getBigUint64(0, true));
    if (n > MOST_HEADER || 8 + n > buffer.byteLength) throw new Error("this is no .safetensors file");
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, n))),
        found = new Map();
    for (const [name, {dtype, shape, data_offsets: place}] of Object.entries(head)) {
        if (name === "__metadata__") continue;
        if (!SAFETENSORS[dtype])
            throw new Error(`tensor ${name} is of type ${dtype}, which the page cannot read`);
        const data = decode(buffer.slice(8 + n + place[0], 8 + n + place[1]), SAFETENSORS[dtype]);
        found.set(name, {shape, dtype: SAFETENSORS[dtype], data});
    }
    return found;
}

/** @param {File} file @returns {Promise<Map<string, Tensor>>} */
async function readNpz(file) {
    const found = new Map();
    for (const [name, entry] of await entriesOf(file))
        if (name.endsWith(".npy")) found.set(name.slice(0, -4), readNpy(await entryOf(file, entry)));
    return found;
}

/**
 * The tensors of a file. A .npy file has one, without a name.
 * @param {File} file
 * @returns {Promise<Map<string, Tensor>>}
 */
export async function tensorsOf(file) {
    if (/\.npz$/i.test(file.name)) return readNpz(file);
    if (/\.safetensors$/i.test(file.name)) return readSafetensors(await file.arrayBuffer());
    return new Map([["", readNpy(await file.arrayBuffer())]]);
}

/** @param {File} file */
export const isPicture = (file) =>
    /^image\//.test(file.type) || /\.(png|jpe?g|webp|gif|bmp)$/i.test(file.name);

/** How a picture fits an input: which dimension is what. @param {any} input of the signature */
function formOf(input) {
    const shape = input.shape || [],
        rank = shape.length,
        size = (value) => (typeof value === "number" ? value : PIXELS);
    const isColour = (value) => value === 1 || value === 3,
        planes = rank >= 3 && isColour(shape[rank - 3]),
        pixels = rank >= 3 && !planes && isColour(shape[rank - 1]);
    if (rank < 2) throw new Error(`a picture does not fit input ${input.name} of ${rank} dimensions`);
    const [height, width] = pixels ? shape.slice(rank - 3) : shape.slice(rank - 2);
    return {
        height: size(height),
        width: size(width),
        channels: planes ? shape[rank - 3] : pixels ? shape[rank - 1] : 1,
        planes: !pixels
    };
}

/**
 * A picture scaled to the sizes of an input: values from 0 to 1, or bytes where the input takes
 * whole numbers.
 * @param {File} file
 * @param {any} input of the signature
 * @returns {Promise<Tensor>}
 */
export async function pictureOf(file, input) {
    const {height, width, channels, planes} = formOf(input),
        bitmap = await createImageBitmap(file),
        canvas = new OffscreenCanvas(width, height),
        c = /** @type {any} */ (canvas.getContext("2d"));
    c.imageSmoothingQuality = "high";
    c.drawImage(bitmap, 0, 0, width, height);
    const {data} = c.getImageData(0, 0, width, height),
        whole = /int/.test(input.dtype || ""),
        values = new Array(height * width * channels);
    for (let i = 0; i < height * width; i++) {
        const [r, g, b] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
        const colours = channels === 3 ? [r, g, b] : [Math.round(0.299 * r + 0.587 * g + 0.114 * b)];
        colours.forEach((value, k) => {
            const at = planes ? k * height * width + i : i * channels + k;
            values[at] = whole ? value : Math.round((value / 255) * 1e6) / 1e6;
        });
    }
    const sizes = planes ? [channels, height, width] : [height, width, channels],
        rank = input.shape.length,
        shape = [...new Array(Math.max(0, rank - 3)).fill(1), ...sizes.slice(-rank)];
    return {shape, dtype: input.dtype || "float32", data: values};
}
