// SPDX-License-Identifier: Apache-2.0
// norm.c: layer_norm, rms_norm and group_norm. Statistics of half types are taken in float32;
// parameters may then be float32 as well ("mixed"), and mean and rstd come in the parameters'
// dtype.
#include "core/kernels/norm/norm.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/norm.h"
#include <float.h>
#include <math.h>
#include <string.h>

Status norm_check_params(const TensorMeta *input, const TensorMeta *const *params, int n_params,
                         Dtype *out_stats)
{
        Dtype param = DTYPE_NONE;
        for (int i = 0; i < n_params; i++) {
                if (params[i] == NULL)
                        continue;
                if (param != DTYPE_NONE && params[i]->dtype != param)
                        return fail(STATUS_DTYPE, "mixed dtype (CPU): all inputs must share same datatype.");
                param = params[i]->dtype;
        }
        bool half = input->dtype == DTYPE_F16 || input->dtype == DTYPE_BF16;
        if (param != DTYPE_NONE && param != input->dtype && !(half && param == DTYPE_F32))
                return fail(STATUS_DTYPE, "mixed dtype (CPU): expect parameter to have scalar type of Float");
        *out_stats = param == DTYPE_NONE ? input->dtype : param;
        return STATUS_OK;
}

Status norm_param_init(Dense *dense, const OpRun *run, uint32_t in, Dtype as)
{
        memset(dense, 0, sizeof(*dense));
        return run->in_meta[in] == NULL ? STATUS_OK
                                        : dense_init(dense, run->ctx, run->in[in], run->in_meta[in], as);
}

// ---- layer_norm, rms_norm: the last dimensions ----
typedef struct LayerArgs {
        int n_dims;
        int64_t n_rows, n;
        Dtype stats;
} LayerArgs;

static Status layer_args(const OpCall *call, const TensorMeta *bias, LayerArgs *out_args)
{
        const TensorMeta *input = arg_meta(call, SELF), *weight = arg_meta(call, LAYER_NORM_WEIGHT);
        int64_t shape[16];
        LayerArgs args = { .n_rows = 1, .n = 1 };
        TRY(arg_ints(call, LAYER_NORM_NORMALIZED_SHAPE, 16, shape, &args.n_dims));
        char normalized[128], text[128];
        shape_text(MIN(args.n_dims, MAX_RANK), shape, normalized, sizeof(normalized));
        if (args.n_dims < 1)
                return fail(STATUS_VALUE, "Expected normalized_shape to be at least 1-dimensional, i.e., "
                                          "containing at least one element, "
                                          "but got normalized_shape = []");
        const TensorMeta *params[] = { weight, bias };
        for (int i = 0; i < 2; i++) {
                if (params[i] != NULL &&
                    (params[i]->rank != args.n_dims ||
                     memcmp(params[i]->size, shape, (size_t)args.n_dims * sizeof(int64_t)) != 0))
                        return fail(STATUS_SHAPE,
                                    "Expected %s to be of same shape as normalized_shape, but got %s of "
                                    "shape %s and normalized_shape = %s",
                                    i == 0 ? "weight" : "bias", i == 0 ? "weight" : "bias",
                                    shape_text(params[i]->rank, params[i]->size, text, sizeof(text)),
                                    normalized);
        }
        if (input->rank < args.n_dims || memcmp(input->size + input->rank - args.n_dims, shape,
                                                (size_t)args.n_dims * sizeof(int64_t)) != 0)
                return fail(STATUS_SHAPE,
                            "Given normalized_shape=%s, expected input with shape [*, %s, but got input of "
                            "size%s",
                            normalized, normalized + 1,
                            shape_text(input->rank, input->size, text, sizeof(text)));
        for (int d = 0; d < input->rank; d++)
                *(d < input->rank - args.n_dims ? &args.n_rows : &args.n) *= input->size[d];
        *out_args = args;
        return STATUS_OK;
}

static void stats_meta(const TensorMeta *input, const LayerArgs *args, TensorMeta *out)
{
        *out = *input;
        out->dtype = args->stats;
        for (int d = input->rank - args->n_dims; d < input->rank; d++)
                out->size[d] = 1;
        meta_set_contiguous(out);
}

static bool is_rms(const OpCall *call)
{
        return call->op->row != NULL;
}

