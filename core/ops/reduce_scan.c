// SPDX-License-Identifier: Apache-2.0
// reduce_scan.c: cumsum, cumprod, cummax, cummin, logcumsumexp. Sums and products of bool and
// integers are int64; dtype= casts first. Contiguous results.
#include "core/kernels/reduce/reduce_scan.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

static const ScanKind sum_row = SCAN_SUM, prod_row = SCAN_PROD, max_row = SCAN_MAX, min_row = SCAN_MIN,
                      log_row = SCAN_LOGSUMEXP;

static ScanKind kind_of(const OpCall *call)
{
        return *(const ScanKind *)call->op->row;
}

static Dtype scan_dtype(const OpCall *call)
{
        Dtype self = arg_meta(call, SELF)->dtype;
        if (kind_of(call) > SCAN_PROD)
                return self;
        return arg_dtype(call, SCAN_DTYPE, dtype_is_float(self) ? self : DTYPE_I64);
}

static Status scan_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int dim;
        TRY(arg_dim(call, SCAN_DIM, meta.rank, &dim));
        meta.dtype = scan_dtype(call);
        if ((DTYPES_REAL >> meta.dtype & 1) == 0)
                return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", call->schema->name,
                            dtype_words(meta.dtype));
        // PyTorch copies what has no dimension or no element
        if (meta.dtype == DTYPE_BOOL && kind_of(call) <= SCAN_PROD && meta.rank > 0 && meta_numel(&meta) > 0)
                return fail(STATUS_DTYPE, "\"%s_out_cpu\" not implemented for 'Bool'", call->schema->name);
        Dtype self = arg_meta(call, SELF)->dtype;
        if (call->inplace && arg_dtype(call, SCAN_DTYPE, self) != self)
                return fail(
                        STATUS_DTYPE,
                        "Bad in-place call: input tensor dtype %s and output tensor dtype %s should match",
                        dtype_c_name(self), dtype_c_name(meta.dtype));
        meta_set_contiguous(&meta);
        TRY(out_fresh(call, 0, &meta));
        if (call->schema->n_returns == 2) {
                meta.dtype = DTYPE_I64;
                TRY(out_fresh(call, 1, &meta));
        }
        return STATUS_OK;
}

static Status scan_op_run(const OpRun *run)
{
        int dim;
        const TensorMeta *self = run->in_meta[0];
        TRY(arg_dim(run->call, SCAN_DIM, self->rank, &dim));
        if (meta_numel(self) == 0)
                return STATUS_OK;
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 }, indices = { 0 };
        Dtype cast = kind_of(run->call) == SCAN_LOGSUMEXP ? DTYPE_F64 : scan_dtype(run->call);
        TRY(reduce_input_convert(&input, run, cast));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], input.meta.dtype));
        if (run->n_out == 2)
                TRY(dense_out_init(&indices, run->ctx, run->out[1], run->out_meta[1], DTYPE_I64));
        RowPlan plan;
        row_plan(&plan, &input.meta, self->rank == 0 ? 0 : 1u << dim, true);
        Scan scan = { .dtype = input.meta.dtype,
                      .kind = kind_of(run->call),
                      .single = cast != DTYPE_F32,
                      .inner = 1,
                      .out = out.data,
                      .indices = indices.data };
        for (int d = dim + 1; d < self->rank; d++)
                scan.inner *= self->size[d];
        TRY(scan_run(run->ctx, &plan, &scan, input.data));
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&indices));
        return STATUS_OK;
}

// ---- products of complex numbers ----
// Of pairs along `dim`; the last dimension is the pair's. `single`: float32 is multiplied as such.
static Status pairs_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

static Status pairs_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[0];
        const int last = self->rank - 1;
        int dim;
        TRY(arg_dim(run->call, SCAN_DIM, MAX(last, 1), &dim));
        if (meta_numel(self) == 0)
                return STATUS_OK;
        RowPlan plan;
        row_plan(&plan, self, 1u << last | 1u << dim, true);
        Scan scan = { .dtype = self->dtype,
                      .kind = SCAN_PAIR_PROD,
                      .single = arg_bool(run->call, SCAN_SINGLE, false),
                      .inner = 1,
                      .out = run->out[0] };
        for (int d = dim + 1; d < last; d++)
                scan.inner *= self->size[d];
        return scan_run(run->ctx, &plan, &scan, run->in[0]);
}

const OpDef reduce_scan_ops[] = {
        { "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", DTYPES_REAL, OP_INPLACE,
          .infer = scan_infer, .run = scan_op_run, .row = &sum_row, .traits = TRAIT_FRESH },
        { "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", DTYPES_REAL, OP_INPLACE,
          .infer = scan_infer, .run = scan_op_run, .row = &prod_row, .traits = TRAIT_FRESH },
        { "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", DTYPES_REAL,
          .infer = scan_infer, .run = scan_op_run, .row = &max_row, .traits = TRAIT_FRESH },
        { "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", DTYPES_REAL,
          .infer = scan_infer, .run = scan_op_run, .row = &min_row, .traits = TRAIT_FRESH },
        { "aten::logcumsumexp(Tensor self, int dim) -> Tensor", DTYPES_FLOATS, .infer = scan_infer,
          .run = scan_op_run, .row = &log_row, .traits = TRAIT_FRESH },
        { "fxserve::pair_products(Tensor self, int dim, bool single) -> Tensor",
          DTYPE_BIT(DTYPE_F32) | DTYPE_BIT(DTYPE_F64), OP_HIDDEN | OP_INTERNAL, .infer = pairs_infer,
          .run = pairs_run, .traits = TRAIT_FRESH },
};
OP_FILE(reduce_scan_ops);
