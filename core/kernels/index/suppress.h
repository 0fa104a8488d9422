// SPDX-License-Identifier: Apache-2.0
// Boxes that overlap a better one.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Boxes are x1, y1, x2, y2, contiguous, float32 or float64; `order` has them from the best to the
// worst. out[i]: box order[i] overlaps no better box that is kept by more than `most`, the share of
// the boxes' common area in the area that they cover together. STATUS_INDEX for an order outside of
// the boxes.
typedef struct Suppression {
        Dtype dtype;
        int64_t n;
        const void *boxes; // [n][4]
        const int64_t *order;
        double most;
        uint8_t *out; // [n]
} Suppression;
Status suppress_run(const RunContext *ctx, const Suppression *task);
