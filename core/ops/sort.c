// SPDX-License-Identifier: Apache-2.0
// sort.c: sort, argsort, msort, topk, kthvalue, median, nanmedian, mode. NaN is the largest value;
// sorting is stable, whether asked for or not. sort keeps dense strides of self, the others are
// contiguous.
#include "core/kernels/reduce/sort.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/reduce.h"

typedef enum SortKind {
        SORT,
        SORT_INDICES,
        SORT_TOP,
        // one element of each row
        SORT_MIDDLE,
        SORT_NANMIDDLE,
        SORT_VALUE,
        SORT_COMMON
} SortKind;

typedef struct SortRow {
        SortKind kind;
        int dim_arg;
        int descending_arg, keepdim_arg; // 0: absent
} SortRow;

typedef struct SortArgs {
        int dim;
        bool descending;
        int64_t n, n_out, pick; // row length; of the result; which one kthvalue takes
} SortArgs;

static int64_t row_length(const TensorMeta *self, int dim)
{
        return self->rank == 0 ? 1 : self->size[dim];
}

static Status top_args(const OpCall *call, SortArgs *args)
{
        TRY(arg_int(call, TOPK_K, &args->n_out));
        if (arg_meta(call, SELF)->dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "topk does not support bool dtypes on CPU");
        if (args->n_out < 0 || args->n_out > args->n)
                return fail(STATUS_VALUE, "selected index k out of range");
        args->descending = arg_bool(call, TOPK_LARGEST, true);
        // A 0-dim tensor is a row of one element, for any k.
        if (arg_meta(call, SELF)->rank == 0)
                args->n_out = 1;
        return STATUS_OK;
}

static Status sort_args(const OpCall *call, SortArgs *out)
{
        const SortRow *row = call->op->row;
        const TensorMeta *self = arg_meta(call, SELF);
        *out = (SortArgs){ .dim = 0 };
        TRY(arg_dim(call, row->dim_arg, self->rank, &out->dim));
        out->n = out->n_out = row_length(self, out->dim);
        if (row->descending_arg > 0)
                out->descending = arg_bool(call, row->descending_arg, false);
        switch (row->kind) {
        case SORT_TOP:
                return top_args(call, out);
        case SORT_VALUE:
                TRY(arg_int(call, KTHVALUE_K, &out->pick));
                if (out->pick < 1 || out->pick > out->n)
                        return fail(STATUS_VALUE,
                                    "kthvalue(): selected number k out of range for dimension %d", out->dim);
                out->pick--;
                break;
        case SORT_MIDDLE:
        case SORT_NANMIDDLE:
        case SORT_COMMON:
                if (out->n == 0)
                        return fail(STATUS_INDEX, "%s(): Expected reduction dim %d to have non-zero size.",
                                    call->schema->name, out->dim);
                out->n_out = row->kind == SORT_COMMON ? out->n : 1;
                break;
        default:
                break;
        }
        return STATUS_OK;
}

static Status sort_infer(OpCall *call)
{
        const SortRow *row = call->op->row;
        const TensorMeta *self = arg_meta(call, SELF);
        SortArgs args;
        TRY(sort_args(call, &args));
        TensorMeta meta = *self;
        if (row->kind >= SORT_MIDDLE) {
                reduce_meta(self, self->rank == 0 ? 0 : 1u << args.dim,
                            arg_bool(call, row->keepdim_arg, false), self->dtype, &meta);
        } else if (row->kind == SORT_TOP) {
                if (meta.rank > 0)
                        meta.size[args.dim] = args.n_out;
                meta_set_contiguous(&meta);
        } else if (meta_is_non_overlapping_and_dense(self)) {
                meta_set_strides_like(&meta, self);
        } else {
                meta_set_contiguous(&meta);
        }
        uint32_t k = 0;
        if (row->kind != SORT_INDICES)
                TRY(out_fresh(call, k++, &meta));
        meta.dtype = DTYPE_I64;
        return out_fresh(call, k, &meta);
}

// Comparisons of a merge sort; of a selection, and of sorting what it selects.
static Cost sort_cost(const OpCall *call)
{
        const SortRow *row = call->op->row;
        const TensorMeta *self = arg_meta(call, SELF);
        SortArgs args;
        if (sort_args(call, &args) != STATUS_OK)
                return (Cost){ 0 };
        int64_t n = meta_numel(self), levels = 1,
                wanted = row->kind == SORT_TOP && args.n_out < args.n / 8 ? args.n_out : args.n;
        while (levels < 62 && wanted >> levels != 0)
                levels++;
        int64_t bytes = n * dtype_info[self->dtype].bytes;
        for (uint32_t k = 0; k < call->n_outs; k++)
                bytes += meta_numel(&call->outs[k].meta) * dtype_info[call->outs[k].meta.dtype].bytes;
        return (Cost){ .flops = saturating_product(n, levels), .bytes = bytes };
}

