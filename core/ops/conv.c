// SPDX-License-Identifier: Apache-2.0
// conv.c: all convolutions use one kernel; a row gives the positions of its arguments. Unbatched
// inputs get a batch of one. Results keep channels_last when input or weight has it.
#include "core/kernels/conv/conv.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/emitter.h"
#include "core/ops/pack.h"
#include <stdio.h>
#include <string.h>

enum { CONV_DTYPES = DTYPES_INTS | DTYPES_FLOATS, CONV_CAP = 16 };
enum { LARGE_VOLUME = 20480 }; // of all dimensions but the last, for oneDNN in PyTorch

static Status spatial_ints(const OpCall *call, int index, int n, const char *what, int64_t *out)
{
        int64_t given[CONV_CAP];
        int n_given;
        TRY(arg_ints(call, index, CONV_CAP, given, &n_given));
        if (n_given != n && n_given != 1) {
                char text[128];
                return fail(STATUS_VALUE,
                            "expected %s to be a single integer value or a list of %d values to match the "
                            "convolution dimensions, but got "
                            "%s=%s",
                            what, n, what,
                            shape_text(MIN(MAX(n_given, 0), MAX_RANK), given, text, sizeof(text)));
        }
        for (int i = 0; i < n; i++)
                out[i] = given[n_given == 1 ? 0 : i];
        return STATUS_OK;
}

TensorMeta conv_batched(const TensorMeta *meta, int spatial)
{
        TensorMeta out = *meta;
        if (meta->rank != spatial + 1)
                return out;
        out.rank++;
        memmove(out.size + 1, meta->size, meta->rank * sizeof(int64_t));
        memmove(out.stride + 1, meta->stride, meta->rank * sizeof(int64_t));
        out.size[0] = 1;
        out.stride[0] = meta->size[0] * meta->stride[0];
        return out;
}

static Status check_positive(const ConvArgs *args)
{
        char text[64];
        for (int i = 0; i < args->spatial; i++) {
                if (args->padding[i] < 0 || args->padding_after[i] < 0)
                        return fail(STATUS_VALUE, "negative padding is not supported");
        }
        for (int i = 0; i < args->spatial; i++) {
                if (args->output_padding[i] < 0)
                        return fail(STATUS_VALUE, "negative output_padding is not supported");
                if (args->stride[i] <= 0)
                        return fail(STATUS_VALUE, "non-positive stride is not supported");
                if (args->dilation[i] <= 0)
                        return fail(STATUS_VALUE, "dilation should be greater than zero, but got %s",
                                    shape_text(args->spatial, args->dilation, text, sizeof(text)));
                if (MAX(args->stride[i], args->dilation[i]) > INT32_MAX ||
                    MAX(args->padding[i], args->padding_after[i]) > INT32_MAX ||
                    args->output_padding[i] > INT32_MAX)
                        return fail(STATUS_VALUE, "convolution parameters over 2147483647 are not supported");
        }
        return args->groups > 0 ? STATUS_OK : fail(STATUS_VALUE, "non-positive groups is not supported");
}

