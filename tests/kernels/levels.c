// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit levels: every result bit by bit against the formula of levels_tile.h, on each
// instruction set, whatever the number of rows and threads; sums that would saturate 16 bits; and
// rounding to levels.
#include "core/kernels/product/levels.h"
#include "tests/kernels/sample.h"

typedef struct Case {
        LevelsProduct product;
        uint8_t *in;
        int8_t *weights;
        float *scales, *bias, *residual;
        void *out;
        size_t in_bytes, out_bytes, residual_bytes;
        float scale;
        int32_t zero;
} Case;

static float *random_floats(Sample *sample, int64_t n, double by)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        for (int64_t i = 0; i < n; i++)
                data[i] = (float)(sample_double(sample) * by);
        return data;
}

static Case make_case(Sample *sample, int64_t m, int64_t n, int64_t k)
{
        bool turned = sample_int(sample, 0, 1) != 0;
        int64_t in_gap = sample_int(sample, 0, 1) * 5, out_gap = sample_int(sample, 0, 1) * 3;
        Case made = { .scale = 0.03f };
        LevelsProduct *product = &made.product;
        *product = (LevelsProduct){ .n_rows = m,
                                    .n_k = k,
                                    .n_columns = n,
                                    .is_signed = sample_int(sample, 0, 1) != 0,
                                    .in_step = k + in_gap,
                                    .out_step = n + out_gap,
                                    .weight_step = { turned ? n : 1, turned ? 1 : k },
                                    .out = { .low = -INFINITY, .high = INFINITY },
                                    .n_threads = (int)sample_int(sample, 1, 2) };
        made.zero =
                (int32_t)(product->is_signed ? sample_int(sample, -128, 127) : sample_int(sample, 0, 255));
        made.in_bytes = (size_t)((m - 1) * product->in_step + k);
        made.in = guarded_new(made.in_bytes);
        made.weights = guarded_new((size_t)(n * k));
        for (size_t i = 0; i < made.in_bytes; i++)
                made.in[i] = (uint8_t)sample_int(sample, 0, 255);
        for (int64_t i = 0; i < n * k; i++)
                made.weights[i] = (int8_t)sample_int(sample, -128, 127);
        product->weights = made.weights;
        product->column_scale = made.scales = random_floats(sample, n, 0.01);
        made.bias = random_floats(sample, n, 1);
        product->bias = sample_int(sample, 0, 1) == 0 ? NULL : made.bias;
        if (sample_int(sample, 0, 1) == 0) {
                product->out.low = -1.5f;
                product->out.high = 2.5f;
        }
        if (sample_int(sample, 0, 1) == 0) {
                product->out.bytes = true;
                product->out.steps = (LevelsSteps){ 20, (float)sample_int(sample, 0, 127), 3, 120 };
        }
        int64_t n_out = (m - 1) * product->out_step + n;
        made.residual = random_floats(sample, n_out, 1);
        made.residual_bytes = (size_t)n_out * sizeof(float);
        made.out_bytes = (size_t)n_out * (product->out.bytes ? 1 : sizeof(float));
        made.out = guarded_new(made.out_bytes);
        return made;
}

static void free_case(Case *made)
{
        guarded_check(made->in, made->in_bytes);
        guarded_check(made->weights, (size_t)(made->product.n_columns * made->product.n_k));
        guarded_check(made->scales, (size_t)made->product.n_columns * sizeof(float));
        guarded_check(made->bias, (size_t)made->product.n_columns * sizeof(float));
        guarded_check(made->residual, made->residual_bytes);
        guarded_check(made->out, made->out_bytes);
}

static int64_t exact_sum(const Case *made, int64_t i, int64_t j)
{
        const LevelsProduct *product = &made->product;
        int64_t sum = 0;
        for (int64_t k = 0; k < product->n_k; k++) {
                uint8_t level = made->in[i * product->in_step + k];
                int64_t value = (product->is_signed ? (int8_t)level : level) - made->zero;
                sum += value * made->weights[k * product->weight_step[0] + j * product->weight_step[1]];
        }
        return sum;
}

static float expected(const Case *made, int64_t i, int64_t j, const float *residual)
{
        const LevelsOut *out = &made->product.out;
        float bias = made->product.bias == NULL ? 0 : made->product.bias[j];
        float x = fmaf((float)exact_sum(made, i, j) * made->scale, made->scales[j], bias);
        if (residual != NULL)
                x += residual[i * made->product.out_step + j];
        x = fminf(fmaxf(x, out->low), out->high);
        return !out->bytes ? x
                           : fminf(fmaxf(rintf(x * out->steps.inverse) + out->steps.zero, out->steps.least),
                                   out->steps.most);
}

static void check_case(const Case *made, const float *residual)
{
        const LevelsProduct *product = &made->product;
        for (int64_t i = 0; i < product->n_rows; i++)
                for (int64_t j = 0; j < product->n_columns; j++) {
                        int64_t at = i * product->out_step + j;
                        float want = expected(made, i, j, residual),
                              got = product->out.bytes ? (float)((uint8_t *)made->out)[at]
                                                       : ((float *)made->out)[at];
                        cr_assert(got == want, "%ld x %ld x %ld, element %ld, %ld is %g, expected %g",
                                  (long)product->n_rows, (long)product->n_columns, (long)product->n_k,
                                  (long)i, (long)j, (double)got, (double)want);
                }
}

