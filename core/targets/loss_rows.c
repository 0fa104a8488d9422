// SPDX-License-Identifier: Apache-2.0
// loss_rows.c: losses of torch.nn.functional that PyTorch writes in Python, without an operator of
// their own, and those whose weights it multiplies in Python.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/py.h"

// The loss of each element -> the result, by the argument `reduction`, a text.
static Value reduced(Compose *c, Value loss)
{
        const char *reduction = NAMED(c, "reduction").str->text;
        if (strcmp(reduction, "mean") == 0)
                return OP(c, "aten::mean", loss);
        if (strcmp(reduction, "sum") == 0)
                return OP(c, "aten::sum", loss);
        if (strcmp(reduction, "none") != 0)
                compose_check(c, fail(STATUS_VALUE, "%.40s is not valid", reduction));
        return loss;
}

// ---- with a weight per element ----
static Value unweighted(Compose *c, const char *name)
{
        Value input = NAMED(c, "input"), target = NAMED(c, "target");
        if (strcmp(name, "huber_loss") == 0)
                return OP(c, "aten::huber_loss", input, target, value_int(0), NAMED(c, "delta"));
        Value gap = OP(c, "aten::sub.Tensor", input, target);
        return strcmp(name, "l1_loss") == 0 ? OP(c, "aten::abs", gap)
                                            : OP(c, "aten::pow.Tensor_Scalar", gap, value_int(2));
}

// mse_loss, l1_loss, huber_loss. Means of the first two are those of the weights, too.
static Status weighted_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const char *name = call->schema->name;
        const bool huber = strcmp(name, "huber_loss") == 0;
        char operator_name[32];
        snprintf(operator_name, sizeof(operator_name), "aten::%s", name);
        Compose c;
        compose_begin(&c, emitter, call);
        Value reduction, weight = NAMED(&c, "weight"), input = NAMED(&c, "input"),
                         target = NAMED(&c, "target");
        if (!huber && (compose_has(&c, "size_average") || compose_has(&c, "reduce")))
                return fail(STATUS_UNSUPPORTED, "%s: size_average and reduce are deprecated; use reduction",
                            name);
        TRY(python_reduction(NAMED(&c, "reduction"), &reduction));
        if (weight.kind == VALUE_NONE && huber)
                return EMIT(emitter, operator_name, out, input, target, reduction, NAMED(&c, "delta"));
        if (weight.kind == VALUE_NONE)
                return EMIT(emitter, operator_name, out, input, target, reduction);
        if (!meta_same_shape(compose_meta(&c, weight), compose_meta(&c, input)))
                return fail(STATUS_SHAPE, "Weights and input must have the same size.");
        Value loss = OP(&c, "aten::mul.Tensor", unweighted(&c, name), weight);
        if (!huber && strcmp(NAMED(&c, "reduction").str->text, "mean") == 0)
                return compose_end(
                        &c,
                        OP(&c, "aten::div.Tensor", OP(&c, "aten::sum", loss), OP(&c, "aten::sum", weight)),
                        out);
        return compose_end(&c, reduced(&c, loss), out);
}

// Without a bend it is another operator, which takes more dtypes.
static Status smooth_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value reduction, input = NAMED(&c, "input"), target = NAMED(&c, "target");
        if (compose_has(&c, "size_average") || compose_has(&c, "reduce"))
                return fail(STATUS_UNSUPPORTED,
                            "smooth_l1_loss: size_average and reduce are deprecated; use reduction");
        TRY(python_reduction(NAMED(&c, "reduction"), &reduction));
        if (compose_double(&c, "beta") == 0)
                return EMIT(emitter, "aten::l1_loss", out, input, target, reduction);
        return EMIT(emitter, "aten::smooth_l1_loss", out, input, target, reduction, NAMED(&c, "beta"));
}

