// SPDX-License-Identifier: Apache-2.0
// Sampling an image at positions that another tensor gives.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Numbers as PyTorch has them.
typedef enum GridMode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } GridMode;
typedef enum GridPadding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } GridPadding;

// out[n][c][place] = image[n][c] at grid[n][place]. A position holds x, y (and z): -1 and 1 are the
// outer edges of the image, or the centres of its outer elements (corners). Arrays are contiguous,
// float32 or float64. `size` is depth, height, width; depth 1 and rank 2 for images. Cubic: rank 2.
typedef struct GridSample {
        Dtype dtype;
        GridMode mode;
        GridPadding padding;
        bool corners;
        int rank; // 2 or 3
        int64_t batch, channels, places;
        int64_t size[3];
        const void *image; // [batch][channels][size...]
        const void *grid;  // [batch][places][rank]
        void *out;         // [batch][channels][places]
} GridSample;
Status grid_sample_run(const RunContext *ctx, const GridSample *task);
