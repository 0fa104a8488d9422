// SPDX-License-Identifier: Apache-2.0
// reduce_scan.c: scans are sequential along their dimension; rows are independent and go to
// threads.
#include "core/kernels/reduce/reduce_scan.h"
#include <math.h>

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

Status scan_run(const RunContext *ctx, const RowPlan *plan, const Scan *scan, const void *data)
{
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
