// SPDX-License-Identifier: Apache-2.0
// Whether several runs of a graph may be one run of a batch: a proof over two recordings of it
// (core/ops/apart.h has the rules for single calls).
#pragma once
#include "core/program/recording.h"

// The tensors among the results, in the order of recording_visit_results: along which dimension the
// runs' results lie one after the other; APART_SAME: every run has all of it.
typedef struct SampleDims {
        int8_t *dims; // owned
        uint32_t n;
} SampleDims;

// `one`: as recorded for one run; `many`: for inputs that hold those of `n` >= 2 runs one after the
// other along dimension 0. Both without passes. STATUS_UNSUPPORTED, with the reason as its message:
// the results of one run may depend on what the others bring, or on how many there are.
Status samples_check(const Recording *one, const Recording *many, int64_t n, SampleDims *out_dims);
void sample_dims_deinit(SampleDims *dims);
