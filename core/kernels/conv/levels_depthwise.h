// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit levels, each channel with a constant kernel of its own, as
// levels_conv.h has those of all channels.
#pragma once
#include "core/kernels/conv/levels_conv.h"

typedef struct LevelsDepthwise LevelsDepthwise;

// *out_conv stays NULL (STATUS_OK) where the CPU lacks the instructions, for other layouts and for
// large kernels. Channels in = channels out, which the weight has one kernel for each of.
Status levels_depthwise_new(const LevelsImages *images, LevelsDepthwise **out_conv);
void levels_depthwise_free(LevelsDepthwise *conv); // NULL-safe
const char *levels_depthwise_name(const LevelsDepthwise *conv);
// Needs no scratch memory.
Status levels_depthwise_run(const LevelsDepthwise *conv, const RunContext *ctx,
                            const LevelsConvOperands *operands);
