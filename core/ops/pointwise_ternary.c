// SPDX-License-Identifier: Apache-2.0
// pointwise_ternary.c: overloads that choose, clamp or combine three operands.
#include <math.h>
#include "core/ops/arguments.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"

// ---- clamp ----
// A NaN bound makes every element NaN.
static Status adjust_clamp(const OpCall *call, PointBound *bound)
{
        (void)call;
        if (!dtype_is_float(bound->common))
                return STATUS_OK;
        for (int k = 0; k < 2; k++) {
                if (isnan(bound->params.of[k].f)) {
                        bound->kernel = &point_fill;
                        bound->params.of[0].f = NAN;
                }
        }
        return STATUS_OK;
}

static const PointOp *clamp_form(const OpCall *call, const PointOp *both, const PointOp *low,
                                 const PointOp *high)
{
        bool no_min = arg_is_none(call, CLAMP_MIN), no_max = arg_is_none(call, CLAMP_MAX);
        if (!no_min)
                return no_max ? low : both;
        if (!no_max)
                return high;
        fail(STATUS_VALUE, "torch.clamp: At least one of 'min' or 'max' must not be None");
        return NULL;
}

static const PointOp *select_clamp(const OpCall *call)
{
        static const PointOp both = { .kernel = &point_clamp, .args = "tqq", .adjust = adjust_clamp };
        static const PointOp low = { .kernel = &point_clamp_min, .args = "tq.", .adjust = adjust_clamp };
        static const PointOp high = { .kernel = &point_clamp_max, .args = "t.q", .adjust = adjust_clamp };
        return clamp_form(call, &both, &low, &high);
}

static const PointOp *select_clamp_tensors(const OpCall *call)
{
        static const PointOp both = { .kernel = &point_clamp_tensors, .args = "ttt" };
        static const PointOp low = { .kernel = &point_maximum, .args = "tt." },
                             high = { .kernel = &point_minimum, .args = "t.t" };
        return clamp_form(call, &both, &low, &high);
}

// ---- where, masked_fill ----
static Status check_condition(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        Dtype dtype = arg_meta(call, WHERE_CONDITION)->dtype;
        if (dtype != DTYPE_BOOL && dtype != DTYPE_U8)
                return fail(STATUS_DTYPE,
                            "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                            dtype_words(dtype));
        return STATUS_OK;
}

static Status check_mask(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        const TensorMeta *mask = arg_meta(call, MASKED_FILL_MASK);
        if (mask->dtype != DTYPE_BOOL)
                return fail(STATUS_DTYPE,
                            "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                            dtype_c_name(mask->dtype));
        const TensorMeta *value = call->schema->args[MASKED_FILL_VALUE].type == ARG_TENSOR
                                          ? arg_meta(call, MASKED_FILL_VALUE)
                                          : NULL;
        if (value != NULL && value->rank != 0)
                return fail(STATUS_SHAPE,
                            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                            "dimension(s).",
                            value->rank);
        return STATUS_OK;
}

// ---- addcdiv ----
static Status check_addcdiv(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        const DtypeSet divided = DTYPES_FLOATS | DTYPES_COMPLEX;
        if ((divided >> arg_meta(call, ADDCDIV_TENSOR1)->dtype & 1) != 0 ||
            (divided >> arg_meta(call, ADDCDIV_TENSOR2)->dtype & 1) != 0)
                return STATUS_OK;
        return fail(STATUS_DTYPE, "Integer division with addcdiv is no longer supported, and in a future  "
                                  "release addcdiv will perform a true division of "
                                  "tensor1 and tensor2. The historic addcdiv behavior can be implemented as "
                                  "(input + value * torch.trunc(tensor1 / "
                                  "tensor2)).to(input.dtype) for integer inputs and as (input + value * "
                                  "tensor1 / tensor2) for float inputs. The future "
                                  "addcdiv behavior is just the latter implementation: (input + value * "
                                  "tensor1 / tensor2), for all dtypes.");
}

#define CLAMP(as_, name)                                                                                     \
        POINT_AS(as_, name "(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", OP_INPLACE,        \
                 .select = select_clamp),                                                                    \
                POINT_OP(name ".Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",          \
                         OP_INPLACE, .select = select_clamp_tensors)

const OpDef pointwise_ternary_ops[] = {
        CLAMP(.activation = "clamp", "clamp"),
        CLAMP(.role = ROLE_NONE, "clip"),
        POINT_OP("clamp_min(Tensor self, Scalar min) -> Tensor", OP_INPLACE, .args = "tq",
                 .kernel = &point_clamp_min, .adjust = adjust_clamp),
        POINT_OP("clamp_max(Tensor self, Scalar max) -> Tensor", OP_INPLACE, .args = "tq",
                 .kernel = &point_clamp_max, .adjust = adjust_clamp),
        POINT_OP("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", OP_INPLACE, .args = "tt",
                 .kernel = &point_maximum),
        POINT_OP("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", OP_INPLACE, .args = "tt",
                 .kernel = &point_minimum),
        POINT_OP("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", 0, .args = "mtt",
                 .kernel = &point_where, .check = check_condition),
        POINT_OP("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", 0, .args = "mtS",
                 .kernel = &point_where, .check = check_condition),
        POINT_OP("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", 0, .args = "mSt",
                 .kernel = &point_where, .check = check_condition),
        POINT_OP("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", 0, .args = "mSS",
                 .kernel = &point_where, .check = check_condition),
        POINT_AS(.form = inplace_mask_form,
                 "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", OP_INPLACE,
                 .args = "tmv", .kernel = &point_masked_fill, .typing = TYPE_SELF,
                 .layout = LAYOUT_CONTIGUOUS, .check = check_mask),
        POINT_AS(.form = inplace_mask_form,
                 "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
                 OP_INPLACE | OP_NUMBERS, .args = "tmf", .kernel = &point_masked_fill, .typing = TYPE_SELF,
                 .layout = LAYOUT_CONTIGUOUS, .check = check_mask),
        POINT_AS(.role = ROLE_ADDCMUL,
                 "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                 OP_INPLACE, .args = "tttp", .kernel = &point_addcmul),
        POINT_OP("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                 OP_INPLACE, .args = "tttp", .kernel = &point_addcdiv, .check = check_addcdiv),
        POINT_OP("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", OP_INPLACE, .args = "ttp",
                 .kernel = &point_lerp, .typing = TYPE_EQUAL),
        POINT_OP("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", OP_INPLACE, .args = "ttt",
                 .kernel = &point_lerp_tensor, .typing = TYPE_EQUAL),
};
OP_FILE(pointwise_ternary_ops);
