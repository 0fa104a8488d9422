// SPDX-License-Identifier: Apache-2.0
// Pointwise rows: nanoseconds per element of the vector functions in every instruction set, and a
// chain of 20 rows (3 sigmoid, 5 tanh, 2 exp, 5 mul, 5 add) on 64 and 1,048,576 floats, as one tile
// program and row by row.
//
//     bench_pointwise [n]   also errors in ULP against float64 over every n-th float (1 is slow)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/kernels/pointwise/tile.h"

static void check(Status status)
{
        if (status == STATUS_OK)
                return;
        fprintf(stderr, "bench_pointwise: %s\n", failure_current()->message);
        exit(1);
}

// ---- functions ----
typedef struct Function {
        const char *name;
        const PointKernel *kernel;
        double (*exact)(double);
        float shift;
} Function;
static double sigmoid(double x)
{
        return 1 / (1 + exp(-x));
}
static double silu(double x)
{
        return x / (1 + exp(-x));
}
static double gelu(double x)
{
        return x * erfc(-x * sqrt(0.5)) / 2;
}
static double gelu_tanh(double x)
{
        return x / 2 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
static const Function functions[] = {
        { "exp", &point_exp, exp, 0 },    { "expm1", &point_expm1, expm1, 0 },
        { "log", &point_log, log, 6 },    { "log1p", &point_log1p, log1p, 6 },
        { "tanh", &point_tanh, tanh, 0 }, { "sigmoid", &point_sigmoid, sigmoid, 0 },
        { "silu", &point_silu, silu, 0 }, { "erf", &point_erf, erf, 0 },
        { "gelu", &point_gelu, gelu, 0 }, { "gelu_tanh", &point_gelu_tanh, gelu_tanh, 0 },
        { "sin", &point_sin, sin, 0 },    { "cos", &point_cos, cos, 0 },
        { "tan", &point_tan, tan, 0 },    { "atan", &point_atan, atan, 0 },
        { "asin", &point_asin, asin, 0 }, { "acos", &point_acos, acos, 0 },
        { "sinh", &point_sinh, sinh, 0 }, { "cosh", &point_cosh, cosh, 0 },
};

static double function_ns(const Function *function)
{
        enum { N = 1024, REPEATS = 8, ROUNDS = 300 };
        static float x[N], out[N];
        double best = INFINITY;
        PointParams params = { .bits = 32, .half = DTYPE_NONE };
        PointTile tile = { .in = (const void *[]){ x }, .out = out, .n = N, .params = &params };
        for (int i = 0; i < N; i++)
                x[i] = (float)((i * 7919) % N) / 100 - 5 + function->shift;
        for (int round = 0; round < ROUNDS; round++) {
                int64_t start = clock_ns();
                for (int i = 0; i < REPEATS; i++)
                        point_loop(function->kernel, POINT_F32)(&tile);
                double each = (double)(clock_ns() - start) / (double)REPEATS / (double)N;
                best = each < best ? each : best;
        }
        return best;
}

// The largest distance from the float64 value in units of the last place; results below 2^-119
// count as 0.
static double function_ulps(const Function *function, uint64_t step)
{
        enum { N = 4096 };
        static float x[N], out[N];
        double worst = 0;
        PointParams params = { .bits = 32, .half = DTYPE_NONE };
        for (uint64_t bits = 0; bits <= UINT32_MAX;) {
                size_t n = 0;
                for (; n < N && bits <= UINT32_MAX; n++, bits += step) {
                        uint32_t low = (uint32_t)bits;
                        memcpy(&x[n], &low, sizeof(low));
                }
                PointTile tile = { .in = (const void *[]){ x }, .out = out, .n = n, .params = &params };
                point_loop(function->kernel, POINT_F32)(&tile);
                for (size_t i = 0; i < n; i++) {
                        double want = function->exact((double)x[i]);
                        int exponent;
                        if (!isfinite((float)want) || !isfinite(out[i]) || fabs(want) < 0x1p-119)
                                continue;
                        frexp(want, &exponent);
                        worst = fmax(worst, fabs(out[i] - want) / ldexp(1, exponent - 24));
                }
        }
        return worst;
}

static void print_functions(uint64_t step)
{
        for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
                printf("%-8s", functions[i].name);
                for (Isa isa = ISA_PORTABLE; isa <= MIN(isa_machine(), (Isa)POINT_WIDEST); isa++) {
                        isa_use(isa);
                        printf("  %s %.3f ns", isa_name(isa), function_ns(&functions[i]));
                        if (step > 0)
                                printf(" %.3f ULP", function_ulps(&functions[i], step));
                }
                printf("\n");
        }
}

