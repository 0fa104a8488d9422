// SPDX-License-Identifier: Apache-2.0
// Calls inside of torch.vmap. `_add_batch_dim` makes a VALUE_BATCH of a tensor: what it is for each
// index. A call that is given such a value is made once per index, and its results are a
// VALUE_BATCH again; `_remove_batch_dim` stacks them. So every operator means what it means without
// vmap.
#pragma once
#include "core/targets/targets.h"

// How a node's call is made; the values in `call` are borrowed.
typedef struct BatchRun {
        Status (*run)(void *context, const CallArgs *call, Value *out);
        void *context;
        uint32_t keep_level; // batches of this level are handed on as they are; 0: none
} BatchRun;

// Whether a value inside of vmap stands among the arguments, in containers too.
bool batch_among(const CallArgs *call);
// Makes the call for every index of the outermost vmap that its arguments are in, and of those
// inside of it.
Status batch_call(const BatchRun *run, const CallArgs *call, Value *out);
