// SPDX-License-Identifier: Apache-2.0
// Transposed convolution. Results whose positions leave the same remainder by the stride are a
// phase: they read the input through the same taps, at neighbouring positions.
#pragma once
#include "core/kernels/conv/conv.h"

// An axis of a transposed convolution. `pad`: as its argument.
typedef struct PhasedAxis {
        int64_t stride, dilation, pad, kernel, out_size;
} PhasedAxis;

// One axis of a phase: results first_out, first_out + stride ... (n_out) through the taps first,
// first + step ... (n, maybe none). Result j, by its place among them, reads input j - pad through
// the last of these taps, and `dilation` inputs further through each tap before. pad < 0: inputs
// are left out.
typedef struct PhaseAxis {
        int64_t first, step, n;
        int64_t first_out, n_out;
        int64_t pad, dilation;
} PhaseAxis;

// Of the results whose positions leave `rest`, from 0 to stride - 1.
PhaseAxis phase_axis(const PhasedAxis *of, int64_t rest);
// conv->transposed. As conv_run, with the weight as PyTorch has it.
Status conv_run_transposed(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                           const void *bias, void *out);
