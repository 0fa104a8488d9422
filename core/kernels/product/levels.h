// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit levels with a constant matrix of them: what linear layers of quantised graphs
// compute. A level is worth scale * (level - zero); sums of levels are exact, and become floats
// once (levels_tile.h has the formula). AVX2, or AVX-512 with VNNI.
#pragma once
#include "core/kernels/conv/panels.h"
#include "core/kernels/product/levels_tile.h"

// What results become: floats, or levels again.
typedef struct LevelsOut {
        bool bytes;
        float low, high;   // -inf and inf: no clamp
        LevelsSteps steps; // bytes only
} LevelsOut;

typedef struct LevelsProduct {
        int64_t n_rows, n_k, n_columns;
        bool is_signed;            // int8 rows, else uint8
        int64_t in_step, out_step; // elements between rows, whose elements lie side by side
        const int8_t *weights;     // [k][column]; constant: packed
        int64_t weight_step[2];    // elements between k, between columns
        const float *column_scale; // [column]
        const float *bias;         // [column]; NULL: zeros
        PackShare share;           // of the packed weights
        LevelsOut out;
        int n_threads;
} LevelsProduct;

typedef struct LevelsMatmul LevelsMatmul;

// to[k] as LevelsIsa.quantize, on any CPU.
void levels_quantize(const float *from, int64_t n, const LevelsSteps *steps, uint8_t *to);

// Sums of so many terms fit 32 bits.
enum { LEVELS_MOST_TERMS = 65536 };

// Where neither scale is larger, no product of them with a sum is infinite.
#define LEVELS_MOST_SCALE 0x1p40
// Where neither is smaller, no product of terms is too small for float32's bits.
#define LEVELS_LEAST_SCALE 0x1p-40

// *out_matmul stays NULL (STATUS_OK) where the CPU lacks the instructions, and for sums that do not
// fit.
Status levels_matmul_new(const LevelsProduct *product, LevelsMatmul **out_matmul);
void levels_matmul_free(LevelsMatmul *matmul); // NULL-safe
const char *levels_matmul_name(const LevelsMatmul *matmul);
size_t levels_matmul_scratch(const LevelsMatmul *matmul);

typedef struct LevelsOperands {
        const uint8_t *in;
        float scale;           // of all rows
        int32_t zero;          // a level that the rows' type has
        const float *residual; // laid out as the result; NULL: none
        void *out;             // floats, or bytes
        void *scratch;         // levels_matmul_scratch bytes, 64-byte aligned
} LevelsOperands;
Status levels_matmul_run(const LevelsMatmul *matmul, const RunContext *ctx, const LevelsOperands *operands);
