// SPDX-License-Identifier: Apache-2.0
// sequences.c: logspace, linspace between tensors, and the indices of triangles.
#include <math.h>
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/pointwise.h"

enum { SEQUENCE_GRAIN = 4096 };

// ---- linspace, logspace ----
// An end given as a tensor must be 0-dim; its number is read by run.
static Status check_ends(const OpCall *call)
{
        for (int i = LOGSPACE_START; i <= LOGSPACE_END; i++) {
                const TensorMeta *meta = call->args[i].kind == VALUE_TENSOR ? arg_meta(call, i) : NULL;
                if (meta != NULL && meta->rank != 0)
                        return fail(
                                STATUS_SHAPE,
                                "%s only supports 0-dimensional start and end tensors, but got %s with %d "
                                "dimension(s).",
                                call->schema->name, call->schema->args[i].name, meta->rank);
        }
        return STATUS_OK;
}

static Status logspace_infer(OpCall *call)
{
        TensorMeta meta;
        int64_t steps = 0, numel;
        TRY(check_ends(call));
        TRY(arg_int(call, LOGSPACE_STEPS, &steps));
        if (steps < 0)
                return fail(STATUS_VALUE, "number of steps must be non-negative");
        TRY(shape_numel(1, &steps, &numel));
        meta_init(&meta, arg_dtype(call, LOGSPACE_DTYPE, DTYPE_F32), 1, &steps);
        if (dtype_info[meta.dtype].kind == DTYPE_KIND_COMPLEX || meta.dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "\"logspace\" not implemented for '%s'", dtype_words(meta.dtype));
        for (int i = LOGSPACE_START; i <= LOGSPACE_END && steps > 1; i++) {
                if (call->args[i].kind != VALUE_TENSOR)
                        TRY(number_check_fits(arg_number(call, i), meta.dtype));
        }
        return out_fresh(call, 0, &meta);
}

// The number of argument `index`; of tensor operand *tensor if it is one, which must fit the dtype
// of the result if `checked`. Infer has checked numbers.
static Status end_number(const OpRun *run, int index, bool checked, uint32_t *tensor, double *out)
{
        if (run->call->args[index].kind != VALUE_TENSOR)
                return arg_double(run->call, index, out);
        Dtype dtype = run->in_meta[*tensor]->dtype;
        *out = element_as_f64(dtype, run->in[*tensor]);
        ++*tensor;
        Value number = dtype_is_int(dtype) ? value_int((int64_t)*out) : value_float(*out);
        return checked ? number_check_fits(number, run->out_meta[0]->dtype) : STATUS_OK;
}

typedef struct LogspaceJob {
        Dtype dtype;
        double start, end, base, step; // exponents; start, end and end - start are of the dtype
        int64_t n;
        char *out;
} LogspaceJob;

// Counts the second half from the end.
static void logspace_part(void *argument, int64_t begin, int64_t end)
{
        const LogspaceJob *job = argument;
        for (int64_t i = begin; i < end; i++) {
                bool head = i < job->n / 2;
                double exponent = head ? job->start + job->step * (double)i
                                       : job->end - job->step * (double)(job->n - i - 1);
                element_from_f64(job->dtype, job->out + i * dtype_info[job->dtype].bytes,
                                 pow(job->base, exponent));
        }
}

static double converted(Dtype dtype, double x)
{
        uint64_t bits = 0;
        if (dtype_is_int(dtype) && x < 0) // -1 is 255 of uint8
                element_from_i64(dtype, &bits, (int64_t)x);
        else
                element_from_f64(dtype, &bits, x);
        return element_as_f64(dtype, &bits);
}

// One power is computed as a number is that fills a tensor.
static Status one_power(const LogspaceJob *job)
{
        double value = pow(job->base, job->start);
        if ((DTYPES_HALFS >> job->dtype & 1) == 0)
                TRY(number_check_fits(value_float(value), job->dtype));
        element_from_f64(job->dtype, job->out, value);
        return STATUS_OK;
}

static Status logspace_run(const OpRun *run)
{
        LogspaceJob job = { .dtype = run->out_meta[0]->dtype,
                            .n = run->out_meta[0]->size[0],
                            .out = run->out[0] };
        uint32_t tensor = 0;
        TRY(end_number(run, LOGSPACE_START, job.n > 1, &tensor, &job.start));
        TRY(end_number(run, LOGSPACE_END, job.n > 1, &tensor, &job.end));
        TRY(arg_double(run->call, LOGSPACE_BASE, &job.base));
        if (job.n <= 1)
                return job.n == 1 ? one_power(&job) : STATUS_OK;
        job.start = converted(job.dtype, job.start);
        job.end = converted(job.dtype, job.end);
        double range = job.end - job.start;
        job.step = (dtype_is_int(job.dtype) ? range : converted(job.dtype, range)) / (double)(job.n - 1);
        return parallel_for(run->ctx, job.n, SEQUENCE_GRAIN, logspace_part, &job);
}

static Cost logspace_cost(const OpCall *call)
{
        int64_t n = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = saturating_product(n, 16), .bytes = saturating_product(n, 8) };
}

// The numbers are asked for, so a graph whose ends are computed runs here eagerly.
static Status linspace_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        TRY(check_ends(call));
        Value ends[2];
        for (int i = 0; i < 2; i++)
                ends[i] = call->args[i].kind == VALUE_TENSOR ? OP(&c, "aten::item", call->args[i])
                                                             : call->args[i];
        return compose_end(
                &c, OP(&c, "aten::linspace", ends[0], ends[1], NAMED(&c, "steps"), NAMED(&c, "dtype")), out);
}

