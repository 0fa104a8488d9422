// SPDX-License-Identifier: Apache-2.0
// Resampling of contiguous planes over one to three spatial dimensions.
#pragma once
#include "core/kernels/dense.h"

typedef enum ResampleKind { RESAMPLE_NEAREST, RESAMPLE_NEAREST_EXACT, RESAMPLE_LINEAR, RESAMPLE_CUBIC } ResampleKind;

enum { RESAMPLE_MAX_TAPS = 4 };

// One axis: output position o is the sum of n_taps inputs index[o * n_taps + t] times weight[...].
typedef struct ResampleAxis {
        int64_t in_size, out_size;
        int n_taps;
        int64_t *index;
        double *weight;
} ResampleAxis;

// Fills index and weight (n_taps * out_size entries each; RESAMPLE_MAX_TAPS are enough). scale: the scale factor that was asked for, 0 when only sizes
// were. `single`: source positions are computed in float32, as PyTorch does for all but float64.
void resample_axis(ResampleAxis *axis, ResampleKind kind, bool align_corners, double scale, bool single);

typedef struct Resample {
        Dtype dtype;  // F32 or F64
        int64_t planes;
        ResampleAxis axis[3];  // depth, height, width
} Resample;
Status resample_run(const RunContext *ctx, const Resample *resample, const void *in, void *out);
