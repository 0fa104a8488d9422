// SPDX-License-Identifier: Apache-2.0
// The sum of losses by class as nll_loss adds them up: every addition is rounded to the dtype.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// `dtype`: float16 or bfloat16; `data` has its n elements as float32. Elements that are ignored
// are skipped. The sum is one of the dtype's numbers.
Status class_sum_run(const RunContext *ctx, Dtype dtype, int64_t n, const float *data, const bool *ignored,
                     float *out_sum);
