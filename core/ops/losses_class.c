// SPDX-License-Identifier: Apache-2.0
// losses_class.c: losses of rows of scores whose targets are classes, by margins and by
// log-probabilities. Half types are rounded at each step, as in PyTorch.
#include <math.h>
#include "core/kernels/dense.h"
#include "core/kernels/reduce/class_sum.h"
#include "core/ops/arguments.h"
#include "core/ops/losses.h"
#include "core/tensor/convert.h"

// ---- margins ----
// Of rows, or of one row. The kernels of margins take any other number for a sum.
static Value margin_reduced(Compose *c, Value loss, bool is_row)
{
        int64_t reduction = compose_int(c, "reduction");
        if (reduction != REDUCTION_NONE)
                return OP(c, reduction == REDUCTION_MEAN ? "aten::mean" : "aten::sum", loss);
        return is_row ? OP(c, "aten::reshape", loss, compose_ints(c, NULL, 0)) : loss;
}

// What the kernels refuse. Without elements they are not reached.
static Status check_margin_dtypes(const char *kernel, const TensorMeta *input, const TensorMeta *target,
                                  const TensorMeta *weight)
{
        if (meta_numel(input) == 0)
                return STATUS_OK;
        if (input->dtype != DTYPE_F32 && input->dtype != DTYPE_F64)
                return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", kernel,
                            dtype_words(input->dtype));
        if (target->dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "expected scalar type Long but found %s",
                            dtype_words(target->dtype));
        if (weight != NULL && weight->dtype != input->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(input->dtype),
                            dtype_words(weight->dtype));
        return STATUS_OK;
}

// A row of the target lists classes up to the first -1. The loss sums
// max(0, 1 - (x[own] - x[other])) over its classes and all others.
static Value multilabel_margin(Compose *c, Value rows, Value target, int64_t n_classes)
{
        Value listed = OP(c, "aten::cumprod",
                          OP(c, "aten::_to_copy", OP(c, "aten::ge.Scalar", target, value_int(0)),
                             value_dtype(DTYPE_I64)),
                          value_int(1));
        Value fine = OP(c, "aten::logical_and", OP(c, "aten::ge.Scalar", target, value_int(-1)),
                        OP(c, "aten::lt.Scalar", target, value_int(n_classes)));
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", fine),
           compose_text(c, "argument #2 'target' is out of range"));
        Value places = OP(c, "aten::mul.Tensor", target, listed);
        Value counts =
                OP(c, "aten::scatter_add", OP(c, "aten::zeros_like", listed), value_int(1), places, listed);
        Value other = OP(c, "aten::eq.Scalar", counts, value_int(0));
        Value own = OP(c, "aten::unsqueeze", OP(c, "aten::gather", rows, value_int(1), places), value_int(2));
        Value gap = OP(c, "aten::sub.Tensor", OP(c, "aten::unsqueeze", rows, value_int(1)), own);
        gap = OP(c, "aten::add.Scalar", gap, value_int(1));
        Value pairs = OP(c, "aten::logical_and", OP(c, "aten::unsqueeze", listed, value_int(2)),
                         OP(c, "aten::unsqueeze", other, value_int(1)));
        // NaN is not above 0, so it counts as nothing.
        Value counted = OP(c, "aten::logical_and", pairs, OP(c, "aten::gt.Scalar", gap, value_int(0)));
        gap = OP(c, "aten::masked_fill.Scalar", gap, OP(c, "aten::logical_not", counted), value_int(0));
        Value sum = OP(c, "aten::sum.dim_IntList", gap, INTS(c, 1, 2));
        return OP(c, "aten::div.Scalar", sum, value_int(n_classes));
}

