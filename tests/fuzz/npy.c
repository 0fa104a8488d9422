// SPDX-License-Identifier: Apache-2.0
// .npy files: read, written, and read again to the same bytes.
#include "api/formats/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        Storage *storage = fuzz_storage(data, n);
        Tensor *tensor = NULL, *again = NULL;
        Text written = { 0 };
        Budget budget;
        budget_init(&budget, 1 << 26);
        npy_is((ByteSpan){ storage->data, n });
        Status status = npy_read((ByteSpan){ storage->data, n }, NULL, &budget, &tensor);
        if (status != STATUS_OK) {
                require_told(status);
        } else {
                size_t n_bytes =
                        (size_t)meta_numel(&tensor->meta) * (size_t)dtype_info[tensor->meta.dtype].bytes;
                require(npy_write_header(&tensor->meta, &written) == STATUS_OK, "read, but not written: %s",
                        failure_current()->message);
                text_add_n(&written, tensor_data(tensor), n_bytes);
                require(text_status(&written) == STATUS_OK, "no room to write");
                status = npy_read((ByteSpan){ (const uint8_t *)written.data, written.n }, NULL, &budget,
                                  &again);
                require(status == STATUS_OK, "what was written is not read: %s", failure_current()->message);
                require(meta_same_shape(&tensor->meta, &again->meta) &&
                                tensor->meta.dtype == again->meta.dtype,
                        "another shape or dtype");
                require(n_bytes == 0 || memcmp(tensor_data(tensor), tensor_data(again), n_bytes) == 0,
                        "other bytes");
        }
        text_deinit(&written);
        tensor_unref(tensor);
        tensor_unref(again);
        storage_unref(storage);
        return 0;
}
