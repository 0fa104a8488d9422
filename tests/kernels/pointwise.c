// SPDX-License-Identifier: Apache-2.0
// pointwise.c: the engine below the rows, on random broadcast shapes, layouts and dtypes, against a
// loop over single elements; bytes around and between output elements must survive.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/kernels/pointwise/pointwise.h"
#include "tests/kernels/sample.h"

enum { MARGIN = 64, MAX_ELEMENTS = 1 << 16 };

static Sample random_source = { 1 };
static int64_t random_below(int64_t n)
{
        return sample_int(&random_source, 0, n - 1);
}

// A tensor within a block of bytes; `block` is freed by the caller.
typedef struct Strided {
        TensorMeta meta;
        uint8_t *block;
        size_t n_block;
} Strided;

static void *strided_data(const Strided *strided)
{
        return strided->block + MARGIN;
}

// Dimensions in random order, with gaps when `gaps`; values are whole numbers from -3 to 4, so that
// results fit every dtype.
static Strided make_strided(Dtype dtype, int rank, const int64_t *size, bool gaps)
{
        Strided strided;
        meta_init(&strided.meta, dtype, rank, size);
        int order[MAX_RANK];
        bool shuffle = random_below(2) == 0;
        for (int d = 0; d < rank; d++) {
                int other = shuffle ? (int)random_below(d + 1) : d;
                order[d] = d;
                order[d] = order[other];
                order[other] = d;
        }
        int64_t stride = gaps ? 1 + random_below(2) : 1;
        for (int i = rank - 1; i >= 0; i--) {
                strided.meta.stride[order[i]] = stride;
                stride *= MAX(size[order[i]], 1) + (gaps ? random_below(2) : 0);
        }
        size_t bytes = dtype_info[dtype].bytes;
        strided.n_block = (size_t)stride * bytes + 2 * MARGIN;
        strided.block = malloc(strided.n_block);
        memset(strided.block, 0xa5, strided.n_block);
        for (int64_t i = 0; i < stride; i++)
                element_from_f64(dtype, strided.block + MARGIN + (size_t)i * bytes,
                                 (double)(random_below(8) - (dtype == DTYPE_U8 ? 0 : 3)));
        return strided;
}

static double read_at(const Strided *strided, int rank, const int64_t *index)
{
        int64_t at = 0;
        for (int d = 0; d < strided->meta.rank; d++) {
                int from = d + rank - strided->meta.rank;
                at += (strided->meta.size[d] == 1 ? 0 : index[from]) * strided->meta.stride[d];
        }
        return element_as_f64(strided->meta.dtype,
                              (uint8_t *)strided_data(strided) + at * dtype_info[strided->meta.dtype].bytes);
}

static bool next_index(const TensorMeta *meta, int64_t *index)
{
        for (int d = meta->rank - 1; d >= 0; d--) {
                if (++index[d] < meta->size[d])
                        return true;
                index[d] = 0;
        }
        return false;
}

// What addcmul, where and gt give for one element, computed apart from the rows.
typedef struct Case {
        const PointKernel *kernel;
        double (*expected)(double x, double y, double z);
} Case;
static double expect_addcmul(double x, double y, double z)
{
        return x + 2 * y * z;
}
static double expect_where(double x, double y, double z)
{
        return x != 0 ? y : z;
}
static double expect_gt(double x, double y, double z)
{
        (void)z;
        return x > y;
}
static double expect_abs(double x, double y, double z)
{
        (void)y;
        (void)z;
        return fabs(x);
}
static const Case cases[] = { { &point_addcmul, expect_addcmul },
                              { &point_where, expect_where },
                              { &point_gt, expect_gt },
                              { &point_abs, expect_abs } };

static void check_outside(const Strided *out, const uint8_t *before)
{
        uint8_t *inside = calloc(1, out->n_block);
        int64_t index[MAX_RANK] = { 0 };
        size_t bytes = dtype_info[out->meta.dtype].bytes;
        do {
                int64_t at = 0;
                for (int d = 0; d < out->meta.rank; d++)
                        at += index[d] * out->meta.stride[d];
                memset(inside + MARGIN + (size_t)at * bytes, 1, bytes);
        } while (next_index(&out->meta, index));
        for (size_t i = 0; i < out->n_block; i++)
                cr_assert(inside[i] || out->block[i] == before[i], "byte %zu of %zu was written", i,
                          out->n_block);
        free(inside);
}

static void check_case(const Case *test, Dtype common, const Strided *in, Strided *out, int n_threads)
{
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = n_threads;
        PointParams params = { 0 };
        if (dtype_is_int(common))
                params.of[0].i = 2;
        else
                params.of[0].f = 2;
        PointOperand operands[3];
        for (int k = 0; k < 3; k++)
                operands[k] = (PointOperand){ .data = strided_data(&in[k]), .meta = &in[k].meta };
        uint8_t *before = malloc(out->n_block);
        memcpy(before, out->block, out->n_block);
        cr_assert_eq(pointwise_run(&ctx, &(PointCall){ test->kernel, common, &params, operands },
                                   strided_data(out), &out->meta),
                     STATUS_OK);
        int64_t index[MAX_RANK] = { 0 };
        int rank = out->meta.rank;
        do {
                double want = test->expected(read_at(&in[0], rank, index), read_at(&in[1], rank, index),
                                             read_at(&in[2], rank, index));
                uint8_t rounded[16];
                element_from_f64(out->meta.dtype, rounded, want);
                double got = read_at(out, rank, index);
                cr_assert_eq(got, element_as_f64(out->meta.dtype, rounded),
                             "%s as %s into %s: %g, expected %g", test->kernel->label,
                             dtype_info[common].name, dtype_info[out->meta.dtype].name, got, want);
        } while (next_index(&out->meta, index));
        check_outside(out, before);
        free(before);
}

