// SPDX-License-Identifier: Apache-2.0
// PyTorch's checks of a tensor that is written in place, with its messages. They only look at
// geometry.
#pragma once
#include "core/ops/op.h"

typedef enum Overlap {
        OVERLAP_NONE,    // no byte in common
        OVERLAP_FULL,    // the same elements in the same order
        OVERLAP_PUNNED,  // both dense, the same places, another dtype of the same size
        OVERLAP_PARTIAL, // both dense, ranges cross
        OVERLAP_MAYBE,   // ranges cross, at least one is not dense: not decided
} Overlap;

// Storages must be present (recording: compare by base instead). Empty tensors overlap nothing but
// themselves.
Overlap tensor_overlap(const Tensor *a, const Tensor *b);
// `unsupported operation: more than one element of the written-to tensor ...` for stride-0 dims;
// STATUS_RUN.
Status inplace_check_internal_overlap(const TensorMeta *self);
// A result of `result`'s shape and dtype may be written to `self`: overlap within self, equal
// shapes, castable dtype, in PyTorch's order.
Status inplace_check_write(const Tensor *self, const TensorMeta *result);
// Inputs of an elementwise twin against argument 0: partial overlap fails as in PyTorch;
// *inout_direct becomes false where only a temporary is safe.
Status inplace_check_inputs(const OpCall *call, bool *inout_direct);
// A copy to `to`: dense tensors whose ranges cross fail as in PyTorch.
Status inplace_check_copy(const Tensor *to, const Tensor *from);
// Twins that write by index: arguments 1 to end - 1, those in lists included, share nothing with
// argument 0.
Status inplace_check_apart(const OpCall *call, uint32_t end);
// Forms (OpDef) of fills, of fills where a mask is set and of fills by index: PyTorch takes
// expanded tensors there, and writes the memory that they refer to. Along an expanded dimension
// index_fill_ is refused.
OpExpand inplace_fill_form(const OpCall *call);
OpExpand inplace_mask_form(const OpCall *call);
OpExpand inplace_lines_form(const OpCall *call);
