// SPDX-License-Identifier: Apache-2.0
// reduce.c: row plans, the visiting of rows, and the reduction of a row. Sums of float32: 16 lanes
// over chunks of 512 elements, chunk sums in a binary tree, so that errors grow with the logarithm
// of the length as in PyTorch's cascade. Variance takes two passes (mean, then squared
// differences), norms and products accumulate in double. Rows are never split, so results do not
// depend on threads.
#include "core/kernels/reduce/reduce.h"
#include "core/kernels/norm/softmax.h"
#include "core/kernels/reduce/columns.h"
#include <math.h>
#include <string.h>
#include "core/tensor/half.h"

enum { LANES = REDUCE_LANES, CHUNK = REDUCE_CHUNK, GATHER_BYTES = 262144, GATHER_ROWS = 16, ROW_STEPS = 16 };

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
        size_t item_bytes;
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

// `n_rows` rows starting at the bases into out[n_rows][row_length], walked together so that
// neighbouring rows share cache lines.
static void gather(const RowVisit *visit, Work *work, const char *const *base, int64_t n_rows, char *out)
{
        const RowPlan *plan = visit->plan;
        int inner = plan->n_reduce - 1;
        Run run = { .base = base,
                    .n_rows = n_rows,
                    .row_length = plan->row_length,
                    .n = plan->reduce_size[inner],
                    .step = plan->reduce_stride[inner] };
        for (; run.at < plan->row_length && !work->stops; run.at += run.n) {
                run.offset = row_offset(inner, plan->reduce_size, plan->reduce_stride, run.at / run.n);
                if (visit->item_bytes == 4)
                        gather_run(&run, work, out, 4);
                else
                        gather_run(&run, work, out, 8);
        }
}

static void visit_rows(void *argument, int64_t begin, int64_t end)
{
        RowVisit *visit = argument;
        const RowPlan *plan = visit->plan;
        bool contiguous = plan->n_reduce == 0 || (plan->n_reduce == 1 && plan->reduce_stride[0] == 1) ||
                          plan->row_length == 0;
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
                for (int64_t r = 0; r < n; r++)
                        base[r] = visit->data +
                                  row_offset(plan->n_keep, plan->keep_size, plan->keep_stride, row + r) *
                                          (int64_t)visit->item_bytes;
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

Status rows_visit(const RunContext *ctx, const RowPlan *plan, size_t item_bytes, const void *data,
                  RowFunction visit, const void *context)
{
        RowVisit state = { .ctx = ctx,
                           .plan = plan,
                           .item_bytes = item_bytes,
                           .data = data,
                           .visit = visit,
                           .context = context };
        int64_t row_bytes = MAX((int64_t)1, plan->row_length * (int64_t)item_bytes);
        state.tile = MAX((int64_t)1, MIN((int64_t)GATHER_ROWS, GATHER_BYTES / row_bytes));
        int64_t grain = MAX(state.tile, 65536 / MAX((int64_t)1, plan->row_length));
        TRY(parallel_for(ctx, plan->n_rows, grain, visit_rows, &state));
        if (atomic_load(&state.failed))
                return fail_no_scratch();
        return run_poll(ctx);
}

Status fail_no_scratch(void)
{
        return fail(STATUS_TOO_LARGE, "a reduction has no working memory left; send smaller inputs or start "
                                      "the server with a larger --max-run-memory");
}

// ---- rows ----
// exp, sum, log and the shift back of a half row, rounded after each.
static float rounded(Dtype half, double value)
{
        return rounded_to_half((float)value, half);
}

#define RED(x)      x##_f32
#define RED_T       float
#define RED_DTYPE   DTYPE_F32
#define RED_NAN(x)  ((x) != (x))
#define RED_LOWEST  (-INFINITY)
#define RED_HIGHEST INFINITY
#include "core/kernels/reduce/reduce_rows.inc"
#include "core/kernels/reduce/reduce_float.inc"
#undef RED
#undef RED_T
#undef RED_DTYPE
#define RED(x)    x##_f64
#define RED_DTYPE DTYPE_F64
#define RED_T     double
#include "core/kernels/reduce/reduce_rows.inc"
#include "core/kernels/reduce/reduce_float.inc"
#undef RED
#undef RED_T
#undef RED_DTYPE
#undef RED_NAN
#undef RED_LOWEST
#undef RED_HIGHEST
#define RED(x)      x##_i64
#define RED_T       int64_t
#define RED_DTYPE   DTYPE_I64
#define RED_NAN(x)  false
#define RED_LOWEST  INT64_MIN
#define RED_HIGHEST INT64_MAX
#define RED_INTEGER 1
#include "core/kernels/reduce/reduce_rows.inc"

static void count_i64(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        const int64_t *x = row;
        int64_t count = 0;
        for (int64_t from = 0, end; (end = work_end(work, from, n, 1)) > from; from = end) {
                for (int64_t i = from; i < end; i++)
                        count += x[i] != 0;
        }
        ((int64_t *)task->out)[index] = task->kind == REDUCE_NONZERO ? count
                                        : task->kind == REDUCE_ANY   ? count > 0
                                                                     : count == n;
}

// As logsumexp_f32, with softmax's exponentials where it can: several at once.
static void logsumexp_fast_f32(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Reduction *task = context;
        float max = NAN;
        double sum = task->rounding == DTYPE_F16 || task->rounding == DTYPE_BF16
                             ? 0
                             : softmax_sum_row_f32(work, n, row, &max);
        if (isfinite(max))
                ((float *)task->out)[index] = (float)(log(sum) + (double)max);
        else
                logsumexp_f32(context, work, index, n, row);
}

static RowFunction row_function(Dtype dtype, ReduceKind kind, bool with_index)
{
        static const RowFunction f32[] = { sum_f32,   sum_f32,   prod_f32,
                                           max_f32,   min_f32,   count_f32,
                                           count_f32, count_f32, logsumexp_fast_f32,
                                           norm_f32,  var_f32,   var_f32,
                                           sum_f32 };
        static const RowFunction f64[] = { sum_f64,   sum_f64,   prod_f64,  max_f64,       min_f64,
                                           count_f64, count_f64, count_f64, logsumexp_f64, norm_f64,
                                           var_f64,   var_f64,   sum_f64 };
        static const RowFunction i64[] = { sum_i64,   NULL, prod_i64, max_i64, min_i64, count_i64, count_i64,
                                           count_i64, NULL, NULL,     NULL,    NULL,    NULL };
        if (with_index && kind == REDUCE_MAX)
                return dtype == DTYPE_F32 ? argmax_f32 : dtype == DTYPE_F64 ? argmax_f64 : argmax_i64;
        if (with_index && kind == REDUCE_MIN)
                return dtype == DTYPE_F32 ? argmin_f32 : dtype == DTYPE_F64 ? argmin_f64 : argmin_i64;
        return (dtype == DTYPE_F32 ? f32 : dtype == DTYPE_F64 ? f64 : i64)[kind];
}

Status reduce_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction)
{
        if (columns_fit(plan, reduction))
                return columns_run(ctx, plan, reduction);
        RowFunction visit = row_function(reduction->dtype, reduction->kind, reduction->extra != NULL);
        if (visit == NULL)
                return fail(STATUS_INTERNAL, "this reduction is not made for integers");
        return rows_visit(ctx, plan, dtype_info[reduction->dtype].bytes, reduction->data, visit, reduction);
}
