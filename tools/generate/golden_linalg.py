# SPDX-License-Identifier: Apache-2.0
"""Operator calls on matrices for make_goldens.py."""

import torch

from golden_hand import f32, f64, inf, nan, ramp, t  # noqa: F401


def square(*shape, dtype=f32, start=0.0):
    """Matrices that are far from singular."""
    n = shape[-1]
    return (ramp(*shape, dtype=f64, start=start, step=0.61) + 2.5 * torch.eye(n, dtype=f64)).to(dtype)


def definite(*shape, dtype=f32):
    x = square(*shape, dtype=f64)
    return (x @ x.mT + torch.eye(shape[-1], dtype=f64)).to(dtype)


SHAPES = ((1, 1), (3, 3), (7, 7), (2, 4, 4), (2, 1, 3, 3), (0, 0), (2, 0, 0), (0, 3, 3))


def factored():
    for dtype in (f32, f64):
        for shape in SHAPES:
            a = square(*shape, dtype=dtype)
            for name in ("linalg_inv", "inverse", "linalg_inv_ex", "linalg_det", "det", "_linalg_det",
                         "linalg_slogdet", "slogdet", "_linalg_slogdet", "linalg_lu_factor",
                         "linalg_lu_factor_ex"):
                yield f"{name}.default", [a]
                yield f"{name}.default", [a.mT]
            for name in ("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex"):
                n = shape[-1]
                yield f"{name}.default", [a, ramp(*shape[:-1], 2, dtype=dtype)]
                yield f"{name}.default", [a, ramp(*shape[:-1], dtype=dtype)]
                yield f"{name}.default", [a, ramp(n, dtype=dtype)]
                yield f"{name}.default", [a, ramp(n, 3, dtype=dtype)]
                yield f"{name}.default", [a, ramp(*shape[:-2], 2, n, dtype=dtype)], {"left": False}
                yield f"{name}.default", [a, ramp(5, *[1 for _ in shape[2:]], n, 2, dtype=dtype)]
        flat = t([[1.0, 2.0], [2.0, 4.0]], dtype)
        for name in ("linalg_det", "det", "linalg_slogdet", "slogdet"):
            yield f"{name}.default", [flat]
            yield f"{name}.default", [torch.zeros(3, 3, dtype=dtype)]
            yield f"{name}.default", [t([[nan, 1.0], [2.0, 3.0]], dtype)]
        for shape in ((3, 5), (5, 3), (2, 4, 3), (0, 3), (3, 0)):
            for name in ("linalg_lu_factor", "linalg_lu_factor_ex"):
                yield f"{name}.default", [ramp(*shape, dtype=dtype)]
        yield "linalg_lu_factor_ex.default", [flat]


def triangles():
    for dtype in (f32, f64):
        for shape in SHAPES:
            a = definite(*shape, dtype=dtype)
            n = shape[-1]
            for upper in (False, True):
                for name in ("linalg_cholesky", "linalg_cholesky_ex"):
                    yield f"{name}.default", [a], {"upper": upper}
                    yield f"{name}.default", [a.triu() if upper else a.tril()], {"upper": upper}
                yield "cholesky.default", [a, upper]
                half = torch.linalg.cholesky(a, upper=upper)
                yield "cholesky_inverse.default", [half, upper]
                yield "cholesky_solve.default", [ramp(*shape[:-1], 2, dtype=dtype), half, upper]
                yield "cholesky_solve.default", [ramp(n, 2, dtype=dtype), half.contiguous(), upper]
                for unit in (False, True):
                    options = {"upper": upper, "unitriangular": unit}
                    yield "linalg_solve_triangular.default", [a, ramp(*shape[:-1], 2, dtype=dtype)], options
                    yield "linalg_solve_triangular.default", [a, ramp(n, 3, dtype=dtype)], options
                    yield ("linalg_solve_triangular.default", [a, ramp(*shape[:-2], 2, n, dtype=dtype)],
                           {**options, "left": False})
            if shape in ((3, 3), (2, 1, 3, 3), (0, 3, 3)):
                for options in ([], [False], [True, True], [False, True, True]):
                    yield "triangular_solve.default", [ramp(3, 2, dtype=dtype), a, *options]
            for name in ("linalg_matrix_exp", "matrix_exp"):
                yield f"{name}.default", [square(*shape, dtype=dtype) * 0.4]
                yield f"{name}.default", [(square(*shape, dtype=dtype) * 2).mT]
            for power in (-2, -1, 0, 1, 2, 3, 5):
                for name in ("linalg_matrix_power", "matrix_power"):
                    yield f"{name}.default", [square(*shape, dtype=dtype), power]
            yield "logdet.default", [a]
            yield "logdet.default", [square(*shape, dtype=dtype).flip(-1)]
    yield "linalg_cholesky_ex.default", [definite(3, 3)], {"check_errors": True}
    yield "linalg_matrix_power.default", [(ramp(3, 3) * 3).round().to(torch.int64), 3]
    yield "logdet.default", [torch.zeros(3, 3)]