static void run_case(Case *made, const float *residual)
{
        LevelsMatmul *matmul;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->product.n_threads;
        cr_assert_eq(levels_matmul_new(&made->product, &matmul), STATUS_OK);
        cr_assert_eq(matmul == NULL, isa_level() == ISA_PORTABLE);
        if (matmul == NULL)
                return;
        size_t n_scratch = levels_matmul_scratch(matmul);
        void *scratch = guarded_new(n_scratch);
        LevelsOperands operands = { made->in, made->scale, made->zero, residual, made->out, scratch };
        cr_assert_eq(levels_matmul_run(matmul, &ctx, &operands), STATUS_OK);
        levels_matmul_free(matmul);
        guarded_check(scratch, n_scratch);
        check_case(made, residual);
}

Test(levels, every_result_is_the_exact_sum_with_its_scales)
{
        static const int64_t columns[] = { 1, 7, 8, 9, 15, 16, 17, 33, 64, 65, 130 };
        Sample sample = { 51 };
        FOR_EACH_ISA(isa)
        {
                for (int64_t m = 1; m <= 14; m++)
                        for (size_t c = 0; c < ARRAY_LENGTH(columns); c++) {
                                Case made = make_case(&sample, m, columns[c], sample_int(&sample, 1, 90));
                                run_case(&made, c % 2 == 0 ? made.residual : NULL);
                                free_case(&made);
                        }
                // several groups of rows
                Case large = make_case(&sample, 150, 40, 1500);
                run_case(&large, NULL);
                free_case(&large);
        }
}

// Two products of 255 and -128 do not fit 16 bits; the sum nearly fills 32.
Test(levels, the_largest_sums_do_not_saturate)
{
        Sample sample = { 52 };
        FOR_EACH_ISA(isa)
        for (int is_signed = 0; is_signed <= 1; is_signed++) {
                Case made = make_case(&sample, 2, 3, LEVELS_MOST_TERMS);
                made.product.is_signed = is_signed != 0;
                made.zero = is_signed != 0 ? -128 : 0;
                memset(made.in, is_signed != 0 ? 127 : 255, made.in_bytes);
                memset(made.weights, -128, (size_t)(3 * LEVELS_MOST_TERMS));
                cr_assert_eq(exact_sum(&made, 0, 0), -(int64_t)255 * 128 * LEVELS_MOST_TERMS);
                run_case(&made, NULL);
                free_case(&made);
        }
}

Test(levels, sums_that_may_not_fit_are_declined)
{
        Sample sample = { 53 };
        Case made = make_case(&sample, 1, 1, LEVELS_MOST_TERMS + 1);
        LevelsMatmul *matmul = (void *)&sample;
        cr_assert_eq(levels_matmul_new(&made.product, &matmul), STATUS_OK);
        cr_assert_null(matmul);
        free_case(&made);
}

Test(levels, a_scale_that_is_no_number_makes_no_number)
{
        Sample sample = { 54 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 5, 20, 30);
                LevelsMatmul *matmul;
                made.product.out.bytes = false;
                guarded_check(made.out, made.out_bytes);
                made.out_bytes = made.residual_bytes;
                made.out = guarded_new(made.out_bytes);
                cr_assert_eq(levels_matmul_new(&made.product, &matmul), STATUS_OK);
                if (matmul != NULL) {
                        size_t n_scratch = levels_matmul_scratch(matmul);
                        void *scratch = guarded_new(n_scratch);
                        LevelsOperands operands = { made.in, NAN, made.zero, NULL, made.out, scratch };
                        cr_assert_eq(levels_matmul_run(matmul, NULL, &operands), STATUS_OK);
                        for (int64_t i = 0; i < 5; i++)
                                for (int64_t j = 0; j < 20; j++)
                                        cr_assert(isnan(((float *)made.out)[i * made.product.out_step + j]));
                        guarded_check(scratch, n_scratch);
                }
                levels_matmul_free(matmul);
                free_case(&made);
        }
}

// As casting to integers does.
Test(levels, zero_points_between_levels_are_cut_off)
{
        static const float from[] = { -3, -1, 0, 1, 7 };
        static const int8_t want[] = { -2, 0, 0, 1, 7 };
        FOR_EACH_ISA(isa)
        {
                int8_t to[ARRAY_LENGTH(from)];
                levels_quantize(from, ARRAY_LENGTH(from), &(LevelsSteps){ 1, 0.7f, -128, 127 },
                                (uint8_t *)to);
                for (size_t i = 0; i < ARRAY_LENGTH(from); i++)
                        cr_assert_eq(to[i], want[i], "%g became %d", (double)from[i], to[i]);
        }
}

// Halves go to the even level; what lies outside is clamped; NaN becomes 0.
Test(levels, floats_become_levels_as_in_pytorch)
{
        static const float from[] = {
                0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN
        };
        static const int8_t want[] = { 3, 5, 5, 3, 1, 100, -100, 100, -100, 0 };
        FOR_EACH_ISA(isa)
        for (int64_t n = 0; n <= (int64_t)ARRAY_LENGTH(from); n++)
                for (int64_t gap = 0; gap < 20; gap++) {
                        float x[40] = { 0 };
                        int8_t *to = guarded_new((size_t)(n + gap));
                        memcpy(x + gap, from, (size_t)n * sizeof(float));
                        levels_quantize(x, n + gap, &(LevelsSteps){ 1, 3, -100, 100 }, (uint8_t *)to);
                        for (int64_t i = 0; i < n + gap; i++)
                                cr_assert_eq(to[i], i < gap ? 3 : want[i - gap], "%g became %d", (double)x[i],
                                             to[i]);
                        guarded_check(to, (size_t)(n + gap));
                }
}
