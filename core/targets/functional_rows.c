// SPDX-License-Identifier: Apache-2.0
// functional_rows.c: torch.nn.functional: activations, softmax, dropout, normalisation, losses.
// Signatures are Python's (argument order, `inplace`, `_stacklevel`); most rows only forward.
#include "core/base/number.h"
#include "core/targets/operators.h"
#include "core/ops/compose.h"
#include "core/targets/refuse.h"

#include <math.h>
#include <string.h>

// ---- softmax ----
// The dimension that softmax takes when none is given (with a warning, in PyTorch).
static int64_t implicit_softmax_dim(int rank)
{
        return rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
}

static Status softmax_with(Emitter *emitter, const OpCall *call, Value input, const char *base, Value *out)
{
        Value dim = call->args[PY_SOFTMAX_DIM], dtype = call->args[PY_SOFTMAX_DTYPE];
        if (dim.kind == VALUE_NONE)
                dim = value_int(implicit_softmax_dim(call->args[SELF].tensor->meta.rank));
        return dtype.kind == VALUE_NONE ? ATEN(emitter, base, out, input, dim)
                                        : ATEN(emitter, base, out, input, dim, dtype);
}

static Status softmax_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return softmax_with(emitter, call, call->args[SELF], "aten::softmax", out);
}

static Status log_softmax_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return softmax_with(emitter, call, call->args[SELF], "aten::log_softmax", out);
}

static Status softmin_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value negated = value_none();
        TRY(ATEN(emitter, "aten::neg", &negated, call->args[SELF]));
        return softmax_with(emitter, call, negated, "aten::softmax", out);
}

// ---- dropout ----
Status dropout_call(Emitter *emitter, const DropoutCall *call, Value *out)
{
        Compose c;
        double p = value_is_number(call->p) ? python_float(call->p) : NAN;
        if (!(p >= 0 && p <= 1))
                return fail(STATUS_VALUE, "dropout probability has to be between 0 and 1, but got %g", p);
        int rank = call->input.kind == VALUE_TENSOR ? call->input.tensor->meta.rank : 0;
        if (call->batched_rank == 3 && rank != 2 && rank != 3)
                return fail(STATUS_SHAPE, "dropout1d: Expected 2D or 3D input, but received a %dD input.",
                            rank);
        if (!call->training || p == 0 || call->input.kind != VALUE_TENSOR) {
                *out = value_ref(call->input);
                return STATUS_OK;
        }
        bool unbatched = call->batched_rank != 0 && rank != call->batched_rank;
        compose_begin_bare(&c, emitter, call->base);
        Value batch = unbatched ? OP(&c, "aten::unsqueeze", call->input, value_int(0)) : call->input;
        const Value args[] = { batch, call->p, value_bool(true) };
        Value result = value_none();
        compose_check(&c, call->inplace ? aten_inplace(emitter, call->base, args, 3, &result)
                                        : aten_call(emitter, call->base, args, 3, &result));
        result = compose_keep(&c, result);
        if (unbatched)
                result = call->inplace ? call->input : OP(&c, "aten::squeeze.dim", result, value_int(0));
        return compose_end(&c, result, out);
}

static Status dropout_with(Emitter *emitter, const OpCall *call, const char *base, int batched, Value *out)
{
        const DropoutCall dropout = { .base = base,
                                      .input = call->args[SELF],
                                      .p = call->args[PY_DROPOUT_P],
                                      .training = arg_bool(call, PY_DROPOUT_TRAINING, true),
                                      .inplace = arg_bool(call, PY_DROPOUT_INPLACE, false),
                                      .batched_rank = batched };
        return dropout_call(emitter, &dropout, out);
}

#define DROPOUT_EXPAND(name, base, batched)                                                                  \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                return dropout_with(emitter, call, base, batched, out);                                      \
        }
DROPOUT_EXPAND(dropout, "aten::dropout", 0)
DROPOUT_EXPAND(dropout1d, "aten::feature_dropout", 3)
DROPOUT_EXPAND(feature_dropout, "aten::feature_dropout", 0)
DROPOUT_EXPAND(dropout3d, "aten::feature_dropout", 5)
DROPOUT_EXPAND(alpha_dropout, "aten::alpha_dropout", 0)
DROPOUT_EXPAND(feature_alpha_dropout, "aten::feature_alpha_dropout", 0)

