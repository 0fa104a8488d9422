// SPDX-License-Identifier: Apache-2.0
// Figures of the portable kernels: kernels [threads]. Prints one line per case, best of several runs.
#include <stdio.h>
#include <stdlib.h>
#include "core/kernels/matmul.h"

static double seconds_of(const RunContext *ctx, const Gemm *task)
{
        double best = 1e9;
        for (int i = 0; i < 7; i++) {
                int64_t start = clock_ns();
                if (gemm(ctx, task) != STATUS_OK)
                        exit(1);
                best = MIN(best, (double)(clock_ns() - start) * 1e-9);
        }
        return best;
}

static void bench_product(const RunContext *ctx, const char *label, int64_t m, int64_t n, int64_t k, bool b_transposed)
{
        float *a = malloc((size_t)(m * k) * 4), *b = malloc((size_t)(k * n) * 4), *c = malloc((size_t)(m * n) * 4);
        if (a == NULL || b == NULL || c == NULL)
                exit(1);
        for (int64_t i = 0; i < m * k; i++)
                a[i] = (float)(i % 7) - 3;
        for (int64_t i = 0; i < k * n; i++)
                b[i] = (float)(i % 5) - 2;
        Gemm task = { .dtype = DTYPE_F32, .m = m, .n = n, .k = k, .a = { a, k, 1, { 0 } }, .c = { c, n, 1, { 0 } }, .alpha = 1 };
        task.b = b_transposed ? (GemmMatrix){ b, 1, k, { 0 } } : (GemmMatrix){ b, n, 1, { 0 } };
        double seconds = seconds_of(ctx, &task);
        printf("%-28s %5ld x %5ld x %5ld  %9.1f us  %7.1f GFLOP/s\n", label, (long)m, (long)n, (long)k, seconds * 1e6,
               2.0 * (double)m * (double)n * (double)k / seconds * 1e-9);
        free(a);
        free(b);
        free(c);
}

int main(int argc, char **argv)
{
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = argc > 1 ? atoi(argv[1]) : 1;
        bench_product(&ctx, "gemm", 1024, 1024, 1024, false);
        bench_product(&ctx, "gemm, b transposed", 1024, 1024, 1024, true);
        bench_product(&ctx, "linear, batch 1", 1, 3072, 768, true);
        bench_product(&ctx, "linear, batch 1, digits", 1, 512, 784, true);
        bench_product(&ctx, "linear, batch 8", 8, 3072, 768, true);
        bench_product(&ctx, "linear, batch 16", 16, 3072, 768, true);
        bench_product(&ctx, "linear, batch 64", 64, 3072, 768, true);
        bench_product(&ctx, "row vector", 1, 3072, 768, false);
        return 0;
}
