// SPDX-License-Identifier: Apache-2.0
// losses.c: losses of elements and of pairs of rows. Where PyTorch has one kernel, half types are
// computed in float32 and rounded at the end.
#include <math.h>
#include "core/ops/losses.h"

// The loss of each element -> the result, by the argument `reduction`.
static Value reduced(Compose *c, Value loss)
{
        int64_t reduction = compose_int(c, "reduction");
        if (reduction == REDUCTION_MEAN)
                return OP(c, "aten::mean", loss);
        return reduction == REDUCTION_SUM ? OP(c, "aten::sum", loss) : loss;
}

// An operator on `a` in place: the shape and dtype of `a`.
static Value in_place(Compose *c, const char *name, Value a, Value b)
{
        const TensorMeta *am = compose_meta(c, a);
        Value both = OP(c, name, a, b);
        const TensorMeta *meta = compose_meta(c, both);
        char x[128], y[128];
        if (!compose_failed(c) && !meta_same_shape(meta, am))
                compose_check(c,
                              fail(STATUS_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                                   shape_text(am->rank, am->size, x, sizeof(x)),
                                   shape_text(meta->rank, meta->size, y, sizeof(y))));
        if (!compose_failed(c) && !dtype_can_cast(meta->dtype, am->dtype))
                compose_check(c,
                              fail(STATUS_DTYPE, "result type %s can't be cast to the desired output type %s",
                                   dtype_words(meta->dtype), dtype_words(am->dtype)));
        return compose_failed(c) ? both : compose_cast(c, both, am->dtype);
}

// ---- of two tensors, element by element ----
typedef struct Pair {
        Value input, target; // of one dtype, no half type
        Dtype dtype;         // of the result
} Pair;

static Pair wide_pair(Compose *c, const char *kernel)
{
        Pair pair = { NAMED(c, "self"), NAMED(c, "target"), DTYPE_F32 };
        pair.dtype = compose_common_dtype(c, pair.input, pair.target);
        if (!compose_failed(c) && !dtype_is_float(pair.dtype))
                compose_check(c, fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", kernel,
                                      dtype_words(pair.dtype)));
        Dtype wide = (DTYPES_HALFS >> pair.dtype & 1) != 0 ? DTYPE_F32 : pair.dtype;
        pair.input = compose_cast(c, compose_cast(c, pair.input, pair.dtype), wide);
        pair.target = compose_cast(c, compose_cast(c, pair.target, pair.dtype), wide);
        return pair;
}

void loss_check_reduction(Compose *c)
{
        const int64_t n = compose_int(c, "reduction");
        if (n < REDUCTION_NONE || n > REDUCTION_SUM)
                compose_check(c, fail(STATUS_VALUE, "reduction is %ld; 0, 1 or 2 is expected", (long)n));
}

static Status end_pair(Compose *c, const Pair *pair, Value loss, Value *out)
{
        loss_check_reduction(c);
        return compose_end(c, compose_cast(c, reduced(c, loss), pair->dtype), out);
}

static Status mse_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Pair pair = wide_pair(&c, "mse_cpu");
        Value gap = OP(&c, "aten::sub.Tensor", pair.input, pair.target);
        return end_pair(&c, &pair, OP(&c, "aten::mul.Tensor", gap, gap), out);
}

static Status l1_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value gap = OP(&c, "aten::sub.Tensor", NAMED(&c, "self"), NAMED(&c, "target"));
        return compose_end(&c, reduced(&c, OP(&c, "aten::abs", gap)), out);
}

// Below `bound` a square times `factor`; from there on the line slope * (|x| - bound / 2).
static Value bent(Compose *c, Value input, Value target, double bound, double factor, double slope)
{
        Value size = OP(c, "aten::abs", OP(c, "aten::sub.Tensor", input, target));
        Value square = OP(c, "aten::mul.Scalar", OP(c, "aten::mul.Tensor", size, size), value_float(factor));
        Value line = OP(c, "aten::mul.Scalar", OP(c, "aten::sub.Scalar", size, value_float(bound / 2)),
                        value_float(slope));
        return OP(c, "aten::where.self", OP(c, "aten::lt.Scalar", size, value_float(bound)), square, line);
}

static Status smooth_l1_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        double beta = compose_double(&c, "beta");
        if (!(beta >= 0))
                return fail(STATUS_VALUE, "smooth_l1_loss does not support negative values for beta.");
        Pair pair = wide_pair(&c, "smooth_l1_cpu");
        return end_pair(&c, &pair, bent(&c, pair.input, pair.target, beta, beta == 0 ? 0 : 0.5 / beta, 1),
                        out);
}

