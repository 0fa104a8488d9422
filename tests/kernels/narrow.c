// SPDX-License-Identifier: Apache-2.0
// Products whose constant is stored in fewer bits: every result bit by bit against what the header
// says it is, on each instruction set, whatever the number of rows and threads; and how far it is
// from the exact one.
#include "core/kernels/product/narrow.h"
#include "tests/kernels/product_case.h"

static float a_at(const Case *made, int64_t i, int64_t k)
{
        return made->a[i * made->matmul.a.stride[0] + k];
}

static float b_at(const Case *made, int64_t k, int64_t j)
{
        return made->b[k * made->matmul.b.stride[0] + j * made->matmul.b.stride[1]];
}

static int64_t depth_of(const Case *made)
{
        return made->matmul.a.size[1];
}

static float bf16_rounded(float x)
{
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        memcpy(&x, &bits, sizeof(bits));
        return x;
}

// Rows are rounded to 8 bits instead of 16.
static bool has_dot_products(void)
{
        return isa_level() >= ISA_AVX512_VNNI;
}

static float expected_bf16(const Case *made, int64_t i, int64_t j)
{
        float sum = made->bias == NULL ? 0 : made->bias[j];
        for (int64_t k = 0; k < depth_of(made); k++)
                sum = fmaf(a_at(made, i, k), bf16_rounded(b_at(made, k, j)), sum);
        return finished(made, i, j, sum);
}

// How vdpbf16ps orders its sums is the CPU's affair: the result of float64, and how far the
// instruction may be from it.
static double exact_bf16(const Case *made, int64_t i, int64_t j, double *out_allowed)
{
        double sum = made->bias == NULL ? 0 : (double)made->bias[j], size = fabs(sum);
        for (int64_t k = 0; k < depth_of(made); k++) {
                double term = (double)bf16_rounded(a_at(made, i, k)) * (double)bf16_rounded(b_at(made, k, j));
                sum += term;
                size += fabs(term);
        }
        *out_allowed = size * (double)depth_of(made) * 6e-8 + 1e-30;
        return sum;
}

static void check_dot_bf16(const Case *made)
{
        int64_t step = made->matmul.out.stride[0];
        for (int64_t i = 0; i < made->matmul.out.size[0]; i++)
                for (int64_t j = 0; j < made->matmul.out.size[1]; j++) {
                        double allowed, sum = exact_bf16(made, i, j, &allowed);
                        float got = made->out[i * step + j];
                        float low = finished(made, i, j, (float)(sum - allowed)),
                              high = finished(made, i, j, (float)(sum + allowed));
                        bool fits = isnan(sum) ? isnan(got) : got >= low && got <= high;
                        cr_assert(fits, "element %ld, %ld is %g, expected %g", (long)i, (long)j, (double)got,
                                  sum);
                }
}

static int64_t most_steps(int64_t depth)
{
        return MIN(INT32_MAX / 127 / depth, (int64_t)32767);
}

static float row_peak(const Case *made, int64_t i)
{
        float peak = 0;
        for (int64_t k = 0; k < depth_of(made); k++)
                peak = isfinite(a_at(made, i, k)) ? fmaxf(peak, fabsf(a_at(made, i, k))) : NAN;
        return peak;
}

static float column_peak(const Case *made, int64_t j)
{
        float peak = 0;
        for (int64_t k = 0; k < depth_of(made); k++)
                peak = fmaxf(peak, fabsf(b_at(made, k, j)));
        return peak;
}

static float expected_16_bits(const Case *made, int64_t i, int64_t j)
{
        float most = (float)most_steps(depth_of(made)), row = row_peak(made, i),
              column = column_peak(made, j);
        float column_scale = column / 127, bias = made->bias == NULL ? 0 : made->bias[j];
        int64_t sum = 0;
        for (int64_t k = 0; k < depth_of(made) && row > 0; k++)
                sum += lrintf(a_at(made, i, k) * (most / row)) *
                       lrintf(b_at(made, k, j) * (1 / column_scale));
        cr_assert(sum <= INT32_MAX && sum >= -INT32_MAX);
        return finished(made, i, j, fmaf((float)sum, row / most * column_scale, bias));
}

static void row_range(const Case *made, int64_t i, float *out_low, float *out_high)
{
        *out_low = *out_high = a_at(made, i, 0);
        for (int64_t k = 1; k < depth_of(made); k++) {
                *out_low = fminf(*out_low, a_at(made, i, k));
                *out_high = fmaxf(*out_high, a_at(made, i, k));
        }
}

