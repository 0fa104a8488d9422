# SPDX-License-Identifier: Apache-2.0
"""Calls with complex numbers that PyTorch's operator tests do not make: a part of
make_complex_goldens.py."""

import math

import torch

from golden_hand import f32, f64, ramp, t

inf, nan = math.inf, math.nan
c64, c128 = torch.complex64, torch.complex128


def z(values, dtype=c64):
    return torch.tensor(values, dtype=dtype)


def spiral(*shape, dtype=c64, seed=3):
    """Numbers of all quarters, the same every time."""
    n = math.prod(shape)
    real, imag = torch.arange(n, dtype=f64) * 0.37 - 1.2, torch.cos(torch.arange(n, dtype=f64) * seed) * 2
    return torch.complex(real, imag).to(dtype).reshape(shape)


# Products and sums of infinite parts have one meaning: the plain formula of the parts.
EDGES = [complex(inf, 1), complex(-inf, 0.5), complex(1, inf), complex(0, -inf), complex(inf, nan),
         complex(nan, 0), complex(0.0, -0.0), complex(-0.0, 0.0), complex(1, 0), complex(0, 1),
         complex(3e38, 3e38), complex(1e-30, -1e-30)]


def hand_cases():
    yield from views()
    yield from arithmetic()
    yield from made_of_parts()
    yield from mixed()
    yield from transforms()
    yield from windows()
    yield from products()
    yield from norms()
    yield from places()
    yield from convolutions()
    yield from matrices()
    yield from spectra()
    yield from pools()
    yield from losses()
    yield from layers()


def views():
    for dtype in (c64, c128):
        x = spiral(3, 4, dtype=dtype)
        for y in (x, x.t(), x[:, 1::2], x[1], x[2, 3], x[:0], x[:1].expand(3, 4)):
            yield "aten.view_as_real.default", [y], {}
            yield "aten.real.default", [y], {}
            yield "aten.imag.default", [y], {}
        pairs = torch.view_as_real(x).clone()
        for y in (pairs, pairs[1:], pairs.transpose(0, 1), pairs[:, ::2], pairs[0, 0], pairs[:0],
                  pairs[:, 1:]):
            yield "aten.view_as_complex.default", [y], {}
    yield "aten.real.default", [ramp(2, 3)], {}
    yield "aten.real.default", [torch.arange(3)], {}


def arithmetic():
    edges = z(EDGES)
    for name in ("add", "sub", "mul"):
        yield f"aten.{name}.Tensor", [edges.unsqueeze(1), edges], {}
        yield f"aten.{name}.Tensor", [edges.to(c128).unsqueeze(1), edges.to(c128)], {}
        yield f"aten.{name}.Tensor", [spiral(4, 5), spiral(5)], {}
        yield f"aten.{name}.Tensor", [spiral(4, 5).t(), 1.5 - 2j], {}
        yield f"aten.{name}.Scalar", [spiral(4, 5), 1.5 - 2j], {}
        yield f"aten.{name}.Scalar", [spiral(4, 5), True], {}
    for name in ("add.Tensor", "sub.Tensor", "rsub.Tensor"):
        yield f"aten.{name}", [spiral(3, 5), spiral(5, dtype=c128)], {"alpha": 2 - 1j}
        yield f"aten.{name}", [spiral(3, 5), ramp(5)], {"alpha": 3}
    for name in ("neg", "abs", "isnan", "isinf", "isfinite", "exp", "sqrt", "square", "angle", "sgn",
                 "nan_to_num", "cos", "sin", "tanh", "log"):
        yield f"aten.{name}.default", [edges[5:]], {}
        yield f"aten.{name}.default", [spiral(3, 7)], {}
        yield f"aten.{name}.default", [spiral(3, 7, dtype=c128).t()], {}
    for name in ("neg", "abs", "isnan", "isinf", "isfinite", "nan_to_num"):
        yield f"aten.{name}.default", [edges], {}
    yield "aten.nan_to_num.default", [edges, 1.0, 2.0, -3.0], {}
    for exponent in (0.5, -0.5, 2, 3, -1, -2, 2.5, 1 + 2j, True, False):
        yield "aten.pow.Tensor_Scalar", [spiral(3, 5, dtype=c128), exponent], {}
    yield "aten.pow.Tensor_Tensor", [spiral(3, 5), spiral(5)], {}
    yield "aten.pow.Scalar", [2 + 1j, spiral(3, 5)], {}
    yield "aten.pow.Scalar", [2 + 1j, ramp(3, 5)], {}
    for name in ("eq", "ne"):
        yield f"aten.{name}.Tensor", [edges.unsqueeze(1), edges], {}
        yield f"aten.{name}.Scalar", [edges, 1j], {}
        yield f"aten.{name}.Scalar", [ramp(4), -1.0 + 0j], {}


