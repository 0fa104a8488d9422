// SPDX-License-Identifier: Apache-2.0
// Replies that are not JSON. Each output is one array; a number or flag becomes an array without
// dimensions (int64, float64, bool), as numpy.asarray makes of it; None is left out. Arrays that
// are not contiguous are made so first; no byte is copied otherwise.
#include <string.h>
#include "api/formats/npy.h"
#include "api/run/run_private.h"

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

Status run_output_array(const OutputLeaf *leaf, Budget *budget, Tensor **out_tensor)
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

Status npy_write(const NamedTensor *arrays, uint32_t n, ApiReply *reply)
{
        const Tensor *tensor = arrays[0].tensor;
        if (n != 1)
                return fail(STATUS_INTERNAL, "%u arrays in one .npy", n);
        TRY(npy_write_header(&tensor->meta, &reply->body));
        return api_reply_piece(reply, tensor->storage, tensor_data(tensor),
                               (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes);
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
static Status write_arrays(RunCall *run, const OutputList *list, NamedTensor *arrays, ApiReply *reply)
{
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (uint32_t i = 0; i < list->n && status == STATUS_OK; i++) {
                if (list->leaves[i].value.kind == VALUE_NONE)
                        continue;
                arrays[n].name = list->leaves[i].name;
                status = run_output_array(&list->leaves[i], &run->task.budget, &arrays[n++].tensor);
        }
        if (status == STATUS_OK && run->replies->write == npy_write && n != 1)
                status = fail_count(list, n);
        if (status == STATUS_OK)
                status = codec_write(run->replies, arrays, n, reply);
        for (uint32_t i = 0; i < n; i++)
                tensor_unref(arrays[i].tensor);
        return status;
}

Status arrays_encode(RunCall *run, const OutputList *list, ApiReply *reply)
{
        if (run->top > 0)
                return fail(STATUS_NOT_ACCEPTABLE, "\"top\" has no binary form; ask for as=json");
        NamedTensor *arrays = new_array(list->n, sizeof(*arrays));
        if (arrays == NULL)
                return fail_memory();
        Status status = write_arrays(run, list, arrays, reply);
        free(arrays);
        TRY(status);
        run_stamp(run);
        run_add_headers(run, reply);
        return run_check_reply(api_reply_bytes(reply));
}