static Status huber_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        double delta = compose_double(&c, "delta");
        if (delta <= 0)
                return fail(STATUS_VALUE, "huber_loss does not support non-positive values for delta.");
        Pair pair = wide_pair(&c, "huber_cpu");
        const Dtype dtype = compose_meta(&c, NAMED(&c, "self"))->dtype; // as PyTorch's loop writes it
        if (!compose_failed(&c) && !dtype_can_cast(pair.dtype, dtype))
                compose_check(&c,
                              fail(STATUS_DTYPE, "result type %s can't be cast to the desired output type %s",
                                   dtype_words(pair.dtype), dtype_words(dtype)));
        Value loss = bent(&c, pair.input, pair.target, delta, 0.5, delta);
        if (pair.dtype != dtype) // rounded in the common dtype first
                loss = compose_wide(&c, compose_cast(&c, compose_cast(&c, loss, pair.dtype), dtype));
        pair.dtype = dtype;
        return end_pair(&c, &pair, loss, out);
}

// x * log(x), 0 at 0. Of half types PyTorch rounds the logarithm, too.
static Value entropy(Compose *c, Value x)
{
        if ((DTYPES_HALFS >> compose_meta(c, x)->dtype & 1) == 0)
                return OP(c, "aten::xlogy.Tensor", x, x);
        return OP(c, "aten::masked_fill.Scalar", OP(c, "aten::mul.Tensor", x, OP(c, "aten::log", x)),
                  OP(c, "aten::eq.Scalar", x, value_int(0)), value_int(0));
}

static Status kl_div_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "self"), target = NAMED(&c, "target"), loss;
        if (!dtype_is_float(compose_meta(&c, input)->dtype) ||
            !dtype_is_float(compose_meta(&c, target)->dtype))
                return fail(STATUS_DTYPE, "kl_div: Integral inputs not supported.");
        if (compose_bool(&c, "log_target"))
                loss = OP(&c, "aten::mul.Tensor", OP(&c, "aten::exp", target),
                          OP(&c, "aten::sub.Tensor", target, input));
        else
                loss = OP(&c, "aten::sub.Tensor", entropy(&c, target),
                          OP(&c, "aten::mul.Tensor", target, input));
        return compose_end(&c, reduced(&c, loss), out);
}

static Status soft_margin_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        loss_check_reduction(&c);
        Value product =
                in_place(&c, "aten::mul.Tensor", OP(&c, "aten::neg", NAMED(&c, "self")), NAMED(&c, "target"));
        Dtype dtype = compose_meta(&c, product)->dtype;
        if (!compose_failed(&c) && (dtype_is_int(dtype) || dtype == DTYPE_BOOL)) // exp in place
                compose_check(&c, fail(STATUS_DTYPE,
                                       "result type Float can't be cast to the desired output type %s",
                                       dtype_words(dtype)));
        return compose_end(&c, reduced(&c, OP(&c, "aten::log1p", OP(&c, "aten::exp", product))), out);
}

static Status poisson_nll_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), target = NAMED(&c, "target"), loss;
        if (compose_bool(&c, "log_input"))
                loss = OP(&c, "aten::sub.Tensor", OP(&c, "aten::exp", input),
                          OP(&c, "aten::mul.Tensor", target, input));
        else
                loss = OP(&c, "aten::sub.Tensor", input,
                          OP(&c, "aten::mul.Tensor", target,
                             OP(&c, "aten::log", OP(&c, "aten::add.Scalar", input, NAMED(&c, "eps")))));
        if (compose_bool(&c, "full")) { // Stirling's formula, where the target is over 1
                Value product = OP(&c, "aten::mul.Tensor", target, OP(&c, "aten::log", target));
                Value rest =
                        OP(&c, "aten::mul.Scalar",
                           OP(&c, "aten::log", OP(&c, "aten::mul.Scalar", target, value_float(2 * M_PI))),
                           value_float(0.5));
                Value term = OP(&c, "aten::add.Tensor", OP(&c, "aten::sub.Tensor", product, target), rest);
                Value low = OP(&c, "aten::le.Scalar", target, value_int(1));
                loss = in_place(&c, "aten::add.Tensor", loss,
                                OP(&c, "aten::masked_fill.Scalar", term, low, value_int(0)));
        }
        return compose_end(&c, reduced(&c, loss), out);
}

