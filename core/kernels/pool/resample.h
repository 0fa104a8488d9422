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
        RESAMPLE_CUBIC,
        // Antialiased: a filter as wide as the step between two results. See resample_filter_axis.
        RESAMPLE_LINEAR_AA,
        RESAMPLE_CUBIC_AA,
        RESAMPLE_LANCZOS_AA
} ResampleKind;

enum { RESAMPLE_MAX_TAPS = 4 };

// One axis: output position o is the sum of n_taps inputs index[o * n_taps + t] times weight[...].
typedef struct ResampleAxis {
        int64_t in_size, out_size;
        int n_taps;
        int64_t *index;
        double *weight;
} ResampleAxis;

// One axis of a filter: output position o is the sum of count[o] <= n_taps inputs, first[o] and
// those behind it, times weight[o * n_taps] and the weights behind it.
typedef struct ResampleFilter {
        int64_t in_size, out_size, n_taps;
        int64_t *first, *count; // out_size entries each
        double *weight;         // out_size * n_taps
} ResampleFilter;

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

// n_taps of an antialiased axis, between 1 and in_size.
int64_t resample_filter_taps(ResampleKind kind, int64_t in_size, int64_t out_size, bool align_corners,
                             double scale);
// Fills first, count and weight of an antialiased kind. An axis that keeps its size is copied,
// whatever its scale. `dtype`: DTYPE_F32 for positions and weights in float32, else DTYPE_F64.
Status resample_filter_axis(const RunContext *ctx, ResampleFilter *filter, ResampleKind kind,
                            bool align_corners, double scale, Dtype dtype);
// Taps of one weight per input: equal neighbours become one. `filter` shares axis->weight, whose
// n_taps per position it keeps, and has room in first and count.
Status resample_filter_merge(const RunContext *ctx, const ResampleAxis *axis, ResampleFilter *filter);

// Planes whose rows and columns are filtered.
typedef struct FilterPlanes {
        Dtype dtype; // F32, F64 or U8
        int64_t planes;
        ResampleFilter height, width;
} FilterPlanes;
// Width first, as PyTorch does it. in, out: contiguous planes of `dtype`. uint8 is computed in
// fixed point from weights in float64, and rounded between the two passes.
Status resample_filter_run(const RunContext *ctx, const FilterPlanes *planes, const void *in, void *out);
