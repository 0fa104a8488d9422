// SPDX-License-Identifier: Apache-2.0
// module_layers.c: torch.nn classes with weights: linear, convolution, normalisation, embedding;
// and dropout.
#include "core/targets/operators.h"
#include "core/targets/shape_rows.h"
#include "core/targets/module_table.h"

#include <stdio.h>
#include <string.h>

// Positions in `state`: all classes here begin with the weight; norms have all of them.
enum { STATE_WEIGHT, STATE_BIAS, STATE_RUNNING_MEAN, STATE_RUNNING_VAR, STATE_BATCHES };
enum { OUTPUT_SIZE = 1 }; // of forward, in transposed convolutions

static bool config_bool(Value value)
{
        return value.kind == VALUE_BOOL && value.b;
}

// ---- convolution ----
static int64_t item_or_self(Value value, int index)
{
        if (value_is_sequence(value))
                value = (uint32_t)index < value.seq->n ? value.seq->items[index] : value_int(0);
        return python_is_integral(value) ? python_int(value) : 0;
}

// The padding argument of F.pad for a padding_mode other than zeros: innermost dimension first,
// both sides; "same" puts an odd one at the end.
static Status mode_padding(const Value *config, int n_spatial, Value *out)
{
        int64_t pads[6] = { 0 };
        Value padding = config[NN_CONV_PADDING];
        for (int d = 0; d < n_spatial; d++) {
                int64_t *pair = &pads[2 * (n_spatial - 1 - d)];
                if (padding.kind != VALUE_STR) {
                        pair[0] = pair[1] = item_or_self(padding, d);
                } else if (strcmp(padding.str->text, "same") == 0) {
                        int64_t total = item_or_self(config[NN_CONV_DILATION], d) *
                                        (item_or_self(config[NN_CONV_KERNEL], d) - 1);
                        pair[0] = total / 2;
                        pair[1] = total - total / 2;
                }
        }
        return value_ints_new(VALUE_LIST, pads, (uint32_t)(2 * n_spatial), out);
}

static Status convolve(Emitter *emitter, const ModuleCall *call, int n_spatial, Value *out)
{
        const Value *config = call->config;
        char base[32];
        snprintf(base, sizeof(base), "aten::conv%dd", n_spatial);
        const char *mode = config[NN_CONV_PADDING_MODE].str->text;
        if (strcmp(mode, "zeros") == 0)
                return ATEN(emitter, base, out, call->args[SELF], call->state[STATE_WEIGHT],
                            call->state[STATE_BIAS], config[NN_CONV_STRIDE], config[NN_CONV_PADDING],
                            config[NN_CONV_DILATION], config[NN_CONV_GROUPS]);
        _cleanup_(value_clear) Value pads = value_none();
        _cleanup_(value_clear) Value padded = value_none();
        TRY(mode_padding(config, n_spatial, &pads));
        TRY(py_pad(emitter, call->args[SELF], pads, mode, value_none(), &padded));
        return ATEN(emitter, base, out, padded, call->state[STATE_WEIGHT], call->state[STATE_BIAS],
                    config[NN_CONV_STRIDE], value_int(0), config[NN_CONV_DILATION], config[NN_CONV_GROUPS]);
}

static Status conv1d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve(emitter, call, 1, out);
}

static Status conv2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve(emitter, call, 2, out);
}

static Status conv3d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve(emitter, call, 3, out);
}

// The output padding that gives the output_size of the call.
static Status output_padding(const ModuleCall *call, int n_spatial, Value *out)
{
        Value wanted = call->args[OUTPUT_SIZE];
        if (wanted.kind == VALUE_NONE) {
                *out = value_ref(call->config[NN_UP_OUTPUT_PADDING]);
                return STATUS_OK;
        }
        const TensorMeta *meta = &call->args[SELF].tensor->meta;
        int64_t extra[3];
        int skip = (int)wanted.seq->n - n_spatial;
        if (skip != 0 && skip != meta->rank - n_spatial)
                return fail(
                        STATUS_VALUE,
                        "ConvTranspose%dd: for %dD input, output_size must have %d or %d elements (got %u)",
                        n_spatial, meta->rank, n_spatial, meta->rank, wanted.seq->n);
        for (int d = 0; d < n_spatial; d++) {
                int64_t in = meta->size[meta->rank - n_spatial + d], size = item_or_self(wanted, skip + d),
                        stride = item_or_self(call->config[NN_UP_STRIDE], d);
                int64_t least = (in - 1) * stride - 2 * item_or_self(call->config[NN_UP_PADDING], d) +
                                item_or_self(call->config[NN_UP_DILATION], d) *
                                        (item_or_self(call->config[NN_UP_KERNEL], d) - 1) +
                                1;
                if (size < least || size > least + stride - 1)
                        return fail(STATUS_VALUE,
                                    "requested an output size of %ld at dimension %d, but valid sizes range "
                                    "from %ld to %ld",
                                    (long)size, d, (long)least, (long)(least + stride - 1));
                extra[d] = size - least;
        }
        return value_ints_new(VALUE_LIST, extra, (uint32_t)n_spatial, out);
}