// ---- activations made of others ----
static Status softsign_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value size = value_none();
        _cleanup_(value_clear) Value below = value_none();
        TRY(ATEN(emitter, "aten::abs", &size, call->args[SELF]));
        TRY(operator_binary(emitter, PY_ADD, size, value_int(1), &below));
        return operator_binary(emitter, PY_TRUEDIV, call->args[SELF], below, out);
}

static Status tanhshrink_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value bent = value_none();
        TRY(ATEN(emitter, "aten::tanh", &bent, call->args[SELF]));
        return operator_binary(emitter, PY_SUB, call->args[SELF], bent, out);
}

static Status gelu_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return EMIT(emitter, "aten::gelu", out, call->args[SELF], call->args[PY_GELU_APPROXIMATE]);
}

static Status rrelu_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Value args[] = { call->args[SELF], call->args[PY_RRELU_LOWER], call->args[PY_RRELU_UPPER],
                               value_bool(arg_bool(call, PY_RRELU_TRAINING, false)) };
        return arg_bool(call, PY_RRELU_INPLACE, false) ? aten_inplace(emitter, "aten::rrelu", args, 4, out)
                                                       : aten_call(emitter, "aten::rrelu", args, 4, out);
}

// ---- normalisation ----
// Along `dim`, x / max(|x|_p, eps).
static Status normalize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value dims = value_none();
        _cleanup_(value_clear) Value norm = value_none();
        _cleanup_(value_clear) Value below = value_none();
        int64_t dim;
        TRY(refuse_out(call, PY_NORMALIZE_OUT));
        TRY(arg_int(call, PY_NORMALIZE_DIM, &dim));
        TRY(value_ints_new(VALUE_LIST, &dim, 1, &dims));
        TRY(EMIT(emitter, "aten::linalg_vector_norm", &norm, call->args[SELF], call->args[PY_NORMALIZE_P],
                 dims, value_bool(true)));
        TRY(ATEN(emitter, "aten::clamp_min", &below, norm, call->args[PY_NORMALIZE_EPS]));
        return operator_binary(emitter, PY_TRUEDIV, call->args[SELF], below, out);
}

// Refuses a statistic over one element.
static Status fail_counted(const char *what, int rank, const int64_t *size, bool as_size)
{
        char text[160];
        shape_text(rank, size, text, sizeof(text));
        return fail(STATUS_VALUE, "Expected more than 1 %s when training, got input size %s%s%s", what,
                    as_size ? "torch.Size(" : "", text, as_size ? ")" : "");
}

static bool is_one_place(const TensorMeta *meta)
{
        bool one = true;
        for (int d = 2; d < meta->rank; d++)
                one = one && meta->size[d] == 1;
        return one;
}

Status norm_check_batch(const TensorMeta *input, bool training, Value eps)
{
        double value = python_float(eps);
        if (training && input->rank > 0 && input->size[0] == 1 && is_one_place(input))
                return fail_counted("value per channel", input->rank, input->size, true);
        if (!(value < 0) && !(training && value == 0))
                return STATUS_OK;
        char text[NUMBER_TEXT_MAX + 1];
        text[number_print_python(value, text)] = '\0';
        return fail(STATUS_VALUE, "batch_norm eps must be %s, but got %s",
                    training ? "positive during training" : "non-negative", text);
}

Status norm_check_spatial(const TensorMeta *input)
{
        return is_one_place(input) ? fail_counted("spatial element", input->rank, input->size, true)
                                   : STATUS_OK;
}

static Status batch_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Value *args = call->args;
        TRY(norm_check_batch(arg_meta(call, SELF), arg_bool(call, PY_BATCH_NORM_TRAINING, false),
                             arg_number(call, PY_BATCH_NORM_EPS)));
        return ATEN(emitter, "aten::batch_norm", out, args[SELF], args[PY_BATCH_NORM_WEIGHT],
                    args[PY_BATCH_NORM_BIAS], args[PY_BATCH_NORM_MEAN], args[PY_BATCH_NORM_VARIANCE],
                    args[PY_BATCH_NORM_TRAINING], args[PY_BATCH_NORM_MOMENTUM], args[PY_BATCH_NORM_EPS],
                    value_bool(false));
}

