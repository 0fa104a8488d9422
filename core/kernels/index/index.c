// SPDX-License-Identifier: Apache-2.0
// index.c: gathers are split over outputs; scatters run on one thread in row-major order of the
// index, so that "the last write wins" and sums come out the same every time.
#include "core/kernels/index/index.h"
#include <string.h>

enum { STEPS_PER_INDEX = 8 };

static inline void copy_element(void *to, const void *from, size_t n_bytes)
{
        switch (n_bytes) {
        case 4:
                memcpy(to, from, 4);
                break;
        case 8:
                memcpy(to, from, 8);
                break;
        default:
                memcpy(to, from, n_bytes);
        }
}

static int64_t offset_of(int n, const int64_t *size, const int64_t *stride, int64_t index)
{
        int64_t offset = 0;
        for (int d = n - 1; d >= 0; d--) {
                offset += index % size[d] * stride[d];
                index /= size[d];
        }
        return offset;
}

static int64_t product(int n, const int64_t *size)
{
        int64_t out = 1;
        for (int d = 0; d < n; d++)
                out *= size[d];
        return out;
}

// ---- rows ----
typedef struct RowsTask {
        const RunContext *ctx;
        const IndexRows *rows;
        const char *from;
        char *out;
} RowsTask;

static void copy_rows(void *argument, int64_t begin, int64_t end)
{
        const RowsTask *task = argument;
        const IndexRows *rows = task->rows;
        size_t block = rows->block_bytes;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin; i < end && !work.stops; i++) {
                int64_t from = i / rows->n_indices * rows->n_from + rows->indices[i % rows->n_indices];
                const char *source = task->from + (size_t)from * block;
                char *target = task->out + (size_t)i * block;
                for (int64_t at = 0, stop; (stop = work_end(&work, at, (int64_t)block, 1)) > at; at = stop)
                        memcpy(target + at, source + at, (size_t)(stop - at));
        }
}

Status index_rows(const RunContext *ctx, const IndexRows *rows, const void *from, void *out)
{
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < rows->n_indices && !work_stops(&work, 1); i++) {
                if (rows->indices[i] < 0 || rows->indices[i] >= rows->n_from)
                        return fail(STATUS_INDEX, "index out of range in self");
        }
        if (rows->block_bytes == 0 || work.stops)
                return run_poll(ctx);
        RowsTask task = { ctx, rows, from, out };
        TRY(parallel_for(ctx, rows->outer * rows->n_indices,
                         MAX((int64_t)1, 262144 / (int64_t)rows->block_bytes), copy_rows, &task));
        return run_poll(ctx);
}

// ---- along one dimension ----
typedef struct WalkTask {
        const RunContext *ctx;
        const IndexWalk *walk;
        const char *indexed;
        char *plain;
        int rank;            // dimensions before the row
        int64_t row;         // elements that share an index and are contiguous on both sides
        _Atomic int64_t bad; // row whose index is out of range, -1: none
} WalkTask;

Status index_walk_init(const RunContext *ctx, const void *data, const TensorMeta *positions, IndexWalk *walk,
                       Dense *index, int64_t *out_n)
{
        TensorMeta own = *positions;
        int64_t step = 1;
        walk->rank = own.rank;
        for (int d = own.rank - 1; d >= 0; d--) {
                walk->size[d] = own.size[d];
                if (own.stride[d] == 0)
                        own.size[d] = 1;
                walk->index_stride[d] = own.size[d] == 1 ? 0 : step;
                step *= own.size[d];
        }
        TRY(dense_init(index, ctx, data, &own, DTYPE_I64));
        walk->index = index->data;
        *out_n = step;
        return STATUS_OK;
}

// Finds the row; returns how many there are.
static int64_t find_rows(WalkTask *task)
{
        const IndexWalk *walk = task->walk;
        task->row = 1;
        task->rank = walk->rank;
        for (int d = walk->rank - 1; d > walk->dim; d--, task->rank--) {
                bool joins = walk->index_stride[d] == 0 && walk->indexed_stride[d] == task->row &&
                             walk->plain_stride[d] == task->row;
                if (walk->size[d] != 1 && !joins)
                        break;
                task->row *= walk->size[d];
        }
        return task->row == 0 ? 0 : product(task->rank, walk->size);
}

