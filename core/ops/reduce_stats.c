// SPDX-License-Identifier: Apache-2.0
// reduce_stats.c: var, std, var_mean, std_mean and vector norms. Computed in double, so one element
// with correction 1 gives NaN and half types round once.
#include <math.h>
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/reduce.h"

// ---- variance ----
typedef enum VarStyle { VAR_PLAIN, VAR_DIM, VAR_CORRECTION } VarStyle;
typedef struct VarRow {
        bool std;
        VarStyle style;
} VarRow;

typedef struct VarArgs {
        uint32_t mask;
        bool keepdim;
        double correction;
} VarArgs;

static Status var_args(const OpCall *call, VarArgs *out)
{
        const VarRow *row = call->op->row;
        int rank = arg_meta(call, SELF)->rank;
        *out = (VarArgs){ .mask = (1u << rank) - 1, .correction = 1 };
        switch (row->style) {
        case VAR_PLAIN:
                out->correction = arg_bool(call, VARIANCE_UNBIASED, true);
                return STATUS_OK;
        case VAR_DIM:
                out->correction = arg_bool(call, VARIANCE_DIM_UNBIASED, true);
                out->keepdim = arg_bool(call, VARIANCE_KEEPDIM, false);
                break;
        case VAR_CORRECTION:
                if (!arg_is_none(call, VARIANCE_CORRECTION))
                        TRY(arg_double(call, VARIANCE_CORRECTION, &out->correction));
                out->keepdim = arg_bool(call, VARIANCE_KEEPDIM, false);
                break;
        }
        return arg_dims(call, VARIANCE_DIM, rank, true, &out->mask);
}

static Status var_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        VarArgs args;
        if (!dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE, "std and var only support floating point and complex dtypes");
        TRY(var_args(call, &args));
        TensorMeta meta;
        reduce_meta(self, args.mask, args.keepdim, self->dtype, &meta);
        for (uint32_t k = 0; k < call->schema->n_returns; k++)
                TRY(out_fresh(call, k, &meta));
        return STATUS_OK;
}

static Status var_run(const OpRun *run)
{
        const VarRow *row = run->call->op->row;
        VarArgs args;
        TRY(var_args(run->call, &args));
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 }, mean = { 0 };
        TRY(reduce_input_init(&input, run, run->in_meta[0]->dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], input.meta.dtype));
        if (run->n_out == 2)
                TRY(dense_out_init(&mean, run->ctx, run->out[1], run->out_meta[1], input.meta.dtype));
        RowPlan plan;
        row_plan(&plan, &input.meta, args.mask, false);
        Reduction reduction = { .dtype = input.meta.dtype,
                                .stored = input.stored,
                                .kind = row->std ? REDUCE_STD : REDUCE_VAR,
                                .p = args.correction,
                                .data = input.data };
        reduction.out = out.data;
        reduction.extra = mean.data;
        TRY(reduce_run(run->ctx, &plan, &reduction));
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&mean));
        return STATUS_OK;
}

// ---- norms ----
typedef struct NormRow {
        int dim_arg, keepdim_arg, dtype_arg; // 0: absent
        bool vector;                         // linalg.vector_norm's words
} NormRow;

typedef struct NormArgs {
        double ord;
        uint32_t mask;
        bool keepdim;
        Dtype dtype;
} NormArgs;

static Status check_norm_dtype(const NormRow *row, Dtype self, Dtype dtype)
{
        const char *name = row->vector ? "linalg.vector_norm" : "norm";
        if (!dtype_is_float(self) && row->vector)
                return fail(
                        STATUS_DTYPE,
                        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
                        dtype_words(self));
        if (!dtype_is_float(self))
                return fail(STATUS_DTYPE,
                            "norm(): input dtype should be either floating point or complex. Got %s instead.",
                            dtype_words(self));
        if (!dtype_is_float(dtype))
                return fail(STATUS_DTYPE, "%s: dtype should be floating point or complex, but got %s", name,
                            dtype_words(dtype));
        Dtype wider;
        TRY(dtype_promote(self, dtype, &wider));
        if (wider != dtype)
                return fail(STATUS_DTYPE,
                            "%s: the dtype of the input (%s) should be convertible without narrowing to the "
                            "specified dtype (%s)",
                            name, dtype_words(self), dtype_words(dtype));
        return STATUS_OK;
}

