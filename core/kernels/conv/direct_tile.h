// SPDX-License-Identifier: Apache-2.0
// The inner loop of direct convolutions and products: a stretch of pixels times a panel of output
// channels, held in registers over the whole sum. Every result is one chain of fused multiply-adds
// over the runs in order, and then the bias; panels.h cuts long ones. So AVX2 and AVX-512 give
// the same bits, and no result depends on its neighbours.
#pragma once
#include "core/base/memory.h"
#include "core/kernels/isa.h"

enum { DIRECT_MAX_PIXELS = 14, DIRECT_VECTORS = 2, DIRECT_MAX_LANES = 16 };
// A wide tile has one pixel and DIRECT_WIDE_PANELS full panels, or two pixels and half of them.
enum { DIRECT_WIDE_PIXELS = 2, DIRECT_WIDE_PANELS = 4 };

// `n` consecutive floats, `offset` floats from a pixel's first one.
typedef struct DirectRun {
        int64_t offset, n;
} DirectRun;

typedef struct DirectTile {
        const float *in;    // of the first pixel
        int64_t pixel_step; // floats
        const DirectRun *runs;
        uint32_t n_runs;
        const float *weights, *bias; // of the panel: [element of the runs][channel], [channel]
        int64_t panel_step;          // floats to the weights of the next panel; of wide tiles
        float *out;                  // of the first pixel
        const float *residual;       // same places as out, added before the clamp; NULL: none
        int64_t out_step;            // floats between pixels
        int n_valid;                 // channels of the panel that exist; the others are not written
        bool clamps;                 // then low..high; NaN stays
        float low, high;
} DirectTile;

typedef void DirectLoop(const DirectTile *tile);
// A tile whose pixels lie side by side: `in` holds n_steps steps of one float for each pixel. `of`
// says the rest, all but in, pixel_step and runs.
typedef struct DenseTile {
        DirectTile of;
        const float *in;
        int64_t n_steps;
        const char *next;  // fetched into the second-level cache meanwhile, every step one line ...
        int64_t next_step; // ... so many bytes further
} DenseTile;
typedef void DenseLoop(const DenseTile *tile);
// to[k * n_rows + i] = from[i * step + k] for k below n_k: what DenseTile.in holds.
typedef void DenseRows(const float *from, int64_t step, int n_rows, int64_t n_k, float *to);
typedef struct DirectIsa {
        Isa isa;
        int lanes, max_pixels;                               // channels of a vector; pixels of a tile
        DirectLoop *of[DIRECT_VECTORS][DIRECT_MAX_PIXELS];   // [vectors of the panel - 1][pixels - 1]
        DirectLoop *wide[DIRECT_WIDE_PIXELS];                // [pixels - 1]; inputs are one run
        DenseRows *dense_rows;                               // NULL: there are no dense tiles
        int64_t dense_from;                                  // steps of a sum for which they pay
        DenseLoop *dense[DIRECT_VECTORS][DIRECT_MAX_PIXELS]; // as `of`
} DirectIsa;

extern const KernelFamily direct_family;
// NULL without fused multiply-add (ISA_PORTABLE).
const DirectIsa *direct_isa(void);
