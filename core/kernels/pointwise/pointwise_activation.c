// SPDX-License-Identifier: Apache-2.0
// pointwise_activation.c: loops of activations and clamps.
#include "core/kernels/pointwise/pointwise_loops.h"

// PyTorch gives contiguous float32 tensors of more than one element to oneDNN, whose gelu(inf) is
// NaN; all its other paths give inf, as the row gelu_at_infinity does.
#include "core/kernels/pointwise/pointwise_activation.def"
