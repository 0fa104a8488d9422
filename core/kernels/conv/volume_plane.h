// SPDX-License-Identifier: Apache-2.0
// Volumes as images: their planes lie one after another in channels_last.
#pragma once
#include "core/kernels/dnnl/primitive.h"

// `n` images in channels_last with the channels of `volume`.
TensorMeta volume_images(const TensorMeta *volume, int64_t n, int64_t height, int64_t width);
// The convolution of `n` planes of the input, as images, by plane `k` of the taps.
DnnlConv volume_plane(const DnnlConv *conv, int64_t n, int64_t k);
