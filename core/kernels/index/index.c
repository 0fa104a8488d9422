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
        _Atomic int64_t bad; // position of an index that is out of range, -1: none
} WalkTask;

static bool resolve(const IndexWalk *walk, int64_t position, int64_t *out_indexed, int64_t *out_plain)
{
        int64_t index = walk->index[position], indexed = 0, plain = 0;
        if (walk->wraps && index < 0)
                index += walk->n_indexed;
        if (index < 0 || index >= walk->n_indexed)
                return false;
        for (int d = walk->rank - 1; d >= 0; d--) {
                int64_t at = position % walk->size[d];
                position /= walk->size[d];
                indexed += (d == walk->dim ? index : at) * walk->indexed_stride[d];
                plain += at * walk->plain_stride[d];
        }
        *out_indexed = indexed;
        *out_plain = plain;
        return true;
}

static Status fail_index(const IndexWalk *walk, int64_t position)
{
        return fail(STATUS_INDEX, "index %ld is out of bounds for dimension %d with size %ld",
                    (long)walk->index[position], walk->dim, (long)walk->n_indexed);
}

static void gather_pieces(void *argument, int64_t begin, int64_t end)
{
        WalkTask *task = argument;
        size_t bytes = dtype_info[task->walk->dtype].bytes;
        for (int64_t i = begin; i < end; i++) {
                int64_t indexed, plain;
                if (!resolve(task->walk, i, &indexed, &plain)) {
                        atomic_store(&task->bad, i);
                        return;
                }
                copy_element(task->plain + plain * (int64_t)bytes, task->indexed + indexed * (int64_t)bytes,
                             bytes);
        }
}

Status index_gather(const RunContext *ctx, const IndexWalk *walk, const void *indexed, void *plain)
{
        WalkTask task = { .ctx = ctx, .walk = walk, .indexed = indexed, .plain = plain, .bad = -1 };
        TRY(parallel_for(ctx, product(walk->rank, walk->size), 16384, gather_pieces, &task));
        int64_t bad = atomic_load(&task.bad);
        return bad < 0 ? STATUS_OK : fail_index(walk, bad);
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

static void combine(ScatterKind kind, Dtype dtype, void *to, const void *from)
{
        if (kind == SCATTER_COPY)
                copy_element(to, from, dtype_info[dtype].bytes);
        else if (dtype == DTYPE_F32 && kind == SCATTER_ADD)
                *(float *)to += *(const float *)from;
        else if (dtype_is_float(dtype))
                element_from_f64(dtype, to,
                                 combine_f64(kind, element_as_f64(dtype, to), element_as_f64(dtype, from)));
        else
                element_from_i64(dtype, to,
                                 combine_i64(kind, element_as_i64(dtype, to), element_as_i64(dtype, from)));
}

Status index_scatter(const RunContext *ctx, const IndexWalk *walk, ScatterKind kind, void *indexed,
                     const void *plain)
{
        int64_t n = product(walk->rank, walk->size), bytes = dtype_info[walk->dtype].bytes;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, STEPS_PER_INDEX); i++) {
                int64_t at, from;
                if (!resolve(walk, i, &at, &from))
                        return fail_index(walk, i);
                combine(kind, walk->dtype, (char *)indexed + at * bytes, (const char *)plain + from * bytes);
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
                for (int64_t at = 0, end; (end = work_end(work, at, task->block * bytes, 1)) > at; at = end)
                        memcpy(target + at, source + at, (size_t)(end - at));
        } else {
                for (int64_t i = 0; i < task->block && !work_stops(work, STEPS_PER_INDEX); i++)
                        combine(SCATTER_ADD, dtype, target + i * bytes, source + i * bytes);
        }
}

// Pieces are (before, table) pairs.
static void table_pieces(void *argument, int64_t begin, int64_t end)
{
        const TableTask *task = argument;
        const IndexTable *table = task->table;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin; i < end && !work.stops; i++) {
                int64_t before = i / table->n, entry = i % table->n;
                int64_t from = table->from[entry] +
                               offset_of(table->n_before, table->before_size, table->before_from, before);
                int64_t to = table->to[entry] +
                             offset_of(table->n_before, table->before_size, table->before_to, before);
                for (int64_t b = 0; b < task->n_blocks && !work_stops(&work, STEPS_PER_INDEX); b++)
                        move_block(task, &work,
                                   from + offset_of(task->n_after, table->after_size, table->after_from, b),
                                   to + offset_of(task->n_after, table->after_size, table->after_to, b));
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
