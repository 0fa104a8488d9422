// SPDX-License-Identifier: Apache-2.0
// Winograd convolution of channels_last images: 3x3, stride 1, one group. Tiles of 4x4 results need 36 products per channel instead of 144,
// in 36 products of matrices. Which shapes take this way is a rule of sizes and weights alone, never of timing, so that a program has the
// same bits wherever it is made.
#pragma once
#include "core/kernels/dnnl/primitive.h"

typedef struct Winograd Winograd;

// *out_winograd stays NULL (STATUS_OK) when the rule says direct: other kernels, small images or few channels, weights on which the error
// against float64 is more than four times that of a plain sum. conv->epilogue must be empty.
Status winograd_new(const DnnlConv *conv, Winograd **out_winograd);
void winograd_free(Winograd *winograd);              // NULL-safe
const char *winograd_name(const Winograd *winograd); // "winograd_4x4:brg:avx512_core"
size_t winograd_scratch(const Winograd *winograd);
// `scratch`: winograd_scratch bytes, 64-byte aligned. Any number of threads at once, each with scratch of its own.
Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, float *out, void *scratch);
