// SPDX-License-Identifier: Apache-2.0
// columns.c: a tile of columns goes through the rows of memory once. Where reduce.c keeps a lane, a
// chunk's sum or a level of the tree as one number, here it is one number for each column.
#include "core/kernels/reduce/columns.h"
#include <math.h>
#include <string.h>

enum { TILE_BYTES = 1024, TILE_LEAST = 4, MAX_LEVELS = 32 };
enum { REST = REDUCE_LANES, TOTAL, LOADED, MASK, LEVELS, DONE = LEVELS + MAX_LEVELS, N_STRIPS = DONE + 8 };

#define COL_PASTE(x, type, set) x##_##type##_##set
#define COL_NAME(x, type, set)  COL_PASTE(x, type, set)
#define COL_TYPE                f32
#define COL_T                   float
#define COL_ADDED               float
#define COL_FLOAT               int32_t // of as many bits
#define COL_AT                  int32_t
#define COL_NAN(x)              ((x) != (x))
#include "core/kernels/reduce/columns.inc"
#define COL_TYPE   f64
#define COL_T      double
#define COL_ADDED  double
#define COL_FLOAT  int64_t
#define COL_AT     int64_t
#define COL_NAN(x) ((x) != (x))
#include "core/kernels/reduce/columns.inc"
#define COL_TYPE   i64
#define COL_T      int64_t
#define COL_ADDED  uint64_t // sums wrap
#define COL_AT     int64_t
#define COL_NAN(x) 0
#include "core/kernels/reduce/columns.inc"
#define COL_TYPE   i32
#define COL_T      int32_t
#define COL_ADDED  uint32_t
#define COL_NAN(x) 0
#include "core/kernels/reduce/columns.inc"
#define COL_TYPE   u8
#define COL_T      uint8_t
#define COL_ADDED  uint8_t
#define COL_NAN(x) 0
#include "core/kernels/reduce/columns.inc"

