// SPDX-License-Identifier: Apache-2.0
// Filtered planes of uint8.
#pragma once
#include "core/kernels/pool/resample.h"

// resample_filter_run of DTYPE_U8.
Status resample_filter_run_u8(const RunContext *ctx, const FilterPlanes *planes, const uint8_t *in,
                              uint8_t *out);
