// SPDX-License-Identifier: Apache-2.0
// The API differences of oneDNN 2 and 3; meson.build takes generation2.c or generation3.c. A
// layout is the library's memory descriptor: a struct in 2, opaque in 3.
#pragma once
#include <dnnl.h>
#include "core/base/hash.h"
#include "core/kernels/dnnl/primitive.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t Layout;           // owned by whoever made it
typedef const_dnnl_memory_desc_t LayoutView; // borrowed, from a layout or from a primitive descriptor
#else
typedef dnnl_memory_desc_t *Layout;
typedef const dnnl_memory_desc_t *LayoutView;
#endif

typedef struct ConvLayouts {
        LayoutView input, weight, bias, out; // bias NULL: none
        const int64_t *strides, *dilates, *before, *after;
} ConvLayouts;

typedef struct MatmulLayouts {
        LayoutView a, b, bias, out; // bias NULL: none
} MatmulLayouts;

// float32. NULL: not a layout that oneDNN can describe (elements overlap), or no memory.
Layout layout_by_strides(int rank, const dnnl_dims_t size, const dnnl_dims_t stride);
Layout layout_by_tag(int rank, const dnnl_dims_t size, dnnl_format_tag_t tag);
void layout_free(Layout layout); // NULL-safe
// Hashes everything that distinguishes this layout from others.
Status layout_hash(Sha256 *sha, LayoutView layout);

dnnl_status_t append_sum(dnnl_post_ops_t ops);
dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta);
// x * clip(x / 6 + 1 / 2, 0, 1)
dnnl_status_t append_hardswish(dnnl_post_ops_t ops);

// Forward inference; a status other than dnnl_success when there is no implementation.
dnnl_status_t conv_desc_new(dnnl_engine_t engine, const ConvLayouts *conv, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *out);
dnnl_status_t matmul_desc_new(dnnl_engine_t engine, const MatmulLayouts *matmul,
                              dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *out);