static Status convolve_transposed(Emitter *emitter, const ModuleCall *call, int n_spatial, Value *out)
{
        const Value *config = call->config;
        if (strcmp(config[NN_UP_PADDING_MODE].str->text, "zeros") != 0)
                return fail(STATUS_VALUE, "Only `zeros` padding mode is supported for ConvTranspose%dd",
                            n_spatial);
        _cleanup_(value_clear) Value extra = value_none();
        TRY(output_padding(call, n_spatial, &extra));
        char base[32];
        snprintf(base, sizeof(base), "aten::conv_transpose%dd", n_spatial);
        return ATEN(emitter, base, out, call->args[SELF], call->state[STATE_WEIGHT], call->state[STATE_BIAS],
                    config[NN_UP_STRIDE], config[NN_UP_PADDING], extra, config[NN_UP_GROUPS],
                    config[NN_UP_DILATION]);
}

static Status conv_transpose1d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve_transposed(emitter, call, 1, out);
}

static Status conv_transpose2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve_transposed(emitter, call, 2, out);
}

static Status conv_transpose3d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return convolve_transposed(emitter, call, 3, out);
}

// ---- normalisation ----
static Status check_rank(const ModuleCall *call, int low, int high)
{
        int rank = call->args[SELF].kind == VALUE_TENSOR ? call->args[SELF].tensor->meta.rank : -1;
        if (rank >= low && rank <= high)
                return STATUS_OK;
        if (low == high)
                return fail(STATUS_SHAPE, "expected %dD input (got %dD input)", low, rank);
        return fail(STATUS_SHAPE, "expected %dD or %dD input (got %dD input)", low, high, rank);
}

// Counts the batch, and gives the weight of the new statistics: momentum, or 1 / count where
// momentum is None.
static Status count_batch(Emitter *emitter, const ModuleCall *call, Value *out_momentum)
{
        _cleanup_(value_clear) Value counted = value_none();
        Value momentum = call->config[NN_NORM_MOMENTUM];
        if (call->state[STATE_BATCHES].kind == VALUE_TENSOR)
                TRY(operator_inplace(emitter, PY_ADD, call->state[STATE_BATCHES], value_int(1), &counted));
        *out_momentum = momentum.kind == VALUE_NONE ? value_float(0) : momentum;
        if (momentum.kind != VALUE_NONE || counted.kind != VALUE_TENSOR)
                return STATUS_OK;
        _cleanup_(value_clear) Value number = value_none();
        TRY(value_as_number(emitter, counted, &number));
        *out_momentum = value_float(1 / python_float(number));
        return STATUS_OK;
}

static Status batch_norm_run(Emitter *emitter, const ModuleCall *call, int low, int high, Value *out)
{
        TRY(check_rank(call, low, high));
        const Value *state = call->state;
        bool training = call->module->training, tracks = state[STATE_RUNNING_MEAN].kind == VALUE_TENSOR &&
                                                         state[STATE_RUNNING_VAR].kind == VALUE_TENSOR;
        Value momentum = call->config[NN_NORM_MOMENTUM].kind == VALUE_NONE ? value_float(0)
                                                                           : call->config[NN_NORM_MOMENTUM];
        if (training && config_bool(call->config[NN_NORM_TRACK]))
                TRY(count_batch(emitter, call, &momentum));
        TRY(norm_check_batch(&call->args[SELF].tensor->meta, training || !tracks, call->config[NN_NORM_EPS]));
        return ATEN(emitter, "aten::batch_norm", out, call->args[SELF], state[STATE_WEIGHT],
                    state[STATE_BIAS], state[STATE_RUNNING_MEAN], state[STATE_RUNNING_VAR],
                    value_bool(training || !tracks), momentum, call->config[NN_NORM_EPS], value_bool(false));
}

static Status batch_norm1d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return batch_norm_run(emitter, call, 2, 3, out);
}

static Status batch_norm2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return batch_norm_run(emitter, call, 4, 4, out);
}

