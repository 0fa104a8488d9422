// SPDX-License-Identifier: Apache-2.0
// conv_half.c: transposed convolution of half types in PyTorch's order: products per tap rounded,
// taps added one after another with rounding, then the bias. Where sums nearly cancel, a float32
// sum would differ from PyTorch by more than the tolerance.
#include "core/kernels/conv/conv.h"
#include "core/tensor/half.h"

typedef struct HalfRun {
        const RunContext *ctx;
        const ConvHalf *task;
} HalfRun;

enum { TAP_STEPS = 16 };

// Input position that reaches output position `o` through tap `tap`; -1: none.
static int64_t source(const Conv *conv, int axis, int64_t o, int64_t tap)
{
        int64_t spread = o + conv->pad[axis] - tap * conv->dilation[axis];
        if (spread < 0 || spread % conv->stride[axis] != 0 ||
            spread / conv->stride[axis] >= conv->in_size[axis])
                return -1;
        return spread / conv->stride[axis];
}

static float pixel(const ConvHalf *task, Work *work, int64_t image, int64_t channel, const int64_t *at)
{
        const Conv *conv = task->conv;
        int64_t taps = conv->kernel[0] * conv->kernel[1] * conv->kernel[2], group = channel / conv->group_out;
        const float *input =
                task->input + image * conv->in_stride[0] + group * conv->group_in * conv->in_stride[1];
        const float *weight = task->weight + channel * conv->group_in * taps;
        float sum = 0;
        for (int64_t tap = 0; tap < taps && !work_stops(work, TAP_STEPS); tap++) {
                int64_t z = source(conv, 0, at[0], tap / conv->kernel[2] / conv->kernel[1]),
                        y = source(conv, 1, at[1], tap / conv->kernel[2] % conv->kernel[1]),
                        x = source(conv, 2, at[2], tap % conv->kernel[2]);
                if (z < 0 || y < 0 || x < 0)
                        continue;
                const float *from =
                        input + z * conv->in_stride[2] + y * conv->in_stride[3] + x * conv->in_stride[4];
                float part = 0;
                for (int64_t c = 0; c < conv->group_in && !work_stops(work, 2); c++)
                        part += weight[c * taps + tap] * from[c * conv->in_stride[1]];
                sum = rounded_to_half(sum + rounded_to_half(part, task->half), task->half);
        }
        return task->bias == NULL ? sum : rounded_to_half(sum + task->bias[channel], task->half);
}

static void half_planes(void *argument, int64_t begin, int64_t end)
{
        const HalfRun *run = argument;
        const ConvHalf *task = run->task;
        const Conv *conv = task->conv;
        int64_t channels = conv->groups * conv->group_out, at[3];
        Work work = { .ctx = run->ctx };
        for (int64_t plane = begin; plane < end && !work.stops; plane++) {
                float *out = task->out + plane / channels * conv->out_stride[0] +
                             plane % channels * conv->out_stride[1];
                for (at[0] = 0; at[0] < conv->out_size[0]; at[0]++) {
                        for (at[1] = 0; at[1] < conv->out_size[1]; at[1]++) {
                                for (at[2] = 0; at[2] < conv->out_size[2] && !work.stops; at[2]++)
                                        out[at[0] * conv->out_stride[2] + at[1] * conv->out_stride[3] +
                                            at[2] * conv->out_stride[4]] =
                                                pixel(task, &work, plane / channels, plane % channels, at);
                        }
                }
        }
}

Status conv_run_transposed_half(const RunContext *ctx, const ConvHalf *task)
{
        HalfRun run = { ctx, task };
        const Conv *conv = task->conv;
        TRY(parallel_for(ctx, conv->n * conv->groups * conv->group_out, 1, half_planes, &run));
        return run_poll(ctx);
}