static Status instance_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Value *args = call->args;
        if (arg_bool(call, PY_BATCH_NORM_TRAINING, true))
                TRY(norm_check_spatial(arg_meta(call, SELF)));
        return ATEN(emitter, "aten::instance_norm", out, args[SELF], args[PY_BATCH_NORM_WEIGHT],
                    args[PY_BATCH_NORM_BIAS], args[PY_BATCH_NORM_MEAN], args[PY_BATCH_NORM_VARIANCE],
                    args[PY_BATCH_NORM_TRAINING], args[PY_BATCH_NORM_MOMENTUM], args[PY_BATCH_NORM_EPS],
                    value_bool(false));
}

static Status group_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta = arg_meta(call, SELF);
        int64_t groups, channels;
        TRY(arg_int(call, PY_GROUP_NORM_NUM_GROUPS, &groups));
        if (meta->rank >= 2 && groups > 0 && mul_i64(meta->size[0], meta->size[1], &channels) &&
            channels / groups == 1 && is_one_place(meta)) {
                TensorMeta grouped = *meta;
                grouped.size[0] = 1;
                grouped.size[1] = groups;
                return fail_counted("value per channel", grouped.rank, grouped.size, false);
        }
        return ATEN(emitter, "aten::group_norm", out, call->args[SELF], call->args[PY_GROUP_NORM_NUM_GROUPS],
                    call->args[PY_GROUP_NORM_WEIGHT], call->args[PY_GROUP_NORM_BIAS],
                    call->args[PY_GROUP_NORM_EPS]);
}

// *inout = base(*inout, b, c); n counts the arguments after the first.
static Status apply(Emitter *emitter, Value *inout, const char *base, uint32_t n, Value b, Value c)
{
        const Value args[] = { *inout, b, c };
        Value next = value_none();
        TRY(aten_call(emitter, base, args, n + 1, &next));
        value_clear(inout);
        *inout = next;
        return STATUS_OK;
}

// x / (k + alpha * mean of the squares of `size` neighbouring channels) ** beta: an average over
// windows of channels, padded with zeros, of the input seen as [N, 1, C, everything else].
static Status local_response_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value input = call->args[SELF];
        const TensorMeta *meta = &input.tensor->meta;
        int64_t size;
        TRY(arg_int(call, PY_LOCAL_NORM_SIZE, &size));
        if (meta->rank < 3)
                return fail(STATUS_VALUE, "Expected 3D or higher dimensionality input (got %d dimensions)",
                            meta->rank);
        if (meta_numel(meta) == 0) {
                *out = value_ref(input);
                return STATUS_OK;
        }
        if (meta->rank > 3 && (DTYPES_HALFS >> meta->dtype & 1) != 0) // PyTorch takes avg_pool3d there
                return fail(STATUS_DTYPE, "\"avg_pool3d_out_frame\" not implemented for '%s'",
                            dtype_words(meta->dtype));
        if (size < 1)
                return fail(STATUS_VALUE, "local_response_norm(): size must be positive, got %ld",
                            (long)size);
        _cleanup_(value_clear) Value flat = value_none();
        _cleanup_(value_clear) Value pads = value_none();
        _cleanup_(value_clear) Value window = value_none();
        _cleanup_(value_clear) Value stride = value_none();
        _cleanup_(value_clear) Value shape = value_none();
        _cleanup_(value_clear) Value below = value_ref(input);
        TRY(value_ints_new(VALUE_LIST,
                           (const int64_t[]){ meta->size[0], 1, meta->size[1],
                                              meta_numel(meta) / (meta->size[0] * meta->size[1]) },
                           4, &flat));
        TRY(value_ints_new(VALUE_LIST, (const int64_t[]){ 0, 0, size / 2, (size - 1) / 2 }, 4, &pads));
        TRY(value_ints_new(VALUE_LIST, (const int64_t[]){ size, 1 }, 2, &window));
        TRY(value_ints_new(VALUE_LIST, (const int64_t[]){ 1, 1 }, 2, &stride));
        TRY(shape_value(input.tensor, &shape));
        TRY(apply(emitter, &below, "aten::mul", 1, input, value_none()));
        TRY(apply(emitter, &below, "aten::reshape", 1, flat, value_none()));
        TRY(apply(emitter, &below, "aten::constant_pad_nd", 2, pads, value_float(0)));
        TRY(apply(emitter, &below, "aten::avg_pool2d", 2, window, stride));
        TRY(apply(emitter, &below, "aten::reshape", 1, shape, value_none()));
        TRY(apply(emitter, &below, "aten::mul", 1, call->args[PY_LOCAL_NORM_ALPHA], value_none()));
        TRY(apply(emitter, &below, "aten::add", 1, call->args[PY_LOCAL_NORM_K], value_none()));
        TRY(apply(emitter, &below, "aten::pow", 1, call->args[PY_LOCAL_NORM_BETA], value_none()));
        return operator_binary(emitter, PY_TRUEDIV, input, below, out);
}

