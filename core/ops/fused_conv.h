// SPDX-License-Identifier: Apache-2.0
// Activations that fxserve::convolution and fxserve::linear apply to their result.
#pragma once
#include "core/ops/op.h"

typedef struct FusedActivation {
        const char *name;   // the argument `activation`; static
        double alpha, beta; // of "clamp": its bounds
        bool clamps;        // to low .. high, NaN stays
        double low, high;
} FusedActivation;

// Whether `call` (bound) is an activation that a product can do; *out says which.
bool fused_activation(const OpCall *call, FusedActivation *out);