static float expected_8_bits(const Case *made, int64_t i, int64_t j)
{
        float low, high, column_scale = column_peak(made, j) / 127,
                         bias = made->bias == NULL ? 0 : made->bias[j];
        row_range(made, i, &low, &high);
        float steps = 255 / (high - low);
        int64_t sum = 0, weight = 0;
        for (int64_t k = 0; k < depth_of(made); k++) {
                long number = lrintf(b_at(made, k, j) * (1 / column_scale));
                weight += number;
                sum += lrintf((a_at(made, i, k) - low) * steps) * number;
        }
        cr_assert(sum <= INT32_MAX && sum >= -INT32_MAX);
        return finished(made, i, j,
                        fmaf((float)sum, (high - low) / 255 * column_scale,
                             fmaf(low, (float)weight * column_scale, bias)));
}

static float expected_int8(const Case *made, int64_t i, int64_t j)
{
        return has_dot_products() ? expected_8_bits(made, i, j) : expected_16_bits(made, i, j);
}

static void run_case(Case *made, Precision precision)
{
        NarrowMatmul *narrow;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->matmul.n_threads;
        cr_assert_eq(narrow_matmul_new(&made->matmul, precision, &made->clamp, &narrow), STATUS_OK);
        cr_assert_eq(narrow == NULL, isa_level() == ISA_PORTABLE);
        if (narrow != NULL) {
                narrow_matmul_then(narrow, &made->after);
                size_t n_scratch = narrow_matmul_scratch(narrow);
                void *scratch = guarded_new(n_scratch);
                memset(made->out, 0xff, (size_t)made->out_floats * sizeof(float));
                cr_assert_eq(narrow_matmul_run(narrow, &ctx, made->a, made->residual, made->out, scratch),
                             STATUS_OK);
                if (precision == PRECISION_BF16 && isa_level() == ISA_AVX512_BF16)
                        check_dot_bf16(made);
                else
                        check_result(made, narrow_matmul_name(narrow),
                                     precision == PRECISION_INT8 ? expected_int8 : expected_bf16);
                guarded_check(scratch, n_scratch);
        }
        narrow_matmul_free(narrow);
}

static void run_shapes(Precision precision)
{
        static const int64_t columns[] = { 8, 9, 15, 16, 17, 33, 64, 65, 130, 300 };
        Sample sample = { 41 };
        FOR_EACH_ISA(isa)
        {
                for (int64_t m = 1; m <= 14; m++)
                        for (size_t c = 0; c < ARRAY_LENGTH(columns); c++) {
                                Case made = make_case_then(&sample, m, columns[c],
                                                           sample_int(&sample, 16, 90), c % 2 == 0);
                                run_case(&made, precision);
                                free_case(&made);
                        }
                // several groups of rows
                Case large = make_case_then(&sample, 150, 40, 1500, true);
                run_case(&large, precision);
                free_case(&large);
                // more panels and rows than what follows takes at once
                Case wide = make_case(&sample, 150, 1200, 20, true);
                wide.after.loop = doubled;
                wide.matmul.n_threads = 1;
                run_case(&wide, precision);
                free_case(&wide);
        }
}

Test(narrow, bfloat16_rounds_the_factor_and_rows_where_dot_products_want_that)
{
        run_shapes(PRECISION_BF16);
}

Test(narrow, int8_has_a_scale_for_each_row_and_column_and_exact_sums)
{
        run_shapes(PRECISION_INT8);
}

// Half a step of each weight and of each element of the row, and what float32 rounds.
static double allowed(const Case *made, int64_t i, int64_t j)
{
        float low, high;
        row_range(made, i, &low, &high);
        double row = has_dot_products() ? ((double)high - (double)low) / 255
                                        : (double)row_peak(made, i) / (double)most_steps(depth_of(made)),
               column = (double)column_peak(made, j) / 127, sum = 0;
        for (int64_t k = 0; k < depth_of(made); k++)
                sum += (fabs((double)a_at(made, i, k)) + row) * column / 2 +
                       fabs((double)b_at(made, k, j)) * row / 2;
        return sum * 1.001 + 1e-6;
}