static Status multilabel_margin_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), target = NAMED(&c, "target");
        const TensorMeta *meta = compose_meta(&c, self), *labels = compose_meta(&c, target);
        const int rank = meta->rank;
        char text[160];
        if (rank > 2 || (rank > 0 && meta->size[rank - 1] == 0))
                return fail(STATUS_SHAPE,
                            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                            shape_text(rank, meta->size, text, sizeof(text)));
        if (meta_numel(labels) != meta_numel(meta) || labels->rank != rank ||
            (rank > 0 && labels->size[0] != meta->size[0]))
                return fail(STATUS_SHAPE, "inconsistent target size: %s for input of size: %ld",
                            shape_text(labels->rank, labels->size, text, sizeof(text)),
                            (long)meta_numel(meta));
        TRY(check_margin_dtypes("multilabel_margin_loss_forward_out_frame", meta, labels, NULL));
        const int64_t n_classes = rank == 0 ? 1 : meta->size[rank - 1], n_rows = rank < 2 ? 1 : meta->size[0];
        Value loss =
                multilabel_margin(&c, OP(&c, "aten::reshape", self, INTS(&c, n_rows, n_classes)),
                                  OP(&c, "aten::reshape", target, INTS(&c, n_rows, n_classes)), n_classes);
        return compose_end(&c, margin_reduced(&c, loss, rank < 2), out);
}

static Status multi_margin_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), target = NAMED(&c, "target");
        const TensorMeta *meta = compose_meta(&c, self);
        double p = trunc(compose_double(&c, "p"));
        if (p != 1 && p != 2)
                return fail(STATUS_VALUE, "only p == 1 and p == 2 supported");
        if (meta->rank > 2 || (meta->rank > 0 && meta->size[meta->rank - 1] == 0))
                return fail(STATUS_SHAPE,
                            "Expected non-empty vector or matrix with optional 0-dim batch size, "
                            "but got a tensor of %d dimensions",
                            meta->rank);
        bool is_row = meta->rank < 2;
        int64_t n_classes = meta->rank == 0 ? 1 : meta->size[meta->rank - 1];
        int64_t n_rows = is_row ? 1 : meta->size[0];
        int64_t n_targets = meta_numel(compose_meta(&c, target));
        if (n_targets != n_rows)
                return fail(STATUS_SHAPE, "inconsistent target size, expected %ld but got %ld", (long)n_rows,
                            (long)n_targets);
        const TensorMeta *weight = compose_has(&c, "weight") ? compose_meta(&c, NAMED(&c, "weight")) : NULL;
        TRY(check_margin_dtypes("multi_margin_loss_cpu_kernel", meta, compose_meta(&c, target), weight));
        Value rows = OP(&c, "aten::reshape", self, INTS(&c, n_rows, n_classes));
        Value column = OP(&c, "aten::reshape", target, INTS(&c, n_rows, 1));
        Value own = OP(&c, "aten::gather", rows, value_int(1), column);
        Value gap = OP(&c, "aten::add.Scalar", OP(&c, "aten::sub.Tensor", rows, own), NAMED(&c, "margin"));
        // NaN is not above 0, so it counts as nothing, nor does its weight.
        Value left_out = OP(&c, "aten::logical_not", OP(&c, "aten::gt.Scalar", gap, value_int(0)));
        if (p == 2)
                gap = OP(&c, "aten::mul.Tensor", gap, gap);
        if (weight != NULL)
                gap = OP(&c, "aten::mul.Tensor", gap,
                         OP(&c, "aten::reshape",
                            OP(&c, "aten::index_select", NAMED(&c, "weight"), value_int(0),
                               OP(&c, "aten::reshape", target, INTS(&c, n_rows))),
                            INTS(&c, n_rows, 1)));
        gap = OP(&c, "aten::masked_fill.Scalar", gap, left_out, value_int(0));
        gap = OP(&c, "aten::scatter.value", gap, value_int(1), column, value_int(0));
        Value loss = OP(&c, "aten::div.Scalar", OP(&c, "aten::sum.dim_IntList", gap, INTS(&c, 1)),
                        value_int(n_classes));
        return compose_end(&c, margin_reduced(&c, loss, is_row), out);
}

// ---- sums of half types ----
static Status class_sum_infer(OpCall *call)
{
        TensorMeta meta;
        meta_init(&meta, arg_meta(call, SELF)->dtype, 0, NULL);
        return out_fresh(call, 0, &meta);
}

