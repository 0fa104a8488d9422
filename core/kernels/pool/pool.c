// SPDX-License-Identifier: Apache-2.0
// pool.c: a window is reduced in two steps: its rows into one line as wide as the input (a vector
// loop), then the line's columns per output. Where indices are asked for, windows are walked
// element by element in PyTorch's order: a later NaN replaces an earlier one.
#include "core/kernels/pool/pool.h"
#include <math.h>
#include <string.h>
#include "core/tensor/half.h"

int64_t pool_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                         bool ceil_mode)
{
        int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
        int64_t out = (span >= 0 ? span / stride : -((-span + stride - 1) / stride)) + 1;
        // The last window must start inside the input or the left padding.
        if (ceil_mode && (out - 1) * stride >= in + pad)
                out--;
        return out;
}

static void set_bounds(PoolAxis *axis, int64_t *bounds)
{
        axis->low = bounds;
        axis->high = bounds + axis->out_size;
        axis->count = bounds + 2 * axis->out_size;
}

Status pool_windows(const RunContext *ctx, PoolAxis *axis, const PoolWindow *window, int64_t *bounds)
{
        int64_t n = axis->out_size, stride = window->stride, pad = window->pad, dilation = window->dilation;
        axis->step = dilation;
        Work work = { .ctx = ctx };
        for (int64_t o = 0; o < n && !work_stops(&work, 4); o++) {
                int64_t start = o * stride - pad, end = start + (window->kernel - 1) * dilation + 1,
                        padded_end = MIN(end, axis->in_size + pad);
                int64_t low = start;
                if (low < 0)
                        low += (-low + dilation - 1) / dilation * dilation;
                bounds[o] = low;
                bounds[n + o] = MAX(low, MIN(end, axis->in_size));
                bounds[2 * n + o] =
                        window->count_padding
                                ? padded_end - start
                                : MAX((int64_t)0, MIN(end, axis->in_size) - MAX(start, (int64_t)0));
        }
        set_bounds(axis, bounds);
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

Status pool_adaptive_windows(const RunContext *ctx, PoolAxis *axis, int64_t *bounds)
{
        int64_t n = axis->out_size;
        axis->step = 1;
        Work work = { .ctx = ctx };
        for (int64_t o = 0; o < n && !work_stops(&work, 16); o++) {
                bounds[o] = o * axis->in_size / n;
                bounds[n + o] = ((o + 1) * axis->in_size + n - 1) / n;
                bounds[2 * n + o] = bounds[n + o] - bounds[o];
        }
        set_bounds(axis, bounds);
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static int64_t window_count(const PoolAxis *axis, int64_t z, int64_t y, int64_t x)
{
        return saturating_product(saturating_product(axis[0].count[z], axis[1].count[y]), axis[2].count[x]);
}

typedef struct PoolRun {
        const RunContext *ctx;
        const Pool *pool;
        const void *in;
        void *out;
        int64_t *indices;
        _Atomic int failed;
} PoolRun;

// Windows of a line from x on that have as many taps and lie equally far apart: `n`, at most
// MOST_EVEN. One whose taps are many counts alone.
enum { LEAST_EVEN = 8, MOST_EVEN = 512, MOST_TAPS = 64 };
typedef struct PoolSpan {
        int64_t n, taps, step, delta;
} PoolSpan;

static PoolSpan even_windows(const PoolAxis *axis, int64_t x)
{
        int64_t most = MIN(axis->out_size - x, (int64_t)MOST_EVEN), reach = axis->high[x] - axis->low[x];
        PoolSpan span = { .n = 1, .taps = (reach + axis->step - 1) / axis->step, .step = axis->step };
        if (most < LEAST_EVEN || reach <= 0 || span.taps > MOST_TAPS)
                return span;
        span.delta = axis->low[x + 1] - axis->low[x];
        while (span.n < most && axis->low[x + span.n] - axis->low[x] == span.n * span.delta &&
               axis->high[x + span.n] - axis->low[x + span.n] == reach)
                span.n++;
        return span;
}

// Steps of the next block of a window of which `left` columns are left.
#define WINDOW_STEPS(left) MIN((left), (int64_t)WORK_BLOCK)

#define POOL(x)                 x##_f32
#define POOL_T                  float
#define POOL_LOWEST             (-INFINITY)
#define POOL_IS_NAN(x)          ((x) != (x))
#define POOL_ADD(x, y)          ((x) + (y))
#define POOL_DIVIDE(sum, count) ((count) == 0 ? 0 : (sum) / (count))
#include "core/kernels/pool/pool_planes.inc"
#undef POOL
#undef POOL_T
#define POOL(x) x##_f64
#define POOL_T  double
#include "core/kernels/pool/pool_planes.inc"
#undef POOL
#undef POOL_T
#undef POOL_LOWEST
#undef POOL_IS_NAN
#undef POOL_ADD
#undef POOL_DIVIDE
// Sums wrap, as PyTorch's do; so does the lowest number divided by -1.
static int64_t divide_wrapping(int64_t sum, int64_t count)
{
        if (count == -1)
                return (int64_t)(0 - (uint64_t)sum);
        return count == 0 ? 0 : sum / count;
}
#define POOL(x)                 x##_i64
#define POOL_T                  int64_t
#define POOL_LOWEST             INT64_MIN
#define POOL_IS_NAN(x)          false
#define POOL_ADD(x, y)          ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define POOL_DIVIDE(sum, count) divide_wrapping(sum, count)
#include "core/kernels/pool/pool_planes.inc"
#undef POOL
#undef POOL_T
#undef POOL_LOWEST

static Status over_planes(PoolRun *run, ParallelBody f32, ParallelBody f64, ParallelBody i64)
{
        const PoolAxis *axis = run->pool->axis;
        int64_t work = axis[0].in_size * axis[1].in_size * axis[2].in_size +
                       axis[0].out_size * axis[1].out_size * axis[2].out_size;
        Dtype dtype = run->pool->dtype;
        TRY(parallel_for(run->ctx, run->pool->planes, MAX((int64_t)1, 100000 / MAX(work, 1)),
                         dtype == DTYPE_F32   ? f32
                         : dtype == DTYPE_F64 ? f64
                                              : i64,
                         run));
        if (atomic_load(&run->failed))
                return fail(STATUS_TOO_LARGE, "pooling has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return run_poll(run->ctx);
}

Status pool_max(const RunContext *ctx, const Pool *pool, const void *in, void *out, int64_t *indices)
{
        PoolRun run = { .ctx = ctx, .pool = pool, .in = in, .out = out, .indices = indices };
        return indices == NULL
                       ? over_planes(&run, max_planes_f32, max_planes_f64, max_planes_i64)
                       : over_planes(&run, indexed_planes_f32, indexed_planes_f64, indexed_planes_i64);
}

Status pool_average(const RunContext *ctx, const Pool *pool, const void *in, void *out)
{
        PoolRun run = { .ctx = ctx, .pool = pool, .in = in, .out = out };
        return over_planes(&run, average_planes_f32, average_planes_f64, average_planes_i64);
}

// ---- half values, rounded at every step ----
enum { ROUNDING_STEPS = 8 };
typedef struct StepwiseTask {
        const RunContext *ctx;
        const Pool *pool;
        Dtype half;
        const float *in;
        float *out;
} StepwiseTask;

static float stepwise_window(const StepwiseTask *task, Work *work, const float *in, const int64_t *at)
{
        const PoolAxis *axis = task->pool->axis;
        float sum = 0;
        for (int64_t z = axis[0].low[at[0]]; z < axis[0].high[at[0]]; z++) {
                for (int64_t y = axis[1].low[at[1]]; y < axis[1].high[at[1]]; y++) {
                        const float *row =
                                in + (z * axis[1].in_size + y) * axis[2].in_size + axis[2].low[at[2]];
                        int64_t n = axis[2].high[at[2]] - axis[2].low[at[2]];
                        for (int64_t from = 0, end; (end = work_end(work, from, n, ROUNDING_STEPS)) > from;
                             from = end)
                                for (int64_t x = from; x < end; x++)
                                        sum = rounded_to_half(sum + row[x], task->half);
                        if (work->stops)
                                return sum;
                }
        }
        for (int d = 0; d < 3; d++)
                sum = rounded_to_half(sum / (float)axis[d].count[at[d]], task->half);
        return sum;
}

static void stepwise_planes(void *argument, int64_t begin, int64_t end)
{
        const StepwiseTask *task = argument;
        const PoolAxis *axis = task->pool->axis;
        int64_t in_plane = axis[0].in_size * axis[1].in_size * axis[2].in_size, at[3];
        float *out = task->out + begin * axis[0].out_size * axis[1].out_size * axis[2].out_size;
        Work work = { .ctx = task->ctx };
        for (int64_t plane = begin; plane < end && !work.stops; plane++) {
                for (at[0] = 0; at[0] < axis[0].out_size; at[0]++)
                        for (at[1] = 0; at[1] < axis[1].out_size; at[1]++)
                                for (at[2] = 0; at[2] < axis[2].out_size && !work_stops(&work, 1); at[2]++)
                                        *out++ =
                                                stepwise_window(task, &work, task->in + plane * in_plane, at);
        }
}

Status pool_average_stepwise(const RunContext *ctx, const Pool *pool, Dtype half, const float *in, float *out)
{
        StepwiseTask task = { ctx, pool, half, in, out };
        TRY(parallel_for(ctx, pool->planes, 1, stepwise_planes, &task));
        return run_poll(ctx);
}
