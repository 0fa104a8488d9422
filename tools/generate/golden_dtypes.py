# SPDX-License-Identifier: Apache-2.0
"""Calls with the dtypes that PyTorch's own samples leave out: int8, int16, uint16, uint32, uint64,
float8. What PyTorch has no kernel for is left out when the cases are recorded."""

import torch

from golden_hand import boolean, f16, f32, f64, i8, i32, i64, ints, ramp, t, u8

i16, u16, u32, u64 = torch.int16, torch.uint16, torch.uint32, torch.uint64
SIGNED, UNSIGNED = (i8, i16), (u16, u32, u64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
          torch.float8_e8m0fnu)
EDGES = [0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 2.5, 17.0, 19.0, 240.0, 248.0, 448.0, 464.0, 480.0, -500.0, 57344.0,
         61440.0, 70000.0, 1e-3, 2e-3, 1e-5, 7.6e-6, -1e-8, 3e38, float("inf"), float("-inf"), float("nan")]


def matrix(dtype):
    """Five by three, both limits of an integer dtype among them."""
    if dtype in FLOAT8:
        return ramp(5, 3).abs().to(dtype)
    made = ints(5, 3, low=0 if dtype in UNSIGNED else -7, high=11).to(dtype)
    info = torch.iinfo(dtype)
    made.view(-1)[:1] = t([-1], i64).to(u64) if dtype == u64 else info.max
    made.view(-1)[7] = info.min
    return made


def moved(dtype):
    x, rows, cpu = matrix(dtype), t([4, 0, 2], i64), torch.device("cpu")
    yield "clone.default", [x]
    yield "clone.default", [x.t()]
    yield "contiguous.default", [x.t()]
    yield "t.default", [x]
    yield "view.default", [x, [3, 5]]
    yield "reshape.default", [x.t(), [15]]
    yield "permute.default", [x, [1, 0]]
    yield "select.int", [x, 0, 2]
    yield "slice.Tensor", [x, 0, 1, 5, 2]
    yield "expand.default", [x[:1], [4, 3]]
    yield "unsqueeze.default", [x, 1]
    yield "as_strided.default", [x, [2, 2], [4, 1], 3]
    yield "cat.default", [[x, x[:2]], 0]
    yield "stack.default", [[x, x], 1]
    yield "repeat.default", [x, [2, 1]]
    yield "split.Tensor", [x, 2]
    yield "unbind.int", [x, 1]
    yield "constant_pad_nd.default", [x, [1, 2], 1]
    yield "roll.default", [x, [1], [0]]
    yield "index_select.default", [x, 0, rows]
    yield "index.Tensor", [x, [rows, t([0, 2, 1], i64)]]
    yield "index.Tensor", [x, [t([True, False, True, True, False])]]
    yield "embedding.default", [x, rows]
    yield "gather.default", [x, 0, t([[1, 0, 4]], i64)]
    yield "masked_select.default", [x, ints(5, 3) > 2]
    yield "take.default", [x, t([3, 14], i64)]
    yield "copy_.default", [torch.zeros(5, 3).to(dtype), x]
    yield "copy_.default", [torch.zeros(5, 3), x]
    yield "copy_.default", [x.clone(), ramp(5, 3).abs()]
    yield "zeros_like.default", [x]
    yield "ones_like.default", [x]
    yield "full_like.default", [x, 2]
    yield "full.default", [[2, 3], 3], {"dtype": dtype, "device": cpu}
    yield "zeros.default", [[2, 3]], {"dtype": dtype, "device": cpu}
    yield "ones.default", [[2]], {"dtype": dtype, "device": cpu}
    yield "fill_.Scalar", [x.clone(), 1]
    yield "to.dtype", [x, dtype]
    yield "view.dtype", [x[:, :1].contiguous(), u8]