static Status class_sum_op_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[SELF], *ignored = run->in_meta[CLASS_SUM_IGNORED];
        _cleanup_(dense_deinit) Dense losses = { 0 }, skipped = { 0 };
        float sum;
        TRY(dense_init(&losses, run->ctx, run->in[SELF], self, DTYPE_F32));
        TRY(dense_init(&skipped, run->ctx, run->in[CLASS_SUM_IGNORED], ignored, DTYPE_BOOL));
        TRY(class_sum_run(run->ctx, self->dtype, meta_numel(self), losses.data, skipped.data, &sum));
        element_from_f64(self->dtype, run->out[0], (double)sum);
        return STATUS_OK;
}

// ---- classes ----
// Losses by class: of each element, the weights that a mean divides by (without weights the mask of
// what counts), and the mask of ignored targets.
typedef struct ClassLoss {
        Value each, weights, ignored;
} ClassLoss;

static int class_dim(const TensorMeta *input)
{
        return input->rank == 1 ? 0 : 1;
}

// -input at the target's class, times the class's weight; 0 where the target is to be ignored.
static ClassLoss pick_classes(Compose *c, Value input, Value target, Value weight, Value ignored)
{
        ClassLoss loss = { value_none(), value_none(), ignored };
        int dim = class_dim(compose_meta(c, input));
        Value classes = OP(c, "aten::masked_fill.Scalar", target, ignored, value_int(0));
        Value at = OP(c, "aten::unsqueeze", classes, value_int(dim));
        loss.each = OP(
                c, "aten::neg",
                OP(c, "aten::squeeze.dim", OP(c, "aten::gather", input, value_int(dim), at), value_int(dim)));
        if (weight.kind == VALUE_NONE) {
                loss.weights = OP(c, "aten::logical_not", ignored);
        } else {
                loss.weights = OP(c, "aten::index_select", weight, value_int(0),
                                  OP(c, "aten::reshape", classes, INTS(c, -1)));
                const TensorMeta *shape = compose_meta(c, target);
                loss.weights =
                        OP(c, "aten::reshape", loss.weights, compose_ints(c, shape->size, shape->rank));
                loss.each = OP(c, "aten::mul.Tensor", loss.each, loss.weights);
                loss.weights = OP(c, "aten::masked_fill.Scalar", loss.weights, ignored, value_int(0));
        }
        loss.each = OP(c, "aten::masked_fill.Scalar", loss.each, ignored, value_int(0));
        return loss;
}

// In the order of nll_loss where that shows.
static Value class_sum(Compose *c, Value of, Value ignored)
{
        Dtype dtype = compose_meta(c, of)->dtype;
        return dtype == DTYPE_F16 || dtype == DTYPE_BF16 ? OP(c, "fxserve::class_sum", of, ignored)
                                                         : OP(c, "aten::sum", of);
}

static Value total_weight(Compose *c, ClassLoss loss)
{
        return compose_cast(c, class_sum(c, loss.weights, loss.ignored), compose_meta(c, loss.each)->dtype);
}

static Value class_loss_reduced(Compose *c, ClassLoss loss, int64_t reduction)
{
        if (reduction == REDUCTION_NONE)
                return loss.each;
        Value sum = class_sum(c, loss.each, loss.ignored);
        return reduction == REDUCTION_MEAN ? OP(c, "aten::div.Tensor", sum, total_weight(c, loss)) : sum;
}

static Status check_classes(const TensorMeta *input, const TensorMeta *target, const TensorMeta *weight)
{
        char a[128], b[128];
        int dim = class_dim(input);
        if (input->rank < 1)
                return fail(STATUS_SHAPE, "Expected 1 or more dimensions (got %d)", input->rank);
        if (!dtype_is_float(input->dtype))
                return fail(STATUS_DTYPE, "\"nll_loss_out_frame\" not implemented for '%s'",
                            dtype_words(input->dtype));
        const bool rows = input->rank <= 2; // PyTorch's kernel of images has no bytes
        if (target->dtype != DTYPE_I64 && (target->dtype != DTYPE_U8 || !rows))
                return fail(STATUS_DTYPE, "expected scalar type Long%s but found %s", rows ? " or Byte" : "",
                            dtype_words(target->dtype));
        if (weight != NULL && weight->dtype != input->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(input->dtype),
                            dtype_words(weight->dtype));
        bool fits = target->rank == input->rank - 1;
        for (int d = 0, k = 0; fits && d < input->rank; d++) {
                if (d != dim)
                        fits = input->size[d] == target->size[k++];
        }
        if (!fits)
                return fail(STATUS_SHAPE, "size mismatch (got input: %s , target: %s)",
                            shape_text(input->rank, input->size, a, sizeof(a)),
                            shape_text(target->rank, target->size, b, sizeof(b)));
        if (weight != NULL && (weight->rank != 1 || weight->size[0] != input->size[dim]))
                return fail(
                        STATUS_SHAPE,
                        "weight tensor should be defined either for all %ld classes or no classes but got "
                        "weight tensor of shape: %s",
                        (long)input->size[dim], shape_text(weight->rank, weight->size, a, sizeof(a)));
        return STATUS_OK;
}

