// SPDX-License-Identifier: Apache-2.0
// The inner loops of products whose constant factor is stored in fewer bits: 8-bit integers or
// bfloat16. A few rows times a panel of two vectors of columns, held in registers over the whole
// sum. Sums of integers are exact, and those of bfloat16 are one chain of fused multiply-adds: AVX2
// and AVX-512 give the same bits, and no row depends on its neighbours.
#pragma once
#include "core/kernels/conv/direct_tile.h"

enum { NARROW_MAX_ROWS = 6 };

typedef struct NarrowTile {
        DirectTile to;             // bias, out, residual, out_step, n_valid and the clamp; no more
        const char *in;            // of the first row: int16 in pairs, or float
        int64_t in_step;           // bytes between rows
        int64_t n_steps;           // pairs of elements, or elements
        const uint8_t *weights;    // [step][column], 2 bytes each: int8 in pairs, or bfloat16
        const float *row_scale;    // integers only: what a step of each row is worth
        const float *column_scale; // ... and of each column
} NarrowTile;

typedef void NarrowLoop(const NarrowTile *tile);
// to[k] = from[k] in steps of *out_scale, at most `most` of them; NaN for a row that is not finite.
typedef void NarrowRounding(const float *from, int64_t n, int most, int16_t *to, float *out_scale);
typedef struct NarrowIsa {
        Isa isa;
        int lanes;
        NarrowRounding *round;
        NarrowLoop *int8[DIRECT_VECTORS][NARROW_MAX_ROWS]; // [vectors of the panel - 1][rows - 1]
        NarrowLoop *bf16[DIRECT_VECTORS][NARROW_MAX_ROWS];
} NarrowIsa;

extern const KernelFamily narrow_family;
// NULL without fused multiply-add (ISA_PORTABLE).
const NarrowIsa *narrow_isa(void);
