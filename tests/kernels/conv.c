// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/conv/conv.h"
#include "core/tensor/half.h"
#include "tests/kernels/sample.h"

static int64_t volume(const int64_t *size)
{
        return size[0] * size[1] * size[2];
}

// Input position of output position `o` through tap `k`, or -1; written independently of the
// kernel.
static int64_t source(const Conv *conv, int axis, int64_t o, int64_t k)
{
        for (int64_t i = 0; i < conv->in_size[axis]; i++) {
                int64_t from = conv->transposed ? i : o, to = conv->transposed ? o : i;
                if (to == from * conv->stride[axis] - conv->pad[axis] + k * conv->dilation[axis])
                        return i;
        }
        return -1;
}

typedef struct Arrays {
        const void *input, *weight, *bias; // bias NULL: none
} Arrays;

static double reference(const Conv *conv, const Arrays *arrays, int64_t n, int64_t channel, const int64_t *at)
{
        const void *input = arrays->input, *weight = arrays->weight, *bias = arrays->bias;
        int64_t group = channel / conv->group_out, taps = volume(conv->kernel);
        double sum = bias == NULL ? 0 : compute_as_f64(conv->dtype, bias, channel);
        for (int64_t c = 0; c < conv->group_in; c++) {
                for (int64_t tap = 0; tap < taps; tap++) {
                        int64_t z = source(conv, 0, at[0], tap / conv->kernel[2] / conv->kernel[1]),
                                y = source(conv, 1, at[1], tap / conv->kernel[2] % conv->kernel[1]),
                                x = source(conv, 2, at[2], tap % conv->kernel[2]);
                        if (z < 0 || y < 0 || x < 0)
                                continue;
                        int64_t from =
                                n * conv->in_stride[0] + (group * conv->group_in + c) * conv->in_stride[1] +
                                z * conv->in_stride[2] + y * conv->in_stride[3] + x * conv->in_stride[4];
                        int64_t pair = !conv->transposed ? channel * conv->group_in + c
                                                         : (group * conv->group_in + c) * conv->group_out +
                                                                   channel % conv->group_out;
                        sum += compute_as_f64(conv->dtype, weight, pair * taps + tap) *
                               compute_as_f64(conv->dtype, input, from);
                }
        }
        return sum;
}

// Strides of [n, channels, size...]: NCDHW or NDHWC.
static int64_t lay_out(int64_t *stride, int64_t n, int64_t channels, const int64_t *size, bool channels_last)
{
        stride[4] = channels_last ? channels : 1;
        stride[3] = stride[4] * size[2];
        stride[2] = stride[3] * size[1];
        stride[1] = channels_last ? 1 : stride[2] * size[0];
        stride[0] = channels * volume(size);
        return n * stride[0];
}

