// SPDX-License-Identifier: Apache-2.0
// index.c: gathers are split over outputs; scatters run on one thread in row-major order of the
// index, so that "the last write wins" and sums come out the same every time.
#include "core/kernels/index/index.h"
#include <string.h>
#include "core/tensor/half.h"

enum { STEPS_PER_INDEX = 8 };

static inline void copy_element(void *to, const void *from, size_t n_bytes)
{
        switch (n_bytes) {
        case 1:
                memcpy(to, from, 1);
                break;
        case 2:
                memcpy(to, from, 2);
                break;
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

static void copy_bytes(Work *work, char *to, const char *from, int64_t n_bytes)
{
        for (int64_t at = 0, end; (end = work_end(work, at, n_bytes, 1)) > at; at = end)
                memcpy(to + at, from + at, (size_t)(end - at));
}

// Blocks begin..end - 1 of one `outer`, of a size that the compiler knows.
static inline __attribute__((always_inline)) void pick_elements(const int64_t *indices, int64_t begin,
                                                                int64_t end, const char *from, char *to,
                                                                const size_t size)
{
        for (int64_t i = begin; i < end; i++)
                memcpy(to + (size_t)i * size, from + (size_t)indices[i] * size, size);
}

// False: the size is none of an element's.
static bool pick_small(const IndexRows *rows, int64_t begin, int64_t end, const char *from, char *to)
{
        switch (rows->block_bytes) {
        case 1:
                pick_elements(rows->indices, begin, end, from, to, 1);
                return true;
        case 2:
                pick_elements(rows->indices, begin, end, from, to, 2);
                return true;
        case 4:
                pick_elements(rows->indices, begin, end, from, to, 4);
                return true;
        case 8:
                pick_elements(rows->indices, begin, end, from, to, 8);
                return true;
        case 16:
                pick_elements(rows->indices, begin, end, from, to, 16);
                return true;
        default:
                return false;
        }
}

static void pick_blocks(const IndexRows *rows, Work *work, int64_t begin, int64_t end, const char *from,
                        char *to)
{
        const int64_t *indices = rows->indices;
        size_t block = rows->block_bytes;
        bool small = pick_small(rows, begin, begin, from, to);
        for (int64_t at = begin, stop; small && (stop = work_end(work, at, end, 2)) > at; at = stop)
                pick_small(rows, at, stop, from, to);
        for (int64_t i = begin; i < end && !small && !work_stops(work, STEPS_PER_INDEX); i++)
                copy_bytes(work, to + (size_t)i * block, from + (size_t)indices[i] * block, (int64_t)block);
}

static void copy_rows(void *argument, int64_t begin, int64_t end)
{
        const RowsTask *task = argument;
        const IndexRows *rows = task->rows;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin, next; i < end && !work_stops(&work, STEPS_PER_INDEX); i = next) {
                int64_t outer = i / rows->n_indices, first = i % rows->n_indices,
                        stop = MIN(rows->n_indices, first + end - i);
                next = i + stop - first;
                pick_blocks(rows, &work, first, stop,
                            task->from + (size_t)(outer * rows->n_from) * rows->block_bytes,
                            task->out + (size_t)(outer * rows->n_indices) * rows->block_bytes);
        }
}

Status index_rows(const RunContext *ctx, const IndexRows *rows, const void *from, void *out)
{
        Work work = { .ctx = ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, rows->n_indices, 1)) > at; at = end) {
                uint64_t bad = 0; // the sign of any index or of what is left behind it
                for (int64_t i = at; i < end; i++)
                        bad |= (uint64_t)rows->indices[i] |
                               ((uint64_t)rows->n_from - 1 - (uint64_t)rows->indices[i]);
                if (bad >> 63 != 0)
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
// Rows are elements that share an index and are contiguous on both sides; the positions of the last
// dimension before them are a line.
typedef struct WalkTask {
        const RunContext *ctx;
        const IndexWalk *walk;
        char *indexed, *plain;
        int rank;                                     // dimensions before the line
        int64_t row, line;                            // elements, rows
        int64_t index_step, indexed_step, plain_step; // along the line; in `indexed` without the index
        _Atomic int64_t bad;                          // row whose index is out of range, -1: none
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

// Finds row and line; returns how many rows there are.
static int64_t find_rows(WalkTask *task)
{
        const IndexWalk *walk = task->walk;
        task->row = task->line = 1;
        task->rank = walk->rank;
        for (int d = walk->rank - 1; d > walk->dim; d--, task->rank--) {
                bool joins = walk->index_stride[d] == 0 && walk->indexed_stride[d] == task->row &&
                             walk->plain_stride[d] == task->row;
                if (walk->size[d] != 1 && !joins)
                        break;
                task->row *= walk->size[d];
        }
        while (task->rank > 0 && walk->size[task->rank - 1] == 1)
                task->rank--;
        int64_t n_rows = task->row == 0 ? 0 : product(task->rank, walk->size);
        if (task->rank == 0)
                return n_rows;
        int last = --task->rank;
        task->line = walk->size[last];
        task->index_step = walk->index_stride[last];
        task->indexed_step = last == walk->dim ? 0 : walk->indexed_stride[last];
        task->plain_step = walk->plain_stride[last];
        return n_rows;
}

typedef struct WalkPlace {
        int64_t index, indexed, plain; // offsets in elements
} WalkPlace;

// Where a line begins; in `indexed` without the index.
static WalkPlace place_of(const WalkTask *task, int64_t line)
{
        const IndexWalk *walk = task->walk;
        WalkPlace place = { 0 };
        for (int d = task->rank - 1; d >= 0; d--) {
                int64_t at = line % walk->size[d];
                line /= walk->size[d];
                place.index += at * walk->index_stride[d];
                place.indexed += (d == walk->dim ? 0 : at) * walk->indexed_stride[d];
                place.plain += at * walk->plain_stride[d];
        }
        return place;
}

static inline int64_t given_index(const WalkTask *task, const WalkPlace *line, int64_t row)
{
        return task->walk->index[line->index + row * task->index_step];
}

// Where a row of the line is. False: its index is out of range.
static inline bool resolve(const WalkTask *task, const WalkPlace *line, int64_t row, WalkPlace *out)
{
        const IndexWalk *walk = task->walk;
        int64_t index = given_index(task, line, row);
        if (walk->wraps && index < 0)
                index += walk->n_indexed;
        if (index < 0 || index >= walk->n_indexed)
                return false;
        out->plain = line->plain + row * task->plain_step;
        out->indexed = line->indexed + row * task->indexed_step + index * walk->indexed_stride[walk->dim];
        return true;
}

static Status fail_index(const IndexWalk *walk, int64_t index)
{
        return fail(STATUS_INDEX, "index %ld is out of bounds for dimension %d with size %ld", (long)index,
                    walk->dim, (long)walk->n_indexed);
}

// Rows begin..end - 1 of a line, of one element whose size the compiler knows. Returns the row at
// which it ended: one with an index out of range, or `end`.
static inline __attribute__((always_inline)) int64_t gather_elements(const WalkTask *task,
                                                                     const WalkPlace *line, int64_t begin,
                                                                     int64_t end, const size_t size)
{
        WalkPlace place;
        for (int64_t i = begin; i < end; i++) {
                if (!resolve(task, line, i, &place))
                        return i;
                memcpy(task->plain + place.plain * (int64_t)size,
                       task->indexed + place.indexed * (int64_t)size, size);
        }
        return end;
}

static int64_t gather_line(const WalkTask *task, Work *work, const WalkPlace *line, int64_t begin,
                           int64_t end)
{
        size_t bytes = dtype_info[task->walk->dtype].bytes;
        int64_t at = begin;
        for (int64_t stop; task->row == 1 && (stop = work_end(work, at, end, STEPS_PER_INDEX)) > at;) {
                at = bytes == 1   ? gather_elements(task, line, at, stop, 1)
                     : bytes == 2 ? gather_elements(task, line, at, stop, 2)
                     : bytes == 4 ? gather_elements(task, line, at, stop, 4)
                     : bytes == 8 ? gather_elements(task, line, at, stop, 8)
                                  : gather_elements(task, line, at, stop, bytes);
                if (at < stop)
                        return at;
        }
        WalkPlace place;
        for (; at < end && !work_stops(work, STEPS_PER_INDEX) && resolve(task, line, at, &place); at++)
                copy_bytes(work, task->plain + place.plain * (int64_t)bytes,
                           task->indexed + place.indexed * (int64_t)bytes, task->row * (int64_t)bytes);
        return at;
}

static void gather_pieces(void *argument, int64_t begin, int64_t end)
{
        WalkTask *task = argument;
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, STEPS_PER_INDEX);) {
                int64_t first = i % task->line, stop = MIN(task->line, first + end - i);
                WalkPlace line = place_of(task, i / task->line);
                int64_t at = gather_line(task, &work, &line, first, stop);
                i += at - first;
                if (at < stop && !work.stops) {
                        atomic_store(&task->bad, i);
                        return;
                }
        }
}

