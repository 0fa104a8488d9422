// SPDX-License-Identifier: Apache-2.0
// Folding a batch norm into the layer in front of it.
#pragma once
#include "core/targets/targets.h"

// Whether a norm of that class behind a layer of that class can be folded into the layer:
// torch.nn.Conv1d to 3d and Linear, with the BatchNorm of their rank.
bool module_takes_norm(const char *layer, const char *norm);

// Both in evaluation mode. Values are tensors, borrowed.
typedef struct NormFold {
        const char *layer, *norm; // classes
        Value weight, bias;       // of the layer; bias VALUE_NONE: it has none
        Value mean, var;          // running statistics
        Value gamma, beta;        // the norm's weight and bias; VALUE_NONE: not affine
        double eps;
} NormFold;
// Results are owned by the caller. Dtypes are those that promotion gives.
Status norm_fold(Emitter *emitter, const NormFold *fold, Value *out_weight, Value *out_bias);
