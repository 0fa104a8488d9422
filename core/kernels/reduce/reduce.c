// SPDX-License-Identifier: Apache-2.0
// reduce.c: row plans, the visiting of rows, and the reduction of a row. Sums of float32: 16 lanes
// over chunks of 512 elements, chunk sums in a binary tree, so that errors grow with the logarithm
// of the length as in PyTorch's cascade. Variance takes two passes (mean, then squared
// differences), norms and products accumulate in double. Rows are never split, so results do not
// depend on threads.
#include "core/kernels/reduce/reduce.h"
#include "core/kernels/norm/softmax.h"
#include "core/kernels/pointwise/pointwise.h"
#include "core/kernels/reduce/columns.h"
#include <math.h>
#include <string.h>

enum {
        LANES = REDUCE_LANES,
        CHUNK = REDUCE_CHUNK,
        GATHER_BYTES = 262144,
        GATHER_ROWS = 16,
        ROW_STEPS = 16,
        LOADED = 256,
        N_LEVELS = 48
};

// ---- plans ----
// Joins dimensions that are one run in memory.
static int coalesce(int n, int64_t *size, int64_t *stride)
{
        int out = 0;
        for (int d = 0; d < n; d++) {
                if (size[d] == 1)
                        continue;
                if (out > 0 && stride[out - 1] == stride[d] * size[d]) {
                        size[out - 1] *= size[d];
                        stride[out - 1] = stride[d];
                        continue;
                }
                size[out] = size[d];
                stride[out++] = stride[d];
        }
        return out;
}

static void sort_by_stride(int n, int64_t *size, int64_t *stride)
{
        for (int i = 1; i < n; i++) {
                for (int j = i; j > 0 && stride[j - 1] < stride[j]; j--) {
                        int64_t s = size[j], t = stride[j];
                        size[j] = size[j - 1];
                        stride[j] = stride[j - 1];
                        size[j - 1] = s;
                        stride[j - 1] = t;
                }
        }
}

void row_plan(RowPlan *plan, const TensorMeta *meta, uint32_t mask, bool ordered)
{
        memset(plan, 0, sizeof(*plan));
        plan->n_rows = 1;
        plan->row_length = 1;
        for (int d = 0; d < meta->rank; d++) {
                if ((mask >> d & 1) != 0) {
                        plan->reduce_size[plan->n_reduce] = meta->size[d];
                        plan->reduce_stride[plan->n_reduce++] = meta->stride[d];
                        plan->row_length *= meta->size[d];
                } else {
                        plan->keep_size[plan->n_keep] = meta->size[d];
                        plan->keep_stride[plan->n_keep++] = meta->stride[d];
                        plan->n_rows *= meta->size[d];
                }
        }
        if (!ordered)
                sort_by_stride(plan->n_reduce, plan->reduce_size, plan->reduce_stride);
        plan->n_reduce = coalesce(plan->n_reduce, plan->reduce_size, plan->reduce_stride);
        plan->n_keep = coalesce(plan->n_keep, plan->keep_size, plan->keep_stride);
}

// ---- visiting ----
typedef struct RowVisit {
        const RunContext *ctx;
        const RowPlan *plan;
        size_t stored_bytes, item_bytes; // of an element in memory and of a row's
        TileLoad load;                   // between the two; NULL: they are the same
        const char *data;
        RowFunction visit;
        const void *context;
        int64_t tile; // rows gathered together
        _Atomic int failed;
} RowVisit;

// Elements `step` apart of several rows that are gathered together, each row into row_length
// elements.
typedef struct Run {
        const char *const *base;
        int64_t n_rows, row_length;
        int64_t offset, at, n, step; // where from and to, in elements
} Run;

static inline __attribute__((always_inline)) void gather_run(const Run *run, Work *work, char *out,
                                                             const size_t size)
{
        for (int64_t from = 0, end; (end = work_end(work, from, run->n, run->n_rows)) > from; from = end) {
                for (int64_t i = from; i < end; i++) {
                        for (int64_t r = 0; r < run->n_rows; r++)
                                memcpy(out + (size_t)(r * run->row_length + run->at + i) * size,
                                       run->base[r] + (run->offset + i * run->step) * (int64_t)size, size);
                }
        }
}

// The same with a conversion, some elements of each row at a time.
static void load_run(const RowVisit *visit, const Run *run, Work *work, char *out)
{
        const int64_t step = run->step * (int64_t)visit->stored_bytes;
        for (int64_t at = 0; at < run->n && !work_stops(work, LOADED * run->n_rows); at += LOADED) {
                const int64_t n = MIN((int64_t)LOADED, run->n - at);
                for (int64_t r = 0; r < run->n_rows; r++)
                        visit->load(run->base[r] + run->offset * (int64_t)visit->stored_bytes + at * step,
                                    step, (size_t)n,
                                    out + (size_t)(r * run->row_length + run->at + at) * visit->item_bytes);
        }
}