static Status batch_norm3d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return batch_norm_run(emitter, call, 5, 5, out);
}

static Status instance_norm_run(Emitter *emitter, const ModuleCall *call, int n_spatial, Value *out)
{
        TRY(check_rank(call, n_spatial + 1, n_spatial + 2));
        const Value *state = call->state;
        Value input = call->args[SELF];
        bool batched = input.tensor->meta.rank == n_spatial + 2;
        bool use_stats = call->module->training || !config_bool(call->config[NN_NORM_TRACK]);
        Value momentum = call->config[NN_NORM_MOMENTUM].kind == VALUE_NONE ? value_float(0)
                                                                           : call->config[NN_NORM_MOMENTUM];
        _cleanup_(value_clear) Value one = value_none();
        _cleanup_(value_clear) Value normed = value_none();
        if (!batched)
                TRY(EMIT(emitter, "aten::unsqueeze", &one, input, value_int(0)));
        if (use_stats)
                TRY(norm_check_spatial(batched ? &input.tensor->meta : &one.tensor->meta));
        if (batched)
                return ATEN(emitter, "aten::instance_norm", out, input, state[STATE_WEIGHT],
                            state[STATE_BIAS], state[STATE_RUNNING_MEAN], state[STATE_RUNNING_VAR],
                            value_bool(use_stats), momentum, call->config[NN_NORM_EPS], value_bool(false));
        TRY(ATEN(emitter, "aten::instance_norm", &normed, one, state[STATE_WEIGHT], state[STATE_BIAS],
                 state[STATE_RUNNING_MEAN], state[STATE_RUNNING_VAR], value_bool(use_stats), momentum,
                 call->config[NN_NORM_EPS], value_bool(false)));
        return EMIT(emitter, "aten::squeeze.dim", out, normed, value_int(0));
}

static Status instance_norm1d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return instance_norm_run(emitter, call, 1, out);
}

static Status instance_norm2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return instance_norm_run(emitter, call, 2, out);
}

static Status instance_norm3d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return instance_norm_run(emitter, call, 3, out);
}

// LayerNorm(8) normalises shape [8].
static Status shape_config(Value shape, Value *out)
{
        if (!python_is_integral(shape)) {
                *out = value_ref(shape);
                return STATUS_OK;
        }
        int64_t one = python_int(shape);
        return value_ints_new(VALUE_LIST, &one, 1, out);
}

static Status layer_norm_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        _cleanup_(value_clear) Value shape = value_none();
        TRY(shape_config(call->config[NN_LAYER_NORM_SHAPE], &shape));
        return ATEN(emitter, "aten::layer_norm", out, call->args[SELF], shape, call->state[STATE_WEIGHT],
                    call->state[STATE_BIAS], call->config[NN_LAYER_NORM_EPS]);
}

static Status rms_norm_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        _cleanup_(value_clear) Value shape = value_none();
        TRY(shape_config(call->config[NN_LAYER_NORM_SHAPE], &shape));
        return ATEN(emitter, "aten::rms_norm", out, call->args[SELF], shape, call->state[STATE_WEIGHT],
                    call->config[NN_LAYER_NORM_EPS]);
}

// ---- the rest ----
static Status identity_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        (void)emitter;
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status dropout_with(Emitter *emitter, const ModuleCall *call, const char *base, int batched,
                           Value *out)
{
        const DropoutCall dropout = { .base = base,
                                      .input = call->args[SELF],
                                      .p = call->config[NN_DROPOUT_P],
                                      .training = call->module->training,
                                      .inplace = call->config[NN_DROPOUT_INPLACE].b,
                                      .batched_rank = batched };
        return dropout_call(emitter, &dropout, out);
}

#define DROPOUT_RUN(name, base, batched)                                                                     \
        static Status name##_run(Emitter *emitter, const ModuleCall *call, Value *out)                       \
        {                                                                                                    \
                return dropout_with(emitter, call, base, batched, out);                                      \
        }
DROPOUT_RUN(dropout, "aten::dropout", 0)
DROPOUT_RUN(dropout1d, "aten::feature_dropout", 3)
DROPOUT_RUN(feature_dropout, "aten::feature_dropout", 0)
DROPOUT_RUN(dropout3d, "aten::feature_dropout", 5)
DROPOUT_RUN(alpha_dropout, "aten::alpha_dropout", 0)
DROPOUT_RUN(feature_alpha_dropout, "aten::feature_alpha_dropout", 0)

