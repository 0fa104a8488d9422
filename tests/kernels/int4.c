// SPDX-License-Identifier: Apache-2.0
// int4.c: products with weights of four bits: few rows have the bits that they have among many, and
// both are near sums in double precision.
#include "core/kernels/product/int4.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "tests/kernels/conv_case.h"
#include "tests/kernels/sample.h"

enum { MOST = 7 }; // rows of x, more than INT4_MAX_ROWS

TestSuite(int4, .timeout = 60);

// The level of a row and a column, from the order that int4.h describes.
static int level_of(const Int4Weights *weights, int64_t row, int64_t column)
{
        int64_t begin = row / weights->block * weights->block, within = row - begin;
        int64_t rows = MIN(weights->block, weights->rows - begin);
        bool halves = weights->halves && rows == weights->block;
        int64_t byte = halves ? within % (rows / 2) : within / 2;
        bool high = halves ? within >= rows / 2 : within % 2 == 1;
        uint8_t both = weights->bytes[begin * weights->columns / 2 + column * rows / 2 + byte];
        return high ? both >> 4 : both & 15;
}

static void check_near(const Int4Weights *weights, const float *x, const float *out)
{
        for (int64_t row = 0; row < weights->rows; row++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < weights->columns; k++) {
                        const float *affine =
                                weights->affine + 2 * (k / weights->group * weights->rows + row);
                        int level = level_of(weights, row, k) - 8;
                        double term = (double)x[k] * (level * (double)affine[0] + (double)affine[1]);
                        sum += term;
                        size += fabs(term);
                }
                cr_assert_leq(fabs((double)out[row] - sum), 1e-5 * size + 1e-6, "row %ld", (long)row);
        }
}

static void check_case(Sample *sample)
{
        int64_t rows = 16 * sample_int(sample, 1, 9), columns = 32 * sample_int(sample, 1, 20),
                n_affine = columns / 32 * rows * 2;
        uint8_t *bytes = guarded_new((size_t)(rows * columns / 2));
        sample_fill(sample, DTYPE_I8, bytes, rows * columns / 2);
        float *affine = random_floats(sample, n_affine), *x = random_floats(sample, MOST * columns),
              *many = guarded_new((size_t)(MOST * rows) * sizeof(float));
        Int4Weights weights = { .bytes = bytes,
                                .rows = rows,
                                .columns = columns,
                                .group = 32,
                                .block = 16 << sample_int(sample, 0, 2),
                                .affine = affine };
        weights.halves = weights.block > 16 && sample_int(sample, 0, 1) != 0;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = (int)sample_int(sample, 1, 2);
        cr_assert_eq(int4_product(&ctx, &weights, MOST, x, many), STATUS_OK);
        check_near(&weights, x, many);
        for (int64_t m = 1; m <= INT4_MAX_ROWS; m++) {
                float *few = guarded_new((size_t)(m * rows) * sizeof(float));
                cr_assert_eq(int4_product(&ctx, &weights, m, x + columns, few), STATUS_OK);
                cr_assert_eq(memcmp(few, many + rows, (size_t)(m * rows) * sizeof(float)), 0,
                             "%ld rows of x, %ld x %ld, blocks of %ld", (long)m, (long)rows, (long)columns,
                             (long)weights.block);
                guarded_check(few, (size_t)(m * rows) * sizeof(float));
        }
        guarded_check(bytes, (size_t)(rows * columns / 2));
        guarded_check(affine, (size_t)n_affine * sizeof(float));
        guarded_check(x, (size_t)(MOST * columns) * sizeof(float));
        guarded_check(many, (size_t)(MOST * rows) * sizeof(float));
}

Test(int4, few_rows_have_the_bits_of_many)
{
        FOR_EACH_ISA(isa)
        {
                Sample sample = { .state = 5 };
                for (int i = 0; i < 100; i++)
                        check_case(&sample);
        }
}
