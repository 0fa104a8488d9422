// SPDX-License-Identifier: Apache-2.0
// Replies that are not JSON. Each output is one array; a number or flag becomes an array without
// dimensions (int64, float64, bool), as numpy.asarray makes of it; None is left out. Arrays that
// are not contiguous are made so first; no byte is copied otherwise.
#include <string.h>
#include "api/formats/accept.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/run/run_private.h"
#include "api/formats/safetensors_write.h"

// ---- Accept ----
typedef struct MediaName {
        const char *name;
        RunAs as;
} MediaName;
static const MediaName media_names[] = {
        { "application/json", RUN_AS_JSON },
        { "*/*", RUN_AS_JSON },
        { "application/*", RUN_AS_JSON },
        { "application/x-npy", RUN_AS_NPY },
        { "application/x-npz", RUN_AS_NPZ },
        { "application/x-safetensors", RUN_AS_SAFETENSORS },
        { "application/vnd.safetensors", RUN_AS_SAFETENSORS },
};

RunAs run_as_accepted(const char *accept)
{
        RunAs best = RUN_AS_JSON;
        int best_quality = 0;
        AcceptItem item;
        while (accept_next(&accept, &item)) {
                for (size_t i = 0; i < ARRAY_LENGTH(media_names); i++) {
                        if (accept_is(&item, media_names[i].name) && item.quality > best_quality) {
                                best = media_names[i].as;
                                best_quality = item.quality;
                        }
                }
        }
        return best;
}

// ---- arrays ----
static Status number_tensor(Dtype dtype, const void *item, Tensor **out_tensor)
{
        TensorMeta meta;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        meta_init(&meta, dtype, 0, NULL);
        TRY(tensor_new(&meta, NULL, &tensor));
        memcpy(tensor_data(tensor), item, dtype_info[dtype].bytes);
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

static Status array_of(const OutputLeaf *leaf, Budget *budget, Tensor **out_tensor)
{
        const Value *value = &leaf->value;
        uint8_t flag = value->kind == VALUE_BOOL && value->b;
        switch (value->kind) {
        case VALUE_TENSOR:
                return tensor_contiguous(value->tensor, budget, out_tensor);
        case VALUE_BOOL:
                return number_tensor(DTYPE_BOOL, &flag, out_tensor);
        case VALUE_INT:
                return number_tensor(DTYPE_I64, &value->i, out_tensor);
        case VALUE_FLOAT:
                return number_tensor(DTYPE_F64, &value->f, out_tensor);
        default:
                return fail(STATUS_NOT_ACCEPTABLE,
                            "output \"%.100s\" is a %s, which no binary form holds; ask for as=json, or pick "
                            "tensors with outputs=NODE",
                            leaf->name, value_kind_name(value->kind));
        }
}

static Status write_npy(const NamedTensor *named, ApiReply *reply)
{
        const Tensor *tensor = named->tensor;
        TRY(npy_write_header(&tensor->meta, &reply->body));
        return api_reply_piece(reply, tensor->storage, tensor_data(tensor),
                               (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes);
}

Status run_write_arrays(RunAs as, const NamedTensor *arrays, uint32_t n, ApiReply *reply)
{
        switch (as) {
        case RUN_AS_NPY:
                reply->content_type = "application/x-npy";
                return write_npy(arrays, reply);
        case RUN_AS_NPZ:
                reply->content_type = "application/x-npz";
                return npz_write(arrays, n, reply);
        default:
                reply->content_type = "application/x-safetensors";
                return safetensors_write(arrays, n, reply);
        }
}

static Status fail_count(const OutputList *list, uint32_t n)
{
        if (n == 0 && list->n > 0)
                return fail(STATUS_NOT_ACCEPTABLE,
                            "as=npy holds one array, but no output is one; use as=json");
        return fail(STATUS_NOT_ACCEPTABLE,
                    "as=npy holds one array, but there are %u outputs; pick one with outputs=NODE, or use "
                    "as=npz, as=safetensors or "
                    "as=json",
                    n);
}

// Outputs that are None are left out: no form of arrays has one, and the others are still there.
Status run_write_binary(RunAs as, const OutputList *list, Budget *budget, ApiReply *reply)
{
        NamedTensor *arrays = new_array(list->n, sizeof(*arrays));
        if (arrays == NULL)
                return fail_memory();
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (uint32_t i = 0; i < list->n && status == STATUS_OK; i++) {
                if (list->leaves[i].value.kind == VALUE_NONE)
                        continue;
                arrays[n].name = list->leaves[i].name;
                status = array_of(&list->leaves[i], budget, &arrays[n++].tensor);
        }
        if (status == STATUS_OK && as == RUN_AS_NPY && n != 1)
                status = fail_count(list, n);
        if (status == STATUS_OK)
                status = run_write_arrays(as, arrays, n, reply);
        for (uint32_t i = 0; i < n; i++)
                tensor_unref(arrays[i].tensor);
        free(arrays);
        return status;
}
