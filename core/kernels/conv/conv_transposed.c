// SPDX-License-Identifier: Apache-2.0
// conv_transposed.c: transposed convolution in phases. Results whose positions have one remainder
// by the stride read the input through the same taps, at neighbouring positions: each phase is a
// convolution of stride 1 with a part of the weight, reversed. Its results are spread by the
// stride.
#include "core/kernels/conv/conv_transposed.h"
#include <string.h>

typedef struct Phase {
        const RunContext *ctx;
        const Conv *conv; // the transposed one
        PhaseAxis axis[3];
        Conv part; // the phase as a convolution
        size_t bytes;
        const char *weight;
        char *part_weight, *part_out, *out;
} Phase;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
        while (b != 0) {
                int64_t rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

// Result o reads input (o + pad - tap * dilation) / stride through every tap that leaves no rest.
PhaseAxis phase_axis(const PhasedAxis *of, int64_t rest)
{
        int64_t stride = of->stride, dilation = of->dilation, at = rest + of->pad;
        int64_t common = greatest_divisor(stride, dilation);
        PhaseAxis axis = { .first_out = rest,
                           .n_out = (of->out_size - rest + stride - 1) / stride,
                           .step = stride / common,
                           .dilation = dilation / common };
        while (axis.first < of->kernel && (at - axis.first * dilation) % stride != 0)
                axis.first++;
        if (axis.first < of->kernel)
                axis.n = (of->kernel - 1 - axis.first) / axis.step + 1;
        int64_t last = axis.first + (axis.n - 1) * axis.step;
        axis.pad = axis.n == 0 ? 0 : -((at - last * dilation) / stride);
        return axis;
}

// The phase's taps in reverse order: [groups * group_out][group_in][taps].
static void take_weight(const Phase *phase, Work *work)
{
        const Conv *conv = phase->conv;
        const PhaseAxis *z = &phase->axis[0], *y = &phase->axis[1], *x = &phase->axis[2];
        int64_t n_pairs = conv->groups * conv->group_out * conv->group_in, taps = z->n * y->n * x->n;
        int64_t all = conv->kernel[0] * conv->kernel[1] * conv->kernel[2];
        char *to = phase->part_weight;
        for (int64_t pair = 0; pair < n_pairs && taps > 0 && !work_stops(work, taps); pair++) {
                for (int64_t i = z->n; i-- > 0;) {
                        for (int64_t j = y->n; j-- > 0;) {
                                int64_t row = ((z->first + i * z->step) * conv->kernel[1] + y->first +
                                               j * y->step) *
                                              conv->kernel[2];
                                for (int64_t k = x->n; k-- > 0; to += phase->bytes)
                                        memcpy(to,
                                               phase->weight +
                                                       (size_t)(pair * all + row + x->first + k * x->step) *
                                                               phase->bytes,
                                               phase->bytes);
                        }
                }
        }
}

static inline __attribute__((always_inline)) void spread_row(const char *from, char *to, int64_t n,
                                                             int64_t step, const size_t bytes)
{
        for (int64_t x = 0; x < n; x++)
                memcpy(to + (size_t)(x * step) * bytes, from + (size_t)x * bytes, bytes);
}

// The results of channels begin..end - 1, of all samples, to their places.
static void spread(void *argument, int64_t begin, int64_t end)
{
        const Phase *phase = argument;
        const Conv *conv = phase->conv;
        const PhaseAxis *axis = phase->axis;
        int64_t channels = conv->groups * conv->group_out, width = axis[2].n_out,
                step = conv->stride[2] * conv->out_stride[4];
        const char *from =
                phase->part_out + (size_t)(begin * axis[0].n_out * axis[1].n_out * width) * phase->bytes;
        Work work = { .ctx = phase->ctx };
        for (int64_t plane = begin; plane < end; plane++) {
                for (int64_t r = 0; r < axis[0].n_out * axis[1].n_out && !work_stops(&work, width); r++) {
                        int64_t z = axis[0].first_out + r / axis[1].n_out * conv->stride[0],
                                y = axis[1].first_out + r % axis[1].n_out * conv->stride[1];
                        int64_t at = plane / channels * conv->out_stride[0] +
                                     plane % channels * conv->out_stride[1] + z * conv->out_stride[2] +
                                     y * conv->out_stride[3] + axis[2].first_out * conv->out_stride[4];
                        char *to = phase->out + at * (int64_t)phase->bytes;
                        if (phase->bytes == 4)
                                spread_row(from, to, width, step, 4);
                        else
                                spread_row(from, to, width, step, 8);
                        from += (size_t)width * phase->bytes;
                }
        }
}

static void describe(Phase *phase)
{
        const Conv *conv = phase->conv;
        phase->part = *conv;
        phase->part.transposed = false;
        int64_t step = 1;
        for (int d = 2; d >= 0; d--) {
                phase->part.out_size[d] = phase->axis[d].n_out;
                phase->part.kernel[d] = phase->axis[d].n;
                phase->part.stride[d] = 1;
                phase->part.dilation[d] = phase->axis[d].dilation;
                phase->part.pad[d] = phase->axis[d].pad;
                phase->part.out_stride[2 + d] = step;
                step *= phase->axis[d].n_out;
        }
        phase->part.out_stride[1] = step;
        phase->part.out_stride[0] = step * conv->groups * conv->group_out;
}

static Status run_phase(Phase *phase, const void *input, const void *bias)
{
        const Conv *conv = phase->conv;
        int64_t planes = conv->n * conv->groups * conv->group_out;
        Work work = { .ctx = phase->ctx };
        describe(phase);
        take_weight(phase, &work);
        if (work.stops)
                return run_poll(phase->ctx);
        TRY(conv_run(phase->ctx, &phase->part, input, phase->part_weight, bias, phase->part_out));
        int64_t grain = MAX((int64_t)1, 65536 / MAX(phase->part.out_stride[1], (int64_t)1));
        TRY(parallel_for(phase->ctx, planes, grain, spread, phase));
        return run_poll(phase->ctx);
}

bool has_few_phases(const int64_t *stride, int n)
{
        int64_t n_phases = 1;
        for (int d = 0; d < n; d++) {
                n_phases *= MIN(stride[d], (int64_t)MOST_PHASES + 1);
                if (n_phases > MOST_PHASES)
                        return false;
        }
        return true;
}

Status conv_run_phases(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                       const void *bias, void *out)
{
        Phase phase = {
                .ctx = ctx, .conv = conv, .bytes = dtype_info[conv->dtype].bytes, .weight = weight, .out = out
        };
        int64_t n_out = conv->n * conv->groups * conv->group_out,
                n_weight = conv->groups * conv->group_out * conv->group_in;
        int64_t n_phases[3];
        PhasedAxis of[3];
        for (int d = 0; d < 3; d++) {
                of[d] = (PhasedAxis){ conv->stride[d], conv->dilation[d], conv->pad[d], conv->kernel[d],
                                      conv->out_size[d] };
                n_phases[d] = MIN(conv->stride[d], conv->out_size[d]);
                n_out *= (conv->out_size[d] + conv->stride[d] - 1) / conv->stride[d];
                n_weight *= conv->kernel[d];
        }
        _cleanup_(scratch_deinit) Scratch part_weight = { 0 }, part_out = { 0 };
        TRY(scratch_init(&part_weight, ctx, n_weight, phase.bytes));
        TRY(scratch_init(&part_out, ctx, n_out, phase.bytes));
        phase.part_weight = part_weight.data;
        phase.part_out = part_out.data;
        for (int64_t i = 0; i < n_phases[0] * n_phases[1] * n_phases[2]; i++) {
                phase.axis[0] = phase_axis(&of[0], i / n_phases[2] / n_phases[1]);
                phase.axis[1] = phase_axis(&of[1], i / n_phases[2] % n_phases[1]);
                phase.axis[2] = phase_axis(&of[2], i % n_phases[2]);
                TRY(run_phase(&phase, input, bias));
        }
        return STATUS_OK;
}
