// SPDX-License-Identifier: Apache-2.0
// norm.c: two passes over a row (mean, then squared differences), partial sums in 16 lanes over
// chunks of 512 and in double across chunks: at least as exact as PyTorch's. Scaling by channel
// works for planes (inner > 1) and for channels that stand last (inner == 1).
#include "core/kernels/norm/norm.h"
#include <math.h>

enum { LANES = 16, CHUNK = 512 };

typedef struct NormTask {
        const RunContext *ctx;
        const NormRows *norm;
        const NormScale *scale;
        const void *in;
        void *out;
} NormTask;

#define NORM(x) x##_f32
#define NORM_T  float
#include "core/kernels/norm/norm_rows.inc"
#undef NORM
#undef NORM_T
#define NORM(x) x##_f64
#define NORM_T  double
#include "core/kernels/norm/norm_rows.inc"
#undef NORM
#undef NORM_T

static Status run_rows(const RunContext *ctx, const NormRows *norm, const void *in, void *out)
{
        NormTask task = { .ctx = ctx, .norm = norm, .in = in, .out = out };
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, norm->n));
        TRY(parallel_for(ctx, norm->n_rows, grain, norm->dtype == DTYPE_F32 ? norm_rows_f32 : norm_rows_f64,
                         &task));
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
        bool last = scale->inner == 1, single = scale->dtype == DTYPE_F32;
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, last ? scale->channels : scale->inner));
        if (last)
                TRY(parallel_for(ctx, scale->outer, grain, single ? scale_last_f32 : scale_last_f64, &task));
        else
                TRY(parallel_for(ctx, scale->outer * scale->channels, grain,
                                 single ? scale_planes_f32 : scale_planes_f64, &task));
        return run_poll(ctx);
}
