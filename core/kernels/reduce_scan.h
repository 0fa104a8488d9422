// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extremes along one dimension.
#pragma once
#include "core/kernels/reduce.h"

typedef enum ScanKind { SCAN_SUM, SCAN_PROD, SCAN_MAX, SCAN_MIN, SCAN_LOGSUMEXP } ScanKind;

// Rows of `plan` (ordered, one dimension reduced) of compute dtype `dtype` (F32, F64, I64); out: contiguous [n_rows / inner][row][inner] of that dtype.
// Float sums and products run in double. SCAN_MAX and SCAN_MIN also write indices (int64, same layout): the latest of equals, NaN wins.
Status scan_run(const RunContext *ctx, const RowPlan *plan, int64_t inner, Dtype dtype, ScanKind kind, const void *data, void *out, int64_t *indices);
