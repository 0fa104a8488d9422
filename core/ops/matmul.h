// SPDX-License-Identifier: Apache-2.0
// aten::linear's functions, for rows elsewhere that do more after it, and what all products share.
#pragma once
#include "core/ops/op.h"

Status linear_infer(OpCall *call);
Status linear_run(const OpRun *run);
// Whether a linear layer of halves rounds products before it adds the bias: PyTorch does for inputs
// that are not contiguous.
bool linear_rounds_first(const TensorMeta *input, bool has_bias);
Cost product_cost(const OpCall *call);
// beta and alpha, arguments 3 and 4, must fit a result of integers; where PyTorch computes in
// halfs, also one of halfs.
Status product_check_factors(const OpCall *call, Dtype result, bool in_halfs);
