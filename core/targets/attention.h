// SPDX-License-Identifier: Apache-2.0
// Inside targets/: attention with several heads, as F.multi_head_attention_forward computes it.
#pragma once
#include "core/ops/compose.h"

typedef struct MultiHead {
        int64_t embed, heads;
        // [L, E] without a batch; [N, L, E] with `batch_first`, else [L, N, E]. One tensor given
        // twice is projected once.
        Value query, key, value;
        bool batch_first;
        Value in_weight, in_bias;           // [3 E, E], [3 E]; weight None: the three below
        Value q_weight, k_weight, v_weight; // [E, E], [E, kdim], [E, vdim]
        Value bias_k, bias_v;               // [1, 1, E], or None
        Value out_weight, out_bias;         // [E, E], [E]
        Value key_padding_mask;             // [N, S] or [S]; bool (true: left out), floats (added), None
        Value attn_mask;                    // [L, S] or [N heads, L, S], likewise
        bool is_causal, add_zero, need_weights, average_weights, training;
        double dropout;
} MultiHead;

// What the constructors of PyTorch check.
Status multi_head_check(int64_t embed, int64_t heads);
// The output, of the query's shape. *out_weights: with need_weights [N, L, S] or [N, heads, L, S],
// else None.
Value multi_head(Compose *c, const MultiHead *task, Value *out_weights);
// A mask as PyTorch adds it to scores: bool as 0 and -inf of `dtype`. None stays None. `name` is
// for messages.
Value float_mask(Compose *c, Value mask, Dtype dtype, const char *name);
