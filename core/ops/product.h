// SPDX-License-Identifier: Apache-2.0
// What the pack functions of products share.
#pragma once
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/conv.h"
#include "core/ops/pack.h"

// The argument's tensor when its bytes are known now and are contiguous float32; else NULL.
const Tensor *product_constant(const OpCall *call, int index);
// float32 elements, at least one, none of which share bytes.
bool product_takes(const TensorMeta *meta);
// [.., K] as [M, K]; false when its rows are not equally spaced.
bool product_rows(const TensorMeta *meta, TensorMeta *out);
// A matrix with its dimensions swapped.
static inline TensorMeta product_transposed(const TensorMeta *meta)
{
        TensorMeta out = *meta;
        out.size[0] = meta->size[1];
        out.size[1] = meta->size[0];
        out.stride[0] = meta->stride[1];
        out.stride[1] = meta->stride[0];
        return out;
}
// The convolution of the call with this constant weight, without a bias, and the way that is chosen
// for it. kind NULL: none. `adds`: a residual follows. `clamp`: as for conv_product_new. `baked` is
// left to the caller.
DnnlConv conv_task(const OpCall *call, const ConvArgs *args, const Tensor *weight,
                   const PackContext *context);
Status conv_product_of(const DnnlConv *conv, bool adds, const PackContext *context, const DirectClamp *clamp,
                       PackedProduct *out_product);
// The algorithm alone: by precision, record or rule.
Status conv_choose(const DnnlConv *conv, bool adds, const PackContext *context, const DirectClamp *clamp,
                   PackedProduct *out_product);
// The convolution of volumes.
Status product_volume(const DnnlConv *conv, bool transposed, PackedProduct *out_product);
// Whether a transposed one is convolutions of its phases (kernels/conv/phased.h), if the weight is
// finite. The input is batched.
bool conv_has_phases(const ConvArgs *args, const TensorMeta *input, const TensorMeta *weight);
// One tap without stride, padding and groups.
bool conv_has_one_tap(const DnnlConv *conv);
// The product of `n_rows` rows, each as long as a channel's weights, and these weights.
DnnlMatmul conv_rows(const DnnlConv *conv, int64_t n_rows);
// The fastest way of that precision whose rows have the same bits in every batch. kind NULL: none.
// `clamp`: as for conv_product_new. `baked` is left to the caller.
Status matmul_product_new(const DnnlMatmul *matmul, Precision precision, const DirectClamp *clamp,
                          PackedProduct *out_product);
// The same for a left factor `left`, [.., K] of any strides; matmul->a is not read. A product of
// less precision takes the same way however the factor lies, so that no batch has bits of its own.
Status left_product_new(const TensorMeta *left, const DnnlMatmul *matmul, Precision precision,
                        const DirectClamp *clamp, PackedProduct *out_product);
