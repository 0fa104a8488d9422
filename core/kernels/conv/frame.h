// SPDX-License-Identifier: Apache-2.0
// The input of a direct convolution as its tiles read it: zeros around it, and rounded where
// products are narrow. Kernels of one pixel get the pixels that they read, side by side. Pixels of
// three channels have a fourth one where products are narrow, so that each is whole steps: its
// weights are zero.
#pragma once
#include "core/kernels/product/narrow_tile.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef struct Frame {
        TensorMeta given, in;     // the input; what tiles read, maybe of one more channel
        int64_t pad[2];           // rows above, columns before
        int64_t pick[2];          // every which row and column is read; more than one: no padding
        bool copied;              // else `in` is the input itself
        const NarrowKind *narrow; // NULL: float32
        bool scaled;              // integers: a scale for each pixel (`by_pixel`), or one for each image
        bool by_pixel;
        int64_t n_results; // of an image
} Frame;

// What a run's tiles read. Scales and offsets are those of each result's sum.
typedef struct Framed {
        const void *in;
        const float *scales, *offsets; // NULL: not scaled
} Framed;

int64_t frame_element_bytes(const Frame *frame);
size_t frame_scratch(const Frame *frame);
// Whether both hold the same numbers of the same input at the same places.
bool frame_is_same(const Frame *a, const Frame *b);
// An image, or a pixel, with a NaN or an infinity has the scale NaN.
Status frame_fill(const Frame *frame, const RunContext *ctx, const float *in, void *scratch, Framed *out);
