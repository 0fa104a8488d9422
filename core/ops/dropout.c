// SPDX-License-Identifier: Apache-2.0
// dropout.c: dropout and its relatives are the identity in evaluation mode and at p = 0; otherwise
// they draw random numbers, which is refused in words that say what to do. p = 1 needs none: zeros.
#include "core/kernels/copy.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include <string.h>

static Status dropout_refuse(const OpCall *call, double p)
{
        return fail(STATUS_UNSUPPORTED,
                    "%s(p=%g) in training mode draws random numbers, which are not supported; call "
                    "model.eval() before tracing or "
                    "exporting, or set p=0",
                    call->schema->name, p);
}

static Status dropout_check(const OpCall *call, double *out_p)
{
        TRY(arg_double(call, DROPOUT_P, out_p));
        if (!(*out_p >= 0 && *out_p <= 1))
                return fail(STATUS_VALUE, "dropout probability has to be between 0 and 1, but got %g",
                            *out_p);
        return STATUS_OK;
}

static Status dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double p;
        TRY(dropout_check(call, &p));
        Value input = arg_value(call, SELF);
        if (!arg_bool(call, DROPOUT_TRAIN, true) || p == 0 || meta_numel(arg_meta(call, SELF)) == 0) {
                *out = value_ref(input);
                return STATUS_OK;
        }
        if (p == 1)
                return EMIT(emitter, "aten::mul.Tensor", out, input, value_int(0));
        return dropout_refuse(call, p);
}

static Status native_dropout_infer(OpCall *call)
{
        double p;
        TRY(dropout_check(call, &p));
        if (arg_bool(call, DROPOUT_TRAIN, true) && meta_numel(arg_meta(call, SELF)) != 0)
                return dropout_refuse(call, p);
        TensorMeta mask = *arg_meta(call, SELF);
        meta_set_strides_like(&mask, arg_meta(call, SELF));
        mask.dtype = DTYPE_BOOL;
        TensorMeta copy = mask;
        copy.dtype = arg_meta(call, SELF)->dtype;
        TRY(out_fresh(call, 0, &copy));
        return out_fresh(call, 1, &mask);
}

static Status native_dropout_run(const OpRun *run)
{
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        Region mask = region_of(run->out_meta[1], run->out[1]);
        TRY(fill_region(run->ctx, &mask, &(bool){ true }));
        return copy_region(run->ctx, &from, &to);
}

const OpDef dropout_ops[] = {
        { "aten::dropout(Tensor input, float p, bool train) -> Tensor", 0, OP_INPLACE,
          .expand = dropout_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::feature_dropout(Tensor input, float p, bool train) -> Tensor", 0, OP_INPLACE,
          .expand = dropout_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor", 0, OP_INPLACE,
          .expand = dropout_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", 0, OP_INPLACE,
          .expand = dropout_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", 0,
          .infer = native_dropout_infer, .run = native_dropout_run, .traits = TRAIT_FRESH },
};
OP_FILE(dropout_ops);
