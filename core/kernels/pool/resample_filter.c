// SPDX-License-Identifier: Apache-2.0
// resample_filter.c: separable filters over planes: each row is filtered along the width, then each
// column along the height. Antialiased filters are as wide as the step between two results. Their
// positions are rounded to float32 where PyTorch computes in float32.
#include "core/kernels/pool/resample.h"
#include "core/kernels/pool/resample_filter_u8.h"
#include <math.h>
#include <string.h>

enum { TAP_STEPS = 16 };

// ---- antialiased weights ----
static double rounded(bool single, double x)
{
        return single ? (double)(float)x : x;
}

static double filter_scale(const ResampleFilter *filter, bool align_corners, double scale, bool single)
{
        if (align_corners)
                return filter->out_size > 1 ? rounded(single, (double)(filter->in_size - 1) /
                                                                      (double)(filter->out_size - 1))
                                            : 0;
        return rounded(single, scale > 0 ? 1.0 / scale : (double)filter->in_size / (double)filter->out_size);
}

// Inputs on each side that a filter of scale 1 reaches.
static double reach(ResampleKind kind)
{
        return kind == RESAMPLE_LINEAR_AA ? 1 : kind == RESAMPLE_CUBIC_AA ? 2 : 3;
}

static double support_of(ResampleKind kind, double scale, bool single)
{
        return rounded(single, scale >= 1 ? reach(kind) * scale : reach(kind));
}

static double triangle(double x)
{
        return x < 1 ? 1 - x : 0;
}

// Keys' cubic with a = -0.5, as in Pillow. In float32 near its zeros, the steps' roundings show.
static double cubic(double x, bool single)
{
        if (!single)
                return x < 1   ? fma(fma(1.5, x, -2.5) * x, x, 1)
                       : x < 2 ? fma(fma(fma(-0.5, x, 2.5), x, -4), x, 2)
                               : 0;
        float f = (float)x;
        return f < 1   ? fmaf(fmaf(1.5F, f, -2.5F) * f, f, 1)
               : f < 2 ? fmaf(fmaf(fmaf(-0.5F, f, 2.5F), f, -4), f, 2)
                       : 0;
}

static double sinc(double x)
{
        return x == 0 ? 1 : sin(x * M_PI) / (x * M_PI);
}

static double lanczos(double x)
{
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

int64_t resample_filter_taps(ResampleKind kind, int64_t in_size, int64_t out_size, bool align_corners,
                             double scale)
{
        ResampleFilter filter = { .in_size = in_size, .out_size = out_size };
        if (in_size == out_size)
                return 1;
        double support = support_of(kind, filter_scale(&filter, align_corners, scale, false), false);
        double taps = 2 * ceil(support) + 3;
        return taps < (double)in_size ? (int64_t)taps : MAX(in_size, (int64_t)1);
}

// A position as an index of 0..high. Scales are the caller's: positions may be far outside,
// infinite or NaN (0).
static int64_t place_of(double at, int64_t high)
{
        return !(at > 0) ? 0 : at >= (double)high ? high : (int64_t)at;
}

static void filter_position(ResampleFilter *filter, int64_t o, ResampleKind kind, double scale, bool single)
{
        double *weight = filter->weight + o * filter->n_taps, sum = 0;
        double support = support_of(kind, scale, single);
        double inverse = scale >= 1 ? rounded(single, 1 / scale) : 1;
        double center = rounded(single, scale * ((double)o + 0.5));
        int64_t first = place_of(rounded(single, center - support) + 0.5, filter->in_size);
        int64_t end = place_of(rounded(single, center + support) + 0.5, filter->in_size);
        int64_t n = MAX((int64_t)0, MIN(end - first, filter->n_taps));
        for (int64_t t = 0; t < n; t++) {
                double gap = rounded(single, (double)(t + first) - center) + 0.5;
                double x = fabs(rounded(single, gap * inverse));
                weight[t] = rounded(single, kind == RESAMPLE_LINEAR_AA  ? triangle(x)
                                            : kind == RESAMPLE_CUBIC_AA ? cubic(x, single)
                                                                        : lanczos(x));
                sum = rounded(single, sum + weight[t]);
        }
        for (int64_t t = 0; t < n && sum != 0; t++)
                weight[t] = rounded(single, weight[t] / sum);
        filter->first[o] = MIN(first, filter->in_size - 1);
        filter->count[o] = n;
}

Status resample_filter_axis(const RunContext *ctx, ResampleFilter *filter, ResampleKind kind,
                            bool align_corners, double scale, Dtype dtype)
{
        Work work = { .ctx = ctx };
        bool single = dtype == DTYPE_F32;
        double step = filter_scale(filter, align_corners, scale, single);
        for (int64_t o = 0; o < filter->out_size && !work_stops(&work, TAP_STEPS * filter->n_taps); o++) {
                if (filter->in_size != filter->out_size) {
                        filter_position(filter, o, kind, step, single);
                        continue;
                }
                filter->first[o] = o;
                filter->count[o] = 1;
                filter->weight[o * filter->n_taps] = 1;
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

Status resample_filter_merge(const RunContext *ctx, const ResampleAxis *axis, ResampleFilter *filter)
{
        Work work = { .ctx = ctx };
        for (int64_t o = 0; o < axis->out_size && !work_stops(&work, TAP_STEPS); o++) {
                const int64_t *index = axis->index + o * axis->n_taps;
                double *weight = axis->weight + o * axis->n_taps;
                int64_t n = 1;
                for (int t = 1; t < axis->n_taps; t++) {
                        if (index[t] == index[t - 1])
                                weight[n - 1] += weight[t];
                        else
                                weight[n++] = weight[t];
                }
                filter->first[o] = index[0];
                filter->count[o] = n;
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

// ---- planes of floats ----
typedef struct FilterTask {
        const RunContext *ctx;
        const FilterPlanes *planes;
        const void *in;
        void *out;
        _Atomic int failed;
} FilterTask;

#define FILTER(x) x##_f32
#define FILTER_T  float
#include "core/kernels/pool/resample_filter.inc"
#undef FILTER
#undef FILTER_T
#define FILTER(x) x##_f64
#define FILTER_T  double
#include "core/kernels/pool/resample_filter.inc"
#undef FILTER
#undef FILTER_T

Status resample_filter_run(const RunContext *ctx, const FilterPlanes *planes, const void *in, void *out)
{
        if (planes->dtype == DTYPE_U8)
                return resample_filter_run_u8(ctx, planes, in, out);
        FilterTask task = { .ctx = ctx, .planes = planes, .in = in, .out = out };
        TRY(parallel_for(ctx, planes->planes, 1,
                         planes->dtype == DTYPE_F32 ? filter_planes_f32 : filter_planes_f64, &task));
        if (atomic_load(&task.failed))
                return fail(STATUS_TOO_LARGE, "resampling has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return run_poll(ctx);
}
