// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/kernels/conv/volume.h"
#include "core/kernels/conv/winograd.h"
#include "core/kernels/run_context.h"
#include "tests/kernels/chain.h"
#include "tests/kernels/sample.h"

typedef struct VolumeCase {
        DnnlConv conv;
        bool transposed;
        float *input, *weight, *bias, *out; // bias NULL: none
} VolumeCase;

static float *random_floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

static TensorMeta volume_meta(Sample *sample, const int64_t *size)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 5, size);
        if (sample_int(sample, 0, 1) == 0)
                meta_set_channels_last(&meta);
        return meta;
}

// Axis `i`: all random, the result is as large as it can be.
static void choose_axis(Sample *sample, VolumeCase *made, int i, int64_t *kernel, int64_t *in, int64_t *out)
{
        DnnlConv *conv = &made->conv;
        conv->stride[i] = sample_int(sample, 1, 2);
        conv->dilation[i] = sample_int(sample, 1, 2);
        *kernel = made->transposed ? sample_int(sample, conv->stride[i], 4) : sample_int(sample, 1, 3);
        int64_t reach = (*kernel - 1) * conv->dilation[i];
        conv->padding[i] = sample_int(sample, 0, MIN(reach, (int64_t)2));
        *in = made->transposed ? sample_int(sample, 1, 6) : sample_int(sample, reach + 1, reach + 6);
        *out = (*in + 2 * conv->padding[i] - reach - 1) / conv->stride[i] + 1;
        if (made->transposed) // with up to stride - 1 more: output_padding
                *out = MAX((*in - 1) * conv->stride[i] - 2 * conv->padding[i] + reach +
                                   sample_int(sample, 1, conv->stride[i]),
                           (int64_t)1);
}

static void fill_case(Sample *sample, VolumeCase *made, const int64_t in[5], const int64_t out[5],
                      const int64_t kernel[5])
{
        DnnlConv *conv = &made->conv;
        conv->input = volume_meta(sample, in);
        conv->out = volume_meta(sample, out);
        meta_init(&conv->weight, DTYPE_F32, 5, kernel);
        made->input = random_floats(sample, meta_numel(&conv->input));
        conv->weight_data = made->weight = random_floats(sample, meta_numel(&conv->weight));
        if (sample_int(sample, 0, 1) == 0)
                conv->bias_data = made->bias = random_floats(sample, out[1]);
        made->out = guarded_new((size_t)meta_numel(&conv->out) * sizeof(float));
}

// KIND_GROUPS: of several channels each; KIND_DEPTHWISE: of one.
typedef enum VolumeKind { KIND_PLAIN, KIND_TRANSPOSED, KIND_GROUPS, KIND_DEPTHWISE, N_KINDS } VolumeKind;

static VolumeCase volume_case(Sample *sample, VolumeKind kind)
{
        bool transposed = kind == KIND_TRANSPOSED;
        int64_t groups = kind == KIND_GROUPS      ? sample_int(sample, 2, 5)
                         : kind == KIND_DEPTHWISE ? sample_int(sample, 2, 37)
                                                  : 1;
        VolumeCase made = { .conv = { .groups = groups, .n_threads = (int)sample_int(sample, 1, 2) },
                            .transposed = transposed };
        int64_t n_in = kind == KIND_DEPTHWISE ? 1 : sample_int(sample, 1, 9),
                n_out = kind == KIND_DEPTHWISE ? groups : groups * sample_int(sample, 1, 20),
                in[5] = { sample_int(sample, 1, 2), groups * n_in }, out[5] = { in[0], n_out },
                kernel[5] = { transposed ? n_in : n_out, transposed ? n_out : n_in };
        for (int i = 0; i < 3; i++)
                choose_axis(sample, &made, i, &kernel[2 + i], &in[2 + i], &out[2 + i]);
        fill_case(sample, &made, in, out, kernel);
        return made;
}

