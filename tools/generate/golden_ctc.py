# SPDX-License-Identifier: Apache-2.0
"""Calls of ctc_loss and of the fractional pools for make_goldens.py."""

import torch
from golden_hand import bf16, f16, f32, f64, i32, i64, inf, ints, nan, ramp, t, u8


def chances(steps, batch, classes, dtype=f32):
    return (ramp(steps, batch, classes) * 2).log_softmax(2).to(dtype)


def ctc_cases():
    """Labels that repeat need a blank between them; too few steps for them make the loss infinite."""
    labels = t([[1, 1, 2, 3], [3, 2, 3, 1], [4, 4, 4, 4]], i64)
    for dtype in (f32, f64):
        probs = chances(10, 3, 5, dtype)
        for reduction in (0, 1, 2):
            for inputs, lengths in (([10, 7, 9], [4, 2, 3]), ([1, 5, 0], [2, 0, 0]), ([3, 4, 10], [3, 4, 4])):
                for zero in (False, True):
                    yield ("ctc_loss.IntList", [probs, labels, inputs, lengths, 0, reduction, zero])
                yield ("ctc_loss.Tensor", [probs, labels, t(inputs, i64), t(lengths, i32), 0, reduction])
        for blank in (1, 4):
            joined = t([0, 2, 2, 3, 0], i64)
            yield ("ctc_loss.IntList", [probs, joined, [10, 8, 6], [2, 3, 0], blank])
            yield ("ctc_loss.Tensor", [probs, joined.to(u8), t([10, 8, 6], i64), t([2, 3, 0], i64), blank, 0])
        yield "ctc_loss.IntList", [probs[:, 0], labels[0], [10], [4], 0, 0]
        yield "ctc_loss.Tensor", [probs[:, 1], labels[1, :3], t([9], i32), t([3], i32)]
        yield "ctc_loss.IntList", [probs.permute(0, 2, 1).contiguous().permute(0, 2, 1), labels.t()[:3].t(),
                                   [10, 10, 10], [3, 3, 3]]
        yield "ctc_loss.IntList", [probs[:, :0], labels[:0], [], [], 0, 2]
    yield "ctc_loss.IntList", [chances(1, 2, 3), t([[1], [2]], i64), [1, 1], [1, 1]]


def fractional_cases():
    for dtype in (f32, f64, f16, bf16):
        samples = (ramp(2, 3, 3, dtype=f64) / 4 + 0.5).clamp(0, 0.999).to(dtype)
        image, volume = ramp(2, 3, 9, 7, dtype=dtype), ramp(2, 3, 6, 7, 5, dtype=dtype)
        for kernel, size in (([2, 2], [4, 3]), ([1, 3], [9, 2]), ([3, 2], [1, 6]), ([2, 2], [8, 6])):
            yield "fractional_max_pool2d.default", [image, kernel, size, samples[..., :2]]
        yield "fractional_max_pool2d.default", [image[0], [2, 2], [5, 4], samples[:1, :, :2]]
        yield "fractional_max_pool2d.default", [image.transpose(2, 3), [2, 2], [5, 4], samples[..., 1:]]
        for kernel, size in (([2, 2, 2], [3, 4, 2]), ([1, 3, 2], [4, 2, 1])):
            yield "fractional_max_pool3d.default", [volume, kernel, size, samples]
        yield "fractional_max_pool3d.default", [volume[1], [2, 2, 1], [2, 5, 3], samples[1:]]
    special = t([[[nan, 1.0, 3.0, 3.0], [-inf, -inf, nan, inf], [-inf, -inf, 2.0, nan]]])
    yield "fractional_max_pool2d.default", [special, [2, 2], [2, 2], torch.full((1, 1, 2), 0.5)]
    yield "fractional_max_pool2d.default", [ints(1, 2, 3, low=0).to(f32)[:0], [1, 1], [2, 2],
                                            torch.zeros(1, 0, 2)]
