// SPDX-License-Identifier: Apache-2.0
// Files made of many: the entries of a zip (a .pt2, an .npz), and the graph of a .pt2 that the
// server refused, as FX JSON to draw it from.

const MOST = 2 ** 31, // bytes of one entry
    DTYPES = [
        ...["", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32"],
        ...["complex64", "complex128", "bool", "bfloat16"]
    ];

/**
 * @param {Blob} blob
 * @param {number} from
 * @param {number} to
 */
const view = async (blob, from, to) => new DataView(await blob.slice(from, to).arrayBuffer());

/**
 * Where the entries of a zip are. Archives above 4 GiB are not read.
 * @param {Blob} blob
 * @returns {Promise<Map<string, {at: number, packed: number, method: number}>>} by name
 */
export async function entriesOf(blob) {
    const from = Math.max(0, blob.size - 65557),
        tail = await view(blob, from, blob.size);
    let end = tail.byteLength - 22;
    while (end >= 0 && tail.getUint32(end, true) !== 0x06054b50) end--;
    if (end < 0) throw new Error("this is no zip archive, or it is cut off");
    const start = tail.getUint32(end + 16, true),
        list = await view(blob, start, start + tail.getUint32(end + 12, true));
    const found = new Map(),
        words = new TextDecoder();
    for (let at = 0; at + 46 <= list.byteLength && list.getUint32(at, true) === 0x02014b50;) {
        const n = list.getUint16(at + 28, true),
            name = words.decode(
                new Uint8Array(list.buffer, at + 46, Math.min(n, list.byteLength - at - 46))
            );
        found.set(name, {
            at: list.getUint32(at + 42, true),
            packed: list.getUint32(at + 20, true),
            method: list.getUint16(at + 10, true)
        });
        at += 46 + n + list.getUint16(at + 30, true) + list.getUint16(at + 32, true);
    }
    return found;
}

/**
 * @param {Blob} blob
 * @param {{at: number, packed: number, method: number}} entry
 * @returns {Promise<ArrayBuffer>}
 */
export async function entryOf(blob, {at, packed, method}) {
    const head = await view(blob, at, at + 30),
        start = at + 30 + head.getUint16(26, true) + head.getUint16(28, true),
        body = blob.slice(start, start + packed);
    if (packed > MOST || (method !== 0 && method !== 8))
        throw new Error("the page cannot read this entry of the archive");
    return method === 0
        ? body.arrayBuffer()
        : new Response(body.stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

/** A size of an export: a number, or the name of a symbol. @param {any} size */
function sizeOf(size) {
    if (size && typeof size.as_int === "number") return size.as_int;
    const symbol = /Symbol\('(\w+)'/.exec(String(size && size.as_expr && size.as_expr.expr_str));
    return symbol ? symbol[1] : "?";
}

/** An argument as FX JSON has it; what is within lists, too. @param {any} arg */
function argumentOf(arg) {
    const [kind, value] = Object.entries(arg || {})[0] || ["as_none", true];
    const name = (one) =>
        one && typeof one === "object" ? `%${one.name || one.as_name || ""}` : String(one);
    if (kind === "as_none") return null;
    if (/^as_(tensor|sym_int|sym_bool|sym_float|custom_obj|graph)$/.test(kind))
        return typeof value?.as_int === "number" ? value.as_int : name(value);
    if (/^as_(tensors|nested_tensors|sym_ints|sym_floats|sym_bools|optional_tensors)$/.test(kind))
        return (Array.isArray(value) ? value : []).map((one) =>
            one && typeof one.as_int === "number" ? one.as_int : name(one?.as_tensor || one)
        );
    return kind === "as_string" ? `%%${value}` : value;
}

/** "key,path,type;key,path,type" as FX JSON has it. @param {any} stack */
function stackOf(stack) {
    if (typeof stack !== "string" || stack === "") return undefined;
    return Object.fromEntries(
        stack.split(";").map((entry) => {
            const [key, path, ...type] = entry.split(",");
            return [key, [path || "", type.join(",")]];
        })
    );
}

/** @param {any} node of an export @param {(name: string) => any} metaOf */
function nodeOf(node, metaOf) {
    const results = (Array.isArray(node.outputs) ? node.outputs : []).map(argumentOf).flat(),
        names = results.filter((name) => typeof name === "string").map((name) => name.slice(1));
    const own = node.name || names[0] || "",
        meta = node.metadata || {};
    const made = {
        op: "call_function",
        name: own,
        target: String(node.target),
        args: (Array.isArray(node.inputs) ? node.inputs : []).map((input) => argumentOf(input.arg)),
        meta: {
            ...metaOf(names[0]),
            stack_trace: meta.stack_trace,
            nn_module_stack: stackOf(meta.nn_module_stack)
        }
    };
    // Each further result is an item of the node.
    const items = names
        .filter((name) => name !== own)
        .map((name, i) => ({
            op: "call_function",
            name,
            target: "operator.getitem",
            args: [`%${own}`, i],
            meta: {...metaOf(name), nn_module_stack: made.meta.nn_module_stack}
        }));
    return [made, ...items];
}

/**
 * The graph of a `.pt2`, as FX JSON without weights: enough to draw it.
 * @param {Blob} blob
 */
export async function graphOfArchive(blob) {
    const entries = await entriesOf(blob),
        name = [...entries.keys()].find((one) => /(^|\/)models\/[^/]*\.json$/.test(one));
    if (name === undefined) throw new Error("the archive has no models/model.json");
    const bytes = await entryOf(blob, /** @type {any} */ (entries.get(name))),
        {graph_module: module} = JSON.parse(new TextDecoder().decode(bytes)),
        {graph, signature} = module;
    const metaOf = (value) => {
        const info = graph.tensor_values && graph.tensor_values[value];
        return info ? {dtype: DTYPES[info.dtype] || "", shape: (info.sizes || []).map(sizeOf)} : {};
    };
    const places = graph.inputs.map(argumentOf).map((one) => String(one).slice(1));
    const inputs = signature.input_specs.map((spec) => {
        const [kind, of] = Object.entries(spec)[0];
        return kind === "user_input"
            ? {kind: "user"}
            : {kind: "state", target: of.parameter_name || of.buffer_name || of.tensor_constant_name};
    });
    const nodes = [
        ...places.map((one) => ({op: "placeholder", name: one, target: one, meta: metaOf(one)})),
        ...graph.nodes.flatMap((node) => nodeOf(node, metaOf)),
        {op: "output", name: "output", target: "output", args: [graph.outputs.map(argumentOf)]}
    ];
    return {format: "fx/1", nodes, signature: {inputs}};
}
