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


def linalg_cases():
    for part in (factored,):
        yield from part()