static Status layer_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF);
        const TensorMeta *params[] = { arg_meta(call, LAYER_NORM_WEIGHT),
                                       is_rms(call) ? NULL : arg_meta(call, LAYER_NORM_BIAS) };
        LayerArgs args;
        TRY(layer_args(call, params[1], &args));
        args.stats = is_rms(call) ? dtype_compute(input->dtype) : input->dtype;
        if (!is_rms(call))
                TRY(norm_check_params(input, params, 2, &args.stats));
        TensorMeta meta = *input;
        meta_set_contiguous(&meta);
        if (is_rms(call) && meta_suggests_channels_last(input))
                meta_set_channels_last(&meta);
        TRY(out_fresh(call, 0, &meta));
        stats_meta(input, &args, &meta);
        for (uint32_t k = 1; k < call->schema->n_returns; k++)
                TRY(out_fresh(call, k, &meta));
        return STATUS_OK;
}

static Status layer_eps(const OpCall *call, Dtype as, double *out_eps)
{
        int at = is_rms(call) ? 3 : 4;
        *out_eps = as == DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
        return arg_is_none(call, at) ? STATUS_OK : arg_double(call, at, out_eps);
}

static Status layer_run(const OpRun *run)
{
        bool rms = is_rms(run->call);
        LayerArgs args;
        TRY(layer_args(run->call, NULL, &args));
        Dtype as = dtype_compute(run->in_meta[0]->dtype);
        _cleanup_(dense_deinit) Dense in = { 0 }, weight = { 0 }, bias = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 }, first = { 0 }, second = { 0 };
        NormRows norm = { .dtype = as, .n_rows = args.n_rows, .n = args.n, .rms = rms };
        TRY(layer_eps(run->call, as, &norm.eps));
        TRY(dense_init(&in, run->ctx, run->in[0], run->in_meta[0], as));
        TRY(norm_param_init(&weight, run, 1, as));
        if (!rms)
                TRY(norm_param_init(&bias, run, 2, as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        if (run->n_out > 1)
                TRY(dense_out_init(&first, run->ctx, run->out[1], run->out_meta[1], as));
        if (run->n_out > 2)
                TRY(dense_out_init(&second, run->ctx, run->out[2], run->out_meta[2], as));
        norm.weight = weight.data;
        norm.bias = bias.data;
        norm.mean = rms ? NULL : first.data;
        norm.rstd = rms ? first.data : second.data;
        TRY(norm_rows(run->ctx, &norm, in.data, out.data));
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&first));
        TRY(dense_out_store(&second));
        return STATUS_OK;
}

// ---- group_norm ----
// Statistics of channels are joined to those of groups, so that results have the same bits however
// images lie.
static Status check_group(const OpCall *call, int weight_arg, int64_t channels, int64_t groups,
                          Dtype *out_stats)
{
        const TensorMeta *input = arg_meta(call, SELF);
        const TensorMeta *params[] = { arg_meta(call, weight_arg), arg_meta(call, weight_arg + 1) };
        char text[128], own[128];
        shape_text(input->rank, input->size, text, sizeof(text));
        if (groups <= 0)
                return fail(STATUS_VALUE, "Expected num groups to be greater than 0, got %ld", (long)groups);
        if (channels % groups != 0)
                return fail(STATUS_SHAPE,
                            "Expected number of channels in input to be divisible by num_groups, but got "
                            "input of shape %s and num_groups=%ld",
                            text, (long)groups);
        for (int i = 0; i < 2; i++) {
                if (params[i] != NULL && (params[i]->rank != 1 || params[i]->size[0] != channels))
                        return fail(STATUS_SHAPE,
                                    "Expected %s to be a vector of size equal to the number of channels in "
                                    "input, but got %s of shape %s "
                                    "and input of shape %s",
                                    i == 0 ? "weight" : "bias", i == 0 ? "weight" : "bias",
                                    shape_text(params[i]->rank, params[i]->size, own, sizeof(own)), text);
        }
        return norm_check_params(input, params, 2, out_stats);
}

typedef struct GroupArgs {
        int64_t n, channels, inner, groups;
        int weight_arg;
        Dtype stats;
} GroupArgs;

static Status group_args(const OpCall *call, GroupArgs *out_args)
{
        const TensorMeta *input = arg_meta(call, SELF);
        bool native = call->schema->n_returns == 3;
        int dim;
        TRY(dim_wrap(1, input->rank, &dim));
        GroupArgs args = { .n = input->size[0],
                           .channels = input->rank > 1 ? input->size[1] : 1,
                           .inner = 1,
                           .weight_arg = native ? NATIVE_GROUP_NORM_WEIGHT : GROUP_NORM_WEIGHT };
        for (int d = 2; d < input->rank; d++)
                args.inner *= input->size[d];
        TRY(arg_int(call, native ? NATIVE_GROUP_NORM_GROUP : GROUP_NORM_NUM_GROUPS, &args.groups));
        TRY(check_group(call, args.weight_arg, args.channels, args.groups, &args.stats));
        int64_t said;
        const int64_t sizes[] = { args.n, args.channels, args.inner };
        for (int i = 0; native && i < 3; i++) {
                TRY(arg_int(call, NATIVE_GROUP_NORM_N + i, &said));
                if (said != sizes[i])
                        return fail(STATUS_SHAPE,
                                    "Expected X.numel() == N * C * HxW to be true, but got false.");
        }
        *out_args = args;
        return STATUS_OK;
}

