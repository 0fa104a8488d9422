// SPDX-License-Identifier: Apache-2.0
// quantized_conv.c: fxserve::quantized_convolution, a 2-d convolution between images of 8-bit
// levels, as quantized_linear.c's row is a linear layer:
//
//     y[c] = scale * weight_scale[c] * sum (input - zero_point) * weight[c] + bias[c]
//     y = clamp(y + residual, low, high)
//     with dtype: clamp(round(y * out_inverse) + out_zero, quant_min, quant_max) as dtype
//
// Padding is worth zero; a residual of levels is worth (r - residual_zero) * residual_scale. The
// sum is exact.
#include <math.h>
#include <string.h>
#include "core/kernels/conv/levels_depthwise.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/levels_out.h"

// Tensors of a run.
enum { IN_INPUT, IN_WEIGHT, IN_BIAS, IN_WEIGHT_SCALE, IN_RESIDUAL };

static bool is_levels(const TensorMeta *meta)
{
        return meta->dtype == DTYPE_U8 || meta->dtype == DTYPE_I8;
}

// ---- infer ----
static Status check_operands(const OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *weight = arg_meta(call, CONV_WEIGHT),
                         *bias = arg_meta(call, CONV_BIAS);
        if (!is_levels(input) || weight->dtype != DTYPE_I8)
                return levels_refuse(call, "expected levels of 8 bits");
        if (input->rank != 4 || weight->rank != 4 || meta_numel(input) == 0 || meta_numel(weight) == 0)
                return levels_refuse(call, "expected images and kernels");
        if (meta_numel(weight) / weight->size[0] > LEVELS_MOST_TERMS)
                return levels_refuse(call, "sums of so many levels do not fit 32 bits");
        if (!levels_are_floats(arg_meta(call, CONV_LEVELS_WEIGHT_SCALE), weight->size[0]) ||
            (bias != NULL && !levels_are_floats(bias, weight->size[0])))
                return levels_refuse(call, "expected a scale, and a bias, for each kernel");
        return STATUS_OK;
}

static Status conv_levels_infer(OpCall *call)
{
        const TensorMeta *residual = arg_meta(call, CONV_LEVELS_RESIDUAL);
        Dtype dtype = arg_dtype(call, CONV_LEVELS_DTYPE, PACKED_DTYPE);
        ConvArgs args;
        TensorMeta out;
        int64_t numel;
        TRY(check_operands(call));
        TRY(conv_args(call, &args));
        TRY(shape_numel(4, args.out_size, &numel));
        if (dtype != PACKED_DTYPE && dtype != DTYPE_U8 && dtype != DTYPE_I8)
                return levels_refuse(call, "the result is float32 or levels of 8 bits");
        meta_init(&out, dtype, 4, args.out_size);
        if (args.channels_last)
                meta_set_channels_last(&out);
        if (residual != NULL && ((!is_packed_type(residual) && !is_levels(residual)) ||
                                 !meta_same_shape(residual, &out) || !meta_same_places(residual, &out)))
                return levels_refuse(call, "the residual must be laid out as the result");
        return out_fresh(call, 0, &out);
}

// ---- arguments ----
typedef struct Images {
        LevelsImages of;
        ConvArgs args;
} Images;

static Status read_images(const OpCall *call, Images *out)
{
        double scale, residual_scale;
        int64_t zero, residual_zero;
        const TensorMeta *residual = arg_meta(call, CONV_LEVELS_RESIDUAL);
        Images images = { .of = { .input = *arg_meta(call, SELF),
                                  .weight = *arg_meta(call, CONV_WEIGHT),
                                  .out = call->outs[0].meta } };
        TRY(conv_args(call, &images.args));
        TRY(arg_double(call, CONV_LEVELS_SCALE, &scale));
        TRY(arg_int(call, CONV_LEVELS_ZERO_POINT, &zero));
        TRY(arg_double(call, CONV_LEVELS_RESIDUAL_SCALE, &residual_scale));
        TRY(arg_int(call, CONV_LEVELS_RESIDUAL_ZERO, &residual_zero));
        TRY(levels_read_out(call, CONV_LEVELS_LOW, &images.of.as));
        images.of.scale = (float)scale;
        images.of.zero = (int32_t)zero;
        images.of.residual = (LevelsResidual){ .is_signed = residual != NULL && residual->dtype == DTYPE_I8,
                                               .zero = (int32_t)residual_zero,
                                               .scale = (float)residual_scale };
        for (int i = 0; i < 2; i++) {
                images.of.stride[i] = images.args.stride[i];
                images.of.padding[i] = images.args.padding[i];
                images.of.dilation[i] = images.args.dilation[i];
        }
        *out = images;
        return STATUS_OK;
}

