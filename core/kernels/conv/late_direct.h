// SPDX-License-Identifier: Apache-2.0
// Direct convolutions of one image whose weights are packed when they are first asked for: most
// runs of a Winograd never need them. One for each group of images; of volumes one for each plane
// of taps.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct LateParts {
        int n;
        const DirectPart *parts;
} LateParts;
typedef struct LateDirect LateDirect;

// For one image of the convolution, or one plane of a volume of one group; those of several planes
// of taps are without bias and clamp. *out_late stays NULL with STATUS_OK where there is no direct
// one. A bias must be there until this returns, weights without a storage, too.
Status late_direct_new(const DnnlConv *conv, const DirectClamp *clamp, LateDirect **out_late);
void late_direct_free(LateDirect *late); // NULL-safe
DEFINE_CLEANUP(LateDirect, late_direct_free)
size_t late_direct_scratch(const LateDirect *late);
// Packs on this thread, or waits for the thread that does; polls. Any thread.
Status late_direct_get(LateDirect *late, const RunContext *ctx, LateParts *out_parts);