static Status group_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF);
        GroupArgs args;
        TRY(group_args(call, &args));
        TensorMeta meta = *input, stats;
        meta_set_contiguous(&meta);
        if (meta_suggests_channels_last(input))
                meta_set_channels_last(&meta);
        TRY(out_fresh(call, 0, &meta));
        meta_init(&stats, args.stats, 2, (int64_t[]){ args.n, args.groups });
        for (uint32_t k = 1; k < call->schema->n_returns; k++)
                TRY(out_fresh(call, k, &stats));
        return STATUS_OK;
}

// A group norm: dense data in the compute type `as`.
typedef struct GroupNorm {
        GroupArgs args;
        Dtype as;
        const void *in, *weight, *bias; // weight, bias: by channel, NULL: none
        void *out, *mean, *rstd;        // mean, rstd: by image and group
        bool last;                      // channels stand last
} GroupNorm;

// Per (image, channel): scale = rstd * weight, shift = bias - mean * scale.
static Status group_scales(const RunContext *ctx, const GroupNorm *norm, void *scale, void *shift)
{
        const GroupArgs *args = &norm->args;
        Dtype as = norm->as;
        int64_t per_group = args->channels / args->groups;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < args->n * args->channels && !work_stops(&work, 16); i++) {
                int64_t channel = i % args->channels, group = i / per_group;
                double s = compute_as_f64(as, norm->rstd, group) *
                           (norm->weight == NULL ? 1 : compute_as_f64(as, norm->weight, channel));
                double b = norm->bias == NULL ? 0 : compute_as_f64(as, norm->bias, channel),
                       m = compute_as_f64(as, norm->mean, group);
                if (as == DTYPE_F32) {
                        ((float *)scale)[i] = (float)s;
                        ((float *)shift)[i] = (float)b - (float)s * (float)m;
                } else {
                        ((double *)scale)[i] = s;
                        ((double *)shift)[i] = b - m * s;
                }
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static void set_number(Dtype as, void *to, int64_t at, double number)
{
        if (as == DTYPE_F32)
                ((float *)to)[at] = (float)number;
        else
                ((double *)to)[at] = number;
}

// Statistics of groups from those of channels.
static Status join_channels(const RunContext *ctx, const GroupNorm *group, double eps, const NormChannels *of)
{
        const GroupArgs *args = &group->args;
        int64_t n = args->channels / args->groups;
        Work work = { .ctx = ctx };
        for (int64_t g = 0; g < args->n * args->groups && !work_stops(&work, n); g++) {
                const double *mean = of->mean + g * n, *variance = of->variance + g * n;
                double sum = 0, squares = 0;
                for (int64_t c = 0; c < n; c++)
                        sum += mean[c];
                double centre = sum / (double)MAX(n, (int64_t)1);
                for (int64_t c = 0; c < n; c++)
                        squares += variance[c] + (mean[c] - centre) * (mean[c] - centre);
                set_number(group->as, group->mean, g, centre);
                set_number(group->as, group->rstd, g, 1.0 / sqrt(squares / (double)MAX(n, (int64_t)1) + eps));
        }
        return run_poll(ctx);
}

static Status group_stats(const RunContext *ctx, const GroupNorm *group, double eps)
{
        const GroupArgs *args = &group->args;
        int64_t n = args->n * args->channels;
        _cleanup_(scratch_deinit) Scratch stats = { 0 };
        TRY(scratch_init(&stats, ctx, n, 2 * sizeof(double)));
        const NormChannels of = { .dtype = group->as,
                                  .last = group->last,
                                  .n_images = args->n,
                                  .n_pixels = args->inner,
                                  .n_channels = args->channels,
                                  .mean = stats.data,
                                  .variance = (double *)stats.data + n };
        TRY(norm_channel_stats(ctx, &of, group->in));
        return join_channels(ctx, group, eps, &of);
}

static Status scale_last(const RunContext *ctx, const GroupNorm *group, const char *scale, const char *shift)
{
        const GroupArgs *args = &group->args;
        size_t row = (size_t)args->channels * dtype_info[group->as].bytes, image = (size_t)args->inner * row;
        for (size_t i = 0; i < (size_t)args->n; i++) {
                NormScale by = { .dtype = group->as,
                                 .outer = args->inner,
                                 .channels = args->channels,
                                 .inner = 1,
                                 .scale = scale + i * row,
                                 .shift = shift + i * row };
                TRY(norm_scale_channels(ctx, &by, (const char *)group->in + i * image,
                                        (char *)group->out + i * image));
        }
        return STATUS_OK;
}

static Status group_compute(const OpRun *run, const GroupNorm *group)
{
        const GroupArgs *args = &group->args;
        _cleanup_(scratch_deinit) Scratch scales = { 0 };
        int64_t n = args->n * args->channels;
        double eps;
        TRY(scratch_init(&scales, run->ctx, n, 2 * sizeof(double)));
        char *scale = scales.data, *shift = scale + (size_t)n * dtype_info[group->as].bytes;
        TRY(arg_double(run->call, run->n_out == 3 ? NATIVE_GROUP_NORM_EPS : GROUP_NORM_EPS, &eps));
        TRY(group_stats(run->ctx, group, eps));
        TRY(group_scales(run->ctx, group, scale, shift));
        if (group->last)
                return scale_last(run->ctx, group, scale, shift);
        // Channels of all images are channels of one; two or more elements each are planes.
        NormScale by = { .dtype = group->as,
                         .outer = 1,
                         .channels = n,
                         .inner = args->inner,
                         .scale = scale,
                         .shift = shift };
        return norm_scale_channels(run->ctx, &by, group->in, group->out);
}

static Status group_run(const OpRun *run)
{
        GroupArgs args;
        TRY(group_args(run->call, &args));
        if (meta_numel(run->out_meta[0]) == 0 && run->n_out == 1)
                return STATUS_OK;
        const TensorMeta *input = run->in_meta[0], *result = run->out_meta[0];
        Dtype as = dtype_compute(input->dtype);
        _cleanup_(dense_deinit) Dense in = { .data = run->in[0] }, weight = { 0 }, bias = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { .data = run->out[0] }, mean = { 0 }, rstd = { 0 };
        _cleanup_(scratch_deinit) Scratch stats = { 0 };
        bool last = input->dtype == as && meta_is_channels_last(input) && meta_is_channels_last(result);
        if (!last)
                TRY(dense_init(&in, run->ctx, run->in[0], input, as));
        TRY(norm_param_init(&weight, run, 1, as));
        TRY(norm_param_init(&bias, run, 2, as));
        if (!last)
                TRY(dense_out_init(&out, run->ctx, run->out[0], result, as));
        if (run->n_out == 3) {
                TRY(dense_out_init(&mean, run->ctx, run->out[1], run->out_meta[1], as));
                TRY(dense_out_init(&rstd, run->ctx, run->out[2], run->out_meta[2], as));
        } else {
                TRY(scratch_init(&stats, run->ctx, args.n * args.groups, 2 * sizeof(double)));
                mean.data = stats.data;
                rstd.data = (char *)stats.data + (size_t)(args.n * args.groups) * sizeof(double);
        }
        GroupNorm norm = { .args = args,
                           .as = as,
                           .in = in.data,
                           .weight = weight.data,
                           .bias = bias.data,
                           .out = out.data,
                           .mean = mean.data,
                           .rstd = rstd.data,
                           .last = last };
        TRY(group_compute(run, &norm));
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&mean));
        TRY(dense_out_store(&rstd));
        return STATUS_OK;
}

static const int rms_row = 1;
const OpDef norm_ops[] = {
        { "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
          "float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
          DTYPES_FLOATS, .infer = layer_infer, .run = layer_run, .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT,
          .row_end = END_BY_SHAPE },
        { "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
          "float eps) -> (Tensor, Tensor, "
          "Tensor)",
          DTYPES_FLOATS, .infer = layer_infer, .run = layer_run, .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT },
        { "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
          "Tensor",
          DTYPES_FLOATS, .infer = layer_infer, .run = layer_run, .row = &rms_row, .traits = TRAIT_FRESH,
          .row_end = END_BY_SHAPE },
        { "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
          "(Tensor, Tensor)",
          DTYPES_FLOATS, .infer = layer_infer, .run = layer_run, .row = &rms_row, .traits = TRAIT_FRESH },
        { "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
          "eps=1.0000000000000001e-05, bool "
          "cudnn_enabled=True) -> Tensor",
          DTYPES_FLOATS, .infer = group_infer, .run = group_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT },
        { "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
          "HxW, int group, float eps) -> "
          "(Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .infer = group_infer, .run = group_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT },
};
OP_FILE(norm_ops);