// ---- tril_indices, triu_indices ----
typedef struct Triangle {
        int64_t rows, columns, offset;
        bool upper;
} Triangle;

static Status triangle_args(const OpCall *call, Triangle *out)
{
        TRY(arg_int(call, TRIANGLE_ROW, &out->rows));
        TRY(arg_int(call, TRIANGLE_COL, &out->columns));
        TRY(arg_int(call, TRIANGLE_OFFSET, &out->offset));
        out->upper = call->op->row != NULL;
        if (out->rows < 0 || out->columns < 0)
                return fail(STATUS_VALUE, "%s must be non-negative, got%ld", out->rows < 0 ? "row" : "col",
                            (long)(out->rows < 0 ? out->rows : out->columns));
        int64_t all;
        if (!mul_i64(out->rows, out->columns, &all))
                return fail(STATUS_TOO_LARGE, "%s: the matrix is too large", call->schema->name);
        // Far diagonals keep all or nothing.
        out->offset = MIN(MAX(out->offset, -out->rows - 1), out->columns + 1);
        return STATUS_OK;
}

// How many elements of a rows x columns matrix lie on or below the diagonal.
static int64_t below(const Triangle *t, int64_t offset)
{
        // Row i keeps min(columns, max(0, i + offset + 1)) elements.
        int64_t first = MAX(0, -offset), full = MIN(MAX(t->columns - offset - 1, first), t->rows);
        if (first >= t->rows)
                return 0;
        int64_t growing = full - first, least = first + offset + 1; // an arithmetic series, then full rows
        return growing * least + growing * (growing - 1) / 2 + (t->rows - full) * t->columns;
}

static Status triangle_indices_infer(OpCall *call)
{
        Triangle t = { 0 };
        TensorMeta meta;
        TRY(triangle_args(call, &t));
        int64_t lower = below(&t, t.upper ? t.offset - 1 : t.offset);
        int64_t size[] = { 2, t.upper ? t.rows * t.columns - lower : lower }, numel;
        TRY(shape_numel(2, size, &numel));
        meta_init(&meta, arg_dtype(call, TRIANGLE_DTYPE, DTYPE_I64), 2, size);
        if (dtype_info[meta.dtype].kind == DTYPE_KIND_COMPLEX || meta.dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", call->schema->name,
                            dtype_words(meta.dtype));
        return out_fresh(call, 0, &meta);
}

static Status triangle_indices_run(const OpRun *run)
{
        Triangle t;
        TRY(triangle_args(run->call, &t));
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], DTYPE_I64));
        int64_t n = run->out_meta[0]->size[1], k = 0;
        int64_t *rows = out.data, *columns = rows + n;
        Work work = { .ctx = run->ctx };
        for (int64_t i = t.upper ? 0 : MAX(0, -t.offset); i < t.rows && k < n && !work_stops(&work, 1); i++) {
                int64_t first = t.upper ? MAX(0, i + t.offset) : 0;
                int64_t end = t.upper ? t.columns : MIN(t.columns, i + t.offset + 1);
                for (int64_t j = first; j < end && k < n && !work_stops(&work, 2); j++, k++) {
                        rows[k] = i;
                        columns[k] = j;
                }
        }
        TRY(run_poll(run->ctx));
        return dense_out_store(&out);
}

static Cost triangle_cost(const OpCall *call)
{
        int64_t n = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = n, .bytes = saturating_product(n, 8) };
}

#define OPTIONS "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LOGSPACE(overload, start, end)                                                                       \
        {                                                                                                    \
                "aten::logspace" overload "(" start " start, " end                                           \
                " end, int steps, float base=10., " OPTIONS ") -> Tensor",                                   \
                        DTYPES_REAL, .infer = logspace_infer, .run = logspace_run, .cost = logspace_cost,    \
                                     .traits = TRAIT_FRESH                                                   \
        }
#define LINSPACE(overload, start, end)                                                                       \
        {                                                                                                    \
                "aten::linspace" overload "(" start " start, " end " end, int steps, " OPTIONS               \
                ") -> Tensor",                                                                               \
                        0, .expand = linspace_expand, .traits = TRAIT_FRESH                                  \
        }
#define TRIANGLE(name, row_)                                                                                 \
        {                                                                                                    \
                "aten::" name "(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? "            \
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                        \
                        0, .infer = triangle_indices_infer, .run = triangle_indices_run,                     \
                           .cost = triangle_cost, .row = row_, .traits = TRAIT_FRESH                         \
        }
const OpDef sequences_ops[] = {
        LOGSPACE("", "Scalar", "Scalar"),
        LOGSPACE(".Tensor_Tensor", "Tensor", "Tensor"),
        LOGSPACE(".Tensor_Scalar", "Tensor", "Scalar"),
        LOGSPACE(".Scalar_Tensor", "Scalar", "Tensor"),
        LINSPACE(".Tensor_Tensor", "Tensor", "Tensor"),
        LINSPACE(".Tensor_Scalar", "Tensor", "Scalar"),
        LINSPACE(".Scalar_Tensor", "Scalar", "Tensor"),
        TRIANGLE("tril_indices", NULL),
        TRIANGLE("triu_indices", "upper"),
};
OP_FILE(sequences_ops);