def made_of_parts():
    for dtype in (f32, f64):
        a, b = ramp(3, 5, dtype=dtype), ramp(5, dtype=dtype, start=2.0)
        for name in ("complex", "polar"):
            yield f"aten.{name}.default", [a, b], {}
            yield f"aten.{name}.default", [a.t(), b.unsqueeze(1)], {}
            yield f"aten.{name}.default", [a[0, 0], b], {}
            yield f"aten.{name}.default", [a[:0], b], {}
            yield f"aten.{name}.default", [a[:, ::2], a[:, ::2]], {}
        yield "aten.complex.default", [t([inf, nan, -0.0], dtype), t([1.0, -inf, nan], dtype)], {}
        yield "aten.angle.default", [t([1.0, -1.0, 0.0, -0.0, nan, inf, -inf], dtype)], {}
    yield "aten.angle.default", [torch.arange(-2, 3)], {}
    yield "aten.angle.default", [t([True, False])], {}


def mixed():
    """Promotion: tensors, 0-dim tensors, numbers."""
    others = [ramp(3), ramp(3, dtype=f64), torch.arange(3), t([True, False, True]), spiral(3),
              spiral(3, dtype=c128), t(2.0), t(2.0, f64), z(1 + 2j), z(1 + 2j, c128), t(3), 2, 2.5, True,
              1 - 1j]
    for self in (spiral(3), spiral(3, dtype=c128), ramp(3), ramp(3, dtype=f64), torch.arange(3),
                 t([True, False, True])):
        for other in others:
            if self.is_complex() or isinstance(other, complex) or getattr(other, "is_complex", bool)():
                yield "aten.mul.Tensor", [self, other], {}
                yield "aten.add.Tensor", [other if isinstance(other, torch.Tensor) else self, self], {}
    condition = t([True, False, True])
    yield "aten.where.self", [condition, spiral(3), ramp(3, dtype=f64)], {}
    yield "aten.where.self", [condition.unsqueeze(1), spiral(3), spiral(3, 3).t()], {}
    yield "aten.where.ScalarOther", [condition, spiral(3), 1j], {}
    yield "aten.where.ScalarSelf", [condition, 1j, ramp(3)], {}
    yield "aten.masked_fill.Scalar", [spiral(3), condition, 2 - 1j], {}
    yield "aten.masked_fill.Scalar", [spiral(3), condition, 2], {}
    yield "aten.masked_fill.Tensor", [spiral(3, dtype=c128), condition, z(2 - 1j)], {}
    yield "aten.masked_fill.Tensor", [spiral(3), condition, t(4.0)], {}
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield f"aten.{name}.default", [z([0, 1j, 1]), z([0, 0, nan])], {}
        yield f"aten.{name}.default", [z([0, 1j, 1]), ramp(3)], {}
    yield "aten.logical_not.default", [z([0, 1j, 1, nan])], {}