static void free_volume(VolumeCase *made)
{
        guarded_check(made->input, (size_t)meta_numel(&made->conv.input) * sizeof(float));
        guarded_check(made->weight, (size_t)meta_numel(&made->conv.weight) * sizeof(float));
        guarded_check(made->out, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        if (made->bias != NULL)
                guarded_check(made->bias, (size_t)made->conv.out.size[1] * sizeof(float));
}

// `at`: image, channel, depth, row, column.
static double wanted(const VolumeCase *made, const int64_t at[5])
{
        const DnnlConv *conv = &made->conv;
        const TensorMeta *in = &conv->input, *weight = &conv->weight;
        double sum = made->bias == NULL ? 0 : (double)made->bias[at[1]];
        int64_t taps = weight->size[2] * weight->size[3] * weight->size[4],
                n_in = made->transposed ? in->size[1] : weight->size[1],
                first = at[1] / (conv->out.size[1] / conv->groups) * n_in;
        for (int64_t t = 0; t < taps * n_in; t++) {
                int64_t tap[3] = { t / weight->size[4] / weight->size[3] % weight->size[2],
                                   t / weight->size[4] % weight->size[3], t % weight->size[4] },
                        from = at[0] * in->stride[0] + (first + t / taps) * in->stride[1];
                int64_t channel = t / taps,
                        row = made->transposed ? channel * conv->out.size[1] + at[1] : at[1] * n_in + channel;
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                        int64_t stride = conv->stride[i], reach = tap[i] * conv->dilation[i],
                                place = made->transposed ? at[2 + i] + conv->padding[i] - reach
                                                         : at[2 + i] * stride - conv->padding[i] + reach;
                        inside &= !made->transposed || place % stride == 0;
                        place = made->transposed ? place / stride : place;
                        inside &= place >= 0 && place < in->size[2 + i];
                        from += place * in->stride[2 + i];
                }
                if (inside)
                        sum += (double)made->weight[row * taps + t % taps] * (double)made->input[from];
        }
        return sum;
}

// Where result `i` in the order of the dimensions stands; `at`: its indices.
static int64_t place_of(const TensorMeta *out, int64_t i, int64_t at[5])
{
        int64_t place = 0;
        for (int d = 4; d >= 0; i /= out->size[d--]) {
                at[d] = i % out->size[d];
                place += at[d] * out->stride[d];
        }
        return place;
}

static void check_results(const VolumeCase *made)
{
        const TensorMeta *out = &made->conv.out;
        for (int64_t i = 0; i < meta_numel(out); i++) {
                int64_t at[5], place = place_of(out, i, at);
                double want = wanted(made, at), got = (double)made->out[place];
                cr_assert(close_enough_sum(DTYPE_F32, got, want,
                                           meta_numel(&made->conv.weight) / out->size[1] + 2),
                          "result %ld: %.9g instead of %.9g", (long)i, got, want);
        }
}

// Whether there is a kernel for it; its results are checked then.
static bool run_case(Sample *sample, VolumeKind kind)
{
        VolumeCase made = volume_case(sample, kind);
        Volume *volume;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made.conv.n_threads;
        cr_assert_eq(volume_new(&made.conv, kind == KIND_TRANSPOSED, &volume), STATUS_OK);
        bool is_made = volume != NULL;
        if (is_made) {
                void *scratch = aligned_alloc(64, volume_scratch(volume) + 64);
                cr_assert_eq(volume_run(volume, &ctx, made.input, made.out, scratch), STATUS_OK);
                check_results(&made);
                free(scratch);
        }
        volume_free(volume);
        free_volume(&made);
        return is_made;
}

Test(volume, planes_of_taps_add_up)
{
        Sample sample = { 91 };
        int n_made[N_KINDS] = { 0 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 500 && direct_isa() != NULL; round++) {
                        VolumeKind kind = (VolumeKind)(round % N_KINDS);
                        n_made[kind] += run_case(&sample, kind);
                }
        }
        for (int kind = 0; kind < N_KINDS && isa_machine() != ISA_PORTABLE; kind++)
                cr_expect(n_made[kind] >= 40, "kind %d: only %d", kind, n_made[kind]);
}

