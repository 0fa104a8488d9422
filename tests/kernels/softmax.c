// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/norm/softmax.h"
#include "tests/kernels/sample.h"

static double at(Dtype dtype, const void *data, int64_t i)
{
        return compute_as_f64(dtype, data, i);
}

static void check_softmax(Sample *sample, Dtype dtype, SoftmaxKind kind)
{
        int64_t outer = sample_int(sample, 1, 4),
                n = sample_int(sample, 1, sample_int(sample, 0, 5) == 0 ? 3000 : 40),
                inner = sample_int(sample, 0, 1) == 0 ? 1 : sample_int(sample, 1, 100);
        int64_t total = outer * n * inner;
        size_t bytes = (size_t)total * dtype_info[dtype].bytes;
        void *in = guarded_new(bytes), *out = guarded_new(bytes);
        double scale = sample_int(sample, 0, 3) == 0 ? 100 : 3;
        for (int64_t i = 0; i < total; i++) {
                double value = sample_int(sample, 0, 30) == 0 ? -INFINITY : scale * sample_double(sample);
                element_from_f64(dtype, (char *)in + i * dtype_info[dtype].bytes, value);
        }
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(softmax_run(&ctx, &(Softmax){ kind, dtype, outer, n, inner }, in, out), STATUS_OK);
        for (int64_t row = 0; row < outer * inner; row++) {
                int64_t base = row / inner * n * inner + row % inner;
                double max = -INFINITY, sum = 0;
                for (int64_t i = 0; i < n; i++)
                        max = MAX(max, at(dtype, in, base + i * inner));
                for (int64_t i = 0; i < n; i++)
                        sum += exp(at(dtype, in, base + i * inner) - max);
                for (int64_t i = 0; i < n; i++) {
                        double x = at(dtype, in, base + i * inner),
                               want = kind == SOFTMAX_LOG ? x - max - log(sum) : exp(x - max) / sum;
                        if (kind == SOFTMAX_SAFE && max == -INFINITY)
                                want = 0;
                        double got = at(dtype, out, base + i * inner);
                        cr_assert(close_enough(dtype, got, want),
                                  "row %ld of %ld, element %ld: %.9g instead of %.9g", (long)row, (long)n,
                                  (long)i, got, want);
                }
        }
        guarded_check(in, bytes);
        guarded_check(out, bytes);
}

Test(softmax, agrees_with_libm_in_double)
{
        FOR_EACH_ISA(isa)
        {
                Sample sample = { 31 };
                for (int round = 0; round < 30; round++) {
                        check_softmax(&sample, DTYPE_F32, SOFTMAX);
                        check_softmax(&sample, DTYPE_F64, SOFTMAX);
                }
        }
}

Test(softmax, logarithms_agree_with_libm_in_double)
{
        FOR_EACH_ISA(isa)
        {
                Sample sample = { 32 };
                for (int round = 0; round < 30; round++) {
                        check_softmax(&sample, DTYPE_F32, SOFTMAX_LOG);
                        check_softmax(&sample, DTYPE_F64, SOFTMAX_LOG);
                }
        }
}

Test(softmax, safe_rows_of_minus_infinity_give_zeros_and_others_nan)
{
        Sample sample = { 33 };
        for (int round = 0; round < 30; round++)
                check_softmax(&sample, DTYPE_F32, SOFTMAX_SAFE);
        float in[] = { -INFINITY, -INFINITY }, out[2];
        cr_assert_eq(softmax_run(NULL, &(Softmax){ SOFTMAX, DTYPE_F32, 1, 2, 1 }, in, out), STATUS_OK);
        cr_assert(isnan(out[0]) && isnan(out[1]));
        cr_assert_eq(softmax_run(NULL, &(Softmax){ SOFTMAX, DTYPE_F32, 1, 1, 2 }, in, out), STATUS_OK);
        cr_assert(isnan(out[0]) && isnan(out[1]));
        cr_assert_eq(softmax_run(NULL, &(Softmax){ SOFTMAX_SAFE, DTYPE_F32, 1, 2, 1 }, in, out), STATUS_OK);
        cr_assert(out[0] == 0 && out[1] == 0);
}

Test(softmax, safe_rows_of_minus_infinity_and_nan_give_nan)
{
        enum { MOST = 40 };
        float in[MOST], out[MOST];
        double in64[MOST], out64[MOST];
        FOR_EACH_ISA(isa) for (int n = 1; n <= MOST; n++)
        {
                for (int i = 0; i < n; i++)
                        in64[i] = in[i] = i == n / 2 ? NAN : -INFINITY;
                cr_assert_eq(softmax_run(NULL, &(Softmax){ SOFTMAX_SAFE, DTYPE_F32, 1, n, 1 }, in, out),
                             STATUS_OK);
                cr_assert_eq(softmax_run(NULL, &(Softmax){ SOFTMAX_SAFE, DTYPE_F64, 1, n, 1 }, in64, out64),
                             STATUS_OK);
                for (int i = 0; i < n; i++)
                        cr_assert(isnan(out[i]) && isnan(out64[i]), "number %d of %d: %g, %g", i, n,
                                  (double)out[i], out64[i]);
                cr_assert(isnan(softmax_exp_row_f32(&(Work){ 0 }, n, in, out)));
        }
}

Test(softmax, exponentials_stay_within_two_ulp_over_their_range)
{
        enum { N = 4096 };
        _cleanup_(freep) float *in = malloc(N * 4), *out = malloc(N * 4);
        FOR_EACH_ISA(isa) for (int part = 0; part < 64; part++)
        {
                in[0] = 0;
                for (int i = 1; i < N; i++)
                        in[i] = -105.0f * (float)(part * N + i) / (float)(64 * N);
                softmax_exp_row_f32(&(Work){ 0 }, N, in, out);
                for (int i = 0; i < N; i++) {
                        double want = exp((double)in[i]), ulp = ldexp(1, MAX(ilogb(want), -126) - 23);
                        cr_assert(fabs((double)out[i] - want) <= 2 * ulp, "exp(%.9g) is %.9g instead of %.9g",
                                  (double)in[i], (double)out[i], want);
                }
        }
}
