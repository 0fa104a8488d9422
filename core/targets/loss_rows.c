// SPDX-License-Identifier: Apache-2.0
// loss_rows.c: losses of torch.nn.functional that PyTorch writes in Python, without an operator of
// their own, and those whose weights it multiplies in Python.
#include <math.h>
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

// ---- of two tensors, element by element ----
typedef struct Pair {
        Value input, target;
} Pair;

// Both of one shape: one without dimensions then counts as much for the dtype as the other.
static Pair broadcast_pair(Compose *c)
{
        Value both[] = { NAMED(c, "input"), NAMED(c, "target") };
        if (!meta_same_shape(compose_meta(c, both[0]), compose_meta(c, both[1]))) {
                Value list = OP(c, "aten::broadcast_tensors", compose_list(c, both, 2));
                both[0] = compose_item(c, list, 0);
                both[1] = compose_item(c, list, 1);
        }
        return (Pair){ both[0], both[1] };
}

static Value squared_gap(Compose *c, Pair pair)
{
        return OP(c, "aten::pow.Tensor_Scalar", OP(c, "aten::sub.Tensor", pair.input, pair.target),
                  value_int(2));
}

static Value absolute_gap(Compose *c, Pair pair)
{
        return OP(c, "aten::abs", OP(c, "aten::sub.Tensor", pair.input, pair.target));
}

static Value weighted(Compose *c, Value loss)
{
        Value weight = NAMED(c, "weight");
        if (!compose_failed(c) &&
            !meta_same_shape(compose_meta(c, weight), compose_meta(c, NAMED(c, "input"))))
                compose_check(c, fail(STATUS_SHAPE, "Weights and input must have the same size."));
        return OP(c, "aten::mul.Tensor", loss, weight);
}

// `operator` where there are no weights, else `each` times them. A mean divides by their sum.
static Status gap_loss(Emitter *emitter, const OpCall *call, const char *operator,
                       Value (*each)(Compose *c, Pair pair), Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value reduction;
        if (compose_has(&c, "size_average") || compose_has(&c, "reduce"))
                return fail(STATUS_UNSUPPORTED, "%s: size_average and reduce are deprecated; use reduction",
                            call->schema->name);
        TRY(python_reduction(NAMED(&c, "reduction"), &reduction));
        const Pair pair = broadcast_pair(&c);
        if (!compose_has(&c, "weight"))
                return compose_end(&c, OP(&c, operator, pair.input, pair.target, reduction), out);
        Value loss = weighted(&c, each(&c, pair));
        if (strcmp(NAMED(&c, "reduction").str->text, "mean") != 0)
                return compose_end(&c, reduced(&c, loss), out);
        Value weights = OP(&c, "aten::sum", NAMED(&c, "weight"));
        return compose_end(&c, OP(&c, "aten::div.Tensor", OP(&c, "aten::sum", loss), weights), out);
}

static Status mse_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gap_loss(emitter, call, "aten::mse_loss", squared_gap, out);
}

static Status l1_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gap_loss(emitter, call, "aten::l1_loss", absolute_gap, out);
}

static Status huber_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value reduction;
        TRY(python_reduction(NAMED(&c, "reduction"), &reduction));
        const Pair pair = broadcast_pair(&c);
        if (compose_has(&c, "weight"))
                reduction = value_int(0);
        Value loss = OP(&c, "aten::huber_loss", pair.input, pair.target, reduction, NAMED(&c, "delta"));
        if (!compose_has(&c, "weight"))
                return compose_end(&c, loss, out);
        return compose_end(&c, reduced(&c, weighted(&c, loss)), out);
}

// Without a bend it is another operator, which takes more dtypes.
static Status smooth_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value reduction;
        if (compose_has(&c, "size_average") || compose_has(&c, "reduce"))
                return fail(STATUS_UNSUPPORTED,
                            "smooth_l1_loss: size_average and reduce are deprecated; use reduction");
        TRY(python_reduction(NAMED(&c, "reduction"), &reduction));
        const Pair pair = broadcast_pair(&c);
        Value loss = compose_double(&c, "beta") == 0
                             ? OP(&c, "aten::l1_loss", pair.input, pair.target, reduction)
                             : OP(&c, "aten::smooth_l1_loss", pair.input, pair.target, reduction,
                                  NAMED(&c, "beta"));
        return compose_end(&c, loss, out);
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
static const PyRow rows[] = {
        { "F.mse_loss", "py::mse_loss(" LOSS OLD_STYLE ", Tensor? weight=None) -> Tensor",
          .expand = mse_expand, .needs = "aten::mse_loss" },
        { "F.l1_loss", "py::l1_loss(" LOSS OLD_STYLE ", Tensor? weight=None) -> Tensor", .expand = l1_expand,
          .needs = "aten::l1_loss" },
        { "F.smooth_l1_loss", "py::smooth_l1_loss(" LOSS OLD_STYLE ", float beta=1.0) -> Tensor",
          .expand = smooth_expand, .needs = "aten::smooth_l1_loss aten::l1_loss" },
        { "F.huber_loss",
          "py::huber_loss(" LOSS "str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
          .expand = huber_expand, .needs = "aten::huber_loss" },
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
