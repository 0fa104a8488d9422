// SPDX-License-Identifier: Apache-2.0
// decompose_pointwise.c: decompositions of pointwise operators, factories, and names that are other
// operators' names.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/text.h"
#include "core/ops/arguments.h"
#include "core/ops/decompose_parts.h"

#define F value_float
#define I value_int

// A function `name` whose result is `expression` of `x`, the first argument. Half types are widened
// once and the result is rounded once, as PyTorch's decompositions do.
#define POINTWISE(name, expression)                                                                          \
        static Status name(Emitter *emitter, const OpCall *call, Value *out)                                 \
        {                                                                                                    \
                Compose composed, *c = &composed;                                                            \
                compose_begin(c, emitter, call);                                                             \
                Value x = compose_wide(c, arg_value(call, SELF));                                            \
                Value y = (expression);                                                                      \
                return compose_end(c, compose_cast(c, y, call->outs[0].meta.dtype), out);                    \
        }

// A number as a tensor of the result's dtype.
static Value constant(Compose *c, Value number)
{
        return OP(c, "aten::scalar_tensor", number, value_dtype(c->call->outs[0].meta.dtype));
}

static Value log1p_exp(Compose *c, Value x)
{
        return OP(c, "aten::log1p", OP(c, "aten::exp", x));
}

static Value clamp6(Compose *c, Value x)
{
        Value low = OP(c, "aten::clamp", OP(c, "aten::add.Tensor", x, I(3)), I(0));
        return OP(c, "aten::clamp", low, value_none(), I(6));
}

static Value mish_of(Compose *c, Value x)
{
        Value softplus = log1p_exp(c, x);
        Value capped = OP(c, "aten::where.self", OP(c, "aten::gt.Scalar", x, I(20)), x, softplus);
        return OP(c, "aten::mul.Tensor", x, OP(c, "aten::tanh", capped));
}

static Value softshrink_of(Compose *c, Value x)
{
        Value lambda = NAMED(c, "lambd");
        Value outside = OP(c, "aten::gt.Scalar", OP(c, "aten::abs", x), lambda);
        Value step = OP(c, "aten::mul.Tensor", OP(c, "aten::sign", x), lambda);
        Value moved = OP(c, "aten::sub.Tensor", x, step);
        return OP(c, "aten::where.self", outside, moved, OP(c, "aten::mul.Tensor", x, I(0)));
}

static Value hardshrink_of(Compose *c, Value x)
{
        Value inside = OP(c, "aten::le.Scalar", OP(c, "aten::abs", x), NAMED(c, "lambd"));
        return OP(c, "aten::where.self", inside, constant(c, I(0)), x);
}

static Value threshold_of(Compose *c, Value x)
{
        Value below = OP(c, "aten::le.Scalar", x, NAMED(c, "threshold"));
        return OP(c, "aten::where.self", below, constant(c, NAMED(c, "value")), x);
}

static Value softplus_of(Compose *c, Value x)
{
        double beta = compose_double(c, "beta");
        bool scaled = beta < 1 || beta > 1;
        Value bx = scaled ? OP(c, "aten::mul.Tensor", x, NAMED(c, "beta")) : x;
        Value y = log1p_exp(c, bx);
        if (scaled)
                y = OP(c, "aten::div.Tensor", y, NAMED(c, "beta"));
        return OP(c, "aten::where.self", OP(c, "aten::gt.Scalar", bx, NAMED(c, "threshold")), x, y);
}

static Value isfinite_of(Compose *c, Value x)
{
        Value bounded = OP(c, "aten::ne.Scalar", OP(c, "aten::abs", x), F(INFINITY));
        return OP(c, "aten::mul.Tensor", OP(c, "aten::eq.Tensor", x, x), bounded);
}

static Value addcmul_of(Compose *c, Value self, const char *name)
{
        Value left = compose_wide(c, NAMED(c, "tensor1")), right = compose_wide(c, NAMED(c, "tensor2"));
        Value scaled = OP(c, "aten::mul.Tensor", left, NAMED(c, "value"));
        return OP(c, "aten::add.Tensor", self, OP(c, name, scaled, right));
}

static Value logsigmoid_of(Compose *c, Value x)
{
        Value low = OP(
                c, "aten::minimum",
                OP(c, "aten::full", compose_ints(c, NULL, 0), I(0), value_dtype(compose_meta(c, x)->dtype)),
                x);
        Value rest = OP(c, "aten::log1p", OP(c, "aten::exp", OP(c, "aten::neg", OP(c, "aten::abs", x))));
        return OP(c, "aten::sub.Tensor", low, rest);
}

static Value glu_of(Compose *c, Value x)
{
        const TensorMeta *meta = compose_meta(c, x);
        Value dim = I(compose_dim(c, "dim", meta->rank));
        int64_t whole = compose_failed(c) ? 0 : meta->size[dim.i];
        Value left = OP(c, "aten::slice.Tensor", x, dim, I(0), I(whole / 2));
        Value right = OP(c, "aten::slice.Tensor", x, dim, I(whole / 2), I(whole));
        return OP(c, "aten::mul.Tensor", left, OP(c, "aten::sigmoid", right));
}

