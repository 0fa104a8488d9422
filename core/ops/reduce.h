// SPDX-License-Identifier: Apache-2.0
// What the reduction files share: which dimensions go, what the result looks like, and the input
// read in the dtype it is computed in.
#pragma once
#include "core/kernels/reduce/reduce.h"
#include "core/ops/op.h"

// Shape of a reduction over `mask`: dimensions dropped, or kept with size 1. Contiguous.
void reduce_meta(const TensorMeta *self, uint32_t mask, bool keepdim, Dtype dtype, TensorMeta *out_meta);
// Dimensions without elements have no extreme: `amax(): Expected reduction dim 1 to have non-zero
// size.`
Status reduce_check_identity(const OpCall *call, uint32_t mask, bool dims_given);

// Argument 0 of a run, cast to `cast`, in that dtype's compute dtype; strided where nothing had to
// be converted.
typedef struct ReduceInput {
        const void *data;
        TensorMeta meta; // its dtype is the compute dtype
        Dtype stored;    // what `data` holds: reduce_run converts it on the way
        Dense dense;
} ReduceInput;
Status reduce_input_init(ReduceInput *input, const OpRun *run, Dtype cast);
// The same, for kernels that do not convert: `data` holds the compute dtype.
Status reduce_input_convert(ReduceInput *input, const OpRun *run, Dtype cast);
void reduce_input_deinit(ReduceInput *input);
