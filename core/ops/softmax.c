// SPDX-License-Identifier: Apache-2.0
// softmax.c: aten._softmax, aten._log_softmax and their composites. Numerics: kernels/softmax.c.
// Half types are computed in float32. Results are contiguous, as PyTorch's are.
#include "core/kernels/norm/softmax.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"

static const SoftmaxKind plain = SOFTMAX, logarithm = SOFTMAX_LOG, safe = SOFTMAX_SAFE;

// An empty tensor may be of any dtype.
static Status infer_along(OpCall *call, Dtype dtype)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int dim;
        if (!dtype_is_float(dtype) && meta_numel(&meta) != 0)
                return fail(STATUS_DTYPE, "\"softmax_lastdim_kernel_impl\" not implemented for '%s'",
                            dtype_words(dtype));
        TRY(arg_dim(call, SOFTMAX_DIM, meta.rank, &dim));
        meta.dtype = dtype;
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

static Status softmax_infer(OpCall *call)
{
        if (arg_bool(call, RAW_SOFTMAX_HALF_TO_FLOAT, false))
                return fail(STATUS_VALUE, "softmax with half to float conversion is not supported on CPU");
        return infer_along(call, arg_meta(call, SELF)->dtype);
}

// dtype= converts before: for softmax.int and _safe_softmax, whose input may then be of any dtype.
static Status converting_infer(OpCall *call)
{
        return infer_along(call, arg_dtype(call, SOFTMAX_INT_DTYPE, arg_meta(call, SELF)->dtype));
}

// Along the last dimension PyTorch rounds the sum and its logarithm to the half type.
static SoftmaxKind kind_of(const OpRun *run, int dim)
{
        SoftmaxKind kind = *(const SoftmaxKind *)run->call->op->row;
        const TensorMeta *out = run->out_meta[0];
        if (kind != SOFTMAX_LOG || dim != out->rank - 1)
                return kind;
        return out->dtype == DTYPE_F16 ? SOFTMAX_LOG_F16 : out->dtype == DTYPE_BF16 ? SOFTMAX_LOG_BF16 : kind;
}

static Status softmax_op_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[0];
        Dtype as = dtype_compute(run->out_meta[0]->dtype);
        int dim;
        TRY(arg_dim(run->call, SOFTMAX_DIM, self->rank, &dim));
        int64_t outer = 1, inner = 1;
        for (int d = 0; d < dim; d++)
                outer *= self->size[d];
        for (int d = dim + 1; d < self->rank; d++)
                inner *= self->size[d];
        if (meta_numel(self) == 0)
                return STATUS_OK;
        // Converted to the result's dtype first, then to the one that is computed in.
        TensorMeta given = *run->out_meta[0];
        meta_set_contiguous(&given);
        _cleanup_(dense_deinit) Dense converted = { 0 }, in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        bool converts = self->dtype != given.dtype;
        if (converts)
                TRY(dense_init(&converted, run->ctx, run->in[0], self, given.dtype));
        TRY(dense_init(&in, run->ctx, converts ? converted.data : run->in[0], converts ? &given : self, as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        TRY(softmax_run(
                run->ctx,
                &(Softmax){ kind_of(run, dim), as, outer, self->rank == 0 ? 1 : self->size[dim], inner },
                in.data, out.data));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

const OpDef softmax_ops[] = {
        { "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", DTYPES_FLOATS,
          .infer = softmax_infer, .run = softmax_op_run, .row = &plain, .traits = TRAIT_FRESH,
          .row_end = END_BY_DIM, .role = ROLE_SOFTMAX },
        { "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", DTYPES_REAL,
          .infer = converting_infer, .run = softmax_op_run, .row = &plain, .traits = TRAIT_FRESH,
          .row_end = END_BY_DIM, .role = ROLE_SOFTMAX },
        { "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", DTYPES_FLOATS,
          .infer = softmax_infer, .run = softmax_op_run, .row = &logarithm, .traits = TRAIT_FRESH,
          .row_end = END_BY_DIM },
        { "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", DTYPES_REAL,
          .infer = converting_infer, .run = softmax_op_run, .row = &logarithm, .traits = TRAIT_FRESH,
          .row_end = END_BY_DIM },
        { "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", DTYPES_REAL,
          .infer = converting_infer, .run = softmax_op_run, .row = &safe, .traits = TRAIT_FRESH },
};
OP_FILE(softmax_ops);
