// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/product/matmul.h"
#include "tests/kernels/sample.h"

// A matrix laid out at random: row-major or column-major, with gaps, somewhere in a guarded buffer.
typedef struct Placed {
        GemmMatrix matrix;
        size_t n_bytes;
} Placed;

static Placed place(Sample *sample, Dtype dtype, int64_t items, int64_t rows, int64_t cols, bool fill)
{
        Placed placed = { 0 };
        int64_t gap = sample_int(sample, 0, 1) * sample_int(sample, 0, 5),
                step = sample_int(sample, 0, 5) == 0 ? 2 : 1;
        if (sample_int(sample, 0, 1) == 0) {
                placed.matrix.col = step;
                placed.matrix.row = cols * step + gap;
                placed.matrix.batch[0] = placed.matrix.row * rows;
        } else {
                placed.matrix.row = step;
                placed.matrix.col = rows * step + gap;
                placed.matrix.batch[0] = placed.matrix.col * cols;
        }
        int64_t n = items * placed.matrix.batch[0];
        placed.n_bytes = (size_t)n * dtype_info[dtype].bytes;
        placed.matrix.data = guarded_new(placed.n_bytes);
        if (fill)
                sample_fill(sample, dtype, placed.matrix.data, n);
        return placed;
}

static double at(Dtype dtype, const GemmMatrix *matrix, int64_t item, int64_t i, int64_t j)
{
        return compute_as_f64(dtype, matrix->data,
                              item * matrix->batch[0] + i * matrix->row + j * matrix->col);
}

static void check_product(Sample *sample, Dtype dtype, int64_t m, int64_t n, int64_t k)
{
        int64_t items = sample_int(sample, 1, 3);
        Placed a = place(sample, dtype, items, m, k, true), b = place(sample, dtype, items, k, n, true),
               c = place(sample, dtype, items, m, n, false), add = place(sample, dtype, items, m, n, true);
        Gemm task = { .dtype = dtype,
                      .m = m,
                      .n = n,
                      .k = k,
                      .batch_rank = 1,
                      .batch_size = { items },
                      .a = a.matrix,
                      .b = b.matrix,
                      .c = c.matrix,
                      .alpha = (double)sample_int(sample, 1, 3),
                      .beta = (double)sample_int(sample, 0, 2) };
        if (sample_int(sample, 0, 1) != 0)
                task.add = add.matrix;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = (int)sample_int(sample, 1, 2);
        cr_assert_eq(gemm(&ctx, &task), STATUS_OK);
        for (int64_t item = 0; item < items; item++) {
                for (int64_t i = 0; i < m; i++) {
                        for (int64_t j = 0; j < n; j++) {
                                double sum = 0;
                                for (int64_t p = 0; p < k; p++)
                                        sum += at(dtype, &a.matrix, item, i, p) *
                                               at(dtype, &b.matrix, item, p, j);
                                double want = task.alpha * sum +
                                              (task.add.data == NULL
                                                       ? 0
                                                       : task.beta * at(dtype, &add.matrix, item, i, j));
                                double got = at(dtype, &c.matrix, item, i, j);
                                cr_assert(close_enough_sum(dtype, got, want, k),
                                          "%s %ldx%ldx%ld [%ld,%ld,%ld]: %.9g instead of %.9g",
                                          dtype_info[dtype].name, (long)m, (long)n, (long)k, (long)item,
                                          (long)i, (long)j, got, want);
                        }
                }
        }
        Placed all[] = { a, b, c, add };
        for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
                guarded_check(all[i].matrix.data, all[i].n_bytes);
}

Test(matmul, agrees_with_a_naive_product_on_random_shapes_strides_and_dtypes)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_I64 };
        FOR_EACH_ISA(isa)
        {
                Sample sample = { 1 };
                for (int round = 0; round < 120; round++)
                        check_product(&sample, dtypes[round % 3], sample_int(&sample, 1, 40),
                                      sample_int(&sample, 1, 70), sample_int(&sample, 0, 60));
        }
}

Test(matmul, agrees_where_blocks_of_rows_columns_and_depth_meet)
{
        static const int64_t shapes[][3] = { { 145, 257, 257 }, { 144, 256, 256 }, { 13, 33, 513 },
                                             { 1, 1025, 300 },  { 12, 65, 300 },   { 300, 1, 300 },
                                             { 3, 2049, 17 },   { 150, 5, 515 },   { 289, 31, 40 } };
        FOR_EACH_ISA(isa)
        {
                Sample sample = { 2 };
                for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++) {
                        check_product(&sample, DTYPE_F32, shapes[i][0], shapes[i][1], shapes[i][2]);
                        check_product(&sample, DTYPE_F64, shapes[i][0], shapes[i][1], shapes[i][2]);
                }
        }
}

// Rows of a against rows of b, which lie along k.
static void multiply_rows(const float *a, int64_t m, const float *b, int64_t n, int64_t k, float *c)
{
        Gemm task = { .dtype = DTYPE_F32,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = { (void *)(uintptr_t)a, k, 1, { 0 } },
                      .b = { (void *)(uintptr_t)b, 1, k, { 0 } },
                      .c = { c, n, 1, { 0 } },
                      .alpha = 1 };
        RunContext ctx;
        run_context_init(&ctx);
        cr_assert_eq(gemm(&ctx, &task), STATUS_OK);
}