def transforms():
    """Lengths of one point, of small and of large prime factors; layouts; norms."""
    for dtype in (c64, c128):
        for n in (1, 2, 3, 4, 5, 8, 12, 15, 16, 49, 61, 67, 97, 128, 134):
            x = spiral(n, dtype=dtype)
            yield "aten.fft_fft.default", [x], {}
            yield "aten.fft_ifft.default", [x], {}
            yield "aten.fft_rfft.default", [x.real.clone()], {}
            yield "aten.fft_irfft.default", [x, n], {}
            yield "aten.fft_hfft.default", [x, n], {"norm": "ortho"}
            yield "aten.fft_ihfft.default", [x.real.clone()], {"norm": "forward"}
        x = spiral(3, 4, 6, dtype=dtype)
        for y in (x, x.transpose(0, 2), x[:, ::2], x[:, :, :1].expand(3, 4, 6)):
            for dims in ([0], [1], [2], [0, 1], [2, 0], [0, 1, 2], [2, 1, 0]):
                yield "aten._fft_c2c.default", [y, dims, len(dims) % 3, dims[0] != 0], {}
                yield "aten._fft_r2c.default", [y.real.clone(), dims, len(dims) % 3, dims[0] != 0], {}
                half = y.shape[dims[-1]]
                yield "aten._fft_c2r.default", [y, dims, len(dims) % 3, 2 * half - 1 - dims[0] % 2], {}
        for name in ("fftn", "ifftn", "irfftn", "hfftn", "fft2", "ifft2", "irfft2", "hfft2"):
            yield f"aten.fft_{name}.default", [x], {}
            yield f"aten.fft_{name}.default", [x], {"norm": "ortho"}
            yield f"aten.fft_{name}.default", [x.transpose(0, 1), [5, 3], [0, 2]], {"norm": "forward"}
        for name in ("fftn", "ifftn", "rfftn", "ihfftn", "fft2", "rfft2", "ihfft2", "ifft2"):
            yield f"aten.fft_{name}.default", [x.real.clone()], {}
            yield f"aten.fft_{name}.default", [x.real.clone(), [7, 2], [1, 0]], {"norm": "ortho"}
            yield f"aten.fft_{name}.default", [torch.arange(24).reshape(4, 6)], {}
    yield "aten._fft_c2c.default", [spiral(3, 4).t(), [], 0, True], {}
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 2, 5, 8):
            yield f"aten.fft_{name}.default", [n], {"device": torch.device("cpu"), "pin_memory": False}
            yield f"aten.fft_{name}.default", [n, 0.25], {"dtype": f64, "device": torch.device("cpu")}
    for name in ("fftshift", "ifftshift"):
        for x in (ramp(5), ramp(4, 3), spiral(3, 4, 5), torch.arange(6)):
            yield f"aten.fft_{name}.default", [x], {}
            yield f"aten.fft_{name}.default", [x, [0]], {}
            yield f"aten.fft_{name}.default", [x, [-1]], {}
    for x in (spiral(3, 5), spiral(5, dtype=c128), ramp(2, 3)):
        yield "aten.conj_physical.default", [x], {}
        yield "aten.conj_physical_.default", [x], {}
        yield "aten._conj_physical.default", [x], {}
    for x in (spiral(2, 3).t(), spiral(4, 6)[1:3, ::2], spiral(0, 2)):
        yield "aten._conj_physical.default", [x], {}


def windows():
    """stft and istft: windows shorter than the transform, one and two signals, all norms."""
    hann = torch.hann_window(8)
    for signal in (spiral(40).real.clone(), spiral(2, 40).real.clone(), spiral(40, dtype=c128).real.clone()):
        window = hann.to(signal.dtype)
        for form in ({"return_complex": True}, {"return_complex": False},
                     {"return_complex": True, "onesided": False, "normalized": True},
                     {"return_complex": True, "hop_length": 3}):
            yield "aten.stft.default", [signal, 8], form
            yield "aten.stft.default", [signal, 8], {**form, "window": window}
            yield "aten.stft.default", [signal, 11], {**form, "window": window, "win_length": 8}
            yield "aten.stft.center", [signal, 8], {**form, "window": window}
            yield "aten.stft.center", [signal, 9], {**form, "center": False, "win_length": 6}
            yield "aten.stft.center", [signal, 8], {**form, "pad_mode": "constant"}
        for form in ({}, {"normalized": True}, {"onesided": False}, {"hop_length": 3}, {"length": 33},
                     {"length": 50}, {"win_length": 7}):
            given = {**form, "window": torch.hann_window(form.get("win_length", 8)).to(signal.dtype) + 0.1}
            ends = {key: value for key, value in given.items() if key != "length"}
            spectrum = torch.ops.aten.stft.center(signal, 8, return_complex=True, **ends)
            yield "aten.istft.default", [spectrum, 8], given
            yield "aten.istft.default", [spectrum, 8], {**given, "center": False, "length": 30}
    yield "aten.stft.default", [spiral(40), 8], {"hop_length": 4}
    a, b = spiral(3, 4), spiral(4, 5)
    yield "aten.mm.default", [a, b], {}
    yield "aten.mm.default", [a.t().contiguous().t(), b[:, ::2]], {}
    yield "aten.matmul.default", [spiral(2, 3, 4), b], {}
    yield "aten.linear.default", [a, spiral(2, 4), spiral(2)], {}
    yield "aten.addmm.default", [spiral(5), a, b], {"beta": 1 - 2j, "alpha": 0.5j}
    yield "aten.addmm.default", [spiral(5), a, b], {"beta": 0}
    yield "aten.einsum.default", ["bix,iox->box", [spiral(2, 3, 4), spiral(3, 5, 4)]], {}
    yield "aten.sum.dim_IntList", [spiral(3, 4, 5), [0, -1], True], {}
    yield "aten.mean.dim", [spiral(3, 4, 5, dtype=c128), [1]], {}


