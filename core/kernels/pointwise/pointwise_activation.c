// SPDX-License-Identifier: Apache-2.0
// pointwise_activation.c: loops of activations and clamps.
#include "core/kernels/pointwise/pointwise_loops.h"

#include "core/kernels/pointwise/pointwise_activation.def"