// ---- margins ----
// `loss` where the target equals `label`, else 0.
static Value where_label(Compose *c, Value target, int64_t label, Value loss)
{
        return OP(c, "aten::masked_fill.Scalar", loss, OP(c, "aten::ne.Scalar", target, value_int(label)),
                  value_int(0));
}

static Status hinge_embedding_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), target = NAMED(&c, "target");
        // PyTorch's difference of a number and a tensor: in the tensor's dtype, also of integers.
        Value margin = OP(&c, "aten::full_like", self, NAMED(&c, "margin"));
        Value gap = OP(&c, "aten::clamp_min", OP(&c, "aten::sub.Tensor", margin, self), value_int(0));
        Value zero = OP(&c, "aten::zeros_like", self);
        Value far = OP(&c, "aten::where.self", OP(&c, "aten::ne.Scalar", target, value_int(1)), gap, zero);
        Value near = OP(&c, "aten::where.self", OP(&c, "aten::ne.Scalar", target, value_int(-1)), self, zero);
        return compose_end(&c, reduced(&c, OP(&c, "aten::add.Tensor", far, near)), out);
}

static Status margin_ranking_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value gap = OP(&c, "aten::sub.Tensor", NAMED(&c, "input1"), NAMED(&c, "input2"));
        Value product = OP(&c, "aten::mul.Tensor", OP(&c, "aten::neg", NAMED(&c, "target")), gap);
        Value loss = OP(&c, "aten::clamp_min", OP(&c, "aten::add.Scalar", product, NAMED(&c, "margin")),
                        value_int(0));
        return compose_end(&c, reduced(&c, loss), out);
}

static Status cosine_embedding_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "input1"), b = NAMED(&c, "input2"), target = NAMED(&c, "target");
        int rank = compose_meta(&c, target)->rank;
        if (rank > 1)
                return fail(STATUS_SHAPE, "0D or 1D target tensor expected, multi-target not supported");
        if (compose_meta(&c, a)->rank != rank + 1 || compose_meta(&c, b)->rank != rank + 1)
                return fail(STATUS_SHAPE, rank == 1 ? "1D target tensor expects 2D input tensors"
                                                    : "0D target tensor expects 1D input tensors");
        Value dim = INTS(&c, rank), eps = value_float(1e-12);
        Value dot = OP(&c, "aten::sum.dim_IntList", OP(&c, "aten::mul.Tensor", a, b), dim);
        Value aa = OP(&c, "aten::sum.dim_IntList", OP(&c, "aten::mul.Tensor", a, a), dim);
        Value bb = OP(&c, "aten::sum.dim_IntList", OP(&c, "aten::mul.Tensor", b, b), dim);
        Value below = OP(&c, "aten::sqrt",
                         OP(&c, "aten::mul.Tensor", OP(&c, "aten::add.Scalar", aa, eps),
                            OP(&c, "aten::add.Scalar", bb, eps)));
        Value cosine = OP(&c, "aten::div.Tensor", dot, below);
        Value near = OP(&c, "aten::rsub.Scalar", cosine, value_int(1));
        Value far = OP(&c, "aten::clamp_min", OP(&c, "aten::sub.Scalar", cosine, NAMED(&c, "margin")),
                       value_int(0));
        Value loss = OP(&c, "aten::add.Tensor", where_label(&c, target, 1, near),
                        where_label(&c, target, -1, far));
        return compose_end(&c, reduced(&c, loss), out);
}

static Status triplet_margin_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value anchor = NAMED(&c, "anchor"), positive = NAMED(&c, "positive"),
              negative = NAMED(&c, "negative");
        Value p = NAMED(&c, "p"), eps = NAMED(&c, "eps");
        int rank = compose_meta(&c, anchor)->rank;
        if (rank != compose_meta(&c, positive)->rank || rank != compose_meta(&c, negative)->rank)
                return fail(STATUS_SHAPE,
                            "The anchor, positive, and negative tensors are expected to have the same number "
                            "of dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs",
                            rank, compose_meta(&c, positive)->rank, compose_meta(&c, negative)->rank);
        Value near = OP(&c, "aten::pairwise_distance", anchor, positive, p, eps);
        Value far = OP(&c, "aten::pairwise_distance", anchor, negative, p, eps);
        if (compose_bool(&c, "swap"))
                far = OP(&c, "aten::min.other", far,
                         OP(&c, "aten::pairwise_distance", positive, negative, p, eps));
        Value gap = OP(&c, "aten::sub.Tensor", OP(&c, "aten::add.Scalar", near, NAMED(&c, "margin")), far);
        return compose_end(&c, reduced(&c, OP(&c, "aten::clamp_min", gap, value_int(0))), out);
}

