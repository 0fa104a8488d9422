// SPDX-License-Identifier: Apache-2.0
// Convolution (cross-correlation) over one to three spatial dimensions, grouped, dilated, or
// transposed.
#pragma once
#include "core/kernels/product/matmul.h"

// Spatial arrays are depth, height, width; missing leading dimensions have size, kernel, stride and
// dilation 1 and padding 0.
typedef struct Conv {
        Dtype dtype; // compute dtype: F32, F64, I64
        // F16 or BF16: every step of a transposed one of F32 is rounded to it. All others: no step.
        Dtype rounds_to;
        bool transposed;
        int64_t n, groups;
        int64_t group_in, group_out; // channels of one group
        int64_t in_size[3], out_size[3], kernel[3];
        // pad: before the first element (of the transposed one: as its argument)
        int64_t stride[3], pad[3], dilation[3];
        int64_t in_stride[5], out_stride[5]; // elements: batch, channel, depth, height, width
} Conv;

// weight: contiguous [groups * group_out][group_in][kernel], for transposed convolution
// [groups * group_in][group_out][kernel]. bias: contiguous [groups * group_out] or NULL. The pixels
// of one output channel must be evenly spaced (any dense NCHW or NHWC layout is), but for
// transposed convolution.
Status conv_run(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                const void *bias, void *out);
