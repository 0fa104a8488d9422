// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/norm/norm.h"
#include "tests/kernels/sample.h"

static void check_rows(Sample *sample, Dtype dtype, bool rms)
{
        int64_t n_rows = sample_int(sample, 1, 5),
                n = sample_int(sample, 1, sample_int(sample, 0, 4) == 0 ? 2000 : 50);
        size_t item = dtype_info[dtype].bytes, bytes = (size_t)(n_rows * n) * item,
               row_bytes = (size_t)n * item, stat_bytes = (size_t)n_rows * item;
        void *in = guarded_new(bytes), *out = guarded_new(bytes), *weight = guarded_new(row_bytes),
             *bias = guarded_new(row_bytes), *mean = guarded_new(stat_bytes), *rstd = guarded_new(stat_bytes);
        sample_fill(sample, dtype, in, n_rows * n);
        sample_fill(sample, dtype, weight, n);
        sample_fill(sample, dtype, bias, n);
        NormRows norm = {
                .dtype = dtype, .n_rows = n_rows, .n = n, .eps = 1e-3, .rms = rms, .mean = mean, .rstd = rstd
        };
        norm.weight = sample_int(sample, 0, 1) == 0 ? NULL : weight;
        norm.bias = sample_int(sample, 0, 1) == 0 ? NULL : bias;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(norm_rows(&ctx, &norm, in, out), STATUS_OK);
        for (int64_t row = 0; row < n_rows; row++) {
                double sum = 0, squares = 0;
                for (int64_t i = 0; i < n; i++)
                        sum += compute_as_f64(dtype, in, row * n + i);
                double m = rms ? 0 : sum / (double)n;
                for (int64_t i = 0; i < n; i++) {
                        double d = compute_as_f64(dtype, in, row * n + i) - m;
                        squares += d * d;
                }
                double r = 1 / sqrt(squares / (double)n + norm.eps);
                cr_assert(close_enough(dtype, compute_as_f64(dtype, mean, row), m));
                cr_assert(close_enough(dtype, compute_as_f64(dtype, rstd, row), r));
                for (int64_t i = 0; i < n; i++) {
                        double want = (compute_as_f64(dtype, in, row * n + i) - m) * r *
                                              (norm.weight == NULL ? 1 : compute_as_f64(dtype, weight, i)) +
                                      (norm.bias == NULL ? 0 : compute_as_f64(dtype, bias, i));
                        cr_assert(close_enough(dtype, compute_as_f64(dtype, out, row * n + i), want));
                }
        }
        guarded_check(in, bytes);
        guarded_check(out, bytes);
        guarded_check(weight, row_bytes);
        guarded_check(bias, row_bytes);
        guarded_check(mean, stat_bytes);
        guarded_check(rstd, stat_bytes);
}

Test(norm, rows_get_mean_zero_and_variance_one_then_weight_and_bias)
{
        Sample sample = { 51 };
        for (int round = 0; round < 80; round++)
                check_rows(&sample, round % 2 == 0 ? DTYPE_F32 : DTYPE_F64, false);
}

Test(norm, rms_rows_keep_their_mean)
{
        Sample sample = { 52 };
        for (int round = 0; round < 40; round++)
                check_rows(&sample, round % 2 == 0 ? DTYPE_F32 : DTYPE_F64, true);
}

Test(norm, a_large_offset_does_not_spoil_the_variance)
{
        enum { N = 1000 };
        float in[N], out[N];
        for (int i = 0; i < N; i++)
                in[i] = 10000.0f + (float)(i % 2);
        NormRows norm = { .dtype = DTYPE_F32, .n_rows = 1, .n = N, .eps = 0 };
        cr_assert_eq(norm_rows(NULL, &norm, in, out), STATUS_OK);
        for (int i = 0; i < N; i++)
                cr_assert_float_eq(out[i], i % 2 == 0 ? -1 : 1, 1e-3);
}

