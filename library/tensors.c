// SPDX-License-Identifier: Apache-2.0
#include "library/tensors.h"
#include <string.h>
#include "core/base/memory.h"

// ---- dtypes ----
static uint8_t code_of(Dtype dtype)
{
        static const uint8_t by_kind[] = { [DTYPE_KIND_BOOL] = kDLBool,
                                           [DTYPE_KIND_INT] = kDLInt,
                                           [DTYPE_KIND_FLOAT] = kDLFloat,
                                           [DTYPE_KIND_COMPLEX] = kDLComplex };
        static const uint8_t others[DTYPE_COUNT] = { [DTYPE_BF16] = kDLBfloat,
                                                     [DTYPE_F8E4M3FN] = kDLFloat8_e4m3fn,
                                                     [DTYPE_F8E5M2] = kDLFloat8_e5m2,
                                                     [DTYPE_F8E4M3FNUZ] = kDLFloat8_e4m3fnuz,
                                                     [DTYPE_F8E5M2FNUZ] = kDLFloat8_e5m2fnuz,
                                                     [DTYPE_F8E8M0FNU] = kDLFloat8_e8m0fnu };
        if (others[dtype] != 0)
                return others[dtype];
        bool is_unsigned =
                dtype == DTYPE_U8 || dtype == DTYPE_U16 || dtype == DTYPE_U32 || dtype == DTYPE_U64;
        return is_unsigned ? kDLUInt : by_kind[dtype_info[dtype].kind];
}

DLDataType dtype_to_dl(Dtype dtype)
{
        if (dtype == DTYPE_NONE)
                return (DLDataType){ .bits = 0 };
        return (DLDataType){ .code = code_of(dtype),
                             .bits = (uint8_t)(8 * dtype_info[dtype].bytes),
                             .lanes = 1 };
}

Status dtype_from_dl(DLDataType type, Dtype *out_dtype)
{
        for (int d = 0; d < DTYPE_COUNT; d++) {
                DLDataType known = dtype_to_dl((Dtype)d);
                if (type.code == known.code && type.bits == known.bits && type.lanes == 1) {
                        *out_dtype = (Dtype)d;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_INPUT, "no dtype has DLPack's code %d with %d bits and %d lanes", type.code,
                    type.bits, type.lanes);
}

// ---- from DLPack ----
Status meta_from_dl(const DLTensor *from, TensorMeta *out_meta)
{
        Dtype dtype;
        int64_t numel;
        if (from->device.device_type != kDLCPU)
                return fail(STATUS_INPUT,
                            "a tensor is on device %d of DLPack; only the CPU's (1) can be read",
                            (int)from->device.device_type);
        if (from->ndim < 0 || from->ndim > MAX_RANK || (from->ndim > 0 && from->shape == NULL))
                return fail(STATUS_INPUT, "a tensor has %d dimensions; 0 to %d are possible", (int)from->ndim,
                            MAX_RANK);
        TRY(dtype_from_dl(from->dtype, &dtype));
        TRY(shape_numel(from->ndim, from->shape, &numel));
        meta_init(out_meta, dtype, from->ndim, from->shape);
        for (int i = 0; from->strides != NULL && i < from->ndim; i++) {
                if (from->strides[i] < 0)
                        return fail(STATUS_INPUT, "a tensor has a negative stride; make it contiguous first");
                out_meta->stride[i] = from->strides[i];
        }
        return STATUS_OK;
}

static void keep(void *owner, void *data) // the caller's bytes
{
        (void)owner;
        (void)data;
}

// A view of the caller's bytes, for the copy only.
static Status view_of_dl(const DLTensor *from, const TensorMeta *meta, Tensor **out_view)
{
        int64_t span;
        size_t n_bytes, each = dtype_info[meta->dtype].bytes, aligned = MIN(each, sizeof(double));
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(meta_span(meta, &span));
        uint8_t *data = (uint8_t *)from->data + from->byte_offset;
        if (!mul_size((size_t)span, each, &n_bytes))
                return fail(STATUS_TOO_LARGE, "the strides of a tensor span more bytes than there can be");
        if (from->data == NULL || (uintptr_t)data % aligned != 0)
                return fail(STATUS_INPUT, "a tensor's data is %s",
                            from->data == NULL ? "NULL" : "not aligned");
        TRY(storage_adopt(data, n_bytes, true, keep, NULL, &storage));
        return tensor_new_view(storage, meta, 0, out_view);
}

Status tensor_from_dl(const DLTensor *from, Budget *budget, Tensor **out_tensor)
{
        TensorMeta meta, dense;
        _cleanup_(tensor_unrefp) Tensor *view = NULL, *copy = NULL;
        TRY(meta_from_dl(from, &meta));
        dense = meta;
        meta_set_contiguous(&dense);
        TRY(tensor_new(&dense, budget, &copy));
        if (meta_numel(&meta) > 0) {
                TRY(view_of_dl(from, &meta, &view));
                tensor_copy_data(view, copy);
        }
        *out_tensor = take_ptr(copy);
        return STATUS_OK;
}

// ---- to DLPack ----
typedef struct Managed {
        DLManagedTensor managed; // first: its address is this one's
        Tensor *tensor;          // counted
        int64_t shape[MAX_RANK], stride[MAX_RANK];
} Managed;

static void managed_free(DLManagedTensor *self)
{
        if (self == NULL)
                return;
        Managed *managed = self->manager_ctx;
        tensor_unref(managed->tensor);
        free(managed);
}

Status tensor_to_dl(Tensor *tensor, DLManagedTensor **out_managed)
{
        Managed *made = calloc(1, sizeof(*made));
        if (made == NULL)
                return fail_memory();
        made->tensor = tensor_ref(tensor);
        memcpy(made->shape, tensor->meta.size, sizeof(made->shape));
        memcpy(made->stride, tensor->meta.stride, sizeof(made->stride));
        made->managed = (DLManagedTensor){ .dl_tensor = { .data = tensor_data(tensor),
                                                          .device = { kDLCPU, 0 },
                                                          .ndim = tensor->meta.rank,
                                                          .dtype = dtype_to_dl(tensor->meta.dtype),
                                                          .shape = made->shape,
                                                          .strides = made->stride },
                                           .manager_ctx = made,
                                           .deleter = managed_free };
        *out_managed = &made->managed;
        return STATUS_OK;
}

DLManagedTensor *fxserve_tensor(DLDataType dtype, int ndim, const int64_t *shape)
{
        DLTensor wanted = {
                .device = { kDLCPU, 0 }, .ndim = ndim, .dtype = dtype, .shape = (int64_t *)shape
        };
        DLManagedTensor *managed = NULL;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TensorMeta meta;
        if (meta_from_dl(&wanted, &meta) != STATUS_OK || tensor_new(&meta, NULL, &tensor) != STATUS_OK)
                return NULL;
        if (tensor->storage->n_bytes > 0)
                memset(tensor->storage->data, 0, tensor->storage->n_bytes);
        (void)tensor_to_dl(tensor, &managed);
        return managed;
}