static Status check_channels(const ConvArgs *args, const TensorMeta *input, const TensorMeta *weight,
                             const TensorMeta *bias)
{
        char w[128], x[128];
        shape_text(weight->rank, weight->size, w, sizeof(w));
        shape_text(input->rank, input->size, x, sizeof(x));
        if (input->rank != weight->rank)
                return fail(STATUS_SHAPE,
                            "Expected %d-dimensional input for %d-dimensional weight %s, but got "
                            "%d-dimensional input of size %s instead",
                            weight->rank, weight->rank, w, input->rank, x);
        for (int d = 2; d < weight->rank; d++) {
                if (weight->size[d] == 0)
                        return fail(STATUS_SHAPE,
                                    "kernel size should be greater than zero, but got weight of size %s", w);
        }
        if (weight->size[0] < args->groups)
                return fail(STATUS_SHAPE,
                            "Given groups=%ld, expected weight to be at least %ld at dimension 0, but got "
                            "weight of size %s instead",
                            (long)args->groups, (long)args->groups, w);
        if (weight->size[0] % args->groups != 0)
                return fail(STATUS_SHAPE,
                            "Given groups=%ld, expected weight to be divisible by %ld at dimension 0, but "
                            "got weight of size [%s] instead",
                            (long)args->groups, (long)args->groups, w);
        int64_t want = args->transposed ? weight->size[0] : weight->size[1] * args->groups;
        if (input->size[1] != want && args->transposed)
                return fail(STATUS_SHAPE,
                            "Given transposed=1, weight of size %s, expected input%s to have %ld channels, "
                            "but got %ld channels instead",
                            w, x, (long)want, (long)input->size[1]);
        if (input->size[1] != want)
                return fail(STATUS_SHAPE,
                            "Given groups=%ld, weight of size %s, expected input%s to have %ld channels, but "
                            "got %ld channels instead",
                            (long)args->groups, w, x, (long)want, (long)input->size[1]);
        int64_t out_channels = args->transposed ? weight->size[1] * args->groups : weight->size[0];
        char b[128];
        if (bias != NULL && (bias->rank != 1 || bias->size[0] != out_channels))
                return fail(STATUS_SHAPE,
                            "Given %sweight of size %s, expected bias to be 1-dimensional with %ld elements, "
                            "but got bias of size %s instead",
                            args->transposed ? "transposed=1, " : "", w, (long)out_channels,
                            shape_text(bias->rank, bias->size, b, sizeof(b)));
        return STATUS_OK;
}

static Status check_dtypes(const TensorMeta *input, const TensorMeta *weight, const TensorMeta *bias)
{
        if (input->dtype != weight->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(input->dtype),
                            dtype_words(weight->dtype));
        if (bias != NULL && bias->dtype != input->dtype)
                return fail(STATUS_DTYPE, "Input type (%s) and bias type (%s) should be the same",
                            dtype_words(input->dtype), dtype_words(bias->dtype));
        return STATUS_OK;
}

// "(2 x 2)"
static const char *by_text(int n, const int64_t *size, char out[96])
{
        int at = 0;
        out[0] = '\0';
        for (int i = 0; i < n && at < 80; i++)
                at += snprintf(out + at, (size_t)(96 - at), "%s%ld", i == 0 ? "" : " x ", (long)size[i]);
        return out;
}

static Status forward_sizes(ConvArgs *args, const TensorMeta *input, const TensorMeta *weight)
{
        int64_t padded[3], reach[3];
        bool fits = true;
        for (int i = 0; i < args->spatial; i++) {
                if (!mul_i64(args->dilation[i], weight->size[i + 2] - 1, &reach[i]))
                        return fail(STATUS_VALUE, "the dilated kernel is too large");
                padded[i] = input->size[i + 2] + args->padding[i] + args->padding_after[i];
                reach[i]++;
                fits = fits && padded[i] >= reach[i];
                args->out_size[i + 2] = (padded[i] - reach[i]) / args->stride[i] + 1;
        }
        char have[96], want[96];
        if (!fits)
                return fail(STATUS_SHAPE,
                            "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size "
                            "can't be greater than actual "
                            "input size",
                            by_text(args->spatial, padded, have), by_text(args->spatial, reach, want));
        return STATUS_OK;
}

static Status transposed_sizes(ConvArgs *args, const TensorMeta *input, const TensorMeta *weight)
{
        for (int i = 0; i < args->spatial; i++) {
                if (args->output_padding[i] >= args->stride[i] &&
                    args->output_padding[i] >= args->dilation[i])
                        return fail(STATUS_VALUE,
                                    "output padding must be smaller than either stride or dilation, but got "
                                    "output_padding: %ld stride: "
                                    "%ld dilation: %ld",
                                    (long)args->output_padding[i], (long)args->stride[i],
                                    (long)args->dilation[i]);
                int64_t spread, reach;
                if (!mul_i64(input->size[i + 2] - 1, args->stride[i], &spread) ||
                    !mul_i64(args->dilation[i], weight->size[i + 2] - 1, &reach) ||
                    !add_i64(spread, reach, &spread))
                        return fail(STATUS_VALUE, "the output of the convolution is too large");
                args->out_size[i + 2] = spread - 2 * args->padding[i] + args->output_padding[i] + 1;
        }
        char have[96], out[96];
        for (int i = 0; i < args->spatial; i++) {
                if (args->out_size[i + 2] <= 0)
                        return fail(STATUS_SHAPE,
                                    "Given input size per channel: (%s). Calculated output size per channel: "
                                    "(%s). Output size is too small",
                                    by_text(args->spatial, input->size + 2, have),
                                    by_text(args->spatial, args->out_size + 2, out));
        }
        return STATUS_OK;
}

