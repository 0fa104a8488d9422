// SPDX-License-Identifier: Apache-2.0
// softmax.c: subtract the maximum, exponentiate, divide by the sum (or subtract its logarithm). A
// row that is all -inf gives NaN, one with NaN is NaN, as in PyTorch. Float32 sums run in float
// lanes within chunks and in double across them. Rows go one by one when they are contiguous;
// otherwise blocks of neighbouring columns go together so that memory is read in order.
#include "core/kernels/norm/softmax.h"
#include "core/kernels/isa.h"
#include "core/kernels/pointwise/pointwise.h"
#include "core/kernels/pointwise/vector_math.h"
#include "core/tensor/convert.h"
#include <math.h>
#include <string.h>

enum { LANES = 16, CHUNK = 1024, COLUMNS = 64 };

#define EXP_LEAST -104.0f
#define EXP_LOG2E 1.44269504088896341f
#define EXP_MAGIC 12582912.0f // added: rounds to an integer in the low bits

// exp(x) for x <= 0 or NaN in float32: 2^n times a polynomial on [-ln2/2, ln2/2]. The power is made
// in two steps, for results may be denormal. Numbers below EXP_LEAST, those that a mask leaves out,
// are multiplied by zero instead: products that underflow take many cycles. softmax_rows.inc has
// the same for vectors.
static inline __attribute__((always_inline)) float exp_f32(float x)
{
        float y = x < EXP_LEAST ? EXP_LEAST : x, n = y * EXP_LOG2E + EXP_MAGIC - EXP_MAGIC;
        float r = y - n * LN2_0 - n * LN2_1, p = EXP_P4;
        p = p * r + EXP_P3;
        p = p * r + EXP_P2;
        p = p * r + EXP_P1;
        p = p * r + EXP_P0;
        p = r * r * p + r;
        int32_t whole = n == n ? (int32_t)n : 0, half = whole >> 1, keeps = x < EXP_LEAST ? 0 : -1;
        union {
                int32_t i;
                float f;
        } low = { .i = (half + 127) << 23 }, high = { .i = ((whole - half + 127) << 23) & keeps };
        return (p * low.f + low.f) * high.f;
}

static double log_of_sum(SoftmaxKind kind, double sum)
{
        if (kind == SOFTMAX_LOG)
                return log(sum);
        if (kind == SOFTMAX_LOG_F16)
                return (double)f16_to_f32(f32_to_f16(logf(f16_to_f32(f32_to_f16((float)sum)))));
        return (double)bf16_to_f32(f32_to_bf16(logf(bf16_to_f32(f32_to_bf16((float)sum)))));
}

typedef struct SoftmaxTask {
        const RunContext *ctx;
        SoftmaxKind kind;
        int64_t n, inner;
        const void *in;
        void *out;
} SoftmaxTask;

#define SOFT_TARGET
#define SOFT(x)     x##_f32_plain
#define SOFT_T      float
#define SOFT_EXP    exp_f32
#define SOFT_STEPS  2
#define SOFT_BYTES  16
#define SOFT_IS_F32 1
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT_IS_F32
#undef SOFT
#undef SOFT_T
#undef SOFT_EXP
#undef SOFT_STEPS
// In vectors, where the CPU has them.
static void exp_all_f64(double *numbers, int64_t n)
{
        static const PointParams none;
        const void *const in[] = { numbers };
        point_loop(&point_exp,
                   POINT_F64)(&(PointTile){ .in = in, .out = numbers, .n = (size_t)n, .params = &none });
}

#define SOFT(x)      x##_f64_plain
#define SOFT_T       double
#define SOFT_EXP_ALL exp_all_f64
#define SOFT_STEPS   16
#define SOFT_IS_F32  0
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT_BYTES
#undef SOFT_IS_F32
#undef SOFT
#undef SOFT_T
#undef SOFT_EXP
#undef SOFT_EXP_ALL
#undef SOFT_STEPS
#undef SOFT_TARGET

