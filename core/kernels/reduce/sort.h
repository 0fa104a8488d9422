// SPDX-License-Identifier: Apache-2.0
// Sorting and selecting rows. Always stable; NaN counts as the largest value.
#pragma once
#include "core/kernels/reduce/reduce.h"

// Rows of an ordered plan with one reduced dimension, of compute dtype `dtype` (F32, F64, I64).
// values (dtype) and indices (int64): contiguous [n_rows / inner][n_out][inner]; `n_out` <= row
// length: the first so many of the sorted row. values may be NULL.
typedef struct SortTask {
        Dtype dtype;
        bool descending;
        int64_t inner, n_out;
        void *values;
        int64_t *indices;
} SortTask;
Status sort_rows(const RunContext *ctx, const RowPlan *plan, const SortTask *task, const void *data);
