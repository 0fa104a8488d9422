// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's tiles. A tile of the image becomes one value for each point of the
// interpolation, and the products of all points become a tile of results. One channel does not
// depend on the others.
#pragma once
#include "core/kernels/conv/direct.h"

enum {
        MAX_STEP = 4, // results per side of a tile
        MAX_SIDE = 6, // inputs per side
        MAX_POINTS = MAX_SIDE * MAX_SIDE,
        MOST_LANES = 16 // floats of a vector; a tile has as many channels or more
};

typedef struct TileTask {
        int low[2], high[2];           // rows and columns low .. high - 1 lie inside the image
        int64_t row_step, column_step; // of the image, in floats
        int64_t channels, point;       // floats from one point to the next
        const float *bias, *residual;  // `give` only; NULL: none. The residual at the pixel of `to`
        DirectClamp clamp;
} TileTask;

typedef struct TileKernels {
        // Transforms a tile of the image. `from`: its first pixel, which may lie outside of the
        // image. `to`: channel c of point p is written at p * task->point + c.
        void (*take)(const TileTask *task, const float *from, float *to);
        // Transforms products back to results. Writes rows and columns below `high`. False when
        // some result is not finite before residual and clamp.
        bool (*give)(const TileTask *task, const float *from, float *to);
        int32_t (*largest)(const float *from, int64_t n);
} TileKernels;

// `step`: 4 or 2. Of this CPU, and those that run on all; both give the same bits.
TileKernels tile_kernels(int step);
TileKernels tile_kernels_plain(int step);
