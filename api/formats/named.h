// SPDX-License-Identifier: Apache-2.0
// Tensors with names, as the binary forms of bodies and replies hold them.
#pragma once
#include "core/tensor/tensor.h"

typedef struct NamedTensor {
        const char *name;
        Tensor *tensor; // borrowed; contiguous
} NamedTensor;

// Takes the tensor, also on failure. `name` is valid during the call.
typedef Status (*TakeNamed)(void *context, const char *name, Tensor *take_tensor);
