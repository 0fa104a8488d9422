// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: how unlikely a sequence of labels is, summed over all ways
// to spread it over the steps of the input, with blanks between.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef struct Ctc {
        const TensorMeta *meta; // [steps, sequences, classes], float32 or float64, any strides
        const void *log_probs;
        // Per sequence, checked: how many steps count (0 .. steps), how many labels it has.
        const int64_t *input_lengths, *target_lengths;
        // The labels of sequence i begin at i * target_stride; with stride -1 they stand one behind
        // the other. Each is a class.
        const int64_t *targets;
        int64_t target_stride;
        int64_t blank; // the class of nothing
        void *out;     // one element per sequence, of the dtype of `meta`
} Ctc;

Status ctc_run(const RunContext *ctx, const Ctc *ctc);
