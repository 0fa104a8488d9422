# SPDX-License-Identifier: Apache-2.0
"""Calls of second names and of small composites: copies of views, put, special functions,
torch.linalg's arrangements, the different elements of a tensor."""

import torch
from golden_hand import bf16, boolean, f16, f64, i8, i32, i64, inf, ints, nan, ramp, t, u8


def name_cases():
    for part in (copies, places, functions, matrices, different):
        yield from part()


def copies():
    for x in (ramp(3, 4), ramp(4, 3).t(), ramp(2, 3, dtype=f64), ints(3, 4, dtype=i8)):
        yield "as_strided_copy.default", [x, [2, 2], [1, 2], 1]
        yield "diagonal_copy.default", [x, 1]
        yield "diagonal_copy.default", [x, -1, 1, 0]
        yield "expand_copy.default", [x, [2, *x.shape]]
        yield "permute_copy.default", [x, [1, 0]]
        yield "select_copy.int", [x, 1, -1]
        yield "slice_copy.Tensor", [x, 1, 0, 9, 2]
        yield "squeeze_copy.default", [x[:1]]
        yield "squeeze_copy.dim", [x[:1], 0]
        yield "squeeze_copy.dims", [x[:1, None], [0, 1]]
        yield "t_copy.default", [x]
        yield "transpose_copy.int", [x, 0, -1]
        yield "unsqueeze_copy.default", [x, 1]
        yield "view_copy.default", [x, [-1]]
        yield "view_copy.default", [x, [x.numel() // 2, 2]]
        yield "split_copy.Tensor", [x, 2, 1]
        yield "split_with_sizes_copy.default", [x, [1, x.shape[1] - 1], 1]
        yield "unbind_copy.int", [x, 1]
    for dtype in (i32, u8, f16, f64):
        yield "view_copy.dtype", [ramp(3, 4), dtype]
    for x in (torch.complex(ramp(3, 2), ramp(3, 2, start=0.4)), torch.complex(ramp(4), ramp(4))):
        yield "view_as_real_copy.default", [x]
        yield "view_as_complex_copy.default", [torch.view_as_real(x)]


def places():
    for x in (ramp(3, 4), ramp(4, 3).t(), ints(3, 4), ramp(3, 4, dtype=f16)):
        source = ints(2, 2, dtype=i32).to(x.dtype)
        for accumulate in (False, True):
            for name in ("put.default", "put_.default"):
                yield name, [x, t([[0, -1], [5, 3]], i64), source, accumulate]
    for pad, time in ((0, 5), (1, 5), (2, 3)):
        for dtype in (torch.float32, f64):
            yield "conv_tbc.default", [ramp(time, 2, 3, dtype=dtype), ramp(3, 3, 4, dtype=dtype),
                                       ramp(4, dtype=dtype), pad]
    yield "conv_tbc.default", [ramp(6, 1, 2), ramp(1, 2, 5), ramp(5), 0]
    yield "conv_tbc.default", [ramp(7, 3, 4), ramp(2, 4, 2), ramp(2), 1]


def functions():
    x = t([0.0, 1e-5, 0.3, 1.0, 2.5, 7.75, 30.0, 120.0, -0.4, -3.0, inf, nan])
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0",
                 "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
                 "spherical_bessel_j0", "ndtr"):
        yield f"special_{name}.default", [x]
        yield f"special_{name}.default", [x.double()]
        yield f"special_{name}.default", [ints(5, low=0)]
    a = t([0.5, 1.0, 3.0, 10.0, 50.0, 250.0, 0.0, nan, 2.0, 1000.0])
    for dtype in (torch.float32, f64, bf16):
        for factor in (0.2, 0.9, 1.1, 3.0, 0.0, inf):
            y = (a.to(dtype) + 1) * factor
            for name in ("igamma.default", "igammac.default", "special_gammainc.default",
                         "special_gammaincc.default"):
                yield name, [a.to(dtype), y]
    for name in ("special_gammainc.default", "special_gammaincc.default"):
        yield name, [ramp(3, 4).abs().t(), ramp(3, 4, start=0.5).abs().t()]
        yield name, [ramp(2, 3, 2, 2).abs().to(memory_format=torch.channels_last), t(0.7)]
    for p in (1, 2, 5):
        yield "mvlgamma.default", [t([3.0, 4.5, 10.0]), p]
        yield "special_multigammaln.default", [t([3.0, 4.5, 10.0], f64), p]
    for value in (x, ints(3), t([True, False]), torch.complex(x[:3], t([0.0, 1.0, nan])), ramp(3, 4).t(),
                  ramp(2, dtype=f16), ramp(2, dtype=f64), ints(2, dtype=u8)):
        yield "isreal.default", [value]


def matrices():
    well = torch.eye(4) * 3 + ramp(4, 4) * 0.3
    for a in (well, well.double(), well.reshape(1, 4, 4).repeat(2, 1, 1), well.t()):
        for p in (None, 2, -2, 1, -1, inf, -inf):
            yield "linalg_cond.default", [a, p]
        for p in ("fro", "nuc"):
            yield "linalg_cond.p_str", [a, p]
        yield "linalg_pinv.default", [a, 1e-6]
        yield "pinverse.default", [a]
        yield "linalg_matrix_rank.default", [a, 0.5]
        yield "nuclear_norm.default", [a[0] if a.dim() == 3 else a, True]
        yield "nuclear_norm.dim", [a, [-2, -1]]
        yield "frobenius_norm.dim", [a, [-2, -1], True]
        yield "linalg_diagonal.default", [a], {"offset": 1}
        yield "linalg_matmul.default", [a, well.to(a.dtype)]
    yield "pinverse.default", [ramp(5, 3)]
    yield "linalg_cond.default", [torch.zeros(3, 3), 1]
    for tensors in ([ramp(2, 3), ramp(3, 4)], [ramp(2, 3), ramp(3, 1), ramp(1, 5)], [ramp(2, 2)]):
        yield "chain_matmul.default", [tensors]
        yield "chain_matmul.default", [[tensor.double() for tensor in tensors]]
    big = (torch.eye(6) * 2 + ramp(6, 6) * 0.2)
    for dtype in (torch.float32, f64):
        yield "linalg_tensorinv.default", [big.reshape(2, 3, 6).to(dtype), 2]
        yield "linalg_tensorinv.default", [big.reshape(6, 3, 2).to(dtype), 1]
        yield "linalg_tensorsolve.default", [big.reshape(2, 3, 6).to(dtype), ramp(2, 3, dtype=dtype)]
        yield "linalg_tensorsolve.default", [big.reshape(2, 3, 3, 2).to(dtype), ramp(2, 3, dtype=dtype)]
        yield "linalg_tensorsolve.default", [big.reshape(6, 2, 3).movedim(0, 2).to(dtype),
                                             ramp(2, 3, dtype=dtype)]
    for x in (ramp(3), ramp(2, 3, dtype=f64), ints(4), ints(2, 3, dtype=i32)):
        for n in (None, 2, 5):
            yield "linalg_vander.default", [x], {"N": n}


def different():
    nans = t([1.0, nan, -2.0, nan, 1.0, inf, -0.0, 0.0])
    for x in (nans, ints(3, 4), ints(3, 4, dtype=u8, low=0, high=4), ints(4, 3).t(), t([], i64),
              t([True, False, True]), t(3.0), ints(5, dtype=i8), ramp(3, dtype=f16)):
        for inverse, counts in ((True, True), (False, False), (True, False)):
            yield "_unique2.default", [x, True, inverse, counts]
            yield "unique_consecutive.default", [x, inverse, counts]
        yield "_unique.default", [x, True, True]
    rows = t([[1, 2, 3], [0, 5, 5], [1, 2, 3], [0, 5, 4]], i64)
    for x in (rows, rows.float(), rows.t(), rows.reshape(2, 2, 3), rows.to(boolean)):
        for dim in (0, 1, -1):
            yield "unique_dim.default", [x, dim, True, True, True]
            for inverse, counts in ((True, True), (False, False)):
                yield "unique_consecutive.default", [x, inverse, counts, dim]
    for dim in (0, -1):
        yield "unique_consecutive.default", [t([1.0, 1.0, 2.0]), False, False, dim]