static void check_conv(Sample *sample, Dtype dtype, bool transposed, bool depthwise)
{
        Conv conv = { .dtype = dtype,
                      .transposed = transposed,
                      .n = sample_int(sample, 1, 2),
                      .groups = depthwise ? sample_int(sample, 2, 5) : sample_int(sample, 1, 2),
                      .group_in = depthwise ? 1 : sample_int(sample, 1, 20),
                      .group_out = depthwise ? sample_int(sample, 1, 2) : sample_int(sample, 1, 20) };
        bool covers = sample_int(sample, 0, 5) == 0;
        int64_t wide_axis = transposed ? sample_int(sample, 0, 9) : -1; // of a large stride
        for (int d = 0; d < 3; d++) {
                bool flat = d == 0 && sample_int(sample, 0, 2) != 0;
                conv.in_size[d] = flat ? 1 : sample_int(sample, transposed ? 1 : 3, transposed ? 5 : 9);
                conv.kernel[d] = flat ? 1 : sample_int(sample, 1, transposed ? 5 : 3);
                bool wide = wide_axis == d;
                conv.stride[d] = flat ? 1 : sample_int(sample, wide ? 9 : 1, wide ? 11 : 3);
                conv.dilation[d] = flat ? 1 : sample_int(sample, 1, 2);
                conv.pad[d] = flat ? 0 : sample_int(sample, 0, 2);
                if (covers && !transposed) {
                        conv.kernel[d] = conv.in_size[d];
                        conv.dilation[d] = 1;
                        conv.pad[d] = 0;
                }
                int64_t reach = (conv.kernel[d] - 1) * conv.dilation[d];
                conv.out_size[d] =
                        transposed ? (conv.in_size[d] - 1) * conv.stride[d] + reach + 1 - 2 * conv.pad[d]
                                   : (conv.in_size[d] + 2 * conv.pad[d] - reach - 1) / conv.stride[d] + 1;
                if (conv.out_size[d] < 1 || conv.in_size[d] + 2 * conv.pad[d] <= reach)
                        return;
        }
        int64_t out_channels = conv.groups * conv.group_out,
                n_weight = out_channels * conv.group_in * volume(conv.kernel);
        int64_t n_in = lay_out(conv.in_stride, conv.n, conv.groups * conv.group_in, conv.in_size,
                               sample_int(sample, 0, 1) != 0);
        int64_t n_out =
                lay_out(conv.out_stride, conv.n, out_channels, conv.out_size, sample_int(sample, 0, 1) != 0);
        size_t bytes = dtype_info[dtype].bytes;
        void *input = guarded_new((size_t)n_in * bytes), *weight = guarded_new((size_t)n_weight * bytes),
             *bias = guarded_new((size_t)out_channels * bytes), *out = guarded_new((size_t)n_out * bytes);
        sample_fill(sample, dtype, input, n_in);
        sample_fill(sample, dtype, weight, n_weight);
        sample_fill(sample, dtype, bias, out_channels);
        const void *given_bias = sample_int(sample, 0, 1) == 0 ? NULL : bias;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(conv_run(&ctx, &conv, input, weight, given_bias, out), STATUS_OK);
        for (int64_t i = 0; i < conv.n * out_channels * volume(conv.out_size); i++) {
                int64_t pixel = i % volume(conv.out_size), channel = i / volume(conv.out_size) % out_channels,
                        n = i / volume(conv.out_size) / out_channels;
                int64_t at[] = { pixel / conv.out_size[2] / conv.out_size[1],
                                 pixel / conv.out_size[2] % conv.out_size[1], pixel % conv.out_size[2] };
                double want = reference(&conv, &(Arrays){ input, weight, given_bias }, n, channel, at);
                double got = compute_as_f64(dtype, out,
                                            n * conv.out_stride[0] + channel * conv.out_stride[1] +
                                                    at[0] * conv.out_stride[2] + at[1] * conv.out_stride[3] +
                                                    at[2] * conv.out_stride[4]);
                cr_assert(close_enough_sum(dtype, got, want, conv.group_in * volume(conv.kernel)),
                          "pixel (%ld, %ld, %ld) of channel %ld: %.9g instead of %.9g", (long)at[0],
                          (long)at[1], (long)at[2], (long)channel, got, want);
        }
        guarded_check(input, (size_t)n_in * bytes);
        guarded_check(weight, (size_t)n_weight * bytes);
        guarded_check(bias, (size_t)out_channels * bytes);
        guarded_check(out, (size_t)n_out * bytes);
}

Test(conv, agrees_with_a_naive_sum_on_random_shapes_and_layouts)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_I64 };
        Sample sample = { 11 };
        for (int round = 0; round < 90; round++)
                check_conv(&sample, dtypes[round % 3], false, false);
}

Test(conv, agrees_with_a_naive_sum_when_transposed)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_I64 };
        Sample sample = { 12 };
        for (int round = 0; round < 60; round++)
                check_conv(&sample, dtypes[round % 3], true, round % 4 == 0);
}

// What each input adds to each result, in float64.
static void add_inputs(const Conv *conv, const float *input, const float *weight, double *out)
{
        int64_t taps = conv->kernel[1] * conv->kernel[2], pixels = conv->in_size[1] * conv->in_size[2];
        for (int64_t i = 0; i < conv->group_in * pixels * taps * conv->group_out; i++) {
                int64_t tap = i % taps, channel = i / taps % conv->group_out,
                        pixel = i / taps / conv->group_out % pixels, c = i / taps / conv->group_out / pixels;
                int64_t y = pixel / conv->in_size[2], x = pixel % conv->in_size[2];
                int64_t to_y = y * conv->stride[1] + tap / conv->kernel[2] * conv->dilation[1] - conv->pad[1],
                        to_x = x * conv->stride[2] + tap % conv->kernel[2] * conv->dilation[2] - conv->pad[2];
                if (to_y < 0 || to_y >= conv->out_size[1] || to_x < 0 || to_x >= conv->out_size[2])
                        continue;
                out[(channel * conv->out_size[1] + to_y) * conv->out_size[2] + to_x] +=
                        (double)input[c * conv->in_stride[1] + y * conv->in_stride[3] +
                                      x * conv->in_stride[4]] *
                        (double)weight[(c * conv->group_out + channel) * taps + tap];
        }
}

// Fills in the size of results and the strides of one image.
static void settle_transposed(Conv *conv, bool channels_last, int64_t *out_n_in, int64_t *out_n_out)
{
        for (int d = 0; d < 3; d++)
                conv->out_size[d] = (conv->in_size[d] - 1) * conv->stride[d] - 2 * conv->pad[d] +
                                    (conv->kernel[d] - 1) * conv->dilation[d] + 1;
        *out_n_in = lay_out(conv->in_stride, 1, conv->group_in, conv->in_size, channels_last);
        *out_n_out = lay_out(conv->out_stride, 1, conv->group_out, conv->out_size, false);
}

