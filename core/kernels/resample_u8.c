// SPDX-License-Identifier: Apache-2.0
// resample_u8.c: uint8 images: weights become integers with as many bits of fraction as 16 bits allow, sums are rounded half up and clamped after each of the
// two passes.
#include "core/kernels/resample.h"

typedef struct ByteAxis {
        const ResampleAxis *axis;
        int precision;          // bits of fraction
} ByteAxis;

typedef struct ByteTask {
        const RunContext *ctx;
        const Resample *resample;
        ByteAxis height, width;
        const uint8_t *in;
        uint8_t *out;
        _Atomic int failed;
} ByteTask;

static ByteAxis byte_axis(const ResampleAxis *axis)
{
        double largest = 0;
        // Both taps on one input (the border, or equal sizes) are one weight.
        for (int64_t o = 0; o < axis->out_size; o++) {
                const double *weight = axis->weight + 2 * o;
                double top = axis->index[2 * o] == axis->index[2 * o + 1] ? weight[0] + weight[1] : MAX(weight[0], weight[1]);
                largest = MAX(largest, top);
        }
        int precision = 0;
        while (precision < 22 && (int)(0.5 + largest * (1 << (precision + 1))) < 1 << 15)
                precision++;
        return (ByteAxis){ axis, precision };
}

static uint8_t mix(const ByteAxis *by, int64_t o, uint8_t a, uint8_t b)
{
        const double *weight = by->axis->weight + 2 * o;
        bool same = by->axis->index[2 * o] == by->axis->index[2 * o + 1];
        double one = 1 << by->precision;
        int first = (int)(0.5 + (same ? weight[0] + weight[1] : weight[0]) * one), second = same ? 0 : (int)(0.5 + weight[1] * one);
        int sum = ((by->precision == 0 ? 0 : 1 << (by->precision - 1)) + a * first + b * second) >> by->precision;
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
        for (int64_t plane = begin; plane < end && !run_stopping(task->ctx); plane++) {
                const uint8_t *in = task->in + plane * height->in_size * width->in_size;
                uint8_t *out = task->out + plane * height->out_size * width->out_size;
                for (int64_t y = 0; y < height->in_size; y++) {
                        for (int64_t x = 0; x < width->out_size; x++)
                                narrow[y * width->out_size + x] = mix(&task->width, x, in[y * width->in_size + width->index[2 * x]], in[y * width->in_size + width->index[2 * x + 1]]);
                }
                for (int64_t y = 0; y < height->out_size; y++) {
                        const uint8_t *top = narrow + height->index[2 * y] * width->out_size, *bottom = narrow + height->index[2 * y + 1] * width->out_size;
                        for (int64_t x = 0; x < width->out_size; x++)
                                out[y * width->out_size + x] = mix(&task->height, y, top[x], bottom[x]);
                }
        }
        scratch_deinit(&scratch);
}

Status resample_run_u8(const RunContext *ctx, const Resample *resample, const uint8_t *in, uint8_t *out)
{
        ByteTask task = { .ctx = ctx, .resample = resample, .height = byte_axis(&resample->axis[1]), .width = byte_axis(&resample->axis[2]), .in = in, .out = out };
        TRY(parallel_for(ctx, resample->planes, 1, byte_planes, &task));
        if (atomic_load(&task.failed))
                return fail(STATUS_TOO_LARGE, "resampling has no working memory left; send smaller inputs or start the server with a larger --max-run-memory");
        return run_poll(ctx);
}
