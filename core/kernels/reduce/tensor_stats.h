// SPDX-License-Identifier: Apache-2.0
// Statistics of all elements of a tensor, computed in double whatever its dtype.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

enum { STATS_BINS = 32 };

// NaN and infinities are counted, and left out of everything else. What has no value is NaN:
// without a finite element min, max, mean, std and the ends of the histogram; std of one element.
typedef struct TensorStats {
        bool is_float; // false: bool and integers, whose extremes are min_int and max_int exactly
        int64_t n, n_nan, n_inf, n_zero;
        double min, max, mean;
        double std; // unbiased, as torch.std
        int64_t min_int, max_int;
        // As torch.histc: equal bins from min to max, the last one with its end; one value only:
        // from value - 1 to value + 1.
        double from, to;
        int64_t counts[STATS_BINS];
} TensorStats;

// Real dtypes, any strides. `data` points at the first element. Reads the tensor twice.
Status tensor_stats_run(const RunContext *ctx, const TensorMeta *meta, const void *data,
                        TensorStats *out_stats);

// How many NaN and infinities there are; integers have none.
typedef struct NonFinite {
        int64_t n_nan, n_inf;
} NonFinite;
Status tensor_count_non_finite(const RunContext *ctx, const TensorMeta *meta, const void *data,
                               NonFinite *out_found);

// What ended a run that watches for NaN and infinities (RunContext.halt).
enum { HALT_MAX_INPUTS = 8, HALT_NAME_MAX = 96 };
typedef struct HaltInput {
        char name[HALT_NAME_MAX]; // of the node that made it, cut when longer
        TensorStats stats;
} HaltInput;
typedef struct HaltReport {
        bool nan; // else an infinity
        TensorStats result;
        HaltInput inputs[HALT_MAX_INPUTS]; // the first ones
        uint32_t n_inputs;
} HaltReport;