def spectra():
    for dtype in (f32, f64):
        for shape in (*SHAPES, (4, 3), (3, 4), (2, 5, 3), (2, 3, 5), (0, 3), (3, 0), (12, 5)):
            a = ramp(*shape, dtype=dtype, step=0.61)
            for mode in ("reduced", "complete", "r"):
                yield "linalg_qr.default", [a, mode]
                yield "linalg_qr.default", [a.mT, mode]
            yield "qr.default", [a]
            yield "qr.default", [a, False]
            yield "linalg_svdvals.default", [a]
            yield "linalg_svdvals.default", [a.mT]
            yield "_linalg_svd.default", [a, False, False]
            yield "_linalg_svd.default", [a.mT, True, False]
            yield "linalg_pinv.atol_rtol_float", [a]
            yield "linalg_pinv.atol_rtol_float", [a], {"atol": 0.5, "rtol": 0.1}
            for options in ({}, {"atol": 0.5}, {"rtol": 0.3}, {"atol": 0.1, "rtol": 0.2}):
                yield "linalg_matrix_rank.atol_rtol_float", [a], options
            for order in (2, -2, "nuc"):
                name = "linalg_matrix_norm.str_ord" if order == "nuc" else "linalg_matrix_norm.default"
                yield name, [a, order]
                yield name, [a, order, [-1, 0], True]
        for shape in SHAPES:
            a = definite(*shape, dtype=dtype)
            for half in ("L", "U"):
                yield "linalg_eigvalsh.default", [a, half]
                yield "linalg_eigvalsh.default", [square(*shape, dtype=dtype), half]
                yield "_linalg_eigh.default", [square(*shape, dtype=dtype), half, False]
        flat = ramp(4, 1, dtype=dtype) @ ramp(1, 4, dtype=dtype, start=0.3)
        yield "linalg_matrix_rank.atol_rtol_float", [flat]
        yield "linalg_pinv.atol_rtol_float", [flat]
        yield "linalg_svdvals.default", [torch.zeros(3, 2, dtype=dtype)]
        yield "linalg_svdvals.default", [torch.eye(4, dtype=dtype)]
        chain = [ramp(2, 5, dtype=dtype), ramp(5, 3, dtype=dtype), ramp(3, 4, dtype=dtype)]
        yield "linalg_multi_dot.default", [chain]
        yield "linalg_multi_dot.default", [chain[:2]]
        yield "linalg_multi_dot.default", [[ramp(2, dtype=dtype), *chain]]
        yield "linalg_multi_dot.default", [[*chain, ramp(4, dtype=dtype)]]
        yield "linalg_multi_dot.default", [[ramp(2, dtype=dtype), *chain, ramp(4, dtype=dtype)]]


def checked():
    for shape in ((), (2, ), (2, 3)):
        for name in ("linalg.inv", "linalg.cholesky", "torch.linalg.solve"):
            yield ("_linalg_check_errors.default", [torch.zeros(shape, dtype=torch.int32), name],
                   {"is_matrix": not shape})


