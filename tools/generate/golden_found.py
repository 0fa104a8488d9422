# SPDX-License-Identifier: Apache-2.0
"""Operator calls in which random graphs found a difference from PyTorch."""

import torch
from golden_hand import f16, f32, f64, bf16, i8, i32, i64, inf, ints, nan, ramp, t, u8

i16 = torch.int16


def found_cases():
    for element, dtype in ((0.5, i64), (nan, i8), (300, i8), (300, u8), (3, i16), (1e30, i32)):
        elements = t([0, 44, 3], dtype)
        yield "isin.Scalar_Tensor", [element, elements]
        yield "isin.Tensor_Scalar", [elements, element], {"invert": True}
    yield "isin.Tensor_Tensor", [ramp(3, dtype=f16), t(0.5)]
    yield "block_diag.default", [[ramp(2, dtype=bf16), t(3.0)]]
    for n in (7, 9, 33):
        for dtype in (i8, i16, i32, i64, u8):
            yield "linspace.default", [30, 3, n], {"dtype": dtype}
    for margin in (0.7, 2.9, 1):
        for reduction in (0, 2):
            yield "hinge_embedding_loss.default", [ints(2, 3), t([[1, -1, 2], [-1, 1, 0]]), margin, reduction]
    yield "hinge_embedding_loss.default", [ramp(2, 3, dtype=f16), t([[1, -1, 2], [-1, 1, 0]]), 0.7, 0]
    yield "margin_ranking_loss.default", [ints(3), ints(3, low=0), t([1, -1, 1], i64), 1, 2]
    for reduction in (0, 1):
        yield "huber_loss.default", [ramp(2, 3), ramp(2, 3, dtype=f64, start=0.5), reduction, 1.0]
    far = t([inf, -inf, nan, 1e18, 9.3e18, 1e19, -1e30, 3.0])
    for scale in (2, 1 << 31, 0.5):
        yield "fake_quantize_per_tensor_affine.default", [far, scale, 3, -128, 127]
        yield "fake_quantize_per_tensor_affine_cachemask.default", [far, scale, 0, 0, 15]
    for name in ("fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask"):
        yield f"{name}.default", [far.reshape(2, 4), t([0.5, 2.0]), t([0, 3], i32), 0, -128, 127]
    q = t([inf, -inf, nan, 0.0, -1.0, -1.5, 2.0, 0.5, 1.0])
    for s in (5.0, 2.0, 1.5, nan, 1.0, 0.5, inf):
        yield "special_zeta.self_scalar", [s, q]
    for order in (2, 3, 4):
        yield "special_polygamma.default", [order, q[[0, 2, 3, 5, 6]]]
    rows = t([[0.0, 1.0], [nan, 2.0], [inf, -1.0]])
    for p in (0.0, 1.0, inf):
        yield "cdist.default", [rows, ramp(2, 2), p]
    # Positions halfway between two elements: which one is nearest is a matter of rounding.
    halves = (t(range(18)) * 2 + 1) / 18 - 1
    for mode in (0, 1):
        for corners in (False, True):
            image, grid = ramp(1, 2, 3, 1, 5), (halves.reshape(1, 1, 3, 2, 3) * 1.3)
            yield "grid_sampler.default", [image, grid, mode, 1, corners]
            yield "grid_sampler.default", [ramp(1, 2, 3, 5), halves.reshape(1, 3, 3, 2), mode, 0, corners]
    yield "trapezoid.dx", [ints(2, 0, dtype=i8)]
    yield "trapezoid.dx", [ints(2, 3, dtype=i8)]
    # Points of other ranks than the values: the dimension counts from the front.
    for y, x, dim in ((ramp(2), ramp(2, 2), 0), (ramp(2, 2), ramp(3, 2, 2) ** 2, -1),
                      (ramp(1, 1, 4), ramp(1, 4), 0), (ramp(2, 3, 4), ramp(3, 4) ** 2, 1),
                      (ramp(2, 3, 4), ramp(3, 4), 0)):
        for name in ("trapezoid.x", "cumulative_trapezoid.x"):
            yield name, [y, x], {"dim": dim}
    for dtype in (f16, f64, torch.bool, i32):
        yield "smooth_l1_loss.default", [ramp(2, 3), ramp(2, 3, start=0.5).to(dtype), 0, 0.0]
    yield "take_along_dim.default", [ramp(2, 3), t([[5, 0], [3, 3]], torch.int32)]
    square = t([[3.0, 0.0, 1.0], [0.0, 2.0, 0.5], [0.0, 0.0, 1.0]], f64)
    for rcond in (1.5, 7.0):
        yield "linalg_lstsq.default", [t([[2.0], [1.0]], f64), ramp(2, 2, dtype=f64), rcond]
    yield "linalg_lstsq.default", [square, ramp(3, 2, dtype=f64), 1e-9]
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        for value in (-1, 255.5, 60000):
            yield "full.default", [[2], value], {"dtype": dtype}
    yield from products_of_one_sum()
    for dtype, running in ((bf16, f32), (f16, bf16), (f32, f16), (f64, f32)):
        for weight in (ramp(3, dtype=f32 if dtype != f64 else f64), None):
            stats = [ramp(3, dtype=running), ramp(3, dtype=running).abs() + 0.5]
            for use_input_stats in (True, False):
                yield ("instance_norm.default", [ramp(2, 3, 5, dtype=dtype), weight, weight, *stats,
                                                 use_input_stats, 0.1, 1e-5, False])
    yield from tied_rows()
    yield from written_twice()


