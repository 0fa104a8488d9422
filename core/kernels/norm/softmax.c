// SPDX-License-Identifier: Apache-2.0
// softmax.c: subtract the maximum, exponentiate, divide by the sum (or subtract its logarithm). A
// row that is all -inf gives NaN, one with NaN is NaN, as in PyTorch. Float32 sums run in float
// lanes within chunks and in double across them. Rows go one by one when they are contiguous;
// otherwise blocks of neighbouring columns go together so that memory is read in order.
#include "core/kernels/norm/softmax.h"
#include "core/kernels/isa.h"
#include <math.h>
#include <string.h>

enum { LANES = 16, CHUNK = 1024, COLUMNS = 64 };

// exp in float32, within 1.5 ULP: 2^n times a degree 7 polynomial on [-ln2/2, ln2/2]. Plain enough
// for gcc to vectorise. NaN stays NaN.
static inline __attribute__((always_inline)) float exp_f32(float x)
{
        float y = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
        float n = y * 1.44269504f + 12582912.0f; // rounds to an integer in the low bits
        n -= 12582912.0f;
        float r = y - n * 0.693145752f;
        r -= n * 1.42860677e-6f;
        float p = 1.0f / 5040;
        p = p * r + 1.0f / 720;
        p = p * r + 1.0f / 120;
        p = p * r + 1.0f / 24;
        p = p * r + 1.0f / 6;
        p = p * r + 0.5f;
        p = p * r * r + r + 1.0f;
        int32_t whole = n == n ? (int32_t)n : 0, half = whole >> 1;
        union {
                int32_t i;
                float f;
        } low = { .i = (half + 127) << 23 }, high = { .i = (whole - half + 127) << 23 };
        float result = p * low.f * high.f;
        return x > 88.8f ? INFINITY : result;
}

typedef struct SoftmaxTask {
        const RunContext *ctx;
        SoftmaxKind kind;
        int64_t n, inner;
        const void *in;
        void *out;
} SoftmaxTask;

#define SOFT_TARGET
#define SOFT(x)    x##_f32_plain
#define SOFT_T     float
#define SOFT_EXP   exp_f32
#define SOFT_STEPS 2
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT
#undef SOFT_T
#undef SOFT_EXP
#undef SOFT_STEPS
#define SOFT(x)    x##_f64_plain
#define SOFT_T     double
#define SOFT_EXP   exp
#define SOFT_STEPS 16
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT
#undef SOFT_T
#undef SOFT_EXP
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
#define SOFT(x)     x##_f32_avx2
#define SOFT_TARGET TARGET_AVX2
#include "core/kernels/norm/softmax_rows.inc"
#undef SOFT
#undef SOFT_TARGET
#define SOFT(x)     x##_f32_avx512
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
        if (max == -INFINITY) {
                memset(out, 0, (size_t)n * sizeof(float));
                return 0;
        }
        return rows->exp(work, n, in, max, out);
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
