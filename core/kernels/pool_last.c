// SPDX-License-Identifier: Apache-2.0
// pool_last.c: pooling of channels_last images. A window is a handful of pixels, each a run of channels, so that the inner loop is a vector
// loop; the order of additions is that of pool.c (down the rows of a column, then along the columns), and so are the bits.
#include <math.h>
#include "core/kernels/pool.h"

typedef struct Window {
        int64_t low[2], high[2], step[2];
        int64_t row_step; // elements
        float divisor;
} Window;

typedef void WindowKernel(const Window *window, int64_t channels, const float *image, float *out);

#define LAST_TARGET
#define LAST_LANES 4
#define LAST(x)    plain_##x
#include "core/kernels/pool_last.inc"
#undef LAST_TARGET
#undef LAST_LANES
#undef LAST
#if defined(__x86_64__)
#define LAST_TARGET __attribute__((target("avx2")))
#define LAST_LANES  8
#define LAST(x)     avx2_##x
#include "core/kernels/pool_last.inc"
#undef LAST_TARGET
#undef LAST_LANES
#undef LAST
#define LAST_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,prefer-vector-width=512")))
#define LAST_LANES  16
#define LAST(x)     avx512_##x
#include "core/kernels/pool_last.inc"
#endif

static WindowKernel *choose_kernel(bool average)
{
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
                return average ? avx512_average_window : avx512_max_window;
        if (__builtin_cpu_supports("avx2"))
                return average ? avx2_average_window : avx2_max_window;
#endif
        return average ? plain_average_window : plain_max_window;
}

typedef struct LastRun {
        const Pool *pool;
        int64_t channels;
        WindowKernel *kernel;
        const float *in;
        float *out;
} LastRun;

// begin..end: rows of results, of all images.
static void last_rows(void *argument, int64_t begin, int64_t end)
{
        const LastRun *run = argument;
        const PoolAxis *rows = &run->pool->axis[1], *columns = &run->pool->axis[2];
        int64_t channels = run->channels, row_step = columns->in_size * channels;
        for (int64_t r = begin; r < end; r++) {
                int64_t y = r % rows->out_size;
                const float *image = run->in + r / rows->out_size * rows->in_size * row_step;
                for (int64_t x = 0; x < columns->out_size; x++) {
                        Window window = { .low = { rows->low[y], columns->low[x] },
                                          .high = { rows->high[y], columns->high[x] },
                                          .step = { rows->step, columns->step },
                                          .row_step = row_step };
                        float *out = run->out + (r * columns->out_size + x) * channels;
                        int64_t divisor = run->pool->divisor != 0 ? run->pool->divisor : rows->count[y] * columns->count[x];
                        window.divisor = (float)divisor;
                        run->kernel(&window, channels, image, out);
                }
        }
}

Status pool_channels_last(const RunContext *ctx, const Pool *pool, bool average, int64_t channels, const float *in, float *out)
{
        LastRun run = { .pool = pool, .channels = channels, .kernel = choose_kernel(average), .in = in, .out = out };
        int64_t n_rows = pool->planes / channels * pool->axis[1].out_size;
        int64_t work = pool->axis[2].in_size * channels;
        return parallel_for(ctx, n_rows, MAX((int64_t)1, 50000 / MAX(work, (int64_t)1)), last_rows, &run);
}
