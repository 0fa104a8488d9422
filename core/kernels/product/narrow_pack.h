// SPDX-License-Identifier: Apache-2.0
// A column of a constant factor in the cells of a panel, for narrow_tile.h's products and for
// convolutions.
#pragma once
#include "core/kernels/product/narrow_tile.h"

typedef struct NarrowColumn {
        float scale, weight; // integers only: what a step is worth; the sum of the column
} NarrowColumn;

// `from`: n finite numbers. The cells of terms * weight_bytes lie `step` bytes apart at `to`; terms
// behind the last one stay as they are. Integers: 127 steps on either side of zero.
NarrowColumn narrow_pack_column(const NarrowKind *kind, const float *from, int64_t n, int64_t step,
                                uint8_t *to);
