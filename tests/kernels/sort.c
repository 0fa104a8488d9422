// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/reduce/sort.h"
#include "tests/kernels/sample.h"

static bool less(double a, double b)
{
        return isnan(b) ? !isnan(a) : a < b;
}

// Position in the sorted order: how many elements come before element `i`.
static int64_t rank_of(const float *row, int64_t n, int64_t i, bool descending)
{
        int64_t rank = 0;
        for (int64_t k = 0; k < n; k++) {
                double a = (double)row[k], b = (double)row[i];
                bool comes_first = descending ? less(b, a) : less(a, b);
                bool equal = !less(a, b) && !less(b, a);
                rank += comes_first || (equal && k < i);
        }
        return rank;
}

static void check_sort(Sample *sample, int64_t n, int64_t n_out)
{
        int64_t outer = sample_int(sample, 1, 3), inner = sample_int(sample, 1, 3), total = outer * n * inner;
        size_t in_bytes = (size_t)total * 4, out_items = (size_t)(outer * n_out * inner);
        float *in = guarded_new(in_bytes), *values = guarded_new(out_items * 4);
        int64_t *indices = guarded_new(out_items * 8);
        for (int64_t i = 0; i < total; i++) {
                int64_t pick = sample_int(sample, 0, 20);
                in[i] = pick == 0   ? NAN
                        : pick == 1 ? INFINITY
                        : pick == 2 ? -0.0f
                        : pick == 3 ? 0
                                    : (float)sample_int(sample, -9, 9);
        }
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 3, (int64_t[]){ outer, n, inner });
        RowPlan plan;
        row_plan(&plan, &meta, 2, true);
        SortTask task = { .dtype = DTYPE_F32,
                          .descending = sample_int(sample, 0, 1) != 0,
                          .inner = inner,
                          .n_out = n_out,
                          .values = values,
                          .indices = indices };
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(sort_rows(&ctx, &plan, &task, in), STATUS_OK);
        _cleanup_(freep) float *row = malloc((size_t)n * 4);
        for (int64_t o = 0; o < outer * inner; o++) {
                for (int64_t i = 0; i < n; i++)
                        row[i] = in[(o / inner * n + i) * inner + o % inner];
                for (int64_t i = 0; i < n_out; i++) {
                        int64_t at = (o / inner * n_out + i) * inner + o % inner, index = indices[at];
                        cr_assert(index >= 0 && index < n);
                        cr_assert_eq(rank_of(row, n, index, task.descending), i);
                        cr_assert(memcmp(&values[at], &row[index], 4) == 0);
                }
        }
        guarded_check(in, in_bytes);
        guarded_check(values, out_items * 4);
        guarded_check(indices, out_items * 8);
}

Test(sort, is_stable_and_puts_nan_last_or_first)
{
        Sample sample = { 71 };
        for (int round = 0; round < 60; round++) {
                int64_t n = sample_int(&sample, 1, round % 10 == 0 ? 300 : 40);
                check_sort(&sample, n, n);
        }
}

Test(sort, the_first_few_of_many_are_those_of_the_full_sort)
{
        Sample sample = { 72 };
        for (int round = 0; round < 40; round++) {
                int64_t n = sample_int(&sample, 20, 300);
                check_sort(&sample, n, sample_int(&sample, 1, n / 9 + 1));
        }
}

Test(sort, integers_keep_their_full_range)
{
        int64_t in[] = { 5, INT64_MIN, -1, INT64_MAX, 0 }, values[5], indices[5];
        TensorMeta meta;
        meta_init(&meta, DTYPE_I64, 1, (int64_t[]){ 5 });
        RowPlan plan;
        row_plan(&plan, &meta, 1, true);
        SortTask task = { .dtype = DTYPE_I64, .inner = 1, .n_out = 5, .values = values, .indices = indices };
        cr_assert_eq(sort_rows(NULL, &plan, &task, in), STATUS_OK);
        static const int64_t want[] = { INT64_MIN, -1, 0, 5, INT64_MAX };
        cr_assert(memcmp(values, want, sizeof(want)) == 0);
}

