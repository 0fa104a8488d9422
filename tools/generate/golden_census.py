# SPDX-License-Identifier: Apache-2.0
"""More operator calls for make_goldens.py: embedding bags, sequences, modes and medians."""

import torch

from golden_hand import bf16, boolean, f16, f32, f64, i8, i32, i64, inf, ints, nan, ramp, t, u8


def bags():
    table, indices = ramp(7, 5), t([1, 2, 4, 5, 4, 3, 2, 6], i64)
    for name in ("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag"):
        for dtype in (f32, f64, f16, bf16):
            for mode in (0, 1, 2):
                weight, offsets = table.to(dtype), t([0, 3, 3, 6], i64)
                yield f"{name}.default", [weight, indices, offsets, False, mode]
                scales = ramp(8, dtype=dtype) if mode == 0 else None
                yield f"{name}.default", [weight, indices, offsets, False, mode, False, scales]
                last = t([0, 3, 3, 8], i64)
                yield f"{name}.default", [weight, indices, last, False, mode, False, scales, True]
                if name != "embedding_bag":
                    yield f"{name}.default", [weight, indices, offsets, False, mode, False, scales, False, 4]
        for mode in (0, 1, 2):
            yield f"{name}.default", [ramp(5, 7).t(), indices, t([0, 5], i64), False, mode]
            yield f"{name}.default", [table, indices.int(), t([0, 5], i32), False, mode]
            yield f"{name}.default", [table, indices.int(), t([0, 5], i64), True, mode]
            yield f"{name}.default", [table, t([], i64), t([0, 0], i64), False, mode]
            yield f"{name}.default", [table, t([], i64), t([], i64), False, mode]
        yield f"{name}.default", [t([[nan, 1.0], [2.0, nan]]), t([0, 1, 0], i64), t([0], i64), False, 2]
    for dtype in (f32, f64, f16, bf16):
        for mode in (0, 1, 2):
            for padding in (None, 2, -3):
                yield ("embedding_bag.padding_idx",
                       [table.to(dtype), indices, t([0, 3, 3, 6], i64), False, mode, False, None, False,
                        padding])
    yield ("embedding_bag.padding_idx",
           [table, indices, t([0, 4, 8], i64), False, 0, False, ramp(8), True, 4])


def antialiased():
    image = ramp(2, 3, 7, 9)
    bytes_ = ints(2, 3, 7, 9, dtype=u8, low=0, high=251)
    last = ints(1, 3, 9, 6, dtype=u8, low=0, high=251).to(memory_format=torch.channels_last)
    for name in ("bilinear", "bicubic", "lanczos"):
        op = f"_upsample_{name}2d_aa"
        for x in (image, image.double(), bytes_, last, image.to(memory_format=torch.channels_last)):
            for size in ([3, 4], [1, 1], [20, 5], [7, 4], [7, 9], [2, 9]):
                yield f"{op}.default", [x, size, False]
        for corners in (False, True):
            yield f"{op}.default", [image, [4, 3], corners]
            yield f"{op}.default", [bytes_, [4, 3], corners]
            yield f"{op}.default", [image, [3, 5], corners, 0.45, 0.6]
            for scales in ([0.45, 0.6], [1.5, 2.0], [0.2, 1.0]):
                yield f"{op}.vec", [image, None, corners, scales]
                yield f"{op}.vec", [bytes_, None, corners, scales]
            yield f"{op}.vec", [image.double(), [3, 11], corners, None]
        special = t([0.0, nan, 1.0, inf, 2.0, 3.0, -1.0, 0.5]).reshape(1, 1, 2, 4)
        yield f"{op}.default", [special, [2, 3], False]
        yield f"{op}.default", [ramp(0, 2, 5, 5), [3, 3], False]


def pairs():
    points = ramp(5, 4)
    for name in ("pdist", "_pdist_forward"):
        for p in (2.0, 1.0, 0.0, 3.5, inf):
            yield f"{name}.default", [points, p]
            yield f"{name}.default", [points.double(), p]
            yield f"{name}.default", [t([[1, 2, 3], [nan, 2, 4], [1, 2, 2]]), p]
        for shape in ((0, 3), (1, 3), (3, 0), (2, 1)):
            yield f"{name}.default", [ramp(*shape)]
    yield "pdist.default", [points.t()]
    for x in (points, points.t(), ramp(2, 3, 4, 5), ramp(2, 3, 4, 5).to(memory_format=torch.channels_last),
              ramp(0, 3), t(1.0), ints(3, 1).t()):
        for layout in (torch.contiguous_format, torch.channels_last):
            yield "sym_is_contiguous.default", [x, layout]
        yield "sym_is_contiguous.default", [x]


