// SPDX-License-Identifier: Apache-2.0
// What a Winograd convolution knows: for the files of winograd.c only. Images are volumes of one
// layer here.
#pragma once
#include <stdatomic.h>
#include "core/kernels/conv/late_direct.h"
#include "core/kernels/conv/winograd_tile.h"

struct Winograd {
        TensorMeta in, out;             // volumes in channels_last
        int step, side, points;         // results and inputs per side of a tile; values of one channel
        int64_t taps, pad[3];           // layers that a result reads; padding
        int64_t groups;                 // of channels; 1 for several layers
        int64_t width;                  // floats of a tile's products: the output channels and zeros
        int64_t rows, columns, n_tiles; // tiles: down and across one layer, in one layer of all samples
        int64_t tiles, layers;          // of a block, at most
        int64_t n_across, n_deep;       // blocks: of tiles, of layers
        int n_apart;                    // threads with blocks of their own; 1: all share each block
        DirectProducts *products;
        LateDirect *fallback;
        DirectClamp clamp;
        float *bias;
        float error; // the largest one of winograd_weights_new
        TileKernels kernels;
        char name[32];
};

static inline int64_t winograd_pixels(const struct Winograd *winograd)
{
        return winograd->in.size[3] * winograd->in.size[4];
}

// Where tile `tile` of one layer of all samples lies.
typedef struct TilePlace {
        int64_t sample, row, column;
} TilePlace;

static inline TilePlace winograd_place(const struct Winograd *winograd, int64_t tile)
{
        int64_t line = tile / winograd->columns;
        return (TilePlace){ .sample = line / winograd->rows,
                            .row = line % winograd->rows * winograd->step,
                            .column = tile % winograd->columns * winograd->step };
}

static inline int winograd_clip(int64_t value, int most)
{
        return value < 0 ? 0 : value > most ? most : (int)value;
}

size_t winograd_range_bytes(const struct Winograd *winograd);
// refused[sample * layers + layer]: a layer of results has a tile with inputs so uneven that errors
// would be large. *out_n: how many have one. `scratch`: winograd_range_bytes.
Status winograd_find_uneven(const struct Winograd *winograd, const RunContext *ctx, const float *in,
                            void *scratch, atomic_bool *refused, int64_t *out_n);