// The diagonals of the last two dimensions, as a mask.
static Value triangle(Compose *c, Value x, const char *comparison)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (compose_failed(c) || meta->rank < 2)
                return x;
        Value along = OP(c, "aten::arange.start_step", I(0), I(meta->size[meta->rank - 1]));
        Value columns = OP(c, "aten::unsqueeze", along, I(-2));
        Value down = OP(c, "aten::arange.start_step", I(0), I(meta->size[meta->rank - 2]));
        Value rows = OP(c, "aten::unsqueeze", down, I(-1));
        Value keeps = OP(c, comparison, OP(c, "aten::sub.Tensor", columns, rows), NAMED(c, "diagonal"));
        return OP(c, "aten::where.self", keeps, arg_value(c->call, SELF), constant(c, I(0)));
}

static Value full_like(Compose *c, Value x, Value number)
{
        Value preserve = { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_PRESERVE };
        Value dtype = value_dtype(c->call->outs[0].meta.dtype), none = value_none();
        bool cast = dtype.dtype != compose_meta(c, x)->dtype;
        return OP(c, "aten::full_like", x, number, cast ? dtype : none, none, none, none, preserve);
}

POINTWISE(silu, OP(c, "aten::mul.Tensor", x, OP(c, "aten::sigmoid", x)))
POINTWISE(mish, mish_of(c, x))
POINTWISE(hardswish, OP(c, "aten::div.Tensor", OP(c, "aten::mul.Tensor", x, clamp6(c, x)), I(6)))
POINTWISE(hardsigmoid, OP(c, "aten::div.Tensor", clamp6(c, x), I(6)))
POINTWISE(relu6, OP(c, "aten::hardtanh", x, I(0), I(6)))
POINTWISE(selu, OP(c, "aten::elu", x, F(1.6732632423543772), F(1.0507009873554805)))
POINTWISE(softplus, softplus_of(c, x))
POINTWISE(log_sigmoid, logsigmoid_of(c, x))
POINTWISE(glu, glu_of(c, x))
POINTWISE(softshrink, softshrink_of(c, x))
POINTWISE(hardshrink, hardshrink_of(c, x))
POINTWISE(threshold, threshold_of(c, x))
POINTWISE(square, OP(c, "aten::pow.Tensor_Scalar", x, I(2)))
POINTWISE(frac, OP(c, "aten::sub.Tensor", x, OP(c, "aten::trunc", x)))
POINTWISE(rad2deg, OP(c, "aten::mul.Tensor", x, F(57.295779513082320876798)))
POINTWISE(deg2rad, OP(c, "aten::mul.Tensor", x, F(0.017453292519943295769237)))
POINTWISE(is_finite, isfinite_of(c, x))
POINTWISE(addcmul, addcmul_of(c, x, "aten::mul.Tensor"))
POINTWISE(addcdiv, addcmul_of(c, x, "aten::div.Tensor"))
POINTWISE(tril, triangle(c, x, "aten::le.Scalar"))
POINTWISE(triu, triangle(c, x, "aten::ge.Scalar"))
POINTWISE(masked_fill, OP(c, "aten::where.self", NAMED(c, "mask"), constant(c, NAMED(c, "value")), x))
POINTWISE(clamp_max, OP(c, "aten::clamp", x, value_none(), NAMED(c, "max")))
POINTWISE(full_0, full_like(c, x, I(0)))
POINTWISE(full_1, full_like(c, x, I(1)))
POINTWISE(fill, OP(c, "aten::full_like", x, NAMED(c, "value")))

// (other, self, alpha) of sub.
static Status rsub(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(
                &c, OP(&c, "aten::sub.Tensor", NAMED(&c, "other"), NAMED(&c, "self"), NAMED(&c, "alpha")),
                out);
}

// zeros, ones, new_zeros and others: of the size and dtype that infer has found.
static Status full_of(Emitter *emitter, const OpCall *call, Value number, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = &call->outs[0].meta;
        return compose_end(&c,
                           OP(&c, "aten::full", compose_ints(&c, meta->size, meta->rank), number,
                              value_dtype(meta->dtype)),
                           out);
}

static Status zeros(Emitter *emitter, const OpCall *call, Value *out)
{
        return full_of(emitter, call, I(0), out);
}

static Status ones(Emitter *emitter, const OpCall *call, Value *out)
{
        return full_of(emitter, call, I(1), out);
}

static Status new_full(Emitter *emitter, const OpCall *call, Value *out)
{
        return full_of(emitter, call, arg_value(call, NEW_FULL_FILL_VALUE), out);
}

static Status arange(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        bool from = strcmp(call->schema->overload, "start") == 0;
        return compose_end(&c,
                           OP(&c, "aten::arange.start_step", from ? NAMED(&c, "start") : I(0),
                              NAMED(&c, "end"), I(1), NAMED(&c, "dtype")),
                           out);
}

