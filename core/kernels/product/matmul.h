// SPDX-License-Identifier: Apache-2.0
// Matrix products: one blocked GEMM behind mm, bmm, linear, convolution and attention.
#pragma once
#include "core/kernels/dense.h"

// A matrix of a batch: element (i, j) of batch item (b0, b1, ...) stands at data[i * row + j * col
// + b0 * batch[0] + ...]. Strides in elements, any sign.
typedef struct GemmMatrix {
        void *data; // never written through for a, b and add
        int64_t row, col, batch[MAX_RANK];
} GemmMatrix;

// A part of b: rows k to k + n_k - 1 and columns j to j + n_j - 1 of one item of the batch.
typedef struct GemmBlock {
        int64_t item, k, n_k, j, n_j;
} GemmBlock;

// Fills panels for a block of b from anything (convolution reads its input here): out[column /
// width][n_k][width]; columns past n_j are zero.
typedef void (*GemmPackInput)(const void *context, const GemmBlock *block, int width, void *out);

// c[m, n] = alpha * a[m, k] b[k, n] + beta * add[m, n] for every item of the batch. `add` may have
// strides 0 (a bias); add.data NULL: none, and so is beta == 0 (then NaN in add does not matter).
// dtype: DTYPE_F32, F64, I32 or I64 (integers wrap; alpha and beta are cut to integers).
typedef struct Gemm {
        Dtype dtype;
        int64_t m, n, k;
        int batch_rank; // 0: one item
        int64_t batch_size[MAX_RANK];
        GemmMatrix a, b, c, add;
        double alpha, beta;
        GemmPackInput pack_b; // NULL: b is a matrix
        const void *pack_context;
} Gemm;

// Sums over k are made in blocks of so many, each from zero, which are added up in order; within a
// block by fused multiply-adds in order, with AVX2 and more.
enum { GEMM_K_BLOCK = 256 };
// c must not overlap the others. Splits over c only: the bits do not depend on the number of
// threads.
Status gemm(const RunContext *ctx, const Gemm *task);

// A tensor as a kernel sees it.
typedef struct Operand {
        const void *data;
        TensorMeta meta;
} Operand;

// out[..., m, n] = alpha * a[..., m, k] b[..., k, n] + beta * add[..., m, n] on tensors of any real
// dtype, rounded once. All of one rank >= 2; leading sizes of a, b and add equal out's or are 1.
// `add` NULL: none. Leading dimensions of a are folded into m where b has none.
typedef struct MatmulTensors {
        const Operand *a, *b, *add;
        double alpha, beta;
} MatmulTensors;
Status matmul_tensors(const RunContext *ctx, const MatmulTensors *task, void *out,
                      const TensorMeta *out_meta);