#define INPUT "nn::forward(Tensor input) -> Tensor"
#define CONV(n)                                                                                              \
        "(int in_channels, int out_channels, int[" n "] kernel_size, int[" n                                 \
        "] stride=1, Any padding=0, int[" n                                                                  \
        "] dilation=1, int groups=1, bool bias=True, str padding_mode='zeros') -> ()"
#define CONV_TRANSPOSE(n)                                                                                    \
        "(int in_channels, int out_channels, int[" n "] kernel_size, int[" n "] stride=1, int[" n            \
        "] padding=0, int[" n "] output_padding=0, int groups=1, bool bias=True, int[" n                     \
        "] dilation=1, str padding_mode='zeros') -> ()"
#define UPSIZED "nn::forward(Tensor input, int[]? output_size=None) -> Tensor"
#define BATCH_NORM                                                                                           \
        "(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True, bool "                   \
        "track_running_stats=True, bool bias=True) -> ()"
#define BATCH_NORM_STATE                                                                                     \
        "weight?affine bias?affine,bias running_mean?track_running_stats running_var?track_running_stats "   \
        "num_batches_tracked?track_running_stats?"
#define INSTANCE_NORM                                                                                        \
        "(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=False, bool "                  \
        "track_running_stats=False, bool bias=True) -> "                                                     \
        "()"
