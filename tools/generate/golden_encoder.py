# SPDX-License-Identifier: Apache-2.0
"""Calls of the operators that torch.nn.TransformerEncoderLayer leaves, for make_goldens.py."""

import torch

from golden_hand import f64, i64, ints, ramp, t

EMBED, HEADS, HIDDEN = 8, 2, 12


def masks():
    """(mask, mask_type); keys that are left out are true."""
    yield None, None
    yield ints(5, 5) > 5, 0
    yield t([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], i64) > 0, 1
    yield ints(3, HEADS, 5, 5) > 5, 2


def encoder_cases():
    for dtype in (torch.float32, f64):
        x = ramp(3, 5, EMBED, dtype=dtype)
        attention = [ramp(3 * EMBED, EMBED, dtype=dtype), ramp(3 * EMBED, dtype=dtype),
                     ramp(EMBED, EMBED, dtype=dtype, start=0.3), ramp(EMBED, dtype=dtype)]
        norms = [ramp(EMBED, dtype=dtype, start=index) for index in range(4)]
        forward = [ramp(HIDDEN, EMBED, dtype=dtype), ramp(HIDDEN, dtype=dtype),
                   ramp(EMBED, HIDDEN, dtype=dtype), ramp(EMBED, dtype=dtype)]
        for mask, kind in masks():
            for weights, average in ((True, True), (True, False), (False, True)):
                yield ("_native_multi_head_attention.default",
                       [x, x, x, EMBED, HEADS, *attention, mask, weights, average, kind])
            for gelu, first in ((False, False), (True, False), (False, True), (True, True)):
                yield ("_transformer_encoder_layer_fwd.default",
                       [x, EMBED, HEADS, *attention, gelu, first, 1e-5, *norms, *forward, mask, kind])