// padding="same" | "valid" or numbers.
static Status read_padding(const OpCall *call, const TensorMeta *weight, ConvArgs *args)
{
        const char *text = arg_text(call, CONV_PADDING);
        const ConvRow *row = call->op->row;
        int64_t both[CONV_CAP];
        int n = args->spatial, n_both;
        if (text == NULL && row->pads_each_side && arg_list_length(call, CONV_PADDING) == 2 * (uint32_t)n) {
                TRY(arg_ints(call, CONV_PADDING, CONV_CAP, both, &n_both));
                memcpy(args->padding, both, (size_t)n * sizeof(int64_t));
                memcpy(args->padding_after, both + n, (size_t)n * sizeof(int64_t));
                return STATUS_OK;
        }
        if (text == NULL) {
                TRY(spatial_ints(call, CONV_PADDING, n, "padding", args->padding));
                memcpy(args->padding_after, args->padding, sizeof(args->padding));
                return STATUS_OK;
        }
        if (strcmp(text, "valid") == 0)
                return STATUS_OK;
        if (strcmp(text, "same") != 0)
                return fail(STATUS_VALUE, "Invalid padding string: '%s'", text);
        for (int i = 0; i < n; i++) {
                if (args->stride[i] != 1)
                        return fail(STATUS_VALUE, "padding='same' is not supported for strided convolutions");
                if (args->dilation[i] <= 0 || args->dilation[i] > INT32_MAX)
                        continue; // refused later
                int64_t total;
                if (!mul_i64(args->dilation[i], weight->size[i + 2] - 1, &total))
                        return fail(STATUS_VALUE, "the dilated kernel is too large");
                // An odd total pads one more at the end.
                total = MAX((int64_t)0, total);
                args->padding[i] = total / 2;
                args->padding_after[i] = total - total / 2;
        }
        return STATUS_OK;
}

static bool line_suggests_channels_last(const TensorMeta *line)
{
        const TensorMeta image = meta_line_as_image(line);
        return meta_suggests_channels_last(&image);
}

// 3-d convolutions keep channels_last where PyTorch's oneDNN path takes them. Inputs of 1-d ones
// are made contiguous first: only one that is already may lie channels_last, too.
static bool keeps_channels_last(const ConvArgs *args, const TensorMeta *input, const TensorMeta *weight)
{
        if (args->spatial == 2)
                return meta_suggests_channels_last(input) || meta_suggests_channels_last(weight);
        if (args->spatial == 1)
                return line_suggests_channels_last(weight) ||
                       (meta_is_contiguous(input) && line_suggests_channels_last(input));
        int64_t kernel_h = weight->size[3], kernel_w = weight->size[4];
        bool fast = input->dtype == DTYPE_BF16 ||
                    (input->dtype == DTYPE_F32 &&
                     (args->groups > 1 || input->size[0] > 1 || (kernel_h > 3 && kernel_w > 3) ||
                      saturating_product(saturating_product(input->size[0], input->size[1]),
                                         saturating_product(input->size[2], input->size[3])) > LARGE_VOLUME));
        for (int i = 0; i < 3 && args->transposed; i++)
                fast = fast && args->output_padding[i] < args->stride[i];
        return fast && (meta_suggests_channels_last(input) || meta_suggests_channels_last(weight));
}