Status index_gather(const RunContext *ctx, const IndexWalk *walk, const void *indexed, void *plain)
{
        WalkTask task = {
                .ctx = ctx, .walk = walk, .indexed = (char *)(uintptr_t)indexed, .plain = plain, .bad = -1
        };
        int64_t n = find_rows(&task);
        TRY(parallel_for(ctx, n, 16384 / MIN(MAX(task.row, 1), 16384), gather_pieces, &task));
        int64_t bad = atomic_load(&task.bad);
        if (bad >= 0) {
                WalkPlace line = place_of(&task, bad / task.line);
                return fail_index(walk, given_index(&task, &line, bad % task.line));
        }
        return run_poll(ctx);
}

#define COMBINE(name, T)                                                                                     \
        static inline T name(ScatterKind kind, T a, T b)                                                     \
        {                                                                                                    \
                switch (kind) {                                                                              \
                case SCATTER_ADD:                                                                            \
                        return a + b;                                                                        \
                case SCATTER_MULTIPLY:                                                                       \
                        return a * b;                                                                        \
                case SCATTER_MAX:                                                                            \
                        return b > a || b != b ? b : a;                                                      \
                case SCATTER_MIN:                                                                            \
                        return b < a || b != b ? b : a;                                                      \
                case SCATTER_COPY:                                                                           \
                        break;                                                                               \
                }                                                                                            \
                return b;                                                                                    \
        }
