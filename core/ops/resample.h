// SPDX-License-Identifier: Apache-2.0
// What passes ask about rows of resample.c.
#pragma once
#include "core/ops/op.h"

// Whether a call of ROLE_RESAMPLE reads the same elements for channels_last images, and for lines
// as images of one row, as for its own operand. PyTorch's kernels for those do not ask the scale
// factor where a size stays or doubles; another factor may lead to such a size, too.
bool resample_reads_the_same(const OpCall *call);
