// SPDX-License-Identifier: Apache-2.0
// Results that operators make out of sizes.
#pragma once
#include "core/ops/op.h"

// Output 0 with the shape of the int-list argument `size_arg`, contiguous.
Status factory_sized(OpCall *call, int size_arg, Dtype dtype);
// Output 0 with the shape of argument 0; `format` PRESERVE keeps its strides.
Status factory_like(OpCall *call, Dtype dtype, MemoryFormat format);

// Number i of `steps` > 1 numbers from `start` to `end`, as torch.linspace of that dtype has it.
double linspace_at(Dtype dtype, double start, double end, int64_t steps, int64_t i);
