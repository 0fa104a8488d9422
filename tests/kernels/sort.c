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