def products_of_one_sum():
    """tensordot along all dimensions: a dot where both operands are dense, else products and a sum."""
    for dtype in (f32, f16, i32, torch.bool):
        square = ramp(2, 3, dtype=f32).mul(2).to(dtype)
        yield "tensordot.default", [square, square.t().contiguous(), [0, 1], [1, 0]]
        yield "tensordot.default", [square[:, ::2], square[:, 1:], [0, 1], [0, 1]]
        yield "tensordot.default", [square[None], square.t()[..., None], [1, 2], [1, 0]]
        yield "tensordot.default", [square[:, 0], square[:, 1], [0], [0]]


def written_twice():
    """Of equal places the last one wins, in the order in which PyTorch's loops go over memory."""
    source, index = ramp(2, 2), t([[1, 0], [0, 1]], i64)
    for made, places in ((source, index), (source.t(), index), (source, index.t()), (source.t(), index.t()),
                         (source[:1].expand(2, 2), index.t()), (source.t(), index.reshape(-1))):
        for accumulates in (False, True):
            yield "put.default", [torch.zeros(3), places, made, accumulates]


def tied_rows():
    """Which of the equal elements is chosen, and in which order they come, depends on every step of
    PyTorch's algorithms. The two slow rows are cut so badly that its quicksort falls back to a heap."""
    slow_sort = [46, 1, 53, 3, 61, 5, 51, 7, 57, 9, 49, 11, 64, 13, 47, 15, 55, 17, 45, 19, 59, 21, 24, 23,
                 62, 60, 58, 56, 54, 52, 50, 48, *range(0, 23, 2), 44, 41, 42, 39, 40, 37, 38, 35, 36, 33,
                 34, 31, 32, 29, 30, 27, 28, 25, 26, 43]
    slow_choice = [25, *sum(([i, 64] for i in range(1, 22, 2)), []), 23, 31, 30, 32, 28, 29, 26, 27, 24,
                   *range(0, 23, 2), *[64] * 20]
    scattered = torch.arange(200) * 37 % 101
    for row in (slow_sort, slow_choice):
        yield "topk.default", [t(row, i8), 33, 0, False]
        yield "topk.default", [t(row, i8) // 2, 64, 0, False]
        yield "mode.default", [t(row, i8) // 2]
    for dtype, levels in ((f32, 3), (u8, 10), (i8, 1)):
        tied = (scattered % levels).to(dtype)
        for k in (3, 5, 60, 200):
            for in_order in (True, False):
                yield "topk.default", [tied, k, 0, k != 60, in_order]
        yield "kthvalue.default", [tied, 60]
        yield "mode.default", [tied.reshape(2, 50, 2), 1]
    some = t([nan, 1.0, nan, 2.0, 1.0] * 8)
    for k in (7, 30):
        yield "topk.default", [some, k, 0]
        yield "kthvalue.default", [some, k]
        yield "topk.default", [some, k, 0, False, False]
    yield from found_dtypes()
    yield from found_edges()


def found_dtypes():
    """What a dtype decides: of operands without dimensions, of negations, of sums and exponents."""
    one, zero_dims = t([0.7, -1.3]), t(0.3)
    for name in ("mse_loss", "smooth_l1_loss", "huber_loss"):
        for a, b in ((f16, bf16), (bf16, f32), (f32, f64)):
            yield f"{name}.default", [one.to(b), zero_dims.to(a), 2]
            yield f"{name}.default", [zero_dims.to(b), one.to(a), 2]
            yield f"{name}.default", [one.to(a), zero_dims.to(b), 2]
    yield "mse_loss.default", [one.to(f16), t(2049), 0]
    yield "cosine_similarity.default", [t([3], i64), t(2.0, f64), 0]
    for dtype in (torch.bool, i8, i16):
        yield "soft_margin_loss.default", [one.to(f16), t([-1 << 15, 3]).to(dtype), 0]
    yield "cumulative_trapezoid.dx", [t([8, -1, 4, -1 << 63, 1 << 48, 1], i64)]
    yield "cumulative_trapezoid.dx", [ramp(5, dtype=f16) * 100], {"dx": 0.3}
    yield "addr.default", [t(True), t([3], i8), t([2], i8)]
    exponents = t([-1 << 63, 1 << 40, -(1 << 31) - 1, -1 << 31, 1 << 31, -1074, 2098, 1023, 5], i64)
    for dtype in (f16, f32, f64):
        yield "ldexp.Tensor", [t([nan, inf, -inf, 0.0, 5e-324, 1.5], f64).to(dtype)[:, None], exponents]
    for dtype, other in ((f16, bf16), (bf16, f16), (f64, f16)):
        yield "ldexp.Tensor", [one.to(dtype), zero_dims.to(other)]
    yield "norm_except_dim.default", [t([0.0, -1.5, 2.0]), 0, 0]
    for size in ([0, 4], [4, 0]):
        yield "max_unpool2d.default", [ramp(1, 2, 1, 1), ints(1, 2, 1, 1), size]
        yield "max_unpool3d.default", [ramp(2, 1, 1, 1), ints(2, 1, 1, 1), [4, *size], [1, 1, 1], [0, 0, 0]]


def found_edges():
    """Integers that are doubled, edges that are not sorted, matrices with NaN."""
    for dtype in (i8, i64):
        yield "gradient.scalarint", [t([100, 64, -100, 7, 90, -1 << 62 if dtype == i64 else -64], dtype)], {
            "edge_order": 2}
    for edges in ([0.0, 5.0, 1.0], [2.0, 1.0, 5.0]):
        yield "histogram.bins_tensor", [t([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0, nan]), t(edges)]
    yield "geqrf.default", [t([[1.0, 2.0, 3.0], [nan, 1.0, 0.0], [0.0, 1.0, 5.0]], f64)]
    for value in (inf, -inf):
        yield "nansum.default", [t([value, nan, 10.0], f16)], {"dtype": i64}
