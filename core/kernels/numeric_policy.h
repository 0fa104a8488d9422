// SPDX-License-Identifier: Apache-2.0
// Numeric policy: the type that packed and fused implementations compute in. Packing, passes and
// planner ask here instead of comparing types; a node of another type runs as its operator does.
#pragma once
#include "core/tensor/tensor.h"

#define PACKED_DTYPE DTYPE_F32

static inline bool is_packed_type(const TensorMeta *meta)
{
        return meta->dtype == PACKED_DTYPE;
}
