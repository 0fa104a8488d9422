// SPDX-License-Identifier: Apache-2.0
// Normal numbers for contiguous tensors of NORMAL_BLOCK elements and more: the Box-Muller transform
// of blocks of 16 uniform numbers.
#pragma once
#include "core/kernels/random/generator.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

enum { NORMAL_BLOCK = 16 };

// After generator_start. `meta` is contiguous, of a float dtype.
Status normal_blocks(const RunContext *ctx, double mean, double deviation, const TensorMeta *meta,
                     void *data);