// ---- embedding ----
static Status embedding_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value weight = NAMED(&c, "weight"), input = NAMED(&c, "input");
        if (compose_has(&c, "max_norm"))
                OP(&c, "aten::embedding_renorm_", OP(&c, "aten::detach", weight), input,
                   NAMED(&c, "max_norm"), NAMED(&c, "norm_type"));
        Value padding = arg_is_none(call, PY_EMBEDDING_PADDING_IDX) ? value_int(-1)
                                                                    : call->args[PY_EMBEDDING_PADDING_IDX];
        return compose_end(&c, OP(&c, "aten::embedding", weight, input, padding), out);
}

// log_target can be given by name only.
// Gumbel's noise is -log of exponential numbers. `hard`: 1 where the softmax is largest.
static Status gumbel_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value logits = NAMED(&c, "logits"), dim = NAMED(&c, "dim");
        Value format = { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS };
        Value drawn = OP(&c, "aten::empty_like", logits, value_none(), value_none(), value_none(),
                         value_none(), format);
        Value noise = OP(&c, "aten::neg", OP(&c, "aten::log", OP(&c, "aten::exponential_", drawn)));
        Value soft = OP(
                &c, "aten::softmax.int",
                OP(&c, "aten::div.Scalar", OP(&c, "aten::add.Tensor", logits, noise), NAMED(&c, "tau")), dim);
        if (!compose_bool(&c, "hard"))
                return compose_end(&c, soft, out);
        Value largest = compose_item(&c, OP(&c, "aten::max.dim", soft, dim, value_bool(true)), 1);
        Value hard = OP(&c, "aten::scatter.value", OP(&c, "aten::zeros_like", logits), dim, largest,
                        value_float(1));
        return compose_end(&c, OP(&c, "aten::add.Tensor", OP(&c, "aten::sub.Tensor", hard, soft), soft), out);
}

static Status kl_div_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { INPUT, TARGET, SIZE_AVERAGE, REDUCE, REDUCTION, LOG_TARGET };
        Value reduction;
        if (!arg_is_none(call, SIZE_AVERAGE) || !arg_is_none(call, REDUCE))
                return fail(STATUS_UNSUPPORTED,
                            "kl_div: size_average and reduce are deprecated; use reduction");
        const char *text = call->args[REDUCTION].kind == VALUE_STR ? call->args[REDUCTION].str->text : "";
        if (strcmp(text, "batchmean") != 0) {
                TRY(python_reduction(call->args[REDUCTION], &reduction));
                return EMIT(emitter, "aten::kl_div", out, call->args[INPUT], call->args[TARGET], reduction,
                            call->args[LOG_TARGET]);
        }
        const TensorMeta *input = arg_meta(call, INPUT);
        _cleanup_(value_clear) Value sum = value_none();
        TRY(EMIT(emitter, "aten::kl_div", &sum, call->args[INPUT], call->args[TARGET], value_int(2),
                 call->args[LOG_TARGET]));
        return EMIT(emitter, "aten::div.Scalar", out, sum, value_int(input->rank == 0 ? 1 : input->size[0]));
}