def solved():
    for dtype in (torch.float32, torch.float64):
        for shape in ((4, 4), (4, 3), (3, 4), (2, 4, 4), (2, 3, 5)):
            a = ramp(*shape, dtype=dtype) + 3 * torch.eye(*shape[-2:], dtype=dtype)
            yield "linalg_lu.default", [a]
            packed, pivots, _ = torch.linalg.lu_factor_ex(a)
            for data, rows in ((True, True), (True, False), (False, True)):
                yield "lu_unpack.default", [packed, pivots, data, rows]
            yield "linalg_lstsq.default", [a, ramp(*shape[:-1], 2, dtype=dtype)]
            yield "linalg_lstsq.default", [a, ramp(*shape[:-1], 2, dtype=dtype), 1e-4], {"driver": "gelsy"}
            if len(shape) == 3:
                yield "linalg_lstsq.default", [a, ramp(*shape[:-1], dtype=dtype)]
            if shape[-1] != shape[-2]:
                continue
            b = ramp(*shape[:-1], 2, dtype=dtype)
            yield "lu_solve.default", [b, packed, pivots]
            for adjoint in (False, True):
                yield "linalg_lu_solve.default", [packed, pivots, b], {"adjoint": adjoint}
                yield ("linalg_lu_solve.default", [packed, pivots, b.mT.contiguous()],
                       {"left": False, "adjoint": adjoint})


def of_other_dtypes():
    """B takes the dtype of A."""
    a, b = definite(2, 2), ramp(2, 2)
    for one, other in ((f32, f64), (f64, torch.bfloat16), (f32, torch.float16), (f64, torch.int64)):
        for left in (True, False):
            yield ("linalg_solve_triangular.default", [a.to(one), (b * 5).to(other)],
                   {"upper": False, "left": left})


def of_nothing():
    for a, b in (((0, 2), (0, 3)), ((3, 0), (3, 2)), ((3, 2), (3, 0)), ((2, 0, 2), (2, 0)),
                 ((0, 3, 2), (0, 3, 1))):
        yield "linalg_lstsq.default", [torch.ones(a, dtype=f64), torch.ones(b, dtype=f64)]
        yield "linalg_lstsq.default", [torch.ones(a), torch.ones(b), 1e-4], {"driver": "gelsy"}


def tolerances():
    """As torch.export writes calls without a tolerance, and with tensors; limits that float32 would
    round up to a singular value."""
    flat = ramp(4, 1) @ ramp(1, 4, start=0.3)
    ladder = torch.diag(torch.tensor([3.0, 0.3, 0.1]))
    limits, whole = torch.tensor([0.01, 0.1, 2.0]), torch.tensor(1)
    for name in ("linalg_pinv.atol_rtol_tensor", "linalg_matrix_rank.atol_rtol_tensor"):
        for a in (flat, ramp(2, 3, 4, dtype=f64), torch.zeros(2, 0, 3)):
            yield name, [a]
        for options in ({"rtol": limits}, {"atol": limits}, {"atol": limits[0], "rtol": limits.double()},
                        {"rtol": whole}, {"atol": whole}, {"atol": torch.tensor(0.0)}):
            yield name, [ladder], options
        yield name, [-flat - flat.t()], {"hermitian": True, "rtol": limits[1:].double()}
    for rtol in (0.1, 1 / 30):
        yield "linalg_matrix_rank.atol_rtol_float", [ladder], {"rtol": rtol}
        yield "linalg_pinv.atol_rtol_float", [ladder], {"rtol": rtol}
    yield "linalg_pinv.rcond_tensor", [ladder, limits]
    yield "linalg_matrix_rank.tol_tensor", [ladder, limits]
    yield "linalg_matrix_rank.tol_tensor", [ramp(3, 3), whole, True]
    for a in (ramp(2, 3, 3), ramp(3, 4, dtype=f64), torch.zeros(2, 0, 3)):
        yield "linalg_matrix_rank.tol_tensor", [a, torch.tensor(0.5)]
        yield "linalg_matrix_rank.tol_tensor", [a, limits[1:].double()]


def linalg_cases():
    for part in (factored, triangles, spectra, checked, solved, of_other_dtypes, of_nothing, tolerances):
        yield from part()
