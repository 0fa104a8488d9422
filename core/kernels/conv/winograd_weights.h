// SPDX-License-Identifier: Apache-2.0
// Weights of a Winograd convolution: for each point of a tile a matrix [products of a sum, output
// channels].
#pragma once
#include "core/kernels/conv/direct.h"
#include "core/kernels/dnnl/primitive.h"

// Layers of a volume that a result reads; 1 for images.
static inline int64_t winograd_taps(const DnnlConv *conv)
{
        return conv->input.rank == 5 ? conv->weight.size[2] : 1;
}

static inline DirectGroups winograd_groups(const DnnlConv *conv)
{
        return (DirectGroups){ conv->groups, conv->weight.size[1], conv->weight.size[0] / conv->groups };
}

// Output channels, and zeros that fill the last panel. direct_isa() is not NULL.
static inline int64_t winograd_columns(const DnnlConv *conv)
{
        int64_t width = DIRECT_VECTORS * direct_isa()->lanes;
        return (conv->weight.size[0] + width - 1) / width * width;
}

// Rows of the matrix of one point: products of a sum, and zeros of other groups in the same panel.
// Those of a volume go through the channels of one layer, then of the next.
static inline int64_t winograd_products(const DnnlConv *conv)
{
        DirectGroups groups = winograd_groups(conv);
        return winograd_taps(conv) * groups.n_in *
               direct_most_groups(&groups, DIRECT_VECTORS * direct_isa()->lanes);
}

// conv->weight: contiguous. `step`: 4 or 2 results per side of a tile. *out_points: owned, [points,
// winograd_products, winograd_columns]. NULL with STATUS_OK for weights with which errors against
// float64 are more than four times those of plain sums, or 16 times at a border of the image (root
// mean squares of some results). *out_error: the largest error of those, for inputs of magnitude up
// to 1.
Status winograd_weights_new(const DnnlConv *conv, int step, float **out_points, float *out_error);
