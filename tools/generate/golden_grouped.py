# SPDX-License-Identifier: Apache-2.0
"""Calls of products of groups for golden_hand.py, and the operator that transformers registers for
them, by its definition: each group of rows times a matrix of its own."""

import torch

from golden_hand import bf16, f16, f32, f64, i64, ramp, t


def grouped_mm_fallback(rows, weight, offs):
    out, start = rows.new_zeros(rows.shape[0], weight.shape[2]), 0
    for group, end in enumerate(offs.tolist()):
        out[start:end] = rows[start:end] @ weight[group]
        start = end
    return out


def declare_fallback():
    """Not on import: transformers itself declares it."""
    torch.library.define("transformers::grouped_mm_fallback",
                         "(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    torch.library.impl("transformers::grouped_mm_fallback", "CPU", grouped_mm_fallback)


def grouped_cases():
    """Yields (overload name, args, kwargs)."""
    for at, offs in enumerate(([2, 2, 5], [0, 3, 3], [1, 4, 6], [6, 6, 6])):
        dtype, ends = (f32, bf16, f16)[at % 3], t(offs, torch.int32)
        deep = ramp(offs[-1], 16, dtype=dtype)
        yield "aten._grouped_mm.default", [deep, ramp(3, 16, 8, dtype=dtype), ends], {}
        yield "aten._grouped_mm.default", [deep, ramp(3, 8, 16, dtype=dtype).transpose(1, 2), ends], {}
        yield "aten._grouped_mm.default", [ramp(8, 16, dtype=dtype), ramp(16, 24, dtype=dtype), ends * 2], {}
    for dtype in (f32, bf16):
        yield "aten._grouped_mm.default", [ramp(3, 4, 16, dtype=dtype), ramp(3, 16, 8, dtype=dtype)], {}
        operands = [ramp(3, 8, 16, dtype=dtype), ramp(16, 24, dtype=dtype), t([8, 8, 24], torch.int32)]
        yield "aten._grouped_mm.default", operands, {"out_dtype": dtype}
    # Ends beyond a matrix, and matrices of another depth: what is left of a slice counts.
    wide = ramp(6, 4)
    for depth, ends in ((8, [2, 4]), (4, [2, 9]), (4, [3, 2])):
        other = ramp(depth, 4)
        yield "aten._grouped_mm.default", [wide, other, t(ends, torch.int32)], {}
    for ends in ([2, 9], [-1, 6], [9, 3], [6, -3]):
        yield "aten._grouped_mm.default", [wide, ramp(2, 4, 8), t(ends, torch.int32)], {}
    for dtype, ends in ((f32, [2, 2, 5]), (f32, [0, 3, 7]), (bf16, [1, 4, 7]), (f16, [7, 7, 7]),
                        (f64, [3, 5, 6])):
        for kind in (torch.int32, i64):
            operands = [ramp(7, 5, dtype=dtype), ramp(3, 5, 9, dtype=dtype), t(ends, kind)]
            yield "transformers.grouped_mm_fallback.default", operands, {}
