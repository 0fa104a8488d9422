// SPDX-License-Identifier: Apache-2.0
// oneDNN 2: primitive descriptors are made from an operation's description, memory descriptors are
// structs.
#include <stdlib.h>
#include <string.h>
#include "core/kernels/dnnl/generation.h"

static Layout layout_new(void)
{
        return calloc(1, sizeof(dnnl_memory_desc_t));
}

static Layout layout_or_free(Layout layout, dnnl_status_t status)
{
        if (status == dnnl_success)
                return layout;
        free(layout);
        return NULL;
}

Layout layout_by_strides(int rank, const dnnl_dims_t size, const dnnl_dims_t stride)
{
        Layout layout = layout_new();
        return layout == NULL ? NULL
                              : layout_or_free(layout, dnnl_memory_desc_init_by_strides(layout, rank, size,
                                                                                        dnnl_f32, stride));
}

Layout layout_by_tag(int rank, const dnnl_dims_t size, dnnl_format_tag_t tag)
{
        Layout layout = layout_new();
        return layout == NULL ? NULL
                              : layout_or_free(layout, dnnl_memory_desc_init_by_tag(layout, rank, size,
                                                                                    dnnl_f32, tag));
}

void layout_free(Layout layout)
{
        free(layout);
}

// Field by field: the padding between them is undefined.
Status layout_hash(Sha256 *sha, LayoutView layout)
{
        const dnnl_blocking_desc_t *blocks = &layout->format_desc.blocking;
        size_t rank_bytes = (size_t)layout->ndims * sizeof(dnnl_dim_t);
        if (layout->format_kind != dnnl_blocked) {
                sha256_add(sha, layout, sizeof(*layout));
                return STATUS_OK;
        }
        int64_t head[] = { layout->ndims, (int64_t)layout->data_type, layout->offset0, blocks->inner_nblks };
        sha256_add(sha, head, sizeof(head));
        sha256_add(sha, layout->dims, rank_bytes);
        sha256_add(sha, layout->padded_dims, rank_bytes);
        sha256_add(sha, layout->padded_offsets, rank_bytes);
        sha256_add(sha, blocks->strides, rank_bytes);
        sha256_add(sha, blocks->inner_blks, (size_t)blocks->inner_nblks * sizeof(dnnl_dim_t));
        sha256_add(sha, blocks->inner_idxs, (size_t)blocks->inner_nblks * sizeof(dnnl_dim_t));
        return STATUS_OK;
}

dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
        return dnnl_post_ops_append_sum(ops, 1.0f);
}

dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta)
{
        return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, alpha, beta);
}

dnnl_status_t append_hardswish(dnnl_post_ops_t ops)
{
        return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_hardswish, 0.0f, 0.0f);
}

dnnl_status_t conv_desc_new(dnnl_engine_t engine, const ConvLayouts *conv, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *out)
{
        dnnl_convolution_desc_t desc;
        dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
                &desc, dnnl_forward_inference, dnnl_convolution_direct, conv->input, conv->weight, conv->bias,
                conv->out, conv->strides, conv->dilates, conv->before, conv->after);
        return status == dnnl_success ? dnnl_primitive_desc_create(out, &desc, attributes, engine, NULL)
                                      : status;
}

dnnl_status_t matmul_desc_new(dnnl_engine_t engine, const MatmulLayouts *matmul,
                              dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *out)
{
        dnnl_matmul_desc_t desc;
        dnnl_status_t status = dnnl_matmul_desc_init(&desc, matmul->a, matmul->b, matmul->bias, matmul->out);
        return status == dnnl_success ? dnnl_primitive_desc_create(out, &desc, attributes, engine, NULL)
                                      : status;
}
