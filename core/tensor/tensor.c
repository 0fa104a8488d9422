// SPDX-License-Identifier: Apache-2.0
// tensor.c: a tensor is a meta, an offset and a counted storage. Views share the storage and
// nothing else.
#include "core/tensor/tensor.h"

#include <inttypes.h>

Status tensor_new(const TensorMeta *meta, Budget *budget, Tensor **out_tensor)
{
        int64_t n_elements, n_bytes;
        TRY(meta_span(meta, &n_elements));
        if (!mul_i64(n_elements, dtype_info[meta->dtype].bytes, &n_bytes))
                return fail(STATUS_TOO_LARGE, "a tensor of %" PRId64 " elements is over --max-run-memory",
                            n_elements);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new((size_t)n_bytes, false, budget, &storage));
        return tensor_new_view(storage, meta, 0, out_tensor);
}

Status tensor_new_view(Storage *storage, const TensorMeta *meta, int64_t offset, Tensor **out_tensor)
{
        Tensor *tensor = malloc(sizeof(*tensor));
        if (tensor == NULL)
                return fail_memory();
        refcount_init(&tensor->ref);
        tensor->conj = tensor->negative = false;
        tensor->meta = *meta;
        tensor->storage = storage == NULL ? NULL : storage_ref(storage);
        tensor->offset = offset;
        tensor->tag = NULL;
        *out_tensor = tensor;
        return STATUS_OK;
}

Status tensor_check_bounds(const TensorMeta *meta, int64_t offset, size_t storage_bytes)
{
        int64_t n_elements, end, n_bytes;
        TRY(meta_span(meta, &n_elements));
        if (offset < 0)
                return fail(STATUS_MALFORMED, "a tensor starts before its storage: offset %" PRId64, offset);
        // PyTorch lets an empty tensor have any offset; no element of it is ever read.
        if (n_elements == 0)
                return STATUS_OK;
        if (!add_i64(offset, n_elements, &end) || !mul_i64(end, dtype_info[meta->dtype].bytes, &n_bytes) ||
            (uint64_t)n_bytes > storage_bytes) {
                char text[256];
                return fail(STATUS_MALFORMED,
                            "a tensor of shape %s at offset %" PRId64
                            " needs more than the %zu bytes of its storage",
                            shape_text(meta->rank, meta->size, text, sizeof(text)), offset, storage_bytes);
        }
        return STATUS_OK;
}

Tensor *tensor_ref(Tensor *tensor)
{
        refcount_get(&tensor->ref);
        return tensor;
}

Tensor *tensor_unref(Tensor *tensor)
{
        if (tensor != NULL && refcount_put(&tensor->ref)) {
                storage_unref(tensor->storage);
                free(tensor);
        }
        return NULL;
}

Status tensor_contiguous(Tensor *tensor, Budget *budget, Tensor **out_tensor)
{
        if (meta_is_contiguous(&tensor->meta)) {
                *out_tensor = tensor_ref(tensor);
                return STATUS_OK;
        }
        TensorMeta meta = tensor->meta;
        meta_set_contiguous(&meta);
        Tensor *copy;
        TRY(tensor_new(&meta, budget, &copy));
        tensor_copy_data(tensor, copy);
        *out_tensor = copy;
        return STATUS_OK;
}

static Status check_one_element(const Tensor *tensor)
{
        int64_t numel = meta_numel(&tensor->meta);
        if (numel != 1)
                return fail(STATUS_VALUE, "a Tensor with %" PRId64 " elements cannot be converted to Scalar",
                            numel);
        return STATUS_OK;
}

Status tensor_item_f64(const Tensor *tensor, double *out)
{
        TRY(check_one_element(tensor));
        *out = element_as_f64(tensor->meta.dtype, tensor_data(tensor));
        return STATUS_OK;
}

Status tensor_item_i64(const Tensor *tensor, int64_t *out)
{
        TRY(check_one_element(tensor));
        *out = element_as_i64(tensor->meta.dtype, tensor_data(tensor));
        return STATUS_OK;
}