static Status norm_args(const OpCall *call, NormArgs *out)
{
        const NormRow *row = call->op->row;
        const TensorMeta *self = arg_meta(call, SELF);
        *out = (NormArgs){ .ord = 2, .mask = (1u << self->rank) - 1 };
        out->dtype = row->dtype_arg == 0 ? self->dtype : arg_dtype(call, row->dtype_arg, self->dtype);
        out->keepdim = row->keepdim_arg > 0 && arg_bool(call, row->keepdim_arg, false);
        TRY(check_norm_dtype(row, self->dtype, out->dtype));
        if (!arg_is_none(call, NORM_ORD))
                TRY(arg_double(call, NORM_ORD, &out->ord));
        if (row->dim_arg > 0)
                TRY(arg_dims(call, row->dim_arg, self->rank, true, &out->mask));
        if (out->ord >= 0 && !isinf(out->ord))
                return STATUS_OK;
        for (int d = 0; d < self->rank; d++) {
                if ((out->mask >> d & 1) != 0 && self->size[d] == 0)
                        return fail(STATUS_VALUE,
                                    "linalg.vector_norm cannot compute the %g norm on an empty tensor "
                                    "because the operation does not have "
                                    "an identity",
                                    out->ord);
        }
        return STATUS_OK;
}

static Status norm_infer(OpCall *call)
{
        NormArgs args;
        TRY(norm_args(call, &args));
        TensorMeta meta;
        reduce_meta(arg_meta(call, SELF), args.mask, args.keepdim, args.dtype, &meta);
        return out_fresh(call, 0, &meta);
}

static Status norm_run(const OpRun *run)
{
        NormArgs args;
        TRY(norm_args(run->call, &args));
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(reduce_input_init(&input, run, args.dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], input.meta.dtype));
        RowPlan plan;
        row_plan(&plan, &input.meta, args.mask, false);
        Reduction reduction = { .dtype = input.meta.dtype,
                                .stored = input.stored,
                                .kind = REDUCE_NORM,
                                .p = args.ord,
                                .data = input.data,
                                .out = out.data };
        TRY(reduce_run(run->ctx, &plan, &reduction));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

static const VarRow var_plain = { false, VAR_PLAIN }, var_dim = { false, VAR_DIM },
                    var_correction = { false, VAR_CORRECTION }, std_plain = { true, VAR_PLAIN },
                    std_dim = { true, VAR_DIM }, std_correction = { true, VAR_CORRECTION };
#define ALONG .dim_arg = NORM_DIM, .keepdim_arg = NORM_KEEPDIM
static const NormRow vector_norm = { ALONG, .dtype_arg = NORM_DTYPE, .vector = true },
                     norm_scalar = { .vector = false }, norm_dtype = { .dtype_arg = NORM_ALL_DTYPE },
                     norm_dim = { ALONG }, norm_dim_dtype = { ALONG, .dtype_arg = NORM_DTYPE };
#undef ALONG
#define VAR(schema, row_) VAR_ALONG(schema, row_, 0)
#define VAR_ALONG(schema, row_, traits_)                                                                     \
        {                                                                                                    \
                schema, DTYPES_REAL, .infer = var_infer, .run = var_run, .row = &(row_),                     \
                                     .traits = TRAIT_FRESH | (traits_)                                       \
        }
#define NORM(schema, row_) NORM_ALONG(schema, row_, 0)
#define NORM_ALONG(schema, row_, traits_)                                                                    \
        {                                                                                                    \
                schema, DTYPES_REAL, .infer = norm_infer, .run = norm_run, .row = &(row_),                   \
                                     .traits = TRAIT_FRESH | (traits_)                                       \
        }

const OpDef reduce_stats_ops[] = {
        VAR("aten::var(Tensor self, bool unbiased=True) -> Tensor", var_plain),
        VAR_ALONG("aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
                  var_dim, TRAIT_LAYOUT_NEAR),
        VAR_ALONG("aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                  "keepdim=False) -> Tensor",
                  var_correction, TRAIT_LAYOUT_NEAR),
        VAR("aten::std(Tensor self, bool unbiased=True) -> Tensor", std_plain),
        VAR_ALONG("aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
                  std_dim, TRAIT_LAYOUT_NEAR),
        VAR_ALONG("aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                  "keepdim=False) -> Tensor",
                  std_correction, TRAIT_LAYOUT_NEAR),
        VAR("aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var_plain),
        VAR_ALONG("aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
                  "(Tensor, Tensor)",
                  var_dim, TRAIT_LAYOUT_NEAR),
        VAR_ALONG("aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                  "keepdim=False) -> (Tensor, Tensor)",
                  var_correction, TRAIT_LAYOUT_NEAR),
        VAR("aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", std_plain),
        VAR_ALONG("aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
                  "(Tensor, Tensor)",
                  std_dim, TRAIT_LAYOUT_NEAR),
        VAR_ALONG("aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                  "keepdim=False) -> (Tensor, Tensor)",
                  std_correction, TRAIT_LAYOUT_NEAR),
        NORM_ALONG("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
                   "keepdim=False, *, "
                   "ScalarType? dtype=None) -> "
                   "Tensor",
                   vector_norm, TRAIT_LAYOUT_NEAR),
        NORM("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm_scalar),
        NORM("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", norm_dtype),
        NORM_ALONG(
                "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
                norm_dim, TRAIT_LAYOUT_NEAR),
        NORM("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
             "dtype) -> Tensor",
             norm_dim_dtype),
};
OP_FILE(reduce_stats_ops);
