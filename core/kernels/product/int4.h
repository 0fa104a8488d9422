// SPDX-License-Identifier: Apache-2.0
// Products with weights of four bits, which are unpacked panel by panel; for few rows in registers.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/run_context.h"

// weights[rows][columns] = (level - 8) * scale + zero. Levels are packed in blocks of rows, as
// core/ops/int4.c says; `rows` is a multiple of 16. Scale and zero are pairs:
// affine[columns / group][rows][2].
typedef struct Int4Weights {
        const uint8_t *bytes;
        int64_t rows, columns, group, block; // block: rows of a whole one, a multiple of 16
        bool halves;                         // a byte has rows half a block apart, else neighbours
        const float *affine;
} Int4Weights;

// out[m][rows] = x[m][columns] times the weights, transposed. float32, summed as gemm() does: bits
// depend neither on m nor on the threads. STATUS_TOO_LARGE without working memory.
Status int4_product(const RunContext *ctx, const Int4Weights *weights, int64_t m, const float *x, float *out);

enum { INT4_MAX_ROWS = 4, INT4_STEP = 32 };
typedef struct Int4Kernel {
        // Eight rows of weights from `row` on, columns k to k + n_k - 1: out[n_k][step].
        void (*unpack)(const Int4Weights *weights, int64_t row, int64_t k, int64_t n_k, int64_t step,
                       float *out);
        // Columns row to row + INT4_STEP - 1, or to the end, of the product of m rows of x, at most
        // INT4_MAX_ROWS; row is a multiple of INT4_STEP. The bits of gemm(). NULL: weights are
        // unpacked.
        void (*product)(const Int4Weights *weights, int64_t row, int64_t m, const float *x, float *out);
} Int4Kernel;
extern const KernelFamily int4_family;
