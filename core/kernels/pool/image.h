// SPDX-License-Identifier: Apache-2.0
// Pictures of bytes, resized as Pillow does it.
#pragma once
#include "core/kernels/run_context.h"

// Pixels at origin + x * column + y * row, channels side by side. Steps may be negative.
typedef struct ImageView {
        const uint8_t *origin;
        int64_t width, height;
        int64_t column, row; // bytes
        int channels;
} ImageView;

// A window of a picture that was resized to width x height. What lies outside is 0.
typedef struct ImageWindow {
        int64_t width, height;
        int64_t left, top;             // may be negative
        int64_t out_width, out_height; // of the window
} ImageWindow;

// Pillow's bilinear filter with support (antialias=True): columns first, then rows, weights of 22
// bits, rounded to bytes after each pass. Only what the window shows is computed. out:
// [out_height][out_width][channels]. Sizes are positive.
Status image_resize(const RunContext *ctx, const ImageView *in, const ImageWindow *window, uint8_t *out);
