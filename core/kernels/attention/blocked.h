// SPDX-License-Identifier: Apache-2.0
// Attention in float32 over blocks of queries and keys, with running maxima and sums: nothing of
// the size of all scores is stored. Private to this room.
#pragma once
#include "core/kernels/attention/attention.h"

// As attention_run, for `items` batch items; STATUS_NO_MEMORY: no working memory, not yet said.
Status attention_run_blocked(const RunContext *ctx, const Attention *attention, int64_t items);
// Row `row` of batch item `item`.
void *attention_row(const Attention *attention, const GemmMatrix *matrix, int64_t item, int64_t row,
                    size_t item_bytes);
