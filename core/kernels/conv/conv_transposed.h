// SPDX-License-Identifier: Apache-2.0
// Transposed convolution as convolutions of stride 1, one for each remainder of a result's position
// by the stride. Private to conv.c.
#pragma once
#include "core/kernels/conv/conv.h"

// Whether there are few enough of them.
bool conv_has_phases(const Conv *conv);
// conv->transposed. As conv_run.
Status conv_run_phases(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                       const void *bias, void *out);
