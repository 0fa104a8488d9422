// SPDX-License-Identifier: Apache-2.0
// factory.c: tensors out of sizes and numbers. dtypes follow the fill value where none is given;
// devices, layouts and pin_memory are accepted and ignored. `empty` gives zeros: uninitialised
// bytes would leak data of other runs.
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/ops/arguments.h"
#include "core/ops/factory.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"

// ---- filled ----
Status factory_sized(OpCall *call, int size_arg, Dtype dtype)
{
        int64_t size[MAX_RANK], numel;
        int rank = 0;
        TensorMeta meta;
        TRY(view_arg_shape(call, size_arg, size, &rank));
        for (int d = 0; d < rank; d++) {
                if (size[d] < 0)
                        return fail(STATUS_VALUE, "%s: Dimension size must be non-negative.",
                                    call->schema->name);
        }
        TRY(shape_numel(rank, size, &numel));
        meta_init(&meta, dtype, rank, size);
        return out_fresh(call, 0, &meta);
}

Status factory_like(OpCall *call, Dtype dtype, MemoryFormat format)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        meta.dtype = dtype;
        TRY(view_set_strides(&meta, format, self));
        return out_fresh(call, 0, &meta);
}

static Dtype number_dtype(Value number)
{
        switch (number.kind) {
        case VALUE_BOOL:
                return DTYPE_BOOL;
        case VALUE_INT:
                return DTYPE_I64;
        case VALUE_COMPLEX:
                return DTYPE_C64;
        default:
                return DTYPE_F32;
        }
}

// zeros, ones, empty (size, *, dtype ...)
static Status sized_infer(OpCall *call)
{
        return factory_sized(call, SIZED_SIZE, arg_dtype(call, SIZED_DTYPE, DTYPE_F32));
}

static Status empty_infer(OpCall *call)
{
        TRY(sized_infer(call));
        TensorMeta *meta = &call->outs[0].meta;
        MemoryFormat format = arg_memory_format(call, SIZED_MEMORY_FORMAT, MEMORY_FORMAT_CONTIGUOUS);
        if (format == MEMORY_FORMAT_PRESERVE)
                return fail(STATUS_VALUE, "empty() does not support the memory format torch.preserve_format");
        return view_set_strides(meta, format, meta);
}

// The number in argument `index` fits the result.
static Status check_fill(const OpCall *call, int index)
{
        const TensorMeta *meta = &call->outs[0].meta;
        return number_check_fits(number_for_fill(arg_number(call, index), meta), meta->dtype);
}

static Status full_infer(OpCall *call)
{
        TRY(factory_sized(call, SIZED_SIZE,
                          arg_dtype(call, FULL_DTYPE, number_dtype(arg_number(call, FULL_FILL_VALUE)))));
        return check_fill(call, FULL_FILL_VALUE);
}

// new_zeros, new_ones, new_empty (self, size, *, dtype ...)
static Status new_infer(OpCall *call)
{
        return factory_sized(call, NEW_SIZE, arg_dtype(call, NEW_DTYPE, arg_meta(call, SELF)->dtype));
}

static Status new_full_infer(OpCall *call)
{
        TRY(factory_sized(call, NEW_SIZE, arg_dtype(call, NEW_FULL_DTYPE, arg_meta(call, SELF)->dtype)));
        return check_fill(call, NEW_FULL_FILL_VALUE);
}

// zeros_like, ones_like, empty_like (self, *, dtype, layout, device, pin_memory, memory_format)
static Status like_infer(OpCall *call)
{
        return factory_like(call, arg_dtype(call, LIKE_DTYPE, arg_meta(call, SELF)->dtype),
                            arg_memory_format(call, LIKE_MEMORY_FORMAT, MEMORY_FORMAT_PRESERVE));
}

static Status full_like_infer(OpCall *call)
{
        TRY(factory_like(call, arg_dtype(call, FULL_LIKE_DTYPE, arg_meta(call, SELF)->dtype),
                         arg_memory_format(call, FULL_LIKE_MEMORY_FORMAT, MEMORY_FORMAT_PRESERVE)));
        return check_fill(call, FULL_LIKE_FILL_VALUE);
}