static void check_pieces(Sample *sample, Conv *conv, int64_t gap)
{
        int64_t n_weight = conv->group_in * conv->group_out * conv->kernel[1] * conv->kernel[2], n_in, n_out;
        settle_transposed(conv, gap == 0, &n_in, &n_out);
        if (gap > 0) { // rows that are not evenly spaced
                conv->in_stride[3] += gap;
                conv->in_stride[2] = conv->in_stride[1] = conv->in_stride[3] * conv->in_size[1];
                n_in = conv->in_stride[1] * conv->group_in;
        }
        float *input = guarded_new((size_t)n_in * sizeof(float)),
              *weight = guarded_new((size_t)n_weight * sizeof(float)),
              *out = guarded_new((size_t)n_out * sizeof(float));
        _cleanup_(freep) double *want = calloc((size_t)n_out, sizeof(double));
        sample_fill(sample, DTYPE_F32, input, n_in);
        sample_fill(sample, DTYPE_F32, weight, n_weight);
        memset(out, 0xff, (size_t)n_out * sizeof(float));
        cr_assert_eq(conv_run(NULL, conv, input, weight, NULL, out), STATUS_OK);
        add_inputs(conv, input, weight, want);
        for (int64_t i = 0; i < n_out; i++)
                cr_assert(close_enough_sum(DTYPE_F32, (double)out[i], want[i], 500),
                          "result %ld: %.9g instead of %.9g", (long)i, (double)out[i], want[i]);
        guarded_check(input, (size_t)n_in * sizeof(float));
        guarded_check(weight, (size_t)n_weight * sizeof(float));
        guarded_check(out, (size_t)n_out * sizeof(float));
}

#define PIECES(...)                                                                                          \
        {                                                                                                    \
                .dtype = DTYPE_F32, .transposed = true, .n = 1, .groups = 1, __VA_ARGS__                     \
        }
Test(conv, transposed_products_of_many_numbers_are_made_in_pieces)
{
        Conv cases[] = {
                // channels; channels and rows; rows of one channel; parts of a row
                PIECES(.group_in = 6, .group_out = 70, .in_size = { 1, 30, 31 }, .kernel = { 1, 3, 3 },
                       .stride = { 1, 2, 2 }, .pad = { 0, 1, 1 }, .dilation = { 1, 1, 1 }),
                PIECES(.group_in = 5, .group_out = 2, .in_size = { 1, 300, 100 }, .kernel = { 1, 4, 5 },
                       .stride = { 1, 2, 1 }, .pad = { 0, 0, 2 }, .dilation = { 1, 1, 2 }),
                PIECES(.group_in = 5, .group_out = 2, .in_size = { 1, 20, 21 }, .kernel = { 1, 40, 40 },
                       .stride = { 1, 20, 9 }, .pad = { 0, 10, 3 }, .dilation = { 1, 1, 1 }),
                // phases that are not kept, most without a tap
                PIECES(.group_in = 2, .group_out = 2, .in_size = { 1, 2, 3 }, .kernel = { 1, 2, 3 },
                       .stride = { 1, 1, 5000 }, .pad = { 0, 0, 1 }, .dilation = { 1, 1, 2 }),
                PIECES(.group_in = 5, .group_out = 1, .in_size = { 1, 2, 3 }, .kernel = { 1, 3, 2 },
                       .stride = { 1, 5000, 2 }, .pad = { 0, 1, 0 }, .dilation = { 1, 1, 1 }),
                PIECES(.group_in = 5, .group_out = 3, .in_size = { 1, 1, 40000 }, .kernel = { 1, 1, 16 },
                       .stride = { 1, 1, 8 }, .pad = { 0, 0, 4 }, .dilation = { 1, 1, 1 }),
        };
        Sample sample = { 14 };
        for (size_t i = 0; i < 2 * ARRAY_LENGTH(cases); i++)
                check_pieces(&sample, &cases[i / 2], i % 2 == 0 ? 0 : 7);
}

