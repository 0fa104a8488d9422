// SPDX-License-Identifier: Apache-2.0
// Transposed convolution with a constant weight: a direct convolution for each phase
// (conv_transposed.h), which reads its taps of the weight as they lie and writes its pixels to
// their places in the output.
#pragma once
#include "core/kernels/conv/conv_transposed.h"
#include "core/kernels/conv/direct.h"

typedef struct Phased Phased;
enum { MOST_PHASES = 1024 };

// `conv`: the transposed one, its weight [channels in, channels out, taps ..]. One or two spatial
// dimensions, one group, finite weights, at most MOST_PHASES phases, each of which has a tap and
// leaves out no inputs. Else, and where direct_conv_new gives none, *out_phased stays NULL
// (STATUS_OK). `precision`: as for direct_conv_new, but float32 where that gives none. Images that
// are not channels_last are copied.
// Whether each phase of an axis with `in_size` inputs is such one. Of all: their number is the
// product of those of the axes.
bool phased_axis_fits(const PhasedAxis *axis, int64_t in_size, int64_t *out_phases);
Status phased_new(const DnnlConv *conv, Precision precision, Phased **out_phased);
void phased_free(Phased *phased);              // NULL-safe
const char *phased_name(const Phased *phased); // of a part of the least precision
size_t phased_scratch(const Phased *phased);
// `scratch`: phased_scratch bytes, 64-byte aligned. `residual`, which is added, lies as `out` does
// and may be it; only where that is channels_last.
Status phased_run(const Phased *phased, const RunContext *ctx, const DirectImages *images);
