// SPDX-License-Identifier: Apache-2.0
// reduce_scan.c: scans are sequential along their dimension; rows are independent and go to threads.
#include "core/kernels/reduce_scan.h"
#include <math.h>

typedef struct ScanTask {
        ScanKind kind;
        int64_t inner;
        void *out;
        int64_t *indices;
} ScanTask;

#define SCAN(x)     x##_f32
#define SCAN_T      float
#define SCAN_SUM_T  double
#define SCAN_NAN(x) ((x) != (x))
#include "core/kernels/reduce_scan.inc"
#undef SCAN
#undef SCAN_T
#define SCAN(x) x##_f64
#define SCAN_T  double
#include "core/kernels/reduce_scan.inc"
#undef SCAN
#undef SCAN_T
#undef SCAN_SUM_T
#undef SCAN_NAN
#define SCAN(x)     x##_i64
#define SCAN_T      int64_t
#define SCAN_SUM_T  uint64_t
#define SCAN_NAN(x) false
#include "core/kernels/reduce_scan.inc"

static double add_logs(double a, double b)
{
        if (isnan(a) || isnan(b))
                return NAN;
        double high = MAX(a, b), low = MIN(a, b);
        return isinf(high) ? high : high + log1p(exp(low - high));
}

static void log_rows(const void *context, int64_t index, int64_t n, const void *row)
{
        const ScanTask *task = context;
        const double *x = row;
        double *out = (double *)task->out + index / task->inner * n * task->inner + index % task->inner, sum = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
                sum = add_logs(sum, x[i]);
                out[i * task->inner] = sum;
        }
}

Status scan_run(const RunContext *ctx, const RowPlan *plan, int64_t inner, Dtype dtype, ScanKind kind, const void *data, void *out, int64_t *indices)
{
        ScanTask task = { kind, inner, out, indices };
        RowFunction visit = dtype == DTYPE_F32 ? scan_f32 : dtype == DTYPE_F64 ? scan_f64 : scan_i64;
        if (kind == SCAN_LOGSUMEXP) {
                if (dtype != DTYPE_F64)
                        return fail(STATUS_INTERNAL, "logcumsumexp runs in float64");
                visit = log_rows;
        }
        return rows_visit(ctx, plan, dtype_info[dtype].bytes, data, visit, &task);
}
