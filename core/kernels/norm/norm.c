// SPDX-License-Identifier: Apache-2.0
// norm.c: two passes over a row (mean, then squared differences), partial sums in 16 lanes over
// chunks of 512 and in double across chunks: at least as exact as PyTorch's. Scaling by channel
// works for planes (inner > 1) and for channels that stand last (inner == 1). Statistics of
// channels are taken of a chunk while it is in the cache, then put together.
#include "core/kernels/norm/norm.h"
#include <math.h>
#include <string.h>
#include "core/base/memory.h"

enum { LANES = 16, LANES_AT_ONCE = 4, CHUNK = 512 };

typedef struct NormTask {
        const RunContext *ctx;
        const NormRows *norm;
        const NormScale *scale;
        const NormChannels *channels;
        const void *in;
        void *out;
} NormTask;

typedef struct NormLoops {
        ParallelBody rows, planes, last, plane_stats, tile_stats;
} NormLoops;

// Adds n pixels of a channel, their sum and their squared differences from their mean, to what is
// known of `before` pixels.
static inline void add_chunk(int64_t before, int64_t n, double sum, double square, double *mean,
                             double *squares)
{
        double apart = sum / (double)n - *mean, part = (double)n / (double)(before + n);
        *mean += apart * part;
        *squares += square + apart * apart * part * (double)before;
}

// n pixels of some channels behind `before` of them, `step` numbers apart, and what is known.
typedef struct Tile {
        int64_t before, n, step;
        double *mean, *squares;
} Tile;

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

Status norm_rows(const RunContext *ctx, const NormRows *norm, const void *in, void *out)
{
        NormTask task = { .ctx = ctx, .norm = norm, .in = in, .out = out };
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, norm->n));
        TRY(parallel_for(ctx, norm->n_rows, grain, loops_of(norm->dtype)->rows, &task));
        return run_poll(ctx);
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

Status norm_channel_stats(const RunContext *ctx, const NormChannels *channels, const void *in)
{
        NormTask task = { .ctx = ctx, .channels = channels, .in = in };
        const NormLoops *loops = loops_of(channels->dtype);
        int64_t n_tiles = (channels->n_channels + LANES - 1) / LANES;
        int64_t grain = MAX((int64_t)1, 65536 / MAX((int64_t)1, channels->n_pixels));
        if (channels->last)
                TRY(parallel_for(ctx, channels->n_images * n_tiles, MAX((int64_t)1, grain / LANES),
                                 loops->tile_stats, &task));
        else
                TRY(parallel_for(ctx, channels->n_images * channels->n_channels, grain, loops->plane_stats,
                                 &task));
        return run_poll(ctx);
}