COMBINE(combine_f32, float)
COMBINE(combine_f64, double)

static inline int64_t combine_i64(ScatterKind kind, int64_t a, int64_t b)
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

// Dtypes whose sums have loops of their own.
#define KNOWN_DTYPES(X) X(F32) X(F64) X(F16) X(BF16) X(I64) X(I32) X(U8) X(BOOL)

// Of an element, for a dtype that the compiler knows.
static inline __attribute__((always_inline)) int64_t known_bytes(const Dtype dtype)
{
        switch (dtype) {
        case DTYPE_BOOL:
        case DTYPE_U8:
                return 1;
        case DTYPE_F16:
        case DTYPE_BF16:
                return 2;
        case DTYPE_F32:
        case DTYPE_I32:
                return 4;
        case DTYPE_F64:
        case DTYPE_I64:
                return 8;
        default:
                return dtype_info[dtype].bytes;
        }
}

// In float32 itself: the sum or product of two in double, rounded, is the same.
static inline __attribute__((always_inline)) void combine(ScatterKind kind, Dtype dtype, void *to,
                                                          const void *from)
{
        if (kind == SCATTER_COPY)
                copy_element(to, from, (size_t)known_bytes(dtype));
        else if (dtype == DTYPE_F32)
                *(float *)to = combine_f32(kind, *(const float *)to, *(const float *)from);
        else if (dtype == DTYPE_I64)
                *(int64_t *)to = combine_i64(kind, *(const int64_t *)to, *(const int64_t *)from);
        else if (dtype == DTYPE_F64)
                *(double *)to = combine_f64(kind, *(const double *)to, *(const double *)from);
        else if (dtype == DTYPE_I32)
                *(int32_t *)to = (int32_t)combine_i64(kind, *(const int32_t *)to, *(const int32_t *)from);
        else if (dtype == DTYPE_U8)
                *(uint8_t *)to = (uint8_t)combine_i64(kind, *(const uint8_t *)to, *(const uint8_t *)from);
        else if (dtype == DTYPE_BOOL)
                *(uint8_t *)to =
                        combine_i64(kind, *(const uint8_t *)to != 0, *(const uint8_t *)from != 0) != 0;
        else if (dtype == DTYPE_F16)
                *(uint16_t *)to = float_to_half(combine_f32(kind, half_to_float(*(const uint16_t *)to),
                                                            half_to_float(*(const uint16_t *)from)));
        else if (dtype == DTYPE_BF16)
                *(uint16_t *)to = float_to_bfloat(combine_f32(kind, bfloat_to_float(*(const uint16_t *)to),
                                                              bfloat_to_float(*(const uint16_t *)from)));
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

// Elements begin..end - 1 of two rows that are apart, for a kind and a dtype that the compiler
// knows.
static inline __attribute__((always_inline)) void combine_elements(const ScatterKind kind, const Dtype dtype,
                                                                   void *restrict to,
                                                                   const void *restrict from, int64_t begin,
                                                                   int64_t end)
{
        const int64_t bytes = known_bytes(dtype);
        for (int64_t i = begin; i < end; i++)
                combine(kind, dtype, (char *)to + i * bytes, (const char *)from + i * bytes);
}

static void add_elements(Dtype dtype, void *to, const void *from, int64_t begin, int64_t end)
{
        switch (dtype) {
#define CASE(NAME)                                                                                           \
        case DTYPE_##NAME:                                                                                   \
                combine_elements(SCATTER_ADD, DTYPE_##NAME, to, from, begin, end);                           \
                break;
                KNOWN_DTYPES(CASE)
#undef CASE
        default:
                combine_elements(SCATTER_ADD, dtype, to, from, begin, end);
        }
}

// to[i] = to[i] op from[i]; the two are apart.
static void combine_row(Work *work, ScatterKind kind, Dtype dtype, void *to, const void *from, int64_t n)
{
        int64_t bytes = dtype_info[dtype].bytes;
        if (kind == SCATTER_COPY) {
                copy_bytes(work, to, from, n * bytes);
                return;
        }
        const int64_t steps = kind == SCATTER_ADD ? 1 : STEPS_PER_INDEX;
        for (int64_t at = 0, end; (end = work_end(work, at, n, steps)) > at; at = end) {
                if (kind == SCATTER_ADD)
                        add_elements(dtype, to, from, at, end);
                else
                        combine_elements(kind, dtype, to, from, at, end);
        }
}

// As gather_elements, for a kind and a dtype that the compiler knows.
static inline __attribute__((always_inline)) int64_t scatter_elements(const WalkTask *task,
                                                                      const WalkPlace *line, int64_t begin,
                                                                      int64_t end, const ScatterKind kind,
                                                                      const Dtype dtype)
{
        const int64_t bytes = known_bytes(dtype);
        WalkPlace place;
        for (int64_t i = begin; i < end; i++) {
                if (!resolve(task, line, i, &place))
                        return i;
                combine(kind, dtype, task->indexed + place.indexed * bytes,
                        task->plain + place.plain * bytes);
        }
        return end;
}

// Elements are moved as those of any dtype of their size.
static int64_t copy_part(const WalkTask *task, const WalkPlace *line, int64_t begin, int64_t end)
{
        const Dtype dtype = task->walk->dtype;
        switch (dtype_info[dtype].bytes) {
        case 1:
                return scatter_elements(task, line, begin, end, SCATTER_COPY, DTYPE_U8);
        case 2:
                return scatter_elements(task, line, begin, end, SCATTER_COPY, DTYPE_F16);
        case 4:
                return scatter_elements(task, line, begin, end, SCATTER_COPY, DTYPE_F32);
        case 8:
                return scatter_elements(task, line, begin, end, SCATTER_COPY, DTYPE_I64);
        default:
                return scatter_elements(task, line, begin, end, SCATTER_COPY, dtype);
        }
}

static int64_t scatter_part(const WalkTask *task, ScatterKind kind, const WalkPlace *line, int64_t begin,
                            int64_t end)
{
        Dtype dtype = task->walk->dtype;
        if (kind == SCATTER_COPY)
                return copy_part(task, line, begin, end);
        if (kind != SCATTER_ADD)
                return scatter_elements(task, line, begin, end, kind, dtype);
        switch (dtype) {
#define CASE(NAME)                                                                                           \
        case DTYPE_##NAME:                                                                                   \
                return scatter_elements(task, line, begin, end, SCATTER_ADD, DTYPE_##NAME);
                KNOWN_DTYPES(CASE)
#undef CASE
        default:
                return scatter_elements(task, line, begin, end, SCATTER_ADD, dtype);
        }
}

// As gather_line, in order.
static int64_t scatter_line(const WalkTask *task, Work *work, ScatterKind kind, const WalkPlace *line)
{
        Dtype dtype = task->walk->dtype;
        int64_t bytes = dtype_info[dtype].bytes, at = 0;
        for (int64_t stop; task->row == 1 && (stop = work_end(work, at, task->line, STEPS_PER_INDEX)) > at;) {
                at = scatter_part(task, kind, line, at, stop);
                if (at < stop)
                        return at;
        }
        WalkPlace place;
        for (; at < task->line && !work_stops(work, STEPS_PER_INDEX) && resolve(task, line, at, &place); at++)
                combine_row(work, kind, dtype, task->indexed + place.indexed * bytes,
                            task->plain + place.plain * bytes, task->row);
        return at;
}

Status index_scatter(const RunContext *ctx, const IndexWalk *walk, ScatterKind kind, void *indexed,
                     const void *plain)
{
        // Of the two only `indexed` is written.
        WalkTask task = { .ctx = ctx, .walk = walk, .indexed = indexed, .plain = (char *)(uintptr_t)plain };
        int64_t n = find_rows(&task);
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, STEPS_PER_INDEX); i += task.line) {
                WalkPlace line = place_of(&task, i / task.line);
                int64_t at = scatter_line(&task, &work, kind, &line);
                if (at < task.line && !work.stops)
                        return fail_index(walk, given_index(&task, &line, at));
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
