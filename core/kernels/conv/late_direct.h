// SPDX-License-Identifier: Apache-2.0
// The direct convolution of one image whose weights are packed when it is first asked for: most
// runs of a Winograd never need it.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct LateDirect LateDirect;

// For one image of the convolution. *out_late stays NULL with STATUS_OK where there is no direct
// one. A bias must be there until this returns, weights without a storage, too.
Status late_direct_new(const DnnlConv *conv, const DirectClamp *clamp, LateDirect **out_late);
void late_direct_free(LateDirect *late); // NULL-safe
DEFINE_CLEANUP(LateDirect, late_direct_free)
size_t late_direct_scratch(const LateDirect *late);
// Packs on this thread, or waits for the thread that does; polls. Any thread.
Status late_direct_get(LateDirect *late, const RunContext *ctx, const DirectConv **out_direct);
