// SPDX-License-Identifier: Apache-2.0
// Transposed convolution with a constant weight: a direct convolution for each phase
// (conv_transposed.h), which reads its taps of the weight as they lie and writes its pixels to
// their places in the output.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct Phased Phased;

// `conv`: the transposed one, its weight [channels in, channels out, taps, taps]. Two spatial
// dimensions, one group, finite weights, channels that lie together in the output, as many taps as
// the stride at least, and no phase that leaves out inputs. Else, and where direct_conv_new gives
// none, *out_phased stays NULL (STATUS_OK). `precision`: as for direct_conv_new, but float32
// where that gives none.
Status phased_new(const DnnlConv *conv, Precision precision, Phased **out_phased);
void phased_free(Phased *phased); // NULL-safe
const char *phased_name(const Phased *phased);
size_t phased_scratch(const Phased *phased);
// `scratch`: phased_scratch bytes, 64-byte aligned.
Status phased_run(const Phased *phased, const RunContext *ctx, const float *in, float *out, void *scratch);
