# SPDX-License-Identifier: Apache-2.0
"""Operator calls for make_goldens.py that PyTorch's own samples do not reach, or that deserve a
case of their own."""

import math

import torch

f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
i8, i32, i64, u8, boolean = torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool
inf, nan = math.inf, math.nan
cpu = torch.device("cpu")


def t(values, dtype=None):
    """A tensor: float32, or bool if the values are bools, unless a dtype is given."""
    made = torch.tensor(values, dtype=dtype)
    return made if dtype or made.dtype == boolean else made.to(f32)


def ramp(*shape, dtype=f32, start=-1.0, step=0.37):
    """Values without structure that a wrong index could hide behind."""
    count = math.prod(shape)
    values = torch.arange(count, dtype=f64) * step + start
    return (values - 3 * torch.floor(values / 3) - 1.2).reshape(shape).to(dtype)


def ints(*shape, dtype=i64, low=-4, high=9):
    count = math.prod(shape)
    return (torch.arange(count) * 7 % (high - low) + low).reshape(shape).to(dtype)


def hand_cases():
    """Yields (overload name, args, kwargs)."""
    from golden_affine import affine_cases
    from golden_census import census_cases  # they use the functions of this file
    from golden_ctc import ctc_cases, fractional_cases
    from golden_detection import detection_cases
    from golden_dtypes import dtype_cases
    from golden_encoder import encoder_cases
    from golden_found import found_cases
    from golden_grouped import grouped_cases
    from golden_int4 import int4_cases
    from golden_linalg import linalg_cases
    from golden_more import more_cases
    from golden_names import name_cases
    from golden_quantized import quantized_cases

    for part in (pointwise, promotion, reductions, views, movement, factories, products, bool_products,
                 windows, norms, others, plumbing, corners, attacks, losses, composites, numeric, recurrent,
                 search, samples, census_cases, linalg_cases, found_cases,
                 name_cases, encoder_cases, dtype_cases,
                 ctc_cases, fractional_cases, more_cases):
        for name, args, *kwargs in part():
            yield f"aten.{name}", list(args), kwargs[0] if kwargs else {}
    for part in (quantized_cases, detection_cases, affine_cases, grouped_cases, int4_cases):
        for name, args, *kwargs in part():
            yield name, list(args), kwargs[0] if kwargs else {}


def pointwise():
    special = t([nan, inf, -inf, 0.0, -0.0, 1.5, -2.5, 0.5])
    for name in ("relu", "relu6", "neg", "abs", "sign", "sgn", "round", "trunc", "frac", "ceil", "floor",
                 "rsqrt", "sqrt", "exp", "log", "sigmoid", "tanh", "gelu", "silu", "mish", "hardswish",
                 "hardsigmoid", "hardtanh", "elu", "celu", "selu", "leaky_relu", "softplus", "isnan", "isinf",
                 "isfinite", "signbit", "reciprocal", "square", "expm1", "log1p", "erf", "softshrink",
                 "hardshrink", "log_sigmoid"):
        yield f"{name}.default", [special]
    for name in ("relu_", "neg_", "abs_", "sigmoid_", "tanh_", "exp_", "sqrt_", "silu_", "hardtanh_",
                 "hardswish_", "hardsigmoid_", "leaky_relu_", "elu_", "relu6_", "floor_", "round_", "clamp_",
                 "rsqrt_", "mish_"):
        kwargs = [{"min": -0.5, "max": 0.75}] if name == "clamp_" else []
        yield f"{name}.default", [ramp(3, 4)], *kwargs
        yield f"{name}.default", [ramp(4, 6)[1:3, ::2]], *kwargs  # a view of a larger storage
        yield f"{name}.default", [ramp(3, 4).t()], *kwargs
    yield "gelu.default", [ramp(3, 5)], {"approximate": "tanh"}
    yield "gelu.default", [ramp(3, 5, dtype=bf16)], {"approximate": "tanh"}
    for decimals in (2, 0, -1):
        yield "round.decimals", [t([1.005, -2.5, 1234.567, 15.0, 0.125])], {"decimals": decimals}
    for kwargs in ({"min": 0.5}, {"max": -0.5}, {"min": 2.0, "max": 1.0}, {"min": 0, "max": 1}):
        yield "clamp.default", [t([nan, -3.0, 0.25, 0.75, inf])], kwargs
    yield "clamp.default", [ints(2, 3)], {"min": -1.5}
    yield "clamp.default", [ints(2, 3, dtype=u8, low=0)], {"min": 2, "max": 5}
    yield "clamp.Tensor", [ramp(2, 3), ramp(3), None]
    yield "clamp.Tensor", [ramp(2, 3), None, t(0.3)]
    yield "clamp.Tensor", [ints(2, 3), t([0.5, 1.5, 2.5]), t(3)]
    for bound in (0.5, -1, 2):
        yield "clamp_min.default", [ramp(2, 3), bound]
        yield "clamp_max.default", [ramp(2, 3), bound]
        yield "clamp_min.default", [ints(2, 3), bound]
        yield "clamp_max.default", [ints(2, 3), bound]
    for dtype in (f16, bf16, f64, i32, u8):
        source = ints(2, 3, dtype=dtype, low=0) if not dtype.is_floating_point else ramp(2, 3, dtype=dtype)
        yield "clamp_min.default", [source, 1]
        yield "clamp_max.default", [source, 1]
    for index, dtype in enumerate((f32, f64, f16, bf16)):
        yield "prelu.default", [ramp(2, 3, 4, dtype=dtype), ramp(3, dtype=dtype)]
        yield "_prelu_kernel.default", [ramp(2, 3, dtype=dtype), ramp(1, 3, dtype=dtype)]
        yield "log_sigmoid_forward.default", [ramp(2, 2 + index, dtype=dtype)]
        yield "softplus.default", [t([-30.0, 0.0, 19.9, 20.1, 40.0], dtype), 1 + index, 20]
    yield "prelu.default", [ramp(2, 3), t([0.25])]
    yield "prelu.default", [ramp(5), t([-0.5])]
    for threshold, value in ((0.1, 20), (0, -1.5), (-1, 0)):
        yield "threshold.default", [ramp(2, 5), threshold, value]
        yield "threshold_.default", [ramp(2, 5), threshold, value]


def promotion():
    a, b = [7, -7, 7, -7, 0, 5], [2, 2, -2, -2, 3, 5]
    for mode in ("floor", "trunc", None):
        for dtype in (i64, i32, i8, f32, f64, f16, bf16):
            yield "div.Tensor_mode", [t(a, dtype), t(b, dtype)], {"rounding_mode": mode}
            if mode or dtype.is_floating_point:
                yield "div_.Tensor_mode", [t(a, dtype), t(b, dtype)], {"rounding_mode": mode}
            yield "div.Scalar_mode", [t(a, dtype), -2], {"rounding_mode": mode}
            yield "div.Scalar_mode", [t(a, dtype), 2.5], {"rounding_mode": mode}
    for mode in ("floor", "trunc"):
        yield ("div.Tensor_mode", [t([1.0, -1.0, 0.0, inf, nan]), t([0.0, 0.0, 0.0, 2.0, 1.0])],
               {"rounding_mode": mode})
        yield "div_.Scalar_mode", [t(a), 2], {"rounding_mode": mode}
        yield "div_.Scalar_mode", [t(a, i64), 2], {"rounding_mode": mode}
    numbers = (2, 2.5, True, -3)
    for name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "remainder.Scalar", "fmod.Scalar",
                 "eq.Scalar", "lt.Scalar", "maximum.default", "rsub.Scalar", "add.Scalar", "mul.Scalar",
                 "pow.Tensor_Scalar"):
        for dtype in (f32, f16, i64, u8, boolean):
            left = t([0, 1, 1], dtype) if dtype == boolean else t([1, 2, 3], dtype)
            for number in numbers:
                yield name, [left, number]  # those that PyTorch refuses are not kept
    pairs = ((t([1, 2, 3], i64), t(2.5, f64)), (t([1.5, 2.5]), t(3, i64)), (t([1.5, 2.5], f16), t(2.25, f32)),
             (t([200, 100], u8), t([100, -100], i8)), (t([True, False]), t([3, 4], i32)),
             (t([1.5], f16), t([2.5], bf16)), (t(2, i64), t(2.5, f32)), (t([1.1]), t([2.2], f64)),
             (t([2**31 - 1], i32), t([1], i32)))
    for name in ("add.Tensor", "mul.Tensor", "div.Tensor", "maximum.default", "lt.Tensor", "atan2.default"):
        for left, right in pairs:
            yield name, [left, right]
    for name in ("add_.Tensor", "mul_.Tensor", "div_.Tensor", "sub_.Tensor"):
        yield name, [t([1.5, 2.5], f16), t([2.25, 1.0], f32)]  # the result is cast to self's type
        yield name, [ramp(2, 3), t(2, i64)]
        yield name, [ramp(4, 6)[1:3, ::2], ramp(3)]
        yield name, [ramp(2, 3), 2]
        yield name, [ramp(3).expand(2, 3).clone(), ramp(2, 1)]
    yield "add.Tensor", [t([1, 2], i64), t([3, 4], i64)], {"alpha": -2}
    yield "add.Tensor", [t([1.0, 2.0]), 2.5], {"alpha": 2}
    yield "add.Tensor", [t([250], u8), t([10], u8)]
    yield "sub.Tensor", [t([1.5, 2.5]), t([1, 2], i64)], {"alpha": 0.5}
    yield "mul.Tensor", [t([60000.0], f16), 2]
    for exponent in (2, 3, 0.5, -1, -2, 0, 2.5):
        yield "pow.Tensor_Scalar", [t([-2.0, 0.0, 0.5, 3.0]), exponent]
    yield "pow.Tensor_Scalar", [t([-2, 0, 3], i64), 3]
    yield "pow.Scalar", [2, t([-1.0, 0.0, 3.0])]
    yield "pow.Scalar", [2, t([0, 1, 5], i64)]
    yield "pow.Scalar", [0, t([0.0, 2.0])]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        for left in (t([12, 10, -1], i64), t([12, 10, 255], u8), t([True, False, True]),
                     t([5, -8], i8), t(6, i32)):
            number = True if left.dtype == boolean else 6
            yield f"{name}.Scalar", [left, number]
            yield f"{name}_.Scalar", [left, number]
            yield f"__{name[8:]}__.Scalar", [left, number]
            yield f"__{name[8:]}__.Tensor", [left, left.flip(0) if left.dim() else left]
            yield f"__i{name[8:]}__.Scalar", [left, number]
            yield f"__i{name[8:]}__.Tensor", [left, left.flip(0) if left.dim() else left]
        yield f"{name}.Scalar", [t([True, False]), 3]
        for left in (ints(2, 3), ints(3, 4).t(), t([], i64), ints(4, 6)[1:3, ::2]):
            yield f"__{name[8:]}__.Scalar", [left, -3]
            yield f"__{name[8:]}__.Tensor", [left, left + 3]
            yield f"__i{name[8:]}__.Tensor", [left, left + 3]
        yield f"{name}.Scalar", [ints(3, 4).t(), 5]
        yield f"{name}.Scalar", [t([], i64), 5]
    for left in (t([1, 5, -3], i64), t([200, 3], u8), t([7, -8], i32), t([1, -128], i8), t(6, i64),
                 ints(3, 4).t(), ints(2, 3), t([1.5, -2.0])):
        yield "__lshift__.Scalar", [left, 2]
        yield "__lshift__.Scalar", [left, 0]
        yield "__rshift__.Scalar", [left, 1]
        yield "__rshift__.Scalar", [left, 3]
        yield "__ilshift__.Scalar", [left, 2]
        yield "__irshift__.Scalar", [left, 1]
    condition = t([[True, False, True], [False, True, False]])
    for dtype in (f32, f64, f16, bf16, i64, i32, u8, boolean):
        values = ramp(2, 3).to(dtype) if dtype.is_floating_point else ints(2, 3, low=0).to(dtype)
        yield "where.ScalarOther", [condition, values, 2]
        yield "where.ScalarSelf", [condition, 2.5, values]
        yield "where.self", [condition, values, t(1.5)]
        yield "masked_fill.Scalar", [values, condition, 1]
    for pair in ((1, 2), (1.5, 2), (True, False), (0, -inf), (True, 2.5), (nan, 1.0)):
        yield "where.Scalar", [condition, *pair]
    yield "where.Scalar", [t(True), 1, 0]
    yield "where.Scalar", [condition.t(), 1, 0]
    yield "where.ScalarOther", [condition[:1], ramp(2, 3).t().reshape(2, 3), -inf]
    yield "masked_fill.Scalar", [ramp(2, 3), condition, -inf]
    yield "masked_fill_.Scalar", [ramp(4, 3)[::2], condition, 0]
    yield "masked_fill.Tensor", [ramp(2, 3), condition, t(7.0)]

    for left in (t([1, 5, -3], i64), t([200, 3, 1], u8), t([7, -8, 0], i32), t([1, -128, 5], i8),
                 ints(3, 4).t(), t(6, i64)):
        for right in (t(2, left.dtype), t(1, i64)):
            yield "__lshift__.Tensor", [left, right]
            yield "__rshift__.Tensor", [left, right]
        yield "__ilshift__.Tensor", [left, t(2, left.dtype)]
        yield "__irshift__.Tensor", [left, t(1, i64)]
    for dtype in (f32, f64, f16, bf16, i64, boolean):
        yield "special_expit.default", [ints(2, 3).to(dtype)]
        yield "special_expit.default", [ints(3, 2).to(dtype).t()]


