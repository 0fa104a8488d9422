// SPDX-License-Identifier: Apache-2.0
// Draws that depend on numbers: permutations, categories, random slopes. PyTorch's algorithms, bit
// for bit, on one thread.
#pragma once
#include "core/kernels/random/generator.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// 0 .. n-1 in random order, written to `out` (contiguous, n elements of `dtype`).
Status permutation_draw(const RunContext *ctx, Dtype dtype, int64_t n, void *out);
// STATUS_VALUE where multinomial() refuses the weights: float, a vector or a matrix of rows.
Status multinomial_check(const RunContext *ctx, const TensorMeta *meta, const void *weights);
// For each row of weights `n_samples` categories, independent of each other; `out` is contiguous.
Status multinomial_draw(const RunContext *ctx, const TensorMeta *meta, const void *weights, int64_t n_samples,
                        int64_t *out);
// Slopes for the elements <= 0 of `in`, drawn between `lower` and `upper`; 1 for the others. `out`
// is in * slope. All contiguous, `n` elements of the float dtype.
typedef struct Slopes {
        Dtype dtype;
        int64_t n;
        double lower, upper;
        const void *in;
        void *out, *noise;
} Slopes;
Status slopes_draw(const RunContext *ctx, const Slopes *slopes);
