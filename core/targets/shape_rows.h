// SPDX-License-Identifier: Apache-2.0
// Inside targets/: what functions and module classes share. Values are borrowed, results owned by
// the caller.
#pragma once
#include "core/targets/py.h"

// base: "aten::adaptive_avg_pool2d"; None entries of output_size keep the input's size. Max pools
// return the pair only `with_indices`.
Status py_adaptive_pool(Emitter *emitter, const char *base, bool with_indices, Value input, Value output_size,
                        Value *out);
// F.pad(input, pad, mode, value): value VALUE_NONE = 0.
Status py_pad(Emitter *emitter, Value input, Value pad, const char *mode, Value value, Value *out);
// F.interpolate with its seven arguments: input (a tensor), size, scale_factor, mode (a text),
// align_corners, recompute_scale_factor, antialias.
Status py_interpolate(Emitter *emitter, const Value *args, Value *out);
