// SPDX-License-Identifier: Apache-2.0
// dropout.c: dropout and its relatives, the identity in evaluation mode and at p = 0. In training
// they are products with a tensor that aten::bernoulli_ fills, as PyTorch makes them on the CPU; at
// p = 1 nothing is drawn.
#include <math.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

static Status dropout_check(const OpCall *call, double *out_p)
{
        TRY(arg_double(call, DROPOUT_P, out_p));
        if (!(*out_p >= 0 && *out_p <= 1))
                return fail(STATUS_VALUE, "dropout probability has to be between 0 and 1, but got %g",
                            *out_p);
        return STATUS_OK;
}

// Each element is 1 with probability `keep`, else 0. With `features` one for each channel.
static Value noise_like(Compose *c, Value input, bool features, double keep)
{
        const TensorMeta *meta = compose_meta(c, input);
        Value noise;
        if (features) {
                if (meta->rank < 2)
                        compose_check(c, fail(STATUS_SHAPE, "Feature dropout requires at least 2 dimensions "
                                                            "in the input"));
                int64_t size[MAX_RANK];
                for (int d = 0; d < meta->rank; d++)
                        size[d] = d < 2 ? meta->size[d] : 1;
                noise = OP(c, "aten::empty.memory_format", compose_ints(c, size, meta->rank),
                           value_dtype(meta->dtype));
        } else {
                noise = OP(c, "aten::empty_like", input);
        }
        OP(c, "aten::bernoulli_.float", noise, value_float(keep));
        return noise;
}

static Value plain_dropout(Compose *c, Value input, bool features, double p)
{
        Value noise = noise_like(c, input, features, 1 - p);
        OP(c, "aten::div_.Tensor", noise, value_float(1 - p));
        return OP(c, "aten::mul.Tensor", input, noise);
}

// Keeps mean and variance of what SELU gives: dropped elements get its lower limit, -alpha.
static Value alpha_dropout(Compose *c, Value input, bool features, double p)
{
        const double alpha = 1.7580993408473766, a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
        Value noise = noise_like(c, input, features, 1 - p);
        Value shift = OP(c, "aten::add.Tensor", noise, value_int(-1));
        OP(c, "aten::mul_.Tensor", shift, value_float(alpha * a));
        OP(c, "aten::add_.Tensor", shift, value_float(alpha * a * p));
        OP(c, "aten::mul_.Tensor", noise, value_float(a));
        return OP(c, "aten::add_.Tensor", OP(c, "aten::mul.Tensor", input, noise), shift);
}

static Status dropout_with(Emitter *emitter, const OpCall *call, bool features, bool alpha, Value *out)
{
        Compose c;
        double p;
        TRY(dropout_check(call, &p));
        Value input = arg_value(call, SELF);
        if (!arg_bool(call, DROPOUT_TRAIN, true) || p == 0 || meta_numel(arg_meta(call, SELF)) == 0) {
                *out = value_ref(input);
                return STATUS_OK;
        }
        if (p == 1)
                return EMIT(emitter, "aten::mul.Tensor", out, input, value_int(0));
        compose_begin(&c, emitter, call);
        Value result = alpha ? alpha_dropout(&c, input, features, p) : plain_dropout(&c, input, features, p);
        return compose_end(&c, result, out);
}

static Status dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return dropout_with(emitter, call, false, false, out);
}

static Status feature_dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return dropout_with(emitter, call, true, false, out);
}

static Status alpha_dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return dropout_with(emitter, call, false, true, out);
}

static Status feature_alpha_dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return dropout_with(emitter, call, true, true, out);
}

static Status native_dropout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        double p;
        TRY(dropout_check(call, &p));
        compose_begin(&c, emitter, call);
        Value input = arg_value(call, SELF), kept, mask, as_bool = value_dtype(DTYPE_BOOL);
        const TensorMeta *meta = arg_meta(call, SELF);
        if (meta_numel(meta) == 0) {
                mask = OP(&c, "aten::empty_like", input);
                kept = OP(&c, "aten::clone", input);
        } else if (arg_bool(call, DROPOUT_TRAIN, true)) {
                mask = OP(&c, "aten::empty_like", input, as_bool);
                OP(&c, "aten::bernoulli_.float", mask, value_float(1 - p));
                // rounded to the input's dtype before the product
                Value scale = OP(&c, "aten::mul.Tensor", compose_cast(&c, mask, meta->dtype),
                                 value_float(p == 1 ? 0 : 1 / (1 - p)));
                kept = OP(&c, "aten::mul.Tensor", input, scale);
        } else {
                mask = OP(&c, "aten::ones_like", input, as_bool);
                kept = OP(&c, "aten::clone", input);
        }
        return compose_end(&c, compose_tuple(&c, (const Value[]){ kept, mask }, 2), out);
}

#define DROPOUT(name)                                                                                        \
        {                                                                                                    \
                "aten::" #name "(Tensor input, float p, bool train) -> Tensor", 0, OP_INPLACE | OP_RANDOM,   \
                        .expand = name##_expand, .traits = TRAIT_MAY_SHARE                                   \
        }
const OpDef dropout_ops[] = {
        DROPOUT(dropout),
        DROPOUT(feature_dropout),
        DROPOUT(alpha_dropout),
        DROPOUT(feature_alpha_dropout),
        { "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", 0, OP_RANDOM,
          .expand = native_dropout_expand, .traits = TRAIT_FRESH },
};
OP_FILE(dropout_ops);
