# SPDX-License-Identifier: Apache-2.0
"""Calls of torchao's operators for golden_hand.py. Recording them needs torchao; make_goldens.py does
without where it is absent."""

import torch

from golden_hand import bf16, f16, f32, f64, i8, i32, i64, ints, ramp, u8

BLOCKS = ((1, 6), (3, 6), (1, 2), (3, 3), (1, 1))
TYPES = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")


def choosing():
    for source in (ramp(3, 6), ramp(3, 6).abs() + 1, -ramp(3, 6).abs(), torch.zeros(3, 6),
                   ramp(3, 6) * 1e-39):
        for at, block in enumerate(BLOCKS):
            for kind in TYPES:
                dtype = (f32, f16, bf16, f64)[at % 4]
                stored, low, high = ((i8, -128, 127), (u8, 0, 255), (i8, -8, 7), (i32, -2**20, 2**20))[at % 4]
                yield [source.to(dtype), kind, list(block), stored, low, high], {}
    for kind in TYPES:
        yield [ramp(2, 4, 6), kind, [1, 2, 3], i8], {"keepdim": True, "eps": 1e-6}
        yield [ramp(2, 4, 6), kind, [1, 4, 6], u8], {"scale_dtype": bf16, "zero_point_dtype": i64}
        yield [ramp(2, 4, 6, dtype=bf16), kind, [1, 1, 6], i8, -127, 127], {
            "eps": 1e-5, "scale_dtype": f32, "zero_point_dtype": i8}
        yield [ramp(6, 4).t(), kind, [4, 1], i8, -127, 127, None, f64, i32, True], {}
        yield [ramp(4), kind, [4], i8], {"keepdim": True}


def shapes():
    for block in BLOCKS:
        yield [3, 6], list(block), [3 // block[0], 6 // block[1]]
    yield [2, 4, 6], [1, 2, 3], [2, 2, 2]
    yield [4], [4], []


def quantizing():
    for at, (shape, block, scales) in enumerate(shapes()):
        for stored, low, high in ((i8, -128, 127), (u8, 0, 255), (i8, -8, 7), (u8, 0, 15), (i32, None, None)):
            dtype = (f32, bf16, f16)[at % 3]
            scale = (ramp(*scales).abs() + 0.05).to((f32, dtype)[at % 2])
            points = ints(*scales, dtype=(i32, i64, i8)[at % 3], low=-2, high=3)
            source = ramp(*shape, dtype=dtype) * 4
            yield "quantize_affine.default", [source, block, scale, points, stored, low, high]
            levels = ints(*shape, dtype=stored, low=0, high=8)
            yield "dequantize_affine.default", [levels, block, scale, points, stored, low, high, dtype]
            yield "dequantize_affine.default", [levels, block, scale, None, stored], {"output_dtype": bf16}
            yield "dequantize_affine.default", [levels, block, scale, points.to(f32), stored, low, high]
            yield "quantize_affine.default", [ramp(*shape), block, scale, points.to(f32), stored, low, high]


def products():
    for rows, depth, columns in ((3, 5, 4), (1, 8, 2), (17, 16, 8)):
        a = ints(rows, depth, dtype=i8, low=-128, high=127)
        b = ints(depth, columns, dtype=i8, low=-99, high=127)
        yield "_int_mm.default", [ints(rows, depth, dtype=u8, low=0, high=255), b]
        yield "_int_mm.default", [a, b]
        yield "_int_mm.default", [a.t().contiguous().t(), b.t().contiguous().t()]
    for rows, depth, columns in ((3, 32, 16), (1, 16, 8), (5, 64, 4)):
        for dtype in (f32, bf16, f16):
            levels = ints(columns, depth, dtype=i8, low=-128, high=127)
            yield "_weight_int8pack_mm.default", [ramp(rows, depth, dtype=dtype), levels,
                                                  (ramp(columns).abs() * 0.01).to(dtype)]


def affine_cases():
    for name, args in products():
        yield f"aten.{name}", args
    for args, kwargs in choosing():
        yield "torchao.choose_qparams_affine.default", args, kwargs
    for name, args, *kwargs in quantizing():
        yield f"torchao.{name}", args, *kwargs