// ---- Winograd's ----
// Volumes that Winograd's kernel takes by the rule.
static VolumeCase winograd_volume(Sample *sample)
{
        VolumeCase made = { .conv = { .groups = 1, .n_threads = (int)sample_int(sample, 1, 3) } };
        DnnlConv *conv = &made.conv;
        int64_t n_in = sample_int(sample, 16, 40), n_out = sample_int(sample, 16, 40),
                in[5] = { sample_int(sample, 1, 2), n_in }, out[5] = { in[0], n_out },
                kernel[5] = { n_out, n_in, sample_int(sample, 1, 4), 3, 3 };
        for (int i = 0; i < 3; i++) {
                conv->stride[i] = conv->dilation[i] = 1;
                conv->padding[i] = sample_int(sample, 0, kernel[2 + i] - 1);
                out[2 + i] = i == 0 ? sample_int(sample, 1, 7) : sample_int(sample, 13, 16);
                in[2 + i] = out[2 + i] - 2 * conv->padding[i] + kernel[2 + i] - 1;
                if (in[2 + i] < 1) {
                        conv->padding[i] = 0;
                        in[2 + i] = out[2 + i] + kernel[2 + i] - 1;
                }
        }
        fill_case(sample, &made, in, out, kernel);
        return made;
}

static void run_winograd(const VolumeCase *made)
{
        Volume *volume;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(volume_new(&made->conv, false, &volume), STATUS_OK);
        cr_assert_not_null(volume);
        cr_assert_eq(strncmp(volume_name(volume), "volume:winograd_4x4:", 20), 0, "%s", volume_name(volume));
        size_t n = volume_scratch(volume);
        void *scratch = guarded_new(n);
        memset(scratch, 0xff, n); // NaN: nothing may be read that was not written
        cr_assert_eq(volume_run(volume, &ctx, made->input, made->out, scratch), STATUS_OK);
        guarded_check(scratch, n);
        volume_free(volume);
}

Test(volume, of_planes_of_three_by_three_taps_are_winograds)
{
        Sample sample = { 93 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 8 && direct_isa() != NULL; round++) {
                        VolumeCase made = winograd_volume(&sample);
                        run_winograd(&made);
                        check_results(&made);
                        free_volume(&made);
                }
        }
}

// Layers whose inputs are uneven, or not finite, are convolved directly; a result that does not see
// what is large keeps its error, one that sees neither infinity nor NaN is finite.
Test(volume, results_beside_large_inputs_are_right)
{
        static const float markers[] = { -9999, 1e6f, INFINITY, NAN };
        Sample sample = { 94 };
        for (int round = 0; round < 12 && direct_isa() != NULL; round++) {
                VolumeCase made = winograd_volume(&sample);
                const TensorMeta *in = &made.conv.input, *out = &made.conv.out;
                const DnnlConv *conv = &made.conv;
                float marker = markers[round % 4];
                int64_t mark[3] = { sample_int(&sample, 0, in->size[2] - 1),
                                    sample_int(&sample, 0, in->size[3] - 1),
                                    sample_int(&sample, 0, in->size[4] - 1) };
                for (int64_t c = 0; c < in->size[1]; c++)
                        made.input[c * in->stride[1] + mark[0] * in->stride[2] + mark[1] * in->stride[3] +
                                   mark[2] * in->stride[4]] = marker;
                run_winograd(&made);
                for (int64_t i = 0; i < meta_numel(out); i++) {
                        int64_t at[5], place = place_of(out, i, at);
                        bool sees = at[0] == 0;
                        for (int d = 0; d < 3; d++) {
                                int64_t tap = mark[d] - at[2 + d] + conv->padding[d];
                                sees &= tap >= 0 && tap < conv->weight.size[2 + d];
                        }
                        double want = wanted(&made, at), got = (double)made.out[place];
                        if (!sees)
                                cr_assert(close_enough_sum(DTYPE_F32, got, want, 576), "%.9g instead of %.9g",
                                          got, want);
                        else if (!isfinite(marker))
                                cr_assert(!isfinite(got));
                }
                free_volume(&made);
        }
}

