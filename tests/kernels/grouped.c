// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/grouped.h"
#include "core/kernels/conv/direct_tile.h"
#include "core/kernels/run_context.h"
#include "tests/kernels/conv_case.h"

static double wanted(const Case *made, int64_t image, int64_t channel, const int64_t at[2])
{
        const DnnlConv *conv = &made->conv;
        const int64_t *kernel = conv->weight.size + 2, *size = conv->input.size, n_in = conv->weight.size[1],
                      first = channel / (conv->weight.size[0] / conv->groups) * n_in;
        double sum = made->bias == NULL ? 0 : (double)made->bias[channel];
        for (int64_t t = 0; t < n_in * kernel[0] * kernel[1]; t++) {
                int64_t c = t / kernel[1] / kernel[0],
                        y = at[0] * conv->stride[0] - conv->padding[0] +
                            t / kernel[1] % kernel[0] * conv->dilation[0],
                        x = at[1] * conv->stride[1] - conv->padding[1] + t % kernel[1] * conv->dilation[1];
                if (y >= 0 && y < size[2] && x >= 0 && x < size[3])
                        sum += (double)made->weight[channel * n_in * kernel[0] * kernel[1] + t] *
                               (double)made
                                       ->input[((image * size[2] + y) * size[3] + x) * size[1] + first + c];
        }
        return sum;
}

// Results of groups that read channel `spoilt` are NaN.
static void check_results(const Case *made, int64_t spoilt)
{
        const DnnlConv *conv = &made->conv;
        const int64_t *size = conv->out.size, group_in = conv->weight.size[1],
                      group_out = conv->weight.size[0] / conv->groups;
        for (int64_t i = 0; i < meta_numel(&conv->out); i++) {
                int64_t channel = i % size[1], pixel = i / size[1],
                        at[2] = { pixel / size[3] % size[2], pixel % size[3] };
                double want = wanted(made, pixel / size[3] / size[2], channel, at);
                if (made->residual != NULL)
                        want += (double)made->residual[i];
                if (made->clamp.on && !isnan(want))
                        want = fmin(fmax(want, (double)made->clamp.low), (double)made->clamp.high);
                double got = (double)made->out[i];
                cr_assert(channel / group_out == spoilt / group_in ? isnan(want) == isnan(got)
                                                                   : !isnan(want) && !isnan(got));
                cr_assert(isnan(want) || close_enough_sum(DTYPE_F32, got, want,
                                                          meta_numel(&conv->weight) / size[1] + 2),
                          "result %ld: %.9g instead of %.9g", (long)i, got, want);
        }
}

static void run_grouped(Case *made)
{
        Grouped *grouped;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(grouped_new(&made->conv, &made->clamp, &grouped), STATUS_OK);
        cr_assert_not_null(grouped);
        void *scratch = aligned_alloc(64, grouped_scratch(grouped) + 64);
        DirectImages images = { made->input, made->residual, made->out, scratch };
        cr_assert_eq(grouped_run(grouped, &ctx, &images), STATUS_OK);
        free(scratch);
        grouped_free(grouped);
}

// Groups of four channels with as many results: the kernel of depthwise convolutions.
static void run_fours(Case *made)
{
        Depthwise *fours;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(depthwise_new(&made->conv, &made->clamp, &fours), STATUS_OK);
        cr_assert_not_null(fours);
        cr_assert_eq(depthwise_run(fours, &ctx, made->input, made->residual, made->out), STATUS_OK);
        depthwise_free(fours);
}

static Case grouped_case(Sample *sample, bool fours)
{
        int64_t groups = fours ? sample_int(sample, 2, 19) : sample_int(sample, 2, 5),
                group_in = fours ? 4 : sample_int(sample, 1, 9);
        Shape shape = { .n = sample_int(sample, 1, 2),
                        .n_in = groups * group_in,
                        .n_out = groups * (fours ? 4 : sample_int(sample, 1, 20)),
                        .height = sample_int(sample, 4, 9),
                        .width = sample_int(sample, 4, 20) };
        for (int i = 0; i < 2; i++) {
                shape.kernel[i] = sample_int(sample, 1, 3);
                shape.stride[i] = sample_int(sample, 1, 2);
                shape.padding[i] = sample_int(sample, 0, shape.kernel[i] - 1);
                shape.dilation[i] = fours && shape.kernel[i] < 3 ? sample_int(sample, 1, 2) : 1;
        }
        Case made = make_case(sample, &shape, true);
        made.conv.groups = groups;
        made.conv.weight.size[1] = group_in;
        made.conv.weight.stride[0] = group_in * shape.kernel[0] * shape.kernel[1];
        return made;
}

static void free_grouped(Case *made)
{
        made->conv.weight.size[1] = made->conv.input.size[1]; // as it was made
        free_case(made);
}

static void try_groups(Sample *sample, bool fours)
{
        void (*run)(Case * made) = fours ? run_fours : run_grouped;
        Case made = grouped_case(sample, fours);
        const int64_t *size = made.conv.input.size;
        run(&made);
        check_results(&made, size[1]);
        int64_t spoilt = sample_int(sample, 0, size[1] - 1);
        for (int64_t pixel = 0; pixel < size[0] * size[2] * size[3]; pixel++)
                made.input[pixel * size[1] + spoilt] = NAN;
        run(&made);
        check_results(&made, spoilt);
        free_grouped(&made);
}

Test(grouped, each_group_reads_its_own_channels)
{
        Sample sample = { 81 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 120 && direct_isa() != NULL; round++)
                        try_groups(&sample, round % 2 == 1);
        }
}