// ---- probabilities ----
static void assert_shares(Compose *c, Value x, const char *text)
{
        Value inside = OP(c, "aten::logical_and", OP(c, "aten::ge.Scalar", x, value_int(0)),
                          OP(c, "aten::le.Scalar", x, value_int(1)));
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", inside), compose_text(c, text));
}

static Status bce_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        char a[128], b[128];
        const TensorMeta *input = compose_meta(&c, NAMED(&c, "self")),
                         *target = compose_meta(&c, NAMED(&c, "target"));
        if (!meta_same_shape(input, target))
                return fail(
                        STATUS_SHAPE,
                        "Using a target size (%s) that is different to the input size (%s) is deprecated. "
                        "Please ensure they have the same size.",
                        shape_text(target->rank, target->size, a, sizeof(a)),
                        shape_text(input->rank, input->size, b, sizeof(b)));
        if (input->dtype != target->dtype)
                return fail(STATUS_DTYPE, "Found dtype %s but expected %s", dtype_words(target->dtype),
                            dtype_words(input->dtype));
        if (!dtype_is_float(input->dtype))
                return fail(STATUS_DTYPE, "\"binary_cross_entropy\" not implemented for '%s'",
                            dtype_words(input->dtype));
        Value self = NAMED(&c, "self"), goal = NAMED(&c, "target");
        assert_shares(&c, self, "all elements of input should be between 0 and 1");
        assert_shares(&c, goal, "all elements of target should be between 0 and 1");
        Value lowest = value_int(-100);
        Value yes = OP(&c, "aten::clamp_min", OP(&c, "aten::log", self), lowest);
        Value no = OP(&c, "aten::clamp_min", OP(&c, "aten::log1p", OP(&c, "aten::neg", self)), lowest);
        Value loss = OP(&c, "aten::sub.Tensor",
                        OP(&c, "aten::mul.Tensor", OP(&c, "aten::sub.Scalar", goal, value_int(1)), no),
                        OP(&c, "aten::mul.Tensor", goal, yes));
        if (compose_has(&c, "weight"))
                loss = in_place(&c, "aten::mul.Tensor", loss, NAMED(&c, "weight"));
        return compose_end(&c, reduced(&c, loss), out);
}

static Status bce_with_logits_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "self"), target = NAMED(&c, "target");
        Value loss =
                in_place(&c, "aten::mul.Tensor", OP(&c, "aten::rsub.Scalar", target, value_int(1)), input);
        Value logs = OP(&c, "aten::log_sigmoid", input);
        if (compose_has(&c, "pos_weight")) {
                Value factor = OP(&c, "aten::sub.Scalar", NAMED(&c, "pos_weight"), value_int(1));
                factor = OP(&c, "aten::add.Scalar", OP(&c, "aten::mul.Tensor", factor, target), value_int(1));
                logs = in_place(&c, "aten::mul.Tensor", logs, factor);
        }
        loss = in_place(&c, "aten::sub.Tensor", loss, logs);
        if (compose_has(&c, "weight"))
                loss = in_place(&c, "aten::mul.Tensor", loss, NAMED(&c, "weight"));
        return compose_end(&c, reduced(&c, loss), out);
}

#define LOSS(schema, function)     LOSS_OF(DTYPES_REAL, schema, function)
#define ANY_LOSS(schema, function) LOSS_OF(DTYPES_REAL | DTYPES_COMPLEX, schema, function)
const OpDef losses_ops[] = {
        LOSS("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", mse_loss),
        ANY_LOSS("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", l1_loss),
        LOSS("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
             smooth_l1_loss),
        LOSS("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor", huber_loss),
        LOSS("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
             kl_div),
        ANY_LOSS("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", soft_margin_loss),
        ANY_LOSS("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
                 "reduction) -> Tensor",
                 poisson_nll_loss),
        LOSS("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
             hinge_embedding_loss),
        LOSS("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
             "reduction=1) -> Tensor",
             margin_ranking_loss),
        LOSS("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
             "reduction=1) -> Tensor",
             cosine_embedding_loss),
        ANY_LOSS(
                "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float "
                "p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
                triplet_margin_loss),
        LOSS("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> "
             "Tensor",
             bce),
        LOSS("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
             "pos_weight=None, int reduction=1) -> Tensor",
             bce_with_logits),
};
OP_FILE(losses_ops);