// `n_rows` rows starting at the bases into out[n_rows][row_length], walked together so that
// neighbouring rows share cache lines.
static void gather(const RowVisit *visit, Work *work, const char *const *base, int64_t n_rows, char *out)
{
        const RowPlan *plan = visit->plan;
        int inner = MAX(plan->n_reduce - 1, 0);
        Run run = { .base = base,
                    .n_rows = n_rows,
                    .row_length = plan->row_length,
                    .n = plan->n_reduce == 0 ? 1 : plan->reduce_size[inner],
                    .step = plan->n_reduce == 0 ? 1 : plan->reduce_stride[inner] };
        for (; run.at < plan->row_length && !work->stops; run.at += run.n) {
                run.offset = row_offset(inner, plan->reduce_size, plan->reduce_stride, run.at / run.n);
                if (visit->load != NULL)
                        load_run(visit, &run, work, out);
                else if (visit->item_bytes == 1)
                        gather_run(&run, work, out, 1);
                else if (visit->item_bytes == 4)
                        gather_run(&run, work, out, 4);
                else
                        gather_run(&run, work, out, 8);
        }
}

static bool rows_are_dense(const RowPlan *plan)
{
        return plan->n_reduce == 0 || (plan->n_reduce == 1 && plan->reduce_stride[0] == 1);
}

// Where `n` rows from `first` on begin. Whole rows of few cache lines are on their way then: they
// may lie anywhere, and none is long enough to hide the wait for the next one.
static void find_rows(const RowVisit *visit, int64_t first, int64_t n, bool whole,
                      const char *base[GATHER_ROWS])
{
        enum { LINE = 64, FEW_LINES = 8 };
        const RowPlan *plan = visit->plan;
        int64_t index[MAX_RANK], rest = first, bytes = (int64_t)visit->stored_bytes,
                                 lines = whole ? plan->row_length * bytes : 0;
        for (int d = plan->n_keep - 1; d >= 0; rest /= plan->keep_size[d--])
                index[d] = rest % plan->keep_size[d];
        const char *at =
                visit->data + row_offset(plan->n_keep, plan->keep_size, plan->keep_stride, first) * bytes;
        for (int64_t r = 0; r < n; r++) {
                base[r] = at;
                for (int64_t line = 0; line < lines && lines <= FEW_LINES * LINE; line += LINE)
                        __builtin_prefetch(at + line);
                for (int d = plan->n_keep - 1; d >= 0; d--) {
                        at += plan->keep_stride[d] * bytes;
                        if (++index[d] < plan->keep_size[d])
                                break;
                        at -= plan->keep_size[d] * plan->keep_stride[d] * bytes;
                        index[d] = 0;
                }
        }
}

static void visit_rows(void *argument, int64_t begin, int64_t end)
{
        RowVisit *visit = argument;
        const RowPlan *plan = visit->plan;
        bool contiguous = (visit->load == NULL && rows_are_dense(plan)) || plan->row_length == 0;
        Scratch scratch = { 0 };
        if (!contiguous && scratch_init(&scratch, visit->ctx, visit->tile * plan->row_length,
                                        visit->item_bytes) != STATUS_OK) {
                atomic_store(&visit->failed, 1);
                return;
        }
        Work work = { .ctx = visit->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, visit->tile * ROW_STEPS);
             row += visit->tile) {
                int64_t n = MIN(end - row, visit->tile);
                const char *base[GATHER_ROWS];
                find_rows(visit, row, n, contiguous, base);
                if (!contiguous)
                        gather(visit, &work, base, n, scratch.data);
                for (int64_t r = 0; r < n; r++) {
                        const char *at = contiguous
                                                 ? base[r]
                                                 : (const char *)scratch.data +
                                                           (size_t)(r * plan->row_length) * visit->item_bytes;
                        visit->visit(visit->context, &work, row + r, plan->row_length, at);
                }
        }
        scratch_deinit(&scratch);
}

