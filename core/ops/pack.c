// SPDX-License-Identifier: Apache-2.0
// Packing for programs: constant weights of convolutions and products of matrices are reordered
// once into the layout that their kernel wants, constant biases are copied in, and what is left at
// run time is one call. float32, and products of halves (product_half.c); everything else keeps the
// portable kernels.
#include "core/ops/pack.h"
#include "core/kernels/numeric_policy.h"
#include <string.h>
#include "core/kernels/product/parts.h"
#include "core/ops/arguments.h"
#include "core/ops/product.h"
#include "core/ops/product_half.h"

static Status product_run(const OpRun *run)
{
        return parts_run(run->state, run->ctx, run->in[0], run->in[1], run->out[0], run->scratch);
}

static Status packed_run(const OpRun *run)
{
        return packed_product_run(run->state, run, NULL);
}

static void free_product(void *impl)
{
        packed_product_deinit(impl);
        free(impl);
}

// Takes `made`.
static Status take(PackedProduct *made, Status (*run)(const OpRun *run), Packed *out_packed)
{
        if (made->kind == NULL)
                return STATUS_OK;
        PackedProduct *product = malloc(sizeof(*product));
        if (product == NULL) {
                packed_product_deinit(made);
                return fail_memory();
        }
        *product = *made;
        *out_packed = (Packed){ .run = run,
                                .impl = product,
                                .free_impl = free_product,
                                .kernel = product->name,
                                .scratch_bytes = product->scratch_bytes,
                                .baked = product->baked };
        return STATUS_OK;
}

// The argument's tensor when its bytes are known now and are float32 in any dense order (a
// transposed weight is a constant, too), or rows of a matrix that lie apart; else NULL.
static const Tensor *matrix_constant_of(const OpCall *call, int index)
{
        const Tensor *tensor = NULL;
        if (arg_meta(call, index) == NULL || arg_data(call, index, &tensor) != STATUS_OK || tensor == NULL ||
            !is_packed_type(&tensor->meta) || meta_numel(&tensor->meta) == 0)
                return NULL;
        const TensorMeta *meta = &tensor->meta;
        bool has_rows = meta->rank == 2 && meta->stride[1] == 1 && meta->stride[0] >= meta->size[1];
        return has_rows || meta_is_non_overlapping_and_dense(meta) ? tensor : NULL;
}

Status conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        PackedProduct made;
        if (is_half_type(arg_meta(call, SELF)))
                return half_conv_pack(call, context, out_packed);
        TRY(conv_product_new(call, context, &(DirectClamp){ 0 }, &made));
        return take(&made, packed_run, out_packed);
}

Status linear_product_new(const OpCall *call, const PackContext *context, const DirectClamp *clamp,
                          PackedProduct *out_product)
{
        const TensorMeta *input = arg_meta(call, SELF);
        const Tensor *weight = matrix_constant_of(call, LINEAR_WEIGHT),
                     *bias = product_constant(call, LINEAR_BIAS);
        *out_product = (PackedProduct){ 0 };
        bool has_bias = arg_meta(call, LINEAR_BIAS) != NULL;
        DnnlMatmul matmul = { .n_threads = context->n_threads };
        if (weight == NULL || weight->meta.rank != 2 ||
            (has_bias &&
             (bias == NULL || bias->meta.rank != 1 || bias->meta.size[0] != weight->meta.size[0])) ||
            !is_packed_type(input) || meta_numel(input) == 0 ||
            !product_rows(&call->outs[0].meta, &matmul.out))
                return STATUS_OK;
        matmul.b = product_transposed(&weight->meta);
        matmul.b_data = tensor_data(weight);
        matmul.share =
                (PackShare){ .cache = context->cache, .storage = weight->storage, .poll = context->poll };
        matmul.bias_data = has_bias ? tensor_data(bias) : NULL;
        TRY(left_product_new(input, &matmul, context->precision, clamp, out_product));
        out_product->baked = 1u << 1 | (has_bias ? 1u << 2 : 0u);
        return STATUS_OK;
}

Status linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        if (is_half_type(arg_meta(call, SELF)))
                return half_linear_pack(call, context, out_packed);
        PackedProduct product;
        TRY(linear_product_new(call, context, &(DirectClamp){ 0 }, &product));
        return take(&product, packed_run, out_packed);
}

// Those of float32 are linear layers by then (pass make_linear).
Status addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        return is_half_type(arg_meta(call, ADDMM_MAT1)) ? half_addmm_pack(call, context, out_packed)
                                                        : STATUS_OK;
}

// Both factors are given at run time.
static Status take_parts(const DnnlMatmul *matmul, Packed *out_packed)
{
        Parts *parts;
        TRY(parts_matmul_new(matmul, &parts));
        if (parts != NULL)
                *out_packed = (Packed){ .run = product_run,
                                        .impl = parts,
                                        .free_impl = parts_free,
                                        .kernel = parts_name(parts),
                                        .scratch_bytes = parts_scratch(parts) };
        return STATUS_OK;
}

Status mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, MM_OTHER);
        const Tensor *weight = NULL;
        if (is_half_type(a))
                return half_mm_pack(call, context, out_packed);
        if (!product_takes(a) || !product_takes(b) || a->rank != b->rank || a->rank < 2 ||
            call->outs[0].meta.rank != a->rank)
                return STATUS_OK;
        for (int d = 0; d < a->rank - 2; d++)
                if (a->size[d] != b->size[d])
                        return STATUS_OK;
        if (arg_data(call, MM_OTHER, &weight) != STATUS_OK || !meta_is_non_overlapping_and_dense(b))
                weight = NULL;
        DnnlMatmul matmul = { .a = *a,
                              .b = *b,
                              .out = call->outs[0].meta,
                              .b_data = weight == NULL ? NULL : tensor_data(weight),
                              .share = { .cache = context->cache,
                                         .storage = weight == NULL ? NULL : weight->storage,
                                         .poll = context->poll },
                              .n_threads = context->n_threads };
        if (weight == NULL)
                return take_parts(&matmul, out_packed);
        PackedProduct product;
        TRY(matmul_product_new(&matmul, context->precision, &(DirectClamp){ 0 }, &product));
        product.baked = 1u << 1;
        return take(&product, packed_run, out_packed);
}
