// SPDX-License-Identifier: Apache-2.0
// Runs of half floats on wide registers, to the bit what half.h gives for each element.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/tensor/dtype.h"

// `half` is DTYPE_F16 or DTYPE_BF16. False: this process has no wide way, and nothing was written.
// The two do not overlap.
bool halves_widen(Dtype half, const uint16_t *from, size_t n, float *to);
bool halves_narrow(Dtype half, const float *from, size_t n, uint16_t *to);
