// SPDX-License-Identifier: Apache-2.0
// Convolution of volumes: Winograd's, or for each plane of taps a direct convolution of all planes
// that it meets, added to what stands there; in groups the kernels of images in groups. float32.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct Volume Volume;

// Three spatial dimensions and finite weights, if there is padding; one group of a transposed
// convolution. Else, and where there is no kernel of images for a plane of taps, *out_volume stays
// NULL (STATUS_OK). Inputs and outputs that do not lie channels_last are copied. `transposed`: the
// weight is [channels in, channels out, taps ..] and planes of taps are convolutions of phased.h.
Status volume_new(const DnnlConv *conv, bool transposed, Volume **out_volume);
void volume_free(Volume *volume); // NULL-safe
const char *volume_name(const Volume *volume);
size_t volume_scratch(const Volume *volume);
// `scratch`: volume_scratch bytes, 64-byte aligned.
Status volume_run(const Volume *volume, const RunContext *ctx, const float *in, float *out, void *scratch);
