// SPDX-License-Identifier: Apache-2.0
// resample_u8.c: uint8 images: weights become integers with as many bits of fraction as 16 bits
// allow, sums are rounded half up and clamped after each of the two passes.
#include "core/kernels/pool/resample.h"

enum { MIX_STEPS = 4 };

// Taps in fixed point: position o has count[o] of them, from input first[o] on.
typedef struct ByteAxis {
        const ResampleAxis *axis;
        int precision; // bits of fraction
        int32_t *weight;
        int64_t *first;
        int8_t *count;
} ByteAxis;

typedef struct ByteTask {
        const RunContext *ctx;
        const Resample *resample;
        ByteAxis height, width;
        const uint8_t *in;
        uint8_t *out;
        _Atomic int failed;
} ByteTask;

// Neighbouring taps that were clamped to one input are one weight. Returns their number.
static int merged_taps(const ResampleAxis *axis, int64_t o, double *out_weight)
{
        const int64_t *index = axis->index + o * axis->n_taps;
        const double *weight = axis->weight + o * axis->n_taps;
        int n = 0;
        for (int t = 0; t < axis->n_taps; t++) {
                if (t > 0 && index[t] == index[t - 1])
                        out_weight[n - 1] += weight[t];
                else
                        out_weight[n++] = weight[t];
        }
        return n;
}

static Status byte_axis_init(ByteAxis *by, const RunContext *ctx, const ResampleAxis *axis, Scratch *scratch)
{
        TRY(scratch_init(scratch, ctx, axis->out_size,
                         sizeof(int64_t) + RESAMPLE_MAX_TAPS * sizeof(int32_t) + 1));
        *by = (ByteAxis){ .axis = axis, .first = scratch->data };
        by->weight = (int32_t *)(by->first + axis->out_size);
        by->count = (int8_t *)(by->weight + RESAMPLE_MAX_TAPS * axis->out_size);
        Work work = { .ctx = ctx };
        double largest = 0, weight[RESAMPLE_MAX_TAPS];
        for (int64_t o = 0; o < axis->out_size && !work_stops(&work, MIX_STEPS); o++) {
                int n = merged_taps(axis, o, weight);
                for (int t = 0; t < n; t++)
                        largest = MAX(largest, weight[t]);
        }
        while (by->precision < 22 && (int)(0.5 + largest * (1 << (by->precision + 1))) < 1 << 15)
                by->precision++;
        for (int64_t o = 0; o < axis->out_size && !work_stops(&work, MIX_STEPS); o++) {
                int n = merged_taps(axis, o, weight);
                by->first[o] = axis->index[o * axis->n_taps];
                by->count[o] = (int8_t)n;
                for (int t = 0; t < n; t++)
                        by->weight[o * RESAMPLE_MAX_TAPS + t] =
                                (int32_t)((weight[t] < 0 ? -0.5 : 0.5) + weight[t] * (1 << by->precision));
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

// `in` points at the line's or column's first element, `step` apart.
static uint8_t mix(const ByteAxis *by, int64_t o, const uint8_t *in, int64_t step)
{
        int sum = by->precision == 0 ? 0 : 1 << (by->precision - 1);
        for (int t = 0; t < by->count[o]; t++)
                sum += by->weight[o * RESAMPLE_MAX_TAPS + t] * in[(by->first[o] + t) * step];
        sum >>= by->precision;
        return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void byte_planes(void *argument, int64_t begin, int64_t end)
{
        ByteTask *task = argument;
        const ResampleAxis *height = &task->resample->axis[1], *width = &task->resample->axis[2];
        Scratch scratch;
        if (scratch_init(&scratch, task->ctx, height->in_size, (size_t)width->out_size) != STATUS_OK) {
                atomic_store(&task->failed, 1);
                return;
        }
        uint8_t *narrow = scratch.data;
        Work work = { .ctx = task->ctx };
        for (int64_t plane = begin; plane < end && !work.stops; plane++) {
                const uint8_t *in = task->in + plane * height->in_size * width->in_size;
                uint8_t *out = task->out + plane * height->out_size * width->out_size;
                for (int64_t y = 0; y < height->in_size; y++) {
                        for (int64_t x = 0; x < width->out_size && !work_stops(&work, MIX_STEPS); x++)
                                narrow[y * width->out_size + x] =
                                        mix(&task->width, x, in + y * width->in_size, 1);
                }
                for (int64_t y = 0; y < height->out_size; y++) {
                        for (int64_t x = 0; x < width->out_size && !work_stops(&work, MIX_STEPS); x++)
                                out[y * width->out_size + x] =
                                        mix(&task->height, y, narrow + x, width->out_size);
                }
        }
        scratch_deinit(&scratch);
}

Status resample_run_u8(const RunContext *ctx, const Resample *resample, const uint8_t *in, uint8_t *out)
{
        ByteTask task = { .ctx = ctx, .resample = resample, .in = in, .out = out };
        _cleanup_(scratch_deinit) Scratch height = { 0 }, width = { 0 };
        TRY(byte_axis_init(&task.height, ctx, &resample->axis[1], &height));
        TRY(byte_axis_init(&task.width, ctx, &resample->axis[2], &width));
        TRY(parallel_for(ctx, resample->planes, 1, byte_planes, &task));
        if (atomic_load(&task.failed))
                return fail(STATUS_TOO_LARGE, "resampling has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return run_poll(ctx);
}