Test(pointwise, random_layouts_broadcasts_and_dtypes_give_what_single_elements_give)
{
        static const Dtype dtypes[] = { DTYPE_U8,  DTYPE_I8,   DTYPE_I16, DTYPE_I32, DTYPE_I64,
                                        DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_F64 };
        for (int round = 0; round < 1200; round++) {
                const Case *test = &cases[random_below(ARRAY_LENGTH(cases))];
                Dtype common = dtypes[random_below(ARRAY_LENGTH(dtypes))];
                int rank = (int)random_below(5);
                int64_t size[MAX_RANK];
                for (int d = 0; d < rank; d++)
                        size[d] = random_below(12) == 0 ? 300 + random_below(900) : 1 + random_below(6);
                int64_t numel;
                cr_assert_eq(shape_numel(rank, size, &numel), STATUS_OK);
                if (numel > MAX_ELEMENTS)
                        continue;
                Strided in[3];
                for (int k = 0; k < 3; k++) {
                        int lead = rank == 0 ? 0 : (int)random_below(3) % (rank + 1);
                        int64_t own[MAX_RANK];
                        for (int d = lead; d < rank; d++)
                                own[d - lead] = random_below(4) == 0 ? 1 : size[d];
                        bool mask = test->kernel->in[0] == 'm' && k == 0;
                        Dtype dtype = mask                                         ? DTYPE_BOOL
                                      : random_below(3) == 0 && common != DTYPE_U8 ? DTYPE_I8
                                                                                   : common;
                        in[k] = make_strided(dtype, rank - lead, own, random_below(3) == 0);
                }
                Dtype out_dtype = test->kernel->mask_out ? DTYPE_BOOL
                                  : random_below(4) == 0 ? DTYPE_F64
                                                         : common;
                Strided out = make_strided(out_dtype, rank, size, random_below(3) == 0);
                check_case(test, common, in, &out, 1 + (int)random_below(3));
                for (int k = 0; k < 3; k++)
                        free(in[k].block);
                free(out.block);
        }
}

Test(pointwise, conversions_into_small_dtypes_happen_before_the_operation)
{
        double big = 300;
        uint8_t element = 7, out = 9;
        TensorMeta scalar, byte;
        meta_init(&scalar, DTYPE_F64, 0, NULL);
        meta_init(&byte, DTYPE_U8, 0, NULL);
        PointOperand in[] = { { .data = &element, .meta = &byte }, { .data = &big, .meta = &scalar } };
        TensorMeta mask;
        meta_init(&mask, DTYPE_BOOL, 0, NULL);
        cr_assert_eq(pointwise_run(NULL, &(PointCall){ &point_lt, DTYPE_U8, NULL, in }, &out, &mask),
                     STATUS_OK);
        cr_expect_eq(out, 1, "7 < 44");
        element = 100;
        cr_assert_eq(pointwise_run(NULL, &(PointCall){ &point_lt, DTYPE_U8, NULL, in }, &out, &mask),
                     STATUS_OK);
        cr_expect_eq(out, 0, "100 < 44");
}

Test(pointwise, integer_division_by_zero_is_reported_and_does_not_trap)
{
        int64_t x[] = { INT64_MIN, 5, INT64_MIN }, y[] = { -1, 0, 3 }, out[3];
        TensorMeta meta;
        meta_init(&meta, DTYPE_I64, 1, (int64_t[]){ 3 });
        PointOperand in[] = { { .data = x, .meta = &meta }, { .data = y, .meta = &meta } };
        const PointKernel *kernels[] = { &point_div_floor, &point_div_trunc, &point_remainder, &point_fmod };
        for (size_t k = 0; k < ARRAY_LENGTH(kernels); k++) {
                cr_expect_eq(pointwise_run(NULL, &(PointCall){ kernels[k], DTYPE_I64, NULL, in }, out, &meta),
                             STATUS_RUN);
                cr_expect_str_eq(failure_current()->message, "ZeroDivisionError");
                y[1] = 2;
                cr_expect_eq(pointwise_run(NULL, &(PointCall){ kernels[k], DTYPE_I64, NULL, in }, out, &meta),
                             STATUS_OK);
                y[1] = 0;
                cr_expect_eq(out[0], k < 2 ? INT64_MIN : 0);
        }
}

Test(pointwise, an_empty_output_runs_nothing)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 3, 0 });
        PointOperand in = { .data = NULL, .meta = &meta };
        cr_expect_eq(pointwise_run(NULL, &(PointCall){ &point_exp, DTYPE_F32, NULL, &in }, NULL, &meta),
                     STATUS_OK);
}

Test(pointwise, a_cancelled_run_stops_between_pieces)
{
        int64_t n = 100000;
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, &n);
        float *data = calloc((size_t)n, sizeof(float));
        PointOperand in = { .data = data, .meta = &meta };
        RunContext ctx;
        run_context_init(&ctx);
        ctx.cancelled = 1;
        cr_expect_eq(pointwise_run(&ctx, &(PointCall){ &point_cos, DTYPE_F32, NULL, &in }, data, &meta),
                     STATUS_CANCELLED);
        cr_expect_eq(data[n - 1], 0);
        free(data);
}
