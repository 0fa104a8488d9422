// SPDX-License-Identifier: Apache-2.0
// What a group of pointwise operators may end in: a row operator (sum, mean, amax, amin, softmax,
// log_softmax, layer_norm, rms_norm over the last dimensions). It is run by its own kernel on
// blocks of rows that the tile program has just made, so that they never leave the cache; results
// have the bits of the operators run one by one.
#pragma once
#include "core/kernels/pointwise/tile.h"
#include "core/ops/op.h"

typedef struct FusedTail {
        OpCall call; // bound to args, inferred
        Value args[SCHEMA_MAX_ARGS];
        Tensor tensors[SCHEMA_MAX_ARGS]; // metas of tensor arguments, by argument
        // by argument: which input of the group; -1: none, or the tile's output (argument 0)
        int operand[SCHEMA_MAX_ARGS];
        TensorMeta out;
        int lead;                    // dimensions that are not part of a row
        int64_t n_rows, n_in, n_out; // floats of a row before and after
} FusedTail;

// Whether a call (bound, inferred, not in place) may end a group that makes its first argument.
bool fused_takes_tail(const OpCall *call);
// Whether such an operator gives fewer elements than it takes.
bool fused_tail_reduces(const OpDef *op);
// Copies the call; tensor arguments but the first are inputs `operand[i]` of the group.
Status fused_tail_init(FusedTail *tail, const OpCall *call, const int *operand);
void fused_tail_deinit(FusedTail *tail);
// `program` has one output, argument 0 of the call.
Status fused_tail_run(const FusedTail *tail, const TileProgram *program, const OpRun *run);
