// SPDX-License-Identifier: Apache-2.0
// grid_sample.c: a position becomes a list of elements with weights, which is then applied to every
// channel. Positions that are far outside have no elements; those that are not finite give what
// PyTorch's weights make of them.
#include "core/kernels/pool/grid_sample.h"

#include <math.h>

enum { MAX_TAPS = 16, BLOCK = 64 };

// Elements of a plane and their weights.
typedef struct Taps {
        int n;
        bool is_nan; // the position has no weights
        int64_t at[MAX_TAPS];
        double weight[MAX_TAPS];
} Taps;

// From [-1, 1] to elements.
static double to_element(double x, int64_t size, bool corners)
{
        return corners ? (x + 1) / 2 * (double)(size - 1) : ((x + 1) * (double)size - 1) / 2;
}

// The same in float32 with PyTorch's roundings: which element is nearest depends on them, and where
// a position far outside is reflected to. Its kernel of volumes has no fused multiplications.
static float to_element_f(float x, int64_t size, const GridSample *task)
{
        const float n = (float)(task->corners ? size - 1 : size);
        if (task->rank == 2)
                return task->corners ? (x + 1) * (n / 2) : fmaf(x + 1, n / 2, -0.5F);
        return task->corners ? (x + 1) / 2 * n : ((x + 1) * n - 1) / 2;
}

// NaN becomes the first element of images and the last of volumes: PyTorch has two kernels.
static double clipped(const GridSample *task, double x, int64_t size)
{
        if (x != x)
                return task->rank == 2 ? 0 : (double)(size - 1);
        return fmin(fmax(x, 0), (double)(size - 1));
}

static double rounded(const GridSample *task, double x)
{
        return task->dtype == DTYPE_F32 ? (double)(float)x : x;
}

// Of volumes. PyTorch counts the flips in an int; what is beyond it becomes even.
static double reflected_deep(const GridSample *task, double x, double low, double span)
{
        const double far = fabs(rounded(task, x - low)), flips = floor(rounded(task, far / span));
        const double rest = fmod(far, span);
        return !(flips < 0x1p31) || fmod(flips, 2) == 0 ? rounded(task, rest + low)
                                                        : rounded(task, span - rest + low);
}

// With PyTorch's roundings, which decide where positions far outside end.
static double reflected(const GridSample *task, double x, int64_t size)
{
        const double low = task->corners ? 0 : -0.5, span = (double)(task->corners ? size - 1 : size);
        if (span == 0)
                return 0;
        if (task->rank == 3)
                return reflected_deep(task, x, low, span);
        const double far = fabs(rounded(task, x - low)), flips = trunc(rounded(task, far / (2 * span)));
        const double rest = rounded(task, far - rounded(task, flips * (2 * span)));
        const double back = rounded(task, 2 * span - rest);
        return rounded(task, (rest != rest || rest < back ? rest : back) + low);
}

static double padded(const GridSample *task, double x, int64_t size)
{
        if (task->padding == GRID_BORDER)
                return clipped(task, x, size);
        if (task->padding == GRID_REFLECTION)
                return clipped(task, reflected(task, x, size), size);
        return x;
}

static bool is_inside(double x, int64_t size)
{
        return x >= 0 && x <= (double)(size - 1);
}

static void add_tap(const GridSample *task, const double at[3], double weight, Taps *taps)
{
        if (!is_inside(at[0], task->size[0]) || !is_inside(at[1], task->size[1]) ||
            !is_inside(at[2], task->size[2]))
                return;
        taps->at[taps->n] =
                ((int64_t)at[0] * task->size[1] + (int64_t)at[1]) * task->size[2] + (int64_t)at[2];
        taps->weight[taps->n++] = weight;
}

// `x`: depth, height, width in elements, padded.
static void linear_taps(const GridSample *task, const double x[3], Taps *taps)
{
        const int n = task->rank == 2 ? 4 : 8;
        for (int corner = 0; corner < n; corner++) {
                double at[3], weight = 1;
                for (int d = 0; d < 3; d++) {
                        double below = floor(x[d]), part = x[d] - below;
                        bool upper = (corner >> (2 - d) & 1) != 0;
                        at[d] = upper ? below + 1 : below;
                        weight *= d == 0 && task->rank == 2 ? 1 : upper ? part : 1 - part;
                }
                add_tap(task, at, weight, taps);
        }
}

// Weights of four neighbours by cubic convolution with a = -0.75 (Keys), as resizing has them.
static void cubic_weights(double t, double out[4])
{
        const double a = -0.75;
        for (int k = 0; k < 4; k++) {
                double x = fabs(t - (k - 1));
                out[k] = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        }
}

// The elements around an unpadded position; each of them is padded.
static void cubic_taps(const GridSample *task, const double x[3], Taps *taps)
{
        double rows[4], columns[4], at[3] = { 0 };
        cubic_weights(x[1] - floor(x[1]), rows);
        cubic_weights(x[2] - floor(x[2]), columns);
        for (int k = 0; k < MAX_TAPS; k++) {
                at[1] = trunc(padded(task, floor(x[1]) + k / 4 - 1, task->size[1]));
                at[2] = trunc(padded(task, floor(x[2]) + k % 4 - 1, task->size[2]));
                add_tap(task, at, rows[k / 4] * columns[k % 4], taps);
        }
}