// ---- Gaussian ----
// A variance per sample stands for all its elements. PyTorch takes a size of 1 for the last of
// several dimensions, or for one other.
static Value variance_like(Compose *c, Value variance, const TensorMeta *input)
{
        if (compose_failed(c) || variance.kind != VALUE_TENSOR)
                return variance;
        const TensorMeta *meta = compose_meta(c, variance);
        int64_t sum = 0; // of the sizes that differ
        if (meta->rank == input->rank - 1 &&
            memcmp(meta->size, input->size, (size_t)meta->rank * sizeof(int64_t)) == 0)
                return OP(c, "aten::unsqueeze", variance, value_int(-1));
        for (int d = 0; d < input->rank && meta->rank == input->rank; d++)
                sum += meta->size[d] == input->size[d] ? 0 : meta->size[d];
        if (meta->rank != input->rank || (sum != 1 && !meta_same_shape(meta, input)))
                compose_check(c, fail(STATUS_VALUE, "var is of incorrect size"));
        return variance;
}

static Value checked_variance(Compose *c)
{
        Value variance = NAMED(c, "var");
        const char *message = "var has negative entry/entries";
        if (variance.kind == VALUE_TENSOR) {
                Value negative = OP(c, "aten::any", OP(c, "aten::lt.Scalar", variance, value_int(0)));
                OP(c, "aten::_assert_async.msg", OP(c, "aten::logical_not", negative),
                   compose_text(c, message));
                return variance;
        }
        if (!value_is_number(variance) || variance.kind == VALUE_COMPLEX)
                compose_check(c, fail(STATUS_VALUE, "var must be a Tensor or float, not %s",
                                      value_kind_name(variance.kind)));
        else if (python_float(variance) < 0)
                compose_check(c, fail(STATUS_VALUE, "%s", message));
        Value ones = OP(c, "aten::ones_like", NAMED(c, "input")); // of whole numbers, too
        return OP(c, "aten::mul.Scalar", ones, value_float(python_float(variance)));
}

static Status gaussian_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), variance = checked_variance(&c);
        variance = variance_like(&c, variance, compose_meta(&c, input));
        const Dtype dtype = compose_meta(&c, variance)->dtype;
        if (!compose_failed(&c) && (dtype_is_int(dtype) || dtype == DTYPE_BOOL))
                compose_check(&c, fail(STATUS_DTYPE,
                                       "result type Float can't be cast to the desired output type %s",
                                       dtype_words(dtype)));
        variance = OP(&c, "aten::clamp_min", variance, value_float(compose_double(&c, "eps")));
        Value gap = OP(&c, "aten::sub.Tensor", input, NAMED(&c, "target"));
        Value loss = OP(&c, "aten::add.Tensor", OP(&c, "aten::log", variance),
                        OP(&c, "aten::div.Tensor", OP(&c, "aten::mul.Tensor", gap, gap), variance));
        loss = OP(&c, "aten::mul.Scalar", loss, value_float(0.5));
        if (compose_bool(&c, "full"))
                loss = OP(&c, "aten::add.Scalar", loss, value_float(0.5 * log(2 * M_PI)));
        return compose_end(&c, reduced(&c, loss), out);
}

// ---- several labels ----
static Status multilabel_soft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), target = NAMED(&c, "target");
        Value own = OP(&c, "aten::mul.Tensor", target, OP(&c, "aten::log_sigmoid", input));
        Value others = OP(&c, "aten::mul.Tensor", OP(&c, "aten::rsub.Scalar", target, value_int(1)),
                          OP(&c, "aten::log_sigmoid", OP(&c, "aten::neg", input)));
        Value loss = OP(&c, "aten::neg", OP(&c, "aten::add.Tensor", own, others));
        if (compose_has(&c, "weight"))
                loss = OP(&c, "aten::mul.Tensor", loss, NAMED(&c, "weight"));
        const TensorMeta *meta = compose_meta(&c, input);
        if (!compose_failed(&c) && meta->rank == 0)
                compose_check(&c,
                              fail(STATUS_SHAPE, "Dimension specified as -1 but tensor has no dimensions"));
        if (compose_failed(&c))
                return compose_end(&c, loss, out);
        loss = OP(&c, "aten::div.Scalar", OP(&c, "aten::sum.dim_IntList", loss, INTS(&c, meta->rank - 1)),
                  value_int(meta->size[meta->rank - 1]));
        return compose_end(&c, reduced(&c, loss), out);
}

