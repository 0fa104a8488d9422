// SPDX-License-Identifier: Apache-2.0
// Rectangular regions of an image pooled to a fixed size, as detection models do it.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef enum RegionKind {
        REGION_ALIGN,        // averages of samples between the elements
        REGION_POOL,         // maxima
        REGION_ALIGN_PLACES, // averages of samples; each cell of a region reads channels of its own
        REGION_POOL_PLACES,  // averages; each cell of a region reads channels of its own
} RegionKind;

// A region is five numbers: the image's index in the batch, x and y of two corners, which `scale`
// multiplies. Each region becomes out_channels planes of out_height x out_width cells. Arrays are
// contiguous, float32 or float64. Images have elements where samples are taken.
typedef struct Regions {
        RegionKind kind;
        Dtype dtype;
        bool aligned;     // REGION_ALIGN: elements have their centres at halves
        int64_t sampling; // samples of a cell along each side; 0 or less: as many as it has elements
        double scale;
        int64_t n, batch, channels, height, width, out_channels, out_height, out_width;
        const void *image;   // [batch][channels][height][width]
        const void *regions; // [n][5]
        void *out;           // [n][out_channels][out_height][out_width]
        // The same shape: the maximum's place in its plane, or -1; the channel that was read. NULL:
        // not wanted.
        int32_t *index;
} Regions;
// STATUS_INDEX if a region names no image of the batch.
Status regions_run(const RunContext *ctx, const Regions *task);