Test(matmul, gives_rows_along_k_the_same_bits_however_many_there_are)
{
        enum { M = 45, MOST_N = 70, MOST_K = 1800 };
        static const int64_t depths[] = { 1, 16, 31, 32, 100, 384, 768, MOST_K },
                             widths[] = { 3, 50, MOST_N }, counts[] = { 1, 2, 3, 4, 5, 13, 30 };
        static float a[M * MOST_K], b[MOST_N * MOST_K], all[M * MOST_N], some[M * MOST_N];
        Sample sample = { 4 };
        sample_fill(&sample, DTYPE_F32, a, M * MOST_K);
        sample_fill(&sample, DTYPE_F32, b, MOST_N * MOST_K);
        FOR_EACH_ISA(isa)
        for (size_t i = 0; i < ARRAY_LENGTH(depths) * ARRAY_LENGTH(widths); i++) {
                int64_t k = depths[i % ARRAY_LENGTH(depths)], n = widths[i / ARRAY_LENGTH(depths)];
                multiply_rows(a, M, b, n, k, all);
                for (size_t j = 0; j < ARRAY_LENGTH(counts); j++) {
                        int64_t first = sample_int(&sample, 0, M - counts[j]);
                        multiply_rows(a + first * k, counts[j], b, n, k, some);
                        cr_assert(memcmp(some, all + first * n, (size_t)(counts[j] * n) * 4) == 0,
                                  "%ld rows of %ld against %ld rows", (long)counts[j], (long)k, (long)n);
                }
        }
}

Test(matmul, gives_the_same_bits_with_one_thread_and_two)
{
        enum { M = 200, N = 300, K = 400 };
        Sample sample = { 3 };
        _cleanup_(freep) float *a = malloc(M * K * 4), *b = malloc(K * N * 4), *one = malloc(M * N * 4),
                               *two = malloc(M * N * 4);
        sample_fill(&sample, DTYPE_F32, a, M * K);
        sample_fill(&sample, DTYPE_F32, b, K * N);
        Gemm task = { .dtype = DTYPE_F32,
                      .m = M,
                      .n = N,
                      .k = K,
                      .a = { a, K, 1, { 0 } },
                      .b = { b, N, 1, { 0 } },
                      .c = { one, N, 1, { 0 } },
                      .alpha = 1 };
        RunContext ctx;
        run_context_init(&ctx);
        cr_assert_eq(gemm(&ctx, &task), STATUS_OK);
        task.c.data = two;
        ctx.n_threads = 2;
        cr_assert_eq(gemm(&ctx, &task), STATUS_OK);
        cr_assert(memcmp(one, two, M * N * 4) == 0);
}

Test(matmul, ignores_nan_in_the_added_matrix_when_beta_is_zero)
{
        float a[] = { 1, 2 }, b[] = { 3, 4 }, c = 0, add = NAN;
        Gemm task = { .dtype = DTYPE_F32,
                      .m = 1,
                      .n = 1,
                      .k = 2,
                      .a = { a, 2, 1, { 0 } },
                      .b = { b, 1, 1, { 0 } },
                      .c = { &c, 1, 1, { 0 } },
                      .add = { &add, 0, 0, { 0 } },
                      .alpha = 1,
                      .beta = 0 };
        cr_assert_eq(gemm(NULL, &task), STATUS_OK);
        cr_assert_float_eq(c, 11, 0);
}

Test(matmul, stops_with_cancelled_when_the_caller_is_gone)
{
        enum { N = 512 };
        _cleanup_(freep) float *a = calloc(N * N, 4), *c = calloc(N * N, 4);
        Gemm task = { .dtype = DTYPE_F32,
                      .m = N,
                      .n = N,
                      .k = N,
                      .a = { a, N, 1, { 0 } },
                      .b = { a, N, 1, { 0 } },
                      .c = { c, N, 1, { 0 } },
                      .alpha = 1 };
        RunContext ctx;
        run_context_init(&ctx);
        atomic_store(&ctx.cancelled, 1);
        cr_assert_eq(gemm(&ctx, &task), STATUS_CANCELLED);
}

Test(matmul, refuses_working_memory_over_the_runs_budget)
{
        enum { N = 512 };
        _cleanup_(freep) float *a = calloc(N * N, 4), *c = calloc(N * N, 4);
        Gemm task = { .dtype = DTYPE_F32,
                      .m = N,
                      .n = N,
                      .k = N,
                      .a = { a, N, 1, { 0 } },
                      .b = { a, N, 1, { 0 } },
                      .c = { c, N, 1, { 0 } },
                      .alpha = 1 };
        RunContext ctx;
        run_context_init(&ctx);
        Budget budget;
        budget_init(&budget, 1000);
        ctx.budget = &budget;
        cr_assert_eq(gemm(&ctx, &task), STATUS_TOO_LARGE);
}
