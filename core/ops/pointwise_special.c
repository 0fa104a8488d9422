// SPDX-License-Identifier: Apache-2.0
// pointwise_special.c: pointwise overloads that do not fit a row: operands that are parts or views
// of an argument, two results, and in-place forms whose names are not those of the functional
// overload.
#include <inttypes.h>
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"

static Status check_floats(const PointKernel *kernel, Dtype dtype)
{
        if (dtype_is_float(dtype))
                return STATUS_OK;
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", kernel->label, dtype_words(dtype));
}

// ---- positive ----
static Status positive_infer(OpCall *call)
{
        if (arg_meta(call, SELF)->dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "The `+` operator, on a bool tensor is not supported.");
        return out_same(call, 0, SELF);
}

// ---- glu: the first half times the sigmoid of the second ----
typedef struct GluState {
        TensorMeta half;
        int64_t second; // bytes from the first half to the second
} GluState;

static Status glu_halves(const OpCall *call, GluState *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        if (self->rank == 0)
                return fail(STATUS_SHAPE, "glu does not support 0-dimensional tensors");
        int dim;
        TRY(arg_dim(call, GLU_DIM, self->rank, &dim));
        if (self->size[dim] % 2 != 0)
                return fail(STATUS_SHAPE, "Halving dimension must be even, but dimension %d is size %" PRId64,
                            dim, self->size[dim]);
        TRY(check_floats(&point_glu, self->dtype));
        out->half = *self;
        out->half.size[dim] /= 2;
        out->second = out->half.size[dim] * self->stride[dim] * dtype_info[self->dtype].bytes;
        return STATUS_OK;
}

static Status glu_infer(OpCall *call)
{
        GluState state;
        TRY(glu_halves(call, &state));
        TensorMeta meta = state.half;
        meta_set_strides_elementwise(&meta, (const TensorMeta *[]){ &state.half, &state.half }, 2);
        return out_fresh(call, 0, &meta);
}

static Status glu_prepare(const OpCall *call, void *out_state)
{
        return glu_halves(call, out_state);
}

static Status glu_run(const OpRun *run)
{
        const GluState *state = run->state;
        PointOperand halves[] = { { .data = run->in[0], .meta = &state->half }, { .meta = &state->half } };
        halves[1].data = run->in[0] == NULL ? NULL : (const char *)run->in[0] + state->second;
        return pointwise_run(run->ctx, &(PointCall){ &point_glu, state->half.dtype, NULL, halves },
                             run->out[0], run->out_meta[0]);
}

// ---- prelu: one weight, or one per channel (dimension 1) ----
static Status prelu_weight(const OpCall *call, TensorMeta *out)
{
        const TensorMeta *self = arg_meta(call, SELF), *weight = arg_meta(call, PRELU_WEIGHT);
        if (self->dtype != weight->dtype)
                return fail(STATUS_DTYPE, "prelu: Type promoting not supported. Got %s and %s",
                            dtype_words(self->dtype), dtype_words(weight->dtype));
        int64_t n = meta_numel(weight);
        if (n == 0 && weight->rank > 1)
                return fail(STATUS_SHAPE,
                            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                            weight->rank);
        if (n != 1) {
                if (self->rank == 0)
                        return fail(STATUS_SHAPE, "Not allow zero-dim input tensor.");
                int64_t channels = self->rank > 1 ? self->size[1] : 1;
                if (channels != n) {
                        return fail(STATUS_SHAPE,
                                    "Mismatch of parameter numbers and input channel size. Found parameter "
                                    "numbers = %" PRId64 " and channel size = %" PRId64 ".",
                                    n, channels);
                }
        }
        TRY(check_floats(&point_prelu, self->dtype));
        *out = *weight;
        if (weight->rank == self->rank)
                return STATUS_OK;
        int64_t size[MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        if (self->rank > 1)
                size[1] = n;
        TensorMeta view;
        meta_init(&view, weight->dtype, self->rank, size);
        if (!meta_view_strides(weight, self->rank, size, view.stride))
                return fail(STATUS_SHAPE,
                            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                            weight->rank);
        *out = view;
        return STATUS_OK;
}

static Status prelu_infer(OpCall *call)
{
        TensorMeta weight, meta = *arg_meta(call, SELF);
        TRY(prelu_weight(call, &weight));
        int rank;
        TRY(shape_broadcast(&meta, &weight, &rank, meta.size));
        meta.rank = (uint8_t)rank;
        meta.wrapped = false;
        meta_set_strides_elementwise(&meta, (const TensorMeta *[]){ arg_meta(call, SELF), &weight }, 2);
        return out_fresh(call, 0, &meta);
}

static Status prelu_prepare(const OpCall *call, void *out_state)
{
        return prelu_weight(call, out_state);
}

static Status prelu_run(const OpRun *run)
{
        PointOperand operands[] = { { .data = run->in[0], .meta = run->in_meta[0] },
                                    { .data = run->in[1], .meta = run->state } };
        return pointwise_run(run->ctx, &(PointCall){ &point_prelu, run->in_meta[0]->dtype, NULL, operands },
                             run->out[0], run->out_meta[0]);
}

// ---- log_sigmoid_forward: the result and the exp(-|x|) that its gradient would use ----
static Status log_sigmoid_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TRY(check_floats(&point_log_sigmoid, self->dtype));
        TensorMeta meta = *self;
        meta_set_contiguous(&meta);
        TRY(out_fresh(call, 0, &meta));
        return out_fresh(call, 1, &meta);
}