// A residual and a clamp, on layers of both ways.
Test(volume, winograds_results_are_finished)
{
        Sample sample = { 96 };
        for (int round = 0; round < 8 && direct_isa() != NULL; round++) {
                VolumeCase made = winograd_volume(&sample);
                meta_set_channels_last(&made.conv.input);
                meta_set_channels_last(&made.conv.out);
                int64_t n = meta_numel(&made.conv.out);
                float *residual = random_floats(&sample, n);
                made.input[round] = 1e5f; // layers that read it are convolved directly
                const DirectClamp clamp = { .on = round % 2 == 0, .low = -1, .high = 6 };
                Winograd *winograd;
                RunContext ctx;
                run_context_init(&ctx);
                cr_assert_eq(winograd_new(&made.conv, &clamp, 4, &winograd), STATUS_OK);
                cr_assert_not_null(winograd);
                void *scratch = guarded_new(winograd_scratch(winograd));
                cr_assert_eq(winograd_run(winograd, &ctx, made.input, residual, made.out, scratch),
                             STATUS_OK);
                for (int64_t i = 0; i < n; i++) {
                        const int64_t *size = made.conv.out.size;
                        int64_t pixel = i / size[1], at[5] = { 0, i % size[1], 0, 0, 0 };
                        for (int d = 4; d >= 2; pixel /= size[d--])
                                at[d] = pixel % size[d];
                        at[0] = pixel;
                        double want = wanted(&made, at) + (double)residual[i], got = (double)made.out[i];
                        if (clamp.on)
                                want = fmin(fmax(want, -1), 6);
                        cr_assert(fabs(want) > 1e3 || close_enough_sum(DTYPE_F32, got, want, 576),
                                  "round %d, %ld: %.9g instead of %.9g", round, (long)i, got, want);
                }
                guarded_check(scratch, winograd_scratch(winograd));
                guarded_check(residual, (size_t)n * sizeof(float));
                winograd_free(winograd);
                free_volume(&made);
        }
}

// Neither the number of threads nor other samples change a sample's bits.
Test(volume, winograds_bits_are_the_same_on_threads_and_in_batches)
{
        Sample sample = { 95 };
        VolumeCase made = winograd_volume(&sample);
        while (made.conv.input.size[0] != 2 || made.conv.weight.size[2] != 3) {
                free_volume(&made);
                made = winograd_volume(&sample);
        }
        meta_set_channels_last(&made.conv.input);
        meta_set_channels_last(&made.conv.out);
        made.input[meta_numel(&made.conv.input) - 1] = 1e8f; // the second sample is uneven
        size_t n = (size_t)meta_numel(&made.conv.out) * sizeof(float);
        float *both = malloc(n);
        FOR_EACH_ISA(isa)
        {
                for (made.conv.n_threads = 1; made.conv.n_threads <= 4 && direct_isa() != NULL;
                     made.conv.n_threads++) {
                        made.conv.input.size[0] = made.conv.out.size[0] = 2;
                        memset(made.out, 0xff, n);
                        run_winograd(&made);
                        if (made.conv.n_threads == 1)
                                memcpy(both, made.out, n);
                        cr_assert_eq(memcmp(both, made.out, n), 0, "%d threads", made.conv.n_threads);
                        made.conv.input.size[0] = made.conv.out.size[0] = 1;
                        memset(made.out, 0xff, n);
                        run_winograd(&made);
                        cr_assert_eq(memcmp(both, made.out, n / 2), 0, "alone");
                }
        }
        made.conv.input.size[0] = made.conv.out.size[0] = 2;
        free(both);
        free_volume(&made);
}

Test(volume, refuses_what_it_is_not_made_for)
{
        Sample sample = { 92 };
        VolumeCase made = volume_case(&sample, KIND_TRANSPOSED);
        Volume *volume;
        made.conv.groups = 2;
        cr_assert_eq(volume_new(&made.conv, true, &volume), STATUS_OK);
        cr_assert_null(volume, "groups");
        free_volume(&made);
}
