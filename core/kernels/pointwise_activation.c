// SPDX-License-Identifier: Apache-2.0
// pointwise_activation.c: loops of activations and clamps.
#include "core/kernels/pointwise_loops.h"

// PyTorch's vector code for float32 gives NaN for gelu(inf), all its other paths inf.
#define GELU_AT_INFINITY(x) (bits == 32 && (x) == K(INFINITY) ? K(NAN) : K(0))

#include "core/kernels/pointwise_activation.def"
