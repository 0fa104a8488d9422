// SPDX-License-Identifier: Apache-2.0
// Transposed convolution as convolutions of stride 1, one for each remainder of a result's position
// by the stride: phases.
#pragma once
#include "core/kernels/conv/conv.h"

enum { MOST_PHASES = 64 };

// An axis of a transposed convolution. `pad`: as its argument.
typedef struct PhasedAxis {
        int64_t stride, dilation, pad, kernel, out_size;
} PhasedAxis;

// One axis of a phase: the taps first, first + step ... (n, maybe none), the last of which is the
// first of the convolution; results first_out, first_out + stride ... (n_out). `pad`: before the
// first input, negative where inputs are left out.
typedef struct PhaseAxis {
        int64_t first, step, n;
        int64_t first_out, n_out;
        int64_t pad, dilation;
} PhaseAxis;

// Of the results whose positions leave `rest`, from 0 to stride - 1.
PhaseAxis phase_axis(const PhasedAxis *of, int64_t rest);
// Whether a phase for each remainder by these `n` strides is at most MOST_PHASES.
bool has_few_phases(const int64_t *stride, int n);
// conv->transposed. As conv_run.
Status conv_run_phases(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                       const void *bias, void *out);