// The losses of `input`, log-probabilities.
static ClassLoss class_loss(Compose *c, Value input)
{
        Value target = NAMED(c, "target"), weight = NAMED(c, "weight");
        if (!compose_failed(c))
                compose_check(c, check_classes(compose_meta(c, NAMED(c, "self")), compose_meta(c, target),
                                               weight.kind == VALUE_TENSOR ? compose_meta(c, weight) : NULL));
        if (compose_meta(c, target)->dtype == DTYPE_U8)
                target = compose_cast(c, target, DTYPE_I64);
        Value ignored = OP(c, "aten::eq.Scalar", target, NAMED(c, "ignore_index"));
        return pick_classes(c, input, target, weight, ignored);
}

static Status nll_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        ClassLoss loss = class_loss(&c, NAMED(&c, "self"));
        return compose_end(&c, class_loss_reduced(&c, loss, compose_int(&c, "reduction")), out);
}

// (loss, sum of weights), the second 0 where several losses are not reduced.
static Status nll_loss_forward_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t reduction = compose_int(&c, "reduction");
        ClassLoss loss = class_loss(&c, NAMED(&c, "self"));
        Value parts[] = { class_loss_reduced(&c, loss, reduction), value_none() };
        parts[1] = total_weight(&c, loss);
        if (reduction == REDUCTION_NONE && compose_meta(&c, NAMED(&c, "self"))->rank > 1)
                parts[1] = OP(&c, "aten::zeros_like", parts[1]);
        return compose_end(&c, compose_tuple(&c, parts, 2), out);
}

// `x` times the weights of the classes, where there are some.
static Value times_weights(Compose *c, Value x)
{
        const TensorMeta *meta = compose_meta(c, x);
        int64_t size[MAX_RANK];
        if (!compose_has(c, "weight"))
                return x;
        for (int d = 0; d < meta->rank; d++)
                size[d] = d == class_dim(meta) ? meta->size[d] : 1;
        return OP(c, "aten::mul.Tensor", x,
                  OP(c, "aten::reshape", NAMED(c, "weight"), compose_ints(c, size, meta->rank)));
}

// Targets that are probabilities.
static Value soft_cross_entropy(Compose *c, Value logs, Value target, double smoothing)
{
        const TensorMeta *meta = compose_meta(c, logs);
        int dim = class_dim(meta);
        int64_t n_classes = meta->size[dim], reduction = compose_int(c, "reduction");
        if (!dtype_is_float(compose_meta(c, target)->dtype))
                compose_check(c,
                              fail(STATUS_DTYPE,
                                   "Expected floating point type for target with class probabilities, got %s",
                                   dtype_words(compose_meta(c, target)->dtype)));
        if (compose_int(c, "ignore_index") >= 0)
                compose_check(c,
                              fail(STATUS_VALUE, "ignore_index is not supported for floating point target"));
        loss_check_reduction(c);
        if (smoothing > 0)
                target = OP(c, "aten::add.Scalar",
                            OP(c, "aten::mul.Scalar", target, value_float(1 - smoothing)),
                            value_float(smoothing / (double)n_classes));
        Value product = times_weights(c, OP(c, "aten::mul.Tensor", logs, target));
        if (reduction == REDUCTION_NONE)
                return OP(c, "aten::neg", OP(c, "aten::sum.dim_IntList", product, INTS(c, dim)));
        Value sum = OP(c, "aten::neg", OP(c, "aten::sum", product));
        double n_rows = n_classes == 0 ? 0 : (double)meta_numel(meta) / (double)n_classes;
        return reduction == REDUCTION_SUM ? sum : OP(c, "aten::div.Scalar", sum, value_float(n_rows));
}

