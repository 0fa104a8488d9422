// SPDX-License-Identifier: Apache-2.0
// What the operators of quantisation share.
#pragma once
#include "core/ops/compose.h"

// The integers that a dtype of levels has; false for other dtypes.
bool quantized_bounds(Dtype dtype, int64_t *out_low, int64_t *out_high);
