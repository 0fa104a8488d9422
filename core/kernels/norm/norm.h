// SPDX-License-Identifier: Apache-2.0
// Normalisation: statistics of rows, and scaling by channel.
#pragma once
#include "core/kernels/dense.h"
#include "core/kernels/isa.h"

extern const KernelFamily norm_family;

// Arrays are contiguous, of dtype DTYPE_F32 or DTYPE_F64.

// y = (x - mean) * rstd * weight + bias for each row of n elements; weight and bias (n elements)
// may be NULL. `rms`: mean is 0 and rstd = 1 / sqrt(mean of squares + eps). mean and rstd (n_rows
// elements) may be NULL.
typedef struct NormRows {
        Dtype dtype;
        int64_t n_rows, n;
        double eps;
        bool rms;
        const void *weight, *bias;
        void *mean, *rstd;
} NormRows;
Status norm_rows(const RunContext *ctx, const NormRows *norm, const void *in, void *out);

// Mean and biased variance of each channel of each image: n_images * n_channels numbers each.
// Images are [n_channels][n_pixels], or [n_pixels][n_channels] where channels stand `last`: the
// same bits. Without pixels they are 0.
typedef struct NormChannels {
        Dtype dtype;
        bool last;
        int64_t n_images, n_pixels, n_channels;
        double *mean, *variance;
} NormChannels;
Status norm_channel_stats(const RunContext *ctx, const NormChannels *channels, const void *in);

// y = (x - mean[c]) * scale[c] + shift[c] over [outer][channels][inner]; mean NULL: 0.
typedef struct NormScale {
        Dtype dtype;
        int64_t outer, channels, inner;
        const void *mean, *scale, *shift;
} NormScale;
Status norm_scale_channels(const RunContext *ctx, const NormScale *scale, const void *in, void *out);
