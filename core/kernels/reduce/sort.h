// SPDX-License-Identifier: Apache-2.0
// Sorting and selecting rows. NaN counts as the largest value.
#pragma once
#include "core/kernels/reduce/reduce.h"

typedef enum SortWay {
        SORT_STABLE,    // equal elements in the order in which they came
        SORT_FIRST,     // the first n_out elements of the sorted row, as PyTorch's topk orders them
        SORT_SELECT,    // the same elements, in the order in which PyTorch's topk selects them
        SORT_LIKE_MODE, // in the order that PyTorch's mode makes
        SORT_MEDIAN,    // one element: the first NaN, else the lower median
        SORT_NANMEDIAN, // one element: the lower median of those that are not NaN
        SORT_KTH,       // element `kth` is at its place, as PyTorch's kthvalue finds it
} SortWay;

// Rows of an ordered plan with one reduced dimension, of compute dtype `dtype` (F32, F64, I64).
// values (dtype) and indices (int64): contiguous [n_rows / inner][n_out][inner]. n_out is the row
// length, or less for SORT_FIRST and SORT_SELECT, or 1 for the medians. values may be NULL.
typedef struct SortTask {
        Dtype dtype;
        SortWay way;
        bool descending;
        int64_t inner, n_out, kth;
        void *values;
        int64_t *indices;
} SortTask;
Status sort_rows(const RunContext *ctx, const RowPlan *plan, const SortTask *task, const void *data);
