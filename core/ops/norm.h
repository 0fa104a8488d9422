// SPDX-License-Identifier: Apache-2.0
// What the normalisation files share.
#pragma once
#include "core/kernels/dense.h"
#include "core/ops/op.h"

// Parameters (NULL: absent) must agree with the input's dtype, or all be float32 beside a half
// input. *out_stats: the dtype of mean and rstd.
Status norm_check_params(const TensorMeta *input, const TensorMeta *const *params, int n_params,
                         Dtype *out_stats);
// Tensor argument number `in` of a run as a contiguous array of `as`; data NULL when absent.
Status norm_param_init(Dense *dense, const OpRun *run, uint32_t in, Dtype as);
