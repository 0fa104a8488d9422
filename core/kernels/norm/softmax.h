// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along one dimension of a contiguous array.
#pragma once
#include "core/kernels/dense.h"
#include "core/kernels/isa.h"

extern const KernelFamily softmax_family; // rows of float32

typedef enum SoftmaxKind {
        SOFTMAX,
        SOFTMAX_SAFE, // a row of -inf gives zeros instead of NaN
        SOFTMAX_LOG,
        SOFTMAX_LOG_F16, // of float32 with inner 1: the sum and its logarithm are rounded
        SOFTMAX_LOG_BF16,
} SoftmaxKind;

typedef struct Softmax {
        SoftmaxKind kind;
        Dtype dtype; // DTYPE_F32 or DTYPE_F64
        int64_t outer, n, inner;
} Softmax;

// in, out: contiguous [outer][n][inner]; may be the same array.
Status softmax_run(const RunContext *ctx, const Softmax *softmax, const void *in, void *out);
// One row of float32; for attention.
void softmax_row_f32(SoftmaxKind kind, Work *work, int64_t n, const float *in, float *out);
void softmax_row_f64(SoftmaxKind kind, Work *work, int64_t n, const double *in, double *out);
// out = exp(in - max), not divided by the returned sum; all zeros (sum 0) for a row of -inf.
double softmax_exp_row_f32(Work *work, int64_t n, const float *in, float *out);
// The sum of exp(in - max), if the maximum is finite.
double softmax_sum_row_f32(Work *work, int64_t n, const float *in, float *out_max);