def products():
    for dtype in (c64, c128):
        x = spiral(3, 4, dtype=dtype)
        for y in (x, x.t(), spiral(2, 3, 2, dtype=dtype), x[:, ::2], torch.conj(x).clone(), x[:, :1]):
            for dim in range(-1, y.dim() - 1):
                yield "aten.cumprod.default", [y, dim], {}
                yield "aten.prod.dim_int", [y, dim, dim == 0], {}
            yield "aten.prod.default", [y], {}
        yield "aten.cumprod.default", [x[0, 0], 0], {}
        yield "aten.cumprod_.default", [x, 1], {}
        yield "aten.prod.default", [x[:0]], {}
        yield "aten.prod.dim_int", [x[:0], 0], {}
        yield "aten.vander.default", [x[0], 3, True], {}
        yield "aten.linalg_vander.default", [x], {"N": 5}
        for exponent in (2, 0.5, -1.5, 1 - 2j):
            yield "aten.pow_.Scalar", [x, exponent], {}
        yield "aten.pow_.Tensor", [x, spiral(4, dtype=dtype, seed=5)], {}
        yield "aten.addbmm.default", [spiral(3, 2, dtype=dtype), spiral(2, 3, 4, dtype=dtype),
                                      spiral(2, 4, 2, dtype=dtype)], {"beta": 0.5, "alpha": 1j}
    edges = z([complex(inf, 1), complex(2, 3), complex(0, -inf), complex(nan, 0), complex(0, 0)])
    for n in range(1, 6):
        yield "aten.cumprod.default", [edges[:n].clone(), 0], {}
    yield "aten.cumprod.default", [z(EDGES), 0], {}
    yield "aten.cumprod.default", [z(complex(nan, 1)), 0], {}
    yield "aten.prod.default", [spiral(5)], {"dtype": c128}
    yield "aten.prod.default", [spiral(5)], {"dtype": f32}
    yield "aten.cumprod.default", [spiral(5), 0], {"dtype": f64}


