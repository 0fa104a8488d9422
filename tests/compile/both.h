// SPDX-License-Identifier: Apache-2.0
// One graph run eagerly and compiled, side by side.
#pragma once
#include "core/compile/compile.h"

typedef enum BothResult { BOTH_EQUAL, BOTH_DIFFER, BOTH_DYNAMIC, BOTH_FAIL } BothResult;

// How long a run of either side may take; 0: as long as it likes.
extern int64_t both_deadline_ms;

// `inputs`: one Value per placeholder. Tensors are copied for each run, so that in-place writes do
// not meet. Results must have equal structure, dtypes, shapes, strides, sharing of storages among
// them, and floats within rtol and atol (0: equal bits), other elements of equal bits. The program
// runs three times in one frame. On BOTH_DIFFER, `words` says how. BOTH_FAIL: both fail, with the
// same status.
BothResult run_both(const Graph *graph, ValueSpan inputs, const CompileOptions *options, double rtol,
                    double atol, char words[600]);
typedef struct Tolerance {
        double rtol, atol;
} Tolerance;
// The same; the program is compiled for `other` (numbers of other values), unless it says that it
// depends on them.
BothResult run_both_open(const Graph *graph, ValueSpan inputs, ValueSpan other, const CompileOptions *options,
                         Tolerance tolerance, char words[600]);