static Status empty_strided_infer(OpCall *call)
{
        TensorMeta meta = { .dtype = arg_dtype(call, EMPTY_STRIDED_DTYPE, DTYPE_F32) };
        int rank = 0, n_strides = 0;
        int64_t numel, span;
        TRY(view_arg_shape(call, EMPTY_STRIDED_SIZE, meta.size, &rank));
        TRY(view_arg_shape(call, EMPTY_STRIDED_STRIDE, meta.stride, &n_strides));
        if (rank != n_strides)
                return fail(STATUS_VALUE, "mismatch in length of strides and shape");
        meta.rank = (uint8_t)rank;
        TRY(shape_numel(rank, meta.size, &numel));
        TRY(meta_span(&meta, &span));
        if (!meta_is_non_overlapping_and_dense(&meta))
                return fail(STATUS_VALUE, "empty_strided() with gaps or overlap is not supported");
        return out_fresh(call, 0, &meta);
}

// Dense; physical_layout lists the dimensions from the outermost in memory.
static Status empty_permuted_infer(OpCall *call)
{
        TensorMeta meta = { .dtype = arg_dtype(call, EMPTY_PERMUTED_DTYPE, DTYPE_F32) };
        int rank = 0, n = 0;
        int64_t layout[MAX_RANK], numel, stride = 1;
        uint32_t seen = 0;
        TRY(view_arg_shape(call, EMPTY_PERMUTED_SIZE, meta.size, &rank));
        TRY(arg_ints(call, EMPTY_PERMUTED_LAYOUT, MAX_RANK, layout, &n));
        if (rank != n)
                return fail(STATUS_VALUE,
                            "Number of dimensions in size does not match the length of the physical_layout; "
                            "i.e. len(size) = %d is not equal to len(physical_layout) = %d",
                            rank, n);
        meta.rank = (uint8_t)rank;
        TRY(shape_numel(rank, meta.size, &numel));
        for (int i = n - 1; i >= 0; i--) {
                if (layout[i] < 0 || layout[i] >= rank)
                        return fail(STATUS_VALUE,
                                    "Dimension out of range (expected to be between 0 and %d, but got %ld at "
                                    "index %d).",
                                    rank - 1, (long)layout[i], i);
                if ((seen >> layout[i] & 1) != 0)
                        return fail(STATUS_VALUE, "Duplicate dim not allowed");
                seen |= 1u << layout[i];
                meta.stride[layout[i]] = stride;
                stride *= MAX(meta.size[layout[i]], 1);
        }
        return out_fresh(call, 0, &meta);
}

static Status scalar_tensor_infer(OpCall *call)
{
        TensorMeta meta;
        meta_init(&meta, arg_dtype(call, SCALAR_TENSOR_DTYPE, DTYPE_F32), 0, NULL);
        TRY(out_fresh(call, 0, &meta));
        return check_fill(call, SCALAR_TENSOR_S);
}

static Status fill_with(const OpRun *run, Value number)
{
        uint64_t element[2] = { 0 };
        TRY(value_element(number_for_fill(number, run->out_meta[0]), run->out_meta[0]->dtype, element));
        Region to = region_of(run->out_meta[0], run->out[0]);
        return fill_region(run->ctx, &to, element);
}

static Status zeros_run(const OpRun *run)
{
        const uint64_t zeros[2] = { 0 }; // bytes: float8_e8m0fnu has no number 0
        Region to = region_of(run->out_meta[0], run->out[0]);
        return fill_region(run->ctx, &to, zeros);
}

static Status ones_run(const OpRun *run)
{
        return fill_with(run, value_int(1));
}

// scalar_tensor(s), full(size, fill_value), full_like(self, fill_value), new_full(self, size,
// fill_value): filled with the first Scalar argument.
static Status first_number_run(const OpRun *run)
{
        int at = 0;
        while (run->call->schema->args[at].type != ARG_SCALAR)
                at++;
        return fill_with(run, arg_number(run->call, at));
}

// ---- ranges ----
enum { RANGE_GRAIN = 16384 };

typedef struct RangePlan {
        bool is_int;
        int64_t start, step;
        double start_f, step_f;
} RangePlan;

