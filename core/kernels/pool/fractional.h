// SPDX-License-Identifier: Apache-2.0
// Fractional max pooling: windows of one size whose places a random number per plane and dimension
// decides.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/dtype.h"

typedef struct FractionalPool {
        Dtype dtype; // in whose precision windows are placed
        int n;       // 2 or 3 dimensions
        int64_t planes;
        int64_t size[3], kernel[3], out_size[3]; // of one plane
        const double *in;                        // [planes][size...]
        const double *samples;                   // [planes][n], one for each dimension, the first one first
        double *out;
        int64_t *indices; // of the largest elements within their planes
} FractionalPool;

Status fractional_pool_run(const RunContext *ctx, const FractionalPool *pool);