Test(norm, channels_are_scaled_alike_whether_they_stand_last_or_not)
{
        Sample sample = { 53 };
        for (int round = 0; round < 40; round++) {
                int64_t outer = sample_int(&sample, 1, 4), channels = sample_int(&sample, 1, 40),
                        inner = sample_int(&sample, 1, 30), n = outer * channels * inner;
                if (round % 2 == 0)
                        inner = 1;
                n = outer * channels * inner;
                size_t bytes = (size_t)n * 4;
                float *in = guarded_new(bytes), *out = guarded_new(bytes), scale[40], shift[40], mean[40];
                sample_fill(&sample, DTYPE_F32, in, n);
                sample_fill(&sample, DTYPE_F32, scale, channels);
                sample_fill(&sample, DTYPE_F32, shift, channels);
                sample_fill(&sample, DTYPE_F32, mean, channels);
                NormScale by = { .dtype = DTYPE_F32,
                                 .outer = outer,
                                 .channels = channels,
                                 .inner = inner,
                                 .scale = scale,
                                 .shift = shift };
                by.mean = sample_int(&sample, 0, 1) == 0 ? NULL : mean;
                cr_assert_eq(norm_scale_channels(NULL, &by, in, out), STATUS_OK);
                for (int64_t i = 0; i < n; i++) {
                        int64_t c = i / inner % channels;
                        double want =
                                ((double)in[i] - (by.mean == NULL ? 0 : (double)mean[c])) * (double)scale[c] +
                                (double)shift[c];
                        cr_assert(close_enough(DTYPE_F32, (double)out[i], want));
                }
                guarded_check(in, bytes);
                guarded_check(out, bytes);
        }
}

// Mean and variance of each channel; the same bits in both layouts.
static void check_channels(Sample *sample, Dtype dtype)
{
        static const int64_t some[] = { 1, 2, 7, 15, 16, 17, 511, 512, 513, 530, 1100 };
        NormChannels of = { .dtype = dtype,
                            .n_images = sample_int(sample, 1, 3),
                            .n_pixels = some[sample_int(sample, 0, ARRAY_LENGTH(some) - 1)],
                            .n_channels = sample_int(sample, 1, 40) };
        int64_t n = of.n_images * of.n_channels, numel = n * of.n_pixels;
        size_t item = dtype_info[dtype].bytes, bytes = (size_t)numel * item,
               stats = (size_t)n * sizeof(double);
        char *planes = guarded_new(bytes), *last = guarded_new(bytes);
        double *mean[2], *variance[2];
        sample_fill(sample, dtype, planes, numel);
        for (int64_t i = 0; i < numel; i++) {
                int64_t image = i / of.n_pixels / of.n_channels, c = i / of.n_pixels % of.n_channels,
                        at = (image * of.n_pixels + i % of.n_pixels) * of.n_channels + c;
                memcpy(last + (size_t)at * item, planes + (size_t)i * item, item);
        }
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        for (int k = 0; k < 2; k++) {
                of.last = k == 1;
                of.mean = mean[k] = guarded_new(stats);
                of.variance = variance[k] = guarded_new(stats);
                cr_assert_eq(norm_channel_stats(&ctx, &of, of.last ? last : planes), STATUS_OK);
        }
        cr_assert_arr_eq(mean[0], mean[1], stats);
        cr_assert_arr_eq(variance[0], variance[1], stats);
        for (int64_t c = 0; c < n; c++) {
                double sum = 0, squares = 0;
                for (int64_t p = 0; p < of.n_pixels; p++)
                        sum += compute_as_f64(dtype, planes, c * of.n_pixels + p);
                for (int64_t p = 0; p < of.n_pixels; p++) {
                        double apart = compute_as_f64(dtype, planes, c * of.n_pixels + p) -
                                       sum / (double)of.n_pixels;
                        squares += apart * apart;
                }
                cr_assert(close_enough(dtype, mean[0][c], sum / (double)of.n_pixels));
                cr_assert(close_enough(dtype, variance[0][c], squares / (double)of.n_pixels));
        }
        for (int k = 0; k < 2; k++) {
                guarded_check(mean[k], stats);
                guarded_check(variance[k], stats);
        }
        guarded_check(planes, bytes);
        guarded_check(last, bytes);
}

Test(norm, statistics_of_channels_have_the_same_bits_wherever_they_stand)
{
        Sample sample = { 55 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 120; round++)
                        check_channels(&sample, round % 2 == 0 ? DTYPE_F32 : DTYPE_F64);
        }
}