// One element of each row of sort_rows(), for kthvalue and mode.
typedef struct Pick {
        const SortArgs *args;
        SortKind kind;
        const RowPlan *plan;
        SortTask *sorted; // values and indices: [n_rows / inner][n][inner]
        void *out_values;
        int64_t *out_indices;
} Pick;

static bool is_equal_at(const SortTask *sorted, int64_t a, int64_t b)
{
        return sorted->dtype == DTYPE_I64
                       ? ((const int64_t *)sorted->values)[a] == ((const int64_t *)sorted->values)[b]
                       : compute_as_f64(sorted->dtype, sorted->values, a) ==
                                 compute_as_f64(sorted->dtype, sorted->values, b);
}

// The smallest of the most frequent values, the last of them. NaNs are all different.
static int64_t pick_mode(const Pick *pick, Work *work, int64_t base)
{
        const SortTask *sorted = pick->sorted;
        int64_t inner = sorted->inner, end = base + pick->args->n * inner, best = base, most = 0, run = 0;
        for (int64_t at = base; at < end && !work_stops(work, 2); at += inner) {
                run++;
                if (at + inner < end && is_equal_at(sorted, at, at + inner))
                        continue;
                best = run > most ? at : best;
                most = MAX(most, run);
                run = 0;
        }
        return best;
}

static int64_t pick_at(const Pick *pick, Work *work, int64_t base)
{
        return pick->kind == SORT_COMMON ? pick_mode(pick, work, base)
                                         : base + pick->args->pick * pick->sorted->inner;
}

static Status pick_elements(const RunContext *ctx, const Pick *pick)
{
        const SortTask *sorted = pick->sorted;
        int64_t n = pick->args->n, inner = sorted->inner;
        Work work = { .ctx = ctx };
        for (int64_t row = 0; row < pick->plan->n_rows && !work_stops(&work, 8); row++) {
                int64_t at = pick_at(pick, &work, row / inner * n * inner + row % inner);
                pick->out_indices[row] = sorted->indices[at];
                if (sorted->dtype == DTYPE_F32)
                        ((float *)pick->out_values)[row] = ((const float *)sorted->values)[at];
                else
                        ((uint64_t *)pick->out_values)[row] = ((const uint64_t *)sorted->values)[at];
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static Status run_pick(const OpRun *run, const ReduceInput *input, const Pick *pick)
{
        _cleanup_(scratch_deinit) Scratch sorted_values = { 0 }, sorted_indices = { 0 };
        int64_t n = pick->plan->n_rows * pick->plan->row_length;
        TRY(scratch_init(&sorted_values, run->ctx, n, sizeof(int64_t)));
        TRY(scratch_init(&sorted_indices, run->ctx, n, sizeof(int64_t)));
        pick->sorted->values = sorted_values.data;
        pick->sorted->indices = sorted_indices.data;
        TRY(sort_rows(run->ctx, pick->plan, pick->sorted, input->data));
        return pick_elements(run->ctx, pick);
}

static SortWay sort_way(const OpCall *call)
{
        switch (((const SortRow *)call->op->row)->kind) {
        case SORT_TOP:
                return arg_bool(call, TOPK_SORTED, true) ? SORT_FIRST : SORT_SELECT;
        case SORT_VALUE:
                return SORT_KTH;
        case SORT_MIDDLE:
                return SORT_MEDIAN;
        case SORT_NANMIDDLE:
                return SORT_NANMEDIAN;
        case SORT_COMMON:
                return SORT_LIKE_MODE;
        default:
                return SORT_STABLE;
        }
}

static Status sort_run(const OpRun *run)
{
        const SortRow *row = run->call->op->row;
        const TensorMeta *self = run->in_meta[0];
        SortArgs args;
        TRY(sort_args(run->call, &args));
        uint32_t last = run->n_out - 1;
        if (meta_numel(run->out_meta[last]) == 0)
                return STATUS_OK;
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut values = { 0 }, indices = { 0 };
        TRY(reduce_input_convert(&input, run, self->dtype));
        if (last == 1)
                TRY(dense_out_init(&values, run->ctx, run->out[0], run->out_meta[0], input.meta.dtype));
        TRY(dense_out_init(&indices, run->ctx, run->out[last], run->out_meta[last], DTYPE_I64));
        RowPlan plan;
        row_plan(&plan, &input.meta, self->rank == 0 ? 0 : 1u << args.dim, true);
        SortTask task = { .dtype = input.meta.dtype,
                          .descending = args.descending,
                          .way = sort_way(run->call),
                          .kth = args.pick,
                          .inner = 1,
                          .n_out = args.n_out,
                          .values = values.data,
                          .indices = indices.data };
        for (int d = args.dim + 1; d < self->rank; d++)
                task.inner *= self->size[d];
        if (row->kind >= SORT_VALUE)
                TRY(run_pick(run, &input,
                             &(Pick){ .args = &args,
                                      .kind = row->kind,
                                      .plan = &plan,
                                      .sorted = &task,
                                      .out_values = values.data,
                                      .out_indices = indices.data }));
        else
                TRY(sort_rows(run->ctx, &plan, &task, input.data));
        TRY(dense_out_store(&values));
        TRY(dense_out_store(&indices));
        return STATUS_OK;
}

// ---- composites ----
static Status msort_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value results = value_none();
        TRY(EMIT(emitter, "aten::sort", &results, arg_value(call, SELF), value_int(0), value_bool(false)));
        *out = value_ref(results.seq->items[0]);
        return STATUS_OK;
}

// NaN; in an integer, the value that the processor converts NaN to.
static Status no_median(Emitter *emitter, Dtype dtype, Value *out)
{
        _cleanup_(value_clear) Value size = value_none();
        Value nothing = dtype_is_float(dtype) ? value_float(__builtin_nan(""))
                        : dtype == DTYPE_I64  ? value_int(INT64_MIN)
                        : dtype == DTYPE_I32  ? value_int(INT32_MIN)
                                              : value_int(0);
        TRY(value_ints_new(VALUE_LIST, NULL, 0, &size));
        return EMIT(emitter, "aten::full", out, size, nothing, value_dtype(dtype));
}

// The lower median of all elements.
static Status median_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value size = value_none(), flat = value_none(), results = value_none();
        TRY(value_ints_new(VALUE_LIST, (int64_t[]){ -1 }, 1, &size));
        if (meta_numel(arg_meta(call, SELF)) == 0)
                return no_median(emitter, arg_meta(call, SELF)->dtype, out);
        TRY(EMIT(emitter, "aten::reshape", &flat, arg_value(call, SELF), size));
        TRY(emit_values(emitter, call->op->row, (const Value[]){ flat, value_int(0) }, 2, &results));
        *out = value_ref(results.seq->items[0]);
        return STATUS_OK;
}

