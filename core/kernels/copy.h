// SPDX-License-Identifier: Apache-2.0
// Copies between strided regions of memory, with conversion, on the run's threads.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// A region of memory: shape and strides (elements; negative and zero strides are fine for sources)
// and the address of element 0.
typedef struct Region {
        TensorMeta meta;
        char *data;
} Region;

static inline Region region_of(const TensorMeta *meta, const void *data)
{
        return (Region){ .meta = *meta, .data = (char *)(uintptr_t)data };
}
// The part start..start+length of dimension `dim`.
Region region_part(const Region *region, int dim, int64_t start, int64_t length);
// Elementwise copy with dtype conversion; shapes must be equal. Polls between pieces.
Status copy_region(const RunContext *ctx, const Region *from, const Region *to);
// Every element of `to` becomes the one element at `value` (of to's dtype).
Status fill_region(const RunContext *ctx, const Region *to, const void *value);
