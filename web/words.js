// SPDX-License-Identifier: Apache-2.0
// What a node is, in words, and which family of operations it belongs to (its colour).
/** @typedef {import("./graph.js").Node} Node */

/**
 * @typedef {"product" | "norm" | "activation" | "reduce" | "shape" | "math" | "attention" |
 * "data" | "end" | "other"} Family
 */

/** "torch.ops.aten.conv2d.default" -> "conv2d". @param {string} target */
export function leaf(target) {
    const parts = target.replace(/^torch\.ops\./, "").split(".");
    if (/^torch\.ops\./.test(target) && parts.length >= 3) return parts[1].replace(/_$/, "");
    return parts[parts.length - 1].replace(/^_+/, "");
}

/** Beginnings of names, or with "*" in front any part of one. @type {[string, Family][]} */
const FAMILIES = [
    ["conv linear matmul mm bmm addmm baddbmm einsum dot lstm gru rnn", "product"],
    ["*attention *multihead", "attention"],
    ["*_norm *norm1d *norm2d *norm3d *layernorm *groupnorm *rmsnorm", "norm"],
    ["relu gelu silu sigmoid tanh softmax log_softmax hardswish hardsigmoid hardtanh leaky", "activation"],
    ["elu selu mish softplus prelu glu dropout", "activation"],
    ["*pool sum mean max min amax amin argmax argmin topk cumsum prod any all var std", "reduce"],
    [
        "view reshape flatten unflatten permute transpose contiguous expand repeat squeeze unsqueeze",
        "shape"
    ],
    [
        "cat stack split chunk slice select getitem narrow pad unbind clone detach alias to type roll",
        "shape"
    ],
    ["flip movedim size sym_size", "shape"],
    ["embedding gather index scatter where masked arange zeros ones full empty rand new_", "data"],
    ["add sub mul div truediv floordiv neg pow exp log sqrt rsqrt abs clamp cos sin erf rsub", "math"],
    ["reciprocal eq ne lt gt le ge logical bitwise square round floor", "math"]
];

/** @param {Node} node @returns {Family} */
export function familyOf(node) {
    if (node.kind === "input" || node.kind === "output") return "end";
    if (node.kind === "parameter") return "data";
    const name = node.op === "call_module" && node.moduleType ? leaf(node.moduleType) : leaf(node.target);
    const text = name.toLowerCase(),
        fits = (word) => (word[0] === "*" ? text.includes(word.slice(1)) : text.startsWith(word));
    const found = FAMILIES.find(([words]) => words.split(" ").some(fits));
    return found ? found[1] : "other";
}

const NAMES = {
    conv1d: "Conv1d",
    conv2d: "Conv2d",
    conv3d: "Conv3d",
    linear: "Linear",
    relu: "ReLU",
    gelu: "GELU",
    silu: "SiLU",
    sigmoid: "Sigmoid",
    tanh: "Tanh",
    softmax: "Softmax",
    batch_norm: "BatchNorm",
    layer_norm: "LayerNorm",
    group_norm: "GroupNorm",
    max_pool2d: "MaxPool2d",
    avg_pool2d: "AvgPool2d",
    adaptive_avg_pool2d: "AdaptiveAvgPool2d",
    embedding: "Embedding",
    dropout: "Dropout",
    flatten: "Flatten",
    view: "Reshape",
    reshape: "Reshape",
    permute: "Permute",
    transpose: "Transpose",
    matmul: "MatMul",
    bmm: "MatMul, batched",
    cat: "Concat",
    scaled_dot_product_attention: "Attention",
    hardtanh: "Hardtanh",
    hardswish: "Hardswish",
    unsqueeze: "Unsqueeze",
    squeeze: "Squeeze",
    getitem: "Item",
    log_softmax: "LogSoftmax"
};
const SIGNS = {
    add: "+",
    sub: "−",
    mul: "×",
    div: "÷",
    truediv: "÷",
    floordiv: "//",
    eq: "=",
    ne: "≠",
    lt: "<",
    gt: ">",
    le: "≤",
    ge: "≥",
    pow: "^"
};