def written():
    for x in (ramp(3, 4), ramp(3, 4).t(), ramp(4, 6)[1:3, ::2], ramp(2, 3, dtype=f16), ramp(2, 3, dtype=bf16),
              ramp(2, 3, dtype=f64), ints(2, 3)):
        yield "ldexp_.default", [x, ints(x.shape[-1], dtype=i32)]
        yield "ldexp_.default", [x, t(1.5)]
        yield "polygamma_.default", [x.abs() + 1, 2]
        yield "polygamma_.default", [x.abs() + 1, 0]
        wide = x.double()
        yield "float_power_.Scalar", [wide, 2]
        yield "float_power_.Scalar", [wide, 3.0]
        yield "float_power_.Tensor", [wide, ints(x.shape[-1])]
        yield "float_power_.Tensor", [wide.abs() + 1, ramp(x.shape[0], 1)]
        yield "masked_scatter_.default", [x, ramp(x.shape[-1]) > 0, ramp(20).to(x.dtype)]
        yield "masked_scatter_.default", [x, ramp(*x.shape) > 0, ramp(4, 5).t().to(x.dtype)]
        yield "renorm_.default", [x, 2, 0, 0.5]
        yield "renorm_.default", [x, 1.0, -1, 1.0]


def windows():
    for n in (0, 1, 2, 5, 8, 33):
        for dtype in (None, f64, f16, bf16):
            options = {} if dtype is None else {"dtype": dtype}
            for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
                yield f"{name}_window.default", [n], options
                for periodic in (False, True):
                    yield f"{name}_window.periodic", [n, periodic], options
            for periodic in (False, True):
                yield "hamming_window.periodic_alpha", [n, periodic, 0.6], options
                yield "hamming_window.periodic_alpha_beta", [n, periodic, 0.6, 0.3], options
                yield "kaiser_window.beta", [n, periodic, 3.5], options


def sequences():
    for dtype in (None, f64, f16, bf16, i64, i32, i8, u8):
        for start, end, steps, base in ((0, 2, 5, 10.0), (1, 3, 1, 2.0), (3, 0, 8, 2.0), (0, 5, 6, 2.0)):
            yield "logspace.default", [start, end, steps, base], {"dtype": dtype}
        yield "logspace.Tensor_Tensor", [t(0.0), t(4.0), 5, 2.0], {"dtype": dtype}
        yield "logspace.Tensor_Scalar", [t(1, i64), 4, 4, 2.0], {"dtype": dtype}
        yield "logspace.Scalar_Tensor", [2.5, t(4.0), 4, 2.0], {"dtype": dtype}
        yield "linspace.Tensor_Tensor", [t(0.0), t(4.0), 5], {"dtype": dtype}
        yield "linspace.Tensor_Scalar", [t(1, i64), 4, 4], {"dtype": dtype}
        yield "linspace.Scalar_Tensor", [2.5, t(7.0), 4], {"dtype": dtype}
    yield "logspace.default", [-2.5, 1.5, 7]
    yield "logspace.default", [0, 1, 0]
    yield "logspace.default", [0.5, 2.5, 4, -1.0]
    for name in ("tril_indices", "triu_indices"):
        for row, column in ((3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)):
            for offset in (0, 1, -1, -2, 7, -7):
                yield f"{name}.default", [row, column, offset]
        yield f"{name}.default", [4, 3], {"dtype": i32}
        yield f"{name}.default", [3, 4, 1], {"dtype": torch.int16}


def picked():
    """mode, nanmedian: one element of a row."""
    for dtype in (f32, f64, f16, bf16, i64, i32, torch.int16, i8, u8):
        x = ints(3, 7, dtype=dtype, low=0, high=5)
        for dim in (0, 1, -1):
            for keepdim in (False, True):
                yield "mode.default", [x, dim, keepdim]
                unique = (ramp(3, 7) * 20).round().to(dtype) if dtype != u8 else ints(3, 7, dtype=u8, low=0)
                yield "nanmedian.dim", [unique, dim, keepdim]
        yield "nanmedian.default", [x]
        yield "nanmedian.default", [x.t()]
    yield "mode.default", [t([True, False, True])]
    yield "mode.default", [t([nan, 1.0, nan, 2.0, 2.0, inf, inf])]
    yield "mode.default", [t([nan, nan])]
    yield "mode.default", [t(3.0)]
    yield "mode.default", [ramp(0, 3), 1]
    gaps = t([[nan, 1.0, 4.0, 2.0], [nan, nan, nan, nan], [5.0, nan, -inf, inf]])
    yield "nanmedian.dim", [gaps[[0, 2]], 1]
    yield "nanmedian.dim", [gaps, 0, True]
    yield "nanmedian.default", [gaps]
    yield "nanmedian.default", [t([nan, nan])]
    yield "nanmedian.default", [t(2.5)]
    yield "nanmedian.default", [ramp(0)]


def placed():
    for dtype in (f32, f64, i64, i32, bf16, u8, boolean):
        x, part = ints(4, 5).to(dtype), ints(2, 3, low=0).to(dtype)
        yield "as_strided_scatter.default", [x, part, [2, 3], [5, 1]]
        yield "as_strided_scatter.default", [x, part, [2, 3], [1, 2], 3]
        yield "as_strided_scatter.default", [x, part[0], [3], [6], 1]
    yield "as_strided_scatter.default", [ramp(3, 4).t(), ramp(2, 2), [2, 2], [4, 1], 2]
    yield "as_strided_scatter.default", [ramp(6), t(9.0), [], [], 4]


def census_cases():
    for part in (bags, sequences, picked, placed, antialiased, pairs, written, windows):
        yield from part()