// The number of steps in [first, last). `whole` counts in integers, as PyTorch does for int64
// results.
static Status range_length(const RangePlan *plan, bool whole, double last, int64_t last_int, int64_t *out_n)
{
        double n = 0;
        int64_t length;
        if (whole) {
                if (!sub_i64(last_int, plan->start, &length))
                        return fail(STATUS_TOO_LARGE, "arange() of more than 2^63 elements");
                n = (double)(length / plan->step + (length % plan->step != 0));
        } else {
                n = ceil((last - plan->start_f) / plan->step_f);
        }
        if (!(n >= 0 && n < 9e18))
                return fail(STATUS_TOO_LARGE, "arange() of %g elements", n);
        *out_n = (int64_t)n;
        return STATUS_OK;
}

static int64_t number_as_int(Value number)
{
        return number.kind == VALUE_FLOAT ? (fabs(number.f) < 9e18 ? (int64_t)number.f : 0)
               : number.kind == VALUE_INT ? number.i
                                          : number.b;
}

static double number_as_double(Value number)
{
        return number.kind == VALUE_FLOAT ? number.f : number.kind == VALUE_INT ? (double)number.i : number.b;
}

static Status arange_args(const OpCall *call, RangePlan *out_plan, int64_t *out_n, Dtype *out_dtype)
{
        // 5: end; 6: start, end; 7: start, end, step; four of them are options
        uint32_t n_args = call->n_args;
        Value from = n_args == 5 ? value_int(0) : arg_number(call, ARANGE_START),
              to = arg_number(call, n_args == 5 ? ARANGE_ONLY_END : ARANGE_END);
        Value by = n_args == 7 ? arg_number(call, ARANGE_STEP) : value_int(1);
        if (!value_is_number(from) || !value_is_number(to) || !value_is_number(by))
                return fail(STATUS_DYNAMIC, "the bounds of arange() are not known before the run");
        if (from.kind == VALUE_COMPLEX || to.kind == VALUE_COMPLEX || by.kind == VALUE_COMPLEX)
                return fail(STATUS_DTYPE, "arange() takes real numbers, not complex ones");
        bool all_int = from.kind != VALUE_FLOAT && to.kind != VALUE_FLOAT && by.kind != VALUE_FLOAT;
        Dtype dtype = arg_dtype(call, (int)n_args - 4, all_int ? DTYPE_I64 : DTYPE_F32);
        if (!dtype_is_float(dtype) && !dtype_is_int(dtype))
                return fail(STATUS_DTYPE, "\"arange_cpu\" not implemented for '%s'", dtype_words(dtype));
        if (dtype_is_int(dtype)) { // counted in int64, whatever the dtype
                TRY(number_check_fits(from, DTYPE_I64));
                TRY(number_check_fits(to, DTYPE_I64));
                TRY(number_check_fits(by, DTYPE_I64));
        }
        *out_plan = (RangePlan){ .is_int = !dtype_is_float(dtype),
                                 .start = number_as_int(from),
                                 .step = number_as_int(by),
                                 .start_f = number_as_double(from),
                                 .step_f = number_as_double(by) };
        double last = number_as_double(to), first = out_plan->start_f,
               step = dtype == DTYPE_I64 ? (double)out_plan->step : out_plan->step_f;
        if (step == 0)
                return fail(STATUS_VALUE, "step must be nonzero");
        if (!isfinite(first) || !isfinite(last))
                return fail(STATUS_VALUE, "unsupported range: %g -> %g", first, last);
        if ((step > 0 && last < first) || (step < 0 && last > first))
                return fail(STATUS_VALUE, "upper bound and lower bound inconsistent with step sign");
        *out_dtype = dtype;
        return range_length(out_plan, dtype == DTYPE_I64, last, number_as_int(to), out_n);
}

static Status arange_infer(OpCall *call)
{
        RangePlan plan;
        int64_t n = 0, numel;
        Dtype dtype = DTYPE_F32;
        TensorMeta meta;
        TRY(arange_args(call, &plan, &n, &dtype));
        TRY(shape_numel(1, &n, &numel));
        meta_init(&meta, dtype, 1, &n);
        return out_fresh(call, 0, &meta);
}

typedef struct RangeJob {
        RangePlan plan;
        Dtype dtype;
        double end;
        int64_t n;
        char *out;
} RangeJob;

enum { RANGE_TILE = 512 };

