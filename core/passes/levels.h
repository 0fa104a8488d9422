// SPDX-License-Identifier: Apache-2.0
// What quantised graphs hold between their integers and the products they feed: chains of pointwise
// calls that dequantise and quantise. Both spellings are known, that of quantized_decomposed and
// that of torchao's affine operators, as the recording has them: expanded.
#pragma once
#include "core/passes/rewrite.h"

enum { LEVELS_CHAIN = 5 };

// value = (levels - zero) * scale, in float32.
typedef struct Dequantized {
        Recorded *value, *levels; // of one shape; levels are uint8 or int8
        const Value *scale;       // a number or a tensor
        const Value *zero;        // likewise; NULL: 0
        const RecordedCall *calls[LEVELS_CHAIN];
        uint32_t n_calls;
} Dequantized;

// `value` may be a view: *out describes the tensor that it is a view of.
bool levels_of(const Recorded *value, Dequantized *out);

// levels = clamp(round(input * inverse) + zero, least, most).
typedef struct Quantized {
        Recorded *input, *levels;
        const Value *inverse, *zero; // numbers, or tensors of no dimensions
        int64_t least, most;
        RecordedCall *calls[LEVELS_CHAIN];
        uint32_t n_calls;
} Quantized;

// `first` begins the chain.
bool levels_made_by(const Uses *uses, RecordedCall *first, Quantized *out);

// Pools levels instead of what they are dequantised to; *out_done false: nothing has changed.
Status levels_pool(Recording *recording, Uses *uses, const Quantized *quantized, bool *out_done);

// A number, or a tensor of one number that is known now.
bool levels_number(const Value *value, double *out);
// `value` stands along `axis` of a tensor of `rank` dimensions, and is known: *out is number i.
bool levels_along(const Value *value, int axis, int rank, int64_t i, double *out);
// A tensor of no dimensions for a number (NULL: 0), or the tensor itself; counted.
Status levels_scalar(Recording *recording, const Value *value, Dtype dtype, Value *out);
// What is known to be a level of `dtype` in each run: a number, or a tensor of one.
bool levels_is_level(const Value *value, Dtype dtype);
