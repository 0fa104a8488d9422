// SPDX-License-Identifier: Apache-2.0
// oneDNN 3: primitive descriptors are made from their parts, memory descriptors are opaque.
#include <stdlib.h>
#include "core/kernels/dnnl/generation.h"

Layout layout_by_strides(int rank, const dnnl_dims_t size, const dnnl_dims_t stride)
{
        Layout layout = NULL;
        return dnnl_memory_desc_create_with_strides(&layout, rank, size, dnnl_f32, stride) == dnnl_success
                       ? layout
                       : NULL;
}

Layout layout_by_tag(int rank, const dnnl_dims_t size, dnnl_format_tag_t tag)
{
        Layout layout = NULL;
        return dnnl_memory_desc_create_with_tag(&layout, rank, size, dnnl_f32, tag) == dnnl_success ? layout
                                                                                                    : NULL;
}

void layout_free(Layout layout)
{
        if (layout != NULL)
                dnnl_memory_desc_destroy(layout);
}

static Status hash_blob(Sha256 *sha, LayoutView layout)
{
        size_t n = 0;
        if (dnnl_memory_desc_get_blob(NULL, &n, layout) != dnnl_success)
                return fail(STATUS_INTERNAL, "oneDNN does not tell the size of a memory descriptor");
        uint8_t *blob = malloc(n);
        bool ok = blob != NULL && dnnl_memory_desc_get_blob(blob, &n, layout) == dnnl_success;
        if (ok)
                sha256_add(sha, blob, n);
        free(blob);
        return ok ? STATUS_OK : fail_memory();
}

// A blob is the library's own struct, with undefined padding bytes. Layouts of the usual kind are
// identified by their queried fields instead.
Status layout_hash(Sha256 *sha, LayoutView layout)
{
        static const dnnl_query_t vectors[] = { dnnl_query_dims, dnnl_query_padded_dims,
                                                dnnl_query_padded_offsets, dnnl_query_strides },
                                  blocks[] = { dnnl_query_inner_blks, dnnl_query_inner_idxs };
        int32_t rank = 0, n_blocks = 0;
        int64_t offset = 0;
        dnnl_data_type_t dtype = dnnl_data_type_undef;
        dnnl_format_kind_t kind = dnnl_format_kind_undef;
        const dnnl_dims_t *vector = NULL;
        if (dnnl_memory_desc_query(layout, dnnl_query_format_kind, &kind) != dnnl_success ||
            kind != dnnl_blocked)
                return hash_blob(sha, layout);
        bool ok = dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank) == dnnl_success &&
                  dnnl_memory_desc_query(layout, dnnl_query_data_type, &dtype) == dnnl_success &&
                  dnnl_memory_desc_query(layout, dnnl_query_submemory_offset_s64, &offset) == dnnl_success &&
                  dnnl_memory_desc_query(layout, dnnl_query_inner_nblks_s32, &n_blocks) == dnnl_success;
        int64_t head[] = { rank, (int64_t)dtype, offset, n_blocks };
        sha256_add(sha, head, sizeof(head));
        for (size_t i = 0; i < ARRAY_LENGTH(vectors) && ok; i++) {
                ok = dnnl_memory_desc_query(layout, vectors[i], &vector) == dnnl_success;
                if (ok)
                        sha256_add(sha, *vector, (size_t)rank * sizeof(dnnl_dim_t));
        }
        for (size_t i = 0; i < ARRAY_LENGTH(blocks) && ok && n_blocks > 0; i++) {
                ok = dnnl_memory_desc_query(layout, blocks[i], &vector) == dnnl_success;
                if (ok)
                        sha256_add(sha, *vector, (size_t)n_blocks * sizeof(dnnl_dim_t));
        }
        return ok ? STATUS_OK : fail(STATUS_INTERNAL, "oneDNN does not describe a memory descriptor");
}

dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
        return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta)
{
        return dnnl_post_ops_append_eltwise(ops, kind, alpha, beta);
}

dnnl_status_t append_hardswish(dnnl_post_ops_t ops)
{
        return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
}

dnnl_status_t conv_desc_new(dnnl_engine_t engine, const ConvLayouts *conv, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *out)
{
        return dnnl_convolution_forward_primitive_desc_create(
                out, engine, dnnl_forward_inference, dnnl_convolution_direct, conv->input, conv->weight,
                conv->bias, conv->out, conv->strides, conv->dilates, conv->before, conv->after, attributes);
}

dnnl_status_t matmul_desc_new(dnnl_engine_t engine, const MatmulLayouts *matmul,
                              dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *out)
{
        return dnnl_matmul_primitive_desc_create(out, engine, matmul->a, matmul->b, matmul->bias, matmul->out,
                                                 attributes);
}