Test(narrow, int8_is_no_further_from_the_exact_product_than_half_a_step_each)
{
        Sample sample = { 42 };
        for (int n = 0; n < 40; n++) {
                Case made = make_case(&sample, 5, 24, sample_int(&sample, 16, 4000), n % 2 == 0);
                Case whole = made;
                made.bias = made.residual = NULL;
                made.clamp.on = false;
                for (int64_t i = 0; i < 5 * 24; i++) {
                        double exact = 0;
                        for (int64_t k = 0; k < depth_of(&made); k++)
                                exact += (double)a_at(&made, i / 24, k) * (double)b_at(&made, k, i % 24);
                        double got = (double)expected_int8(&made, i / 24, i % 24);
                        cr_assert(fabs(got - exact) <= allowed(&made, i / 24, i % 24), "%g instead of %g",
                                  got, exact);
                }
                free_case(&whole);
        }
}

// What a row of zeros, one of tiny numbers, and rows that are not finite give in its place.
Test(narrow, rows_of_odd_values_stay_alone)
{
        Sample sample = { 43 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 6, 20, 133, true), whole = made;
                made.residual = NULL;
                made.clamp.on = false;
                NarrowMatmul *narrow;
                for (int64_t k = 0; k < 133; k++) {
                        made.a[0 * made.matmul.a.stride[0] + k] = 0.0f;
                        made.a[1 * made.matmul.a.stride[0] + k] = 1e-40f;
                }
                made.a[2 * made.matmul.a.stride[0] + 7] = NAN;
                made.a[3 * made.matmul.a.stride[0] + 32] = -INFINITY;
                cr_assert_eq(narrow_matmul_new(&made.matmul, PRECISION_INT8, &made.clamp, &narrow),
                             STATUS_OK);
                size_t n_scratch = narrow == NULL ? 0 : narrow_matmul_scratch(narrow);
                void *scratch = guarded_new(n_scratch);
                if (narrow != NULL)
                        cr_assert_eq(narrow_matmul_run(narrow, NULL, made.a, NULL, made.out, scratch),
                                     STATUS_OK);
                for (int64_t i = 0; i < 6 && narrow != NULL; i++)
                        for (int64_t j = 0; j < 20; j++) {
                                float got = made.out[i * made.matmul.out.stride[0] + j],
                                      bias = made.bias == NULL ? 0 : made.bias[j];
                                if (i < 2)
                                        cr_assert(fabsf(got - bias) <= 1e-37f);
                                else if (i < 4)
                                        cr_assert(isnan(got));
                                else
                                        cr_assert_eq(got, expected_int8(&made, i, j));
                        }
                narrow_matmul_free(narrow);
                guarded_check(scratch, n_scratch);
                free_case(&whole);
        }
}

static void run_whole(const DnnlMatmul *matmul, Precision precision, const Case *made, float *out)
{
        NarrowMatmul *narrow;
        cr_assert_eq(narrow_matmul_new(matmul, precision, &made->clamp, &narrow), STATUS_OK);
        if (narrow == NULL)
                return;
        size_t n_scratch = narrow_matmul_scratch(narrow);
        void *scratch = guarded_new(n_scratch);
        cr_assert_eq(narrow_matmul_run(narrow, NULL, made->a, NULL, out, scratch), STATUS_OK);
        narrow_matmul_free(narrow);
        guarded_check(scratch, n_scratch);
}

// The greatest less the least number may be more than the largest float.
Test(narrow, a_row_of_the_largest_floats_of_both_signs_is_no_further_off_than_any_other)
{
        Sample sample = { 47 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 3, 20, 133, true), whole = made;
                made.matmul.bias_data = made.bias = made.residual = NULL;
                made.clamp.on = false;
                for (int64_t k = 0; k < 133; k++)
                        made.a[made.matmul.a.stride[0] + k] =
                                (k % 2 == 0 ? 3.4e38f : -3.3e38f) / (float)(1 + k % 5);
                for (int64_t n = 0; n < 133 * 20; n++)
                        made.b[n] *= 1e-3f;
                run_whole(&made.matmul, PRECISION_INT8, &made, made.out);
                for (int64_t j = 0; j < 20 && isa_level() != ISA_PORTABLE; j++) {
                        double exact = 0, got = (double)made.out[made.matmul.out.stride[0] + j];
                        for (int64_t k = 0; k < 133; k++)
                                exact += (double)a_at(&made, 1, k) * (double)b_at(&made, k, j);
                        cr_assert(fabs(got - exact) <= allowed(&made, 1, j), "%g instead of %g", got, exact);
                }
                free_case(&whole);
        }
}