/** @param {(number | string)[] | null} shape */
export function shapeText(shape) {
    return shape ? shape.map(String).join("×") || "scalar" : "";
}

/** @param {any} value */
function pair(value) {
    return Array.isArray(value)
        ? value.every((v) => v === value[0]) && value.length
            ? String(value[0])
            : value.join("×")
        : String(value);
}

/** @param {Node} node @returns {Node | null} the weight of a layer */
function weightOf(node) {
    return (
        node.inputs.find(
            (from) => from.kind === "parameter" && from.shape !== null && from.shape.length >= 2
        ) || null
    );
}

/** @param {Node} node @param {string} name */
function sizes(node, name) {
    const weight = weightOf(node),
        shape = weight && weight.shape;
    if (/^conv/.test(name) && shape) {
        const stride = node.args[3],
            groups = Number(node.args[6] || 1);
        return (
            ` ${Number(shape[1]) * groups || shape[1]}→${shape[0]}, ${shape.slice(2).join("×")}` +
            (stride !== undefined && pair(stride) !== "1" ? `, stride ${pair(stride)}` : "") +
            (groups > 1 ? `, ${groups} groups` : "")
        );
    }
    if (name === "linear" && shape) return ` ${shape[1]}→${shape[0]}`;
    if (name === "embedding" && shape) return ` ${shape[0]}×${shape[1]}`;
    if (/pool\dd$/.test(name) && node.args[1] !== undefined) {
        const size = pair(node.args[1]);
        return name.startsWith("adaptive")
            ? ` to ${size}×${size}`.replace(/(\d+×\d+)×.*/, "$1")
            : ` ${size}×${size}`.replace(/(\d+×\d+)×.*/, "$1");
    }
    if (/softmax/.test(name) && typeof node.args[1] === "number") return ` over dim ${node.args[1]}`;
    if (/^(view|reshape|flatten)$/.test(name) && node.shape) return ` to ${shapeText(node.shape)}`;
    if (/^(permute|transpose)$/.test(name))
        return ` ${node.args.slice(1).map(pair).join(", ")}`.slice(0, 24);
    return "";
}

/** "Conv2d 64→64, 3×3". @param {Node} node */
export function describe(node) {
    if (node.op === "placeholder") return node.kind === "parameter" ? node.state || node.name : node.name;
    if (node.op === "get_attr") return node.target;
    if (node.op === "output") return "result";
    if (node.op === "call_module" && node.moduleType) return leaf(node.moduleType);
    const name = leaf(node.target),
        sign = SIGNS[name];
    if (sign) {
        const number = node.args.find((arg) => typeof arg === "number");
        return number === undefined ? `${sign}` : `${sign} ${Number(number.toPrecision(5))}`;
    }
    return (Object.prototype.hasOwnProperty.call(NAMES, name) ? NAMES[name] : name) + sizes(node, name);
}

/** The line below: which module, which name. @param {Node} node */
export function caption(node) {
    if (node.kind === "input") return "input";
    if (node.kind === "parameter") return node.shape ? shapeText(node.shape) : "parameter";
    if (node.kind === "output") return "";
    return node.owner ? last(node.owner.path) : node.op === "call_module" ? node.target : node.name;
}

/** "layer1.0.conv1" -> "conv1"; a number keeps its parent. @param {string} path */
export function last(path) {
    const parts = path.split(".");
    const end = parts[parts.length - 1];
    return /^\d+$/.test(end) && parts.length > 1 ? parts.slice(-2).join(".") : end;
}

/** What a family is called, where nodes are explained. @type {Record<Family, string>} */
export const FAMILY_WORDS = {
    product: "product with weights",
    norm: "normalisation",
    activation: "activation",
    reduce: "reduction or pooling",
    shape: "changes shape or layout",
    math: "arithmetic",
    attention: "attention",
    data: "reads or makes data",
    end: "input or result",
    other: "other operation"
};
