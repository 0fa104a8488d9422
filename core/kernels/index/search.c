// SPDX-License-Identifier: Apache-2.0
// search.c: binary search, bins, and the sums of windows. Each function is written once per type.
#include "core/kernels/index/search.h"

#include <math.h>
#include <string.h>

// The comparison is negated so that a NaN in the sorted row counts as below, as in PyTorch.
#define SEARCH_ROWS(T)                                                                                       \
        static void search_row_##T(const Search *task, const T *sorted, const int64_t *order, T value,       \
                                   int64_t *out)                                                             \
        {                                                                                                    \
                int64_t low = 0, high = task->n_sorted;                                                      \
                while (low < high) {                                                                         \
                        int64_t middle = low + (high - low) / 2;                                             \
                        T at = sorted[order == NULL ? middle : order[middle]];                               \
                        bool below = task->right ? !(at > value) : !(at >= value);                           \
                        low = below ? middle + 1 : low;                                                      \
                        high = below ? high : middle;                                                        \
                }                                                                                            \
                *out = low;                                                                                  \
        }
SEARCH_ROWS(float)
SEARCH_ROWS(double)
SEARCH_ROWS(int64_t)

static Status check_order(const Search *task)
{
        int64_t n = task->order == NULL      ? 0
                    : task->sorted_step == 0 ? task->n_sorted
                                             : task->rows * task->n_sorted;
        for (int64_t i = 0; i < n; i++) {
                if (task->order[i] < 0 || task->order[i] >= task->n_sorted)
                        return fail(STATUS_INDEX, "torch.searchsorted(): sorter index out of range");
        }
        return STATUS_OK;
}

Status search_run(const RunContext *ctx, const Search *task)
{
        enum { STEPS = 64 };
        Work work = { .ctx = ctx };
        TRY(check_order(task));
        for (int64_t i = 0; i < task->rows * task->n_values && !work_stops(&work, STEPS); i++) {
                int64_t at = i / task->n_values * task->sorted_step;
                const int64_t *order = task->order == NULL ? NULL : task->order + at;
                if (task->dtype == DTYPE_F32)
                        search_row_float(task, (const float *)task->sorted + at, order,
                                         ((const float *)task->values)[i], &task->out[i]);
                else if (task->dtype == DTYPE_F64)
                        search_row_double(task, (const double *)task->sorted + at, order,
                                          ((const double *)task->values)[i], &task->out[i]);
                else
                        search_row_int64_t(task, (const int64_t *)task->sorted + at, order,
                                           ((const int64_t *)task->values)[i], &task->out[i]);
        }
        return run_poll(ctx);
}

static void clear(Work *work, void *out, int64_t n_bytes)
{
        for (int64_t at = 0; at < n_bytes && !work_stops(work, WORK_BLOCK / 8); at += WORK_BLOCK)
                memset((char *)out + at, 0, (size_t)MIN(WORK_BLOCK, n_bytes - at));
}

// ---- bins ----
#define HISTOGRAM(T)                                                                                         \
        static void histogram_##T(const RunContext *ctx, const Histogram *task)                              \
        {                                                                                                    \
                const T *data = task->data, low = (T)task->low, high = (T)task->high;                        \
                T *out = task->out;                                                                          \
                Work work = { .ctx = ctx };                                                                  \
                clear(&work, out, task->n_bins *(int64_t)sizeof(T));                                         \
                for (int64_t i = 0; i < task->n && !work_stops(&work, 4); i++) {                             \
                        if (!(data[i] >= low && data[i] <= high))                                            \
                                continue;                                                                    \
                        int64_t bin = (int64_t)((data[i] - low) / (high - low) * (T)task->n_bins);           \
                        out[bin < task->n_bins ? bin : task->n_bins - 1] += 1;                               \
                }                                                                                            \
        }                                                                                                    \
        static void range_##T(const RunContext *ctx, Histogram *task)                                        \
        {                                                                                                    \
                const T *data = task->data;                                                                  \
                T low = data[0], high = data[0];                                                             \
                Work work = { .ctx = ctx };                                                                  \
                for (int64_t i = 0; i < task->n && !work_stops(&work, 1); i++) {                             \
                        low = data[i] < low || data[i] != data[i] ? data[i] : low;                           \
                        high = data[i] > high || data[i] != data[i] ? data[i] : high;                        \
                }                                                                                            \
                task->low = (double)low;                                                                     \
                task->high = (double)high;                                                                   \
        }
HISTOGRAM(float)
HISTOGRAM(double)

Status histogram_run(const RunContext *ctx, const Histogram *task)
{
        if (task->dtype == DTYPE_F32)
                histogram_float(ctx, task);
        else
                histogram_double(ctx, task);
        return run_poll(ctx);
}

Status histogram_range(const RunContext *ctx, Histogram *task)
{
        if (task->dtype == DTYPE_F32)
                range_float(ctx, task);
        else
                range_double(ctx, task);
        return run_poll(ctx);
}

// ---- windows ----
// A row of windows' elements (i, j) goes into one row of the plane, in blocks between polls.
#define FOLD(T, ADD)                                                                                         \
        static void fold_##T(const RunContext *ctx, const Fold *task)                                        \
        {                                                                                                    \
                const int64_t plane = task->size[0] * task->size[1], n = task->count[1];                     \
                const int64_t per_element = task->count[0];                                                  \
                const int64_t rows = task->kernel[0] * task->kernel[1] * per_element;                        \
                const T *from = task->columns;                                                               \
                T *out = task->out;                                                                          \
                Work work = { .ctx = ctx };                                                                  \
                clear(&work, out, task->planes *plane *(int64_t)sizeof(T));                                  \
                for (int64_t r = 0; r < task->planes * rows && !work_stops(&work, 8); r++) {                 \
                        int64_t element = r / per_element % (task->kernel[0] * task->kernel[1]);             \
                        int64_t i = element / task->kernel[1], j = element % task->kernel[1];                \
                        int64_t row = r % per_element * task->stride[0] - task->padding[0] +                 \
                                      i * task->dilation[0];                                                 \
                        if (row < 0 || row >= task->size[0])                                                 \
                                continue;                                                                    \
                        T *to = out + r / rows * plane + row * task->size[1];                                \
                        int64_t first = j * task->dilation[1] - task->padding[1];                            \
                        for (int64_t x = 0; x < n; x++) {                                                    \
                                int64_t column = x * task->stride[1] + first;                                \
                                if (x % WORK_BLOCK == 0 && work_stops(&work, 2 * WORK_BLOCK))                \
                                        return;                                                              \
                                if (column >= 0 && column < task->size[1])                                   \
                                        to[column] = ADD(to[column], from[r * n + x]);                       \
                        }                                                                                    \
                }                                                                                            \
        }
#define PLAIN(a, b)   ((a) + (b))
#define MODULAR(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
FOLD(float, PLAIN)
FOLD(double, PLAIN)
FOLD(int64_t, MODULAR)

Status fold_run(const RunContext *ctx, const Fold *task)
{
        if (task->dtype == DTYPE_F32)
                fold_float(ctx, task);
        else if (task->dtype == DTYPE_F64)
                fold_double(ctx, task);
        else
                fold_int64_t(ctx, task);
        return run_poll(ctx);
}
