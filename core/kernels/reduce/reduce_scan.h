// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extremes along one dimension.
#pragma once
#include "core/kernels/reduce/reduce.h"

typedef enum ScanKind { SCAN_SUM, SCAN_PROD, SCAN_MAX, SCAN_MIN, SCAN_LOGSUMEXP, SCAN_PAIR_PROD } ScanKind;

// Rows of an ordered plan with one dimension reduced, of compute dtype `dtype` (F32, F64, I64);
// out: contiguous [n_rows / inner][row][inner] of that dtype. SCAN_MAX and SCAN_MIN also write
// indices (int64, same layout): the latest of equals, NaN wins. SCAN_PAIR_PROD takes rows of pairs,
// the parts of complex numbers, and writes pairs; `inner` counts pairs.
typedef struct Scan {
        Dtype dtype;
        ScanKind kind;
        bool single; // float32 sums and products run in float32 (half types), otherwise in float64
        int64_t inner;
        void *out;
        int64_t *indices;
} Scan;
Status scan_run(const RunContext *ctx, const RowPlan *plan, const Scan *scan, const void *data);
