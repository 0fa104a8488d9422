// SPDX-License-Identifier: Apache-2.0
// conv_product.c: convolutions that are products of matrices, and transposed ones; all others take
// an algorithm of product.c.
#include <stdlib.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/kernels/conv/phased.h"
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/product.h"

// ---- kernels that cover their input ----
// Each sample has one result per output channel: a product of matrices. A sample of one place is a
// row, however far the next one is.
static bool covers_input(const DnnlConv *conv)
{
        const TensorMeta *input = &conv->input;
        int64_t taps = 1;
        for (int d = 2; d < input->rank; d++) {
                int64_t size = conv->weight.size[d];
                taps *= size;
                if (size != input->size[d] || conv->padding[d - 2] != 0 || conv->out.size[d] != 1 ||
                    (size > 1 && conv->dilation[d - 2] != 1))
                        return false;
        }
        return conv->groups == 1 && ((taps == 1 && input->stride[1] == 1) || meta_is_contiguous(input) ||
                                     meta_is_channels_last(input));
}

// [out][channels][taps] to [out][taps][channels].
static Status turn_weight(const DnnlConv *conv, int64_t taps, float *to)
{
        const float *from = conv->weight_data;
        int64_t channels = conv->weight.size[1];
        Work work = { .ctx = conv->share.poll };
        for (int64_t k = 0; k < conv->weight.size[0]; k++, from += channels * taps)
                for (int64_t t = 0; t < taps && !work_stops(&work, channels); t++)
                        for (int64_t c = 0; c < channels; c++)
                                *to++ = from[c * taps + t];
        return work.stops ? run_poll(conv->share.poll) : STATUS_OK;
}

static Status make_covering(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                            PackedProduct *out_product)
{
        DnnlMatmul matmul = conv_rows(conv, conv->input.size[0]);
        int64_t taps = matmul.a.size[1] / conv->weight.size[1];
        _cleanup_(freep) float *turned = NULL;
        matmul.a.stride[0] = conv->input.stride[0];
        if (taps > 1 && !meta_is_contiguous(&conv->input)) {
                turned = new_array((size_t)meta_numel(&conv->weight), sizeof(float));
                if (turned == NULL)
                        return fail_memory();
                TRY(turn_weight(conv, taps, turned));
                matmul.b_data = turned;
                matmul.share =
                        (PackShare){ .poll = conv->share.poll }; // these bytes are this program's alone
        }
        return matmul_product_new(&matmul, precision, clamp, out_product);
}

// ---- one tap over rows ----
// Where the channels of a place lie together, a kernel of one tap is a product of matrices: the
// input's rows times the weight. The result is turned, because convolutions keep each channel's
// places together. Samples are taken one by one, so that no batch has bits of its own.
typedef struct Turned {
        PackedProduct product; // [places, channels in] -> [places, channels out]
        TensorMeta from, to;   // of one sample's result: as the product leaves it, as it is wanted
        int64_t n, in_step, out_step;
        size_t n_bytes; // of one sample's result
} Turned;

static Status run_turned(const PackedProduct *product, const OpRun *run, const float *residual)
{
        const Turned *turned = product->impl;
        OpRun one = *run;
        one.scratch = (char *)run->scratch + turned->n_bytes;
        (void)residual;
        for (int64_t i = 0; i < turned->n; i++) {
                one.in = (const void *const[]){ (const float *)run->in[0] + i * turned->in_step };
                one.out = (void *const[]){ run->scratch };
                TRY(packed_product_run(&turned->product, &one, NULL));
                Region from = region_of(&turned->from, run->scratch),
                       to = region_of(&turned->to, (float *)run->out[0] + i * turned->out_step);
                TRY(copy_region(run->ctx, &from, &to));
        }
        return STATUS_OK;
}

static void free_turned(void *impl)
{
        Turned *turned = impl;
        packed_product_deinit(&turned->product);
        free(turned);
}

static const ProductAlgorithm turned_product = { "turned", false, run_turned, free_turned, NULL };

// One sample as [places, channels]; false: the places are not equally spaced.
static bool sample_rows(const TensorMeta *batched, TensorMeta *out)
{
        TensorMeta sample = *batched;
        sample.rank--;
        for (int d = 0; d < sample.rank; d++) {
                int from = d + 2 < batched->rank ? d + 2 : 1;
                sample.size[d] = batched->size[from];
                sample.stride[d] = batched->stride[from];
        }
        return product_rows(&sample, out);
}

static Status make_turned(const DnnlConv *conv, Precision precision, PackedProduct *out_product)
{
        TensorMeta in, out;
        if (!conv_has_one_tap(conv) || conv->input.stride[1] != 1 || conv->out.stride[1] == 1 ||
            !sample_rows(&conv->input, &in) || !sample_rows(&conv->out, &out) || out.size[0] == 1)
                return STATUS_OK;
        DnnlMatmul matmul = conv_rows(conv, out.size[0]);
        matmul.a = in;
        PackedProduct product;
        TRY(matmul_product_new(&matmul, precision, &(DirectClamp){ 0 }, &product));
        Turned *turned = product.kind == NULL ? NULL : calloc(1, sizeof(*turned));
        if (turned == NULL) {
                bool is_made = product.kind != NULL;
                packed_product_deinit(&product);
                return is_made ? fail_memory() : STATUS_OK;
        }
        *turned = (Turned){ .product = product,
                            .from = matmul.out,
                            .to = out,
                            .n = conv->input.size[0],
                            .in_step = conv->input.stride[0],
                            .out_step = conv->out.stride[0] };
        turned->n_bytes = storage_padded((size_t)meta_numel(&matmul.out) * sizeof(float));
        *out_product = (PackedProduct){ &turned_product, turned, product.name,
                                        turned->n_bytes + product.scratch_bytes, 0 };
        return STATUS_OK;
}