def cast():
    values = t(EDGES)
    for dtype in (*FLOAT8, i16):
        for source in (f32, f64, f16, torch.bfloat16):
            yield "_to_copy.default", [values.to(source)], {"dtype": dtype}
            yield "to.dtype", [values.to(source), dtype]
    codes = torch.arange(256, dtype=torch.int32).to(u8)
    for dtype in FLOAT8:
        every = codes.view(dtype)
        for to in (f32, f64, f16, torch.bfloat16):
            yield "_to_copy.default", [every], {"dtype": to}
        for to in (i32, i8, boolean, torch.complex64):
            yield "_to_copy.default", [every[1:120]], {"dtype": to}
        yield "_to_copy.default", [ints(12, low=-9, high=300)], {"dtype": dtype}
        yield "_to_copy.default", [t([True, False])], {"dtype": dtype}
        for to in FLOAT8:
            yield "_to_copy.default", [every[1:120]], {"dtype": to}
    for dtype in (*SIGNED, *UNSIGNED):
        for to in (*SIGNED, *UNSIGNED, u8, i32, i64, f32, f64, f16, boolean):
            yield "_to_copy.default", [matrix(dtype)], {"dtype": to}
        yield "_to_copy.default", [t([0.0, 1.5, 99.9, 100.0], f64)], {"dtype": dtype}


UNARY = ("neg", "abs", "sign", "square", "bitwise_not", "logical_not", "relu", "sqrt", "exp", "sin",
         "reciprocal", "sigmoid", "tanh", "floor", "ceil", "trunc", "isnan", "positive", "sgn", "rsqrt",
         "log1p")
BINARY = ("add", "sub", "mul", "div", "eq", "ne", "lt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor",
          "fmod", "remainder", "bitwise_left_shift", "bitwise_right_shift")


def computed(dtype):
    x = matrix(dtype)
    y = ints(5, 3, low=1, high=6).flip(0).contiguous().to(dtype)
    for name in UNARY:
        yield f"{name}.default", [x]
    for name in BINARY:
        yield f"{name}.Tensor", [x, y]
        yield f"{name}.Tensor", [x.t(), y.t()]
    for name in ("maximum", "minimum", "floor_divide", "atan2", "logical_and", "gcd"):
        yield f"{name}.default", [x, y]
    yield "pow.Tensor_Tensor", [y, t([2, 0, 3], dtype)]
    yield "pow.Tensor_Scalar", [x, 3]
    yield "clamp.default", [x, 1, 5]
    yield "add.Tensor", [x, 2]
    yield "add.Tensor", [x, 2.5]
    yield "mul.Tensor", [x, y.float()]
    yield "add.Tensor", [x, y.to(i64)]
    yield "div.Tensor_mode", [x, y], {"rounding_mode": "floor"}
    yield "where.self", [x > 2, x, y]
    yield "masked_fill.Scalar", [x, ints(5, 3) > 2, 4]
    for name in ("sum", "prod", "max", "min", "any", "all"):
        yield f"{name}.default", [x]
    for name in ("cumsum", "cumprod", "sort", "argsort", "argmax", "argmin"):
        yield f"{name}.default", [x, 0]
    for name in ("sum.dim_IntList", "amax.default", "amin.default"):
        yield name, [x, [1]]
    yield "max.dim", [x, 0]
    yield "topk.default", [x, 2, 0]
    yield "unique_dim.default", [x, 0]
    yield "mm.default", [y, y.t()]
    yield "bmm.default", [y.reshape(1, 5, 3), y.reshape(1, 3, 5)]
    yield "matmul.default", [y, y[0]]
    yield "scatter_add.default", [x, 0, t([[1, 0, 4]], i64), y]
    yield "index_add.default", [x, 0, t([1, 3], i64), y[:2]]
    yield "index_put.default", [x, [t([1, 3], i64)], y[:2]]
    yield "tril.default", [x]
    yield "diff.default", [x]


def scaled_products():
    torch.manual_seed(3)
    for first in FLOAT8[:2]:
        for second in FLOAT8[:2]:
            a, b = torch.randn(16, 32).to(first), torch.randn(16, 32).to(second).t()
            for scales in ((t([0.7]), t([1.3])), (ramp(16, 1).abs() + 0.1, ramp(1, 16).abs() + 0.1)):
                for out in (f32, torch.bfloat16):
                    yield "_scaled_mm.default", [a, b, *scales], {"out_dtype": out}
                yield "_scaled_mm.default", [a, b, *scales, ramp(16)], {"out_dtype": f32}


def dtype_cases():
    for dtype in (*SIGNED, *UNSIGNED, *FLOAT8):
        yield from moved(dtype)
    yield from cast()
    for dtype in SIGNED:
        yield from computed(dtype)
    yield from scaled_products()
