// SPDX-License-Identifier: Apache-2.0
// Distances of all pairs of rows of a matrix.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/run_context.h"

typedef enum DistanceKind { DISTANCE_SUM, DISTANCE_EUCLIDEAN, DISTANCE_LARGEST, DISTANCE_KINDS } DistanceKind;

// DISTANCE_TILE results. To each is added what `row` differs in from a column of `others`, whose n
// rows are `step` numbers apart; for DISTANCE_EUCLIDEAN squared, for DISTANCE_LARGEST the larger of
// both is kept (NaN wins).
enum { DISTANCE_TILE = 128 };
typedef void (*DistanceStep)(void *results, const void *row, const void *others, int64_t step, int64_t n);
typedef struct DistanceSteps {
        DistanceStep step[DISTANCE_KINDS];
} DistanceSteps;
extern const KernelFamily distance_family; // of DistanceSteps

typedef struct Distances {
        Dtype dtype; // float32 or float64, computed in
        DistanceKind kind;
        int64_t n, m;     // rows, columns; both > 0
        const void *data; // contiguous
} Distances;
// Row 0 to the others, row 1 to those behind it, ...: n (n - 1) / 2 results.
Status distances_run(const RunContext *ctx, const Distances *task, void *out);
