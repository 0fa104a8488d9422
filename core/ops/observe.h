// SPDX-License-Identifier: Apache-2.0
// The result of fxserve::stats, read back.
#pragma once
#include "core/kernels/reduce/tensor_stats.h"

// False: the tensor is not such a result.
bool stats_load(const Tensor *tensor, TensorStats *out_stats);
