// SPDX-License-Identifier: Apache-2.0
// Sums as panels.h says that packed products are added up: blocks, each one chain of fused
// multiply-adds; to the first the bias is added, and then the residual.
#pragma once
#include <math.h>

#include "core/kernels/conv/panels.h"

typedef struct Chain {
        int64_t k, n_k, n_blocks, block; // products so far, in all; blocks; the block at hand
        float sum, bias, before;         // of this block; of the blocks before it
        const float *residual;           // NULL: none
} Chain;

static inline Chain chain_begin(float bias, const float *residual, int64_t n_k, int64_t most)
{
        return (Chain){ .n_k = n_k, .n_blocks = (n_k + most - 1) / most, .bias = bias, .residual = residual };
}

static inline void chain_end_block(Chain *chain)
{
        float before = chain->block == 0 && chain->residual != NULL ? *chain->residual : chain->before,
              sum = chain->block == 0 ? chain->sum + chain->bias : chain->sum;
        chain->before = chain->block++ == 0 && chain->residual == NULL ? sum : sum + before;
        chain->sum = 0;
}

static inline void chain_add(Chain *chain, float a, float b)
{
        if (chain->k > 0 && chain->k == (chain->block + 1) * chain->n_k / chain->n_blocks)
                chain_end_block(chain);
        chain->sum = fmaf(a, b, chain->sum);
        chain->k++;
}

static inline float chain_end(Chain *chain)
{
        chain_end_block(chain);
        return chain->before;
}