def reductions():
    tie = t([[1.0, 3.0, 3.0], [nan, 2.0, nan], [-inf, -inf, -inf]])
    for name in ("max.dim", "min.dim"):
        for dim in (0, 1, -1):
            yield name, [tie, dim]
        yield name, [tie[:1], 1, True]
        yield name, [t([2, 1, 2], i64), 0]
    for name in ("argmax.default", "argmin.default"):
        yield name, [tie]
        yield name, [tie, 1]
        yield name, [tie, 1, True]
        yield name, [t([True, False, True])]
    for dtype in (boolean, u8, i8, i32, f16, bf16):
        values = (ints(3, 4, low=0) % 2).to(dtype) if dtype == boolean else ints(3, 4).abs().to(dtype)
        yield "sum.default", [values]
        yield "sum.dim_IntList", [values, [0]]
        yield "cumsum.default", [values, 1]
        yield "prod.dim_int", [values, 0]
        yield "sum.default", [values], {"dtype": f64}
    for name in ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default"):
        yield name, [ramp(2, 3, 4), [1]]
        yield name, [ramp(2, 3, 4), [0, 2], True]
        yield name, [ramp(2, 3, 4), [-1, -2]]
        yield name, [ramp(2, 3, 4).permute(2, 0, 1), [0]]
        yield name, [ramp(2, 3, 4), []]
    for shape in ([0], [2, 0], [0, 3]):
        yield "sum.default", [torch.zeros(shape)]
        yield "mean.default", [torch.zeros(shape)]
        yield "prod.default", [torch.zeros(shape)]
        yield "any.default", [torch.zeros(shape, dtype=boolean)]
        yield "all.default", [torch.zeros(shape, dtype=boolean)]
        yield "sum.dim_IntList", [torch.zeros(shape), [0]]
    for correction in (0, 1, 2.5, None):
        yield "var.correction", [ramp(3, 4), [1]], {"correction": correction}
        yield "std.correction", [ramp(3, 4), [0, 1]], {"correction": correction, "keepdim": True}
    yield "var.correction", [t([2.0])], {"correction": 1}
    yield "var.correction", [ramp(3, 4) + 1e4], {"correction": 1}
    for name in ("var.dim", "std.dim"):
        for unbiased in (True, False):
            yield name, [ramp(3, 4), [1], unbiased]
            yield name, [ramp(2, 3, 4, dtype=f64), [0, 2], unbiased, True]
            yield name, [ramp(3, 4, dtype=f16), [0], unbiased]
            yield name, [ramp(3, 4).t(), [0], unbiased]
    for name in ("any.dim", "all.dim"):
        yield name, [t([[nan, 0.0], [0.0, 0.0]]), 1]
        yield name, [ints(3, 2, low=0, high=2, dtype=u8), 0, True]
    yield "logsumexp.default", [t([[-inf, -inf], [1000.0, 1000.0], [inf, 0.0]]), [1]]
    for order in (0, 1, 2, 3, 0.5, inf, -inf):
        yield "linalg_vector_norm.default", [ramp(3, 4), order]
        yield "linalg_vector_norm.default", [ramp(3, 4), order, [1], True]

    for dtype in (f32, f64, f16, bf16):
        for order in (2, 1, inf):
            yield "norm.ScalarOpt_dtype", [ramp(3, 4, dtype=dtype), order], {"dtype": f64}
            yield "norm.ScalarOpt_dim_dtype", [ramp(3, 4, dtype=dtype), order, [1], True], {"dtype": f64}
            yield "norm.ScalarOpt_dim_dtype", [ramp(4, 3, dtype=dtype).t(), order, [0]], {"dtype": f32}