// A result of a transposed convolution of rows in bfloat16: taps in order, each step rounded.
static float rounded_result(const Conv *conv, const float *input, const float *weight, const int64_t *at)
{
        int64_t taps = volume(conv->kernel);
        float sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
                int64_t y = at[0] + conv->pad[1] - tap / conv->kernel[2] * conv->dilation[1],
                        x = at[1] + conv->pad[2] - tap % conv->kernel[2] * conv->dilation[2];
                if (y < 0 || x < 0 || y % conv->stride[1] != 0 || x % conv->stride[2] != 0 ||
                    y / conv->stride[1] >= conv->in_size[1] || x / conv->stride[2] >= conv->in_size[2])
                        continue;
                int64_t from = y / conv->stride[1] * conv->in_stride[3] + x / conv->stride[2];
                float part = 0; // exact, of small integers
                for (int64_t c = 0; c < conv->group_in; c++)
                        part += weight[c * taps + tap] * input[c * conv->in_stride[1] + from];
                sum = rounded_to_half(sum + rounded_to_half(part, DTYPE_BF16), DTYPE_BF16);
        }
        return sum;
}

Test(conv, transposed_halves_are_rounded_at_each_tap_in_order)
{
        Conv cases[] = {
                // in one piece, in pieces of rows, in parts of a row
                PIECES(.group_in = 2, .group_out = 1, .in_size = { 1, 9, 11 }, .kernel = { 1, 3, 4 },
                       .stride = { 1, 1, 2 }, .pad = { 0, 1, 2 }, .dilation = { 1, 2, 1 }),
                PIECES(.group_in = 20, .group_out = 1, .in_size = { 1, 90, 400 }, .kernel = { 1, 4, 5 },
                       .stride = { 1, 1, 2 }, .pad = { 0, 2, 0 }, .dilation = { 1, 1, 1 }),
                PIECES(.group_in = 1, .group_out = 1, .in_size = { 1, 2, 40000 }, .kernel = { 1, 2, 16 },
                       .stride = { 1, 1, 2 }, .pad = { 0, 0, 3 }, .dilation = { 1, 1, 1 }),
        };
        Sample sample = { 15 };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Conv *conv = &cases[i];
                conv->rounds_to = DTYPE_BF16;
                int64_t n_in, n_out;
                settle_transposed(conv, false, &n_in, &n_out);
                _cleanup_(freep) float *input = calloc((size_t)n_in, sizeof(float)),
                                       *weight = calloc((size_t)(conv->group_in * volume(conv->kernel)),
                                                        sizeof(float)),
                                       *out = calloc((size_t)n_out, sizeof(float));
                const float bias = 3;
                for (int64_t j = 0; j < n_in; j++)
                        input[j] = (float)sample_int(&sample, -9, 9);
                for (int64_t j = 0; j < conv->group_in * volume(conv->kernel); j++)
                        weight[j] = (float)sample_int(&sample, -9, 9);
                cr_assert_eq(conv_run(NULL, conv, input, weight, &bias, out), STATUS_OK);
                for (int64_t j = 0; j < n_out; j++) {
                        int64_t at[] = { j / conv->out_size[2], j % conv->out_size[2] };
                        float want =
                                rounded_to_half(rounded_result(conv, input, weight, at) + bias, DTYPE_BF16);
                        cr_assert_eq(out[j], want, "result %ld of case %zu: %g instead of %g", (long)j, i,
                                     (double)out[j], (double)want);
                }
        }
}

Test(conv, agrees_with_a_naive_sum_when_depthwise)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64 };
        Sample sample = { 13 };
        for (int round = 0; round < 60; round++)
                check_conv(&sample, dtypes[round % 2], false, true);
}

// Wide rows go through more than one segment of a depthwise row and more than one block of columns
// of a product.
Test(conv, covers_rows_wider_than_one_block)
{
        for (int64_t groups = 1; groups <= 2; groups++) {
                enum { WIDTH = 2500 };
                Conv conv = { .dtype = DTYPE_F32,
                              .n = 1,
                              .groups = groups,
                              .group_in = 1,
                              .group_out = 1,
                              .in_size = { 1, 1, WIDTH },
                              .out_size = { 1, 1, WIDTH },
                              .kernel = { 1, 1, 3 },
                              .stride = { 1, 1, 1 },
                              .pad = { 0, 0, 1 },
                              .dilation = { 1, 1, 1 } };
                lay_out(conv.in_stride, 1, groups, conv.in_size, false);
                lay_out(conv.out_stride, 1, groups, conv.out_size, false);
                _cleanup_(freep) float *in = malloc(2 * WIDTH * 4), *out = malloc(2 * WIDTH * 4);
                float weight[] = { 1, 10, 100, 1, 10, 100 };
                for (int i = 0; i < 2 * WIDTH; i++)
                        in[i] = (float)(i % 7);
                cr_assert_eq(conv_run(NULL, &conv, in, weight, NULL, out), STATUS_OK);
                for (int i = 0; i < WIDTH; i++) {
                        float want =
                                (i > 0 ? in[i - 1] : 0) + 10 * in[i] + (i + 1 < WIDTH ? 100 * in[i + 1] : 0);
                        cr_assert_float_eq(out[i], want, 0, "column %d", i);
                }
        }
}
