// SPDX-License-Identifier: Apache-2.0
// Geometry that several view ops, their composites and copies share. Nothing here touches data.
#pragma once
#include "core/ops/emitter.h"

// Strides that no element is ever reached by (a step beyond the dimension, size 1) are cut to this,
// so that sums and products of strides fit.
#define VIEW_STRIDE_CAP ((int64_t)1 << 40)

// STATUS_VALUE beyond MAX_RANK.
Status view_check_rank(const OpCall *call, int64_t rank);
// An int-list argument as a shape: at most MAX_RANK entries.
Status view_arg_shape(const OpCall *call, int index, int64_t size[MAX_RANK], int *out_rank);
// Fills in a -1 so that the product is `numel`: `shape '[2, -1]' is invalid for input of size 5`.
Status view_infer_size(int rank, int64_t *inout_size, int64_t numel);
// out_view of argument 0 at an offset relative to its own.
Status view_self(OpCall *call, uint32_t k, const TensorMeta *meta, int64_t relative_offset);
// PyTorch's is_contiguous(memory_format=...); PRESERVE counts as any.
bool view_is_contiguous_as(const TensorMeta *meta, MemoryFormat format);
// PyTorch's suggest_memory_format(): CHANNELS_LAST(_3D) for strides of that order, gaps allowed,
// else CONTIGUOUS.
MemoryFormat view_suggested_format(const TensorMeta *meta);
// Strides of a fresh tensor of meta's shape in `format`, `like` deciding for PRESERVE.
Status view_set_strides(TensorMeta *meta, MemoryFormat format, const TensorMeta *like);
void view_swap(TensorMeta *meta, int a, int b);
// start, stop and step as Python slices have them, against a dimension of `size`; step >= 1.
void view_clamp_slice(int64_t size, int64_t *inout_start, int64_t *inout_stop);
// A number as the bytes of one element (16 at most): `value cannot be converted to type uint8_t
// without overflow`. In copy_ops.c.
Status value_element(Value number, Dtype dtype, void *out_element);
// The number that fills a tensor of this meta in place of `number`: for one half element a value
// that is too large becomes infinity, as in PyTorch.
Value number_for_fill(Value number, const TensorMeta *meta);