static void arange_whole(const RangeJob *job, int64_t begin, size_t n)
{
        const int bytes = dtype_info[job->dtype].bytes;
        int64_t tile[RANGE_TILE];
        const uint64_t step = (uint64_t)job->plan.step, start = (uint64_t)job->plan.start;
        for (size_t i = 0; i < n; i++)
                tile[i] = (int64_t)(start + ((uint64_t)begin + i) * step);
        tile_storer(TILE_I64, job->dtype)(tile, n, job->out + begin * bytes, bytes);
}

static void arange_real(const RangeJob *job, int64_t begin, size_t n)
{
        const int bytes = dtype_info[job->dtype].bytes;
        double tile[RANGE_TILE];
        for (size_t i = 0; i < n; i++)
                tile[i] = job->plan.start_f + (double)(begin + (int64_t)i) * job->plan.step_f;
        tile_storer(TILE_F64, job->dtype)(tile, n, job->out + begin * bytes, bytes);
}

static void arange_part(void *argument, int64_t begin, int64_t end)
{
        const RangeJob *job = argument;
        for (int64_t at = begin; at < end; at += RANGE_TILE) {
                const size_t n = (size_t)MIN(end - at, RANGE_TILE);
                if (job->plan.is_int)
                        arange_whole(job, at, n);
                else
                        arange_real(job, at, n);
        }
}

static Status arange_run(const OpRun *run)
{
        RangeJob job = { .out = run->out[0] };
        TRY(arange_args(run->call, &job.plan, &job.n, &job.dtype));
        return parallel_for(run->ctx, job.n, RANGE_GRAIN, arange_part, &job);
}

static Status linspace_infer(OpCall *call)
{
        TensorMeta meta;
        int64_t steps = 0, numel;
        TRY(arg_int(call, LINSPACE_STEPS, &steps));
        if (steps < 0)
                return fail(STATUS_VALUE, "number of steps must be non-negative");
        TRY(shape_numel(1, &steps, &numel));
        meta_init(&meta, arg_dtype(call, LINSPACE_DTYPE, DTYPE_F32), 1, &steps);
        if (dtype_info[meta.dtype].kind == DTYPE_KIND_COMPLEX || meta.dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "\"linspace\" not implemented for '%s'", dtype_words(meta.dtype));
        for (int i = 0; i < 2 && steps > i; i++)
                TRY(number_check_fits(number_for_fill(arg_number(call, i), &meta), meta.dtype));
        return out_fresh(call, 0, &meta);
}

// Counts the second half from the end, so both ends are exact. float32 and below step in float32.
// Integers are cut off: a product rounded by itself gives 1 where PyTorch has 0.99 and so 0.
double linspace_at(Dtype dtype, double start, double end, int64_t steps, int64_t i)
{
        bool head = i < steps / 2;
        if (dtype == DTYPE_F64 || dtype_is_int(dtype)) {
                double step = (end - start) / (double)(steps - 1);
                return head ? fma(step, (double)i, start) : fma(-step, (double)(steps - i - 1), end);
        }
        float first = (float)start, last = (float)end, step = (last - first) / (float)(steps - 1);
        return (double)(head ? first + step * (float)i : last - step * (float)(steps - i - 1));
}

static void linspace_part(void *argument, int64_t begin, int64_t end)
{
        const RangeJob *job = argument;
        for (int64_t i = begin; i < end; i++) {
                double value = job->n == 1 ? job->plan.start_f
                                           : linspace_at(job->dtype, job->plan.start_f, job->end, job->n, i);
                element_from_f64(job->dtype, job->out + i * dtype_info[job->dtype].bytes, value);
        }
}

static Status linspace_run(const OpRun *run)
{
        RangeJob job = { .dtype = run->out_meta[0]->dtype,
                         .n = run->out_meta[0]->size[0],
                         .out = run->out[0] };
        if (job.n == 1 && dtype_is_int(job.dtype) && arg_value(run->call, LINSPACE_START).kind == VALUE_INT) {
                element_from_i64(job.dtype, job.out, arg_value(run->call, LINSPACE_START).i);
                return STATUS_OK;
        }
        TRY(arg_double(run->call, LINSPACE_START, &job.plan.start_f));
        TRY(arg_double(run->call, LINSPACE_END, &job.end));
        double *ends[] = { &job.plan.start_f, &job.end };
        for (int i = 0; i < 2 && dtype_is_int(job.dtype); i++) {
                *ends[i] = trunc(*ends[i]);
                if (job.dtype == DTYPE_U8 && *ends[i] < 0)
                        *ends[i] += 256; // -1 as uint8 is 255
        }
        return parallel_for(run->ctx, job.n, RANGE_GRAIN, linspace_part, &job);
}

