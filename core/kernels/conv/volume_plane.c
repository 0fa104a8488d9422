// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/conv/volume_plane.h"

TensorMeta volume_images(const TensorMeta *volume, int64_t n, int64_t height, int64_t width)
{
        TensorMeta images;
        meta_init(&images, volume->dtype, 4, (int64_t[]){ n, volume->size[1], height, width });
        meta_set_channels_last(&images);
        return images;
}

DnnlConv volume_plane(const DnnlConv *conv, int64_t n, int64_t k)
{
        const TensorMeta *in = &conv->input, *out = &conv->out, *weight = &conv->weight;
        DnnlConv part = *conv;
        part.input = volume_images(in, n, in->size[3], in->size[4]);
        part.out = volume_images(out, n, out->size[3], out->size[4]);
        part.weight.rank = 4;
        for (int i = 0; i < 2; i++) {
                part.weight.size[2 + i] = weight->size[3 + i];
                part.weight.stride[2 + i] = weight->stride[3 + i];
                part.stride[i] = conv->stride[i + 1];
                part.padding[i] = conv->padding[i + 1];
                part.dilation[i] = conv->dilation[i + 1];
        }
        part.weight_data = (const float *)conv->weight_data + k * weight->stride[2];
        return part;
}