static Status bce_with_logits_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { INPUT, TARGET, WEIGHT, SIZE_AVERAGE, REDUCE, REDUCTION, POS_WEIGHT };
        const TensorMeta *input = arg_meta(call, INPUT), *target = arg_meta(call, TARGET);
        char a[128], b[128];
        Value reduction;
        if (!arg_is_none(call, SIZE_AVERAGE) || !arg_is_none(call, REDUCE))
                return fail(STATUS_UNSUPPORTED, "binary_cross_entropy_with_logits: size_average and reduce "
                                                "are deprecated; use reduction");
        if (!meta_same_shape(input, target))
                return fail(STATUS_SHAPE,
                            "Target size (torch.Size(%s)) must be the same as input size "
                            "(torch.Size(%s))",
                            shape_text(target->rank, target->size, a, sizeof(a)),
                            shape_text(input->rank, input->size, b, sizeof(b)));
        TRY(python_reduction(call->args[REDUCTION], &reduction));
        return EMIT(emitter, "aten::binary_cross_entropy_with_logits", out, call->args[INPUT],
                    call->args[TARGET], call->args[WEIGHT], call->args[POS_WEIGHT], reduction);
}

#define INPLACE   "bool inplace=False) -> Tensor"
#define SOFTMAX   "(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor"
#define DROPOUT   "(Tensor input, float p=0.5, bool training=True, " INPLACE
#define ALPHA     "(Tensor input, float p=0.5, bool training=False, " INPLACE
#define LOSS      "Tensor input, Tensor target, "
#define OLD_STYLE "Any size_average=None, "
#define REDUCTION "Any reduce=None, str reduction=\"mean\""
static const PyRow rows[] = {
        { "F.relu", "py::relu(Tensor input, " INPLACE, .emits = "aten::relu a0 !a1" },
        { "F.relu6", "py::relu6(Tensor input, " INPLACE,
          .emits = "aten::relu6 a0 !a1 | aten::hardtanh a0 0 6 !a1" },
        { "F.sigmoid", "py::sigmoid(Tensor input) -> Tensor", .emits = "aten::sigmoid a0" },
        { "F.tanh", "py::tanh(Tensor input) -> Tensor", .emits = "aten::tanh a0" },
        { "F.silu", "py::silu(Tensor input, " INPLACE, .emits = "aten::silu a0 !a1" },
        { "F.mish", "py::mish(Tensor input, " INPLACE, .emits = "aten::mish a0 !a1" },
        { "F.hardswish", "py::hardswish(Tensor input, " INPLACE, .emits = "aten::hardswish a0 !a1" },
        { "F.hardsigmoid", "py::hardsigmoid(Tensor input, " INPLACE, .emits = "aten::hardsigmoid a0 !a1" },
        { "F.selu", "py::selu(Tensor input, " INPLACE, .emits = "aten::selu a0 !a1" },
        { "F.celu", "py::celu(Tensor input, float alpha=1.0, " INPLACE, .emits = "aten::celu a0 a1 !a2" },
        { "F.elu", "py::elu(Tensor input, float alpha=1.0, " INPLACE, .emits = "aten::elu a0 a1 !a2" },
        { "F.leaky_relu", "py::leaky_relu(Tensor input, float negative_slope=0.01, " INPLACE,
          .emits = "aten::leaky_relu a0 a1 !a2" },
        { "F.hardtanh", "py::hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, " INPLACE,
          .emits = "aten::hardtanh a0 a1 a2 !a3" },
        { "F.threshold F._threshold", "py::threshold(Tensor input, Scalar threshold, Scalar value, " INPLACE,
          .emits = "aten::threshold a0 a1 a2 !a3" },
        { "F.rrelu",
          "py::rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, bool "
          "training=False, " INPLACE,
          .expand = rrelu_expand, .needs = "aten::rrelu" },
        { "F.glu", "py::glu(Tensor input, int dim=-1) -> Tensor", .emits = "aten::glu a0 a1" },
        { "F.gelu", "py::gelu(Tensor input, *, str approximate='none') -> Tensor", .expand = gelu_expand,
          .needs = "aten::gelu" },
        { "F.logsigmoid", "py::logsigmoid(Tensor input) -> Tensor", .emits = "aten::log_sigmoid a0" },
        { "F.softsign", "py::softsign(Tensor input) -> Tensor", .expand = softsign_expand,
          .needs = "aten::abs aten::add aten::div" },
        { "F.tanhshrink", "py::tanhshrink(Tensor input) -> Tensor", .expand = tanhshrink_expand,
          .needs = "aten::tanh aten::sub" },
        { "F.softmax", "py::softmax" SOFTMAX, .expand = softmax_expand, .needs = "aten::softmax",
          .traits = TRAIT_FRESH },
        { "F.log_softmax", "py::log_softmax" SOFTMAX, .expand = log_softmax_expand,
          .needs = "aten::log_softmax", .traits = TRAIT_FRESH },
        { "F.softmin", "py::softmin" SOFTMAX, .expand = softmin_expand, .needs = "aten::softmax aten::neg" },
        { "F.dropout", "py::dropout" DROPOUT, .expand = dropout_expand, .needs = "aten::dropout" },
        { "F.dropout1d", "py::dropout1d" DROPOUT, .expand = dropout1d_expand,
          .needs = "aten::feature_dropout" },
        { "F.dropout2d", "py::feature_dropout" DROPOUT, .expand = feature_dropout_expand,
          .needs = "aten::feature_dropout" },
        { "F.dropout3d", "py::dropout3d" DROPOUT, .expand = dropout3d_expand,
          .needs = "aten::feature_dropout" },
        { "F.alpha_dropout", "py::alpha_dropout" ALPHA, .expand = alpha_dropout_expand,
          .needs = "aten::alpha_dropout" },
        { "F.feature_alpha_dropout", "py::feature_alpha_dropout" ALPHA,
          .expand = feature_alpha_dropout_expand, .needs = "aten::feature_alpha_dropout" },
        { "F.batch_norm",
          "py::batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
          "Tensor? bias=None, bool "
          "training=False, "
          "float momentum=0.1, float eps=1e-05) -> Tensor",
          .expand = batch_norm_expand, .needs = "aten::batch_norm",
          .traits = TRAIT_FRESH | TRAIT_STATISTICS },
        { "F.instance_norm",
          "py::instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
          "weight=None, Tensor? bias=None, "
          "bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
          .expand = instance_norm_expand, .needs = "aten::instance_norm",
          .traits = TRAIT_FRESH | TRAIT_STATISTICS },
        { "F.layer_norm",
          "py::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
          "float eps=1e-05) -> Tensor",
          .emits = "aten::layer_norm a0 a1 a2 a3 a4", .traits = TRAIT_FRESH },
        { "F.group_norm",
          "py::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
          "eps=1e-05) -> Tensor",
          .expand = group_norm_expand, .needs = "aten::group_norm", .traits = TRAIT_FRESH },
        { "F.rms_norm",
          "py::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
          "Tensor",
          .emits = "aten::rms_norm a0 a1 a2 a3" },
        { "F.normalize",
          "py::normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12, Any out=None) -> Tensor",
          .expand = normalize_expand, .needs = "aten::linalg_vector_norm aten::clamp_min aten::div" },
        { "F.local_response_norm",
          "py::local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) "
          "-> Tensor",
          .expand = local_response_norm_expand,
          .needs = "aten::constant_pad_nd aten::avg_pool2d aten::reshape aten::mul aten::pow aten::div" },
        { "F.embedding",
          "py::embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float "
          "norm_type=2.0, bool "
          "scale_grad_by_freq=False, "
          "bool sparse=False) -> Tensor",
          .expand = embedding_expand, .needs = "aten::embedding aten::embedding_renorm",
          .traits = TRAIT_FRESH },
        { "F.soft_margin_loss", "py::soft_margin_loss(" LOSS OLD_STYLE REDUCTION ") -> Tensor",
          .emits = "aten::soft_margin_loss a0 a1 ra4 ~a2 ~a3" },
        { "F.kl_div", "py::kl_div(" LOSS OLD_STYLE REDUCTION ", bool log_target=False) -> Tensor",
          .expand = kl_div_expand, .needs = "aten::kl_div aten::div" },
        { "F.binary_cross_entropy",
          "py::binary_cross_entropy(" LOSS "Tensor? weight=None, " OLD_STYLE REDUCTION ") -> Tensor",
          .emits = "aten::binary_cross_entropy a0 a1 a2 ra5 ~a3 ~a4" },
        { "F.binary_cross_entropy_with_logits",
          "py::binary_cross_entropy_with_logits(" LOSS "Tensor? weight=None, " OLD_STYLE REDUCTION
          ", Tensor? pos_weight=None) -> Tensor",
          .expand = bce_with_logits_expand, .needs = "aten::binary_cross_entropy_with_logits" },
        { "F.nll_loss",
          "py::nll_loss(" LOSS "Tensor? weight=None, " OLD_STYLE "int ignore_index=-100, " REDUCTION
          ") -> Tensor",
          .emits = "aten::nll_loss_nd a0 a1 a2 ra6 a4 ~a3 ~a5" },
        { "F.cross_entropy",
          "py::cross_entropy(" LOSS "Tensor? weight=None, " OLD_STYLE "int ignore_index=-100, " REDUCTION
          ", float label_smoothing=0.0) -> Tensor",
          .emits = "aten::cross_entropy_loss a0 a1 a2 ra6 a4 a7 ~a3 ~a5" },
        { "F.hinge_embedding_loss",
          "py::hinge_embedding_loss(" LOSS "float margin=1.0, " OLD_STYLE REDUCTION ") -> Tensor",
          .emits = "aten::hinge_embedding_loss a0 a1 a2 ra5 ~a3 ~a4" },
        { "F.margin_ranking_loss",
          "py::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " OLD_STYLE
                  REDUCTION ") -> Tensor",
          .emits = "aten::margin_ranking_loss a0 a1 a2 a3 ra6 ~a4 ~a5" },
        { "F.cosine_embedding_loss",
          "py::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " OLD_STYLE
                  REDUCTION ") -> Tensor",
          .emits = "aten::cosine_embedding_loss a0 a1 a2 a3 ra6 ~a4 ~a5" },
        { "F.triplet_margin_loss",
          "py::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float "
          "p=2, float eps=1e-06, bool swap=False, " OLD_STYLE REDUCTION ") -> Tensor",
          .emits = "aten::triplet_margin_loss a0 a1 a2 a3 a4 a5 a6 ra9 ~a7 ~a8" },
        { "F.multi_margin_loss",
          "py::multi_margin_loss(" LOSS "int p=1, float margin=1.0, Tensor? weight=None, " OLD_STYLE REDUCTION
          ") -> Tensor",
          .emits = "aten::multi_margin_loss a0 a1 a2 a3 a4 ra7 ~a5 ~a6" },
        { "F.gumbel_softmax",
          "py::gumbel_softmax(Tensor logits, Scalar tau=1, bool hard=False, float eps=1e-10, int dim=-1) -> "
          "Tensor",
          .expand = gumbel_expand, .needs = "aten::exponential_ aten::scatter.value" },
        { "F.ctc_loss",
          "py::ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int "
          "blank=0, "
          "str reduction=\"mean\", bool zero_infinity=False) -> Tensor",
          .emits = "aten::ctc_loss a0 a1 a2 a3 a4 ra5 a6" },
        { "F.poisson_nll_loss",
          "py::poisson_nll_loss(" LOSS "bool log_input=True, bool full=False, Any size_average=None, float "
          "eps=1e-08, Any reduce=None, str reduction=\"mean\") -> Tensor",
          .emits = "aten::poisson_nll_loss a0 a1 a2 a3 a5 ra7 ~a4 ~a6" },
};
const PyTable py_functional_rows = PY_TABLE(rows);