def views():
    x = ramp(2, 3, 4)
    inner = ramp(4, 6, 5)[1:3, ::2, 1:]  # offset and strides
    for source in (x, inner, x.permute(2, 0, 1), ints(2, 3, 4), x.to(f16)):
        yield "select.int", [source, 1, -1]
        yield "select.int", [source, 0, 1]
        yield "slice.Tensor", [source, 1, 1, None, 2]
        yield "slice.Tensor", [source, -1, -2, 100]
        yield "slice.Tensor", [source, 0, -100, 1]
        yield "slice.Tensor", [source, 0, 2, 1]
        yield "slice.Tensor", [source, 2, 0, 9223372036854775807]
        yield "transpose.int", [source, 0, -1]
        yield "permute.default", [source, [2, 0, 1]]
        yield "unsqueeze.default", [source, -1]
        yield "unsqueeze.default", [source, 1]
        yield "expand.default", [source[:, :1], [-1, 5, -1]]
        yield "expand.default", [source, [2, *source.shape]]
        yield "flatten.using_ints", [source, 0, -1]
        yield "flatten.using_ints", [source, 1, 2]
        yield "reshape.default", [source, [-1, 2]]
        yield "reshape.default", [source, list(source.shape)]
        yield "view.default", [source, [source.shape[0], 1, *source.shape[1:]]]
        yield "contiguous.default", [source]
        yield "alias.default", [source]
        yield "detach.default", [source]
        yield "detach_.default", [source]
        yield "narrow.default", [source, 1, 1, 2]
        yield "unbind.int", [source, 1]
        yield "split.Tensor", [source, 2, -1]
        yield "chunk.default", [source, 2, 1]
        yield "split_with_sizes.default", [source, [1, 1, source.shape[1] - 2], 1]
        yield "movedim.int", [source, 0, 2]
        yield "movedim.int", [source, -1, 0]
        yield "movedim.intlist", [source, [0, 1], [2, 0]]
        yield "diagonal.default", [source, 0, 0, 2]
        yield "diagonal.default", [source, -1, 1, 2]
        yield "diagonal.default", [source, 1, 0, 1]
        yield "unfold.default", [source, -1, 2, 1]
        yield "unfold.default", [source, 1, 2, 2]
        yield "unflatten.int", [source, -1, [2, -1]] if source.shape[-1] % 2 == 0 else [source, 1, [-1, 1]]
        yield "squeeze.default", [source[:, :1]]
        yield "squeeze.dim", [source[:, :1], 1]
        yield "squeeze.dim", [source, 0]
        yield "squeeze.dims", [source[:1, :1], [0, 1]]
        yield "squeeze.dims", [source[:1], [0, 2]]
        yield "view_as.default", [source.contiguous(), torch.zeros(source.numel())]
        yield "reshape_as.default", [source, torch.zeros(2, source.numel() // 2)]
        yield "expand_as.default", [source[:, :1], torch.zeros(source.shape)]
        yield "numpy_T.default", [source[0]]
        yield "mT.default", [source]
        yield "swapaxes.default", [source, 0, 1]
        yield "ravel.default", [source]
        yield "unsafe_chunk.default", [source, 3, 1]
        yield "unsafe_split.Tensor", [source, 2, 1]
        yield "tensor_split.sections", [source, 2, 1]
        yield "split.sizes", [source, [1, source.shape[1] - 1], 1]
        yield "_unsafe_view.default", [source.contiguous(), [-1]]
        yield "lift_fresh.default", [source]
        yield "detach_copy.default", [source]
        yield "alias_copy.default", [source]
        yield "detach_copy.default", [source[:, 1:]]
        yield "moveaxis.int", [source, 0, -1]
        yield "moveaxis.int", [source, 2, 1]
        yield "moveaxis.intlist", [source, [0, 1], [2, 0]]
        yield "_reshape_alias.default", [source, [source.shape[0], 1], [source.stride(0), 1]]
        yield "_reshape_alias.default", [source.contiguous(), [source.numel()], [1]]
        yield "unsafe_split_with_sizes.default", [source, [1, source.shape[1] - 1], 1]
        yield "unsafe_split_with_sizes.default", [source, [1, 1], 0]
        yield "t.default", [source[0]]
        yield "t.default", [source[0, 0]]
    yield "t.default", [t(1.5)]
    for memory_format in (torch.channels_last, torch.contiguous_format, torch.preserve_format):
        yield ("contiguous.default", [ramp(2, 3, 2, 2).to(memory_format=torch.channels_last)],
               {"memory_format": memory_format})
        yield "clone.default", [ramp(2, 3, 2, 2)], {"memory_format": memory_format}
        yield "clone.default", [ramp(2, 3, 4).permute(2, 0, 1)], {"memory_format": memory_format}
    yield "clone.default", [ramp(4, 6)[1:3, ::2]]
    yield "clone.default", [ramp(3).expand(2, 3)]
    yield "as_strided.default", [ramp(12), [3, 2], [2, 5], 1]
    yield "as_strided.default", [inner, [2, 2], [1, 3]]
    yield "view.dtype", [ramp(2, 4), i32]
    yield "view.dtype", [ramp(2, 4), i64]
    yield "view.dtype", [ints(2, 2), u8]
    yield "view.dtype", [ramp(2, 4, dtype=f16), bf16]
    yield "view.dtype", [ramp(2, 4, dtype=f64), f32]
    yield "view.dtype", [ints(2, 8, dtype=u8, low=0), f16]
    yield "view.dtype", [t([True, False]), u8]
    yield "view.dtype", [ramp(2, 4).t(), i32]
    yield "view.dtype", [ramp(3), f32]
    for dim in (0, 1, -1):
        for source in (ramp(3, 4), ints(3, 4), ramp(4, 3).t(), ramp(6, 4)[::2]):
            inserted = source.select(dim, 0) * 2
            yield "select_scatter.default", [source, inserted, dim, -1]
            yield "slice_scatter.default", [source, source.narrow(dim, 0, 2) + 1, dim, 1, 3]
            yield ("slice_scatter.default",
                   [source, source.narrow(dim, 0, 2) + 1, dim, 0, 9223372036854775807, 2])
            yield "swapaxes.default", [source, 0, dim]


def movement():
    x = ramp(2, 3)
    values = t([-2.7, -0.5, 0.0, 0.5, 1.5, 2.5, 100.7])
    for dtype in (i64, i32, i8, boolean, f16, bf16, f64, f32):
        yield "to.dtype", [values, dtype]
        yield "_to_copy.default", [values], {"dtype": dtype}
        yield "to.dtype_layout", [values], {"dtype": dtype, "layout": torch.strided, "device": cpu}
        yield "type_as.default", [values, torch.zeros(1, dtype=dtype)]
        yield "to.other", [values, torch.zeros(1, dtype=dtype)]
    yield "to.dtype", [t([nan, inf, -0.0, 1e-30]), boolean]
    yield "to.dtype", [t([65504, 65520, 1 << 20, -(1 << 20)], i64), f16]
    yield "to.dtype", [t([1.00390625, 1.01171875, 3.3895314e38]), bf16]
    yield "to.dtype", [t([16777217, 2**53 + 1], i64), f32]
    yield "to.dtype", [t([300, -1, 128], i64), u8]
    yield "to.dtype", [t([1e-8, 6e-8, 65519.0]), f16]
    yield "to.dtype", [x, f32, False, True]
    yield "to.device", [x, cpu, f64]
    yield "to.device", [x, cpu, f32]
    yield "to.device", [x.t(), cpu, f16]
    yield "to.device", [x, cpu, i64, False, True]
    for dtype in (boolean, i32, u8, bf16):
        yield "to.device", [values.abs(), cpu, dtype]
    for fill in (2, -1.5, True):
        for dtype in (f32, i64, boolean, f16):
            yield "fill.Scalar", [ramp(2, 3).to(dtype), fill]
            yield "fill_.Scalar", [ramp(2, 3).to(dtype), fill]
    yield "fill_.Scalar", [ramp(4, 6)[1:3, ::2], 9]
    for source in (ramp(2, 3), ints(4), t(True), ramp(4, 6)[1:3, ::2], ramp(2, 3).t(), torch.zeros(0),
                   ramp(2, dtype=f16), t([1], u8), ramp(2, dtype=f64)):
        yield "zero_.default", [source]
        yield "lift_fresh_copy.default", [source]
        yield "fill_.Tensor", [source, t(1)]
        yield "fill.Tensor", [source, t(1)]
        yield "fill.Tensor", [source, t(2.5, f64)]
        yield "zero.default", [source]
        yield "lift_fresh.default", [source]
        yield "detach.default", [source]
    for source in (ramp(3), t(2.0), ramp(2, 1), ints(2, 3), ramp(2, 3, dtype=f64),
                   t([[True, False, True]] * 2)):
        yield "copy_.default", [ramp(2, 3), source]
        yield "copy_.default", [ramp(4, 6)[1:3, ::2], source]
        yield "copy.default", [ramp(2, 3), source]
        yield "copy.default", [ints(2, 3), source]
    yield "copy_.default", [ints(2, 3), ramp(2, 3)]
    yield "cat.default", [[x, ints(2, 3), ramp(2, 1, dtype=f64)], 1]
    yield "cat.default", [[x, torch.zeros(0), ramp(1, 3)], 0]
    yield "cat.default", [[ints(2, 2), t([[True, False]])]]
    yield "cat.default", [[ramp(1, 2, 2, 3).to(memory_format=torch.channels_last), ramp(1, 1, 2, 3)], 1]
    yield "stack.default", [[x, x + 1, ints(2, 3)], -1]
    yield "stack.default", [[t(1.0), t(2.0)]]
    for pad in ([1, 2], [-1, 1], [0, 1, 2, 0], [1, -1, -1, 2]):
        yield "constant_pad_nd.default", [ramp(3, 4), pad, 1.5]
        yield "constant_pad_nd.default", [ints(3, 4), pad, 7]
        yield "pad.default", [ramp(3, 4), pad, "constant", 2]
    for mode in ("reflect", "replicate", "circular"):
        yield "pad.default", [ramp(1, 2, 3, 4), [1, 2, 0, 1], mode]
        yield "pad.default", [ramp(1, 2, 5), [2, 1], mode]
    for source in (ramp(1, 2, 3, 4), ints(1, 2, 3, 4), ramp(2, 3, 4, dtype=f64), ramp(1, 2, 3, 4, dtype=f16)):
        for pad in ([1, 2], [0, 3]) if source.dim() == 3 else ([1, 2, 0, 1], [2, 0, 1, 1]):
            yield "_pad_circular.default", [source, pad]
        for mode, value in ((0, 1.5), (0, None), (1, None), (2, None), (3, None)):
            yield "_pad_enum.default", [source, [1, 1] if source.dim() == 3 else [1, 1, 1, 0], mode, value]
    for dtype in (f32, f64, f16, bf16, i64):
        for kind in ("reflection", "replication"):
            for batch in ([], [2]):
                shape = [*batch, 2, 3, 4, 5]
                volume = ints(*shape) if dtype == i64 else ramp(*shape, dtype=dtype)
                yield f"{kind}_pad3d.default", [volume, [1, 2, 0, 1, 2, 1]]
                yield f"{kind}_pad2d.default", [volume[..., 0, :, :], [1, 2, 0, 3]]
                yield f"{kind}_pad1d.default", [volume[..., 0, 0, :], [3, 1]]
    for source in (ramp(3, 4), ints(4, 3).t(), t(True), ramp(5, dtype=f16)):
        yield "broadcast_to.default", [source, [2, *source.shape]]
    table = ramp(6, 3)
    for index in (t([[0, 5], [2, 2]], i64), t([3], i32), t(1, i64), torch.zeros(0, dtype=i64)):
        yield "embedding.default", [table, index]
        yield "embedding.default", [table.t().contiguous().t(), index, 2]
    for name in ("index.Tensor", "_unsafe_index.Tensor"):
        yield name, [ramp(4, 5, 3), [t([1, -1], i64)]]
        yield name, [ramp(4, 5, 3), [None, t([[0, -2], [4, 1]], i64)]]
        yield name, [ramp(4, 5, 3), [t([[1], [3]], i64), t([0, 4, 2], i64)]]
        yield name, [ramp(4, 5, 3), [t([1, 3], i64), None, t([0, 2], i64)]]
        yield name, [ints(4, 5).t(), [t([0, 3], i64), t([1, 1], i64)]]
        yield name, [ramp(4, 5, dtype=f16), [t([3, 0], i64)]]
        yield name, [ramp(4, 5, dtype=f64), [None, t([3, 0], i64)]]
        yield name, [ints(4, dtype=u8, low=0), [t([[2, 2], [-1, 0]], i64)]]
    yield "index.Tensor", [ramp(4, 3), [t([True, False, True, True])]]
    yield "index.Tensor", [ramp(4, 3), [ramp(4, 3) > 0]]
    yield "index.Tensor", [ramp(4, 3), [None, t([True, False, True])]]
    yield "index.Tensor", [ints(4, 3).t(), [t([2, 0], i32)]]
    yield "index.Tensor", [ramp(4, 3), [t(2, i64)]]
    for accumulate in (False, True):
        # repeated rows without accumulate have no order
        rows = t([1, 1, -1] if accumulate else [1, 0, -1], i64)
        for name in ("index_put.default", "_unsafe_index_put.default"):
            yield name, [ramp(4, 3), [rows], ramp(3), accumulate]
            yield name, [ints(4, 3), [None, t([2, 0], i64)], ints(4, 2), accumulate]
            yield name, [ramp(4, 3, dtype=f16), [t([3, 0], i64), t([1, 2], i64)], t(2.5, f16), accumulate]
            yield (name, [ramp(4, 3, dtype=f64).t().contiguous().t(), [t([0], i64)], ramp(3, dtype=f64),
                          accumulate])
        yield "index_put_.default", [ramp(4, 3), [t([0, 2], i64), t([1, 1], i64)], t(9.0), accumulate]
        yield "index_put_.default", [ramp(4, 3), [ramp(4, 3) > 0], t(0.5), accumulate]
        yield "index_put_.default", [ints(4), [t([3, 0], i64)], ints(2), accumulate]
    for diagonal in (0, 1, -2, 5):
        yield "tril.default", [ramp(3, 4), diagonal]
        yield "triu.default", [ramp(2, 4, 3), diagonal]
    for shifts, dims in (([1], [0]), ([-1, 2], [0, 1]), ([5], []), ([0], [1])):
        yield "roll.default", [ramp(3, 4), shifts, dims]
        yield "roll.default", [ints(3, 4).t(), shifts, dims]
    yield "flip.default", [ramp(2, 3, 4), [0, -1]]
    yield "flip.default", [ramp(2, 3).t(), [0]]
    yield "repeat.default", [ramp(2, 3), [2, 1, 3]]
    yield "repeat.default", [ramp(2, 3), [0, 1]]
    yield "repeat_interleave.self_int", [ramp(2, 3), 2, 1]
    yield "repeat_interleave.self_int", [ints(2, 3), 3]
    for classes in (-1, 6):
        yield "one_hot.default", [t([[0, 3], [5, 1]], i64), classes]


def factories():
    for args in ([5], [0], [2.5], [7.0]):
        yield "arange.default", args
        yield "arange.default", args, {"dtype": f32, "device": cpu}
        yield "arange.default", args, {"dtype": i64}
        yield "arange.default", args, {"dtype": f16, "layout": torch.strided}
    for args in ([1, 5], [0.5, 3], [3, 3], [-2, 2], [-1.5, 1.5], [0, 10.5]):
        yield "arange.start", args
        yield "arange.start", args, {"dtype": f64}
        yield "arange.start", args, {"dtype": i32, "device": cpu}
    for args in ([0, 1, 0.1], [5, 0, -1], [5, -5, -3], [1, 2, 0.3], [0, 7, 2], [1.0, 0.0, -0.25], [0, 0, 1]):
        yield "arange.start_step", args
        yield "arange.start_step", args, {"dtype": f16}
        yield "arange.start_step", args, {"dtype": f32}
    for shape in ([], [0], [2, 3], [1, 0, 4], [5]):
        yield "zeros.default", [shape]
        yield "ones.default", [shape]
        for dtype in (f16, i64, boolean, f64, bf16, u8):
            yield "zeros.default", [shape], {"dtype": dtype, "device": cpu}
            yield "ones.default", [shape], {"dtype": dtype, "layout": torch.strided}
        for value in (3, 2.5, True, inf):
            yield "full.default", [shape, value]
            if value != inf:
                yield "full.default", [shape, value], {"dtype": i32}
            yield "full.default", [shape, value], {"dtype": f16, "device": cpu}
    for value in (3, 2.5, True, -inf, nan):
        yield "scalar_tensor.default", [value]
        yield "scalar_tensor.default", [value], {"dtype": f64}
        if math.isfinite(value):
            yield "scalar_tensor.default", [value], {"dtype": i64, "device": cpu, "layout": torch.strided}
    sources = (ramp(2, 3), ints(4), t(True), ramp(2, 3).t(),
               ramp(2, 3, 2, 2).to(memory_format=torch.channels_last), torch.zeros(0, 2), ramp(3, dtype=f16),
               ramp(4, 6)[1:3, ::2], ramp(3).expand(2, 3))
    for source in sources:
        yield "zeros_like.default", [source]
        yield "ones_like.default", [source]
        yield "full_like.default", [source, 2.5] if source.dtype.is_floating_point else [source, 1]
        yield "zeros_like.default", [source], {"dtype": i64}
        yield "ones_like.default", [source], {"dtype": f64, "memory_format": torch.contiguous_format}
        yield "full_like.default", [source, 1], {"dtype": boolean}
        for shape in ([2, 2], [0]):
            yield "new_zeros.default", [source, shape]
            yield "new_ones.default", [source, shape], {"dtype": i32}
            yield "new_full.default", [source, shape, 1]
            yield "new_full.default", [source, shape, 2], {"dtype": f32}
            yield "new_ones.default", [source, shape]
            yield "new_zeros.default", [source, shape], {"dtype": f64}
    for n in (0, 1, 3):
        for kwargs in ({}, {"dtype": i64}, {"dtype": boolean}, {"dtype": bf16}):
            yield "eye.default", [n], kwargs
            yield "eye.m", [n, 2], kwargs
    for args in ([0, 1, 5], [-2.5, 2.5, 4], [3, -3, 7], [1, 1, 3], [0, 10, 1], [0, 1, 0]):
        yield "linspace.default", args
        yield "linspace.default", args, {"dtype": f64}
        yield "linspace.default", args, {"dtype": f16}
    yield "linspace.default", [0, 10, 4], {"dtype": i64}


def products():
    for dtype in (f32, f64, f16, bf16, i64, i32, u8):
        a = ramp(3, 4, dtype=dtype) if dtype.is_floating_point else ints(3, 4, low=0).to(dtype)
        b = a.flip(0).t()
        yield "mm.default", [a, b]
        yield "mm.default", [a, b.contiguous()]
        yield "matmul.default", [a, b[:, 0]]
        yield "matmul.default", [a[0], b]
        yield "matmul.default", [a[0], a[1]]
        yield "matmul.default", [a.expand(2, 3, 4), b]
        yield "mv.default", [a, a[0]]
        yield "dot.default", [a[0], a[1]]
        yield "linear.default", [a, a[:2]]
        yield "linear.default", [a[0], a[:2], a[0, :2]]
        yield "linear.default", [a.expand(2, 3, 4), a[:2], a[0, :2]]
        yield "outer.default", [a[0], a[1, :2]]
        yield "bmm.default", [a.expand(2, 3, 4), b.expand(2, 4, 3)]
        yield "addmm.default", [a[0, :3], a, b]
        if dtype.is_floating_point:
            yield "addmm.default", [a[:, :3], a, b], {"beta": 0.5, "alpha": -2}
            yield ("baddbmm.default", [a[:, :3], a.expand(2, 3, 4), b.expand(2, 4, 3)],
                   {"beta": 0.5, "alpha": 2})
    yield "addmm.default", [t([nan, nan]), ramp(3, 4), ramp(4, 2)], {"beta": 0}
    yield "mm.default", [torch.zeros(3, 0), torch.zeros(0, 2)]
    yield "linear.default", [torch.zeros(0, 4), ramp(2, 4), ramp(2)]
    yield "matmul.default", [ramp(2, 1, 3, 4), ramp(5, 4, 2)]
    for equation, shapes in (("ij,jk->ik", ([2, 3], [3, 4])), ("bij,bjk->bik", ([2, 2, 3], [2, 3, 2])),
                             ("ii->i", ([3, 3],)), ("...ij->...ji", ([2, 2, 3],)), ("i,j->ij", ([2], [3])),
                             ("ij->", ([2, 3],)), ("bhqd,bhkd->bhqk", ([1, 2, 2, 3], [1, 2, 4, 3])),
                             ("ij,ij", ([2, 3], [2, 3]))):
        yield "einsum.default", [equation, [ramp(*shape) for shape in shapes]]


def bool_products():
    flags, more = t([True, False, True]), t([False, True])
    for form in ("addr", "addr_"):
        yield f"{form}.default", [torch.zeros(3, 2, dtype=boolean), flags, more], {"beta": 3, "alpha": 2}
        yield f"{form}.default", [torch.ones(3, 2, dtype=boolean), flags, more], {"beta": 0, "alpha": True}
        yield f"{form}.default", [torch.full((3, 2), float("nan")), ramp(3), ramp(2)], {"beta": 0}
    yield "addr.default", [t(True), flags, ints(2)], {"beta": 3}


def windows():
    x, w, b = ramp(2, 4, 7, 6), ramp(6, 4, 3, 3) * 0.3, ramp(6)
    yield "conv2d.default", [x, w, b]
    yield "conv2d.default", [x, w, b, [2, 1], [1, 0], [1, 2]]
    yield "conv2d.default", [x, ramp(6, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], 2]
    yield "conv2d.default", [x, ramp(4, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 4]  # depthwise
    yield "conv2d.default", [x, ramp(8, 1, 2, 2), None, [2, 2], [0, 0], [1, 1], 4]
    yield "conv2d.default", [x[0], w, b]  # without a batch
    yield "conv2d.default", [x.to(memory_format=torch.channels_last), w, b]
    yield "conv2d.default", [x, ramp(5, 4, 1, 1), None]
    yield "conv2d.default", [ramp(2, 4, 6, 7).transpose(2, 3), w, b]
    for dtype in (f64, f16, bf16):
        yield "conv2d.default", [x.to(dtype), w.to(dtype), b.to(dtype), [2, 2], [1, 1]]
    for padding in ("same", "valid"):
        yield "conv2d.padding", [x, w, b, [1, 1], padding]
        yield "conv2d.padding", [x, ramp(3, 4, 2, 4), None, [1, 1], padding, [2, 1]]
        yield "conv2d.padding", [x, ramp(4, 1, 3, 3), None, [1, 1], padding, [1, 1], 4]
        yield "conv1d.padding", [ramp(2, 3, 8), ramp(4, 3, 3), ramp(4), [1], padding]
        yield "conv1d.padding", [ramp(2, 3, 8), ramp(4, 3, 4), None, [1], padding, [2]]
        yield "conv1d.padding", [ramp(3, 8), ramp(3, 1, 3), None, [1], padding, [1], 3]
        for dtype in (f64, f16, bf16):
            yield ("conv1d.padding",
                   [ramp(2, 3, 8, dtype=dtype), ramp(4, 3, 3, dtype=dtype), None, [1], padding])
            yield ("conv2d.padding",
                   [ramp(1, 2, 5, 5, dtype=dtype), ramp(2, 2, 3, 3, dtype=dtype), None, [1, 1], padding])
    yield "conv3d.default", [ramp(1, 2, 4, 5, 4), ramp(3, 2, 2, 3, 2), ramp(3), [1, 2, 1], [0, 1, 0]]
    yield "conv1d.default", [ramp(2, 4, 9), ramp(4, 2, 3), ramp(4), [2], [1], [2], 2]
    yield "conv_transpose1d.default", [ramp(2, 4, 5), ramp(4, 3, 3), ramp(3), [2], [1], [1]]
    yield "conv_transpose2d.input", [ramp(1, 4, 3, 3), ramp(4, 2, 3, 3), ramp(2), [2, 2], [1, 1], [1, 1]]
    yield "conv_transpose2d.input", [ramp(1, 4, 3, 3), ramp(4, 2, 2, 3), None, [2, 1], [0, 1], [0, 0], 2]
    yield ("conv_transpose2d.input",
           [ramp(1, 4, 3, 3), ramp(4, 2, 2, 2), None, [1, 1], [0, 0], [0, 0], 1, [2, 2]])
    yield ("conv_transpose3d.input",
           [ramp(1, 2, 3, 2, 3), ramp(2, 3, 2, 2, 2), ramp(3), [2, 1, 1], [1, 0, 0], [1, 0, 0]])
    yield ("conv_transpose3d.input",
           [ramp(4, 2, 3, 2), ramp(4, 1, 2, 2, 1), None, [1, 1, 1], [0, 0, 0], [0, 0, 0], 4])
    yield "convolution.default", [x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]
    yield ("convolution.default",
           [ramp(1, 4, 3, 3), ramp(4, 2, 3, 3), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1])
    yield "convolution.default", [ramp(2, 4, 9), ramp(4, 2, 3), None, [2], [1], [1], False, [0], 2]
    y = ramp(2, 3, 7, 6)
    for args in ([[2, 2]], [[3, 3], [2, 2], [1, 1]], [[3, 2], [2, 2], [1, 1], [1, 1], True],
                 [[2, 2], [1, 1], [0, 0], [2, 2]], [[3], [2]]):
        yield "max_pool2d.default", [y, *args]
        yield "max_pool2d_with_indices.default", [y, *args]
        yield "max_pool2d.default", [y[0].to(f64), *args]
    yield "max_pool2d.default", [y.to(memory_format=torch.channels_last), [2, 2]]
    yield "max_pool2d.default", [t([[[[nan, 1.0], [2.0, 3.0]]]]), [2, 2]]
    yield "max_pool2d.default", [ints(1, 1, 4, 4), [2, 2]]
    for args in ([[2, 2]], [[3, 3], [2, 2], [1, 1]], [[3, 3], [2, 2], [1, 1], True],
                 [[3, 3], [2, 2], [1, 1], False, False], [[2, 3], [2, 2], [0, 0], True, True, 5]):
        yield "avg_pool2d.default", [y, *args]
        yield "avg_pool2d.default", [y[0].to(f64), *args]
    for size in ([1, 1], [3, 2], [7, 6], [4, 4], [10, 3]):
        yield "adaptive_avg_pool2d.default", [y, size]
        yield "_adaptive_avg_pool2d.default", [y, size]
        yield "adaptive_max_pool2d.default", [y, size]
    for dtype in (f16, bf16):
        yield "adaptive_avg_pool2d.default", [y.to(dtype), [3, 2]]
        yield "_adaptive_avg_pool2d.default", [y.to(dtype), [3, 2]]
        yield "avg_pool2d.default", [y.to(dtype), [2, 2]]
        yield "max_pool2d.default", [y.to(dtype), [2, 2]]
    z = ramp(2, 3, 8)
    for args in ([[2]], [[3], [2], [1]], [[3], [2], [1], [1], True], [[2], [1], [0], [3]]):
        yield "max_pool1d.default", [z, *args]
        yield "max_pool1d_with_indices.default", [z, *args]
        yield "max_pool1d_with_indices.default", [z[0].to(f64), *args]
    for args in ([[2]], [[3], [2], [1]], [[3], [2], [1], True], [[3], [2], [1], False, False]):
        yield "avg_pool1d.default", [z, *args]
        yield "avg_pool1d.default", [z[0].to(f64), *args]
    yield "adaptive_avg_pool1d.default", [z, [3]]
    yield "adaptive_avg_pool1d.default", [z[0], [5]]


def norms():
    for dtype in (f32, f64, f16, bf16):
        x, c, n = ramp(3, 4, 2, 2, dtype=dtype), ramp(4, dtype=dtype), (ramp(4) + 2).to(dtype)
        mean, var = ramp(4, dtype=dtype), n.abs() + 0.5
        yield "batch_norm.default", [x, c, n, mean, var, False, 0.1, 1e-5, False]
        yield "batch_norm.default", [x, None, None, mean, var, False, 0.1, 1e-3, True]
        yield "batch_norm.default", [x[:, :, 0, 0], c, n, mean, var, False, 0.1, 1e-5, False]
        yield "batch_norm.default", [x, c, n, mean, var, True, 0.1, 1e-5, False]
        yield "batch_norm.default", [x, c, n, None, None, True, 0.1, 1e-5, False]
        yield "native_batch_norm.default", [x, c, n, mean, var, True, 0.1, 1e-5]
        yield "native_batch_norm.default", [x, c, n, mean, var, False, 0.1, 1e-5]
        yield "_native_batch_norm_legit_no_training.default", [x, c, n, mean, var, 0.1, 1e-5]
        yield "_native_batch_norm_legit_no_training.default", [x, None, None, mean, var, 0.1, 1e-3]
        yield "_native_batch_norm_legit_no_training.default", [x[..., 0, 0], c, n, mean, var, 0.1, 1e-5]
        y, w, b = ramp(3, 2, 4, dtype=dtype), ramp(4, dtype=dtype), n
        yield "layer_norm.default", [y, [4], w, b]
        yield "layer_norm.default", [y, [2, 4]]
        yield "layer_norm.default", [y.transpose(0, 1), [4], w, None, 1e-3]
        yield "native_layer_norm.default", [y, [4], w, b, 1e-5]
        yield "native_layer_norm.default", [y, [2, 4], None, None, 1e-5]
        yield "group_norm.default", [x, 2, c, n]
        yield "group_norm.default", [x[:, :, 0], 4]
        yield "native_group_norm.default", [x, c, n, 3, 4, 4, 2, 1e-5]
        yield "_fused_rms_norm.default", [y, [4], w, 1e-6]
        yield "_fused_rms_norm.default", [y, [2, 4], None, None]
        yield "_batch_norm_no_update.default", [x, c, n, mean, var, 0.1, 1e-5]
        yield "_batch_norm_no_update.default", [x[:, :, 0, 0], None, None, mean, var, 0.1, 1e-3]
        yield "_native_batch_norm_legit_functional.default", [x, c, n, mean, var, True, 0.1, 1e-5]
        yield "_native_batch_norm_legit_functional.default", [x, c, n, mean, var, False, 0.1, 1e-5]
        yield "_native_batch_norm_legit.default", [x, c, n, mean, var, True, 0.1, 1e-5]
        yield ("_native_batch_norm_legit.default",
               [t([[-7.9375], [3.609375]], dtype), *t([[-8.5], [-1.765625], [2.34375], [3.296875]], dtype),
                True, 0.5, 1e-5])
        yield "_native_batch_norm_legit.no_stats", [x, c, n, True, 0.1, 1e-5]
        yield "_batch_norm_with_update.default", [x, c, n, mean, var, 0.1, 1e-5]
        yield "rms_norm.default", [y, [4], w]
        yield "rms_norm.default", [y, [2, 4], None, 1e-3]
        yield "rms_norm.default", [y, [4]]
        yield "instance_norm.default", [x, c, n, None, None, True, 0.1, 1e-5, False]
        yield "instance_norm.default", [x, None, None, mean, var, False, 0.1, 1e-5, False]
    yield ("batch_norm.default", [ramp(2, 4, 3, 3).to(memory_format=torch.channels_last), ramp(4), ramp(4),
                                  ramp(4), ramp(4).abs() + 0.5, False, 0.1, 1e-5, False])


def others():
    rows = t([[1.0, 2.0, 3.0], [-inf, -inf, -inf], [inf, 0.0, 1.0], [nan, 0.0, 1.0], [-inf, 0.0, 1.0],
              [1e4, -1e4, 0.0]])
    for dtype in (f32, f64, f16, bf16):
        yield "softmax.int", [rows.to(dtype), 1]
        yield "_softmax.default", [rows.to(dtype), -1, False]
        yield "log_softmax.int", [rows.to(dtype), 1]
        yield "_log_softmax.default", [rows.to(dtype), 1, False]
        yield "softmax.int", [ramp(2, 3, 4, dtype=dtype), 1]
        yield "_safe_softmax.default", [rows.to(dtype), 1]
        yield "_safe_softmax.default", [ramp(2, 3, 4, dtype=dtype), 0, f64]
        for name in ("feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
            for form in (name, name + "_"):
                yield f"{form}.default", [ramp(2, 3, 4, dtype=dtype), 0.5, False]
                yield f"{form}.default", [ramp(3, 2, dtype=dtype).t(), 0.5, False]
        yield "dropout_.default", [ramp(2, 3, dtype=dtype), 0.5, False]
        yield "dropout_.default", [ramp(3, 2, dtype=dtype).t(), 0.0, True]
        yield "softmax.int", [ramp(2, 3, dtype=dtype), 0], {"dtype": f32}
        yield "dropout.default", [ramp(2, 3, dtype=dtype), 0.5, False]
        yield "dropout.default", [ramp(2, 3, dtype=dtype), 0.0, True]
        yield "native_dropout.default", [ramp(2, 3, dtype=dtype), 0.5, False]
        yield "native_dropout.default", [ramp(3, 2, dtype=dtype).t(), 0.25, False]
    yield "dropout.default", [ramp(2, 3).t(), 0.1, False]
    yield "dropout.default", [ramp(4, 6)[1:3, ::2], 0.9, False]
    yield "softmax.int", [ints(2, 3), 1], {"dtype": f32}
    yield "softmax.int", [t(2.0), 0]
    q, k, v = ramp(1, 2, 3, 4), ramp(1, 2, 5, 4, step=0.61), ramp(1, 2, 5, 4, step=0.43)
    causal, mask = ({"is_causal": True},
                    t([[True, False, True, True, False], [False, True] + [False] * 3, [True] * 5]))
    for dtype in (f32, f64, f16, bf16):
        qkv = [q.to(dtype), k.to(dtype), v.to(dtype)]
        yield "scaled_dot_product_attention.default", qkv
        yield "scaled_dot_product_attention.default", qkv, causal
        yield "scaled_dot_product_attention.default", [*qkv, mask]
        yield "scaled_dot_product_attention.default", [*qkv, ramp(3, 5, dtype=dtype)], {"scale": 0.3}
    yield "scaled_dot_product_attention.default", [ramp(1, 4, 3, 4), k, v], {"enable_gqa": True}
    yield "scaled_dot_product_attention.default", [q.transpose(1, 2).contiguous().transpose(1, 2), k, v]
    yield "scaled_dot_product_attention.default", [q[0, 0], k[0, 0], v[0, 0]]
    image = ramp(1, 2, 3, 4)
    for size, scale in (([5, 7], None), ([2, 2], None), (None, [2.0, 2.0]), (None, [1.5, 0.5]),
                        ([3, 4], None)):
        yield "upsample_nearest2d.vec", [image, size, scale]
        yield "upsample_nearest2d.vec", [image.to(f64), size, scale]
        for corners in (True, False):
            yield "upsample_bilinear2d.vec", [image, size, corners, scale]
            yield "upsample_bilinear2d.vec", [image.to(f16), size, corners, scale]
    for dtype in (f32, f64, f16, bf16):
        line, plane, volume = (ramp(1, 2, 5, dtype=dtype), ramp(1, 2, 3, 4, dtype=dtype),
                               ramp(1, 2, 3, 2, 4, dtype=dtype))
        for rank, source, sizes in ((1, line, [8]), (2, plane, [5, 2]), (3, volume, [2, 4, 5])):
            for size, scale in ((sizes, None), (None, [1.5] * rank), (None, [0.75] * rank)):
                out = size or [int(n * 1.5) for n in source.shape[2:]]
                smooth = {1: "upsample_linear1d", 2: "upsample_bicubic2d", 3: "upsample_trilinear3d"}[rank]
                for corners in (True, False):
                    yield f"{smooth}.vec", [source, size, corners, scale]
                    yield f"{smooth}.default", [source, out, corners]
                for name in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
                    yield f"{name}.vec", [source, size, scale]
                    yield f"{name}.default", [source, out]
        for groups in (1, 2, 3):
            yield "channel_shuffle.default", [ramp(1, 6, 2, 2, dtype=dtype), groups]
            yield "native_channel_shuffle.default", [ramp(1, 6, 2, 2, dtype=dtype), groups]
        for matrix in (ramp(3, 4, dtype=dtype), ramp(4, 3, dtype=dtype).t()):
            yield "fliplr.default", [matrix]
            yield "flipud.default", [matrix]
            yield "narrow_copy.default", [matrix, 1, 1, 2]
            yield "diagonal_scatter.default", [matrix, ramp(3, dtype=dtype), 1]
            yield "diff.default", [matrix, 1, 0]
            yield "meshgrid.default", [[matrix[0], matrix[1, :2]]]
            yield "meshgrid.indexing", [[matrix[0], matrix[1, :2]]], {"indexing": "xy"}
            yield "meshgrid.indexing", [[matrix[0], matrix[1, :2]]], {"indexing": "ij"}
            yield "tensordot.default", [matrix, matrix, [0], [0]]
            yield "tensordot.default", [matrix, matrix.t(), [1, 0], [0, 1]]
            yield "ger.default", [matrix[0], matrix[1, :2]]
            yield "addr.default", [matrix, matrix[:, 0], matrix[0]]
    yield "upsample_nearest2d.vec", [image.to(memory_format=torch.channels_last), [5, 7], None]
    yield "upsample_bilinear2d.vec", [image.to(memory_format=torch.channels_last), [5, 7], False, None]
    yield "upsample_nearest2d.vec", [ints(1, 2, 3, 4, dtype=u8, low=0), [5, 7], None]
    mixed = t([[3.0, nan, 1.0, 2.0, inf], [0.0, -0.0, -inf, 5.0, 4.0]])
    for descending in (False, True):
        yield "sort.default", [mixed, -1, descending]
        yield "argsort.default", [mixed[:1], -1, descending]
        yield "sort.stable", [t([2, 1, 2, 1, 2], i64)], {"stable": True, "dim": 0, "descending": descending}
        yield "sort.stable", [t([True, False, True])], {"stable": True, "descending": descending}
        yield ("argsort.stable", [t([2, 1, 2, 1, 2], i64)],
               {"stable": True, "dim": 0, "descending": descending})
        yield "topk.default", [mixed, 3, -1, descending]
        yield "topk.default", [t([5, 1, 4], i32), 2, 0, descending]
        yield "sort.default", [ramp(4, 3).t(), 0, descending]
    for dtype in (f32, f64, f16, bf16, i64, i32, u8):
        unique = (torch.arange(12) * 7 % 12).reshape(3, 4).to(dtype)
        for dim, keepdim in ((0, False), (-1, True)):
            yield "median.dim", [unique, dim, keepdim]
            yield "kthvalue.default", [unique, 2, dim, keepdim]
        yield "median.default", [unique]
        yield "median.default", [unique.t()[1:]]
    yield "median.default", [t([nan, 1.0, 2.0])]
    shapes = (ramp(2, 3), torch.zeros(0, 4), ramp(2, 3, 4).permute(2, 0, 1), ints(5), ramp(1, 2, 3, 4))
    for source in shapes:
        for dim in (0, -1):
            yield "sym_size.int", [source, dim]
        yield ("_assert_tensor_metadata.default", [source],
               {"dtype": source.dtype, "device": cpu, "layout": torch.strided})
        yield "_assert_tensor_metadata.default", [source, list(source.shape), list(source.stride())]


def plumbing():
    """Calls between tensors and numbers, and assertions that hold."""
    sources = (ramp(2, 3), torch.zeros(0, 4), ramp(2, 3, 4).permute(2, 0, 1), ints(5), ramp(4, 6)[1:3, ::2],
               t(True), t(2, u8), ramp(3, dtype=f16))
    for source in sources:
        yield "sym_numel.default", [source]
        yield "sym_storage_offset.default", [source]
        if source.dim():
            yield "sym_stride.int", [source, 0]
            yield "sym_stride.int", [source, -1]
    for number in (t(2.5), t([3], i64), t(True), t(-1.5, f64), t(0.1, bf16), t([[7]], u8), t(-3, i8),
                   t(inf, f16)):
        yield "item.default", [number]
        yield "_local_scalar_dense.default", [number]
    for value in (True, 1, 2.5, 7):
        yield "_assert_scalar.default", [value, "must hold"]
        yield "_assert_scalar.default", [value, ""]
    for value in (t(True), t(2.5), t([1], i64), t([[True]]), t(-1, i32), t(3, u8), t(1.0, f16), t(2.0, f64)):
        yield "_assert_async.default", [value]
        yield "_assert_async.msg", [value, "must hold"]
    for size in (0, 3, 2, 100):
        for bounds in ({"min": 0}, {"max": 100}):
            yield "sym_constrain_range.default", [size], bounds
            yield "sym_constrain_range_for_size.default", [size], bounds


def corners():
    """Where layouts are kept, where the lowest integer stands, where one tensor is written by a
    mask."""
    nhwc = ramp(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    ndhwc = ramp(2, 3, 2, 3, 2).contiguous(memory_format=torch.channels_last_3d)
    for shifts, dims in (([1], [1]), ([3], [1]), ([1, 2], [1, 2]), ([1, 4], [1, 2]), ([7], [])):
        yield "roll.default", [nhwc, shifts, dims]
    yield "roll.default", [ndhwc, [1], [2]]
    for dim in range(5):
        yield "stack.default", [[nhwc, nhwc + 1], dim]
    yield "stack.default", [[nhwc, ramp(2, 3, 4, 5)], 1]
    yield "stack.default", [[ramp(4, 3, 2).permute(2, 0, 1)] * 2, 3]
    yield "stack.default", [[ndhwc, ndhwc], 2]
    for tensor in (nhwc, ramp(4, 3, 2).permute(2, 0, 1), nhwc[:, ::2]):
        yield "index_fill.int_Scalar", [tensor, 1, torch.tensor([0, -1]), 5]
    yield "index_fill_.int_Scalar", [ramp(3, 4), 0, torch.tensor([-3, 2]), 1.5]
    at, number = torch.tensor([0, -1]), torch.tensor(2.5)
    for dtype in (f32, f64, f16, bf16, i8, torch.int16, i32, i64, u8, torch.bool):
        yield "index_fill.int_Tensor", [ramp(3, 2).to(dtype), 0, at, number]
        yield "index_fill_.int_Tensor", [ramp(3, 2).to(dtype), 1, at, torch.tensor(3)]
    for value in (True, float("nan"), -7):
        yield "index_fill.int_Tensor", [ramp(3, 2), 1, at, torch.tensor(value)]
    yield "index_fill.int_Tensor", [nhwc, 1, at, number]
    yield "index_fill.int_Tensor", [ramp(3, 2), 1, at[:0], number]
    yield "index_fill_.int_Tensor", [torch.tensor(3.0), 0, at[:1], number]
    yield "_pad_circular.default", [nhwc, [1, 1, 1, 1]]
    yield "_pad_circular.default", [ndhwc, [1, 0, 1, 1, 0, 1]]
    for name in ("gcd", "lcm"):
        yield f"{name}.default", [t([-128, 7, 0, 6, -127], i8)[:, None], t([7, 0, 6, 12, -128], i8)]
        yield f"{name}.default", [t([-(2**31), -(2**31)], i32), t([7, 6], i32)]
    for left, right, dims in (((2, 1), (3, 4), ([1], [0])), ((2, 3), (1, 4), ([1], [0])),
                              ((2, 1, 3, 4), (4, 1, 5, 3), ([1, 3, 2], [0, 1, 3]))):
        yield "tensordot.default", [ramp(*left), ramp(*right), *dims]
    yield "tensordot.default", [t(2.0), ramp(2, 3), [], []]
    for dtype in (i8, u8, i32, i64, f32):
        yield "median.default", [torch.empty(0, dtype=dtype)]
    mask = t([True, False, True])
    for value in (torch.tensor(5), torch.tensor(True), torch.tensor([1.5], dtype=f64), torch.tensor([[2]])):
        yield "index_put.default", [ramp(3, 2), [mask], value]
        yield "index_put_.default", [ramp(2, 3, 2), [None, mask], value]
        yield "index_put_.default", [ints(3, dtype=i8), [mask], value]
    yield ("index_put_.default",
           [ramp(2, 3), [t([[True, False, True], [False, False, True]])], torch.tensor(7)])
    pair = t([True, False])
    for tensor, items in ((ramp(2, 2), [pair, None]), (ramp(2, 2, 2), [None, pair, None]),
                          (ramp(2, 2, 2, 2), [pair, None, None])):
        yield "index_put.default", [tensor, items, t(5.0)]
        yield "index_put_.default", [tensor, items, t(5.0)]
    for tensor in (nhwc, ramp(4, 3).t(), ramp(4, 6)[:, ::2], ramp(3, 1).expand(3, 4)):
        yield "index_put.default", [tensor, [ramp(*tensor.shape) > 0], t(1.0)]
    for dtype in (i8, i32, i64):
        yield ("index_add.default", [ints(2, dtype=dtype), 0, t([0, 1], i64), ints(2, dtype=dtype)],
               {"alpha": 2.5})
        yield ("lcm.default", [t([65537, 127, 2**31 - 1, 46341], i64).to(dtype),
                               t([65535, 126, 2**31 - 2, 46342], i64).to(dtype)])
    for alpha in (2**53 + 1, 2**63 - 1):
        yield "index_add.default", [ints(2), 0, t([0, 1], i64), t([1, 3], i64)], {"alpha": alpha}
    yield ("index_add.default", [ramp(2, dtype=f16), 0, t([0, 1], i64), ramp(2, start=2.0, dtype=f16)],
           {"alpha": 0.1})
    for reduce in ("prod", "mean", "amax", "amin"):
        for dtype, kept in ((f16, True), (bf16, False), (i64, False), (i8, True)):
            values = ints if dtype in (i64, i8) else ramp
            yield ("index_reduce.default", [values(2, 3, dtype=dtype), 1, t([2, 0, 2, 2], i64),
                                            values(2, 4, dtype=dtype), reduce], {"include_self": kept})
        if reduce != "mean":
            yield "index_reduce.default", [ramp(2, 3) > 0, 1, t([2, 0, 2], i64), ramp(2, 3) < 0.3, reduce], {}
    for name in ("_is_all_true.default", "_is_any_true.default"):
        for shape in ((), (0, ), (1, ), (7, ), (2, 3), (3, 0, 2), (4, 33)):
            for least in (-100.0, 1.0, 100.0):
                yield name, [ramp(*shape) > least], {}
        yield name, [(ramp(3, 4) > 0).t()], {}
    causal = [ramp(1, 2, 3, 4), ramp(1, 2, 3, 4, step=0.5), ramp(1, 2, 3, 4, step=0.7)]
    yield "scaled_dot_product_attention.default", [*causal, ramp(3, 3), 0.0, True]
    yield "scaled_dot_product_attention.default", [*causal, ramp(1, 1, 3, 3) > 0, 0.0, True]
    for batch in ((1, 2), (2,)):  # no keys
        yield ("scaled_dot_product_attention.default",
               [ramp(*batch, 3, 4), ramp(*batch, 0, 4), ramp(*batch, 0, 4), ramp(3, 0), 0.0, True])


def attacks():
    """What was found by comparing at the edges of dtypes and shapes."""
    for dim, index in ((0, [-1]), (0, [-4, 3, 7]), (None, [2])):
        yield "take_along_dim.default", [t([1.0, 2.0, 3.0]), t(index, i64)], {"dim": dim}
    yield "take_along_dim.default", [ints(2, 3), t([[-1], [-5]], i64), 1]
    yield "take_along_dim.default", [ramp(2, 3), t([[-1, 2, 3]], i64), 0]
    for name in ("softmax.int", "log_softmax.int", "_safe_softmax.default"):
        yield name, [t([2**31 - 1, 3], i32), 0], {"dtype": f16}
        yield name, [t([7e4, 3.0]), 0], {"dtype": f16}
        yield name, [t([1 / 3, 0.1], f64), 0], {"dtype": bf16}
        for dtype in (i32, i64, boolean):
            yield name, [torch.empty(2, 0, dtype=dtype), 1]
        yield name, [torch.empty(0), 0], {"dtype": i32}
    for dtype in (i8, u8, i32, i64):
        for start, end, step in ((1, 10, 0.3), (10, 1, -0.3), (1.5, 5, 1), (1.7, 5.2, 1.9), (-1.5, 5, 1)):
            yield "arange.start_step", [start, end, step], {"dtype": dtype}
    for source in (t([inf]), t([[inf]]), t(inf), t([inf, 1.0]), torch.full((3, 4), inf)[:, ::2],
                   torch.full((3, 4), inf).t(), t([inf], f64)):
        yield "gelu.default", [source]
    infinite = t([[1.0, 2.0, inf], [inf, 2.0, 3.0], [3.0, 4.0, 5.0], [1.0, -inf, 2.0]])
    for dtype in (f32, f64, bf16):
        for name in ("std_mean", "var_mean"):
            yield f"{name}.correction", [infinite.to(dtype), [1]]
            yield f"{name}.correction", [infinite.to(dtype), [0]], {"correction": 0}
            yield f"{name}.default", [infinite[2:].to(dtype)]
            yield f"{name}.default", [t([1.0, 2.0, inf], dtype)]
    yield "var_mean.default", [t([1.5e308, 1.7e308], f64)]
    for weight in (torch.zeros(1, 0, 17, 17), torch.zeros(5, 0, 3, 3)):
        for bias in (None, torch.ones(weight.shape[0])):
            yield "conv2d.default", [torch.zeros(1, 0, 20, 20), weight, bias]
    yield "conv1d.default", [torch.zeros(2, 0, 8), torch.zeros(4, 0, 3)]
    yield "conv2d.default", [torch.zeros(0, 8, 8), torch.zeros(4, 0, 3, 3), None, [1, 1], [0, 0], [1, 1], 2]
    extremes = t([[[2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 5, 3, -(2**63), 0]]], i64)
    yield "avg_pool1d.default", [extremes, [2]]
    for x, y in ((nan, 1.0), (1.0, nan), (inf, inf), (-inf, -inf), (inf, -inf), (-inf, 1.0)):
        yield "logaddexp.default", [t([x]), t([y])]
        yield "logaddexp2.default", [t([x, x], f64), t([y, 1.0], f64)]
    for equation, operand in (("i->", t([3], i32)), ("ij->i", t([[3], [4]], u8)), ("i->", t([True])),
                              ("ij->", ints(2, 3, dtype=i8))):
        yield "einsum.default", [equation, [operand]]
    for shape in ((1, 0, 6, 6), (0, 9, 3, 3), (1, 4, 0, 6)):
        yield "pixel_unshuffle.default", [torch.zeros(shape), 3]
    yield "addr.default", [torch.ones(2, 2, dtype=f64), t([126, 3], i8), t([4, 2], i8)]
    yield "concat.default", [[torch.empty(0), torch.empty(0)], 1]
    yield "cat.default", [[torch.empty(0), torch.empty(0)], -3]
    for alpha in (2**31, -(2**31) + 1):
        yield "sub.Tensor", [t([1, -5], i32), t([6, 7], i32)], {"alpha": alpha}
        yield "rsub.Tensor", [t([1, -5], i32), t([6, 7], i32)], {"alpha": alpha}
    odd, other = t([[inf, 1.0], [2.0, 3.0]]), t([[1.0, 2.0], [3.0, nan]])
    for dtype in (f32, f64):
        for beta in (0, 2):
            yield ("addmm.default", [ramp(2, 2, dtype=dtype), odd.to(dtype), other.to(dtype)],
                   {"alpha": 0, "beta": beta})
            yield ("addmv.default", [ramp(2, dtype=dtype), odd.to(dtype), other[1].to(dtype)],
                   {"alpha": 0, "beta": beta})
            yield ("addbmm.default", [ramp(2, 2, dtype=dtype), odd[None].to(dtype), other[None].to(dtype)],
                   {"alpha": 0, "beta": beta})
    for shape in ([1], [], [1, 1]):
        yield "full.default", [shape, 2**31], {"dtype": f16}
        yield "full_like.default", [torch.ones(shape, dtype=f16), -1e9]
        yield "fill.Scalar", [torch.ones(shape, dtype=f16), 2**31]
    yield "fill_.Scalar", [torch.ones(4, dtype=f16)[2:3], 1e9]
    yield "scalar_tensor.default", [1e30], {"dtype": f16}
    yield "new_full.default", [ramp(2), [1], 1e9], {"dtype": f16}
    yield "roll.default", [torch.empty(2, 0), [3], [5]]
    for order in (300, -400, 2**31):
        yield "linalg_vector_norm.default", [t([[0.07], [3.0]]), order, [1]]
    yield "xlogy.Tensor", [t([nan, 0.0, 2.0]), t([-1.0, nan, 0.0])]
    for steps in (0, 1):
        yield "linspace.default", [-(2**31), 10, steps], {"dtype": f16}
    yield "hardtanh.default", [ints(2, 3, dtype=u8, low=0), -0.5, 2.75]
    yield "hardtanh.default", [ints(2, 3, dtype=i8), -2.75, 2.75]
    yield "linspace.default", [3, -3, 7], {"dtype": u8}
    yield "linspace.default", [-1, 200, 4], {"dtype": u8}


def losses():
    """Each reduction, half types, values at the bends, ignored classes, weights."""
    a, b = ramp(4, 5), ramp(4, 5, start=0.3, step=0.53)
    pairs = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss",
             "hinge_embedding_loss")
    for name in pairs:
        for dtype in (f32, f64, bf16, f16):
            for reduction in (0, 1, 2):
                kwargs = {"reduction": reduction}
                if name == "kl_div":
                    yield f"{name}.default", [a.abs().log().to(dtype), b.abs().to(dtype)], kwargs
                    yield f"{name}.default", [a.to(dtype), b.to(dtype)], {**kwargs, "log_target": True}
                elif name == "hinge_embedding_loss":
                    yield f"{name}.default", [a.to(dtype), b.sign().to(dtype), 0.7], kwargs
                else:
                    yield f"{name}.default", [a.to(dtype), b.to(dtype)], kwargs
        yield f"{name}.default", [ramp(2, 0), ramp(2, 0)]
        yield f"{name}.default", [ramp(3, 4), ramp(4, 3).t()], {"reduction": 0}
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        yield f"{name}.default", [ramp(3, 1), ramp(4)], {"reduction": 0}
        yield f"{name}.default", [ramp(3), ramp(3, dtype=f64)]
        yield f"{name}.default", [t([nan, inf, 0.0, 1.0]), t([0.0, 1.0, -inf, 0.0])], {"reduction": 0}
    for beta in (0.0, 0.25, 3.0):
        yield "smooth_l1_loss.default", [a, b], {"reduction": 0, "beta": beta}
    for delta in (0.25, 3.0):
        yield "huber_loss.default", [a, b], {"reduction": 0, "delta": delta}
    for log_input in (True, False):
        for full in (True, False):
            for reduction in (0, 1, 2):
                yield "poisson_nll_loss.default", [a.abs(), b.abs() * 2, log_input, full, 1e-8, reduction]
    for reduction in (0, 1, 2):
        yield "margin_ranking_loss.default", [a, b, ramp(4, 5, step=0.71).sign(), 0.25, reduction]
        yield "cosine_embedding_loss.default", [a, b, t([1.0, -1.0, 1.0, -1.0]), 0.1, reduction]
        yield "triplet_margin_loss.default", [a, b, a.flip(0), 1.0, 2.0, 1e-6, False, reduction]
        yield "triplet_margin_loss.default", [a, b, a.flip(0), 0.5, 1.0, 1e-6, True, reduction]
        labels, weight = torch.tensor([0, 4, 2, 2]), ramp(5).abs() + 0.1
        for p in (1, 2):
            yield "multi_margin_loss.default", [a, labels, p, 0.75, None, reduction]
            yield "multi_margin_loss.default", [a, labels, p, 1.0, weight, reduction]
        yield "multi_margin_loss.default", [a[0], labels[1], 1, 1.0, None, reduction]
        listed = torch.tensor([[0, 4, 2, -1, 3], [-1, 0, 1, 2, 3], [2, 2, -1, -1, -1], [4, 3, 2, 1, 0]])
        for dtype in (f32, f64, bf16, f16):
            yield "multilabel_margin_loss.default", [a.to(dtype), listed, reduction]
        yield "multilabel_margin_loss.default", [a[0], listed[0], reduction]
        for dtype in (f32, bf16, f16):
            share, goal = (a / 3 + 0.5).clamp(0, 1).to(dtype), (b / 3 + 0.5).clamp(0, 1).to(dtype)
            yield "binary_cross_entropy.default", [share, goal], {"reduction": reduction}
            yield "binary_cross_entropy.default", [share, goal, weight.to(dtype)], {"reduction": reduction}
            yield "binary_cross_entropy_with_logits.default", [a.to(dtype), goal], {"reduction": reduction}
        yield "binary_cross_entropy_with_logits.default", [a, goal.to(f32), weight, weight + 1, reduction]
        logs = ramp(4, 5).log_softmax(1)
        for target in (labels, torch.tensor([0, -100, 2, 4]), torch.tensor([1, 1, 1, 1])):
            for weights in (None, weight):
                for name in ("nll_loss", "nll_loss_nd", "nll_loss_forward"):
                    yield f"{name}.default", [logs, target, weights, reduction, -100]
                yield "nll_loss_nd.default", [logs, target, weights, reduction, 1]
                for smoothing in (0.0, 0.1):
                    yield "cross_entropy_loss.default", [a, target, weights, reduction, -100, smoothing]
                    yield "cross_entropy_loss.default", [a.to(bf16), target, None, reduction, 2, smoothing]
        many = torch.full((4,), -100)
        yield "cross_entropy_loss.default", [a, many, None, reduction]
        yield "cross_entropy_loss.default", [a[0], labels[1], weight, reduction]
        yield "nll_loss_nd.default", [logs[0], labels[1], None, reduction]
        for smoothing in (0.0, 0.3):
            yield "cross_entropy_loss.default", [a, b.softmax(1), weight, reduction, -100, smoothing]
            yield "cross_entropy_loss.default", [a[0], b.softmax(1)[0], None, reduction, -100, smoothing]
        image, mask = ramp(2, 3, 4, 5), ints(2, 4, 5, low=0, high=3)
        for weights in (None, weight[:3]):
            yield "cross_entropy_loss.default", [image, mask, weights, reduction, 1]
            yield "nll_loss2d.default", [image.log_softmax(1), mask, weights, reduction, 1]
            yield "nll_loss_nd.default", [image.log_softmax(1), mask, weights, reduction, -100]
            yield "nll_loss2d_forward.default", [image.log_softmax(1), mask, weights, reduction, 1]
        yield "cross_entropy_loss.default", [ramp(2, 3, 7), ints(2, 7, low=0, high=3), None, reduction]
        yield "nll_loss_nd.default", [logs, labels.to(u8), None, reduction]
    for dtype in (f16, bf16):  # rows enough that the order of rounded sums shows
        rows, own, weight = ramp(90, 3, step=0.37).to(dtype), ints(90, low=0, high=3), t([0.3, 1.7, 0.9])
        yield "log_softmax.int", [rows, 1]
        yield "_log_softmax.default", [rows.t(), 0, False]
        for reduction in (1, 2):
            yield "nll_loss.default", [rows, own, None, reduction, -100]
            yield "nll_loss_forward.default", [rows, own, weight.to(dtype), reduction, 1]
            yield "cross_entropy_loss.default", [rows, own, None, reduction, 2, 0.1]


def composites():
    """Operators that are expressions of others: distances, norms, shapes."""
    a, b = ramp(4, 5), ramp(4, 5, start=0.3, step=0.53)
    for dtype in (f32, f64, bf16, f16):
        x, y = a.to(dtype), b.to(dtype)
        for p in (1.0, 2.0, 3.0, inf):
            yield "pairwise_distance.default", [x, y, p]
            yield "dist.default", [x, y, p]
        yield "cosine_similarity.default", [x, y]
        yield "cosine_similarity.default", [x, y, 0]
        for dim in (-1, 0, 1):
            yield "norm_except_dim.default", [x, 2, dim]
            shape = {-1: (), 0: (4, 1), 1: (1, 5)}[dim]
            if dim != -1:
                yield "_weight_norm.default", [x, ramp(*shape).to(dtype), dim]
                yield "_weight_norm_interface.default", [x, ramp(*shape).to(dtype), dim]
        yield "renorm.default", [x, 2, 0, 1.5]
        yield "renorm.default", [x, 1.0, 1, 0.5]
    yield "_weight_norm.default", [ramp(4, 3, 5), ramp(4, 1, 1)]
    yield "_weight_norm.default", [ramp(4, 3, 5), ramp(1, 1, 5), 2]
    yield "cosine_similarity.default", [ramp(2, 1, 5), ramp(3, 5)]
    yield "cosine_similarity.default", [torch.zeros(2, 3), ramp(2, 3)]
    yield "cosine_similarity.default", [ramp(3), ramp(3), -1, 0.5]
    for p in (0.0, 0.5, 1.0, 2.0, inf):
        yield "cdist.default", [ramp(3, 4), ramp(5, 4), p]
        yield "_cdist_forward.default", [ramp(2, 3, 4), ramp(2, 5, 4), p, None]
    for mode in (None, 1, 2):
        yield "cdist.default", [ramp(30, 4), ramp(3, 4), 2.0, mode]
    yield "cdist.default", [ramp(2, 1, 3, 4), ramp(3, 5, 4)]
    yield "cdist.default", [ramp(0, 4), ramp(5, 4)]
    yield "_euclidean_dist.default", [ramp(3, 4), ramp(5, 4)]
    for order in (None, 0, 1, -1, 2, inf, -inf, 3.5):
        yield "linalg_norm.default", [ramp(7), order]
        yield "linalg_norm.default", [ramp(3, 4), order, [1]]
        if order not in (0, 2, 3.5):
            yield "linalg_norm.default", [ramp(3, 4), order], {"keepdim": True}
            yield "linalg_norm.default", [ramp(2, 3, 4), order, [0, 2]]
        if order not in (None, 0, 2, 3.5):
            yield "linalg_matrix_norm.default", [ramp(2, 3, 4), order]
            yield "linalg_matrix_norm.default", [ramp(2, 3, 4), order, [2, 0], True]
    for keepdim in (False, True):
        yield "linalg_norm.ord_str", [ramp(3, 4), "fro", None, keepdim]
        yield "linalg_norm.ord_str", [ramp(2, 3, 4), "fro", [2, 0], keepdim]
        yield "linalg_matrix_norm.str_ord", [ramp(2, 3, 4), "fro", [-2, -1], keepdim]
    yield "linalg_matrix_norm.str_ord", [ramp(3, 4, dtype=bf16)], {"dtype": f32}
    yield "linalg_norm.default", [ramp(2, 3, 4)], {"dtype": f64}
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (3,), (2, 3), (2, 3, 4), (2, 0), (1, 2, 3, 4)):
            yield f"{name}.default", [ramp(*shape)]
        yield f"{name}.default", [ints(2, 3).t()]
        yield f"{name}.Sequence", [[t(1.5), ramp(3), ints(2, 3)]]
        for n in (1, 2, 3, 4, 5, 6, 7):
            yield f"{name}.Sequence", [[ramp(*shape) for shape in ((), (2,), (2, 3), (1, 2, 3), (4,), (0,),
                                                                   ())[:n]]]
    yield "broadcast_tensors.default", [[ramp(3, 1), ramp(4), t(2.0)]]
    yield "broadcast_tensors.default", [[ramp(3, 1)]]
    yield "broadcast_tensors.default", [[ints(2, 1, 3), ramp(1, 4, 1), ramp(3) > 0]]
    yield "block_diag.default", [[ramp(2, 3), t(5.0), ramp(4), ramp(3, 1)]]
    yield "block_diag.default", [[ints(2, 2), ramp(1, 3)]]
    yield "block_diag.default", [[ramp(0, 2), ramp(2, 2), ramp(0)]]
    yield "cartesian_prod.default", [[ints(3), ints(2)]]
    yield "cartesian_prod.default", [[ramp(3), ramp(2), ramp(4)]]
    yield "cartesian_prod.default", [[ramp(3)]]
    for shapes in (((2, 3), (4, 1)), ((3,), (2, 2)), ((), (3,)), ((2, 1, 3), (2, 2)), ((0, 2), (3, 1))):
        yield "kron.default", [ramp(*shapes[0]), ramp(*shapes[1])]
    yield "kron.default", [ints(2, 2), ramp(2, 2, dtype=f64)]
    for offset in (0, 1, -2):
        yield "diag.default", [ramp(4), offset]
        yield "diag.default", [ramp(4, 6), offset]
        yield "diag.default", [ints(5, 3).t(), offset]
        yield "diag_embed.default", [ramp(2, 3), offset]
        yield "diag_embed.default", [ints(2, 3), offset, 0, 2]
        yield "diag_embed.default", [ramp(3), offset, 1, 0]
    for shape in ((4, 3), (3, 4), (7, 2), (9, 2), (3, 3, 3)):
        for wrap in (False, True):
            yield "fill_diagonal_.default", [ramp(*shape), 5.5, wrap]
    yield "fill_diagonal_.default", [ramp(4, 6).t(), 2]
    yield "fill_diagonal_.default", [ramp(6, 6)[1:5, ::2], -1]
    yield "fill_diagonal_.default", [ints(3, 3), 7]
    for k in (0, 1, 2, 3, -1, 5):
        yield "rot90.default", [ramp(2, 3), k]
        yield "rot90.default", [ramp(2, 3, 4), k, [2, 0]]
    for dtype in (f32, f16, i64, i8, boolean):
        yield "trace.default", [(ramp(4, 5) * 3).to(dtype)]
    yield "trace.default", [ramp(0, 3)]
    yield "unfold_copy.default", [ramp(8), 0, 3, 2]
    yield "unfold_copy.default", [ramp(3, 8).t(), 0, 2, 1]
    mask = ramp(3, 4) > 0
    yield "masked_scatter.default", [ramp(3, 4), mask, ramp(20)]
    yield "masked_scatter.default", [ints(2, 3, 4), mask, ints(4, 6)]
    yield "masked_scatter.default", [ramp(4), mask, ramp(3, 4, start=9)]
    yield "masked_scatter.default", [ramp(3, 4), torch.zeros(3, 4, dtype=boolean), ramp(0)]
    yield "masked_scatter.default", [ramp(4, 3).t(), mask, ramp(12).flip(0)]


def numeric():
    """Comparison within a tolerance, powers, integrals, products, windows, rounding to levels."""
    a, b = ramp(4, 5), ramp(4, 5, start=0.3, step=0.53)
    near = a + t([0.0, 1e-6, 1e-4, 0.1, 0.0])
    for dtype in (f32, f64, bf16):
        yield "isclose.default", [a.to(dtype), near.to(dtype)]
        yield "isclose.default", [a.to(dtype), near.to(dtype), 1e-3, 1e-2]
    special = t([nan, inf, -inf, 1.0, nan])
    for equal_nan in (False, True):
        yield "isclose.default", [special, t([nan, inf, inf, 1.0, 2.0]), 1e-5, 1e-8, equal_nan]
        yield "isclose.default", [special, special, 0.0, 0.0, equal_nan]
    yield "isclose.default", [ints(3, 4), ints(3, 4) + ints(4, low=0, high=2), 0.1, 0.5]
    yield "isclose.default", [ramp(3, 1), ramp(4)]
    for dtype in (f32, bf16, i64):
        yield "float_power.Tensor_Tensor", [(a.abs() * 3).to(dtype), b.to(dtype)]
        yield "float_power.Tensor_Scalar", [(a.abs() * 3).to(dtype), 2.5]
        yield "float_power.Scalar", [2, (b * 3).to(dtype)]
        yield "ldexp.Tensor", [a.to(dtype), ints(5)]
    for dim in (None, [0], [1], [0, 1]):
        for keepdim in (False, True):
            holes = torch.where(ramp(4, 5) > 1, t(nan), ramp(4, 5))
            yield "nanmean.default", [holes, dim, keepdim]
            yield "nanmean.default", [holes.to(f16), dim, keepdim]
    yield "linalg_vecdot.default", [a, b]
    yield "linalg_vecdot.default", [a, b], {"dim": 0}
    yield "linalg_vecdot.default", [ints(3, 1, 4), ints(2, 4)]
    for name in ("trapezoid", "trapz", "cumulative_trapezoid"):
        for dim in (-1, 0):
            yield f"{name}.dx", [a], {"dim": dim}
            yield f"{name}.dx", [a], {"dx": 0.5, "dim": dim}
            yield f"{name}.x", [a, ramp(5 if dim else 4, start=0, step=0.2)], {"dim": dim}
            yield f"{name}.x", [a, b], {"dim": dim}
        yield f"{name}.dx", [ints(6)]
        yield f"{name}.dx", [ramp(3, 1)]
        yield f"{name}.x", [ramp(2, 3, 4), ramp(3, 4)], {"dim": 1}
    yield "trapezoid.dx", [ramp(3, 0)]
    for dtype in (f32, f64, bf16, i64):
        x, y = (ramp(4, 3) * 3).to(dtype), (ramp(4, 3, start=0.3) * 3).to(dtype)
        yield "linalg_cross.default", [x, y]
        yield "cross.default", [x, y]
        yield "cross.default", [x, y, 1]
    yield "linalg_cross.default", [ramp(3, 1, 4), ramp(1, 2, 4)[:, :, :].expand(3, 2, 4)], {"dim": 0}
    yield "linalg_cross.default", [ramp(4, 1, 3), ramp(2, 3).expand(1, 2, 3)]
    yield "cross.default", [ramp(3, 5, 3), ramp(3, 5, 3)]
    for bias in (None, ramp(2)):
        yield "bilinear.default", [ramp(4, 3), ramp(4, 5), ramp(2, 3, 5), bias]
        yield "bilinear.default", [ramp(2, 4, 3), ramp(2, 4, 5), ramp(2, 3, 5), bias]
        yield "bilinear.default", [ramp(3), ramp(5), ramp(2, 3, 5), bias]
    yield "bilinear.default", [ramp(4, 3, dtype=f64), ramp(4, 5, dtype=f64), ramp(1, 3, 5, dtype=f64)]
    for dims in (([1, 3], [0], [1, 2], [2, 3]), ([1, 3], [0], [1, 2], [3]), ([1, 3], [0], [1, 2], [0, 2])):
        yield "_trilinear.default", [ramp(4, 3), ramp(2, 3, 5), ramp(4, 5), *dims]
        yield "_trilinear.default", [ramp(4, 3, dtype=f64), ramp(2, 3, 5, dtype=f64), ramp(4, 5, dtype=f64),
                                     *dims]
    for corners in (False, True):
        for n, h, w in ((2, 3, 4), (1, 1, 5), (2, 4, 1), (1, 2, 2)):
            yield "affine_grid_generator.default", [ramp(n, 2, 3), [n, 3, h, w], corners]
        yield "affine_grid_generator.default", [ramp(2, 3, 4), [2, 1, 2, 3, 4], corners]
        yield "affine_grid_generator.default", [ramp(2, 2, 3, dtype=f64), [2, 1, 3, 3], corners]
    for kernel, dilation, padding, stride in (([2, 3], [1, 1], [0, 0], [1, 1]),
                                              ([3, 3], [1, 2], [1, 2], [2, 1]),
                                              ([1, 1], [1, 1], [0, 1], [2, 2]),
                                              ([5, 6], [1, 1], [0, 0], [1, 1])):
        yield "im2col.default", [ramp(2, 3, 5, 6), kernel, dilation, padding, stride]
        yield "im2col.default", [ramp(3, 6, 5).mT, kernel, dilation, padding, stride]
        yield "im2col.default", [ramp(2, 3, 5, 6).to(bf16), kernel, dilation, padding, stride]
    yield "im2col.default", [ramp(2, 3, 5, 6).to(memory_format=torch.channels_last), [2, 2], [1, 1], [1, 1],
                             [1, 1]]
    for dtype in (f32, f64):
        for shape in ((1, 2, 6, 6), (3, 4, 6), (2, 3, 4, 4)):
            image = ramp(*shape, dtype=dtype)
            values, at = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
            yield "max_unpool2d.default", [values, at, list(shape[-2:])]
            if shape[-1] == 4:
                yield "max_unpool2d.default", [values, at, [5, 6]]
        for shape in ((1, 2, 4, 4, 6), (3, 4, 6, 2), (2, 1, 2, 4, 4)):
            image = ramp(*shape, dtype=dtype)
            values, at = torch.nn.functional.max_pool3d(image, 2, return_indices=True)
            for size in (list(shape[-3:]), [n + 1 for n in shape[-3:]]):
                yield "max_unpool3d.default", [values, at, size, [2, 2, 2], [0, 0, 0]]
    wide = ramp(4, 5) * 40
    for low, high in ((0, 255), (-128, 127), (0, 15)):
        yield "fake_quantize_per_tensor_affine.default", [wide, 0.1, 3, low, high]
        yield "fake_quantize_per_tensor_affine_cachemask.default", [wide, 0.3, 0, low, high]
        scale, zero = ramp(5).abs() + 0.05, ints(5, dtype=i32, low=0, high=9)
        yield "fake_quantize_per_tensor_affine.tensor_qparams", [wide, scale[0], zero[1], low, high]
        for axis in (0, 1):
            n = wide.shape[axis]
            yield "fake_quantize_per_channel_affine.default", [wide, scale[:n], zero[:n], axis, low, high]
            yield "fake_quantize_per_channel_affine_cachemask.default", [wide, scale[:n], zero[:n], axis, low,
                                                                         high]
    special = t([nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.0, -1.0, 3.0, -3.0, -2.5, 10.5, 40.0,
                 -40.0])
    for name in ("digamma", "erfinv", "i0", "special_i0e", "special_i1", "special_i1e", "special_entr",
                 "special_erfcx", "special_ndtri", "special_log_ndtr"):
        for dtype in (f32, f64):
            yield f"{name}.default", [special.to(dtype)]
            yield f"{name}.default", [ramp(4, 6, dtype=dtype)]
            yield f"{name}.default", [ramp(4, 6, dtype=dtype).abs() / 2]
    for n in (0, 1, 2, 3, 5):
        yield "polygamma.default", [n, ramp(4, 5).abs() * 9 + 0.1]
        yield "polygamma.default", [n, t([0.5, 1.0, 2.5, 30.0])]
        yield "polygamma.default", [n, (ramp(4, 5).abs() * 9 + 0.1).to(f64)]
    for dtype in (f32, f64):
        s, q = ramp(6, dtype=dtype).abs() * 3 + 1.1, ramp(6, dtype=dtype, start=0.3).abs() * 5 + 0.2
        yield "special_zeta.default", [s, q]
        yield "special_zeta.default", [t([2.0, 3.0, 4.0, 5.0, 1.0, 0.5, 2.5]).to(dtype),
                                       t([-0.5, -3.25, -7.75, -2.0, 3.0, 2.0, -1.5]).to(dtype)]
        yield "special_zeta.other_scalar", [s, 2.5]
        yield "special_zeta.self_scalar", [2.5, q]
        yield "nextafter.default", [ramp(5, dtype=dtype), ramp(5, dtype=dtype, start=0.7)]
        yield "nextafter.default", [t([0.0, -0.0, inf, nan, 1.0]).to(dtype),
                                    t([1.0, -1.0, 0.0, 1.0, 1.0]).to(dtype)]
        yield "nextafter_.default", [ramp(5, dtype=dtype), ramp(5, dtype=dtype, start=0.7)]
    for dtype in (f16, bf16):
        x = t([0.0, -0.0, inf, 1.0, 1.0, -2.0, 2.0, 65504.0, 6e-8, -3e-5]).to(dtype)
        yield "nextafter.default", [x, t([1.0, -1.0, 0.0, 2.0, 0.0, -1.0, 3.0, inf, -1.0, 1.0]).to(dtype)]
    names = ("digamma", "psi", "erfinv", "i0", "erf", "erfc", "exp2", "expm1", "gammaln", "log1p", "sinc")
    for name in names:
        for dtype in (f32, f64, bf16, i64):
            yield f"special_{name}.default", [(ramp(4, 6) * 2).to(dtype)]
            yield f"special_{name}.default", [ramp(2, 3, 4,
                                                   5).to(dtype).to(memory_format=torch.channels_last)]
    for name in ("digamma_", "erfinv_", "i0_"):
        yield f"{name}.default", [ramp(3, 4)]
        yield f"{name}.default", [ramp(4, 6)[1:3, ::2]]
    for dtype in (f32, f64, bf16):
        x, y = ramp(4, 6).to(dtype), ramp(4, 6, start=0.3).abs().to(dtype)
        yield "special_xlogy.default", [x, y]
        yield "special_xlogy.default", [ramp(2, 3, 4, 5).to(dtype).to(memory_format=torch.channels_last),
                                        ramp(2, 3, 4,
                                             5).abs().to(dtype).to(memory_format=torch.channels_last)]
        yield "special_xlogy.other_scalar", [x, 2.5]
        yield "special_xlogy.self_scalar", [2.5, y]
        image = ramp(2, 3, 4, 5).abs().to(dtype).to(memory_format=torch.channels_last)
        yield "special_xlogy.other_scalar", [image, 2]
        yield "special_xlogy.self_scalar", [2, image]


def recurrent():
    """LSTM, GRU and simple networks: layers, directions, projections, states, and their cells."""
    def params(gates, features, cells, layers, directions, biases, projected, dtype):
        made, at = [], 0.0
        for layer in range(layers):
            for _ in range(directions):
                state = projected or cells
                width = features if layer == 0 else state * directions
                shapes = [(gates * cells, width), (gates * cells, state)]
                shapes += [(gates * cells,)] * 2 if biases else []
                shapes += [(projected, cells)] if projected else []
                for shape in shapes:
                    at += 0.17
                    made.append(ramp(*shape, start=at, step=0.61, dtype=dtype) * 0.4)
        return made

    forms = ((1, 1, True), (2, 1, True), (1, 2, True), (2, 2, False), (1, 1, False))
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        for layers, directions, biases in forms:
            for dtype, batch_first in ((f32, False), (f32, True), (f64, False)):
                x = ramp(2, 5, 3, dtype=dtype) if batch_first else ramp(5, 2, 3, dtype=dtype)
                h = ramp(layers * directions, 2, 4, dtype=dtype, start=0.2)
                hx = [h, ramp(layers * directions, 2, 4, dtype=dtype, start=0.6)] if name == "lstm" else h
                weights = params(gates, 3, 4, layers, directions, biases, 0, dtype)
                options = [biases, layers, 0.0, False, directions == 2, batch_first]
                yield f"{name}.input", [x, hx, weights, *options]
        for dtype in (f32, f64):
            for biases in (True, False):
                weights = params(gates, 3, 4, 1, 1, biases, 0, dtype)
                for batch in (1, 2, 5):
                    h = ramp(batch, 4, dtype=dtype, start=0.2)
                    hx = [h, ramp(batch, 4, dtype=dtype, start=0.6)] if name == "lstm" else h
                    yield f"{name}_cell.default", [ramp(batch, 3, dtype=dtype), hx, *weights]
    for layers, directions in ((1, 1), (2, 2)):
        for dtype in (f32, f64):
            weights = params(4, 3, 4, layers, directions, True, 2, dtype)
            hx = [ramp(layers * directions, 2, 2, dtype=dtype), ramp(layers * directions, 2, 4, dtype=dtype)]
            options = [True, layers, 0.0, False, directions == 2, False]
            yield "lstm.input", [ramp(5, 2, 3, dtype=dtype), hx, weights, *options]


def samples():
    """Quantiles, covariances, combinations, powers."""
    rows = t([[nan, 1.0, 2.0], [3.0, 0.5, -1.0], [inf, -inf, 4.0]])
    for name in ("quantile", "nanquantile"):
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            for x in (rows, ramp(3, 4, 2, dtype=f64), ramp(5)):
                yield f"{name}.scalar", [x, 0.3], {"interpolation": how}
                shares = t([0.0, 0.25, 0.9, 1.0], x.dtype)
                yield f"{name}.default", [x, shares, -1, True], {"interpolation": how}
        yield f"{name}.scalar", [rows, 0.5, 0]
        yield f"{name}.scalar", [t(3.0), 0.5]
        yield f"{name}.scalar", [t([[nan, nan], [1.0, nan]]), 0.5, 1]
        yield f"{name}.default", [ramp(3, 4), t(0.75), 0]
        yield f"{name}.default", [ramp(3, 4), t([0.1, 0.2])]
    for x in (ramp(3, 7), ramp(4, 3, dtype=f64).t(), ramp(6), t(2.0), ints(3, 5), ints(2, 4, dtype=u8)):
        n = x.shape[-1] if x.dim() else 1
        yield "corrcoef.default", [x]
        for correction in (0, 1, 2):
            yield "cov.default", [x], {"correction": correction}
            yield "cov.default", [x], {"correction": correction, "fweights": ints(n, low=1, high=4),
                                       "aweights": ramp(n).abs() + 0.1}
    for x in (ramp(4), ints(3, dtype=i8), t([True, False]), ramp(0), ramp(1, dtype=bf16)):
        for r in (0, 1, 2):
            for again in (False, True):
                yield "combinations.default", [x, r, again]
        for n in (None, 0, 1, 4):
            yield "vander.default", [x, n, n == 4]


def search():
    """Sorted rows, bins, sums of windows, sampled images."""
    for tensor in (t([[0.0, 1.0, nan], [2.0, 0.0, -0.0]]), t([True, False, True]), t(3.0), t(0.0),
                   torch.zeros(0, 3), ramp(2, 3, 2, dtype=bf16).round(), ints(3, 4, dtype=i8).t(), ints(5)):
        yield "nonzero_numpy.default", [tensor]
        yield "where.default", [tensor]
    edges = t([-1.0, 0.0, 0.0, 0.5, 2.0])
    for right in (False, True):
        for dtype in (f32, f64, bf16, i64, i32, u8):
            row, values = ints(5, dtype=dtype, low=0, high=9).sort().values, ints(3, 4, dtype=dtype, low=0,
                                                                                  high=11)
            yield "searchsorted.Tensor", [row, values], {"right": right}
            yield "bucketize.Tensor", [values, row], {"right": right, "out_int32": right}
        yield "searchsorted.Tensor", [edges, t([nan, inf, -inf, 0.0, 0.25])], {"right": right}
        yield "searchsorted.Tensor", [t([0.0, 1.0, nan]), t([nan, 0.5, 3.0])], {"right": right}
        yield "searchsorted.Tensor", [ramp(2, 3, 5).sort().values, ramp(2, 3, 4)], {"right": right}
        yield "searchsorted.Scalar", [edges, 0.0], {"right": right}
        yield "searchsorted.Scalar", [ints(5).sort().values, 3], {"right": right, "out_int32": True}
        yield "bucketize.Scalar", [0, edges], {"right": right}
        yield "bucketize.Scalar", [0.25, edges], {"right": right}
        mixed = ramp(7)
        yield "searchsorted.Tensor", [mixed, ramp(3, 4), ], {"right": right, "sorter": mixed.argsort()}
        yield "searchsorted.Scalar", [mixed, 0.1], {"right": right, "sorter": mixed.argsort()}
    for side in ("left", "right"):
        yield "searchsorted.Tensor", [edges, edges], {"side": side}
        yield "searchsorted.Scalar", [edges, 2.0], {"side": side}
        yield "searchsorted.Scalar", [edges, -3], {"side": side}
        yield "bucketize.Scalar", [2.5, ints(5).sort().values]
    for dtype in (i64, i32, u8):
        yield "bincount.default", [ints(9, dtype=dtype, low=0)]
        yield "bincount.default", [ints(9, dtype=dtype, low=0), ramp(9)], {"minlength": 40}
        yield "bincount.default", [ints(0, dtype=dtype, low=0), ramp(0)], {"minlength": 3}
    for dtype in (i64, i32):
        yield "repeat_interleave.Tensor", [ints(9, dtype=dtype, low=0)]
        yield "repeat_interleave.Tensor", [ints(8, dtype=dtype, low=0)[::2]]
        yield "repeat_interleave.Tensor", [ints(0, dtype=dtype, low=0)]
        yield "repeat_interleave.Tensor", [t([2, 0, 3], dtype=dtype)], {"output_size": 5}
        often = t([2, 0, 3], dtype=dtype)
        yield "repeat_interleave.self_Tensor", [ramp(3, 2), often, 0]
        yield "repeat_interleave.self_Tensor", [ramp(3, 2).t(), often, -1], {"output_size": 5}
        yield "repeat_interleave.self_Tensor", [ints(3, dtype=dtype), often]
        yield "repeat_interleave.self_Tensor", [ramp(2, 3), t([2], dtype=dtype)]
        yield "repeat_interleave.self_Tensor", [ramp(2, 3), t(0, dtype=dtype), 1]
        yield "repeat_interleave.self_Tensor", [ramp(0, 3), t(4, dtype=dtype), 0]
    yield "repeat_interleave.self_Tensor", [ramp(), t(2)]
    yield "promote_types.default", [f32, i64]
    yield "promote_types.default", [torch.bool, u8]
    yield "promote_types.default", [f16, torch.bfloat16]
    yield "bincount.default", [ints(9, low=0), ints(9)]
    yield "bincount.default", [ints(9, low=0), ramp(9, dtype=f16)]
    yield "bincount.default", [ints(8, low=0)[::2], t([nan, inf, -0.0, 1.0])]
    yield "searchsorted.Tensor", [ramp(0), ramp(3)]
    yield "bucketize.Tensor", [ramp(2, 0), edges]
    yield "bucketize.Scalar", [100, edges]
    yield "bucketize.Scalar", [-100, edges]
    for invert in (False, True):
        for dtype in (f32, i64, bf16, u8):
            x, few = ints(3, 5, dtype=dtype, low=0, high=9), ints(4, dtype=dtype, low=0, high=9)
            yield "isin.Tensor_Tensor", [x, few], {"invert": invert}
            yield "isin.Tensor_Scalar", [x, 3], {"invert": invert}
            yield "isin.Scalar_Tensor", [3, x], {"invert": invert}
        yield "isin.Tensor_Tensor", [ramp(3), ramp(0)], {"invert": invert}
        yield "isin.Tensor_Tensor", [t([nan, 1.0, inf]), t([nan, inf])], {"invert": invert}
        yield "isin.Tensor_Tensor", [ints(3, 4), ramp(2, 3).round()], {"invert": invert}
        yield "isin.Tensor_Tensor", [t(2.0), t([1.0, 2.0])], {"invert": invert}
    for dtype in (f32, f64):
        for bins, low, high in ((100, 0, 0), (4, -1, 1), (7, -3.0, 2.5), (1, 0, 0)):
            yield "histc.default", [ramp(4, 9, dtype=dtype), bins, low, high]
    yield "histc.default", [t([2.0, 2.0]), 3]
    yield "histc.default", [t([nan, 1.0, 3.0, -5.0, 2.0, inf]), 4, 0, 3]
    yield "histc.default", [ramp(0), 3]
    forms = (([4, 5], [2, 2], [1, 1], [0, 0], [1, 1]), ([5, 6], [3, 2], [1, 2], [1, 1], [2, 1]),
             ([3, 3], [3, 3], [1, 1], [0, 0], [1, 1]), ([6, 6], [2, 3], [2, 1], [1, 0], [2, 3]))
    for size, kernel, dilation, padding, stride in forms:
        image = ramp(2, 3, *size)
        columns = torch.ops.aten.im2col.default(image, kernel, dilation, padding, stride)
        for dtype in (f32, f64, bf16):
            yield "col2im.default", [columns.to(dtype), size, kernel, dilation, padding, stride]
        yield "col2im.default", [columns[0].mT.contiguous().mT, size, kernel, dilation, padding, stride]
    for corners in (False, True):
        for padding in (0, 1, 2):
            for mode in (0, 1, 2):
                for dtype in (f32, f64):
                    image = ramp(2, 3, 4, 5, dtype=dtype)
                    grid = ramp(2, 3, 2, 2, dtype=dtype, start=0.1, step=0.43) * 1.3
                    for name in ("grid_sampler", "grid_sampler_2d"):
                        yield f"{name}.default", [image, grid, mode, padding, corners]
                if mode < 2:
                    volume, grid = ramp(1, 2, 3, 4, 5), ramp(1, 2, 3, 2, 3, start=0.1, step=0.43)
                    for name in ("grid_sampler", "grid_sampler_3d"):
                        yield f"{name}.default", [volume, grid, mode, padding, corners]
            far = t([[[[5.0, -7.0], [-1.0, 1.0], [1e6, 0.0], [0.999, -0.999]]]])
            yield "grid_sampler_2d.default", [ramp(1, 2, 3, 1), far, 0, padding, corners]
            yield "grid_sampler_2d.default", [ramp(1, 2, 1, 1), far, 1, padding, corners]
