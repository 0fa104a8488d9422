# SPDX-License-Identifier: Apache-2.0
"""Calls of quantized_decomposed.* for golden_hand.py; the numbers include ties and both ends."""

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines the operators

from golden_hand import bf16, f16, f32, f64, i8, i32, i64, ints, ramp, t, u8

TIES = [0.0, 0.25, -0.25, 0.75, 1.25, -1.25, 63.75, -64.0, 1e6, -1e6]
KINDS = ((u8, 0, 255), (i8, -128, 127), (i8, -127, 127), (torch.int16, -32768, 32767),
         (i32, -2**31, 2**31 - 1), (u8, 0, 15))


def per_tensor():
    for dtype, low, high in KINDS:
        for scale, zero_point in ((0.5, 0), (0.1, 3), (0.0173, max(low, -5))):
            levels = low, high if high < 2**31 - 1 else 2**31 - 200
            for source in (t(TIES), ramp(2, 3, 4), ramp(3, 4, dtype=bf16), ramp(4, dtype=f16), ramp(4,
                                                                                                    6).t()):
                yield "quantize_per_tensor.default", [source, scale, zero_point, *levels, dtype]
            stored = ints(3, 5, dtype=dtype, low=max(low, -9), high=12)
            yield "dequantize_per_tensor.default", [stored, scale, zero_point, low, high, dtype]
            for out in (f16, bf16, f32):
                yield "dequantize_per_tensor.default", [stored, scale, zero_point, low, high,
                                                        dtype], {"out_dtype": out}
            for wide in (f32, f64):
                held = [torch.tensor([scale], dtype=wide), torch.tensor(zero_point)]
                yield "quantize_per_tensor.tensor", [ramp(2, 5), *held, *levels, dtype]
                yield "dequantize_per_tensor.tensor", [stored, *held, low, high, dtype]
                ends = [torch.tensor(level) for level in levels]
                yield "quantize_per_tensor.tensor2", [ramp(2, 5), *held, *ends, dtype]
                yield "dequantize_per_tensor.tensor2", [stored, *held, *ends, dtype]


def per_channel():
    for dtype, low, high in KINDS[:4]:
        for axis, n in ((0, 3), (1, 4), (2, 2)):
            for wide in (f32, f64):
                scales = (ramp(n).abs() + 0.05).to(wide)
                zero_points = ints(n, low=0, high=5)
                common = [scales, zero_points, axis, low, high]
                yield "quantize_per_channel.default", [ramp(3, 4, 2), *common, dtype]
                stored = ints(3, 4, 2, dtype=dtype, low=max(low, -9), high=12)
                yield "dequantize_per_channel.default", [stored, *common, dtype]
            yield "quantize_per_channel.default", [ramp(3, 4, 2, dtype=bf16), *common, dtype]
            yield "dequantize_per_channel.default", [stored, scales, None, *common[2:], dtype]
            yield "dequantize_per_channel.default", [stored, *common, dtype], {"out_dtype": f16}


def per_token():
    for shape in ((3, 6), (2, 3, 5), (1, 4)):
        rows = [*shape[:-1], 1]
        for dtype, low, high in KINDS[:2]:
            for wide, whole in ((f32, i32), (f64, i64), (f32, f32)):
                scales, points = (ramp(*rows).abs() + 0.05).to(wide), ints(*rows, low=0, high=4).to(whole)
                for source in (ramp(*shape), ramp(*shape, dtype=bf16)):
                    yield "quantize_per_token.default", [source, scales, points, low, high, dtype]
                stored = ints(*shape, dtype=dtype, low=max(low, -9))
                for out in (f32, bf16):
                    yield "dequantize_per_token.default", [stored, scales, points, low, high, dtype, out]


def per_group():
    for size in (2, 3, 6, 12):
        for wide, whole in ((f32, i32), (f32, f32), (bf16, i8)):
            n = -(-6 // size) if size <= 6 else 1
            scales, points = (ramp(3, n).abs() + 0.05).to(wide), ints(3, n, low=0, high=4).to(whole)
            yield "quantize_per_channel_group.default", [ramp(3, 6), scales, points, -8, 7, i8, size]
            stored = ints(3, 6, dtype=i8)
            yield "dequantize_per_channel_group.default", [stored, scales, points, -8, 7, i8, size, f32]
            yield "dequantize_per_channel_group.default", [stored, scales, None, -8, 7, i8, size, bf16]


def choosing():
    sources = [
        ramp(3, 5),
        ramp(3, 5).abs() + 1, -ramp(3, 5).abs() - 1,
        torch.zeros(2, 3),
        t([[1e-9, -1e-9]]),
        ramp(2, 3, 4) * 100
    ]
    for source in sources:
        for dtype in (f32, f16, bf16):
            x = source.to(dtype)
            for kind, low, high in (KINDS[0], KINDS[1], KINDS[3]):
                for eps in (2**-12, 1e-5):
                    yield "choose_qparams.tensor", [x, low, high, eps, kind]
                    yield "choose_qparams_symmetric.tensor", [x, low, high, eps, kind]
            yield "choose_qparams_per_token.default", [x, i8]
            yield "choose_qparams_per_token_asymmetric.default", [x, i8]
            yield "_choose_qparams_per_token_asymmetric_impl.default", [x, i8]
            for out in (f32, f64, f16, i64):
                yield "convert_element_type.no_fuse", [x, out]


def quantized_cases():
    for part in (per_tensor, per_channel, per_token, per_group, choosing):
        for name, args, *kwargs in part():
            yield f"quantized_decomposed.{name}", args, *kwargs