// ---- triplets ----
static Value distance(Compose *c, Value a, Value b)
{
        return OP(c, "aten::pairwise_distance", a, b);
}

static Status triplet_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value anchor = NAMED(&c, "anchor"), positive = NAMED(&c, "positive"),
              negative = NAMED(&c, "negative");
        const int ranks[] = { compose_meta(&c, anchor)->rank, compose_meta(&c, positive)->rank,
                              compose_meta(&c, negative)->rank };
        const double margin = compose_double(&c, "margin");
        if (compose_has(&c, "distance_function"))
                compose_check(&c, fail(STATUS_UNSUPPORTED, "only the default distance_function is known"));
        if (margin <= 0)
                compose_check(&c, fail(STATUS_VALUE, "margin must be greater than 0, got %g", margin));
        if (ranks[0] != ranks[1] || ranks[1] != ranks[2])
                compose_check(
                        &c, fail(STATUS_SHAPE,
                                 "The anchor, positive, and negative tensors are expected to have the same "
                                 "number of dimensions, but got: anchor %dD, positive %dD, and negative %dD "
                                 "inputs",
                                 ranks[0], ranks[1], ranks[2]));
        Value near = distance(&c, anchor, positive), far = distance(&c, anchor, negative);
        if (compose_bool(&c, "swap"))
                far = OP(&c, "aten::minimum", far, distance(&c, positive, negative));
        Value gap = OP(&c, "aten::sub.Tensor", OP(&c, "aten::add.Scalar", near, value_float(margin)), far);
        return compose_end(&c, reduced(&c, OP(&c, "aten::clamp_min", gap, value_int(0))), out);
}

#define REDUCTION "str reduction='mean') -> Tensor"
#define LOSS      "Tensor input, Tensor target, "
#define OLD_STYLE "Any size_average=None, Any reduce=None, str reduction='mean'"
#define WEIGHTED  .expand = weighted_expand, .needs = "aten::mse_loss aten::l1_loss aten::huber_loss"
static const PyRow rows[] = {
        { "F.mse_loss", "py::mse_loss(" LOSS OLD_STYLE ", Tensor? weight=None) -> Tensor", WEIGHTED },
        { "F.l1_loss", "py::l1_loss(" LOSS OLD_STYLE ", Tensor? weight=None) -> Tensor", WEIGHTED },
        { "F.smooth_l1_loss", "py::smooth_l1_loss(" LOSS OLD_STYLE ", float beta=1.0) -> Tensor",
          .expand = smooth_expand, .needs = "aten::smooth_l1_loss aten::l1_loss" },
        { "F.huber_loss",
          "py::huber_loss(" LOSS "str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
          WEIGHTED },
        { "F.gaussian_nll_loss",
          "py::gaussian_nll_loss(Tensor input, Tensor target, Any var, bool full=False, float "
          "eps=1e-06, " REDUCTION,
          .expand = gaussian_expand, .needs = "aten::_assert_async.msg aten::log" },
        { "F.multilabel_soft_margin_loss",
          "py::multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, Any "
          "size_average=None, Any reduce=None, " REDUCTION,
          .expand = multilabel_soft_expand, .needs = "aten::log_sigmoid aten::mul" },
        { "F.multilabel_margin_loss",
          "py::multilabel_margin_loss(Tensor input, Tensor target, Any size_average=None, Any "
          "reduce=None, " REDUCTION,
          .emits = "aten::multilabel_margin_loss a0 a1 ra4 ~a2 ~a3" },
        { "F.triplet_margin_with_distance_loss",
          "py::triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, Any "
          "distance_function=None, float margin=1.0, bool swap=False, " REDUCTION,
          .expand = triplet_expand, .needs = "aten::pairwise_distance aten::clamp_min" },
};
const PyTable py_loss_rows = PY_TABLE(rows);
