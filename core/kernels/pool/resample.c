// SPDX-License-Identifier: Apache-2.0
// resample.c: taps per axis are worked out once; each output row first adds the input rows that its
// taps name into one line (a vector loop), then picks columns from the line. Positions are rounded
// to float32 step by step where PyTorch computes in float32, so that floor() falls on the same
// side.
#include "core/kernels/pool/resample.h"
#include "core/tensor/half.h"
#include <math.h>
#include <string.h>

enum { TAP_STEPS = 16 };

static double rounded(bool single, double x)
{
        return single ? (double)(float)x : x;
}

static double axis_scale(const ResampleAxis *axis, bool align_corners, double scale, bool single)
{
        if (align_corners)
                return axis->out_size > 1
                               ? rounded(single, (double)(axis->in_size - 1) / (double)(axis->out_size - 1))
                               : 0;
        return rounded(single, scale > 0 ? 1.0 / scale : (double)axis->in_size / (double)axis->out_size);
}

static double source_position(double scale, int64_t o, bool align_corners, bool cubic, bool single)
{
        if (align_corners)
                return rounded(single, scale * (double)o);
        // PyTorch's compiler fuses the two
        double at = rounded(single, fma(scale, rounded(single, (double)o + 0.5), -0.5));
        return !cubic && at < 0 ? 0 : at;
}

// A position as an index of low..high. Scales are the caller's: positions may be far outside,
// infinite or NaN (low).
static int64_t place_of(double at, int64_t low, int64_t high)
{
        return !(at > (double)low) ? low : at >= (double)high ? high : (int64_t)at;
}

static void nearest_taps(ResampleAxis *axis, Work *work, ResampleKind kind, double scale)
{
        bool exact = kind == RESAMPLE_NEAREST_EXACT, packed = kind == RESAMPLE_NEAREST_PACKED;
        // Nearest neighbours are found in float32 for every dtype.
        double step = axis_scale(axis, false, scale, true);
        for (int64_t o = 0; o < axis->out_size && !work_stops(work, TAP_STEPS); o++) {
                int64_t at;
                if (packed && axis->out_size == axis->in_size)
                        at = o;
                else if (packed && axis->out_size == 2 * axis->in_size)
                        at = o / 2;
                else
                        at = place_of((double)floorf((float)((exact ? (double)o + 0.5 : (double)o) * step)),
                                      0, axis->in_size - 1);
                axis->index[o] = MIN(at, axis->in_size - 1);
                axis->weight[o] = 1;
        }
}

static void linear_taps(ResampleAxis *axis, Work *work, bool align_corners, double scale, bool single)
{
        double step = axis_scale(axis, align_corners, scale, single);
        for (int64_t o = 0; o < axis->out_size && !work_stops(work, TAP_STEPS); o++) {
                int64_t *index = axis->index + 2 * o;
                double *weight = axis->weight + 2 * o;
                if (axis->out_size == axis->in_size) {
                        index[0] = index[1] = o;
                        weight[0] = 1;
                        weight[1] = 0;
                        continue;
                }
                double at = source_position(step, o, align_corners, false, single);
                index[0] = place_of(at, 0, axis->in_size - 1);
                index[1] = index[0] + (index[0] < axis->in_size - 1);
                weight[1] = MIN(MAX(rounded(single, at - (double)index[0]), 0.0), 1.0);
                weight[0] = rounded(single, 1 - weight[1]);
        }
}

static double cubic_near(double x)
{
        return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1;
}

static double cubic_far(double x)
{
        return ((-0.75 * x - 5 * -0.75) * x + 8 * -0.75) * x - 4 * -0.75;
}

static void cubic_taps(ResampleAxis *axis, Work *work, bool align_corners, double scale, bool single)
{
        double step = axis_scale(axis, align_corners, scale, single);
        for (int64_t o = 0; o < axis->out_size && !work_stops(work, TAP_STEPS); o++) {
                double at = source_position(step, o, align_corners, true, single), whole = floor(at);
                // PyTorch caps the index at the last one, and the fraction with it.
                int64_t base = place_of(whole, -1, axis->in_size - 1);
                double t = MIN(MAX(rounded(single, at - (double)base), 0.0), 1.0);
                double weight[4] = { cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t) };
                for (int k = 0; k < 4; k++) {
                        axis->index[4 * o + k] = MAX((int64_t)0, MIN(base - 1 + k, axis->in_size - 1));
                        axis->weight[4 * o + k] = rounded(single, weight[k]);
                }
        }
}

static double round_weight(Dtype precision, double weight)
{
        bool half = precision == DTYPE_F16 || precision == DTYPE_BF16;
        return half ? (double)rounded_to_half((float)weight, precision) : weight;
}

static void round_weights(ResampleAxis *axis, Work *work, Dtype precision)
{
        for (int64_t i = 0; i < axis->out_size * axis->n_taps && !work_stops(work, TAP_STEPS); i++) {
                // The first of two weights is 1 minus the second.
                bool first = axis->n_taps == 2 && i % 2 == 0;
                double weight = first ? 1 - round_weight(precision, axis->weight[i + 1]) : axis->weight[i];
                axis->weight[i] = round_weight(precision, weight);
        }
}

Status resample_axis(const RunContext *ctx, ResampleAxis *axis, ResampleKind kind, bool align_corners,
                     double scale, Dtype precision)
{
        Work work = { .ctx = ctx };
        bool single = precision != DTYPE_F64;
        axis->n_taps = kind == RESAMPLE_LINEAR ? 2 : kind == RESAMPLE_CUBIC ? 4 : 1;
        if (kind == RESAMPLE_LINEAR)
                linear_taps(axis, &work, align_corners, scale, single);
        else if (kind == RESAMPLE_CUBIC)
                cubic_taps(axis, &work, align_corners, scale, single);
        else
                nearest_taps(axis, &work, kind, scale);
        if (precision == DTYPE_F16 || precision == DTYPE_BF16)
                round_weights(axis, &work, precision);
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

typedef struct ResampleTask {
        const RunContext *ctx;
        const Resample *resample;
        const void *in;
        void *out;
        _Atomic int failed;
} ResampleTask;

#define SAMPLE(x) x##_f32
#define SAMPLE_T  float
#include "core/kernels/pool/resample_planes.inc"
#undef SAMPLE
#undef SAMPLE_T
#define SAMPLE(x) x##_f64
#define SAMPLE_T  double
#include "core/kernels/pool/resample_planes.inc"
#undef SAMPLE
#undef SAMPLE_T

Status resample_run(const RunContext *ctx, const Resample *resample, const void *in, void *out)
{
        ResampleTask task = { .ctx = ctx, .resample = resample, .in = in, .out = out };
        const ResampleAxis *axis = resample->axis;
        int64_t work = (axis[2].out_size + axis[2].in_size) * resample->channels;
        TRY(parallel_for(ctx, resample->planes * axis[0].out_size * axis[1].out_size,
                         MAX((int64_t)1, 65536 / MAX(work, (int64_t)1)),
                         resample->dtype == DTYPE_F32 ? resample_planes_f32 : resample_planes_f64, &task));
        if (atomic_load(&task.failed))
                return fail(STATUS_TOO_LARGE, "resampling has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return run_poll(ctx);
}