Status conv_args(const OpCall *call, ConvArgs *out_args)
{
        const ConvRow *row = call->op->row;
        const TensorMeta *weight = arg_meta(call, CONV_WEIGHT), *given = arg_meta(call, SELF);
        ConvArgs args = { .spatial = row->spatial, .transposed = row->transposed, .groups = 1 };
        char text[128];
        if (row->spatial == 0) {
                args.spatial = weight->rank - 2;
                args.transposed = row->transposed_arg > 0 && arg_bool(call, row->transposed_arg, false);
                if (args.spatial < 1 || args.spatial > 3)
                        return fail(STATUS_SHAPE, "weight should have at least three dimensions");
        } else if (given->rank != args.spatial + 1 && given->rank != args.spatial + 2) {
                return fail(
                        STATUS_SHAPE,
                        "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s",
                        args.spatial + 1, args.spatial + 2, call->schema->name,
                        shape_text(given->rank, given->size, text, sizeof(text)));
        }
        args.batched = row->spatial == 0 || given->rank == args.spatial + 2;
        int weight_spatial = weight->rank - 2;
        if (weight_spatial != args.spatial)
                return fail(STATUS_SHAPE,
                            "expected stride to be a single integer value or a list of %d values to match "
                            "the convolution dimensions, but "
                            "got %d values",
                            weight_spatial, args.spatial);
        TRY(spatial_ints(call, CONV_STRIDE, args.spatial, "stride", args.stride));
        TRY(spatial_ints(call, row->dilation_arg, args.spatial, "dilation", args.dilation));
        TRY(arg_int(call, row->groups_arg, &args.groups));
        TRY(read_padding(call, weight, &args));
        if (row->output_padding_arg > 0)
                TRY(spatial_ints(call, row->output_padding_arg, args.spatial, "output_padding",
                                 args.output_padding));
        TensorMeta input = args.batched ? *given : conv_batched(given, args.spatial);
        TRY(check_positive(&args));
        TRY(check_channels(&args, &input, weight, arg_meta(call, CONV_BIAS)));
        if (!row->mixes_dtypes)
                TRY(check_dtypes(&input, weight, arg_meta(call, CONV_BIAS)));
        args.out_size[0] = input.size[0];
        args.out_size[1] = args.transposed ? weight->size[1] * args.groups : weight->size[0];
        if (!args.transposed && input.size[1] == 0)
                args.out_size[1] = 0; // PyTorch's result for an input without channels
        TRY(args.transposed ? transposed_sizes(&args, &input, weight) : forward_sizes(&args, &input, weight));
        if (meta_numel(&input) == 0 && input.size[0] != 0 && input.size[1] != 0)
                return fail(STATUS_SHAPE,
                            "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                            shape_text(input.rank, input.size, text, sizeof(text)));
        args.channels_last = row->volumes_follow && args.spatial == 3
                                     ? meta_suggests_channels_last(&input)
                                     : keeps_channels_last(&args, &input, weight);
        *out_args = args;
        return STATUS_OK;
}

Status conv_infer(OpCall *call)
{
        ConvArgs args;
        TRY(conv_args(call, &args));
        int64_t numel;
        int rank = args.spatial + 2;
        TRY(shape_numel(rank, args.out_size, &numel));
        TensorMeta meta;
        meta_init(&meta, arg_meta(call, SELF)->dtype, rank, args.out_size);
        if (args.channels_last && rank > 3)
                meta_set_channels_last(&meta);
        if (args.channels_last && rank == 3) {
                meta.stride[1] = 1;
                meta.stride[2] = meta.size[1];
        }
        if (!args.batched) {
                meta.rank--;
                memmove(meta.size, meta.size + 1, meta.rank * sizeof(int64_t));
                memmove(meta.stride, meta.stride + 1, meta.rank * sizeof(int64_t));
        }
        return out_fresh(call, 0, &meta);
}

// ---- run: arrays padded to depth, height, width ----
static void set_strides(int64_t out[5], const TensorMeta *meta, int spatial)
{
        TensorMeta full = conv_batched(meta, spatial);
        memset(out, 0, 5 * sizeof(int64_t));
        out[0] = full.stride[0];
        out[1] = full.stride[1];
        memcpy(out + 5 - spatial, full.stride + 2, (size_t)spatial * sizeof(int64_t));
}

static void describe(Conv *conv, const ConvArgs *args, const TensorMeta *input, const TensorMeta *weight)
{
        int lead = 3 - args->spatial;
        TensorMeta full = conv_batched(input, args->spatial);
        conv->transposed = args->transposed;
        conv->n = full.size[0];
        conv->groups = args->groups;
        conv->group_in = full.size[1] / args->groups;
        conv->group_out = args->out_size[1] / args->groups;
        for (int i = 0; i < 3; i++) {
                int from = i - lead;
                conv->in_size[i] = from < 0 ? 1 : full.size[from + 2];
                conv->out_size[i] = from < 0 ? 1 : args->out_size[from + 2];
                conv->kernel[i] = from < 0 ? 1 : weight->size[from + 2];
                conv->stride[i] = from < 0 ? 1 : args->stride[from];
                conv->pad[i] = from < 0 ? 0 : args->padding[from];
                conv->dilation[i] = from < 0 ? 1 : args->dilation[from];
        }
}

// Transposed convolution of halfs is rounded step by step in PyTorch's plain path: always for
// float16, for bfloat16 with a large output_padding.
static bool steps_in_half(Dtype dtype, const ConvArgs *args)
{
        if (!args->transposed || dtype == DTYPE_F16)
                return args->transposed;
        for (int i = 0; i < args->spatial; i++) {
                if (dtype == DTYPE_BF16 && args->output_padding[i] >= args->stride[i])
                        return true;
        }
        return false;
}

// Transposed ones read others as copies: how the inputs of one sample lie may depend on how many
// there are, and its bits may not.
static bool has_contiguous_samples(const TensorMeta *input, int spatial)
{
        TensorMeta full = conv_batched(input, spatial);
        int64_t step = 1;
        for (int d = full.rank - 1; d > 0; step *= full.size[d--])
                if (full.size[d] != 1 && full.stride[d] != step)
                        return false;
        return true;
}

Status conv_op_run(const OpRun *run)
{
        ConvArgs args;
        bool done;
        TRY(conv_args(run->call, &args));
        TRY(conv_packed_once(run, &args, &done));
        if (done)
                return STATUS_OK;
        TensorMeta input = *run->in_meta[0], out = *run->out_meta[0];
        Dtype as = dtype_compute(input.dtype);
        Conv conv = { .dtype = as, .rounds_to = steps_in_half(input.dtype, &args) ? input.dtype : as };
        describe(&conv, &args, &input, run->in_meta[1]);
        _cleanup_(dense_deinit) Dense x = { .data = run->in[0] }, w = { 0 }, b = { 0 };
        _cleanup_(dense_out_deinit) DenseOut y = { .data = run->out[0] };
        if (input.dtype != as || (args.transposed && !has_contiguous_samples(&input, args.spatial))) {
                TRY(dense_init(&x, run->ctx, run->in[0], &input, as));
                meta_set_contiguous(&input);
        }
        TRY(dense_init(&w, run->ctx, run->in[1], run->in_meta[1], as));
        if (run->in_meta[2] != NULL)
                TRY(dense_init(&b, run->ctx, run->in[2], run->in_meta[2], as));
        // The kernel writes any dense layout; other dtypes go through a contiguous result.
        bool direct = out.dtype == as && meta_is_non_overlapping_and_dense(&out);
        if (!direct) {
                TRY(dense_out_init(&y, run->ctx, run->out[0], run->out_meta[0], as));
                meta_set_contiguous(&out);
        }
        set_strides(conv.in_stride, &input, args.spatial);
        set_strides(conv.out_stride, &out, args.spatial);
        const void *bias = run->in_meta[2] == NULL ? NULL : b.data;
        TRY(conv_run(run->ctx, &conv, x.data, w.data, bias, y.data));
        if (!direct)
                TRY(dense_out_store(&y));
        return STATUS_OK;
}

Cost conv_cost(const OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, CONV_WEIGHT), *input = arg_meta(call, SELF),
                         *out = &call->outs[0].meta;
        ConvArgs args;
        if (conv_args(call, &args) != STATUS_OK || weight->size[0] == 0)
                return (Cost){ 0 };
        int64_t pixels = args.transposed ? meta_numel(input) : meta_numel(out),
                taps = meta_numel(weight) / weight->size[0];
        return (Cost){ .flops = saturating_product(2 * pixels, taps),
                       .bytes = (meta_numel(input) + meta_numel(weight) + meta_numel(out)) *
                                dtype_info[out->dtype].bytes };
}

