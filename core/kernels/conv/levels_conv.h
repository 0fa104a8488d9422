// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit levels with constant kernels of them: what convolutions of quantised graphs
// compute. Sums of levels are exact, and become floats once (levels_tile.h has the formula).
// Padding is worth zero. channels_last images, AVX2, or AVX-512 with VNNI.
#pragma once
#include "core/kernels/product/levels.h"

typedef struct LevelsImages {
        TensorMeta input, weight, out; // rank 4; the weight [out, in, height, width], of any strides
        int32_t zero;                  // a level that the input's type has
        float scale;
        int64_t stride[2], padding[2], dilation[2]; // padding above and before; behind: what out needs
        const int8_t *weights;
        const float *column_scale; // of output channels
        const float *bias;         // likewise; NULL: zeros
        PackShare share;           // of the packed weights
        LevelsOut as;              // bytes: the dtype of `out` says which
        LevelsResidual residual;   // what levels of a residual are worth
        int n_threads;
} LevelsImages;

typedef struct LevelsConv LevelsConv;

// *out_conv stays NULL (STATUS_OK) where the CPU lacks the instructions, for other layouts, for
// sums that do not fit and where windows reach far beyond the input.
Status levels_conv_new(const LevelsImages *images, LevelsConv **out_conv);
void levels_conv_free(LevelsConv *conv); // NULL-safe
const char *levels_conv_name(const LevelsConv *conv);
size_t levels_conv_scratch(const LevelsConv *conv);

typedef struct LevelsConvOperands {
        const uint8_t *in;
        const float *residual;          // laid out as the result; NULL: none
        const uint8_t *residual_levels; // likewise
        void *out;                      // floats, or bytes
        void *scratch;                  // levels_conv_scratch bytes, 64-byte aligned
} LevelsConvOperands;
Status levels_conv_run(const LevelsConv *conv, const RunContext *ctx, const LevelsConvOperands *operands);
