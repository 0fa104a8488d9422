// SPDX-License-Identifier: Apache-2.0
// Implementations chosen for programs: the pack functions of rows whose weights are constant. Each leaves Packed.run NULL when nothing
// faster than the row's own kernel is at hand.
#pragma once
#include "core/kernels/dnnl/winograd.h"
#include "core/ops/op.h"

Status conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed);   // rows of conv.c
Status linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed); // aten::linear
Status addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);  // aten::addmm
Status mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);     // aten::mm, aten::bmm, aten::matmul of matrices

// The same choice for rows that do more afterwards: an implementation without an epilogue. Neither: none.
typedef struct PackedProduct {
        DnnlPrimitive *primitive; // one of the two, owned by whoever asked
        Winograd *winograd;
        uint64_t baked; // operands that it holds
} PackedProduct;

Status conv_product_new(const OpCall *call, const PackContext *context, PackedProduct *out_product);
Status linear_product_new(const OpCall *call, const PackContext *context, PackedProduct *out_product);
void packed_product_deinit(PackedProduct *product);
static inline bool packed_product_exists(const PackedProduct *product)
{
        return product->primitive != NULL || product->winograd != NULL;
}
const char *packed_product_name(const PackedProduct *product);
size_t packed_product_scratch(const PackedProduct *product);
Status packed_product_run(const PackedProduct *product, const OpRun *run); // input and result are the first of each