static Status visit_all(RowVisit *visit)
{
        const RowPlan *plan = visit->plan;
        int64_t row_bytes = MAX((int64_t)1, plan->row_length * (int64_t)visit->item_bytes);
        visit->tile = MAX((int64_t)1, MIN((int64_t)GATHER_ROWS, GATHER_BYTES / row_bytes));
        int64_t grain = MAX(visit->tile, 65536 / MAX((int64_t)1, plan->row_length));
        TRY(parallel_for(visit->ctx, plan->n_rows, grain, visit_rows, visit));
        if (atomic_load(&visit->failed))
                return fail_no_scratch();
        return run_poll(visit->ctx);
}

Status rows_visit(const RunContext *ctx, const RowPlan *plan, size_t item_bytes, const void *data,
                  RowFunction visit, const void *context)
{
        return visit_all(&(RowVisit){ .ctx = ctx,
                                      .plan = plan,
                                      .stored_bytes = item_bytes,
                                      .item_bytes = item_bytes,
                                      .data = data,
                                      .visit = visit,
                                      .context = context });
}

Status fail_no_scratch(void)
{
        return fail(STATUS_TOO_LARGE, "a reduction has no working memory left; send smaller inputs or start "
                                      "the server with a larger --max-run-memory");
}

// ---- rows ----
#define RED(x)      x##_f32
#define RED_T       float
#define RED_BITS    uint32_t
#define RED_NAN(x)  ((x) != (x))
#define RED_LOWEST  (-INFINITY)
#define RED_HIGHEST INFINITY
#include "core/kernels/reduce/reduce_rows.inc"
#include "core/kernels/reduce/reduce_float.inc"
#undef RED
#undef RED_T
#undef RED_BITS
#define RED(x)   x##_f64
#define RED_T    double
#define RED_BITS uint64_t
#include "core/kernels/reduce/reduce_rows.inc"
#include "core/kernels/reduce/reduce_float.inc"
#undef RED
#undef RED_T
#undef RED_BITS
#undef RED_NAN
#undef RED_LOWEST
#undef RED_HIGHEST
#define RED(x)      x##_i64
#define RED_T       int64_t
#define RED_BITS    uint64_t
#define RED_NAN(x)  false
#define RED_LOWEST  INT64_MIN
#define RED_HIGHEST INT64_MAX
#define RED_INTEGER 1
#include "core/kernels/reduce/reduce_rows.inc"

static void count(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        const uint8_t *x = row;
        int64_t count = 0;
        for (int64_t from = 0, end; (end = work_end(work, from, n, 1)) > from; from = end) {
                uint32_t some = 0; // of at most WORK_BLOCK
                for (int64_t i = from; i < end; i++)
                        some += x[i] != 0;
                count += some;
        }
        ((int64_t *)task->out)[index] = task->kind == REDUCE_NONZERO ? count
                                        : task->kind == REDUCE_ANY   ? count > 0
                                                                     : count == n;
}

// Extremes of narrow integers, as int64. Rows have elements.
static void extreme_u8(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        const uint8_t *x = row;
        uint8_t best = x[0];
        for (int64_t from = 0, end; (end = work_end(work, from, n, 1)) > from; from = end) {
                if (task->kind == REDUCE_MAX)
                        for (int64_t i = from; i < end; i++)
                                best = MAX(best, x[i]);
                else
                        for (int64_t i = from; i < end; i++)
                                best = MIN(best, x[i]);
        }
        ((int64_t *)task->out)[index] = task->stored == DTYPE_BOOL ? best != 0 : best;
}

static void extreme_i32(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        const bool most = task->kind == REDUCE_MAX;
        const ReduceStep step = most ? task->steps->larger_lanes : task->steps->smaller_lanes;
        const int32_t *x = row;
        int32_t lane[LANES], best = x[0];
        for (int i = 0; i < LANES; i++)
                lane[i] = best;
        int64_t at = 0, whole = n - n % LANES;
        for (int64_t end; (end = work_end(work, at, whole, 1)) > at; at = end)
                step(lane, x + at, end - at);
        for (; at < n && !work->stops; at++)
                best = most ? MAX(best, x[at]) : MIN(best, x[at]);
        for (int i = 0; i < LANES; i++)
                best = most ? MAX(best, lane[i]) : MIN(best, lane[i]);
        ((int64_t *)task->out)[index] = best;
}

// At most CHUNK floats, rounded to a half dtype.
static void round_all(Dtype half, size_t n, float *numbers)
{
        uint16_t halves[CHUNK];
        tile_storer(TILE_F32, half)(numbers, n, halves, sizeof(*halves));
        tile_loader(TILE_F32, half)(halves, sizeof(*halves), n, numbers);
}

static float rounded(Dtype half, double value)
{
        float number = (float)value;
        round_all(half, 1, &number);
        return number;
}