// ---- matrices ----
static Status eye_infer(OpCall *call)
{
        bool square = strcmp(call->schema->overload, "m") != 0;
        int64_t size[2], numel;
        TensorMeta meta;
        TRY(arg_int(call, EYE_N, &size[0]));
        TRY(arg_int(call, square ? EYE_N : EYE_M_M, &size[1]));
        if (size[0] < 0 || size[1] < 0)
                return fail(STATUS_VALUE, "%s must be greater or equal to 0, got %" PRId64,
                            size[0] < 0 ? "n" : "m", size[0] < 0 ? size[0] : size[1]);
        TRY(shape_numel(2, size, &numel));
        meta_init(&meta, arg_dtype(call, square ? EYE_DTYPE : EYE_M_DTYPE, DTYPE_F32), 2, size);
        return out_fresh(call, 0, &meta);
}

static Status eye_run(const OpRun *run)
{
        const TensorMeta *meta = run->out_meta[0];
        uint64_t one[2] = { 0 };
        TRY(zeros_run(run));
        TRY(value_element(value_int(1), meta->dtype, one));
        Region diagonal = region_of(meta, run->out[0]);
        diagonal.meta.rank = 1;
        diagonal.meta.size[0] = MIN(meta->size[0], meta->size[1]);
        diagonal.meta.stride[0] = meta->stride[0] + meta->stride[1];
        return fill_region(run->ctx, &diagonal, one);
}

static Status triangle_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        if (meta.rank < 2)
                return fail(STATUS_VALUE, "%s: input tensor must have at least 2 dimensions",
                            call->schema->name);
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

typedef struct TriangleJob {
        const RunContext *ctx;
        const TensorMeta *from_meta;
        const char *from;
        char *to;
        int64_t diagonal, rows, columns, bytes;
        bool upper;
} TriangleJob;

static void zero_columns(Work *work, char *row, int64_t begin, int64_t end, int64_t bytes)
{
        for (int64_t at = begin, stop; (stop = work_end(work, at, end, 1)) > at; at = stop)
                memset(row + at * bytes, 0, (size_t)((stop - at) * bytes));
}

// `step`: bytes between two columns of the source.
static void copy_columns(Work *work, const char *from, int64_t step, char *to, int64_t n, int64_t bytes)
{
        for (int64_t at = 0, stop; (stop = work_end(work, at, n, step == bytes ? 1 : 2)) > at; at = stop) {
                if (step == bytes)
                        memcpy(to + at * bytes, from + at * bytes, (size_t)((stop - at) * bytes));
                for (int64_t j = at; step != bytes && j < stop; j++)
                        memcpy(to + j * bytes, from + j * step, (size_t)bytes);
        }
}

// One row each: the kept columns are copied, the others zeroed. The result is contiguous.
static void triangle_rows(void *argument, int64_t begin, int64_t end)
{
        const TriangleJob *job = argument;
        const TensorMeta *from = job->from_meta;
        Work work = { .ctx = job->ctx };
        for (int64_t row = begin; row < end && !work.stops; row++) {
                int64_t i = row % job->rows, left = row / job->rows,
                        offset = i * from->stride[from->rank - 2];
                for (int d = from->rank - 3; d >= 0; d--) {
                        offset += left % from->size[d] * from->stride[d];
                        left /= from->size[d];
                }
                int64_t edge = i + job->diagonal;
                int64_t first = job->upper ? MIN(MAX(edge, 0), job->columns) : 0;
                int64_t stop = job->upper ? job->columns : MIN(MAX(edge + 1, 0), job->columns);
                int64_t step = from->stride[from->rank - 1] * job->bytes;
                char *target = job->to + row * job->columns * job->bytes;
                zero_columns(&work, target, 0, first, job->bytes);
                copy_columns(&work, job->from + offset * job->bytes + first * step, step,
                             target + first * job->bytes, stop - first, job->bytes);
                zero_columns(&work, target, stop, job->columns, job->bytes);
        }
}

