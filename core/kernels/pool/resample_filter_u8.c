// SPDX-License-Identifier: Apache-2.0
// resample_filter_u8.c: uint8 images: weights become integers with as many bits of fraction as 16
// bits allow, sums are rounded half up and clamped after each of the two passes.
#include "core/kernels/pool/resample_filter_u8.h"

enum { MIX_STEPS = 4 };

// Taps in fixed point.
typedef struct ByteAxis {
        const ResampleFilter *filter;
        int precision; // bits of fraction
        int32_t *weight;
} ByteAxis;

typedef struct ByteTask {
        const RunContext *ctx;
        const FilterPlanes *planes;
        ByteAxis height, width;
        const uint8_t *in;
        uint8_t *out;
        _Atomic int failed;
} ByteTask;

static Status byte_axis_init(ByteAxis *by, const RunContext *ctx, const ResampleFilter *filter,
                             Scratch *scratch)
{
        int64_t n_taps = filter->n_taps;
        TRY(scratch_init(scratch, ctx, filter->out_size, (size_t)n_taps * sizeof(int32_t)));
        *by = (ByteAxis){ .filter = filter, .weight = scratch->data };
        Work work = { .ctx = ctx };
        double largest = 0;
        for (int64_t o = 0; o < filter->out_size && !work_stops(&work, MIX_STEPS * n_taps); o++) {
                for (int64_t t = 0; t < filter->count[o]; t++)
                        largest = MAX(largest, filter->weight[o * n_taps + t]);
        }
        while (by->precision < 22 && 0.5 + largest * (1 << (by->precision + 1)) < 1 << 15)
                by->precision++;
        for (int64_t o = 0; o < filter->out_size && !work_stops(&work, MIX_STEPS * n_taps); o++) {
                for (int64_t t = 0; t < filter->count[o]; t++) {
                        // Scales of the caller's own may make weights as large as they like.
                        double weight = filter->weight[o * n_taps + t] * (1 << by->precision);
                        weight = MIN(MAX(weight, -1e9), 1e9);
                        by->weight[o * n_taps + t] = (int32_t)((weight < 0 ? -0.5 : 0.5) + weight);
                }
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

// `in` points at the line's or column's first element, `step` apart.
static uint8_t mix(const ByteAxis *by, int64_t o, const uint8_t *in, int64_t step)
{
        const ResampleFilter *filter = by->filter;
        const int32_t *weight = by->weight + o * filter->n_taps;
        int64_t sum = by->precision == 0 ? 0 : 1 << (by->precision - 1);
        for (int64_t t = 0; t < filter->count[o]; t++)
                sum += (int64_t)weight[t] * in[(filter->first[o] + t) * step];
        sum >>= by->precision;
        return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void byte_planes(void *argument, int64_t begin, int64_t end)
{
        ByteTask *task = argument;
        const ResampleFilter *height = &task->planes->height, *width = &task->planes->width;
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
                for (int64_t y = 0; y < height->in_size && !work.stops; y++) {
                        const uint8_t *row = in + y * width->in_size;
                        for (int64_t x = 0; x < width->out_size; x++) {
                                if (work_stops(&work, MIX_STEPS + width->count[x]))
                                        break;
                                narrow[y * width->out_size + x] = mix(&task->width, x, row, 1);
                        }
                }
                for (int64_t y = 0; y < height->out_size && !work.stops; y++) {
                        for (int64_t x = 0; x < width->out_size; x++) {
                                if (work_stops(&work, MIX_STEPS + height->count[y]))
                                        break;
                                out[y * width->out_size + x] =
                                        mix(&task->height, y, narrow + x, width->out_size);
                        }
                }
        }
        scratch_deinit(&scratch);
}

Status resample_filter_run_u8(const RunContext *ctx, const FilterPlanes *planes, const uint8_t *in,
                              uint8_t *out)
{
        ByteTask task = { .ctx = ctx, .planes = planes, .in = in, .out = out };
        _cleanup_(scratch_deinit) Scratch height = { 0 }, width = { 0 };
        TRY(byte_axis_init(&task.height, ctx, &planes->height, &height));
        TRY(byte_axis_init(&task.width, ctx, &planes->width, &width));
        TRY(parallel_for(ctx, planes->planes, 1, byte_planes, &task));
        if (atomic_load(&task.failed))
                return fail(STATUS_TOO_LARGE, "resampling has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return run_poll(ctx);
}