// What smoothing adds: the loss of all classes alike. Without weights a mean divides by a count,
// which no half type rounds.
static Value uniform_loss(Compose *c, Value logs, ClassLoss hard)
{
        const Dtype dtype = compose_meta(c, logs)->dtype;
        const int64_t reduction = compose_int(c, "reduction");
        loss_check_reduction(c);
        Value each = OP(c, "aten::neg",
                        OP(c, "aten::sum.dim_IntList", times_weights(c, logs),
                           INTS(c, class_dim(compose_meta(c, logs)))));
        each = OP(c, "aten::masked_fill.Scalar", each, hard.ignored, value_int(0));
        if (reduction == REDUCTION_NONE)
                return each;
        Value sum = OP(c, "aten::sum", each), total = OP(c, "aten::sum", hard.weights);
        if (reduction == REDUCTION_MEAN)
                sum = OP(c, "aten::div.Tensor", compose_has(c, "weight") ? sum : compose_wide(c, sum), total);
        return compose_cast(c, sum, dtype);
}

static Status cross_entropy_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), target = NAMED(&c, "target");
        const TensorMeta *meta = compose_meta(&c, self);
        double smoothing = compose_double(&c, "label_smoothing");
        if (smoothing < 0 || smoothing > 1) // NaN passes, as in PyTorch, and smooths nothing
                return fail(STATUS_VALUE, "label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
        if (meta->rank < 1)
                return fail(STATUS_SHAPE, "Expected 1 or more dimensions (got %d)", meta->rank);
        Value logs = OP(&c, "aten::log_softmax.int", self, value_int(class_dim(meta)));
        if (meta_same_shape(meta, compose_meta(&c, target)))
                return compose_end(&c, soft_cross_entropy(&c, logs, target, smoothing), out);
        ClassLoss hard = class_loss(&c, logs);
        Value result = class_loss_reduced(&c, hard, compose_int(&c, "reduction"));
        if (smoothing > 0) {
                Value part = value_float(smoothing / (double)meta->size[class_dim(meta)]);
                result = OP(&c, "aten::mul.Scalar", result, value_float(1 - smoothing));
                result = OP(&c, "aten::add.Tensor", result,
                            OP(&c, "aten::mul.Scalar", uniform_loss(&c, logs, hard), part));
        }
        return compose_end(&c, result, out);
}

#define LOSS(schema, function) LOSS_OF(DTYPES_REAL, schema, function)
#define BY_CLASS               "Tensor? weight=None, int reduction=1, SymInt ignore_index=-100"
#define BOTH_SUMS                                                                                            \
        "Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)"
const OpDef losses_class_ops[] = {
        LOSS("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
             multilabel_margin_loss),
        LOSS("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
             "weight=None, int reduction=1) -> Tensor",
             multi_margin_loss),
        LOSS("nll_loss_nd(Tensor self, Tensor target, " BY_CLASS ") -> Tensor", nll_loss),
        LOSS("nll_loss(Tensor self, Tensor target, " BY_CLASS ") -> Tensor", nll_loss),
        LOSS("nll_loss2d(Tensor self, Tensor target, " BY_CLASS ") -> Tensor", nll_loss),
        LOSS("nll_loss_forward(Tensor self, Tensor target, " BOTH_SUMS, nll_loss_forward),
        LOSS("nll_loss2d_forward(Tensor self, Tensor target, " BOTH_SUMS, nll_loss_forward),
        LOSS("cross_entropy_loss(Tensor self, Tensor target, " BY_CLASS ", float label_smoothing=0.) -> "
             "Tensor",
             cross_entropy_loss),
        { "fxserve::class_sum(Tensor self, Tensor ignored) -> Tensor",
          DTYPE_BIT(DTYPE_F16) | DTYPE_BIT(DTYPE_BF16), OP_HIDDEN | OP_INTERNAL, .infer = class_sum_infer,
          .run = class_sum_op_run, .traits = TRAIT_FRESH },
};
OP_FILE(losses_class_ops);
