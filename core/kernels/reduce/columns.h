// SPDX-License-Identifier: Apache-2.0
// Reductions of neighbouring rows at once, where the elements of a row lie apart and those of its
// neighbours side by side: memory is read in order, and nothing is gathered.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/reduce/reduce.h"

enum { REDUCE_DOUBLES = 8 };
typedef void (*ReduceStep)(void *into, const void *from, int64_t n);
typedef struct ReduceSteps {
        ReduceStep add, multiply, larger, smaller; // n columns into as many; NaN wins
        ReduceStep add_known;                      // NaN counts as 0
        // row `row` of n columns into the extremes so far and the numbers of their rows, which are
        // integers of as many bits; NULL for int32 and uint8
        void (*first_larger)(void *into, void *at, const void *from, int64_t row, int64_t n);
        void (*first_smaller)(void *into, void *at, const void *from, int64_t row, int64_t n);
        // n elements of a row, whole groups, into its REDUCE_LANES lanes
        ReduceStep add_lanes, multiply_lanes, larger_lanes, smaller_lanes, add_known_lanes;
        // two rows at once: sums of one wait for each other
        void (*add_two_lanes)(void *first, void *second, const void *from, const void *next, int64_t n);
        // of floats: n elements of a row, whole groups, and squares of their differences from a
        // mean, into REDUCE_DOUBLES lanes, which the row's `first` ones begin; NULL for integers
        void (*add_doubles)(double *lanes, bool first, const void *from, int64_t n);
        void (*add_squares)(double *lanes, bool first, double mean, const void *from, int64_t n);
        void (*divide)(void *into, int64_t by, int64_t n);
} ReduceSteps;
extern const KernelFamily reduce_family; // of ReduceSteps

// Whether columns_run takes it: sums, means, products, extremes, and norms of order 2, of rows
// whose neighbours are contiguous.
bool columns_fit(const RowPlan *plan, const Reduction *reduction);
// As reduce_run, with the same bits: each row's operations come in the same order.
Status columns_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction);
