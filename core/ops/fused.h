// SPDX-License-Identifier: Apache-2.0
// fxserve::fused(Tensor[] inputs, Graph body) -> Tensor[]: pointwise operators run together. `body`
// has one placeholder per input and nodes `torch.ops.*` that fused_takes accepts, and returns a
// tuple of tensors of one shape. Its last call may be one that fused_takes_tail accepts; the tuple
// then holds only that call's result.
#pragma once
#include "core/ops/op.h"

// Whether a call (bound, inferred, not in place) may be a node of a body.
bool fused_takes(const OpCall *call);
// Whether `call` is a fxserve::fused that ends in a row operator whose result has fewer elements
// than what the group makes: then an input of the result's shape is broadcast, and the result may
// not be written over it.
bool fused_reduces(const OpCall *call);