typedef struct WalkPair {
        int64_t index, indexed, plain; // the index as it was given, offsets in elements
} WalkPair;

// False: the index is out of range.
static bool resolve(const WalkTask *task, int64_t position, WalkPair *out)
{
        const IndexWalk *walk = task->walk;
        int64_t index_at = 0, indexed = 0, plain = 0;
        for (int d = task->rank - 1; d >= 0; d--) {
                int64_t at = position % walk->size[d];
                position /= walk->size[d];
                index_at += at * walk->index_stride[d];
                indexed += (d == walk->dim ? 0 : at) * walk->indexed_stride[d];
                plain += at * walk->plain_stride[d];
        }
        int64_t index = walk->index[index_at];
        *out = (WalkPair){ .index = index, .plain = plain };
        if (walk->wraps && index < 0)
                index += walk->n_indexed;
        if (index < 0 || index >= walk->n_indexed)
                return false;
        out->indexed = indexed + index * walk->indexed_stride[walk->dim];
        return true;
}

static Status fail_index(const IndexWalk *walk, int64_t index)
{
        return fail(STATUS_INDEX, "index %ld is out of bounds for dimension %d with size %ld", (long)index,
                    walk->dim, (long)walk->n_indexed);
}

static void copy_bytes(Work *work, char *to, const char *from, int64_t n_bytes)
{
        for (int64_t at = 0, end; (end = work_end(work, at, n_bytes, 1)) > at; at = end)
                memcpy(to + at, from + at, (size_t)(end - at));
}

static void gather_pieces(void *argument, int64_t begin, int64_t end)
{
        WalkTask *task = argument;
        int64_t bytes = dtype_info[task->walk->dtype].bytes;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, STEPS_PER_INDEX); i++) {
                WalkPair pair;
                if (!resolve(task, i, &pair)) {
                        atomic_store(&task->bad, i);
                        return;
                }
                char *to = task->plain + pair.plain * bytes;
                const char *from = task->indexed + pair.indexed * bytes;
                if (task->row == 1)
                        copy_element(to, from, (size_t)bytes);
                else
                        copy_bytes(&work, to, from, task->row * bytes);
        }
}

Status index_gather(const RunContext *ctx, const IndexWalk *walk, const void *indexed, void *plain)
{
        WalkTask task = { .ctx = ctx, .walk = walk, .indexed = indexed, .plain = plain, .bad = -1 };
        int64_t n = find_rows(&task);
        TRY(parallel_for(ctx, n, 16384 / MIN(MAX(task.row, 1), 16384), gather_pieces, &task));
        int64_t bad = atomic_load(&task.bad);
        WalkPair pair;
        if (bad >= 0 && !resolve(&task, bad, &pair))
                return fail_index(walk, pair.index);
        return run_poll(ctx);
}

static double combine_f64(ScatterKind kind, double a, double b)
{
        switch (kind) {
        case SCATTER_ADD:
                return a + b;
        case SCATTER_MULTIPLY:
                return a * b;
        case SCATTER_MAX:
                return b > a || b != b ? b : a;
        case SCATTER_MIN:
                return b < a || b != b ? b : a;
        case SCATTER_COPY:
                break;
        }
        return b;
}

static int64_t combine_i64(ScatterKind kind, int64_t a, int64_t b)
{
        switch (kind) {
        case SCATTER_ADD:
                return (int64_t)((uint64_t)a + (uint64_t)b);
        case SCATTER_MULTIPLY:
                return (int64_t)((uint64_t)a * (uint64_t)b);
        case SCATTER_MAX:
                return MAX(a, b);
        case SCATTER_MIN:
                return MIN(a, b);
        case SCATTER_COPY:
                break;
        }
        return b;
}

// Sums and products of complex numbers, by the plain formulas; they have no order.
#define COMBINE_COMPLEX(name, type)                                                                          \
        static void name(ScatterKind kind, type *to, const type *from)                                       \
        {                                                                                                    \
                const type re = to[0], im = to[1];                                                           \
                to[0] = kind == SCATTER_ADD ? re + from[0] : re * from[0] - im * from[1];                    \
                to[1] = kind == SCATTER_ADD ? im + from[1] : re * from[1] + im * from[0];                    \
        }
COMBINE_COMPLEX(combine_c64, float)
COMBINE_COMPLEX(combine_c128, double)