#define PLAIN  .dim_arg = SORT_DIM, .descending_arg = SORT_DESCENDING
#define STABLE .dim_arg = SORT_STABLE_DIM, .descending_arg = SORT_STABLE_DESCENDING
static const SortRow sort_plain = { .kind = SORT, PLAIN }, sort_stable = { .kind = SORT, STABLE },
                     argsort_plain = { .kind = SORT_INDICES, PLAIN },
                     argsort_stable = { .kind = SORT_INDICES, STABLE },
                     top = { .kind = SORT_TOP, .dim_arg = TOPK_DIM },
                     kth = { .kind = SORT_VALUE, .dim_arg = KTHVALUE_DIM, .keepdim_arg = KTHVALUE_KEEPDIM },
                     median = { .kind = SORT_MIDDLE, .dim_arg = MEDIAN_DIM, .keepdim_arg = MEDIAN_KEEPDIM },
                     nanmedian = { .kind = SORT_NANMIDDLE,
                                   .dim_arg = MEDIAN_DIM,
                                   .keepdim_arg = MEDIAN_KEEPDIM },
                     mode = { .kind = SORT_COMMON, .dim_arg = MEDIAN_DIM, .keepdim_arg = MEDIAN_KEEPDIM };
#undef PLAIN
#undef STABLE
#define SORT_OP(schema, row_)                                                                                \
        {                                                                                                    \
                schema, DTYPES_REAL, .infer = sort_infer, .run = sort_run, .cost = sort_cost,                \
                                     .row = &(row_), .traits = TRAIT_FRESH                                   \
        }
#define RANK_OP(schema, kernel_, row_)                                                                       \
        {                                                                                                    \
                schema, DTYPES_INTS | DTYPES_FLOATS, .infer = sort_infer, .run = sort_run,                   \
                                                     .cost = sort_cost, .row = &(row_), .kernel = kernel_,   \
                                                     .traits = TRAIT_FRESH                                   \
        }

const OpDef sort_ops[] = {
        SORT_OP("aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
                "indices)",
                sort_plain),
        SORT_OP("aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> "
                "(Tensor values, Tensor indices)",
                sort_stable),
        SORT_OP("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", argsort_plain),
        SORT_OP("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> "
                "Tensor",
                argsort_stable),
        SORT_OP("aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> "
                "(Tensor values, Tensor indices)",
                top),
        RANK_OP("aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, "
                "Tensor indices)",
                "kthvalue_cpu", kth),
        RANK_OP("aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
                "indices)",
                "median_out", median),
        RANK_OP("aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
                "indices)",
                "median_out", nanmedian),
        SORT_OP("aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
                mode),
        { "aten::median(Tensor self) -> Tensor", DTYPES_INTS | DTYPES_FLOATS, .expand = median_expand,
          .kernel = "median_cpu", .row = "aten::median.dim", .traits = TRAIT_MAY_SHARE },
        { "aten::nanmedian(Tensor self) -> Tensor", DTYPES_INTS | DTYPES_FLOATS, .expand = median_expand,
          .kernel = "median_cpu", .row = "aten::nanmedian.dim", .traits = TRAIT_MAY_SHARE },
        { "aten::msort(Tensor self) -> Tensor", DTYPES_REAL, .expand = msort_expand,
          .traits = TRAIT_MAY_SHARE },
};
OP_FILE(sort_ops);