#if defined(__x86_64__)
#define VARIANTS(DTYPE, type)                                                                                \
        { DTYPE, ISA_PORTABLE, &steps_##type##_portable }, { DTYPE, ISA_AVX2, &steps_##type##_avx2 },        \
        {                                                                                                    \
                DTYPE, ISA_AVX512, &steps_##type##_avx512                                                    \
        }
#else
#define VARIANTS(DTYPE, type)                                                                                \
        {                                                                                                    \
                DTYPE, ISA_PORTABLE, &steps_##type##_portable                                                \
        }
#endif
static const KernelVariant reduce_variants[] = {
        VARIANTS(DTYPE_F32, f32), VARIANTS(DTYPE_F64, f64), VARIANTS(DTYPE_I64, i64),
        VARIANTS(DTYPE_I32, i32), VARIANTS(DTYPE_U8, u8),
};
const KernelFamily reduce_family = { "reduce", ARRAY_LENGTH(reduce_variants), reduce_variants };

typedef struct ColumnTask {
        const RunContext *ctx;
        RowPlan plan;                 // its last dimension that is kept is that of the columns
        int64_t out_stride[MAX_RANK]; // of the results, by dimension that is kept
        const Reduction *reduction;
        const ReduceSteps *steps;
        ReduceKind kind;                 // in `steps`: counts are sums and extremes of 0 and 1
        int lanes;                       // of a row
        TileLoad load;                   // of elements; NULL: they are what the steps take
        TileLoad widen;                  // of results; NULL: they are stored as they are
        size_t stored_bytes, item_bytes; // of an element in memory and of a column's
        int64_t inner, n_tiles, tile;    // contiguous columns, their tiles, columns of a tile
        _Atomic int failed;
} ColumnTask;

// The columns of one tile. A strip is one number for each of them.
typedef struct Tile {
        const ColumnTask *task;
        Work work;
        const char *data;
        char *strips;
        int64_t n; // columns
} Tile;

static char *strip(const Tile *tile, int which)
{
        return tile->strips + which * TILE_BYTES;
}

static const void *row_of(const Tile *tile, int64_t i)
{
        const ColumnTask *task = tile->task;
        const RowPlan *plan = &task->plan;
        int64_t offset = plan->n_reduce == 1
                                 ? i * plan->reduce_stride[0]
                                 : row_offset(plan->n_reduce, plan->reduce_size, plan->reduce_stride, i);
        const char *row = tile->data + offset * (int64_t)task->stored_bytes;
        const bool wide = reduce_counts(task->reduction->kind) && task->item_bytes > 1;
        if (task->load == NULL && !wide)
                return row;
        if (task->load != NULL) {
                char *loaded = strip(tile, wide ? MASK : LOADED);
                task->load(row, (int64_t)task->stored_bytes, (size_t)tile->n, loaded);
                row = loaded;
        }
        if (wide)
                tile_loader(TILE_I64, DTYPE_BOOL)(row, 1, (size_t)tile->n, strip(tile, LOADED));
        if (task->kind == REDUCE_NORM)
                task->steps->multiply(strip(tile, LOADED), strip(tile, LOADED), tile->n);
        return strip(tile, LOADED);
}

// One row into a strip, whose first one it is or not.
static void take_row(Tile *tile, ReduceStep step, int which, int64_t i, bool first)
{
        const size_t bytes = (size_t)tile->n * tile->task->item_bytes;
        if (first && step != tile->task->steps->add_known) {
                memcpy(strip(tile, which), row_of(tile, i), bytes);
                return;
        }
        if (first)
                memset(strip(tile, which), 0, bytes);
        step(strip(tile, which), row_of(tile, i), tile->n);
}

// Rows begin .. begin + n: whole groups into the lanes, what is left over into REST.
static void take_rows(Tile *tile, ReduceStep step, int64_t begin, int64_t n)
{
        const int lanes = tile->task->lanes;
        int64_t at = 0, whole = n - n % lanes;
        for (; at < whole && !work_stops(&tile->work, lanes * tile->n); at += lanes) {
                for (int lane = 0; lane < lanes; lane++)
                        take_row(tile, step, lane, begin + at + lane, at == 0);
        }
        for (at = whole; at < n && !work_stops(&tile->work, tile->n); at++)
                take_row(tile, step, REST, begin + at, at == whole);
}

// As chunk_sum of reduce_rows.inc. Returns the strip that holds the sums.
static int sum_chunk(Tile *tile, int64_t begin, int64_t n)
{
        const ReduceSteps *steps = tile->task->steps;
        ReduceStep add = steps->add;
        take_rows(tile, tile->task->kind == REDUCE_NANSUM ? steps->add_known : add, begin, n);
        if (n < REDUCE_LANES)
                return REST;
        for (int width = REDUCE_LANES / 2; width > 0; width /= 2) {
                for (int i = 0; i < width; i++)
                        add(strip(tile, i), strip(tile, i + width), tile->n);
        }
        if (n % REDUCE_LANES != 0)
                add(strip(tile, 0), strip(tile, REST), tile->n);
        return 0;
}

// As row_sum there: a binary counter of partial sums. Adding to zeros at the end makes a -0 a 0, as
// rows do, which begin with zeros everywhere.
static void sum_rows(Tile *tile)
{
        ReduceStep add = tile->task->steps->add;
        int64_t n = tile->task->plan.row_length;
        size_t bytes = (size_t)tile->n * tile->task->item_bytes;
        uint64_t filled = 0;
        for (int64_t at = 0; at < n && !tile->work.stops; at += REDUCE_CHUNK) {
                int sum = sum_chunk(tile, at, MIN(n - at, (int64_t)REDUCE_CHUNK)), k = 0;
                for (; (filled >> k & 1) != 0; k++)
                        add(strip(tile, sum), strip(tile, LEVELS + k), tile->n);
                filled = (filled >> k | 1) << k;
                memcpy(strip(tile, LEVELS + k), strip(tile, sum), bytes);
        }
        memset(strip(tile, TOTAL), 0, bytes);
        for (int k = 0; k < MAX_LEVELS; k++) {
                if ((filled >> k & 1) != 0)
                        add(strip(tile, TOTAL), strip(tile, LEVELS + k), tile->n);
        }
        if (tile->task->kind == REDUCE_MEAN)
                tile->task->steps->divide(strip(tile, TOTAL), n, tile->n);
}

// As the other row functions: lanes over the whole row, then what is left over, then the lanes.
static void fold_rows(Tile *tile, ReduceStep step)
{
        int64_t n = tile->task->plan.row_length;
        const int lanes = tile->task->lanes;
        size_t bytes = (size_t)tile->n * tile->task->item_bytes;
        take_rows(tile, step, 0, n);
        int from = n % lanes != 0 ? REST : 0;
        memcpy(strip(tile, TOTAL), strip(tile, from), bytes);
        for (int lane = from == REST ? 0 : 1; lane < lanes && n >= lanes; lane++)
                step(strip(tile, TOTAL), strip(tile, lane), tile->n);
}

// Rows in order, the numbers of the extremes' rows into REST.
static void find_first(Tile *tile)
{
        const ReduceSteps *steps = tile->task->steps;
        const int64_t n = tile->task->plan.row_length;
        const size_t bytes = (size_t)tile->n * tile->task->item_bytes;
        memcpy(strip(tile, TOTAL), row_of(tile, 0), bytes);
        memset(strip(tile, REST), 0, bytes);
        for (int64_t i = 1; i < n && !work_stops(&tile->work, tile->n); i++)
                (tile->task->kind == REDUCE_MAX ? steps->first_larger : steps->first_smaller)(
                        strip(tile, TOTAL), strip(tile, REST), row_of(tile, i), i, tile->n);
}

// ---- results ----
// Elements of `bytes` each, one for each column, to `out`, of which the tile's begin at `first`.
static void put(const Tile *tile, const void *from, size_t bytes, void *out, int64_t first)
{
        const ColumnTask *task = tile->task;
        const RowPlan *plan = &task->plan;
        int64_t step = task->out_stride[plan->n_keep - 1];
        char *to = (char *)out +
                   row_offset(plan->n_keep, plan->keep_size, task->out_stride, first) * (int64_t)bytes;
        if (step == 1) {
                memcpy(to, from, (size_t)tile->n * bytes);
                return;
        }
        for (int64_t i = 0; i < tile->n; i++)
                memcpy(to + i * step * (int64_t)bytes, (const char *)from + i * (int64_t)bytes, bytes);
}

// Integers of a strip, as int64.
static const void *widened(const Tile *tile, TileLoad widen, int which)
{
        if (widen == NULL)
                return strip(tile, which);
        widen(strip(tile, which), (int64_t)tile->task->item_bytes, (size_t)tile->n, strip(tile, DONE));
        return strip(tile, DONE);
}

static void put_roots(const Tile *tile, int64_t first)
{
        const Reduction *reduction = tile->task->reduction;
        double *squares = (double *)(void *)strip(tile, TOTAL);
        float *narrow = (float *)(void *)strip(tile, DONE);
        for (int64_t i = 0; i < tile->n; i++)
                narrow[i] = (float)(squares[i] = sqrt(squares[i]));
        if (reduction->dtype == DTYPE_F32)
                put(tile, narrow, sizeof(float), reduction->out, first);
        else
                put(tile, squares, sizeof(double), reduction->out, first);
}

static void put_results(const Tile *tile, int64_t first)
{
        const ColumnTask *task = tile->task;
        const Reduction *reduction = task->reduction;
        if (task->kind == REDUCE_NORM) {
                put_roots(tile, first);
                return;
        }
        size_t bytes = task->widen == NULL ? task->item_bytes : sizeof(int64_t);
        put(tile, widened(tile, task->widen, TOTAL), bytes, reduction->out, first);
        if (reduction->extra == NULL)
                return;
        TileLoad widen = task->item_bytes == sizeof(int32_t) ? tile_loader(TILE_I64, DTYPE_I32) : NULL;
        put(tile, widened(tile, widen, REST), sizeof(int64_t), reduction->extra, first);
}

static void reduce_tile(Tile *tile, int64_t index)
{
        const ColumnTask *task = tile->task;
        const RowPlan *plan = &task->plan;
        ReduceKind kind = task->kind;
        int64_t first = index / task->n_tiles * task->inner + index % task->n_tiles * task->tile;
        tile->n = MIN(task->tile, task->inner - index % task->n_tiles * task->tile);
        tile->data = (const char *)task->reduction->data +
                     row_offset(plan->n_keep, plan->keep_size, plan->keep_stride, first) *
                             (int64_t)task->stored_bytes;
        if (task->reduction->extra != NULL)
                find_first(tile);
        else if (kind == REDUCE_SUM || kind == REDUCE_NANSUM || kind == REDUCE_MEAN)
                sum_rows(tile);
        else
                fold_rows(tile, kind == REDUCE_PROD   ? task->steps->multiply
                                : kind == REDUCE_NORM ? task->steps->add
                                : kind == REDUCE_MAX  ? task->steps->larger
                                                      : task->steps->smaller);
        put_results(tile, first);
}

static void reduce_tiles(void *argument, int64_t begin, int64_t end)
{
        ColumnTask *task = argument;
        Scratch scratch;
        if (scratch_init(&scratch, task->ctx, N_STRIPS, TILE_BYTES) != STATUS_OK) {
                atomic_store(&task->failed, 1);
                return;
        }
        Tile tile = { .task = task, .work = { .ctx = task->ctx }, .strips = scratch.data };
        for (int64_t i = begin; i < end && !tile.work.stops; i++)
                reduce_tile(&tile, i);
        scratch_deinit(&scratch);
}

// Of one element it is the magnitude, which has no square that could overflow.
static bool is_euclidean(const RowPlan *plan, const Reduction *reduction)
{
        return reduction->kind == REDUCE_NORM && reduction->p == 2 && plan->row_length > 1;
}

// The dimension whose elements lie side by side; -1: none that is kept.
static int columns_of(const RowPlan *plan)
{
        for (int d = plan->n_keep - 1; d >= 0; d--)
                if (plan->keep_stride[d] == 1 && plan->keep_size[d] >= TILE_LEAST)
                        return d;
        return -1;
}

bool columns_fit(const RowPlan *plan, const Reduction *reduction)
{
        bool made = reduction->kind <= REDUCE_NONZERO || reduction->kind == REDUCE_NANSUM ||
                    is_euclidean(plan, reduction);
        const bool finds = reduction->kind == REDUCE_MAX || reduction->kind == REDUCE_MIN;
        return made && (reduction->extra == NULL || finds) && columns_of(plan) >= 0 && plan->n_reduce > 0 &&
               plan->row_length > 0 && plan->row_length <= INT32_MAX;
}

// Results are contiguous in the order of the dimensions as they were.
static void put_columns_last(ColumnTask *task)
{
        RowPlan *plan = &task->plan;
        int last = plan->n_keep - 1, columns = columns_of(plan);
        int64_t step = 1;
        for (int d = last; d >= 0; step *= plan->keep_size[d--])
                task->out_stride[d] = step;
        int64_t size = plan->keep_size[columns], stride = task->out_stride[columns];
        for (int d = columns; d < last; d++) {
                plan->keep_size[d] = plan->keep_size[d + 1];
                plan->keep_stride[d] = plan->keep_stride[d + 1];
                task->out_stride[d] = task->out_stride[d + 1];
        }
        plan->keep_size[last] = size;
        plan->keep_stride[last] = 1;
        task->out_stride[last] = stride;
}

Status columns_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction)
{
        const ReduceKind kind = reduction->kind;
        const Dtype dtype = kind == REDUCE_NONZERO ? DTYPE_I64
                            : kind == REDUCE_NORM  ? DTYPE_F64
                                                   : reduce_item(reduction);
        const bool truth = reduce_counts(kind) || reduction->stored == DTYPE_BOOL;
        const size_t item_bytes = dtype_info[dtype].bytes;
        ColumnTask task = { .ctx = ctx,
                            .plan = *plan,
                            .reduction = reduction,
                            .steps = kernel_variant(&reduce_family, dtype),
                            .kind = kind == REDUCE_ANY       ? REDUCE_MAX
                                    : kind == REDUCE_ALL     ? REDUCE_MIN
                                    : kind == REDUCE_NONZERO ? REDUCE_SUM
                                                             : kind,
                            .lanes = kind == REDUCE_NORM ? REDUCE_DOUBLES : REDUCE_LANES,
                            .load = kind == REDUCE_NORM ? tile_loader(TILE_F64, reduction->stored)
                                                        : reduce_loader(reduction),
                            .widen = dtype == DTYPE_U8 || dtype == DTYPE_I32
                                             ? tile_loader(TILE_I64, truth ? DTYPE_BOOL : dtype)
                                             : NULL,
                            .stored_bytes = dtype_info[reduction->stored].bytes,
                            .item_bytes = item_bytes,
                            .tile = TILE_BYTES / (int64_t)item_bytes };
        put_columns_last(&task);
        task.inner = task.plan.keep_size[plan->n_keep - 1];
        task.n_tiles = (task.inner + task.tile - 1) / task.tile;
        int64_t cost = saturating_product(plan->row_length, MIN(task.tile, task.inner));
        TRY(parallel_for(ctx, plan->n_rows / task.inner * task.n_tiles, MAX((int64_t)1, 65536 / cost),
                         reduce_tiles, &task));
        if (atomic_load(&task.failed))
                return fail_no_scratch();
        return run_poll(ctx);
}