// ---- the chain ----
static const PointKernel *const chain[] = {
        &point_mul,  &point_tanh, &point_add,  &point_sigmoid, &point_mul,     &point_exp, &point_add,
        &point_tanh, &point_mul,  &point_tanh, &point_sigmoid, &point_add,     &point_mul, &point_tanh,
        &point_exp,  &point_add,  &point_mul,  &point_tanh,    &point_sigmoid, &point_add,
};
static const PointParams params = { .of[0].f = 1 };

static const PointKernel *const short_chain[] = { &point_relu, &point_neg, &point_abs };

static TileProgram *chain_program(const TensorMeta *meta, const PointKernel *const *kernels, size_t n)
{
        TileProgram *program;
        TileValueId value, number;
        check(tile_program_new(&program));
        check(tile_add_input(program, meta, &value));
        check(tile_add_number(program, DTYPE_F64, (PointParam){ .f = 0.75 }, &number));
        for (size_t i = 0; i < n; i++) {
                TileOp op = { .kernel = kernels[i],
                              .common = DTYPE_F32,
                              .out = DTYPE_F32,
                              .params = &params,
                              .in = { value, number } };
                check(tile_add_op(program, &op, &value));
        }
        check(tile_add_output(program, value, meta));
        check(tile_finish(program));
        return program;
}

static void run_rows(const TensorMeta *meta, const PointKernel *const *kernels, size_t n, const float *x,
                     float *const *buffers)
{
        static const TensorMeta number_meta = { .dtype = DTYPE_F64 };
        static const PointParam number = { .f = 0.75 };
        for (size_t i = 0; i < n; i++) {
                PointOperand in[] = { { .data = i == 0 ? x : buffers[(i + 1) % 2], .meta = meta },
                                      { .data = &number, .meta = &number_meta } };
                check(pointwise_run(NULL, &(PointCall){ kernels[i], DTYPE_F32, &params, in }, buffers[i % 2],
                                    meta));
        }
}

static void print_chain(const PointKernel *const *kernels, size_t n_rows, int64_t n, int rounds, int repeats)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, &n);
        size_t bytes = ((size_t)n * sizeof(float) + 63) / 64 * 64;
        float *x = aligned_alloc(64, bytes), *out = aligned_alloc(64, bytes),
              *buffers[] = { aligned_alloc(64, bytes), aligned_alloc(64, bytes) };
        TileProgram *program = chain_program(&meta, kernels, n_rows);
        double fused = INFINITY, rows = INFINITY;
        for (int64_t i = 0; i < n; i++)
                x[i] = (float)((i * 7919) % 1000) / 250 - 2;
        for (int round = 0; round < rounds; round++) {
                int64_t start = clock_ns();
                for (int i = 0; i < repeats; i++)
                        check(tile_run(program, (const void *[]){ x }, (void *[]){ out }, NULL));
                int64_t middle = clock_ns();
                for (int i = 0; i < repeats; i++)
                        run_rows(&meta, kernels, n_rows, x, buffers);
                int64_t end = clock_ns();
                fused = fmin(fused, (double)(middle - start) / repeats);
                rows = fmin(rows, (double)(end - middle) / repeats);
        }
        bool same = memcmp(out, buffers[(n_rows + 1) % 2], (size_t)n * sizeof(float)) == 0;
        printf("%2zu rows on %8lld floats: %s %10.3f us   row by row %10.3f us   %s\n", n_rows, (long long)n,
               tile_name(), fused / 1e3, rows / 1e3, same ? "equal bits" : "BITS DIFFER");
        tile_program_free(program);
        free(x);
        free(out);
        free(buffers[0]);
        free(buffers[1]);
}

int main(int n_args, char **args)
{
        print_functions(n_args > 1 ? strtoull(args[1], NULL, 10) : 0);
        print_chain(short_chain, ARRAY_LENGTH(short_chain), 12, 300, 20);
        print_chain(chain, ARRAY_LENGTH(chain), 64, 300, 20);
        print_chain(chain, ARRAY_LENGTH(chain), 1 << 10, 300, 5);
        print_chain(chain, ARRAY_LENGTH(chain), 1 << 20, 15, 1);
        return 0;
}
