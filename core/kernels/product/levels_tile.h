// SPDX-License-Identifier: Apache-2.0
// The inner loops of products of 8-bit levels, in which quantised graphs hold their tensors: a few
// rows times a panel of two vectors of columns. Sums are exact integers of 32 bits; they become
// floats once, and then results of either kind, while they are in registers. No row depends on its
// neighbours. A step of the sum reads four bytes of a row:
//
//   AVX2               two levels as int16     vpmaddwd with levels of the panel widened to int16
//   AVX-512 with VNNI  four levels as uint8    vpdpbusd
#pragma once
#include "core/kernels/conv/direct_tile.h"

enum { LEVELS_VECTORS = 2, LEVELS_MAX_ROWS = 14 };

// How floats become levels.
typedef struct LevelsSteps {
        float inverse, zero, least, most;
} LevelsSteps;

// Levels that are added to results.
typedef struct LevelsResidual {
        const uint8_t *levels;
        bool is_signed; // int8, else uint8
        int32_t zero;
        float scale;
} LevelsResidual;

// The result of row i and column j, rounded where an operator is written but for the addition:
//     x = float(sum - row_zero * column_sum[j]) * row_scale * column_scale[j] + bias[j]
//     x = min(max(x + residual, low), high); NaN stays
// A residual of levels is worth float(level - zero) * scale.
//     bytes: min(max(round(x * steps.inverse) + steps.zero, steps.least), steps.most)
typedef struct LevelsTile {
        const char *in;        // of the first row
        int64_t in_step;       // bytes between rows
        const DirectRun *runs; // of the sum: bytes from the first one of a row, steps of four bytes
        uint32_t n_runs;
        const uint8_t *weights; // int8: [step][column][term]
        const uint8_t *ahead;   // weights that are needed soon ...
        int64_t ahead_step;     // ... and bytes of them in each step; 0: none
        const int32_t *column_sum;
        const float *column_scale, *bias;
        float row_scale; // of all rows
        int32_t row_zero;
        char *out;                    // of the first row: floats or bytes
        const float *residual;        // the same places; NULL: none
        const LevelsResidual *levels; // the same places of levels; NULL: none
        int64_t out_step;             // elements between rows
        int n_valid;                  // columns of the panel that exist; the others are not written
        bool bytes;
        float low, high;
        LevelsSteps steps; // bytes: what they become
        bool plain;        // bytes; the steps heed low and high, their zero is whole, no x is NaN
} LevelsTile;

// One pixel after the other of a few rows of images of levels, of some channels.
typedef struct LevelsStrip {
        const uint8_t *rows[4]; // of the first pixel; terms of them
        int64_t step[4];        // bytes between pixels
        int n_rows;             // those behind them meet weights of zero
        int64_t n_pixels, n_channels;
        bool is_signed;
} LevelsStrip;

// A depthwise loop's `in` is one pixel after the other, of the panel's columns, of a step each: the
// terms of a step are levels of that channel. A run is one step.
typedef void LevelsLoop(const LevelsTile *tile);
typedef struct LevelsIsa {
        const char *name;
        int lanes, terms, max_rows;
        // Levels of a row as its steps hold them; uint8 takes int8 levels 128 higher.
        void (*widen)(const uint8_t *from, int64_t n, bool is_signed, void *to);
        // to[k] = min(max(round(from[k] * inverse) + zero, least), most) as bytes; NaN becomes 0.
        void (*quantize)(const float *from, int64_t n, const LevelsSteps *steps, uint8_t *to);
        // The steps of a depthwise loop, LEVELS_VECTORS vectors for each pixel, with levels as
        // `widen` has them.
        void (*interleave)(const LevelsStrip *strip, void *to);
        LevelsLoop *loops[LEVELS_VECTORS][LEVELS_MAX_ROWS]; // [vectors of the panel - 1][rows - 1]
        LevelsLoop *depthwise[LEVELS_VECTORS][LEVELS_MAX_ROWS];
} LevelsIsa;

extern const KernelFamily levels_family;
// NULL: the CPU has no such instructions (ISA_PORTABLE).
const LevelsIsa *levels_isa(void);