static Status triangle_run(const OpRun *run)
{
        const TensorMeta *meta = run->in_meta[0];
        TriangleJob job = { .ctx = run->ctx,
                            .from_meta = meta,
                            .from = run->in[0],
                            .to = run->out[0],
                            .rows = meta->size[meta->rank - 2],
                            .columns = meta->size[meta->rank - 1],
                            .bytes = dtype_info[meta->dtype].bytes,
                            .upper = run->call->op->row != NULL };
        int64_t numel = meta_numel(meta);
        TRY(arg_int(run->call, TRIANGLE_DIAGONAL, &job.diagonal));
        if (numel == 0)
                return STATUS_OK;
        // A diagonal outside the matrix keeps all or nothing, however far it is.
        job.diagonal = MIN(MAX(job.diagonal, -job.rows - 1), job.columns + 1);
        TRY(parallel_for(run->ctx, numel / job.columns, MAX(16384 / job.columns, 1), triangle_rows, &job));
        return run_poll(run->ctx);
}

#define OPTIONS "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

#define OPTIONS_FORMAT OPTIONS ", MemoryFormat? memory_format=None"
#define FACTORY(schema_, infer_, run_)                                                                       \
        {                                                                                                    \
                .schema = "aten::" schema_ " -> Tensor", .infer = infer_, .run = run_, .traits = TRAIT_FRESH \
        }

const OpDef factory_ops[] = {
        FACTORY("zeros(SymInt[] size, " OPTIONS ")", sized_infer, zeros_run),
        FACTORY("ones(SymInt[] size, " OPTIONS ")", sized_infer, ones_run),
        FACTORY("empty.memory_format(SymInt[] size, " OPTIONS_FORMAT ")", empty_infer, zeros_run),
        FACTORY("empty_strided(SymInt[] size, SymInt[] stride, " OPTIONS ")", empty_strided_infer, zeros_run),
        FACTORY("empty_permuted(SymInt[] size, int[] physical_layout, " OPTIONS ")", empty_permuted_infer,
                zeros_run),
        FACTORY("full(SymInt[] size, Scalar fill_value, " OPTIONS ")", full_infer, first_number_run),
        FACTORY("zeros_like(Tensor self, " OPTIONS_FORMAT ")", like_infer, zeros_run),
        FACTORY("ones_like(Tensor self, " OPTIONS_FORMAT ")", like_infer, ones_run),
        FACTORY("empty_like(Tensor self, " OPTIONS_FORMAT ")", like_infer, zeros_run),
        FACTORY("full_like(Tensor self, Scalar fill_value, " OPTIONS_FORMAT ")", full_like_infer,
                first_number_run),
        FACTORY("new_zeros(Tensor self, SymInt[] size, " OPTIONS ")", new_infer, zeros_run),
        FACTORY("new_ones(Tensor self, SymInt[] size, " OPTIONS ")", new_infer, ones_run),
        FACTORY("new_empty(Tensor self, SymInt[] size, " OPTIONS ")", new_infer, zeros_run),
        FACTORY("new_full(Tensor self, SymInt[] size, Scalar fill_value, " OPTIONS ")", new_full_infer,
                first_number_run),
        FACTORY("scalar_tensor(Scalar s, " OPTIONS ")", scalar_tensor_infer, first_number_run),
        FACTORY("arange(Scalar end, " OPTIONS ")", arange_infer, arange_run),
        FACTORY("arange.start(Scalar start, Scalar end, " OPTIONS ")", arange_infer, arange_run),
        FACTORY("arange.start_step(Scalar start, Scalar end, Scalar step=1, " OPTIONS ")", arange_infer,
                arange_run),
        FACTORY("linspace(Scalar start, Scalar end, int steps, " OPTIONS ")", linspace_infer, linspace_run),
        FACTORY("eye(SymInt n, " OPTIONS ")", eye_infer, eye_run),
        FACTORY("eye.m(SymInt n, SymInt m, " OPTIONS ")", eye_infer, eye_run),
        { .schema = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
          .dtypes = DTYPES_ALL,
          .flags = OP_INPLACE,
          .infer = triangle_infer,
          .run = triangle_run,
          .traits = TRAIT_FRESH },
        { .schema = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
          .dtypes = DTYPES_ALL,
          .flags = OP_INPLACE,
          .infer = triangle_infer,
          .run = triangle_run,
          .row = "upper",
          .traits = TRAIT_FRESH },
};
OP_FILE(factory_ops);
