// SPDX-License-Identifier: Apache-2.0
// Implementations chosen for programs: the pack functions of rows whose weights are constant. Each
// leaves Packed.run NULL when nothing faster than the row's own kernel is at hand.
#pragma once
#include "core/kernels/conv/direct.h"
#include "core/kernels/pointwise/pointwise.h"
#include "core/ops/op.h"

Status conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed);   // rows of conv.c
Status linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed); // aten::linear
Status addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);  // aten::addmm
// aten::mm, aten::bmm, aten::matmul of matrices
Status mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);

// The same choice for the fused rows.
typedef struct PackedProduct PackedProduct;
typedef struct ProductAlgorithm { // an implementation: the functions for `impl`
        const char *algorithm;
        bool finishes; // adds the residual and clamps; otherwise the caller does
        Status (*run)(const PackedProduct *product, const OpRun *run, const float *residual);
        void (*free)(void *impl);
        // runs a pointwise row over the results, after residual and clamp; NULL: the caller does
        void (*then)(void *impl, const PointAfter *after);
} ProductAlgorithm;
struct PackedProduct {
        const ProductAlgorithm *kind; // NULL: none
        void *impl;                   // owned by the caller
        const char *name;             // lives as long as impl
        size_t scratch_bytes;
        uint64_t baked; // operands that it holds
};

// `clamp`: to be applied after the residual; kinds that finish apply it.
Status conv_product_new(const OpCall *call, const PackContext *context, const DirectClamp *clamp,
                        PackedProduct *out_product);
Status linear_product_new(const OpCall *call, const PackContext *context, const DirectClamp *clamp,
                          PackedProduct *out_product);
void packed_product_deinit(PackedProduct *product);
// Input and result are the first of each. `residual`: laid out as the result; only for kinds that
// finish; NULL: none.
static inline Status packed_product_run(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return product->kind->run(product, run, residual);
}
