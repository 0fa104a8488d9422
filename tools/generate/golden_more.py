# SPDX-License-Identifier: Apache-2.0
"""Calls of operators for which PyTorch's own tests have few: each overload gets eight cases."""

import torch
from golden_hand import bf16, f16, f32, f64, i8, i32, i64, inf, ints, nan, ramp, t, u8


def more_cases():
    for part in (bits, fakes, copies, products, norms, empty_matrices, hermitian, functions, other_ranks,
                 means, reflections, gradients, histograms, scaled_rows, segments):
        yield from part()


def bits():
    for left in (ints(3, 4), ints(4, 6)[1:3, ::2], ints(4, 3).t(), t([], i64), t(6, torch.int16),
                 ints(2, 3, 4, dtype=i32)):
        for name in ("__iand__", "__ior__", "__ixor__"):
            yield f"{name}.Scalar", [left, -3]
        for name in ("__ilshift__", "__irshift__"):
            yield f"{name}.Scalar", [left, 1]
            yield f"{name}.Tensor", [left, t(2, left.dtype)]
    for name in ("__ilshift__", "__irshift__"):
        yield f"{name}.Tensor", [ints(2, 3), ints(3, low=0)]
        yield f"{name}.Tensor", [ints(2, 3, dtype=u8, low=0), ints(2, 1, dtype=u8, low=0)]


def fakes():
    """Other dtypes and strides, ties of rounding, empty tensors."""
    ties = t([0.25, 0.75, -0.25, 1.25, -12.75, 30.0, nan, inf])
    whole = ((ties, 0.5, 2), (ramp(3, 4).t() * 9, 0.1, 0), (ramp(2, 3, dtype=f64) * 9, 0.3, -4),
             (ramp(0, 3), 0.1, 0), (t(3.3), 0.2, 1), (ramp(2, 4)[:, ::2] * 30, 1.5, 0))
    for x, scale, zero in whole:
        for name in ("default", "tensor_qparams"):
            given = (scale, zero) if name == "default" else (t(scale), t(zero, i32))
            yield f"fake_quantize_per_tensor_affine.{name}", [x, *given, -8, 7]
        yield "fake_quantize_per_tensor_affine_cachemask.default", [x, scale, zero, -8, 7]
    rows = ((ties.reshape(2, 4), 0), (ramp(4, 2).t() * 9, 0), (ramp(2, 3, 2) * 9, 2), (ramp(0, 2), 1))
    for x, axis in rows:
        for name in ("fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask"):
            yield f"{name}.default", [x, t([0.5, 0.3]), t([0, 3], i32), axis, -8, 7]


def copies():
    image = ramp(2, 3, 2, 4).to(memory_format=torch.channels_last)
    for x in (image, ramp(4, 6)[1:3, ::2], ints(3, 2, 2, dtype=i32), ramp(2, 5, dtype=f16)):
        yield "select_copy.int", [x, -1, 1]
        yield "slice_copy.Tensor", [x, -1, -2, None, 1]
        yield "split_copy.Tensor", [x, 1]
        yield "squeeze_copy.dims", [x[:, :1], [1]]
    for x, dtype in ((ramp(3, 4, dtype=f16), torch.int16), (ints(2, 6), f32), (ints(3, 4, dtype=u8), i8),
                     (ramp(2, 4, dtype=f64), i64), (ramp(2, 0), i32)):
        yield "view_copy.dtype", [x, dtype]


def products():
    yield "chain_matmul.default", [[ramp(2, 3), ramp(3, 4), ramp(4, 2), ramp(2, 6)]]
    yield "chain_matmul.default", [[ramp(3, 2).t(), ramp(3, 4)]]
    yield "chain_matmul.default", [[ints(2, 3), ints(3, 2), ints(2, 2)]]
    yield "chain_matmul.default", [[ramp(2, 0), ramp(0, 3), ramp(3, 2)]]
    for a, b in ((ramp(3), ramp(3)), (ramp(2, 3), ramp(3)), (ramp(3), ramp(3, 2)), (ints(2, 3), ints(3, 2)),
                 (ramp(2, 1, 2, 3), ramp(4, 3, 2)), (ramp(2, 0), ramp(0, 2))):
        yield "linalg_matmul.default", [a, b]
    for a, b in ((ramp(2, 3).t(), ramp(2, 2)), (ints(2, 3), ints(3, 1)), (ramp(2, dtype=bf16),) * 2,
                 (t([True, False]), ints(2, 2))):
        yield "kron.default", [a, b]


def norms():
    yield "linalg_norm.ord_str", [ramp(3, 4, dtype=f64), "nuc"]
    yield "linalg_norm.ord_str", [ramp(4, 3).t(), "nuc", [0, 1], True]
    yield "linalg_norm.ord_str", [ramp(2, 3, dtype=bf16), "fro"], {"dtype": f32}
    yield "linalg_norm.ord_str", [ramp(0, 3), "fro"]
    for x, dims in ((ramp(3, 4), [1]), (ramp(2, 3, 4, dtype=f64), [0, 2]), (ramp(3, 4).t(), [0, 1]),
                    (ramp(2, 3, dtype=f16), [0]), (ramp(0, 3), [0, 1]), (ramp(4, 6)[1:3, ::2], [-1])):
        yield "frobenius_norm.dim", [x, dims]
    for x, dims, keep in ((ramp(2, 3, 4), [0, 2], False), (ramp(3, 4).t(), [0, 1], True),
                          (ramp(2, 3, dtype=f64), [1, 0], True), (ramp(2, 2, 3, 3), [1, 3], False),
                          (ramp(2, 0, 3), [1, 2], False)):
        yield "nuclear_norm.dim", [x, dims, keep]


