// SPDX-License-Identifier: Apache-2.0
// reduce_arg.c: reductions that give positions: max.dim, min.dim, argmax, argmin, aminmax. The
// first of equals wins; the first NaN counts as the extreme.
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/reduce.h"

static const ReduceKind largest = REDUCE_MAX, smallest = REDUCE_MIN;

// The dimension as a mask; None: all of a flattened tensor.
static Status arg_mask(const OpCall *call, uint32_t *out_mask, bool *out_given)
{
        int rank = arg_meta(call, SELF)->rank, dim;
        *out_mask = (1u << rank) - 1;
        *out_given = !arg_is_none(call, ARGMAX_DIM);
        if (!*out_given)
                return STATUS_OK;
        TRY(arg_dim(call, ARGMAX_DIM, rank, &dim));
        *out_mask = rank == 0 ? 0 : 1u << dim;
        return STATUS_OK;
}

static Status arg_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        uint32_t mask;
        bool given;
        TRY(arg_mask(call, &mask, &given));
        bool positions_only = call->schema->n_returns == 1;
        if (positions_only && self->dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "%s(): does not support bool input", call->schema->name);
        if (positions_only && !given && meta_numel(self) == 0)
                return fail(STATUS_INDEX,
                            "%s(): Expected reduction dim to be specified for input.numel() == 0.",
                            call->schema->name);
        TRY(reduce_check_identity(call, mask, given));
        TensorMeta meta;
        uint32_t k = 0;
        reduce_meta(self, mask, arg_bool(call, ARGMAX_KEEPDIM, false), self->dtype, &meta);
        if (!positions_only)
                TRY(out_fresh(call, k++, &meta));
        meta.dtype = DTYPE_I64;
        return out_fresh(call, k, &meta);
}

static Status arg_run(const OpRun *run)
{
        uint32_t mask;
        bool given;
        TRY(arg_mask(run->call, &mask, &given));
        uint32_t last = run->n_out - 1;
        int64_t n = meta_numel(run->out_meta[last]);
        if (n == 0)
                return STATUS_OK;
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut values = { 0 }, indices = { 0 };
        _cleanup_(scratch_deinit) Scratch unused = { 0 };
        TRY(reduce_input_init(&input, run, run->in_meta[0]->dtype));
        if (last == 0) {
                TRY(scratch_init(&unused, run->ctx, n, dtype_info[input.meta.dtype].bytes));
                values.data = unused.data;
        } else {
                TRY(dense_out_init(&values, run->ctx, run->out[0], run->out_meta[0], input.meta.dtype));
        }
        TRY(dense_out_init(&indices, run->ctx, run->out[last], run->out_meta[last], DTYPE_I64));
        RowPlan plan;
        row_plan(&plan, &input.meta, mask, true);
        ReduceKind kind = *(const ReduceKind *)run->call->op->row;
        Reduction reduction = { .dtype = input.meta.dtype,
                                .stored = input.stored,
                                .kind = kind,
                                .data = input.data,
                                .out = values.data,
                                .extra = indices.data };
        TRY(reduce_run(run->ctx, &plan, &reduction));
        TRY(dense_out_store(&values));
        TRY(dense_out_store(&indices));
        return STATUS_OK;
}

static Status aminmax_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        uint32_t mask;
        bool given;
        TRY(arg_mask(call, &mask, &given));
        for (int d = 0; d < self->rank; d++) {
                if ((mask >> d & 1) != 0 && self->size[d] == 0)
                        return fail(STATUS_VALUE, "aminmax(): cannot compute aminmax over an empty dimension "
                                                  "as the operation has no identity.");
        }
        TensorMeta meta;
        reduce_meta(self, mask, arg_bool(call, ARGMAX_KEEPDIM, false), self->dtype, &meta);
        TRY(out_fresh(call, 0, &meta));
        return out_fresh(call, 1, &meta);
}

static Status aminmax_run(const OpRun *run)
{
        uint32_t mask;
        bool given;
        TRY(arg_mask(run->call, &mask, &given));
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        TRY(reduce_input_init(&input, run, run->in_meta[0]->dtype));
        RowPlan plan;
        row_plan(&plan, &input.meta, mask, false);
        for (uint32_t k = 0; k < 2; k++) {
                _cleanup_(dense_out_deinit) DenseOut out = { 0 };
                TRY(dense_out_init(&out, run->ctx, run->out[k], run->out_meta[k], input.meta.dtype));
                Reduction reduction = { .dtype = input.meta.dtype,
                                        .stored = input.stored,
                                        .kind = k == 0 ? REDUCE_MIN : REDUCE_MAX,
                                        .data = input.data,
                                        .out = out.data };
                TRY(reduce_run(run->ctx, &plan, &reduction));
                TRY(dense_out_store(&out));
        }
        return STATUS_OK;
}

const OpDef reduce_arg_ops[] = {
        { "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          DTYPES_REAL, .infer = arg_infer, .run = arg_run, .row = &largest,
          .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT },
        { "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          DTYPES_REAL, .infer = arg_infer, .run = arg_run, .row = &smallest,
          .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT },
        { "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", DTYPES_REAL,
          .infer = arg_infer, .run = arg_run, .row = &largest, .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT },
        { "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", DTYPES_REAL,
          .infer = arg_infer, .run = arg_run, .row = &smallest, .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT },
        { "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
          DTYPES_REAL, .infer = aminmax_infer, .run = aminmax_run, .traits = TRAIT_FRESH },
};
OP_FILE(reduce_arg_ops);
