// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels_last images (every channel has one kernel of its own), with
// what follows done while results are in registers, as direct.h does it. float32, AVX2 with FMA or
// AVX-512. Every result is one chain of fused multiply-adds over the taps that lie inside, and
// then the bias. And sequences, channel by channel, over the taps of a frame of zeros.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct Depthwise Depthwise;
extern const KernelFamily depthwise_family;

// Groups = channels in = channels out. Two spatial dimensions, channels_last on both sides; or one,
// stride 1, a contiguous output, finite weights where there is padding. Else, and where the CPU
// lacks the instructions, *out_depthwise stays NULL (STATUS_OK). conv->epilogue must be empty.
Status depthwise_new(const DnnlConv *conv, const DirectClamp *clamp, Depthwise **out_depthwise);
void depthwise_free(Depthwise *depthwise); // NULL-safe
const char *depthwise_name(const Depthwise *depthwise);
// `residual`: laid out as the output, apart from it; NULL: none.
Status depthwise_run(const Depthwise *depthwise, const RunContext *ctx, const float *in,
                     const float *residual, float *out);