def norms():
    edges = z(EDGES).reshape(3, 4)
    for x in (spiral(3, 4), spiral(4, 3, dtype=c128).t(), edges):
        for order in (1, -1, inf, -inf):
            yield "aten.linalg_norm.default", [x, order], {}
            yield "aten.linalg_norm.default", [x, order, [1]], {}
            yield "aten.linalg_matrix_norm.default", [x, order], {}
        yield "aten.linalg_norm.default", [x], {"dtype": c128}
        yield "aten.linalg_norm.ord_str", [x, "fro"], {}
        yield "aten.linalg_matrix_norm.str_ord", [x], {}
        other = spiral(4, dtype=x.dtype, seed=7)
        for p in (0.0, 1.0, 2.0, 2.5, inf):
            yield "aten.dist.default", [x, other, p], {}
            yield "aten.pairwise_distance.default", [x, other, p], {}
            yield "aten.renorm.default", [x, p or 3.0, 0, 1.5], {}
        for n in range(3):
            yield "aten.l1_loss.default", [x, other.expand(3, 4), n], {}
            yield "aten.norm_except_dim.default", [x, 2, n - 1], {}
        yield "aten.logsumexp.default", [x, [1]], {}
        yield "aten.logsumexp.default", [x, [0, 1], True], {}
        yield "aten.mean.default", [x], {}
        yield "aten.mean.dim", [x, [0], True], {}
        yield "aten.softmax.int", [x, 1, f32], {}
        yield "aten.log_softmax.int", [x, 0, f64], {}
        for name in ("std_mean", "var_mean"):
            yield f"aten.{name}.default", [x], {}
            yield f"aten.{name}.dim", [x, [1], False, True], {}
            yield f"aten.{name}.correction", [x, [0]], {"correction": 2}
    for x in (spiral(3, 4), spiral(2, 5, dtype=c128), spiral(6)):
        yield "aten.cov.default", [x], {}
        yield "aten.cov.default", [x], {"correction": 0}
        yield "aten.corrcoef.default", [x], {}


def places():
    at, rows = t([[0, 2, 1, 0], [2, 2, 0, 1]], dtype=torch.int64), t([2, -3], dtype=torch.int64)
    for x in (spiral(3, 4), spiral(4, 3, dtype=c128).t()):
        for value in (2.5, True, 1 - 2j, inf):
            yield "aten.index_fill.int_Scalar", [x, 0, rows, value], {}
            yield "aten.index_fill_.int_Scalar", [x, 1, rows, value], {}
            yield "aten.index_fill.int_Tensor", [x, 0, rows, torch.tensor(value)], {}
            yield "aten.index_fill_.int_Tensor", [x, 1, rows, torch.tensor(value)], {}
            yield "aten.scatter.value", [x, 0, at, value], {}
            yield "aten.scatter_.value", [x, 0, at, value], {}
        src = spiral(2, 4, dtype=x.dtype, seed=5)
        for twin in ("", "_"):
            yield f"aten.scatter{twin}.reduce", [x, 0, at, src], {"reduce": "add"}
            yield f"aten.scatter_reduce{twin}.two", [x, 0, at, src, "sum"], {}
            yield f"aten.scatter_reduce{twin}.two", [x, 0, at, src, "sum"], {"include_self": False}
            for reduce in ("add", "multiply"):
                yield f"aten.scatter{twin}.value_reduce", [x, 0, at, 1 - 2j], {"reduce": reduce}
        wide = spiral(2, x.shape[1], dtype=x.dtype, seed=5)
        yield "aten.index_reduce.default", [x, 0, t([2, 2], dtype=torch.int64), wide, "prod"], {}
        yield "aten.index_reduce.default", [x, 0, t([2, 2], dtype=torch.int64), wide, "mean"], {}
        yield "aten._unsafe_index_put.default", [x, [t([0, 2], dtype=torch.int64)], src], {}
        yield "aten._unsafe_index_put.default", [x, [t([0, 0], dtype=torch.int64)], src, True], {}


def convolutions():
    for dtype in (c64, c128):
        def x(*shape, seed=3, dtype=dtype):
            return spiral(*shape, dtype=dtype, seed=seed)

        for bias in (None, x(4, seed=5)):
            for given in ([], [[2], [1]], [[1], [2], [2]]):
                yield "aten.conv1d.default", [x(2, 3, 7), x(4, 3, 3), bias, *given], {}
            yield "aten.conv1d.default", [x(4, 7), x(4, 2, 3), bias, [1], [0], [1], 2], {}
            yield "aten.conv1d.padding", [x(1, 3, 7), x(4, 3, 3), bias, [1], "same"], {}
            yield "aten.conv2d.default", [x(1, 2, 5, 4), x(4, 2, 3, 2), bias, [2, 1], [1, 0]], {}
            yield "aten.conv2d.default", [x(1, 2, 4, 4), x(4, 2, 1, 1), bias], {}
            yield "aten.conv2d.padding", [x(1, 2, 5, 4), x(4, 2, 3, 3), bias, [1, 1], "same"], {}
            yield "aten.conv3d.default", [x(1, 1, 3, 3, 3), x(4, 1, 2, 2, 2), bias], {}
            yield "aten.conv3d.padding", [x(1, 1, 3, 3, 3), x(4, 1, 2, 2, 2), bias, [1, 1, 1], "valid"], {}
            yield "aten.conv_transpose1d.default", [x(1, 3, 5), x(3, 4, 3), bias, [2], [1], [1]], {}
            yield "aten.conv_transpose2d.input", [x(1, 2, 3, 3), x(2, 4, 2, 2), bias, [2, 1]], {}
            yield "aten.conv_transpose3d.input", [x(1, 1, 2, 2, 2), x(1, 4, 2, 2, 2), bias], {}