// ---- winograd ----
static Case winograd_case(Sample *sample, int64_t groups, int64_t group_in, int64_t group_out)
{
        Shape shape = { .n = sample_int(sample, 1, 2),
                        .n_in = groups * group_in,
                        .n_out = groups * group_out,
                        .height = sample_int(sample, 4, 15),
                        .width = sample_int(sample, 4, 15),
                        .kernel = { 3, 3 },
                        .stride = { 1, 1 },
                        .padding = { sample_int(sample, 0, 1), sample_int(sample, 0, 2) },
                        .dilation = { 1, 1 } };
        Case made = make_case(sample, &shape, true);
        made.conv.groups = groups;
        made.conv.weight.size[1] = group_in;
        made.conv.weight.stride[0] = group_in * 9;
        return made;
}

// Panels of results begin and end anywhere in groups.
Test(grouped, winograds_tiles_read_the_channels_of_their_group)
{
        Sample sample = { 83 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 24 && direct_isa() != NULL; round++) {
                        Case made = winograd_case(&sample, sample_int(&sample, 2, 6),
                                                  sample_int(&sample, 16, 40), sample_int(&sample, 16, 75));
                        int64_t n = made.conv.input.size[1], spoilt = sample_int(&sample, 0, n - 1);
                        run_winograd(&made, round % 2 == 0 ? 4 : 2);
                        check_results(&made, n);
                        made.input[spoilt] = NAN;
                        run_winograd(&made, round % 2 == 0 ? 4 : 2);
                        for (int64_t i = 0; i < meta_numel(&made.conv.out); i++)
                                cr_assert(!isnan(made.out[i]) ||
                                          i % made.conv.out.size[1] /
                                                          (made.conv.out.size[1] / made.conv.groups) ==
                                                  spoilt / made.conv.weight.size[1]);
                        free_grouped(&made);
                }
        }
}

// All pixels are equally large, but those of one group are not.
Test(grouped, a_large_input_of_a_group_whose_others_are_small_is_found)
{
        Sample sample = { 84 };
        for (int step = 2; step <= 4 && direct_isa() != NULL; step += 2) {
                Case made = winograd_case(&sample, 2, 32, 32);
                const TensorMeta *in = &made.conv.input, *out = &made.conv.out;
                made.clamp.on = false;
                for (int64_t i = 0; i < meta_numel(in); i++)
                        if (i % 64 < 32)
                                made.input[i] *= 1e4f;
                for (int64_t c = 32; c < 64; c++)
                        made.input[c] = 1e4f; // of the first pixel, which one row and column see
                run_winograd(&made, step);
                for (int64_t i = 0; i < meta_numel(out); i++) {
                        int64_t pixel = i / 64,
                                at[2] = { pixel / out->size[3] % out->size[2], pixel % out->size[3] };
                        bool sees = pixel < out->size[2] * out->size[3] && at[0] < 2 + 1 && at[1] < 2 + 1;
                        double want = wanted(&made, pixel / out->size[3] / out->size[2], i % 64, at);
                        if (made.residual != NULL)
                                want += (double)made.residual[i];
                        if (i % 64 >= 32 && !sees)
                                cr_assert(close_enough_sum(DTYPE_F32, (double)made.out[i], want, 288),
                                          "step %d: %.9g instead of %.9g", step, (double)made.out[i], want);
                }
                free_grouped(&made);
        }
}

Test(grouped, winograd_is_chosen_where_few_products_are_of_other_groups)
{
        static const struct {
                int64_t groups, channels, side; // channels in and out of a group
                int narrow, wide;               // steps
        } cases[] = { { 4, 16, 28, 4, 0 }, { 32, 8, 28, 4, 0 },  { 10, 24, 28, 4, 0 }, { 32, 4, 28, 0, 0 },
                      { 3, 32, 28, 4, 4 }, { 20, 16, 14, 0, 0 }, { 20, 32, 14, 4, 4 } };
        FOR_EACH_ISA(isa)
        {
                for (size_t i = 0; i < ARRAY_LENGTH(cases) && direct_isa() != NULL; i++) {
                        int64_t n = cases[i].groups * cases[i].channels,
                                size[] = { 1, n, cases[i].side, cases[i].side };
                        DnnlConv conv = { .input = image_meta(size, true),
                                          .out = image_meta(size, true),
                                          .stride = { 1, 1 },
                                          .padding = { 1, 1 },
                                          .dilation = { 1, 1 },
                                          .groups = cases[i].groups };
                        meta_init(&conv.weight, DTYPE_F32, 4, (int64_t[]){ n, cases[i].channels, 3, 3 });
                        cr_assert_eq(winograd_rule(&conv),
                                     direct_isa()->lanes > 8 ? cases[i].wide : cases[i].narrow, "case %zu",
                                     i);
                }
        }
}

Test(grouped, refuses_what_it_is_not_made_for)
{
        Sample sample = { 82 };
        Case made = grouped_case(&sample, false);
        Grouped *grouped;
        made.conv.groups = 1;
        cr_assert_eq(grouped_new(&made.conv, &made.clamp, &grouped), STATUS_OK);
        cr_assert_null(grouped, "one group");
        made.conv.groups = 2;
        meta_set_contiguous(&made.conv.input);
        cr_assert_eq(grouped_new(&made.conv, &made.clamp, &grouped), STATUS_OK);
        cr_assert_null(grouped, "channels apart");
        free_grouped(&made);
}
