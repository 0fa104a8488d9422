// SPDX-License-Identifier: Apache-2.0
// Weights of a Winograd convolution: for each point of a tile a matrix [products of a sum, output
// channels].
#pragma once
#include "core/kernels/conv/direct_tile.h"
#include "core/kernels/dnnl/primitive.h"

// Layers of a volume that a result reads; 1 for images.
static inline int64_t winograd_taps(const DnnlConv *conv)
{
        return conv->input.rank == 5 ? conv->weight.size[2] : 1;
}

// Output channels, and zeros that fill the last panel. direct_isa() is not NULL.
static inline int64_t winograd_columns(const DnnlConv *conv)
{
        int64_t width = DIRECT_VECTORS * direct_isa()->lanes;
        return (conv->weight.size[0] + width - 1) / width * width;
}

// conv->weight: contiguous. `step`: 4 or 2 results per side of a tile. *out_points: owned, [points,
// products, winograd_columns], the products of a volume layer by layer. NULL with STATUS_OK for
// weights with which the error against float64 is more than four times that of a plain sum.
// *out_error: the largest one of some results, for inputs of magnitude up to 1.
Status winograd_weights_new(const DnnlConv *conv, int step, float **out_points, float *out_error);
