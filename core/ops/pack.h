// SPDX-License-Identifier: Apache-2.0
// Implementations chosen for programs: the pack functions of rows whose weights are constant. Each leaves Packed.run NULL when nothing faster than the row's own
// kernel is at hand.
#pragma once
#include "core/kernels/dnnl/primitive.h"
#include "core/ops/op.h"

Status conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed);    // rows of conv.c
Status linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed);  // aten::linear
Status addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);   // aten::addmm
Status mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);      // aten::mm, aten::bmm, aten::matmul of matrices

// The same choice as a primitive (owned by the caller; NULL: none), and which operands it holds.
Status conv_primitive(const OpCall *call, const PackContext *context, DnnlPrimitive **out_primitive, uint64_t *out_baked);
Status linear_primitive(const OpCall *call, const PackContext *context, DnnlPrimitive **out_primitive, uint64_t *out_baked);