def empty_matrices():
    """The largest of nothing is 0."""
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 3)):
        x = torch.zeros(shape)
        for order in (2, 1, inf):
            yield "linalg_matrix_norm.default", [x, order]
            yield "linalg_cond.default", [x, order]
        yield "linalg_matrix_norm.default", [x, 2, [-1, -2], True]
    yield "linalg_norm.default", [torch.zeros(3, 0), 1, [0, 1], True]


def hermitian():
    """One triangle is read; numbers of the other one must not count. Calls that differ in values only
    would be taken for one: the limits differ."""
    whole, lacking = ramp(4, 4) + torch.eye(4) * 3, ramp(3, 1) * ramp(3)
    several = torch.stack([lacking, -lacking, whole[:3, :3]])
    for at, a in enumerate((lacking, whole, whole.double(), several, -whole.t(), ramp(0, 0))):
        for name in ("linalg_pinv", "linalg_matrix_rank"):
            yield f"{name}.atol_rtol_float", [a], {"hermitian": True}
            yield f"{name}.atol_rtol_float", [a], {"hermitian": True, "atol": 0.01 * at, "rtol": 0.01}
            yield f"{name}.default", [a, 0.1 + 0.01 * at, True]


def functions():
    logs = ramp(2, 3, 2, 4).log_softmax(1)
    places = ints(2, 2, 4, low=0, high=3)
    for reduction in (0, 1):
        yield "nll_loss2d.default", [logs.to(memory_format=torch.channels_last), places, None, reduction]
        yield "nll_loss2d.default", [logs.double(), places, t([0.5, 1.0, 2.0], f64), reduction, 2]
    for x, p in ((ramp(3, 2).abs() + 4, 3), (t([2.5, inf, nan]), 4), (t(3.5), 2), (t([9.0, 5.5], bf16), 2),
                 (t([], f32), 1), (ramp(2, 3).t().abs() + 2, 1)):
        yield "special_multigammaln.default", [x, p]
    x, y = t([0.0, 0.0, 0.0, 1.0, nan, 2.0, -1.0]), t([0.0, nan, inf, 0.0, 0.0, -1.0, 3.0])
    pairs = (x, y), (x.to(f16), y.to(f16)), (ints(3), ramp(2, 3).abs()), (ramp(3, 2).t(), ints(2, 3, low=1))
    for left, right in pairs:
        yield "special_xlogy.default", [left, right]
        yield "special_xlogy.other_scalar", [left, 0]
        yield "special_xlogy.self_scalar", [0, right]
        yield "special_xlogy.self_scalar", [nan, right]
    for left, right in ((i8, u8), (i32, f16), (f32, torch.complex64), (f64, torch.complex64), (i64, i64)):
        yield "promote_types.default", [left, right]


def other_ranks():
    """Pools to one element are means of any number of dimensions; heads of values need not be as many
    as those of keys."""
    for shape in ((3, 4), (1, 2, 3, 2, 3), (0, 2, 3, 3), (2, 0, 3)):
        yield "adaptive_avg_pool2d.default", [ramp(*shape), [1, 1]]
    for shape in ((2, 3, 4), (2, 1, 2, 3, 2, 3), (1, 2, 0, 3)):
        yield "adaptive_avg_pool3d.default", [ramp(*shape), [1, 1, 1]]
    for keys, values, dtype in ((2, 3, f32), (6, 3, f32), (1, 6, bf16)):
        k, v = ramp(1, keys, 3, 4, dtype=dtype), ramp(1, values, 3, 2, dtype=dtype, step=0.43)
        yield ("scaled_dot_product_attention.default", [ramp(1, 6, 2, 4, dtype=dtype), k, v],
               {"enable_gqa": True})
    mask = t([[True, False, True], [False] * 3])
    yield ("scaled_dot_product_attention.default",
           [ramp(1, 6, 2, 4), ramp(1, 2, 3, 4), ramp(1, 1, 3, 4, step=0.43), mask], {"enable_gqa": True})
    x = ramp(1, 0, 2, 4)
    yield "scaled_dot_product_attention.default", [x, x, x], {"enable_gqa": True}


def means():
    """Of a half dtype asked for: rounded once, at the end."""
    for x in (t([131072.0, 0.0, 0.0, 0.0]), t([100000, 0, 0, 0], i64), t([1000.0, 1.0, -1002.0, 1.5], f64)):
        for dtype in (f16, bf16):
            yield "mean.default", [x], {"dtype": dtype}
            yield "mean.dim", [x, [0]], {"dtype": dtype}