// The sum of exp(x - shift), rounded after each of the two.
static double sum_half_exps(const Reduction *task, Work *work, int64_t n, const float *x, float shift)
{
        static const PointParams none;
        enum { SUMS = 8 };
        float chunk[CHUNK];
        double lane[SUMS] = { 0 }, sum = 0;
        const void *const in[] = { chunk };
        PointTile tile = { .in = in, .out = chunk, .params = &none };
        for (int64_t at = 0; at < n && !work_stops(work, 16 * CHUNK); at += CHUNK) {
                tile.n = (size_t)MIN(n - at, (int64_t)CHUNK);
                for (size_t i = 0; i < tile.n; i++)
                        chunk[i] = x[(size_t)at + i] - shift;
                round_all(task->rounding, tile.n, chunk);
                point_loop(&point_exp, POINT_F32)(&tile);
                round_all(task->rounding, tile.n, chunk);
                for (size_t i = 0; i < tile.n; i++)
                        lane[i % SUMS] += (double)chunk[i];
        }
        for (int i = 0; i < SUMS; i++)
                sum += lane[i];
        return sum;
}

// exp, sum, log and the shift back of a half row, rounded after each but the last, as PyTorch does.
static void logsumexp_half(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        float *out = (float *)task->out + index;
        max_f32(context, work, index, n, row);
        const float shift = isinf(*out) ? 0 : *out;
        const double sum = sum_half_exps(task, work, n, row, shift);
        *out = rounded(task->rounding, log((double)rounded(task->rounding, sum))) + shift;
}

// As logsumexp_f32, with softmax's exponentials where it can: several at once.
static void logsumexp_fast_f32(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        if (task->rounding == DTYPE_F16 || task->rounding == DTYPE_BF16) {
                logsumexp_half(context, work, index, n, row);
                return;
        }
        float max = NAN;
        double sum = softmax_sum_row_f32(work, n, row, &max);
        if (isfinite(max))
                ((float *)task->out)[index] = (float)(log(sum) + (double)max);
        else
                logsumexp_f32(context, work, index, n, row);
}

static RowFunction row_function(Dtype dtype, ReduceKind kind, bool with_index)
{
        static const RowFunction f32[] = { sum_f32, sum_f32, prod_f32,           max_f32,  min_f32, count,
                                           count,   count,   logsumexp_fast_f32, norm_f32, var_f32, var_f32,
                                           sum_f32 };
        static const RowFunction f64[] = { sum_f64, sum_f64,       prod_f64, max_f64, min_f64, count,  count,
                                           count,   logsumexp_f64, norm_f64, var_f64, var_f64, sum_f64 };
        static const RowFunction i64[] = { sum_i64, NULL, prod_i64, max_i64, min_i64, count, count,
                                           count,   NULL, NULL,     NULL,    NULL,    NULL };
        if (with_index && kind == REDUCE_MAX)
                return dtype == DTYPE_F32 ? argmax_f32 : dtype == DTYPE_F64 ? argmax_f64 : argmax_i64;
        if (with_index && kind == REDUCE_MIN)
                return dtype == DTYPE_F32 ? argmin_f32 : dtype == DTYPE_F64 ? argmin_f64 : argmin_i64;
        return (dtype == DTYPE_F32 ? f32 : dtype == DTYPE_F64 ? f64 : i64)[kind];
}

// ---- long rows that are converted: pieces of them, so that nothing holds a whole row ----
enum { PIECE = 4 * CHUNK };

typedef struct Pieces {
        Reduction first; // of a piece; `out` holds a row's pieces side by side, the rest as the last
        RowFunction visit;
        int64_t n_whole;
} Pieces;

static void visit_piece(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Pieces *pieces = context;
        int64_t at = index / pieces->n_whole * (pieces->n_whole + 1) + index % pieces->n_whole;
        pieces->visit(&pieces->first, work, at, n, row);
}

static void visit_rest(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Pieces *pieces = context;
        pieces->visit(&pieces->first, work, (index + 1) * (pieces->n_whole + 1) - 1, n, row);
}

// The kinds whose pieces can be joined, for floats with the same bits.
static bool is_joined(const Reduction *reduction)
{
        const ReduceKind kind = reduction->kind;
        return reduction->extra == NULL &&
               (kind <= REDUCE_MEAN || kind == REDUCE_NANSUM || kind == REDUCE_MAX || kind == REDUCE_MIN ||
                (kind == REDUCE_PROD && reduction->dtype == DTYPE_I64) || reduce_counts(kind));
}

