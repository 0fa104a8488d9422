// SPDX-License-Identifier: Apache-2.0
// fxserve::fused(Tensor[] inputs, Graph body) -> Tensor[]: pointwise operators run together. `body`
// has one placeholder per input, nodes `torch.ops.*` that fused_takes accepts, and returns a tuple
// of tensors of one shape. Or its last call is one that fused_takes_tail accepts, whose result is
// the only one.
#pragma once
#include "core/ops/op.h"

// Whether a call (bound, inferred, not in place) may be a node of a body.
bool fused_takes(const OpCall *call);
// Whether `call` is a fxserve::fused that ends in a row operator whose result has fewer elements
// than what the group makes: then an input of the result's shape is broadcast, and the result may
// not be written over it.
bool fused_reduces(const OpCall *call);
