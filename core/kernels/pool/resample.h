// SPDX-License-Identifier: Apache-2.0
// Resampling of contiguous planes, or of images with channels innermost, over one to three spatial
// dimensions.
#pragma once
#include "core/kernels/dense.h"

typedef enum ResampleKind {
        RESAMPLE_NEAREST,
        // as PyTorch's channels_last kernels: equal and doubled sizes do not ask the scale factor
        RESAMPLE_NEAREST_PACKED,
        RESAMPLE_NEAREST_EXACT,
        RESAMPLE_LINEAR,
        RESAMPLE_CUBIC
} ResampleKind;

enum { RESAMPLE_MAX_TAPS = 4 };

// One axis: output position o is the sum of n_taps inputs index[o * n_taps + t] times weight[...].
typedef struct ResampleAxis {
        int64_t in_size, out_size;
        int n_taps;
        int64_t *index;
        double *weight;
} ResampleAxis;

// Fills index and weight (n_taps * out_size entries each; RESAMPLE_MAX_TAPS are enough). scale: the
// scale factor that was asked for, 0 when only sizes were. `precision`: DTYPE_F64, or DTYPE_F32 for
// source positions in float32, or a half dtype to which weights are rounded as well.
Status resample_axis(const RunContext *ctx, ResampleAxis *axis, ResampleKind kind, bool align_corners,
                     double scale, Dtype precision);

typedef struct Resample {
        Dtype dtype; // F32 or F64
        int64_t planes;
        int64_t channels;     // innermost, of each element of a plane; else 1. The same bits
        ResampleAxis axis[3]; // depth, height, width
} Resample;
Status resample_run(const RunContext *ctx, const Resample *resample, const void *in, void *out);

// Bilinear or bicubic resampling of uint8 in fixed point, width first and rounded between the two
// passes, as PyTorch does it. axis[1] and axis[2] hold taps in float64. in, out: contiguous uint8
// planes.
Status resample_run_u8(const RunContext *ctx, const Resample *resample, const uint8_t *in, uint8_t *out);
