// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/reduce/tensor_stats.h"
#include "core/kernels/dense.h"
#include "tests/kernels/sample.h"

// A tensor of random rank, permuted, with gaps or repeated elements, and its elements one by one.
typedef struct Made {
        TensorMeta meta;
        void *data;
        size_t n_bytes;
        double values[4096];
        int64_t n;
} Made;

static void make(Sample *sample, Dtype dtype, Made *out)
{
        int64_t size[MAX_RANK], step = 1;
        int rank = (int)sample_int(sample, 0, 4);
        for (int d = 0; d < rank; d++)
                size[d] = sample_int(sample, sample_int(sample, 0, 9) == 0 ? 0 : 1, 7);
        meta_init(&out->meta, dtype, rank, size);
        for (int d = rank - 1; d >= 0; d--) {
                out->meta.stride[d] = sample_int(sample, 0, 5) == 0 ? 0 : step;
                step += out->meta.stride[d] == 0 ? 0
                                                 : (MAX(size[d], 1) - 1) * step + sample_int(sample, 0, 1);
        }
        out->n_bytes = (size_t)step * dtype_info[dtype].bytes;
        out->data = guarded_new(out->n_bytes);
        for (int64_t i = 0; i < step; i++) {
                int kind = (int)sample_int(sample, 0, 12);
                double value = kind == 0   ? NAN
                               : kind == 1 ? INFINITY
                               : kind == 2 ? -INFINITY
                               : kind < 5  ? 0
                                           : 50 * sample_double(sample);
                element_from_f64(dtype, (char *)out->data + i * dtype_info[dtype].bytes,
                                 dtype_is_float(dtype) || isfinite(value) ? value : 7);
        }
        out->n = meta_numel(&out->meta);
        for (int64_t i = 0; i < out->n; i++) {
                int64_t rest = i, offset = 0;
                for (int d = rank - 1; d >= 0; d--) {
                        offset += rest % size[d] * out->meta.stride[d];
                        rest /= size[d];
                }
                out->values[i] = element_as_f64(dtype, (char *)out->data + offset * dtype_info[dtype].bytes);
        }
}

static void check(const Made *made)
{
        TensorStats stats;
        int64_t n_nan = 0, n_inf = 0, n_zero = 0, n = 0, counted = 0;
        double min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
        cr_assert_eq(tensor_stats_run(NULL, &made->meta, made->data, &stats), STATUS_OK);
        for (int64_t i = 0; i < made->n; i++) {
                double x = made->values[i];
                n_nan += isnan(x) != 0;
                n_inf += isinf(x) != 0;
                n_zero += x == 0;
                if (!isfinite(x))
                        continue;
                n++;
                sum += x;
                min = MIN(min, x);
                max = MAX(max, x);
        }
        for (int64_t i = 0; i < made->n; i++)
                if (isfinite(made->values[i]))
                        squares += (made->values[i] - sum / (double)n) * (made->values[i] - sum / (double)n);
        for (int i = 0; i < STATS_BINS; i++)
                counted += stats.counts[i];
        cr_assert_eq(stats.n, made->n);
        cr_assert_eq(stats.n_nan, n_nan);
        cr_assert_eq(stats.n_inf, n_inf);
        cr_assert_eq(stats.n_zero, n_zero);
        cr_assert_eq(counted, n);
        NonFinite found;
        cr_assert_eq(tensor_count_non_finite(NULL, &made->meta, made->data, &found), STATUS_OK);
        cr_assert(found.n_nan == n_nan && found.n_inf == n_inf);
        if (n == 0) {
                cr_assert(isnan(stats.min) && isnan(stats.max) && isnan(stats.mean) && isnan(stats.from));
                return;
        }
        cr_assert(stats.min == min && stats.max == max);
        cr_assert_float_eq(stats.mean, sum / (double)n, 1e-10);
        if (n > 1)
                cr_assert_float_eq(stats.std, sqrt(squares / (double)(n - 1)), 1e-9);
        else
                cr_assert(isnan(stats.std));
}

Test(tensor_stats, agree_with_one_element_after_the_other)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16,
                                        DTYPE_I64, DTYPE_I8,  DTYPE_BOOL };
        static Made made;
        Sample sample = { 5 };
        for (int round = 0; round < 400; round++) {
                make(&sample, dtypes[round % 7], &made);
                check(&made);
                guarded_check(made.data, made.n_bytes);
        }
}

// Ranges that no double holds, and one value whose neighbours are further away than 1.
Test(tensor_stats, the_ends_of_the_range_have_bins)
{
        const double wide[] = { -1.7e308, 1.7e308, 0 }, single[] = { 1e300, 1e300 };
        const int64_t ends[] = { INT64_MIN, INT64_MAX };
        TensorStats stats;
        TensorMeta meta;
        meta_init(&meta, DTYPE_F64, 1, (const int64_t[]){ 3 });
        cr_assert_eq(tensor_stats_run(NULL, &meta, wide, &stats), STATUS_OK);
        cr_expect(stats.counts[0] == 1 && stats.counts[16] == 1 && stats.counts[31] == 1);
        meta_init(&meta, DTYPE_F64, 1, (const int64_t[]){ 2 });
        cr_assert_eq(tensor_stats_run(NULL, &meta, single, &stats), STATUS_OK);
        cr_expect_eq(stats.counts[16], 2);
        meta_init(&meta, DTYPE_I64, 1, (const int64_t[]){ 2 });
        cr_assert_eq(tensor_stats_run(NULL, &meta, ends, &stats), STATUS_OK);
        cr_expect(stats.min_int == INT64_MIN && stats.max_int == INT64_MAX);
        cr_expect(stats.counts[0] == 1 && stats.counts[31] == 1);
}

Test(floats_are_finite, no_gap_between_elements_counts_and_every_element_does)
{
        float data[40];
        TensorMeta dense, gaps;
        meta_init(&dense, DTYPE_F32, 2, (int64_t[]){ 5, 8 });
        gaps = dense;
        gaps.size[1] = 7;
        for (int bad = -1; bad < 40; bad++) {
                for (int i = 0; i < 40; i++)
                        data[i] = i != bad ? (float)i : bad % 2 == 0 ? NAN : -INFINITY;
                cr_assert_eq(floats_are_finite(data, &dense), bad < 0);
                cr_assert_eq(floats_are_finite(data, &gaps), bad < 0 || bad % 8 == 7, "at %d", bad);
        }
}
