// SPDX-License-Identifier: Apache-2.0
// conv_half.c: transposed convolution of half types in PyTorch's order: products per tap rounded,
// taps added one after another with rounding, then the bias. Where sums nearly cancel, a float32
// sum would differ from PyTorch by more than the tolerance.
#include "core/kernels/conv/conv_transposed.h"
#include "core/tensor/half.h"

typedef struct HalfRun {
        const RunContext *ctx;
        const ConvHalf *task;
} HalfRun;

enum { TAP_STEPS = 16 };

static PhaseAxis phase_of(const Conv *conv, int axis, int64_t o)
{
        const PhasedAxis of = { conv->stride[axis], conv->dilation[axis], conv->pad[axis], conv->kernel[axis],
                                conv->out_size[axis] };
        return phase_axis(&of, o % conv->stride[axis]);
}

// Input position that reaches output position `o` through tap q of its phase; -1: none.
static int64_t source(const Conv *conv, int axis, const PhaseAxis *phase, int64_t o, int64_t q)
{
        int64_t at = o / conv->stride[axis] + (phase->n - 1 - q) * phase->dilation - phase->pad;
        return at < conv->in_size[axis] ? MAX(at, (int64_t)-1) : -1;
}

// One tap of the kernel for one input pixel: its sum over channels, rounded.
static float tap_sum(const ConvHalf *task, Work *work, const float *weight, const float *from)
{
        const Conv *conv = task->conv;
        int64_t taps = conv->kernel[0] * conv->kernel[1] * conv->kernel[2];
        float part = 0;
        for (int64_t c = 0; c < conv->group_in && !work_stops(work, 2); c++)
                part += weight[c * taps] * from[c * conv->in_stride[1]];
        return rounded_to_half(part, task->half);
}

// A row of results, by phases of the last axis.
typedef struct HalfRow {
        int64_t channel, at[2];
        PhaseAxis z, y;
        const float *input, *weight; // of the image and group, of the channel
} HalfRow;

static float pixel(const ConvHalf *task, Work *work, const HalfRow *row, const PhaseAxis *x, int64_t o)
{
        const Conv *conv = task->conv;
        float sum = 0;
        for (int64_t p = 0; p < row->z.n && !work_stops(work, 1); p++) {
                int64_t in_z = source(conv, 0, &row->z, row->at[0], p);
                for (int64_t q = 0; q < row->y.n && in_z >= 0 && !work_stops(work, 1); q++) {
                        int64_t in_y = source(conv, 1, &row->y, row->at[1], q);
                        for (int64_t r = 0; r < x->n && in_y >= 0 && !work_stops(work, TAP_STEPS); r++) {
                                int64_t in_x = source(conv, 2, x, o, r);
                                int64_t tap = ((row->z.first + p * row->z.step) * conv->kernel[1] +
                                               row->y.first + q * row->y.step) *
                                                      conv->kernel[2] +
                                              x->first + r * x->step;
                                if (in_x < 0)
                                        continue;
                                const float *from = row->input + in_z * conv->in_stride[2] +
                                                    in_y * conv->in_stride[3] + in_x * conv->in_stride[4];
                                sum = rounded_to_half(sum + tap_sum(task, work, row->weight + tap, from),
                                                      task->half);
                        }
                }
        }
        return task->bias == NULL ? sum : rounded_to_half(sum + task->bias[row->channel], task->half);
}

static void half_row(const ConvHalf *task, Work *work, const HalfRow *row, float *out)
{
        const Conv *conv = task->conv;
        for (int64_t rest = 0; rest < MIN(conv->stride[2], conv->out_size[2]); rest++) {
                PhaseAxis x = phase_of(conv, 2, rest);
                if (work_stops(work, TAP_STEPS + conv->kernel[2]))
                        return;
                for (int64_t o = rest; o < conv->out_size[2] && !work_stops(work, 4); o += conv->stride[2])
                        out[o * conv->out_stride[4]] = pixel(task, work, row, &x, o);
        }
}

static void half_planes(void *argument, int64_t begin, int64_t end)
{
        const HalfRun *run = argument;
        const ConvHalf *task = run->task;
        const Conv *conv = task->conv;
        int64_t channels = conv->groups * conv->group_out,
                taps = conv->kernel[0] * conv->kernel[1] * conv->kernel[2];
        Work work = { .ctx = run->ctx };
        for (int64_t plane = begin; plane < end && !work.stops; plane++) {
                int64_t image = plane / channels, channel = plane % channels,
                        group = channel / conv->group_out;
                HalfRow row = { .channel = channel,
                                .input = task->input + image * conv->in_stride[0] +
                                         group * conv->group_in * conv->in_stride[1],
                                .weight = task->weight + channel * conv->group_in * taps };
                for (int64_t r = 0; r < conv->out_size[0] * conv->out_size[1] &&
                                    !work_stops(&work, conv->kernel[0] + conv->kernel[1]);
                     r++) {
                        row.at[0] = r / conv->out_size[1];
                        row.at[1] = r % conv->out_size[1];
                        row.z = phase_of(conv, 0, row.at[0]);
                        row.y = phase_of(conv, 1, row.at[1]);
                        half_row(task, &work, &row,
                                 task->out + image * conv->out_stride[0] + channel * conv->out_stride[1] +
                                         row.at[0] * conv->out_stride[2] + row.at[1] * conv->out_stride[3]);
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
