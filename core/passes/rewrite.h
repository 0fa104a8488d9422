// SPDX-License-Identifier: Apache-2.0
// What passes that replace calls share: who reads what, arguments, and new constants.
#pragma once
#include "core/ops/conv.h"
#include "core/program/recording.h"

typedef struct Uses {
        // by buffer: how often calls and results name a tensor on it; 0 for buffers made after
        // counting
        uint32_t *n;
        RecordedCall **reader; // by buffer: the last call that reads it
        uint32_t n_buffers;
} Uses;

Status uses_count(const Recording *recording, Uses *out_uses);
void uses_deinit(Uses *uses);

// The one call that reads `value`. NULL: several calls read it, views of it are read, it is
// written again, or it is part of the result.
RecordedCall *uses_only_reader(const Uses *uses, const Recorded *value);

// Whether the call makes its first result, and nobody reads the others.
bool uses_first_result_only(const Uses *uses, const RecordedCall *call);

// Reads only bytes that are written once, so the call may move to a later place.
bool call_is_movable(const RecordedCall *call);

// Moves the reads of a removed call to `call`, which was inserted after counting.
void uses_moved(Uses *uses, RecordedCall *call);

// A new constant of `meta` (contiguous), uninitialised.
Status rewrite_constant(Recording *recording, const TensorMeta *meta, Recorded **out_value);

// Whether the value is a contiguous float32 constant whose bytes are there, without NaN and
// infinities: zero times those is NaN, where zeros are stored, and nothing where they are not.
bool rewrite_is_finite(const Recorded *value);

// The elements of `from` under another shape and strides, made in front of `at` (NULL: at the end):
// `to`, which may begin elsewhere in its buffer, or a new value where that is NULL.
Status rewrite_view(Recording *recording, RecordedCall *at, const Recorded *from, const TensorMeta *meta,
                    Recorded *to, Recorded **out_value);

// The arguments of the fused convolution that computes what `conv` does with the numbers of `args`.
// On failure the remaining ones are None.
Status rewrite_fused_conv(const RecordedCall *conv, const ConvArgs *args, Value *out);
// Likewise of ROLE_CONV_TRANSPOSE3D, for a transposed one of three dimensions.
Status rewrite_volume_transposed(const RecordedCall *conv, const ConvArgs *args, Value *out);

// Argument `index`; NULL: no tensor.
static inline Recorded *rewrite_arg(const RecordedCall *call, int index)
{
        const Value *value = &call->call.args[index];
        return value->kind == VALUE_TENSOR ? recorded_of(value->tensor) : NULL;
}
static inline Value rewrite_tensor(const Recorded *value) // counted
{
        return value == NULL ? value_none()
                             : value_ref((Value){ .kind = VALUE_TENSOR,
                                                  .tensor = (Tensor *)(uintptr_t)&value->tensor });
}
