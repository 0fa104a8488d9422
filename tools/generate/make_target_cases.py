# SPDX-License-Identifier: Apache-2.0
"""Writes tests/targets/cases.json: calls by the names people use, with what PyTorch 2.13 gives for
them.

    python make_target_cases.py [tests/targets/cases.json]

Each case is a call of a function, a method or a module class with small arguments, and the result
(or the kind of failure). "after" holds argument 0 after the call where the call writes to it.
Values are written as encode() has them.
"""

import importlib
import json
import math
import pathlib
import struct
import sys
import warnings

import torch
import torch.nn.functional as F  # noqa: F401 (reached by name)

warnings.filterwarnings("ignore")
GENERATOR = torch.Generator().manual_seed(3)


# ---- values ------------------------------------------------------------------------------------


def number(value):
    if isinstance(value, float):
        return {"f": repr(value)}
    return value


def element(value, dtype):
    """A tensor's element; floats as the shortest text that reads back equal. Of complex numbers only
    those that are real."""
    if isinstance(value, complex) and value.imag == 0:
        return repr(value.real)
    if not isinstance(value, float):
        return value
    if dtype == torch.float64 or not math.isfinite(value):
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    raise AssertionError(value)


def encode(value):
    if isinstance(value, torch.Tensor):
        data = value.detach().contiguous().reshape(-1)
        data = [element(x, value.dtype) for x in data.tolist()]
        return {"tensor": {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape),
                           "data": data}}
    if isinstance(value, torch.Size):
        return {"size": [encode(v) for v in value]}
    if isinstance(value, tuple):
        return {"tuple": [encode(v) for v in value]}
    if isinstance(value, list):
        return {"list": [encode(v) for v in value]}
    if isinstance(value, slice):
        return {"slice": [encode(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    if isinstance(value, dict):
        return {"dict": {k: encode(v) for k, v in value.items()}}
    if isinstance(value, complex):
        return {"c": [repr(value.real), repr(value.imag)]}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return number(value)


def clone(value):
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.preserve_format)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(clone(v) for v in value)
    return value


def find(name):
    """The function that a qualified name means."""
    spellings = {"_operator": "operator", "getattr": "builtins.getattr"}
    head, _, rest = name.partition(".")
    if not rest:
        head, rest = "builtins", name
    value = importlib.import_module(spellings.get(head, head))
    for part in rest.split("."):
        value = getattr(value, part)
    return value


CASES = []


def add(kind, target, args, kwargs, run, extra=None):
    case = {"kind": kind, "target": target, "args": [encode(a) for a in args],
            "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    case.update(extra or {})
    try:
        case["want"] = encode(run())
        if args and isinstance(args[0], torch.Tensor):
            after = encode(args[0])
            if after != case["args"][0]:
                case["after"] = after
    except Exception as error:  # any failure is a result
        case["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    CASES.append(case)


def function(target, *args, **kwargs):
    args = clone(args)
    add("function", target, args, kwargs, lambda: find(target)(*args, **kwargs))


def method(target, *args, **kwargs):
    args = clone(args)
    add("method", target, args, kwargs, lambda: getattr(args[0], target)(*args[1:], **kwargs))


def module(name, config, *args, training=False, state=True):
    layer = getattr(torch.nn, name)(**config).train(training)
    with torch.no_grad():
        for value in [*layer.parameters(), *layer.buffers()]:
            if value.is_floating_point():
                value.copy_(torch.randint(1, 9, value.shape, generator=GENERATOR) / 4)
    extra = {"type": f"torch.nn.{name}", "training": training,
             "config": {k: encode(v) for k, v in config.items()}}
    extra["state"] = {k: encode(v) for k, v in layer.state_dict().items()}

    def run():
        with torch.no_grad():
            return layer(*args)

    add("module", name, args, {}, run, extra)
    written = {k: encode(v) for k, v in layer.state_dict().items()}
    if written != extra["state"]:
        CASES[-1]["state_after"] = written


def seq(*shape, dtype=torch.float32):
    return torch.arange(math.prod(shape)).reshape(shape).to(dtype)


def some(*shape):
    return torch.randint(-12, 13, shape, generator=GENERATOR) / 4


# ---- names and overloads -----------------------------------------------------------------------


def names():
    x, y = some(3, 4), some(4)
    for name in ("relu", "neg", "abs", "sigmoid", "tanh", "exp", "sqrt", "sin", "cos", "floor",
                 "ceil", "sign"):
        function(f"torch.{name}", x.abs() if name == "sqrt" else x)
        method(name, x.abs() if name == "sqrt" else x)
    function("torch.ops.aten.relu.default", x)
    function("torch.ops.aten.add.Tensor", x, y)
    function("torch.ops.aten.add.Tensor", x, 2)
    function("torch.ops.aten.add.Scalar", x, 2, 3)
    function("torch.ops.aten.mul.Tensor", x, 0.5)
    function("torch.add", x, y, alpha=2)
    function("torch.add", input=x, other=y)
    function("torch.add", x, 1)
    function("torch.sub", x, 2.5)
    function("torch.mul", x, y)
    function("torch.div", x, 4)
    function("torch.div", x, 2, rounding_mode="floor")
    function("torch.pow", x, 2)
    function("torch.pow", 2, x)
    function("torch.maximum", x, x.flip(0))
    function("torch.max", x)
    function("torch.max", x, 1)
    function("torch.max", x, dim=0, keepdim=True)
    function("torch.max", x, x.flip(0))
    function("torch.min", x, 0)
    function("torch.sum", x)
    function("torch.sum", x, dim=1)
    function("torch.sum", x, (0, 1), keepdim=True)
    function("torch.sum", x, axis=1, keepdims=True)
    function("torch.mean", x, [0], True)
    function("torch.mean", x, dim=-1, dtype=torch.float64)
    function("torch.cat", [x, x], 1)
    function("torch.cat", [x, x], dim=-1)
    function("torch.cat", (x, x), axis=0)
    function("torch.stack", [y, y], dim=1)
    function("torch.functional.split", seq(7), 3)
    function("torch.functional.split", seq(7), [2, 5])
    function("torch.chunk", seq(7), 3)
    function("torch.flatten", seq(2, 3, 4), 1)
    function("torch.flatten", seq(2, 3, 4))
    function("torch.squeeze", seq(1, 3, 1))
    function("torch.squeeze", seq(1, 3, 1), 0)
    function("torch.where", x > 0, x, y)
    function("torch.where", x > 0, x, 0.0)
    function("torch.nonzero", x, as_tuple=True)
    function("torch.nonzero", x > 0, as_tuple=False)
    function("torch.clamp", x, -1, 1)
    function("torch.clamp", x, min=0)
    function("torch.clamp", x, max=0.5)
    function("torch.arange", 5)
    function("torch.arange", 1, 6)
    function("torch.arange", 1, 6, 2)
    function("torch.arange", 0, 1, 0.25)
    function("torch.zeros", 2, 3)
    function("torch.zeros", (2, 3))
    function("torch.ones", [2], dtype=torch.int64)
    function("torch.full", (2, 2), 7)
    function("torch.full", (2, 2), 1.5, dtype=torch.float64)
    function("torch.zeros_like", x)
    function("torch.matmul", some(2, 3), some(3, 4))
    function("torch.transpose", x, 0, 1)
    function("torch.permute", seq(2, 3, 4), (2, 0, 1))
    function("torch.unsqueeze", x, 0)
    function("torch.softmax", x, 1)
    function("torch.softmax", x, dim=-1, dtype=torch.float64)
    function("torch._C._nn.linear", some(2, 3), some(4, 3), some(4))
    function("torch.conv2d", some(1, 2, 5, 5), some(3, 2, 3, 3), None, 2, 1)
    function("torch.conv2d", some(1, 2, 5, 5), some(3, 2, 3, 3), padding="same")
    function("torch.functional.norm", x)
    function("torch.functional.norm", x, p=1, dim=1)
    for p in ("nuc", "fro", "inf"):
        function("torch.functional.norm", x, p)
        function("torch.functional.norm", seq(2, 3, 4), p)
        function("torch.functional.norm", seq(2, 3, 4), p, (0, 2), keepdim=True)
        function("torch.functional.norm", seq(2, 3, 4), p, (0, 1, 2))
        function("torch.functional.norm", x, p, 0)
    function("torch.std", x, 1)
    function("torch.var", x, dim=0, unbiased=False, keepdim=True)
    function("torch.numel", x)
    function("torch.is_floating_point", x)
    function("torch.subtract", x, y)
    function("torch.concat", [x, x])
    function("torch.tensor", [[1, 2], [3, 4]])
    function("torch.tensor", 2.5)
    function("torch.tensor", [True, False])
    function("torch.functional.einsum", "ij,jk->ik", some(2, 3), some(3, 2))
    function("torch.functional.broadcast_tensors", x, y)
    function("torch.functional.meshgrid", seq(2), seq(3), indexing="ij")
    function("torch.Tensor.relu", x)
    function("torch.add", x, "a")
    # PyTorch knows one signature here
    CASES[-1]["error"] = "TypeError: add received an invalid combination of arguments - got (Tensor, str)"
    function("torch.relu")
    function("torch.relu", x, bogus=1)


def methods():
    x = some(2, 3, 4)
    method("size", x)
    method("size", x, 1)
    method("size", x, -1)
    method("size", x, dim=0)
    method("dim", x)
    method("numel", x)
    method("stride", x)
    method("view", x, 6, 4)
    method("view", x, 6, -1)
    method("view", x, (4, 6))
    method("reshape", x, -1)
    method("reshape", x, 4, 6)
    method("permute", x, 0, 2, 1)
    method("permute", x, (2, 1, 0))
    method("transpose", x, 1, 2)
    method("expand", some(1, 3), 4, 3)
    method("expand", some(1, 3), (4, -1))
    method("repeat", some(2), 2, 2)
    method("flatten", x, 1)
    method("unsqueeze", x, -1)
    method("squeeze", some(1, 3), 0)
    method("contiguous", x.transpose(0, 1))
    method("mean", x, [1, 2])
    method("sum", x, dim=(0, 1), keepdim=True)
    method("sum", x, -1)
    method("max", x, 1)
    method("max", x)
    method("softmax", x, dim=1)
    method("clamp", x, min=0.0, max=1.0)
    method("chunk", x, 2, dim=2)
    method("split", x, 2, dim=2)
    method("split", x, [1, 2], 1)
    method("unbind", x)
    method("float", seq(3, dtype=torch.int64))
    method("double", x)
    method("half", x)
    method("int", x)
    method("long", x)
    method("bool", x)
    method("to", x, torch.float16)
    method("to", x, dtype=torch.int32)
    method("to", x, "cpu")
    method("to", x, torch.device("cpu"), torch.float64)
    method("to", x, seq(1, dtype=torch.float64))
    method("to", x, torch.float64, False, True)
    method("type_as", x, seq(1, dtype=torch.int64))
    method("type", x, torch.float64)
    method("is_floating_point", x)
    method("item", torch.tensor(2.5))
    method("item", torch.tensor(3))
    method("tolist", seq(2, 2, dtype=torch.int64))
    method("masked_fill", x, x > 0, 0.0)
    method("masked_fill_", x, x > 0, -1.0)
    method("add_", x, 1)
    method("add_", x, x)
    method("mul_", x, 0.5)
    method("relu_", x)
    method("new_zeros", x, 2, 3)
    method("new_zeros", x, (2,))
    method("new_full", x, (2,), 3.0)
    method("norm", x, 2, 1)
    method("std", x, 1)
    method("t", some(2, 3))
    method("view_as", seq(6), seq(2, 3))
    method("expand_as", some(1, 3), some(2, 3))
    method("abs", x)
    method("pow", x, 2)
    method("matmul", some(2, 3), some(3))
    method("eq", x, 0)
    method("any", x > 2)
    method("argmax", x, dim=1)
    method("cumsum", x, 1)
    method("numel", torch.Size([2, 3]))
    method("no_such_method", x)


def functional():
    x = some(2, 3, 4)
    f = "torch.nn.functional."
    function(f + "relu", x, inplace=False)
    function(f + "relu", x, inplace=True)
    function(f + "relu6", x * 3)
    function(f + "leaky_relu", x, 0.1)
    function(f + "leaky_relu", x, negative_slope=0.2, inplace=True)
    function(f + "elu", x)
    function(f + "selu", x)
    function(f + "celu", x, alpha=0.5)
    function(f + "silu", x, inplace=True)
    function(f + "mish", x)
    function(f + "hardswish", x)
    function(f + "hardsigmoid", x)
    function(f + "hardtanh", x, -0.5, 0.5)
    function(f + "softsign", x)
    function(f + "tanhshrink", x)
    function(f + "glu", x, 2)
    function("torch._C._nn.gelu", x)
    function("torch._C._nn.gelu", x, approximate="tanh")
    function(f + "softmax", x, dim=None, _stacklevel=3, dtype=None)
    function(f + "softmax", x, dim=1, _stacklevel=3, dtype=None)
    function(f + "softmax", x, 2, dtype=torch.float64)
    function(f + "log_softmax", x, dim=-1)
    function(f + "softmin", x, dim=1)
    function(f + "dropout", x, p=0.5, training=False, inplace=False)
    function(f + "dropout", x, p=1.5, training=False)
    function(f + "batch_norm", x, some(3), some(3).abs() + 1, weight=some(3), bias=some(3), training=False,
             momentum=0.1, eps=1e-5)
    function(f + "batch_norm", x, None, None, training=True)
    function(f + "layer_norm", x, (4,), weight=some(4), bias=None, eps=1e-5)
    function(f + "group_norm", some(2, 4, 3), 2, weight=some(4))
    function(f + "instance_norm", x)
    function(f + "rms_norm", x, (4,))
    function(f + "embedding", torch.tensor([[0, 2], [1, 1]]), some(3, 2), padding_idx=None, max_norm=None,
             norm_type=2.0)
    function(f + "max_pool2d", some(1, 1, 4, 4), 2, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False)
    function(f + "max_pool2d", some(1, 1, 5, 5), 2, 2, ceil_mode=True)
    function(f + "max_pool2d", some(1, 1, 4, 4), 2, return_indices=True)
    function(f + "max_pool1d", some(1, 1, 6), 3)
    function("torch._C._nn.avg_pool2d", some(1, 1, 4, 4), 2)
    function("torch._C._nn.avg_pool2d", some(1, 1, 5, 5), 3, stride=2, padding=1, count_include_pad=False)
    function(f + "adaptive_avg_pool2d", some(1, 2, 5, 7), (3, None))
    function(f + "adaptive_avg_pool2d", some(1, 2, 5, 7), 1)
    function(f + "adaptive_max_pool2d", some(1, 2, 5, 7), 2)
    function(f + "pad", x, (1, 2))
    function(f + "pad", x, [1, 1, 0, 2], mode="constant", value=1.5)
    function(f + "pad", x, (1, 2), mode="reflect", value=None)
    function(f + "pad", x, (1, 2), mode="replicate")
    function(f + "interpolate", some(1, 1, 2, 3), scale_factor=2, mode="nearest")
    function(f + "interpolate", some(1, 1, 2, 3), size=(4, 5), mode="bilinear", align_corners=False)
    function(f + "interpolate", some(1, 1, 4, 6), size=(2, 3), mode="area")
    function(f + "normalize", x, p=2.0, dim=1, eps=1e-12, out=None)
    function("torch.cosine_similarity", x, x.flip(0), dim=1)
    function(f + "local_response_norm", some(1, 4, 3, 2), 3)
    function("torch._C._nn.scaled_dot_product_attention", some(1, 2, 4), some(1, 3, 4), some(1, 3, 4))
    function(f + "mse_loss", x, x.flip(0))
    function("torch.pixel_shuffle", seq(2, 8, 2, 3), 2)
    function("torch.pixel_unshuffle", seq(2, 4, 6), 2)
    function("torch.channel_shuffle", seq(1, 6, 2, 2), 3)
    function("torch._C._nn.one_hot", torch.tensor([[0, 2], [1, 1]]))
    function("torch._C._nn.one_hot", torch.tensor([0, 2]), 4)
    function("torch._C._nn.one_hot", torch.tensor([0, 2]), num_classes=2)
    function("torch.functional.meshgrid", seq(2), seq(3), indexing="xy")
    function("torch.functional.atleast_1d", seq(2), seq(3))
    function("torch.functional.atleast_2d", [seq(2), seq(3)])
    function("torch.functional.atleast_3d", seq(2), seq(3), seq(1))
    function("torch.functional.atleast_2d", seq(2))
    function("torch.functional.tensordot", some(2, 3), some(3, 2), 1)
    function("torch.functional.tensordot", some(3), some(3), ((0, -1, 0, -1), (0, 0, 0, 0)))
    function("torch._assert", True, "fine")
    function("torch._assert", False, "shape must be right")


def operators():
    x, y = some(2, 3), some(3)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"):
        function("_operator." + name, x, torch.where(y == 0, 1.0, y))
        function("_operator." + name, x, 2)
        function("_operator." + name, 3, torch.where(x == 0, 1.0, x))
    function("_operator.pow", x, 2)
    function("_operator.pow", 2, x)
    function("_operator.matmul", x, y)
    function("_operator.neg", x)
    function("_operator.pos", x)
    function("_operator.abs", x)
    function("_operator.invert", x > 0)
    for name in ("and_", "or_", "xor"):
        function("_operator." + name, x > 0, x < 1)
        function("_operator." + name, seq(4, dtype=torch.int64), 3)
    function("_operator.lshift", seq(4, dtype=torch.int64), 2)
    function("_operator.rshift", seq(4, dtype=torch.int64), 1)
    for name in ("iadd", "isub", "imul", "itruediv"):
        function("_operator." + name, x, 2)
    function("_operator.eq", x, None)
    function("_operator.not_", torch.tensor(0))
    function("_operator.not_", torch.tensor([1, 2]))
    function("_operator.add", x, "a")


def numbers():
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (7.5, 2), (-7.5, 2), (7, -2.5), (0, 5), (True, 2),
             (1e300, 1e10), (2**53 + 1, 3), (3, 0), (3.0, 0.0)]
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        for a, b in pairs:
            function("_operator." + name, a, b)
    for a, b in [(2, 10), (2, -1), (2.0, 0.5), (-8, 2), (0, 0), (0, -1), (10, 18), (-2, 3), (2, 0.5)]:
        function("_operator.pow", a, b)
    for a, b in [(1, 1.0), (2**53 + 1, float(2**53)), (1, 2), (True, 1), (math.nan, 1.0), ((1, 2), (1, 2)),
                 ((1, 2), (1, 3)), ("a", "b"), (None, None)]:
        for name in ("eq", "ne"):
            function("_operator." + name, a, b)
    for a, b in [(1, 1.5), (2**53 + 1, float(2**53)), ((1, 2), (1, 3)), ("a", "b"), (math.nan, 1.0)]:
        for name in ("lt", "ge"):
            function("_operator." + name, a, b)
    function("_operator.lt", 1, "a")
    function("_operator.and_", 6, 3)
    function("_operator.and_", True, False)
    function("_operator.or_", 6, 3)
    function("_operator.xor", True, True)
    function("_operator.lshift", 1, 10)
    function("_operator.rshift", -9, 2)
    function("_operator.neg", 5)
    function("_operator.neg", True)
    function("_operator.invert", 5)
    function("_operator.abs", -5)
    function("_operator.not_", 0)
    function("_operator.add", [1, 2], [3])
    function("_operator.add", (1,), (2, 3))
    function("_operator.add", torch.Size([2]), (3,))
    function("_operator.mul", [1, 2], 2)
    function("_operator.iadd", 3, 4)
    function("_operator.contains", (1, 2), 2)
    for value in (2.5, 3.5, -2.5, 0.5, 7, 2.675):
        function("round", value)
    function("round", 2.675, 2)
    for name in ("math.floor", "math.ceil", "math.trunc", "int"):
        for value in (2.7, -2.7, 3):
            function(name, value)
    function("int", math.inf)
    function("math.sqrt", 2)
    function("math.sqrt", -1)
    function("math.log", 8, 2)
    function("math.prod", (2, 3, 4))
    function("len", [1, 2, 3])
    function("len", some(4, 2))
    function("float", 3)
    function("bool", [])
    function("max", 3, 7, 5)
    function("min", [3, 7, 5])
    function("sum", [1, 2, 3])
    function("abs", -2.5)
    function("torch.sym_int", 2.7)
    function("torch.sym_float", 3)
    function("torch.sym_max", 3, 5)
    function("torch.sym_min", 3, 5)
    function("torch.sym_not", True)
    function("torch.sym_ite", True, 1, 2)
    function("torch.sym_sum", [1, 2, 3])
    function("_operator.lshift", 3, -1)
    function("_operator.floordiv", True, 2)


def attributes():
    x = some(2, 3)
    for name in ("shape", "ndim", "dtype", "device", "T", "mT", "is_cuda", "requires_grad"):
        function("getattr", x, name)
    function("getattr", x, "nothing_like_it", 5)
    function("getattr", x, "nothing_like_it")
    function("getattr", torch.float32, "is_floating_point")


def indexing():
    x = seq(2, 3, 4)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    index = torch.tensor([1, 0])
    n = None
    everything = [
        0, -1, 5, slice(n, n, n), slice(1, n, n), slice(n, n, 2), slice(-1, n, n), slice(5, 9, n),
        slice(n, n, -1), Ellipsis, n, True, False,
        (0, 1), (0, 1, 2), (0, 0, 0, 0), (slice(n, n, n), 1),
        (slice(n, n, n), slice(n, 2, n), slice(n, n, 2)), (Ellipsis, 0), (Ellipsis, slice(n, 2, n), 1),
        (n, 0, n), (0, n, Ellipsis, n), (Ellipsis,) * 9 + (0,), index, [1, 0], [True, False], mask, (mask, 0),
        (slice(n, n, n), index), (index, slice(n, n, n), index), (index, index),
        (Ellipsis, index), (0, index), (index, n, index), (slice(n, n, n), torch.tensor([0, 2]), n, 1),
        torch.tensor(1), torch.tensor(True), (0, True),
        [[0, 1], [1, 0]], [], (), ([0, 1], slice(n, n, n), [1, 2]), torch.tensor([[0, 1], [1, 0]]),
        torch.tensor([0.5]), torch.tensor([5]), torch.tensor([-1, 0]),
        1.5, (slice(n, n, n), [True, False, True]), torch.tensor([0, 1], dtype=torch.int32),
        (torch.tensor(1), 2), (slice(torch.tensor(1), n, n),),
        (index, torch.tensor([0, 1, 2])),
    ]
    for item in everything:
        function("_operator.getitem", x, item)
    picks = torch.tensor([0, 1, 1])
    for item in ((mask, picks), (mask, slice(n, n, n), picks), (mask, n, picks), (mask, Ellipsis, 0),
                 (Ellipsis, picks, picks)):
        function("_operator.getitem", seq(2, 3, 4, 2), item)
    function("_operator.setitem", seq(2, 3, 4, 2), (mask, slice(n, n, n), picks), 0.5)
    function("_operator.getitem", torch.tensor(3.0), 0)
    function("_operator.getitem", torch.tensor(3.0), n)
    function("_operator.getitem", torch.tensor(3.0), (n, 0))
    values = [
        (0, 1), (slice(n, n, n), 7.5), ((slice(n, n, n), 1), torch.ones(1, 1, 2, 4)),
        ((index, torch.tensor([1, 2])), 5), (mask, -1.0), (mask, some(3, 4)), (True, 3),
        (False, 3), (0, torch.ones(3, 4, dtype=torch.int64)), (Ellipsis, 7), (n, 7),
        ((0, torch.tensor([1])), torch.arange(4.0)), (0, torch.ones(5)),
        ((slice(n, n, n), slice(n, n, 2), slice(1, 3, n)), 9), (index, torch.ones(3, 4, dtype=torch.int64)),
        ((Ellipsis, -1), some(2, 3)), (x > 5, 0.0), (0, [1, 2]),
        ([0], 4.0), ((0, 0, 0), torch.tensor(8.0)),
    ]
    for item, value in values:
        function("_operator.setitem", x, item, value)
    for item in (0, -1, 3, slice(1, n, n), slice(n, n, -1), slice(-2, n, n), slice(5, 0, -2)):
        function("_operator.getitem", (1, 2, 3), item)
        function("_operator.getitem", torch.Size([4, 5, 6]), item)
    function("_operator.getitem", [1, 2, 3], 1)
    function("_operator.getitem", {"a": 1}, "a")
    function("_operator.getitem", {"a": 1}, "b")
    function("_operator.getitem", (1, 2), torch.tensor(1))


def modules():
    image, line, rows = some(2, 3, 6, 6), some(2, 3, 8), some(4, 5)
    module("Linear", {"in_features": 5, "out_features": 3}, rows)
    module("Linear", {"in_features": 5, "out_features": 3, "bias": False}, rows)
    module("Identity", {}, rows)
    module("Conv1d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3}, line)
    module("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3}, image)
    module("Conv2d", {"in_channels": 3, "out_channels": 6, "kernel_size": (3, 1), "stride": (2, 1),
                      "padding": (1, 0), "groups": 3, "bias": False}, image)
    module("Conv2d",
           {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "padding": "same", "dilation": 2}, image)
    module("Conv2d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "padding": "valid"}, image)
    module("Conv2d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "padding": 1,
                      "padding_mode": "reflect"}, image)
    module("Conv2d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "padding": 1}, some(3, 5, 5))
    module("Conv3d", {"in_channels": 2, "out_channels": 2, "kernel_size": 2}, some(1, 2, 3, 4, 3))
    module("ConvTranspose1d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "stride": 2}, line)
    module("ConvTranspose2d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "stride": 2,
                               "padding": 1, "output_padding": 1}, image)
    module("ConvTranspose2d", {"in_channels": 3, "out_channels": 2, "kernel_size": 3, "stride": 2,
                               "padding": 1}, image, (12, 12))
    module("ConvTranspose3d", {"in_channels": 2, "out_channels": 1, "kernel_size": 2}, some(1, 2, 2, 3, 2))
    module("BatchNorm1d", {"num_features": 5}, rows)
    module("BatchNorm2d", {"num_features": 3}, image)
    module("BatchNorm2d", {"num_features": 3, "affine": False, "eps": 0.001}, image)
    module("BatchNorm2d", {"num_features": 3}, image, training=True)
    module("BatchNorm2d", {"num_features": 3, "momentum": None}, image, training=True)
    module("BatchNorm2d", {"num_features": 3, "track_running_stats": False}, image)
    module("BatchNorm2d", {"num_features": 3}, rows)
    module("BatchNorm3d", {"num_features": 2}, some(1, 2, 2, 2, 2))
    module("LayerNorm", {"normalized_shape": 5}, rows)
    module("LayerNorm", {"normalized_shape": [6, 6], "bias": False}, image)
    module("GroupNorm", {"num_groups": 3, "num_channels": 3}, image)
    module("InstanceNorm1d", {"num_features": 3}, line)
    module("InstanceNorm2d", {"num_features": 3, "affine": True}, image)
    module("InstanceNorm2d", {"num_features": 3, "track_running_stats": True}, some(3, 4, 4))
    module("RMSNorm", {"normalized_shape": 5}, rows)
    module("LocalResponseNorm", {"size": 2}, image)
    module("MaxPool1d", {"kernel_size": 2}, line)
    module("MaxPool2d", {"kernel_size": 3, "stride": 2, "padding": 1}, image)
    module("MaxPool2d", {"kernel_size": 2, "return_indices": True}, image)
    module("MaxPool2d", {"kernel_size": 4, "ceil_mode": True}, image)
    module("MaxPool3d", {"kernel_size": 2}, some(1, 1, 4, 4, 4))
    module("AvgPool1d", {"kernel_size": 2}, line)
    module("AvgPool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}, image)
    module("AvgPool3d", {"kernel_size": 2}, some(1, 1, 4, 4, 4))
    module("AdaptiveAvgPool1d", {"output_size": 3}, line)
    module("AdaptiveAvgPool2d", {"output_size": 1}, image)
    module("AdaptiveAvgPool2d", {"output_size": (None, 2)}, image)
    module("AdaptiveAvgPool3d", {"output_size": 2}, some(1, 1, 4, 4, 4))
    module("AdaptiveMaxPool1d", {"output_size": 3}, line)
    module("AdaptiveMaxPool2d", {"output_size": 2, "return_indices": True}, image)
    for name in ("Dropout", "Dropout2d", "AlphaDropout"):
        module(name, {"p": 0.3}, image)
    activations = ("ReLU", "ReLU6", "LeakyReLU", "PReLU", "RReLU", "ELU", "SELU", "CELU", "GELU", "SiLU",
                   "Mish", "Hardswish", "Hardsigmoid", "Hardtanh", "Hardshrink", "Softshrink", "Tanhshrink",
                   "Softplus", "Softsign", "Sigmoid", "LogSigmoid", "Tanh")
    for name in activations:
        module(name, {}, rows)
    module("ReLU", {"inplace": True}, rows.clone())
    module("LeakyReLU", {"negative_slope": 0.2, "inplace": True}, rows.clone())
    module("PReLU", {"num_parameters": 3}, image)
    module("GELU", {"approximate": "tanh"}, rows)
    module("Hardtanh", {"min_val": -0.5, "max_val": 2}, rows)
    module("Threshold", {"threshold": 0.1, "value": 20}, rows)
    module("GLU", {}, some(2, 4))
    module("Softmax", {"dim": 1}, rows)
    module("Softmax", {}, image)
    module("LogSoftmax", {"dim": -1}, rows)
    module("Softmin", {"dim": 1}, rows)
    module("Softmax2d", {}, image)
    module("Flatten", {}, image)
    module("Flatten", {"start_dim": 0, "end_dim": 1}, image)
    module("Unflatten", {"dim": 1, "unflattened_size": (5, 1)}, rows)
    module("Embedding", {"num_embeddings": 4, "embedding_dim": 3, "padding_idx": 0},
           torch.tensor([[0, 3], [1, 1]]))
    module("Upsample", {"scale_factor": 2}, image)
    module("Upsample", {"size": (4, 5), "mode": "bilinear"}, image)
    module("UpsamplingNearest2d", {"scale_factor": 2}, image)
    module("UpsamplingBilinear2d", {"scale_factor": 2}, image)
    module("ZeroPad2d", {"padding": 1}, image)
    module("ZeroPad2d", {"padding": (1, 0, 2, 1)}, image)
    module("ConstantPad1d", {"padding": 1, "value": 2.5}, line)
    module("ReflectionPad2d", {"padding": 1}, image)
    module("ReplicationPad2d", {"padding": 1}, image)
    module("PixelShuffle", {"upscale_factor": 2}, some(1, 4, 2, 2))
    module("PixelUnshuffle", {"downscale_factor": 2}, some(1, 1, 4, 4))
    module("ChannelShuffle", {"groups": 2}, some(1, 4, 2, 2))
    module("CosineSimilarity", {"dim": 1}, rows, rows.flip(0))
    module("MSELoss", {}, rows, rows.flip(0))
    state = GENERATOR.get_state()
    distances(rows, image)
    losses(rows)
    recurrent()
    GENERATOR.set_state(state)  # the cases below keep their numbers


def distances(rows, image):
    module("CosineSimilarity", {"dim": 0, "eps": 0.5}, rows, rows.flip(0))
    module("PairwiseDistance", {"p": 1.0, "keepdim": True}, rows, rows.flip(0))
    module("Bilinear", {"in1_features": 5, "in2_features": 4, "out_features": 3}, rows,
           some(rows.shape[0], 4))
    module("Unfold", {"kernel_size": (2, 1), "padding": 1}, image)


def recurrent():
    sizes = {"input_size": 3, "hidden_size": 2}
    for name in ("RNN", "GRU", "LSTM"):
        module(name, sizes, some(4, 2, 3))
        module(name, {**sizes, "num_layers": 2, "bidirectional": True, "bias": False}, some(4, 3))
        module(name + "Cell", sizes, some(2, 3))
    module("LSTM", {**sizes, "proj_size": 1, "num_layers": 2, "batch_first": True}, some(2, 4, 3))
    module("RNN", {**sizes, "nonlinearity": "relu"}, some(4, 2, 3), some(1, 2, 2))
    module("GRU", sizes, some(4, 2, 2))  # refused
    module("GRU", sizes, some(4, 2, 3), some(2, 2, 2))  # refused
    module("GRUCell", sizes, some(3), some(2))


def losses(rows):
    """Every loss class, with and without the options that its function has."""
    labels, signs = torch.arange(rows.shape[0]) % rows.shape[1], rows.flip(1).sign()
    shares = (rows / 4 + 0.5).clamp(0, 1)
    pairs = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "SoftMarginLoss",
             "HingeEmbeddingLoss", "PoissonNLLLoss")
    for name in pairs:
        for reduction in ("mean", "sum", "none"):
            module(name, {"reduction": reduction}, rows,
                   signs if "Margin" in name or "Hinge" in name else rows.flip(0))
    module("SmoothL1Loss", {"beta": 0.25}, rows, rows.flip(0))
    module("HuberLoss", {"delta": 0.25}, rows, rows.flip(0))
    module("KLDivLoss", {"log_target": True, "reduction": "sum"}, rows, rows.flip(0))
    module("PoissonNLLLoss", {"log_input": False, "full": True}, shares, shares.flip(0) * 3)
    module("HingeEmbeddingLoss", {"margin": 0.25}, rows, signs)
    for name in ("BCELoss", "BCEWithLogitsLoss"):
        module(name, {"reduction": "none"}, shares, shares.flip(0))
        module(name, {}, shares, shares.flip(0))
    for config in ({}, {"ignore_index": 1}, {"label_smoothing": 0.2, "reduction": "sum"}):
        module("CrossEntropyLoss", config, rows, labels)
    module("CrossEntropyLoss", {}, rows, rows.softmax(1))
    module("NLLLoss", {"ignore_index": 1}, rows.log_softmax(1), labels)
    module("MultiMarginLoss", {"p": 2, "margin": 0.5}, rows, labels)
    for config in ({}, {"reduction": "none", "zero_infinity": True}):
        module("CTCLoss", config, rows[:, None].log_softmax(2), labels[None, :2] + 1,
               torch.tensor([rows.shape[0]]), torch.tensor([2]))
    module("MarginRankingLoss", {"margin": 0.25}, rows, rows.flip(0), signs)
    module("CosineEmbeddingLoss", {"margin": 0.1, "reduction": "none"}, rows, rows.flip(0),
           signs[:, 0].sign())
    module("TripletMarginLoss", {"swap": True, "p": 1.0}, rows, rows.flip(0), rows.flip(1))
    f = "torch.nn.functional."
    function(f + "margin_ranking_loss", rows, rows.flip(0), signs, margin=0.5)
    function(f + "triplet_margin_loss", rows, rows.flip(0), rows.flip(1), reduction="sum")
    function(f + "multi_margin_loss", rows, labels, reduction="none")
    function(f + "poisson_nll_loss", rows, rows.flip(0).abs(), full=True)
    function(f + "cosine_embedding_loss", rows, rows.flip(0), signs[:, 0].sign())
    for name in ("mse_loss", "poisson_nll_loss", "multi_margin_loss", "margin_ranking_loss"):
        target = [rows.flip(0), signs] if name == "margin_ranking_loss" else [rows.flip(0)]
        target = [labels] if name == "multi_margin_loss" else target
        function(f + name, rows, *target, reduction="median")  # refused
    for name in ("l1_loss", "mse_loss", "huber_loss"):
        for reduction in ("none", "mean", "sum"):
            function(f + name, rows, rows.flip(0), reduction=reduction, weight=shares + 1)
        function(f + name, rows, rows.flip(0), weight=shares[:1])  # refused
    whole = torch.arange(6).reshape(2, 3)
    function(f + "kl_div", rows, shares, reduction="batchmean")
    function(f + "gaussian_nll_loss", whole, whole.flip(0), 0.5)
    function(f + "gaussian_nll_loss", rows, rows.flip(0), whole)  # refused
    for reduction in ("none", "mean", "sum"):
        function(f + "smooth_l1_loss", whole.int(), whole.flip(0).int(), reduction=reduction, beta=0.0)
    for name in ("mse_loss", "huber_loss", "smooth_l1_loss"):
        function(f + name, whole, whole.flip(0))  # refused
    for name in ("l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss"):  # one shape, then one dtype
        function(f + name, rows.half(), torch.tensor(0.3))
        function(f + name, torch.tensor(0.3, dtype=torch.float64), rows, reduction="none")
    function("torch.ldexp", rows, torch.tensor(0.3).half())  # the power is rounded to the half type


def corners():
    """What is easily taken, or done, where PyTorch does something else."""
    f = "torch.nn.functional."
    x, row = some(2, 3, 4), some(5)
    for args in ((x, some(3, 4)), (x, torch.tensor(2.0)), (x, x > 0),
                 (some(2, 3), torch.tensor([[1, 2, 3]]))):
        function("torch.cosine_similarity", *args, dim=1)
    function("torch.cosine_similarity", torch.tensor(1.0), torch.tensor(2.0), dim=0)
    function("torch.cosine_similarity", torch.tensor([1, 2]), torch.tensor([1, 2]), dim=0)
    module("CosineSimilarity", {"dim": 1}, x, some(3, 4))
    for dtype, value in ((torch.int8, 300), (torch.uint8, -1), (torch.uint8, -1.0), (torch.int64, math.nan),
                         (torch.float32, 1e40), (torch.float16, 1e6), (torch.bool, math.nan)):
        zeros = torch.zeros(3, dtype=dtype)
        function("_operator.setitem", zeros, 0, value)
        function("_operator.setitem", zeros, torch.tensor([True, False, True]), value)
        function("torch.tensor", [value], dtype=dtype)
        method("scatter", zeros, 0, torch.tensor([0]), value)
        method("scatter", zeros, 0, torch.tensor([], dtype=torch.int64), value)
        method("index_fill", zeros, 0, torch.tensor([-1]), value)
        function(f + "pad", zeros, (1, 1), "constant", value)
    function("torch.ops.aten.pad.default", torch.zeros(3, dtype=torch.uint8), [1, 1], "constant", -1)
    for value in (torch.tensor(5), torch.tensor([1.5], dtype=torch.float64),
                  torch.tensor([1e40], dtype=torch.float64), torch.tensor([1.0, 2.0], dtype=torch.float64)):
        function("_operator.setitem", some(3), torch.tensor([True, False, True]), value)
        function("_operator.setitem", some(2, 3), (slice(None), torch.tensor([True, False, True])), value)
    function("_operator.setitem", some(3), torch.tensor([1, 0, 1], dtype=torch.uint8), 5)
    for name in ("view", "size", "mH", "is_nested", "is_mps", "__len__", "is_shared", "nothing_like_it"):
        function("hasattr", x, name)
    for name in ("mH", "is_nested", "is_xla"):
        function("getattr", x, name)
    function("getattr", row, "H")
    for shape in ((1, 3), (2, 3), (1, 3, 1), (1, 3, 2)):
        for training in (True, False):
            function(f + "batch_norm", some(*shape), some(3), some(3).abs() + 1, training=training)
            module("BatchNorm1d", {"num_features": 3}, some(*shape), training=training)
            if len(shape) == 3:
                function(f + "instance_norm", some(*shape), some(3), some(3).abs() + 1,
                         use_input_stats=training)
                module("InstanceNorm1d", {"num_features": 3}, some(*shape), training=training)
        function(f + "group_norm", some(*shape), 3)
        module("GroupNorm", {"num_groups": 3, "num_channels": 3}, some(*shape))
    for eps in (0.0, -1.0):
        function(f + "batch_norm", some(2, 3), some(3), some(3).abs() + 1, training=True, eps=eps)
        function(f + "batch_norm", some(2, 3), some(3), some(3).abs() + 1, training=False, eps=eps)
    mask = some(3, 3)
    for shape in ((1, 2, 3, 4), (2, 3, 4), (3, 4)):
        function("torch._C._nn.scaled_dot_product_attention", some(*shape), some(*shape), some(*shape), mask,
                 is_causal=True)
    function("torch._C._nn.scaled_dot_product_attention", some(1, 2, 3, 4), some(1, 2, 3, 4),
             some(1, 2, 3, 4), some(2, 3, 3), is_causal=True)
    function(f + "local_response_norm", torch.ones(0, 3, 4), 2)
    function(f + "local_response_norm", torch.ones(1, 3, 2, 2).half(), 2)
    function("torch.functional.tensordot", some(2, 1), some(3, 4), 1)
    function("torch.functional.tensordot", torch.tensor(2), some(2, 3), 0)
    function("torch.functional.tensordot", torch.tensor(2.0), some(2, 3), ([0], [0]))
    yes = torch.tensor([[True, False, True]])
    function("torch.median", yes)
    function("torch.median", yes, 1)
    function("torch.kthvalue", yes, 1)
    function(f + "pad", yes, (1, 1), "reflect")
    function(f + "pad", yes, (1, 1), "circular")
    function("_operator.pos", yes)
    function("torch.arange", 3, dtype=torch.bool)
    for name in ("T", "mT", "H", "mH"):
        function("getattr", torch.tensor(3.0), name)
    for name in ("mT", "mH"):
        function("getattr", torch.tensor([3.0]), name)
    function("getattr", some(1, 2, 3), "H")
    for value in (2.0**63, -(2.0**63), 2.0**63 + 2048, -(2.0**63) - 2048):
        function("torch.tensor", [value], dtype=torch.int64)
        function("torch.full", [2], value, dtype=torch.int64)
        method("masked_fill", torch.tensor([1, 2]), torch.tensor([True, False]), value)
    for training in (True, False):
        function(f + "batch_norm", some(2, 3), some(3), some(3).abs() + 1, training=training, eps=math.nan)
    for dtype, alpha in ((torch.int32, 2**31), (torch.int8, 300), (torch.uint8, -1), (torch.float16, 70000),
                         (torch.bool, 300)):
        method("index_add", torch.tensor([0, 1], dtype=dtype), 0, torch.tensor([1]),
               torch.tensor([1], dtype=dtype), alpha=alpha)


def mathematics():
    """Python's math module, torch._check, and max of a sequence."""
    ones = ("sqrt", "cbrt", "exp", "exp2", "expm1", "log1p", "log2", "log10", "sin", "cos", "tan", "asin",
            "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "fabs",
            "degrees", "radians", "ulp", "isfinite", "frexp", "modf")
    for name in ones:
        for value in (0.5, 3, math.inf, math.nan):
            function("math." + name, value)
    for name in ("sqrt", "log1p", "acos", "gamma"):
        function("math." + name, -3)
    function("math.exp", 1000.0)
    function("math.isfinite", torch.tensor(2.0))
    for name in ("atan2", "copysign", "fmod", "remainder", "nextafter", "hypot", "isclose"):
        for pair in ((1.5, -2), (5, 3), (math.inf, 2.0), (1.0, math.nan)):
            function("math." + name, *pair)
    function("math.fmod", 1.0, 0.0)
    function("math.hypot")
    function("math.hypot", 3, 4, 12)
    function("math.isclose", 1.0, 1.05, rel_tol=0.1)
    function("math.isclose", 1.0, 1.05, abs_tol=-1)
    function("math.ldexp", 1.5, 3)
    function("math.ldexp", 1.5, 3000)
    for name in ("gcd", "lcm"):
        for args in ((), (12, 18), (0, 5), (-4, 6, 10), (0, 0)):
            function("math." + name, *args)
    for name in ("comb", "perm"):
        for pair in ((5, 2), (2, 5), (0, 0), (-1, 2), (10, 10)):
            function("math." + name, *pair)
    function("math.comb", 60, 30)
    function("math.gamma", 5)
    function("math.perm", 5)
    for name in ("factorial", "isqrt"):
        for value in (0, 5, 20, -1):
            function("math." + name, value)
    function("math.isqrt", 2**63 - 1)
    for name in ("max", "min"):
        function("builtins." + name, [3, 1, 2])
        function("builtins." + name, [])
        function("builtins." + name, 3)
    function("torch._check", True)
    function("torch._check", False)
    function("torch._check", torch.tensor(True))
    function("torch._check_is_size", 3)
    function("torch._check_is_size", -1)
    function("torch._check_is_size", 5, max=4)
    function("torch._check_tensor_all", torch.tensor([True, False]))
    function("torch._check_tensor_all", torch.tensor([True, True]))


def questions():
    """What code asks of tensors to decide something, and short arrangements."""
    x, row = torch.arange(12.0).reshape(2, 6), torch.tensor([1.0, 2.0])
    for kind in (function, method):
        prefix = "torch." if kind is function else ""
        kind(prefix + "equal", x, x.clone())
        kind(prefix + "equal", x, x + 1)
        kind(prefix + "equal", x, row)
        kind(prefix + "allclose", x, x + 1e-7)
        kind(prefix + "allclose", x, x * 1.5, rtol=0.5)
        kind(prefix + "is_nonzero", torch.tensor([2]))
        kind(prefix + "is_nonzero", row)
        kind(prefix + "is_same_size", x, row)
        kind(prefix + "is_signed", x)
        kind(prefix + "is_signed", x.to(torch.uint8))
        kind(prefix + "hsplit", x, 3)
        kind(prefix + "hsplit", x, [1, 4])
        kind(prefix + "hsplit", row, 2)
        kind(prefix + "hsplit", x, 4)
        kind(prefix + "vsplit", x, 2)
        kind(prefix + "vsplit", row, 2)
        kind(prefix + "dsplit", x.reshape(2, 2, 3), [1])
        kind(prefix + "diagflat", x[:, :2], 1)
    method("where", x, x > 3, -x)
    method("where", x, x > 3, 7.0)
    function("torch.column_stack", [row, x[:, :2], row])
    function("torch.promote_types", torch.int32, torch.float16)
    function("_operator.countOf", [1, 2, 1], 1)
    function("_operator.indexOf", (1, 2, 1), 2)
    function("_operator.indexOf", (1, 2, 1), 3)


def resizing():
    f = "torch.nn.functional."
    for mode in ("bilinear", "bicubic", "lanczos"):
        function(f + "interpolate", some(1, 1, 4, 6), size=(2, 3), mode=mode, antialias=True)
        function(f + "interpolate", some(1, 1, 4, 6), scale_factor=1.5, mode=mode, antialias=True)
    function(f + "interpolate", some(1, 1, 4, 6), size=(2, 3), mode="lanczos")
    function(f + "interpolate", some(1, 1, 4), size=2, mode="linear", antialias=True)
    function(f + "pdist", some(4, 3), 1.5)


def second_names():
    x, places = torch.tensor([[2, 1, 2], [1, 1, 3]]), torch.tensor([0, 5, 7])
    for kind in (function, method):
        prefix = "torch." if kind is function else ""
        kind(prefix + "unique", x)
        kind(prefix + "unique", x, return_inverse=True)
        kind(prefix + "unique", x, return_counts=True, dim=1)
        kind(prefix + "unique", x, dim=2)
        kind(prefix + "unique_consecutive", x)
        kind(prefix + "unique_consecutive", x, return_inverse=True, return_counts=True)
        kind(prefix + "is_neg", x)
        kind(prefix + "is_conj", x)
    function("torch.unravel_index", places, (2, 4))
    function("torch.unravel_index", places.to(torch.int32), 9)
    function("torch.unravel_index", places, (2, -4))
    function("torch.unravel_index", places.float(), (2, 4))
    method("new_tensor", x, [1.5, 2.5])
    method("new_tensor", x.float(), [[1, 2], [3, 4]])
    method("new_tensor", x, [1, 2], dtype=torch.float64)
    method("to_dense", x)
    method("polygamma", places + 1.0, 1)
    for dtype in (torch.float32, torch.complex64):
        function("torch._C._linalg.linalg_eigvalsh", torch.eye(2, dtype=dtype), "X")
        function("torch.ops.aten._linalg_eigh.default", torch.eye(2, dtype=dtype), "lower", False)
    for dims in ([], [0, 1, 2], [0], [1, 0]):
        function("torch._C._linalg.linalg_norm", seq(2, 3, 4), 1, dims)
    function("torch.can_cast", torch.float32, torch.int64)
    function("torch.can_cast", torch.int64, torch.float16)
    function("torch.can_cast", torch.int64, torch.bool)


def main():
    for group in (names, methods, functional, operators, numbers, attributes, indexing, modules, corners,
                  mathematics, questions, resizing, second_names):
        start = len(CASES)
        group()
        for case in CASES[start:]:
            case["group"] = group.__name__
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(
        __file__).resolve().parent.parent.parent / "tests/targets/cases.json")
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in CASES) + "\n]\n")
    print(f"{len(CASES)} cases, {sum('error' in c for c in CASES)} of them failures, "
          f"{path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