// Rows of float32 for one instruction set. Lanes and their order are the same in all, so the bits
// are as well.
typedef struct SoftmaxRows {
        void (*row)(SoftmaxKind kind, Work *work, int64_t n, const float *in, float *out);
        float (*max)(Work *work, int64_t n, const float *in);
        double (*exp)(Work *work, int64_t n, const float *in, float max, float *out);
        ParallelBody rows, columns;
} SoftmaxRows;
#define ROWS_OF(suffix)                                                                                      \
        static const SoftmaxRows rows_##suffix = { softmax_row_f32_##suffix, row_max_f32_##suffix,           \
                                                   row_exp_f32_##suffix, softmax_rows_f32_##suffix,          \
                                                   softmax_columns_f32_##suffix }
ROWS_OF(plain);

#if defined(__x86_64__)
#define SOFT_T      float
#define SOFT_EXP    exp_f32
#define SOFT_STEPS  2
#define SOFT_IS_F32 1
#define SOFT(x)     x##_f32_avx2
#define SOFT_BYTES  32
#define SOFT_TARGET TARGET_AVX2
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT
#undef SOFT_BYTES
#undef SOFT_TARGET
#define SOFT(x)     x##_f32_avx512
#define SOFT_BYTES  64
#define SOFT_TARGET TARGET_AVX512
#include "core/kernels/norm/softmax_rows.inc"
ROWS_OF(avx2);
ROWS_OF(avx512);
#endif

static const KernelVariant softmax_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &rows_plain },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &rows_avx2 },
        { DTYPE_F32, ISA_AVX512, &rows_avx512 },
#endif
};
const KernelFamily softmax_family = { "softmax", ARRAY_LENGTH(softmax_variants), softmax_variants };

static const SoftmaxRows *rows_in_use(void)
{
        return kernel_variant(&softmax_family, DTYPE_F32);
}

void softmax_row_f32(SoftmaxKind kind, Work *work, int64_t n, const float *in, float *out)
{
        rows_in_use()->row(kind, work, n, in, out);
}

void softmax_row_f64(SoftmaxKind kind, Work *work, int64_t n, const double *in, double *out)
{
        softmax_row_f64_plain(kind, work, n, in, out);
}

double softmax_exp_row_f32(Work *work, int64_t n, const float *in, float *out)
{
        const SoftmaxRows *rows = rows_in_use();
        float max = rows->max(work, n, in);
        if (max == -INFINITY && !has_nan_f32_plain(work, n, in)) {
                memset(out, 0, (size_t)n * sizeof(float));
                return 0;
        }
        return rows->exp(work, n, in, max, out);
}

double softmax_sum_row_f32(Work *work, int64_t n, const float *in, float *out_max)
{
        const SoftmaxRows *rows = rows_in_use();
        float max = rows->max(work, n, in), exps[CHUNK];
        double sum = 0;
        for (int64_t at = 0; at < n && isfinite(max) && !work->stops; at += CHUNK)
                sum += rows->exp(work, MIN(n - at, (int64_t)CHUNK), in + at, max, exps);
        *out_max = max;
        return sum;
}

Status softmax_run(const RunContext *ctx, const Softmax *softmax, const void *in, void *out)
{
        int64_t outer = softmax->outer, n = softmax->n, inner = softmax->inner;
        if (outer == 0 || n == 0 || inner == 0)
                return STATUS_OK;
        SoftmaxTask task = { ctx, softmax->kind, n, inner, in, out };
        bool single = softmax->dtype == DTYPE_F32;
        const SoftmaxRows *rows = rows_in_use();
        int64_t blocks = (inner + COLUMNS - 1) / COLUMNS,
                work = inner == 1 ? n : n * MIN(inner, (int64_t)COLUMNS);
        int64_t grain = MAX((int64_t)1, 65536 / work);
        if (inner == 1)
                TRY(parallel_for(ctx, outer, grain, single ? rows->rows : softmax_rows_f64_plain, &task));
        else
                TRY(parallel_for(ctx, outer * blocks, grain,
                                 single ? rows->columns : softmax_columns_f64_plain, &task));
        return run_poll(ctx);
}
