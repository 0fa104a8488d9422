// SPDX-License-Identifier: Apache-2.0
// Searching in sorted rows, counting in bins, and adding windows up to an image.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// out[row][i] = how many elements of the sorted row are below values[row][i] (right: not above).
// NaN is above all else. Arrays are contiguous, of dtype F32, F64 or I64.
typedef struct Search {
        Dtype dtype;
        bool right;
        int64_t rows, n_sorted, n_values; // per row
        int64_t sorted_step;              // from row to row: n_sorted, or 0 (one row for all)
        const void *sorted, *values;
        const int64_t *order; // sorted[order[k]] is the k-th; NULL: sorted already
        int64_t *out;
} Search;
// STATUS_INDEX for an order that points outside of its row.
Status search_run(const RunContext *ctx, const Search *task);

// Counts of elements in `n_bins` bins of equal width from `low` to `high`, the last one closed.
// Elements outside and NaN count nowhere. Float32 or float64; counts are of that type.
typedef struct Histogram {
        Dtype dtype;
        int64_t n, n_bins;
        double low, high;
        const void *data;
        void *out;
} Histogram;
Status histogram_run(const RunContext *ctx, const Histogram *task);
// Smallest and largest element; NaN if there is one. n > 0.
Status histogram_range(const RunContext *ctx, Histogram *task);

// The inverse of unfolding: out[plane] is the sum of its windows, each put where it was taken from.
// columns: [planes][kernel 0][kernel 1][count 0][count 1]; out: [planes][size 0][size 1]. Both are
// contiguous, F32, F64 or I64.
typedef struct Fold {
        Dtype dtype;
        int64_t planes;
        int64_t size[2], kernel[2], dilation[2], padding[2], stride[2], count[2];
        const void *columns;
        void *out;
} Fold;
Status fold_run(const RunContext *ctx, const Fold *task);
