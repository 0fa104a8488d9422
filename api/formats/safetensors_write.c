// SPDX-License-Identifier: Apache-2.0
// safetensors_write.c: u64 header length, JSON header padded with blanks, data without gaps. Wider
// elements come first, so that every tensor is aligned without padding between them, which the
// format forbids.
#include "api/formats/safetensors_write.h"
#include <string.h>

enum { LENGTH_BYTES = 8, DATA_ALIGN = 64 };

static size_t n_bytes_of(const Tensor *tensor)
{
        return (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes;
}

static void write_entry(const NamedTensor *named, size_t begin, Text *out)
{
        const TensorMeta *meta = &named->tensor->meta;
        text_add_json(out, named->name);
        text_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", dtype_info[meta->dtype].safetensors);
        for (int d = 0; d < meta->rank; d++)
                text_addf(out, "%s%lld", d == 0 ? "" : ",", (long long)meta->size[d]);
        text_addf(out, "],\"data_offsets\":[%zu,%zu]}", begin, begin + n_bytes_of(named->tensor));
}

// Indices of tensors, wider elements first, else in the order given.
static void sort_by_width(const NamedTensor *tensors, uint32_t n, uint32_t *order)
{
        uint32_t at = 0;
        for (uint8_t width = 16; width > 0; width /= 2)
                for (uint32_t i = 0; i < n; i++)
                        if (dtype_info[tensors[i].tensor->meta.dtype].bytes == width)
                                order[at++] = i;
}

static Status check_tensors(const NamedTensor *tensors, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                if (strcmp(tensors[i].name, "__metadata__") == 0)
                        return fail(STATUS_NOT_ACCEPTABLE,
                                    "safetensors keep the name __metadata__ for themselves; ask for as=npz");
                if (dtype_info[tensors[i].tensor->meta.dtype].safetensors == NULL)
                        return fail(STATUS_NOT_ACCEPTABLE,
                                    "safetensors has no dtype %s, which \"%.100s\" is; ask for as=npz",
                                    dtype_info[tensors[i].tensor->meta.dtype].name, tensors[i].name);
        }
        return STATUS_OK;
}

// The head with its tensors in this order. *begins: where their bytes are in the file.
static Status write_head(const NamedTensor *tensors, const uint32_t *order, uint32_t n, Text *out,
                         size_t *begins)
{
        size_t begin = 0, start = out->n;
        text_add_n(out, "\0\0\0\0\0\0\0\0", LENGTH_BYTES);
        text_add_char(out, '{');
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ",");
                write_entry(&tensors[order[i]], begin, out);
                begins[order[i]] = begin;
                begin += n_bytes_of(tensors[order[i]].tensor);
        }
        text_add_char(out, '}');
        text_repeat(out, ' ', (DATA_ALIGN - (out->n - start) % DATA_ALIGN) % DATA_ALIGN);
        TRY(text_status(out));
        size_t n_head = out->n - start;
        for (int i = 0; i < LENGTH_BYTES; i++)
                out->data[start + (size_t)i] = (char)((uint64_t)(n_head - LENGTH_BYTES) >> (8 * i) & 0xff);
        for (uint32_t i = 0; i < n; i++)
                begins[i] += n_head;
        return STATUS_OK;
}

Status safetensors_head(const NamedTensor *tensors, uint32_t n, Text *out, size_t *out_begins)
{
        TRY(check_tensors(tensors, n));
        _cleanup_(freep) uint32_t *order = new_array(n, sizeof(*order));
        if (order == NULL)
                return fail_memory();
        sort_by_width(tensors, n, order);
        return write_head(tensors, order, n, out, out_begins);
}

Status safetensors_write(const NamedTensor *tensors, uint32_t n, ApiReply *reply)
{
        TRY(check_tensors(tensors, n));
        _cleanup_(freep) uint32_t *order = new_array(n, sizeof(*order));
        _cleanup_(freep) size_t *begins = new_array(n, sizeof(*begins));
        if (order == NULL || begins == NULL)
                return fail_memory();
        sort_by_width(tensors, n, order);
        TRY(write_head(tensors, order, n, &reply->body, begins));
        for (uint32_t i = 0; i < n; i++) {
                const Tensor *tensor = tensors[order[i]].tensor;
                TRY(api_reply_piece(reply, tensor->storage, tensor_data(tensor), n_bytes_of(tensor)));
        }
        return STATUS_OK;
}
