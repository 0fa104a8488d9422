// SPDX-License-Identifier: Apache-2.0
// reduce_scan.c: scans are sequential along their dimension; rows are independent and go to
// threads. Where the elements of rows lie side by side, many rows go on together.
#include "core/kernels/reduce/reduce_scan.h"
#include <math.h>

enum { SCAN_COLUMNS = 128 };

// Some columns of [n_rows][...], `step` elements from row to row.
typedef struct ScanColumns {
        const void *from;
        int64_t at, n, n_rows, step; // at: of the first element in the result
} ScanColumns;

#define SCAN(x)     x##_single
#define SCAN_T      float
#define SCAN_SUM_T  float
#define SCAN_NAN(x) ((x) != (x))
#include "core/kernels/reduce/reduce_scan.inc"
#include "core/kernels/reduce/reduce_scan_pairs.inc"
#undef SCAN
#undef SCAN_SUM_T
#undef SCAN_NAN
#undef SCAN_T
#define SCAN(x)     x##_f32
#define SCAN_T      float
#define SCAN_SUM_T  double
#define SCAN_NAN(x) ((x) != (x))
#include "core/kernels/reduce/reduce_scan.inc"
#include "core/kernels/reduce/reduce_scan_pairs.inc"
#undef SCAN
#undef SCAN_T
#define SCAN(x) x##_f64
#define SCAN_T  double
#include "core/kernels/reduce/reduce_scan.inc"
#include "core/kernels/reduce/reduce_scan_pairs.inc"
#undef SCAN
#undef SCAN_T
#undef SCAN_SUM_T
#undef SCAN_NAN
#define SCAN(x)     x##_i64
#define SCAN_T      int64_t
#define SCAN_SUM_T  uint64_t
#define SCAN_NAN(x) false
#include "core/kernels/reduce/reduce_scan.inc"

static double add_logs(double a, double b)
{
        if (isnan(a) || isnan(b))
                return NAN;
        double high = MAX(a, b), low = MIN(a, b);
        return isinf(high) ? high : high + log1p(exp(low - high));
}

static void log_rows(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        const Scan *task = context;
        const double *x = row;
        double *out = (double *)task->out + index / task->inner * n * task->inner + index % task->inner,
               sum = -INFINITY;
        for (int64_t from = 0, end; (end = work_end(work, from, n, 32)) > from; from = end) {
                for (int64_t i = from; i < end; i++) {
                        sum = add_logs(sum, x[i]);
                        out[i * task->inner] = sum;
                }
        }
}

// ---- side by side ----
typedef struct ColumnsTask {
        const RunContext *ctx;
        const RowPlan *plan;
        const Scan *scan;
        const char *data;
        int64_t n_blocks; // of each `inner`
} ColumnsTask;

static bool is_columns(const RowPlan *plan, const Scan *scan)
{
        int last = plan->n_keep - 1;
        return scan->kind <= SCAN_MIN && scan->inner >= SCAN_COLUMNS / 8 && plan->n_reduce == 1 &&
               last >= 0 && plan->keep_stride[last] == 1 && plan->keep_size[last] % scan->inner == 0;
}

static void scan_columns(const Scan *scan, Work *work, const ScanColumns *columns)
{
        bool extreme = scan->kind == SCAN_MAX || scan->kind == SCAN_MIN;
        if (scan->dtype == DTYPE_I64)
                (extreme ? extreme_columns_i64 : columns_i64)(scan, work, columns);
        else if (scan->dtype == DTYPE_F64)
                (extreme ? extreme_columns_f64 : columns_f64)(scan, work, columns);
        else if (scan->single)
                (extreme ? extreme_columns_single : columns_single)(scan, work, columns);
        else
                (extreme ? extreme_columns_f32 : columns_f32)(scan, work, columns);
}

static void scan_blocks(void *argument, int64_t begin, int64_t end)
{
        const ColumnsTask *task = argument;
        const RowPlan *plan = task->plan;
        const Scan *scan = task->scan;
        int64_t bytes = dtype_info[scan->dtype].bytes;
        Work work = { .ctx = task->ctx };
        for (int64_t block = begin; block < end && !work.stops; block++) {
                int64_t outer = block / task->n_blocks, first = block % task->n_blocks * SCAN_COLUMNS,
                        left = outer * scan->inner + first, offset = 0;
                for (int d = plan->n_keep - 1; d >= 0; d--) {
                        offset += left % plan->keep_size[d] * plan->keep_stride[d];
                        left /= plan->keep_size[d];
                }
                ScanColumns columns = { .from = task->data + offset * bytes,
                                        .at = outer * plan->row_length * scan->inner + first,
                                        .n = MIN(scan->inner - first, (int64_t)SCAN_COLUMNS),
                                        .n_rows = plan->row_length,
                                        .step = plan->reduce_stride[0] };
                scan_columns(scan, &work, &columns);
        }
}

Status scan_run(const RunContext *ctx, const RowPlan *plan, const Scan *scan, const void *data)
{
        if (is_columns(plan, scan)) {
                ColumnsTask task = { ctx, plan, scan, data, (scan->inner + SCAN_COLUMNS - 1) / SCAN_COLUMNS };
                int64_t n = plan->n_rows / scan->inner * task.n_blocks;
                TRY(parallel_for(ctx, n, MAX((int64_t)1, 512 / plan->row_length), scan_blocks, &task));
                return run_poll(ctx);
        }
        RowFunction visit = scan->dtype == DTYPE_F32   ? (scan->single ? scan_single : scan_f32)
                            : scan->dtype == DTYPE_F64 ? scan_f64
                                                       : scan_i64;
        if (scan->kind == SCAN_PAIR_PROD)
                visit = scan->dtype == DTYPE_F64 ? pairs_f64 : scan->single ? pairs_single : pairs_f32;
        if (scan->kind == SCAN_LOGSUMEXP && scan->dtype != DTYPE_F64)
                return fail(STATUS_INTERNAL, "logcumsumexp runs in float64");
        if (scan->kind == SCAN_LOGSUMEXP)
                visit = log_rows;
        return rows_visit(ctx, plan, dtype_info[scan->dtype].bytes, data, visit, scan);
}