static void combine(ScatterKind kind, Dtype dtype, void *to, const void *from)
{
        if (kind == SCATTER_COPY)
                copy_element(to, from, dtype_info[dtype].bytes);
        else if (dtype == DTYPE_F32 && kind == SCATTER_ADD)
                *(float *)to += *(const float *)from;
        else if (dtype == DTYPE_C64)
                combine_c64(kind, to, from);
        else if (dtype == DTYPE_C128)
                combine_c128(kind, to, from);
        else if (dtype_is_float(dtype))
                element_from_f64(dtype, to,
                                 combine_f64(kind, element_as_f64(dtype, to), element_as_f64(dtype, from)));
        else
                element_from_i64(dtype, to,
                                 combine_i64(kind, element_as_i64(dtype, to), element_as_i64(dtype, from)));
}

// to[i] = to[i] op from[i]; the two are apart.
static void combine_row(Work *work, ScatterKind kind, Dtype dtype, void *to, const void *from, int64_t n)
{
        int64_t bytes = dtype_info[dtype].bytes;
        if (kind == SCATTER_COPY) {
                copy_bytes(work, to, from, n * bytes);
        } else if (kind == SCATTER_ADD && dtype == DTYPE_F32) {
                float *sums = to;
                const float *terms = from;
                for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                        for (int64_t i = at; i < end; i++)
                                sums[i] += terms[i];
        } else {
                for (int64_t i = 0; i < n && !work_stops(work, STEPS_PER_INDEX); i++)
                        combine(kind, dtype, (char *)to + i * bytes, (const char *)from + i * bytes);
        }
}

Status index_scatter(const RunContext *ctx, const IndexWalk *walk, ScatterKind kind, void *indexed,
                     const void *plain)
{
        WalkTask task = { .ctx = ctx, .walk = walk };
        int64_t n = find_rows(&task), bytes = dtype_info[walk->dtype].bytes;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, STEPS_PER_INDEX); i++) {
                WalkPair pair;
                if (!resolve(&task, i, &pair))
                        return fail_index(walk, pair.index);
                char *to = (char *)indexed + pair.indexed * bytes;
                const char *from = (const char *)plain + pair.plain * bytes;
                if (task.row == 1)
                        combine(kind, walk->dtype, to, from);
                else
                        combine_row(&work, kind, walk->dtype, to, from, task.row);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

// ---- by tables ----
typedef struct TableTask {
        const RunContext *ctx;
        const IndexTable *table;
        const char *from;
        char *to;
        bool accumulate;
        int64_t block; // elements of one contiguous run inside the dimensions after the table; 1: none
        int n_after;   // dimensions that are left then
        int64_t n_blocks;
} TableTask;

// The longest run at the end of the dimensions after the table that is contiguous on both sides.
static void find_block(TableTask *task)
{
        const IndexTable *table = task->table;
        task->block = 1;
        task->n_after = table->n_after;
        while (task->n_after > 0) {
                int d = task->n_after - 1;
                if (table->after_size[d] != 1 &&
                    (table->after_from[d] != task->block || table->after_to[d] != task->block))
                        break;
                task->block *= table->after_size[d];
                task->n_after--;
        }
        task->n_blocks = product(task->n_after, table->after_size);
}

static void move_block(const TableTask *task, Work *work, int64_t from, int64_t to)
{
        Dtype dtype = task->table->dtype;
        int64_t bytes = dtype_info[dtype].bytes;
        char *target = task->to + to * bytes;
        const char *source = task->from + from * bytes;
        if (!task->accumulate && task->block == 1) {
                copy_element(target, source, (size_t)bytes);
        } else if (!task->accumulate) {
                copy_bytes(work, target, source, task->block * bytes);
        } else {
                combine_row(work, SCATTER_ADD, dtype, target, source, task->block);
        }
}

// Single elements: entries begin..end - 1 of the table. place: the offsets on both sides by the
// dimensions before the table.
static void move_elements(const TableTask *task, Work *work, const int64_t place[2], int64_t begin,
                          int64_t end)
{
        const int64_t *from = task->table->from, *to = task->table->to;
        size_t bytes = dtype_info[task->table->dtype].bytes;
        const char *source = task->from + place[0] * (int64_t)bytes;
        char *target = task->to + place[1] * (int64_t)bytes;
        for (int64_t at = begin, stop; (stop = work_end(work, at, end, 2)) > at; at = stop) {
                if (bytes == 4) {
                        for (int64_t i = at; i < stop; i++)
                                memcpy(target + to[i] * 4, source + from[i] * 4, 4);
                } else {
                        for (int64_t i = at; i < stop; i++)
                                copy_element(target + to[i] * (int64_t)bytes,
                                             source + from[i] * (int64_t)bytes, bytes);
                }
        }
}

static void move_blocks(const TableTask *task, Work *work, int64_t from, int64_t to)
{
        const IndexTable *table = task->table;
        for (int64_t b = 0; b < task->n_blocks && !work_stops(work, STEPS_PER_INDEX); b++)
                move_block(task, work,
                           from + offset_of(task->n_after, table->after_size, table->after_from, b),
                           to + offset_of(task->n_after, table->after_size, table->after_to, b));
}

// Pieces are (before, table) pairs: runs of entries that share the dimensions before.
static void table_pieces(void *argument, int64_t begin, int64_t end)
{
        const TableTask *task = argument;
        const IndexTable *table = task->table;
        bool single = task->block * task->n_blocks == 1 && !task->accumulate;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin, next; i < end && !work_stops(&work, STEPS_PER_INDEX); i = next) {
                int64_t before = i / table->n, entry = i % table->n, stop = MIN(table->n, entry + end - i);
                int64_t from = offset_of(table->n_before, table->before_size, table->before_from, before),
                        to = offset_of(table->n_before, table->before_size, table->before_to, before);
                next = i + stop - entry;
                if (single)
                        move_elements(task, &work, (int64_t[]){ from, to }, entry, stop);
                for (; !single && entry < stop && !work.stops; entry++)
                        move_blocks(task, &work, from + table->from[entry], to + table->to[entry]);
        }
}

