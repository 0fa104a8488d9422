// SPDX-License-Identifier: Apache-2.0
// Sums, means and maxima of rows of a matrix that are chosen by index, bag by bag.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef enum BagMode { BAG_SUM, BAG_MEAN, BAG_MAX } BagMode;

// Bag b holds the indices from offsets[b] up to the next bag's offset; the last bag ends at
// n_indices. Offsets begin with 0 and do not decrease (checked by the caller).
typedef struct Bags {
        BagMode mode;
        int64_t n_bags, n_indices;
        const int64_t *indices, *offsets;
        int64_t padding;          // the index that no bag counts; -1: none
        const TensorMeta *matrix; // [rows][width], floats, any strides
        const void *data;
        const void *scales; // one per index, of the compute dtype, dense; NULL: 1
        void *out;          // [n_bags][width] of the compute dtype, dense
        int64_t *counts;    // per bag, how many indices it counts; may be NULL
        int64_t *argmax;    // [n_bags][width]: the index of the maximum, 0 in empty bags; may be NULL
} Bags;

// Computes in float64 for a float64 matrix, else in float32. STATUS_INDEX for an index out of
// range.
Status bags_run(const RunContext *ctx, const Bags *bags);