// ---- portable ----
typedef struct Rows {
        const OpRun *run;
        Images images;
        TensorMeta residual; // rank 0: none
} Rows;

static int32_t level_at(const TensorMeta *meta, const void *data, int64_t at)
{
        return meta->dtype == DTYPE_U8 ? ((const uint8_t *)data)[at] : ((const int8_t *)data)[at];
}

// Position `at` of the output: image, channel, row, column.
static int32_t sum_at(const Rows *rows, const int64_t at[4])
{
        const LevelsImages *of = &rows->images.of;
        const TensorMeta *in = &of->input, *weight = &of->weight;
        int64_t group = at[1] / (of->out.size[1] / rows->images.args.groups), channels = weight->size[1];
        const int8_t *weights = (const int8_t *)rows->run->in[IN_WEIGHT] + at[1] * weight->stride[0];
        int32_t sum = 0;
        for (int64_t i = 0; i < weight->size[2]; i++) {
                int64_t y = at[2] * of->stride[0] - of->padding[0] + i * of->dilation[0];
                for (int64_t j = 0; j < weight->size[3] && y >= 0 && y < in->size[2]; j++) {
                        int64_t x = at[3] * of->stride[1] - of->padding[1] + j * of->dilation[1];
                        if (x < 0 || x >= in->size[3])
                                continue;
                        int64_t from = at[0] * in->stride[0] + group * channels * in->stride[1] +
                                       y * in->stride[2] + x * in->stride[3],
                                by = i * weight->stride[2] + j * weight->stride[3];
                        for (int64_t c = 0; c < channels; c++)
                                sum += (level_at(in, rows->run->in[IN_INPUT], from + c * in->stride[1]) -
                                        of->zero) *
                                       weights[by + c * weight->stride[1]];
                }
        }
        return sum;
}

static int64_t place_of(const TensorMeta *meta, const int64_t at[4])
{
        return at[0] * meta->stride[0] + at[1] * meta->stride[1] + at[2] * meta->stride[2] +
               at[3] * meta->stride[3];
}

static float residual_at(const Rows *rows, const int64_t at[4])
{
        const LevelsResidual *residual = &rows->images.of.residual;
        const void *data = rows->run->in[IN_RESIDUAL];
        int64_t place = place_of(&rows->residual, at);
        if (is_packed_type(&rows->residual))
                return ((const float *)data)[place];
        return (float)(level_at(&rows->residual, data, place) - residual->zero) * residual->scale;
}

static void run_rows(void *argument, int64_t begin, int64_t end)
{
        const Rows *rows = argument;
        const OpRun *run = rows->run;
        const LevelsImages *of = &rows->images.of;
        const int64_t *size = of->out.size;
        const float *scales = run->in[IN_WEIGHT_SCALE], *bias = run->in[IN_BIAS];
        int64_t n_terms = meta_numel(&of->weight) / of->weight.size[0];
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work.stops; row++)
                for (int64_t i = 0; i < size[1] * size[3] && !work_stops(&work, n_terms); i++) {
                        int64_t at[4] = { row / size[2], i / size[3], row % size[2], i % size[3] };
                        float x = fmaf((float)sum_at(rows, at) * of->scale, scales[at[1]],
                                       run->in_meta[IN_BIAS] == NULL ? 0 : bias[at[1]]);
                        if (rows->residual.rank > 0)
                                x += residual_at(rows, at);
                        levels_store(&of->as, x, place_of(&of->out, at), run->out[0]);
                }
}

static Status conv_levels_run(const OpRun *run)
{
        Rows rows = { .run = run };
        TRY(read_images(run->call, &rows.images));
        if (run->in_meta[IN_RESIDUAL] != NULL)
                rows.residual = *run->in_meta[IN_RESIDUAL];
        rows.images.of.input = *run->in_meta[IN_INPUT];
        rows.images.of.weight = *run->in_meta[IN_WEIGHT];
        rows.images.of.out = *run->out_meta[0];
        int64_t n_rows = rows.images.of.out.size[0] * rows.images.of.out.size[2];
        TRY(parallel_for(run->ctx, n_rows, 1, run_rows, &rows));
        return run_poll(run->ctx);
}