Status index_table(const RunContext *ctx, const IndexTable *table, bool ordered, bool accumulate,
                   const void *from, void *to)
{
        TableTask task = { .ctx = ctx, .table = table, .from = from, .to = to, .accumulate = accumulate };
        find_block(&task);
        int64_t n = product(table->n_before, table->before_size) * table->n,
                work = MAX((int64_t)1, task.block * task.n_blocks);
        if (task.block * task.n_blocks == 0 || n == 0)
                return STATUS_OK;
        if (ordered || accumulate)
                table_pieces(&task, 0, n);
        else
                TRY(parallel_for(ctx, n, MAX((int64_t)1, 16384 / work), table_pieces, &task));
        return run_poll(ctx);
}

// ---- nonzero ----
static bool is_nonzero(Dtype dtype, const char *element)
{
        switch (dtype_info[dtype].kind) {
        case DTYPE_KIND_BOOL:
                return *element != 0;
        case DTYPE_KIND_INT:
                return element_as_i64(dtype, element) != 0;
        case DTYPE_KIND_FLOAT:
                return element_as_f64(dtype, element) != 0;
        case DTYPE_KIND_COMPLEX:
                break;
        }
        Dtype part = dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
        return element_as_f64(part, element) != 0 ||
               element_as_f64(part, element + dtype_info[part].bytes) != 0;
}

Status index_count_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data,
                           int64_t *out_count)
{
        int64_t n = meta_numel(meta), bytes = dtype_info[meta->dtype].bytes, count = 0;
        bool contiguous = meta_is_contiguous(meta);
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, STEPS_PER_INDEX); i++) {
                int64_t at = contiguous ? i : offset_of(meta->rank, meta->size, meta->stride, i);
                count += is_nonzero(meta->dtype, (const char *)data + at * bytes);
        }
        *out_count = count;
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

Status index_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data, int64_t count,
                     int64_t *out)
{
        int64_t n = meta_numel(meta), bytes = dtype_info[meta->dtype].bytes, found = 0;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && found < count && !work_stops(&work, 2 * STEPS_PER_INDEX); i++) {
                if (!is_nonzero(meta->dtype,
                                (const char *)data +
                                        offset_of(meta->rank, meta->size, meta->stride, i) * bytes))
                        continue;
                int64_t rest = i;
                for (int d = meta->rank - 1; d >= 0; d--) {
                        out[d * count + found] = rest % meta->size[d];
                        rest /= meta->size[d];
                }
                found++;
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}
