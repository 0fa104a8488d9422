// SPDX-License-Identifier: Apache-2.0
// Numeric policy: the type that packed and fused implementations compute in. Packing, passes and
// planner ask here instead of comparing types; a node of another type runs as its operator does.
#pragma once
#include "core/tensor/tensor.h"

#define PACKED_DTYPE DTYPE_F32

// What a run asked for: how products of float32 with constant factors are computed. The other nodes
// stay float32. Where the CPU has the instructions, rows are rounded as far as factors, and
// convolutions and attention take bfloat16.
typedef enum Precision {
        PRECISION_F32,  // as PyTorch does
        PRECISION_BF16, // factors rounded to bfloat16, sums in float32
        PRECISION_INT8, // factors rounded to 8 bits per column, rows to 16 bits at most; exact sums
        PRECISION_COUNT
} Precision;
// Counted up when a form of less precision computes something else: what was verified within a
// tolerance by an earlier release holds no longer.
enum { PRECISION_FORMS = 2 };
extern const char *const precision_names[PRECISION_COUNT]; // "f32", "bf16", "int8"
Precision precision_named(const char *name);               // PRECISION_F32 for all other names

// Widened to that where weights are packed, and rounded behind it (core/ops/product_half.c).
static inline bool is_half_type(const TensorMeta *meta)
{
        return (DTYPES_HALFS >> meta->dtype & 1) != 0;
}

static inline bool is_packed_type(const TensorMeta *meta)
{
        return meta->dtype == PACKED_DTYPE;
}