// ---- one long row of a dtype ----
static void fill_row(Sample *sample, Dtype dtype, int64_t n, void *row)
{
        int spread = (int)sample_int(sample, 0, 2); // few different values, many, any bits
        bool nans = sample_int(sample, 0, 2) == 0;
        for (int64_t i = 0; i < n; i++) {
                int64_t whole = spread == 0   ? sample_int(sample, -3, 3)
                                : spread == 1 ? sample_int(sample, -300000, 300000)
                                              : (int64_t)sample_bits(sample);
                double value = (double)whole * 0x1p-40;
                if (nans && sample_int(sample, 0, 9) == 0)
                        value = NAN;
                if (dtype == DTYPE_I64)
                        ((int64_t *)row)[i] = whole;
                else
                        element_from_f64(dtype, (char *)row + i * dtype_info[dtype].bytes, value);
        }
}

static bool comes_before(Dtype dtype, const void *row, int64_t a, int64_t b)
{
        if (dtype == DTYPE_I64)
                return ((const int64_t *)row)[a] < ((const int64_t *)row)[b];
        return dtype == DTYPE_F32 ? less((double)((const float *)row)[a], (double)((const float *)row)[b])
                                  : less(((const double *)row)[a], ((const double *)row)[b]);
}

static void sort_one(Dtype dtype, SortWay way, int64_t n, const void *row, int64_t *indices)
{
        TensorMeta meta;
        meta_init(&meta, dtype, 1, &n);
        RowPlan plan;
        row_plan(&plan, &meta, 1, true);
        SortTask task = { .dtype = dtype,
                          .way = way,
                          .inner = 1,
                          .n_out = way == SORT_STABLE ? n : 1,
                          .indices = indices };
        cr_assert_eq(sort_rows(NULL, &plan, &task, row), STATUS_OK);
}

// Medians against the sorted row.
static void check_row(Sample *sample, Dtype dtype, int64_t n)
{
        size_t bytes = (size_t)(n * dtype_info[dtype].bytes);
        char *row = guarded_new(bytes);
        int64_t *order = guarded_new((size_t)n * 8), median, nanmedian, n_numbers = 0;
        _cleanup_(freep) bool *seen = calloc((size_t)n, sizeof(bool));
        fill_row(sample, dtype, n, row);
        sort_one(dtype, SORT_STABLE, n, row, order);
        for (int64_t i = 0; i < n; i++) {
                cr_assert(order[i] >= 0 && order[i] < n && !seen[order[i]]);
                seen[order[i]] = true;
                if (i > 0 && !comes_before(dtype, row, order[i - 1], order[i]))
                        cr_assert(!comes_before(dtype, row, order[i], order[i - 1]) &&
                                  order[i - 1] < order[i]);
                n_numbers += dtype == DTYPE_I64 ||
                             !isnan(element_as_f64(dtype, row + i * dtype_info[dtype].bytes));
        }
        sort_one(dtype, SORT_MEDIAN, n, row, &median);
        sort_one(dtype, SORT_NANMEDIAN, n, row, &nanmedian);
        cr_assert_eq(median, order[n_numbers < n ? n_numbers : (n - 1) / 2]);
        cr_assert_eq(nanmedian, order[n_numbers == 0 ? 0 : (n_numbers - 1) / 2]);
        guarded_check(row, bytes);
        guarded_check(order, (size_t)n * 8);
}

Test(sort, long_rows_and_medians_of_all_rows_are_those_of_a_stable_sort)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_I64 };
        Sample sample = { 73 };
        for (int round = 0; round < 240; round++)
                check_row(&sample, dtypes[round % 3],
                          round < 120 ? sample_int(&sample, 1, 40) : sample_int(&sample, 240, 900));
        for (int round = 0; round < 9; round++)
                check_row(&sample, dtypes[round % 3], sample_int(&sample, 32700, 34000));
}