def reflections():
    for dtype in (f32, f64, torch.complex64):
        for a in (ramp(4, 3).to(dtype), ramp(2, 2, 3).to(dtype)):
            yield "geqrf.default", [a]
        a, tau, other = ramp(4, 3).to(dtype), ramp(2).to(dtype), ramp(4, 2).to(dtype)
        yield "linalg_householder_product.default", [a, tau]
        yield "ormqr.default", [a[:, :2], tau, other, True, dtype != f64]
        yield "ormqr.default", [a[:, :2], tau, other.t(), False, dtype == f64]
    a, tau = ramp(2, 3, 2), ramp(2, 2)
    yield "linalg_householder_product.default", [a, tau]
    yield "linalg_householder_product.default", [a.mT[..., :2, :2], tau[:, :1]]
    yield "geqrf.default", [ramp(3, 0)]
    yield "geqrf.default", [ramp(1, 3)]
    yield "geqrf.default", [ramp(3, 1)]
    yield "geqrf.default", [ramp(2, 2, 1, 1)]
    for shape, k in (((3, 1), 1), ((2, 2), 1), ((3, 0), 0), ((0, 2, 1), 1), ((4, 2), 1)):
        yield "linalg_householder_product.default", [ramp(*shape) / 2, ramp(*shape[:-2], k) + 1.5]
    for left in (True, False):
        yield "ormqr.default", [ramp(2, 1) / 2, ramp(1), ramp(2, 2), left, left]
    yield "geqrf.default", [ramp(3, 3).t()]
    yield "ormqr.default", [ramp(2, 3), ramp(2), ramp(2, 2)]
    yield "ormqr.default", [a, tau, ramp(2, 3, 1)]


def gradients():
    uneven = t([0.0, 1.0, 3.0, 3.5])
    for x in (ramp(4, 3), ints(4, 3), ramp(4, 3, dtype=f16)):
        yield "gradient.scalarint", [x], {"spacing": 0.3, "edge_order": 2}
        for spacing in (None, -2):
            yield "gradient.scalarint", [x], {"dim": -1, "spacing": spacing}
        yield "gradient.tensorarray", [x], {"spacing": [uneven], "dim": [0], "edge_order": 2}
        yield "gradient.tensorarray", [x], {"spacing": [uneven[:3], uneven.double()], "dim": [1, 0]}
        yield "gradient.tensorarray", [x], {"spacing": [uneven[1:]], "dim": [-1], "edge_order": 2}


def histograms():
    x = t([0.0, 0.5, 1.0, 1.5, 2.0, nan, -3.0, 0.25])
    for values in (x, x.double()):
        edges, weight = t([0.0, 0.5, 2.0], values.dtype), ramp(8, dtype=values.dtype)
        for given in ({}, {"weight": weight}, {"density": True}, {"density": True, "weight": weight + 3}):
            yield "histogram.bins_tensor", [values, edges], given
            yield "histogram.bin_ct", [values, 4], {"range": [0.0, 2.0], **given}
        yield "histogram.bin_ct", [values[:5], 3]
    yield "histogram.bin_ct", [x[:1], 3]
    yield "histogram.bin_ct", [x[:0], 3]


def scaled_rows():
    for dtype in (f32, f64, f16):
        table = ramp(4, 3, dtype=dtype) * 2
        yield "embedding_renorm.default", [table, t([[0, 2], [2, 0]], i64), 1.0, 2.0]
        yield "embedding_renorm.default", [table, t([1, 3], i32), 0.5, 1.0]
        yield "embedding_renorm.default", [table, t([0], i64), 9.0, 0.5]
        yield "frexp.Tensor", [t([0.0, -0.0, inf, -inf, nan, 6e-8, -5.5, 0.1], dtype)]
        yield "frexp.Tensor", [ramp(2, 3, dtype=dtype).t() * 100]
        yield "frexp.Tensor", [ramp(0, 2, dtype=dtype)]
    for x in (ints(2, 3), ramp(4) > 0, t(3.0), ramp(0, 2)):
        for size in (1, 4):
            yield "nonzero_static.default", [x], {"size": size, "fill_value": -size}
    for x, size in ((ramp(2, 3), [1, 3]), (ramp(2, 3), [3]), (ints(2, 3), [2, 1]), (ramp(2, 3), []),
                    (ramp(1, 3), [1, 3]), (ramp(2, 1, 3), [1, 1]), (ramp(2) > 0, [1]),
                    (ramp(2, 3, dtype=f16), [1, 1])):
        yield "sum_to_size.default", [x, size]


def segments():
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield "segment_reduce.default", [ramp(4), reduce], {"lengths": t([2, 0, 2], i64)}
    yield ("segment_reduce.default", [ramp(4, dtype=f64), "mean"],
           {"offsets": t([0, 1, 1, 4], i64), "initial": 2})
    yield "segment_reduce.default", [ramp(3), "max"], {"lengths": t([1, 2], i32), "initial": 0.5}
    yield "segment_reduce.default", [ramp(2, 2), "sum"], {"lengths": t([[2], [2]], i64), "axis": 1}