static const Decomposition rows[] = {
        { "silu", silu },
        { "mish", mish },
        { "hardswish", hardswish },
        { "hardsigmoid", hardsigmoid },
        { "relu6", relu6 },
        { "selu", selu },
        { "softplus", softplus },
        { "log_sigmoid", log_sigmoid },
        { "glu", glu },
        { "softshrink", softshrink },
        { "hardshrink", hardshrink },
        { "threshold", threshold },
        { "square", square },
        { "frac", frac },
        { "rad2deg", rad2deg },
        { "deg2rad", deg2rad },
        { "isfinite", is_finite },
        { "addcmul", addcmul },
        { "addcdiv", addcdiv },
        { "tril", tril },
        { "triu", triu },
        { "masked_fill.Scalar", masked_fill },
        { "clamp_max", clamp_max },
        { "zeros_like", full_0 },
        { "ones_like", full_1 },
        { "fill.Scalar", fill },
        { "zero", full_0 },
        { "rsub.Scalar", rsub },
        { "rsub.Tensor", rsub },
        { "zeros", zeros },
        { "ones", ones },
        { "new_zeros", zeros },
        { "new_ones", ones },
        { "new_full", new_full },
        { "arange", arange },
        { "arange.start", arange },
};

// ---- other names ----

// Operators with the same arguments.
static const struct {
        const char *name, *is;
} other_names[] = {
        { "absolute", "abs" },
        { "arccos", "acos" },
        { "arccosh", "acosh" },
        { "arcsin", "asin" },
        { "arcsinh", "asinh" },
        { "arctan", "atan" },
        { "arctan2", "atan2" },
        { "arctanh", "atanh" },
        { "clamp_min", "clamp" },
        { "clip", "clamp" },
        { "clip.Tensor", "clamp.Tensor" },
        { "divide.Scalar", "div.Scalar" },
        { "divide.Scalar_mode", "div.Scalar_mode" },
        { "divide.Tensor", "div.Tensor" },
        { "divide.Tensor_mode", "div.Tensor_mode" },
        { "fix", "trunc" },
        { "greater.Scalar", "gt.Scalar" },
        { "greater.Tensor", "gt.Tensor" },
        { "greater_equal.Scalar", "ge.Scalar" },
        { "greater_equal.Tensor", "ge.Tensor" },
        { "lift_fresh_copy", "clone" },
        { "less.Scalar", "lt.Scalar" },
        { "less.Tensor", "lt.Tensor" },
        { "less_equal.Scalar", "le.Scalar" },
        { "less_equal.Tensor", "le.Tensor" },
        { "max.other", "maximum" },
        { "min.other", "minimum" },
        { "multiply.Scalar", "mul.Scalar" },
        { "multiply.Tensor", "mul.Tensor" },
        { "negative", "neg" },
        { "not_equal.Scalar", "ne.Scalar" },
        { "not_equal.Tensor", "ne.Tensor" },
        { "special_erf", "erf" },
        { "special_erfc", "erfc" },
        { "special_expit", "sigmoid" },
        { "special_expm1", "expm1" },
        { "special_log1p", "log1p" },
        { "subtract.Scalar", "sub.Scalar" },
        { "subtract.Tensor", "sub.Tensor" },
        { "true_divide.Scalar", "div.Scalar" },
        { "true_divide.Tensor", "div.Tensor" },
        { "__and__.Tensor", "bitwise_and.Tensor" },
        { "__or__.Tensor", "bitwise_or.Tensor" },
        { "__xor__.Tensor", "bitwise_xor.Tensor" },
};

static const char *other_name(const OpDef *op)
{
        const char *name = strncmp(op->schema, "aten::", 6) == 0 ? op->schema + 6 : "";
        size_t length = strcspn(name, "(");
        for (size_t i = 0; i < ARRAY_LENGTH(other_names); i++) {
                if (strlen(other_names[i].name) == length && memcmp(other_names[i].name, name, length) == 0)
                        return other_names[i].is;
        }
        return NULL;
}

static Status by_other_name(Emitter *emitter, const OpCall *call, Value *out)
{
        char name[64];
        snprintf(name, sizeof(name), "aten::%s", other_name(call->op));
        const Overload *overload = op_find(name);
        if (overload == NULL)
                return fail(STATUS_INTERNAL, "there is no operator %s", name);
        Value args[SCHEMA_MAX_ARGS];
        for (uint32_t i = 0; i < overload->schema.n_args; i++)
                args[i] = i < call->n_args ? call->args[i] : overload->schema.args[i].default_value;
        return emit(emitter, overload, args, call->given, out);
}

OpDecompose pointwise_decomposition(const OpDef *op)
{
        OpDecompose found = decomposition_in(rows, ARRAY_LENGTH(rows), op);
        return found != NULL || other_name(op) == NULL ? found : by_other_name;
}