#define DIRECT .dilation_arg = CONV_DILATION, .groups_arg = CONV_GROUPS
#define TRANSPOSED                                                                                           \
        .dilation_arg = TRANSPOSED_DILATION, .groups_arg = TRANSPOSED_GROUPS,                                \
        .output_padding_arg = TRANSPOSED_OUTPUT_PADDING, .transposed = true
static const ConvRow conv_1d = { .spatial = 1, DIRECT }, conv_2d = { .spatial = 2, DIRECT },
                     conv_3d = { .spatial = 3, DIRECT }, transposed_1d = { .spatial = 1, TRANSPOSED },
                     transposed_2d = { .spatial = 2, TRANSPOSED },
                     transposed_3d = { .spatial = 3, TRANSPOSED },
                     volume_transposed = { .spatial = 3, TRANSPOSED, .volumes_follow = true },
                     conv_any = { .dilation_arg = CONV_DILATION,
                                  .groups_arg = CONVOLUTION_GROUPS,
                                  .output_padding_arg = CONVOLUTION_OUTPUT_PADDING,
                                  .transposed_arg = CONVOLUTION_TRANSPOSED };
#undef DIRECT
#undef TRANSPOSED
#define ANY_CONV(schema, row_, role_, ...)                                                                   \
        {                                                                                                    \
                schema, CONV_DTYPES, .infer = conv_infer, .run = conv_op_run, .pack = conv_pack,             \
                                     .cost = conv_cost, .row = &(row_), .traits = TRAIT_FRESH,               \
                                     .role = (role_), __VA_ARGS__                                            \
        }