static Status log_sigmoid_run(const OpRun *run)
{
        PointOperand operand = { .data = run->in[0], .meta = run->in_meta[0] };
        const PointKernel *kernels[] = { &point_log_sigmoid, &point_log_sigmoid_buffer };
        for (int k = 0; k < 2; k++)
                TRY(pointwise_run(run->ctx, &(PointCall){ kernels[k], operand.meta->dtype, NULL, &operand },
                                  run->out[k], run->out_meta[k]));
        return STATUS_OK;
}

// ---- in-place forms under names of their own ----
static Status write_result(Emitter *emitter, const OpCall *call, const Tensor *result, Value *out)
{
        Tensor *self = call->args[SELF].tensor;
        TRY(inplace_check_write(self, &result->meta));
        TRY(emitter->vtbl->write(emitter, self, result));
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status write_to_self(Emitter *emitter, const OpCall *call, const char *functional, Value *out)
{
        _cleanup_(value_clear) Value result = value_none();
        TRY(emit_values(emitter, functional, call->args, call->n_args, &result));
        return write_result(emitter, call, result.tensor, out);
}

// What PyTorch computes where self lies, so that operands may not cross it.
static Status compute_in_self(Emitter *emitter, const OpCall *call, const char *functional, Value *out)
{
        bool direct; // a temporary is used in any case
        TRY(inplace_check_internal_overlap(arg_meta(call, SELF)));
        TRY(inplace_check_inputs(call, &direct));
        return write_to_self(emitter, call, functional, out);
}

static Status ldexp_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        return write_to_self(emitter, call, "aten::ldexp.Tensor", out);
}

static Status polygamma_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value result = value_none();
        const Value args[] = { call->args[POLYGAMMA_INPLACE_N], call->args[SELF] };
        TRY(emit_values(emitter, "aten::polygamma", args, ARRAY_LENGTH(args), &result));
        return write_result(emitter, call, result.tensor, out);
}

static Status float_power_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value result = value_none();
        const TensorMeta *self = arg_meta(call, SELF);
        bool scalar = call->args[FLOAT_POWER_EXPONENT].kind != VALUE_TENSOR;
        TRY(emit_values(emitter,
                        scalar ? "aten::float_power.Tensor_Scalar" : "aten::float_power.Tensor_Tensor",
                        call->args, call->n_args, &result));
        if (result.tensor->meta.dtype != self->dtype)
                return fail(STATUS_DTYPE,
                            "the base given to float_power_ has dtype %s but the operation's result requires "
                            "dtype %s",
                            dtype_words(self->dtype), dtype_words(result.tensor->meta.dtype));
        bool direct;
        TRY(inplace_check_inputs(call, &direct));
        return write_result(emitter, call, result.tensor, out);
}

static Status pow_scalar_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        return compute_in_self(emitter, call, "aten::pow.Tensor_Scalar", out);
}

static Status pow_tensor_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        return compute_in_self(emitter, call, "aten::pow.Tensor_Tensor", out);
}

static Status floor_divide_inplace(Emitter *emitter, const OpCall *call, Value *out)
{
        return compute_in_self(emitter, call, "aten::floor_divide", out);
}

const OpDef pointwise_special_ops[] = {
        { .schema = "aten::positive(Tensor(a) self) -> Tensor(a)",
          .dtypes = DTYPES_ALL,
          .infer = positive_infer },
        { .schema = "aten::glu(Tensor self, int dim=-1) -> Tensor",
          .dtypes = DTYPES_REAL,
          .infer = glu_infer,
          .prepare = glu_prepare,
          .run = glu_run,
          .cost = pointwise_cost,
          .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_GLU },
        { .schema = "aten::prelu(Tensor self, Tensor weight) -> Tensor",
          .dtypes = DTYPES_REAL,
          .flags = OP_ELEMENTWISE,
          .infer = prelu_infer,
          .prepare = prelu_prepare,
          .run = prelu_run,
          .cost = pointwise_cost,
          .traits = TRAIT_FRESH | TRAIT_LAYOUT },
        POINT_OP("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", 0, .args = "tt",
                 .kernel = &point_prelu, .typing = TYPE_EQUAL),
        { .schema = "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
          .dtypes = DTYPES_REAL,
          .infer = log_sigmoid_infer,
          .run = log_sigmoid_run,
          .cost = pointwise_cost,
          .traits = TRAIT_FRESH },
        { .schema = "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
          .dtypes = DTYPES_REAL | DTYPES_COMPLEX,
          .expand = pow_scalar_inplace },
        { .schema = "aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
          .dtypes = DTYPES_REAL | DTYPES_COMPLEX,
          .flags = OP_NUMBERS,
          .expand = pow_tensor_inplace },
        { .schema = "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
          .dtypes = DTYPES_REAL,
          .flags = OP_NUMBERS,
          .expand = floor_divide_inplace },
        { .schema = "aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", .expand = ldexp_inplace },
        { .schema = "aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
          .dtypes = DTYPES_REAL,
          .expand = polygamma_inplace },
        { .schema = "aten::float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
          .expand = float_power_inplace },
        { .schema = "aten::float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
          .expand = float_power_inplace },
};
OP_FILE(pointwise_special_ops);