// Zero times an infinite weight is NaN. Eager convolutions multiply their padding, others may not.
static bool padding_matters(const DnnlConv *conv)
{
        bool padded = false;
        for (int d = 2; d < conv->input.rank; d++)
                padded |= conv->padding[d - 2] != 0;
        return padded && !floats_are_finite(conv->weight_data, &conv->weight);
}

Status conv_product_of(const DnnlConv *conv, bool adds, const PackContext *context, const DirectClamp *clamp,
                       PackedProduct *out_product)
{
        *out_product = (PackedProduct){ 0 };
        if (padding_matters(conv))
                return STATUS_OK;
        if (covers_input(conv))
                TRY(make_covering(conv, context->precision, clamp, out_product));
        if (out_product->kind == NULL)
                TRY(make_turned(conv, context->precision, out_product));
        return out_product->kind != NULL ? STATUS_OK : conv_choose(conv, adds, context, clamp, out_product);
}

DnnlConv conv_task(const OpCall *call, const ConvArgs *args, const Tensor *weight, const PackContext *context)
{
        DnnlConv conv = {
                .input = conv_batched(arg_meta(call, SELF), args->spatial),
                .weight = weight->meta,
                .out = conv_batched(&call->outs[0].meta, args->spatial),
                .weight_data = tensor_data(weight),
                .share = { .cache = context->cache, .storage = weight->storage, .poll = context->poll },
                .groups = args->groups,
                .n_threads = context->n_threads
        };
        for (int i = 0; i < args->spatial; i++) {
                conv.stride[i] = args->stride[i];
                conv.padding[i] = args->padding[i];
                conv.dilation[i] = args->dilation[i];
        }
        // Strides of dimensions of size 1 are arbitrary: views of one sample may have others, and
        // results of one channel lie in both orders.
        const TensorMeta *decides = conv.out.size[1] == 1 ? &conv.input : &conv.out;
        if (conv.out.rank == 4 && !meta_is_contiguous(decides) && meta_lies_channels_last(decides) &&
            meta_lies_channels_last(&conv.out))
                meta_set_channels_last(&conv.out);
        if (conv.input.rank == 4 && meta_is_channels_last(&conv.out) && meta_lies_channels_last(&conv.input))
                meta_set_channels_last(&conv.input);
        return conv;
}

// ---- transposed ones ----
static Status run_phased(const PackedProduct *product, const OpRun *run, const float *residual)
{
        (void)residual;
        const DirectImages images = { .in = run->in[0], .out = run->out[0], .scratch = run->scratch };
        return phased_run(product->impl, run->ctx, &images);
}

static void free_phased(void *impl)
{
        phased_free(impl);
}

static const ProductAlgorithm phased_product = { "phased", false, run_phased, free_phased, NULL };

static Status make_phased(const DnnlConv *conv, Precision precision, PackedProduct *out_product)
{
        Phased *phased;
        if (conv->input.rank == 5)
                return product_volume(conv, true, out_product);
        TRY(phased_new(conv, precision, &phased));
        if (phased != NULL)
                *out_product = (PackedProduct){ &phased_product, phased, phased_name(phased),
                                                phased_scratch(phased), 0 };
        return STATUS_OK;
}

// With fewer results in a pixel most of a panel is nothing.
enum { FEWEST_CHANNELS = 8 };

bool conv_has_phases(const ConvArgs *args, const TensorMeta *input, const TensorMeta *weight)
{
        int64_t n = 1, n_axis;
        for (int i = 0; i < args->spatial; i++, n *= n_axis) {
                const PhasedAxis axis = { args->stride[i], args->dilation[i], args->padding[i],
                                          weight->size[2 + i], args->out_size[2 + i] };
                if (!phased_axis_fits(&axis, input->size[2 + i], &n_axis))
                        return false;
        }
        return args->groups == 1 && n <= MOST_PHASES && args->out_size[1] >= FEWEST_CHANNELS;
}

Status conv_product_new(const OpCall *call, const PackContext *context, const DirectClamp *clamp,
                        PackedProduct *out_product)
{
        ConvArgs args;
        *out_product = (PackedProduct){ 0 };
        const Tensor *weight = product_constant(call, CONV_WEIGHT), *bias = product_constant(call, CONV_BIAS);
        bool has_bias = arg_meta(call, CONV_BIAS) != NULL;
        TRY(conv_args(call, &args));
        if (weight == NULL || (has_bias && bias == NULL) || !product_takes(arg_meta(call, SELF)))
                return STATUS_OK;
        DnnlConv conv = conv_task(call, &args, weight, context);
        conv.bias_data = has_bias ? tensor_data(bias) : NULL;
        bool adds = call->schema->n_tensor_args > 3 && arg_meta(call, (int)call->n_args - 1) != NULL;
        if (!args.transposed)
                TRY(conv_product_of(&conv, adds, context, clamp, out_product));
        else if (conv_has_phases(&args, &conv.input, &conv.weight))
                TRY(make_phased(&conv, context->precision, out_product));
        out_product->baked = 1u << 1 | (has_bias ? 1u << 2 : 0u);
        return STATUS_OK;
}