def matrices():
    """Direct factorisations: one matrix and batches, both layouts, empty ones, singular ones."""
    singular = spiral(3, 3)
    singular[2] = singular[0] * (1 - 2j)
    squares = (spiral(3, 3), spiral(4, 4).t(), spiral(2, 2, 2), spiral(2, 0, 0), spiral(3, 3, dtype=c128))
    for a in (*squares, singular):
        for name in ("det", "linalg_det", "_linalg_det", "slogdet", "linalg_slogdet", "_linalg_slogdet",
                     "logdet", "linalg_inv_ex", "linalg_matrix_exp", "matrix_exp", "linalg_lu_factor_ex"):
            yield f"aten.{name}.default", [a], {}
    for a in squares:
        b, wide = spiral(*a.shape[:-1], 2, dtype=a.dtype, seed=5), a[..., :2, :] + 1
        vector = spiral(a.shape[-1], dtype=a.dtype, seed=5)
        for name in ("inverse", "linalg_inv", "linalg_lu_factor"):
            yield f"aten.{name}.default", [a], {}
        for power in (-2, 0, 3):
            yield "aten.linalg_matrix_power.default", [a, power], {}
            yield "aten.matrix_power.default", [a, power], {}
        for name in ("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex"):
            yield f"aten.{name}.default", [a, b], {}
        yield "aten.linalg_solve.default", [a, vector], {}
        yield "aten.linalg_solve.default", [a, wide], {"left": False}
        yield from factored(a, b, wide)
    for a in (spiral(2, 3), spiral(4, 2).t().contiguous().t(), spiral(2, 3, 2), spiral(0, 3), singular,
              spiral(3, 2, dtype=c128)):
        for mode in ("reduced", "complete", "r"):
            yield "aten.linalg_qr.default", [a, mode], {}
        yield "aten.qr.default", [a, a.shape[-1] == 3], {}
        for name in ("linalg_lu_factor_ex", "linalg_lu"):
            yield f"aten.{name}.default", [a], {}
        yield "aten.lu_unpack.default", [*torch.linalg.lu_factor_ex(a)[:2]], {}


def pools():
    """To one element; PyTorch has no others."""
    for x in (spiral(2, 3, 2, 2), spiral(2, 3, 2, 2, dtype=c128).transpose(1, 3), spiral(3, 2, 3)):
        yield "aten.adaptive_avg_pool2d.default", [x, [1, 1]], {}
        yield "aten.adaptive_avg_pool3d.default", [x, [1, 1, 1]], {}
        yield "aten.adaptive_avg_pool1d.default", [x[0].contiguous() if x.dim() == 4 else x, [1]], {}