#define CONV(schema, row) ANY_CONV(schema, row, ROLE_CONV)

const OpDef conv_ops[] = {
        CONV("aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
             "padding=[0], SymInt[1] "
             "dilation=[1], SymInt groups=1) -> Tensor",
             conv_1d),
        CONV("aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str "
             "padding=\"valid\", SymInt[1] "
             "dilation=[1], SymInt groups=1) "
             "-> Tensor",
             conv_1d),
        CONV("aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
             "SymInt[2] padding=[0, 0], SymInt[2] "
             "dilation=[1, 1], SymInt "
             "groups=1) -> Tensor",
             conv_2d),
        CONV("aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
             "str padding=\"valid\", "
             "SymInt[2] dilation=[1, 1], SymInt "
             "groups=1) -> Tensor",
             conv_2d),
        CONV("aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
             "SymInt[3] padding=[0, 0, 0], "
             "SymInt[3] dilation=[1, 1, 1], "
             "SymInt groups=1) -> Tensor",
             conv_3d),
        CONV("aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, "
             "1], str padding=\"valid\", "
             "SymInt[3] dilation=[1, 1, 1], "
             "SymInt groups=1) -> Tensor",
             conv_3d),
        CONV("aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
             "padding, SymInt[] dilation, bool "
             "transposed, SymInt[] "
             "output_padding, SymInt groups) -> Tensor",
             conv_any),
        CONV("aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], "
             "SymInt[1] padding=[0], "
             "SymInt[1] output_padding=[0], SymInt "
             "groups=1, SymInt[1] dilation=[1]) -> Tensor",
             transposed_1d),
        CONV("aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] "
             "stride=[1, 1], SymInt[2] padding=[0, "
             "0], SymInt[2] "
             "output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
             transposed_2d),
        CONV("aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] "
             "stride=[1, 1, 1], SymInt[3] "
             "padding=[0, 0, 0], SymInt[3] "
             "output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
             transposed_3d),
        ANY_CONV("fxserve::conv_transpose3d(Tensor input, Tensor weight, Tensor? bias, SymInt[3] stride, "
                 "SymInt[3] padding, SymInt[3] output_padding, SymInt groups, SymInt[3] dilation) -> Tensor",
                 volume_transposed, ROLE_CONV_TRANSPOSE3D, .flags = OP_HIDDEN | OP_INTERNAL),
};
OP_FILE(conv_ops);