// ---- packed ----
static LevelsConvOperands operands_of(const OpRun *run)
{
        const TensorMeta *residual = run->in_meta[IN_RESIDUAL];
        const void *data = residual == NULL ? NULL : run->in[IN_RESIDUAL];
        bool floats = residual != NULL && is_packed_type(residual);
        return (LevelsConvOperands){ .in = run->in[IN_INPUT],
                                     .residual = floats ? data : NULL,
                                     .residual_levels = floats ? NULL : data,
                                     .out = run->out[0],
                                     .scratch = run->scratch };
}

static Status conv_run(const OpRun *run)
{
        LevelsConvOperands operands = operands_of(run);
        return levels_conv_run(run->state, run->ctx, &operands);
}

static void conv_free(void *impl)
{
        levels_conv_free(impl);
}

static Status pack_conv(const LevelsImages *images, Packed *out_packed)
{
        LevelsConv *conv;
        TRY(levels_conv_new(images, &conv));
        if (conv != NULL)
                *out_packed = (Packed){ .run = conv_run,
                                        .impl = conv,
                                        .free_impl = conv_free,
                                        .kernel = levels_conv_name(conv),
                                        .scratch_bytes = levels_conv_scratch(conv) };
        return STATUS_OK;
}

static Status depthwise_run(const OpRun *run)
{
        LevelsConvOperands operands = operands_of(run);
        return levels_depthwise_run(run->state, run->ctx, &operands);
}

static void depthwise_free(void *impl)
{
        levels_depthwise_free(impl);
}

static Status pack_depthwise(const LevelsImages *images, Packed *out_packed)
{
        LevelsDepthwise *conv;
        TRY(levels_depthwise_new(images, &conv));
        if (conv != NULL)
                *out_packed = (Packed){ .run = depthwise_run,
                                        .impl = conv,
                                        .free_impl = depthwise_free,
                                        .kernel = levels_depthwise_name(conv) };
        return STATUS_OK;
}

static Status conv_levels_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const Tensor *weight, *scales, *bias = NULL;
        bool has_bias = arg_meta(call, CONV_BIAS) != NULL;
        Images images;
        TRY(read_images(call, &images));
        if (arg_data(call, CONV_WEIGHT, &weight) != STATUS_OK ||
            arg_data(call, CONV_LEVELS_WEIGHT_SCALE, &scales) != STATUS_OK ||
            (has_bias && arg_data(call, CONV_BIAS, &bias) != STATUS_OK))
                return STATUS_OK;
        images.of.weights = tensor_data(weight);
        images.of.column_scale = tensor_data(scales);
        images.of.bias = has_bias ? tensor_data(bias) : NULL;
        images.of.share =
                (PackShare){ .cache = context->cache, .storage = weight->storage, .poll = context->poll };
        images.of.n_threads = context->n_threads;
        TRY(images.args.groups == 1 ? pack_conv(&images.of, out_packed)
                                    : pack_depthwise(&images.of, out_packed));
        if (out_packed->run != NULL)
                out_packed->baked = 1u << CONV_WEIGHT | 1u << CONV_LEVELS_WEIGHT_SCALE |
                                    (has_bias ? 1u << CONV_BIAS : 0u);
        return STATUS_OK;
}

static const ConvRow conv_levels_row = {
        .dilation_arg = CONV_DILATION, .groups_arg = CONV_GROUPS, .pads_each_side = true, .mixes_dtypes = true
};
const OpDef quantized_conv_ops[] = {
        { .schema = "fxserve::quantized_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] "
                    "stride, "
                    "SymInt[] padding, SymInt[] dilation, SymInt groups, Tensor weight_scale, float scale, "
                    "int zero_point, float low, float high, ScalarType? dtype=None, float out_inverse=0., "
                    "int out_zero=0, int quant_min=0, int quant_max=0, Tensor? residual=None, "
                    "float residual_scale=0., int residual_zero=0) -> Tensor",
          .flags = OP_HIDDEN | OP_INTERNAL,
          .infer = conv_levels_infer,
          .run = conv_levels_run,
          .pack = conv_levels_pack,
          .cost = conv_cost,
          .row = &conv_levels_row,
          .traits = TRAIT_FRESH,
          .role = ROLE_QUANTIZED_CONV },
};
OP_FILE(quantized_conv_ops);