static void join_counts(const Reduction *reduction, int64_t index, int64_t n, const int64_t *parts)
{
        int64_t sum = 0;
        for (int64_t i = 0; i < n; i++)
                sum += parts[i];
        ((int64_t *)reduction->out)[index] = reduction->kind == REDUCE_NONZERO ? sum
                                             : reduction->kind == REDUCE_ANY   ? sum > 0
                                                                               : sum == n;
}

// `n` pieces and, behind them, the rest, which may be empty.
static void join(const Reduction *reduction, int64_t index, int64_t n, int64_t rest, const void *parts)
{
        const int64_t n_parts = n + (rest > 0);
        const ReduceKind kind = reduction->kind;
        if (reduce_counts(kind)) {
                join_counts(reduction, index, n_parts, parts);
        } else if (kind != REDUCE_SUM && kind != REDUCE_MEAN && kind != REDUCE_NANSUM) {
                Work work = { 0 };
                row_function(reduction->dtype, kind, false)(reduction, &work, index, n_parts, parts);
        } else if (reduction->dtype == DTYPE_F32) {
                const float *sums = parts, sum = joined_sum_f32(n, sums, rest > 0 ? sums[n] : 0);
                ((float *)reduction->out)[index] =
                        kind == REDUCE_MEAN ? sum / (float)(n * PIECE + rest) : sum;
        } else if (reduction->dtype == DTYPE_F64) {
                const double *sums = parts, sum = joined_sum_f64(n, sums, rest > 0 ? sums[n] : 0);
                ((double *)reduction->out)[index] =
                        kind == REDUCE_MEAN ? sum / (double)(n * PIECE + rest) : sum;
        } else {
                const int64_t *sums = parts;
                ((int64_t *)reduction->out)[index] = joined_sum_i64(n, sums, rest > 0 ? sums[n] : 0);
        }
}

static Status reduce_pieces(const RowVisit *rows, const Reduction *reduction)
{
        const RowPlan *plan = rows->plan;
        const int64_t n = plan->row_length / PIECE, rest = plan->row_length % PIECE;
        const size_t item = reduce_counts(reduction->kind) ? 8 : dtype_info[reduction->dtype].bytes;
        _cleanup_(scratch_deinit) Scratch parts = { 0 };
        TRY(scratch_init(&parts, rows->ctx, saturating_product(plan->n_rows, n + 1), item));
        Pieces pieces = { .first = *reduction, .visit = rows->visit, .n_whole = n };
        pieces.first.kind = reduction->kind == REDUCE_MEAN ? REDUCE_SUM : reduction->kind;
        pieces.first.out = parts.data;
        RowPlan whole = *plan, last = *plan;
        whole.keep_size[whole.n_keep] = n;
        whole.keep_stride[whole.n_keep++] = PIECE;
        whole.n_rows *= n;
        whole.row_length = whole.reduce_size[0] = PIECE;
        last.row_length = last.reduce_size[0] = rest;
        RowVisit visit = *rows;
        visit.context = &pieces;
        visit.plan = &whole;
        visit.visit = visit_piece;
        TRY(visit_all(&visit));
        visit.plan = &last;
        visit.visit = visit_rest;
        visit.data += n * PIECE * (int64_t)visit.stored_bytes;
        if (rest > 0)
                TRY(visit_all(&visit));
        for (int64_t row = 0; row < plan->n_rows; row++)
                join(reduction, row, n, rest, (const char *)parts.data + (size_t)(row * (n + 1)) * item);
        return STATUS_OK;
}

Status reduce_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction)
{
        if (columns_fit(plan, reduction))
                return columns_run(ctx, plan, reduction);
        const Dtype item = reduce_item(reduction);
        Reduction task = *reduction;
        task.steps = kernel_variant(&reduce_family, item);
        RowVisit visit = { .ctx = ctx,
                           .plan = plan,
                           .stored_bytes = dtype_info[reduction->stored].bytes,
                           .item_bytes = dtype_info[item].bytes,
                           .load = reduce_loader(reduction),
                           .data = reduction->data,
                           .visit = row_function(reduction->dtype, reduction->kind, reduction->extra != NULL),
                           .context = &task };
        if (item != reduction->dtype && !reduce_counts(reduction->kind))
                visit.visit = item == DTYPE_U8 ? extreme_u8 : extreme_i32;
        if (visit.visit == NULL)
                return fail(STATUS_INTERNAL, "this reduction is not made for integers");
        if (visit.load != NULL && plan->n_reduce == 1 && plan->reduce_stride[0] == 1 &&
            plan->row_length >= 2 * PIECE && is_joined(reduction))
                return reduce_pieces(&visit, &task);
        return visit_all(&visit);
}