Test(narrow, a_number_that_is_not_finite_makes_its_row_NaN_wherever_it_stands)
{
        enum { DEPTH = 150 };
        Sample sample = { 48 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 3, 20, DEPTH, true), whole = made;
                made.residual = NULL;
                made.clamp.on = false;
                for (int64_t k = 0; k < DEPTH && isa_level() != ISA_PORTABLE; k++) {
                        float *at = made.a + made.matmul.a.stride[0] + k, kept = *at;
                        *at = k % 3 == 0 ? NAN : k % 3 == 1 ? INFINITY : -INFINITY;
                        run_whole(&made.matmul, PRECISION_INT8, &made, made.out);
                        *at = kept;
                        for (int64_t j = 0; j < 20; j++) {
                                cr_assert(isnan(made.out[made.matmul.out.stride[0] + j]), "term %ld",
                                          (long)k);
                                cr_assert_eq(made.out[2 * made.matmul.out.stride[0] + j],
                                             expected_int8(&made, 2, j));
                        }
                }
                free_case(&whole);
        }
}

Test(narrow, a_row_has_the_same_bits_alone_and_among_others)
{
        Sample sample = { 46 };
        FOR_EACH_ISA(isa)
        for (int precision = PRECISION_BF16; precision <= PRECISION_INT8; precision++) {
                Case made = make_case(&sample, 23, 70, 133, true), row = made;
                float alone[70];
                run_whole(&made.matmul, (Precision)precision, &made, made.out);
                meta_init(&row.matmul.a, DTYPE_F32, 2, (int64_t[]){ 1, 133 });
                meta_init(&row.matmul.out, DTYPE_F32, 2, (int64_t[]){ 1, 70 });
                for (int64_t i = 0; i < 23 && isa_level() != ISA_PORTABLE; i++) {
                        row.a = made.a + i * made.matmul.a.stride[0];
                        run_whole(&row.matmul, (Precision)precision, &row, alone);
                        cr_assert(memcmp(alone, made.out + i * made.matmul.out.stride[0], sizeof(alone)) == 0,
                                  "row %ld", (long)i);
                }
                free_case(&made);
        }
}

Test(narrow, what_it_is_no_use_for_is_declined)
{
        Sample sample = { 44 };
        NarrowMatmul *narrow = (void *)&sample;
        Case made = make_case(&sample, 3, 16, 32, false);
        cr_assert_eq(narrow_matmul_new(&made.matmul, PRECISION_F32, &made.clamp, &narrow), STATUS_OK);
        cr_assert_null(narrow);
        made.b[5] = INFINITY;
        cr_assert_eq(narrow_matmul_new(&made.matmul, PRECISION_INT8, &made.clamp, &narrow), STATUS_OK);
        cr_assert_null(narrow);
        Case shallow = make_case(&sample, 3, 16, 15, false);
        cr_assert_eq(narrow_matmul_new(&shallow.matmul, PRECISION_BF16, &shallow.clamp, &narrow), STATUS_OK);
        cr_assert_null(narrow);
        // exact sums of so many terms would leave a row too few steps
        Case deep = make_case(&sample, 1, 8, has_dot_products() ? 70000 : 20000, false);
        cr_assert_eq(narrow_matmul_new(&deep.matmul, PRECISION_INT8, &deep.clamp, &narrow), STATUS_OK);
        cr_assert_null(narrow);
        free_case(&made);
        free_case(&shallow);
        free_case(&deep);
}

Test(narrow, a_run_past_its_deadline_stops)
{
        Sample sample = { 45 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 64, 64, 64, true);
                NarrowMatmul *narrow;
                RunContext ctx;
                run_context_init(&ctx);
                ctx.deadline_ns = 1;
                cr_assert_eq(narrow_matmul_new(&made.matmul, PRECISION_INT8, &made.clamp, &narrow),
                             STATUS_OK);
                size_t n_scratch = narrow == NULL ? 0 : narrow_matmul_scratch(narrow);
                void *scratch = guarded_new(n_scratch);
                if (narrow != NULL)
                        cr_assert_eq(
                                narrow_matmul_run(narrow, &ctx, made.a, made.residual, made.out, scratch),
                                STATUS_DEADLINE);
                narrow_matmul_free(narrow);
                guarded_check(scratch, n_scratch);
                free_case(&made);
        }
}