def spectra():
    """Values of matrices; vectors are free in their phases, and refused."""
    singular = spiral(3, 3)
    singular[2] = singular[0] * (1 - 2j)
    for a in (spiral(3, 2), spiral(2, 4).t(), spiral(2, 3, 3, dtype=c128), singular, spiral(2, 0)):
        yield "aten.linalg_svdvals.default", [a], {}
        yield "aten._linalg_svd.default", [a, False, False], {}
        yield "aten.linalg_matrix_rank.default", [a, 1.0], {}
        yield "aten.linalg_matrix_rank.atol_rtol_float", [a], {"atol": 1.0}
        yield "aten.linalg_pinv.default", [a, 1e-3], {}
        yield "aten.linalg_pinv.atol_rtol_float", [a], {"rtol": 1e-3}
        if a.numel() != 0:
            yield "aten.pinverse.default", [a], {}
        yield "aten.nuclear_norm.default", [a], {}
        yield "aten.linalg_cond.default", [a if a is not singular else spiral(2, 2).t() + 1], {}
    for a in (spiral(3, 3), spiral(4, 4).t(), spiral(2, 2, 2, dtype=c128), singular, spiral(0, 0)):
        for half in ("L", "U"):
            yield "aten.linalg_eigvalsh.default", [a, half], {}
            yield "aten._linalg_eigh.default", [a, half, False], {}
        for name in ("linalg_pinv", "linalg_matrix_rank"):
            yield f"aten.{name}.atol_rtol_float", [a], {"hermitian": True}
            yield f"aten.{name}.atol_rtol_float", [a], {"hermitian": True, "atol": 2.5}
            yield f"aten.{name}.default", [a, 0.1, True], {}
            if a is singular:
                yield f"aten.{name}.atol_rtol_tensor", [a], {}
                yield f"aten.{name}.atol_rtol_tensor", [a], {"rtol": torch.tensor([0.01, 0.9])}


def factored(a, b, wide):
    """What takes factors: of a square matrix, of its positive definite form, its triangles."""
    lu, pivots = torch.linalg.lu_factor_ex(a)[:2]
    definite = a @ a.mH.resolve_conj() + torch.eye(a.shape[-1], dtype=a.dtype)
    yield "aten.lu_solve.default", [b, lu, pivots], {}
    for adjoint in (False, True):
        yield "aten.linalg_lu_solve.default", [lu, pivots, b], {"adjoint": adjoint}
        yield "aten.linalg_lu_solve.default", [lu, pivots, wide], {"left": False, "adjoint": adjoint}
    for upper in (False, True):
        half = torch.linalg.cholesky(definite, upper=upper)
        for name in ("linalg_cholesky", "linalg_cholesky_ex"):
            yield f"aten.{name}.default", [definite], {"upper": upper}
        yield "aten.cholesky.default", [definite, upper], {}
        yield "aten.cholesky_solve.default", [b, half, upper], {}
        yield "aten.cholesky_inverse.default", [half, upper], {}
        for form in ({}, {"unitriangular": True}):
            yield "aten.linalg_solve_triangular.default", [a, b], {"upper": upper, **form}
            yield ("aten.linalg_solve_triangular.default", [a, wide],
                   {"upper": upper, "left": False, **form})


def losses():
    for dtype in (c64, c128):
        a, b, c = (spiral(2, 3, dtype=dtype, seed=seed) for seed in (3, 5, 7))
        for n in range(3):
            yield "aten.soft_margin_loss.default", [a, b, n], {}
            yield "aten.poisson_nll_loss.default", [a, b, n == 0, False, 1e-8, n], {}
            yield "aten.triplet_margin_loss.default", [a, b, c], {"reduction": n, "swap": n == 1}


def layers():
    for dtype in (c64, c128):
        def x(*shape, seed=3, dtype=dtype):
            return spiral(*shape, dtype=dtype, seed=seed)

        yield "aten.rms_norm.default", [x(2, 3), [3]], {}
        yield "aten.rms_norm.default", [x(2, 3), [2, 3], x(2, 3, seed=5), 0.5], {}
        for pad in (0, 1, -1):
            yield "aten.conv_tbc.default", [x(4, 2, 2), x(2, 2, 3, seed=5), x(3), pad], {}
        for name, n, h in (("lstm_cell", 4, [x(2, 2), x(2, 2, seed=7)]), ("gru_cell", 3, x(2, 2)),
                           ("rnn_tanh_cell", 1, x(2, 2))):
            weights = [x(2 * n, 3, seed=5) / 3, x(2 * n, 2, seed=7) / 3]
            yield f"aten.{name}.default", [x(2, 3), h, *weights], {}
            yield f"aten.{name}.default", [x(2, 3), h, *weights, x(2 * n), x(2 * n, seed=5)], {}
