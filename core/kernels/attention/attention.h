// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention over strided operands.
#pragma once
#include "core/kernels/product/matmul.h"

typedef enum MaskKind {
        MASK_NONE,
        MASK_BOOL, // bytes; true = may be attended
        MASK_ADD,  // of the compute dtype, added to the scores
} MaskKind;

// out[l, ev] = softmax(scale * q[l, e] k[s, e]^T + mask[l, s]) v[s, ev] for every item of the
// batch. Rows without any allowed key give zeros, or NaN with nan_rows. dtype: F32 or F64. Strides
// of GemmMatrix in elements; k is given as stored (rows are keys).
typedef struct Attention {
        Dtype dtype;
        int64_t l, s, e, ev;
        int batch_rank;
        int64_t batch_size[MAX_RANK];
        GemmMatrix q, k, v, mask, out;
        MaskKind mask_kind;
        bool causal;   // key j only for rows i >= j
        bool nan_rows; // as softmax has it; s > 0
        double scale;
        // DTYPE_F16, DTYPE_BF16: exp(score - max) is rounded to it before the product with v; the
        // sum is not rounded. DTYPE_NONE: no rounding.
        Dtype weights;
        // Operands of the products are rounded to bfloat16, weights among them, where
        // attention_bf16_name() is not NULL and attention_is_blocked.
        bool bf16;
} Attention;
// The implementation for Attention.bf16; NULL: this CPU has none.
const char *attention_bf16_name(void);
// Whether nothing of the size of all scores is stored; else products do it (other dtypes, rounded
// weights, few queries, wide heads).
bool attention_is_blocked(const Attention *attention);
Status attention_run(const RunContext *ctx, const Attention *attention);
