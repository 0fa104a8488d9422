// SPDX-License-Identifier: Apache-2.0
// The elements that a deformable convolution multiplies with its weights.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Each position of the kernel reads the image at a place of its own, moved by `offset` (y, then x)
// and weighted by `mask`. Arrays are contiguous, float32 or float64. `groups` divides channels:
// channels of one group share offsets and masks. Pairs are height, width.
typedef struct DeformColumns {
        Dtype dtype;
        int64_t batch, channels, groups;
        int64_t size[2], kernel[2], out_size[2], stride[2], padding[2], dilation[2];
        const void *image;  // [batch][channels][size]
        const void *offset; // [batch][groups][kernel][2][out_size]
        const void *mask;   // [batch][groups][kernel][out_size]; NULL: ones
        void *out;          // [batch][channels][kernel][out_size]
} DeformColumns;
Status deform_columns_run(const RunContext *ctx, const DeformColumns *task);
