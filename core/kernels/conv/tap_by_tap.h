// SPDX-License-Identifier: Apache-2.0
// Convolution of images whose windows reach far beyond the image: each tap by itself, over the
// results whose windows have it inside. Nothing is multiplied with padding. float32, one group.
#pragma once
#include "core/kernels/conv/direct.h"

// Which results of an axis have a tap of their windows inside the input: `first` and the n - 1
// behind it. The first one meets position `in`.
typedef struct Inside {
        int64_t first, n, in;
} Inside;
Inside tap_inside(const DnnlConv *conv, int axis, int64_t tap);

// Which tap is the i-th to be added: `begins` first (-1: none), then the others as they lie.
int64_t tap_in_turn(int64_t i, int64_t begins);

typedef struct TapByTap TapByTap;

// Images in channels_last with channels enough, of whose products at most MOST_INSIDE of 100 are
// inside. Else, and where direct_conv_new gives none for a tap, *out_taps stays NULL (STATUS_OK).
enum { MOST_INSIDE = 80 };
Status tap_by_tap_new(const DnnlConv *conv, TapByTap **out_taps);
void tap_by_tap_free(TapByTap *taps); // NULL-safe
const char *tap_by_tap_name(const TapByTap *taps);
Status tap_by_tap_run(const TapByTap *taps, const RunContext *ctx, const float *in, float *out);
