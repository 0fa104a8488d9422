# SPDX-License-Identifier: Apache-2.0
"""Calls of torchvision's operators for golden_hand.py. Recording them needs a torchvision whose
operators are loaded; make_goldens.py does without where it is absent."""

import math

import torch

from golden_hand import f32, f64, inf, nan, ramp, t

BOXES = [[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9.5], [21, 19, 31, 31], [5, 5, 5, 5],
         [8, 8, 2, 2], [0, 0, 100, 100], [-5, -5, 4, 4], [20, 20, 30, 30]]
REGIONS = [[0, 1, 1, 6, 5], [1, 0.5, 0.25, 4.75, 3.5], [0, -2, -3, 3, 2], [1, 3, 2, 12, 11],
           [0, 4, 4, 4, 4], [1, 5, 5, 2, 3], [0, 2.5, 1.5, 3.5, 2.5], [0, 20, 20, 30, 30],
           [1, 1.49, 1.5, 6.51, 5.5]]


def boxes():
    scores = [0.9, 0.8, 0.7, 0.95, 0.75, 0.3, 0.2, 0.6, 0.5, 0.7]
    for dtype in (f32, f64):
        for most in (0.0, 0.3, 0.5, 0.7, 1.0, -1.0):
            yield "nms.default", [t(BOXES, dtype), t(scores, dtype), most]
        yield "nms.default", [t(BOXES, dtype), torch.ones(10, dtype=dtype), 0.5]
        yield "nms.default", [torch.zeros(0, 4, dtype=dtype), torch.zeros(0, dtype=dtype), 0.5]
        yield "nms.default", [t(BOXES, dtype).t().contiguous().t(), t(scores * 2, dtype)[::2], 0.4]
    made = (ramp(60, 4) + 1.5).cumsum(0) % 40
    made = torch.cat([made[:, :2], made[:, :2] + made[:, 2:]], 1)
    for most in (0.1, 0.5):
        yield "nms.default", [made, ramp(60).sin(), most]
    broken = t([[0, 0, 10, 10], [nan, 0, 10, 10], [0, 0, inf, 10], [1, 1, 9, 9]])
    yield "nms.default", [broken, t([0.5, nan, 0.9, 0.1]), 0.5]


def images(channels, dtype=f32, height=7, width=8):
    return ramp(2, channels, height, width, dtype=dtype)


def aligned():
    for dtype in (f32, f64):
        rois = t(REGIONS, dtype)
        for sampling in (-1, 0, 2, 3):
            for flag in (False, True):
                yield "roi_align.default", [images(3, dtype), rois, 1.0, 2, 3, sampling, flag]
        yield "roi_align.default", [images(2, dtype).to(memory_format=torch.channels_last), rois, 0.25, 1, 1,
                                    2, True]
        yield "roi_align.default", [images(2, dtype), rois, 0.3, 7, 2, -1, False]
        yield "roi_align.default", [images(2, dtype), rois[:0], 1.0, 2, 2, 2, True]
        yield "roi_align.default", [images(0, dtype), rois, 1.0, 2, 2, 2, True]
        for sampling in (-1, 0, 1, 2):
            for channels, height, width in ((6, 2, 3), (8, 2, 2), (3, 1, 1)):
                yield "ps_roi_align.default", [images(channels, dtype), rois, 1.0, height, width, sampling]
        yield "ps_roi_align.default", [images(8, dtype), rois[:0], 1.0, 2, 2, 2]
        yield "ps_roi_align.default", [images(4, dtype), rois, 0.4, 2, 2, 2]


def pooled():
    for dtype in (f32, f64):
        rois = t(REGIONS, dtype)
        for scale in (1.0, 0.5, 1.7):
            for height, width in ((2, 3), (1, 1), (4, 4)):
                yield "roi_pool.default", [images(2, dtype), rois, scale, height, width]
                planes = images(height * width if height > 2 else 2 * height * width, dtype, 5, 6)
                yield "ps_roi_pool.default", [planes, rois, scale, height, width]
        yield "roi_pool.default", [images(2, dtype) * math.inf, rois, 1.0, 2, 2]
        yield "roi_pool.default", [images(2, dtype) * -1e39, rois, 1.0, 2, 2]
        yield "roi_pool.default", [images(2, dtype), rois[:0], 1.0, 2, 2]
        yield "ps_roi_pool.default", [images(4, dtype), rois[:0], 1.0, 2, 2]
        yield "roi_pool.default", [images(2, dtype).transpose(2, 3), rois, 1.0, 2, 2]


def deformed():
    for dtype in (f32, f64):
        for groups, offset_groups in ((1, 1), (2, 1), (1, 2), (2, 4)) if dtype == f32 else ((2, 2),):
            for stride, padding, dilation in (((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (1, 2))):
                for masked in (False, True):
                    out = [(5 + 2 * padding[0] - 2 * dilation[0] - 1) // stride[0] + 1,
                           (6 + 2 * padding[1] - dilation[1] - 1) // stride[1] + 1]
                    offset = ramp(2, offset_groups * 12, *out, dtype=dtype) * 1.3
                    mask = ramp(2, offset_groups * 6, *out, dtype=dtype) if masked else torch.zeros(
                        2, 1, dtype=dtype)
                    weight = ramp(6, 4 // groups, 3, 2, dtype=dtype)
                    yield "deform_conv2d.default", [images(4, dtype, 5, 6), weight, offset, mask,
                                                    ramp(6, dtype=dtype), *stride, *padding, *dilation,
                                                    groups, offset_groups, masked]
        offset = t([inf, -inf, 1.0, 0.0, 2.0, 0.5, -1.0, -1.5, 100.0]).to(dtype).repeat(2, 8, 6, 1)[..., :7]
        weight, bias, plain = ramp(3, 2, 2, 2, dtype=dtype), torch.zeros(3, dtype=dtype), [1, 1, 0, 0, 1, 1]
        for n in (2, 0):
            yield "deform_conv2d.default", [images(2, dtype)[:n], weight, offset[:n],
                                            torch.zeros(n, 1, dtype=dtype), bias, *plain, 1, 1, False]


def detection_cases():
    for part in (boxes, aligned, pooled, deformed):
        for name, args in part():
            yield f"torchvision.{name}", args
