// SPDX-License-Identifier: Apache-2.0
// Winograd convolution of channels_last images: 3x3, stride 1, one group. Tiles of 4x4 results need
// 36 products per channel instead of 144, tiles of 2x2 need 16 instead of 36; they are made as
// products of matrices. With what follows done while results are at hand, as direct.h does it.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct Winograd Winograd;
extern const KernelFamily winograd_family; // transforms; its products are direct_family's

// The step, 4 or 2, that the sizes alone recommend; 0: direct.
int winograd_rule(const DnnlConv *conv);
// *out_winograd stays NULL (STATUS_OK) for other kernels, where the CPU lacks the instructions, and
// for weights on which the error against float64 is more than four times that of a plain sum.
// conv->epilogue must be empty.
Status winograd_new(const DnnlConv *conv, const DirectClamp *clamp, int step, Winograd **out_winograd);
void winograd_free(Winograd *winograd);              // NULL-safe
const char *winograd_name(const Winograd *winograd); // "winograd_4x4:avx512"
size_t winograd_scratch(const Winograd *winograd);
// `residual`: laid out as the output, apart from it; NULL: none. `scratch`: winograd_scratch bytes,
// 64-byte aligned. Any number of threads at once, each with scratch of its own.
Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, const float *residual,
                    float *out, void *scratch);
