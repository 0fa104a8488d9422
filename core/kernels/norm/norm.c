// SPDX-License-Identifier: Apache-2.0
// norm.c: two passes over a row (mean, then squared differences), partial sums in 16 lanes over
// chunks of 512 and in double across chunks: at least as exact as PyTorch's. Scaling by channel
// works for planes (inner > 1) and for channels that stand last (inner == 1).
#include "core/kernels/norm/norm.h"
#include <math.h>
#include "core/base/memory.h"

enum { LANES = 16, CHUNK = 512 };

typedef struct NormTask {
        const RunContext *ctx;
        const NormRows *norm;
        const NormScale *scale;
        const void *in;
        void *out;
} NormTask;

typedef struct NormLoops {
        ParallelBody rows, planes, last;
} NormLoops;

#define NORM(x) x##_f32
#define NORM_T  float
#define NORM_TARGET
#include "core/kernels/norm/norm_rows.inc"
#define NORM(x) x##_f64
#define NORM_T  double
#define NORM_TARGET
#include "core/kernels/norm/norm_rows.inc"
#if defined(__x86_64__)
#define NORM(x)     x##_f32_avx2
#define NORM_T      float
#define NORM_TARGET TARGET_AVX2
#include "core/kernels/norm/norm_rows.inc"
#define NORM(x)     x##_f32_avx512
#define NORM_T      float
#define NORM_TARGET TARGET_AVX512
#include "core/kernels/norm/norm_rows.inc"
#endif

static const KernelVariant norm_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &loops_f32 },
        { DTYPE_F64, ISA_PORTABLE, &loops_f64 },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &loops_f32_avx2 },
        { DTYPE_F32, ISA_AVX512, &loops_f32_avx512 },
#endif
};
const KernelFamily norm_family = { "norm", ARRAY_LENGTH(norm_variants), norm_variants };

static const NormLoops *loops_of(Dtype dtype)
{
        return kernel_variant(&norm_family, dtype);
}

static Status run_rows(const RunContext *ctx, const NormRows *norm, const void *in, void *out)
{
        NormTask task = { .ctx = ctx, .norm = norm, .in = in, .out = out };
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, norm->n));
        TRY(parallel_for(ctx, norm->n_rows, grain, loops_of(norm->dtype)->rows, &task));
        return run_poll(ctx);
}

Status norm_rows(const RunContext *ctx, const NormRows *norm, const void *in, void *out)
{
        return run_rows(ctx, norm, in, out);
}

Status norm_row_stats(const RunContext *ctx, const NormRows *norm, const void *in)
{
        return run_rows(ctx, norm, in, NULL);
}

Status norm_scale_channels(const RunContext *ctx, const NormScale *scale, const void *in, void *out)
{
        NormTask task = { .ctx = ctx, .scale = scale, .in = in, .out = out };
        bool last = scale->inner == 1;
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, last ? scale->channels : scale->inner));
        const NormLoops *loops = loops_of(scale->dtype);
        if (last)
                TRY(parallel_for(ctx, scale->outer, grain, loops->last, &task));
        else
                TRY(parallel_for(ctx, scale->outer * scale->channels, grain, loops->planes, &task));
        return run_poll(ctx);
}