// `position`: x, y (and z) as the grid has them.
static void find_taps(const GridSample *task, const double position[3], bool single, Taps *taps)
{
        double x[3] = { 0 };
        taps->n = 0;
        taps->is_nan = false;
        for (int i = 0; i < task->rank; i++) {
                int d = 2 - i;
                x[d] = single ? (double)to_element_f((float)position[i], task->size[d], task)
                              : to_element(position[i], task->size[d], task->corners);
                if (task->mode != GRID_CUBIC)
                        x[d] = padded(task, x[d], task->size[d]);
                if (!isfinite(x[d])) { // the weights of images are infinite then, even outside
                        taps->is_nan = task->rank == 2 && task->mode != GRID_NEAREST;
                        return;
                }
        }
        if (task->mode == GRID_CUBIC) {
                cubic_taps(task, x, taps);
        } else if (task->mode == GRID_LINEAR) {
                linear_taps(task, x, taps);
        } else {
                for (int d = 0; d < 3; d++)
                        x[d] = nearbyint(x[d]);
                add_tap(task, x, 1, taps);
        }
}

// A block of places of one image: taps are found once and applied to channel after channel.
typedef struct Block {
        const GridSample *task;
        int64_t image, first;
        int n;
        Taps taps[BLOCK];
} Block;

#define SAMPLE(T)                                                                                            \
        static void find_##T(Block *block)                                                                   \
        {                                                                                                    \
                const GridSample *task = block->task;                                                        \
                const T *grid =                                                                              \
                        (const T *)task->grid + (block->image * task->places + block->first) * task->rank;   \
                for (int i = 0; i < block->n; i++, grid += task->rank) {                                     \
                        double x[3] = { (double)grid[0], (double)grid[1],                                    \
                                        task->rank == 3 ? (double)grid[2] : 0 };                             \
                        find_taps(task, x, sizeof(T) == sizeof(float), &block->taps[i]);                     \
                }                                                                                            \
        }                                                                                                    \
        static inline T tapped_##T(const T *plane, const Taps *taps)                                         \
        {                                                                                                    \
                double sum = taps->is_nan ? NAN : 0;                                                         \
                for (int k = 0; k < taps->n; k++)                                                            \
                        sum += (double)plane[taps->at[k]] * taps->weight[k];                                 \
                return (T)sum;                                                                               \
        }                                                                                                    \
        static inline T tapped_4_##T(const T *plane, const Taps *taps)                                       \
        {                                                                                                    \
                double sum = 0;                                                                              \
                for (int k = 0; k < 4; k++)                                                                  \
                        sum += (double)plane[taps->at[k]] * taps->weight[k];                                 \
                return (T)sum;                                                                               \
        }                                                                                                    \
        static void apply_##T(const Block *block, int64_t channel)                                           \
        {                                                                                                    \
                const GridSample *task = block->task;                                                        \
                const int64_t plane = block->image * task->channels + channel;                               \
                const T *in =                                                                                \
                        (const T *)task->image + plane * task->size[0] * task->size[1] * task->size[2];      \
                T *out = (T *)task->out + plane * task->places + block->first;                               \
                for (int i = 0; i < block->n; i++) {                                                         \
                        const Taps *taps = &block->taps[i];                                                  \
                        out[i] = taps->n == 4 ? tapped_4_##T(in, taps) : tapped_##T(in, taps);               \
                }                                                                                            \
        }
SAMPLE(float)
SAMPLE(double)

typedef struct GridRun {
        const RunContext *ctx;
        const GridSample *task;
        int64_t blocks; // of an image
} GridRun;

static void run_blocks(void *argument, int64_t begin, int64_t end)
{
        enum { STEPS = 128 };
        const GridRun *run = argument;
        const GridSample *task = run->task;
        const bool single = task->dtype == DTYPE_F32;
        Work work = { .ctx = run->ctx };
        Block block = { .task = task };
        for (int64_t i = begin; i < end && !work_stops(&work, STEPS * BLOCK); i++) {
                block.image = i / run->blocks;
                block.first = i % run->blocks * BLOCK;
                block.n = (int)MIN(task->places - block.first, (int64_t)BLOCK);
                if (single)
                        find_float(&block);
                else
                        find_double(&block);
                for (int64_t c = 0; c < task->channels && !work_stops(&work, MAX_TAPS * BLOCK); c++) {
                        if (single)
                                apply_float(&block, c);
                        else
                                apply_double(&block, c);
                }
        }
}

Status grid_sample_run(const RunContext *ctx, const GridSample *task)
{
        GridRun run = { ctx, task, (task->places + BLOCK - 1) / BLOCK };
        const int64_t n = task->batch * run.blocks;
        TRY(parallel_for(ctx, n, run_share(ctx, n, 16), run_blocks, &run));
        return run_poll(ctx);
}