#define PER_FEATURE "num_features num_features num_features num_features"
#define DROPOUT     "(float p=0.5, bool inplace=False) -> ()"
static const ModuleClass rows[] = {
        { "torch.nn.Linear", "nn::Linear(int in_features, int out_features, bool bias=True) -> ()",
          "weight bias?bias", INPUT, .emits = "aten::linear a0 s0 s1",
          .shapes = "out_features,in_features out_features" },
        { "torch.nn.Bilinear",
          "nn::Bilinear(int in1_features, int in2_features, int out_features, bool bias=True) -> ()",
          "weight bias?bias", "nn::forward(Tensor input1, Tensor input2) -> Tensor",
          .emits = "aten::bilinear a0 a1 s0 s1" },
        { "torch.nn.Identity", "nn::Identity() -> ()", "", "nn::forward(Any input) -> Any",
          .run = identity_run },
        { "torch.ao.quantization.stubs.QuantStub", "nn::QuantStub() -> ()", "",
          "nn::forward(Tensor x) -> Tensor", .run = identity_run },
        { "torch.ao.quantization.stubs.DeQuantStub", "nn::DeQuantStub() -> ()", "",
          "nn::forward(Tensor x) -> Tensor", .run = identity_run },
        { "torch.nn.Conv1d", "nn::Conv1d" CONV("1"), "weight bias?bias", INPUT, .run = conv1d_run,
          .needs = "aten::conv1d", .shapes = "out_channels,in_channels/groups,kernel_size out_channels" },
        { "torch.nn.Conv2d", "nn::Conv2d" CONV("2"), "weight bias?bias", INPUT, .run = conv2d_run,
          .needs = "aten::conv2d", .shapes = "out_channels,in_channels/groups,kernel_size out_channels" },
        { "torch.nn.Conv3d", "nn::Conv3d" CONV("3"), "weight bias?bias", INPUT, .run = conv3d_run,
          .needs = "aten::conv3d", .shapes = "out_channels,in_channels/groups,kernel_size out_channels" },
        { "torch.nn.ConvTranspose1d", "nn::ConvTranspose1d" CONV_TRANSPOSE("1"), "weight bias?bias", UPSIZED,
          .run = conv_transpose1d_run, .needs = "aten::conv_transpose1d",
          .shapes = "in_channels,out_channels/groups,kernel_size out_channels" },
        { "torch.nn.ConvTranspose2d", "nn::ConvTranspose2d" CONV_TRANSPOSE("2"), "weight bias?bias", UPSIZED,
          .run = conv_transpose2d_run, .needs = "aten::conv_transpose2d",
          .shapes = "in_channels,out_channels/groups,kernel_size out_channels" },
        { "torch.nn.ConvTranspose3d", "nn::ConvTranspose3d" CONV_TRANSPOSE("3"), "weight bias?bias", UPSIZED,
          .run = conv_transpose3d_run, .needs = "aten::conv_transpose3d",
          .shapes = "in_channels,out_channels/groups,kernel_size out_channels" },
        { "torch.nn.BatchNorm1d", "nn::BatchNorm1d" BATCH_NORM, BATCH_NORM_STATE, INPUT,
          .run = batch_norm1d_run, .needs = "aten::batch_norm aten::add", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.BatchNorm2d", "nn::BatchNorm2d" BATCH_NORM, BATCH_NORM_STATE, INPUT,
          .run = batch_norm2d_run, .needs = "aten::batch_norm aten::add", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.BatchNorm3d", "nn::BatchNorm3d" BATCH_NORM, BATCH_NORM_STATE, INPUT,
          .run = batch_norm3d_run, .needs = "aten::batch_norm aten::add", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.InstanceNorm1d", "nn::InstanceNorm1d" INSTANCE_NORM, BATCH_NORM_STATE, INPUT,
          .run = instance_norm1d_run, .needs = "aten::instance_norm", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.InstanceNorm2d", "nn::InstanceNorm2d" INSTANCE_NORM, BATCH_NORM_STATE, INPUT,
          .run = instance_norm2d_run, .needs = "aten::instance_norm", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.InstanceNorm3d", "nn::InstanceNorm3d" INSTANCE_NORM, BATCH_NORM_STATE, INPUT,
          .run = instance_norm3d_run, .needs = "aten::instance_norm", .shapes = PER_FEATURE,
          .updates_state = true },
        { "torch.nn.LayerNorm",
          "nn::LayerNorm(Any normalized_shape, float eps=1e-05, bool elementwise_affine=True, bool "
          "bias=True) -> ()",
          "weight?elementwise_affine bias?elementwise_affine,bias", INPUT, .run = layer_norm_run,
          .needs = "aten::layer_norm", .shapes = "normalized_shape normalized_shape" },
        { "torch.nn.RMSNorm",
          "nn::RMSNorm(Any normalized_shape, float? eps=None, bool elementwise_affine=True) -> ()",
          "weight?elementwise_affine", "nn::forward(Tensor x) -> Tensor", .run = rms_norm_run,
          .needs = "aten::rms_norm", .shapes = "normalized_shape" },
        { "torch.nn.GroupNorm",
          "nn::GroupNorm(int num_groups, int num_channels, float eps=1e-05, bool affine=True, bool "
          "bias=True) -> ()",
          "weight?affine bias?affine,bias", INPUT, .emits = "F.group_norm a0 c0 s0 s1 c2",
          .shapes = "num_channels num_channels" },
        { "torch.nn.LocalResponseNorm",
          "nn::LocalResponseNorm(int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> ()", "",
          INPUT, .emits = "F.local_response_norm a0 c0 c1 c2 c3" },
        { "torch.nn.Embedding",
          "nn::Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, float? max_norm=None, "
          "float norm_type=2.0, bool "
          "scale_grad_by_freq=False, bool sparse=False) -> ()",
          "weight", INPUT, .emits = "F.embedding a0 s0 c2 c3 c4 c5 c6",
          .shapes = "num_embeddings,embedding_dim" },
        { "torch.nn.EmbeddingBag",
          "nn::EmbeddingBag(int num_embeddings, int embedding_dim, float? max_norm=None, float "
          "norm_type=2.0, "
          "bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, bool "
          "include_last_offset=False, "
          "int? padding_idx=None) -> ()",
          "weight",
          "nn::forward(Tensor input, Tensor? offsets=None, Tensor? per_sample_weights=None) -> Tensor",
          .emits = "F.embedding_bag a0 s0 a1 c2 c3 c4 c5 c6 a2 c7 c8",
          .shapes = "num_embeddings,embedding_dim" },
        { "torch.nn.Dropout", "nn::Dropout" DROPOUT, "", INPUT, .run = dropout_run,
          .needs = "aten::dropout" },
        { "torch.nn.Dropout1d", "nn::Dropout1d" DROPOUT, "", INPUT, .run = dropout1d_run,
          .needs = "aten::feature_dropout" },
        { "torch.nn.Dropout2d", "nn::Dropout2d" DROPOUT, "", INPUT, .run = feature_dropout_run,
          .needs = "aten::feature_dropout" },
        { "torch.nn.Dropout3d", "nn::Dropout3d" DROPOUT, "", INPUT, .run = dropout3d_run,
          .needs = "aten::feature_dropout" },
        { "torch.nn.AlphaDropout", "nn::AlphaDropout" DROPOUT, "", INPUT, .run = alpha_dropout_run,
          .needs = "aten::alpha_dropout" },
        { "torch.nn.FeatureAlphaDropout", "nn::FeatureAlphaDropout" DROPOUT, "", INPUT,
          .run = feature_alpha_dropout_run, .needs = "aten::feature_alpha_dropout" },
};
const ModuleTable layer_classes = MODULE_TABLE(rows);
