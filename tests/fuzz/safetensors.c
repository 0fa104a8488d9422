// SPDX-License-Identifier: Apache-2.0
// safetensors files, copied and borrowed: every tensor's bytes must lie within the file and be
// readable.
#include "api/formats/safetensors.h"
#include "tests/fuzz/fuzz.h"

static Status read_one(Storage *storage, Storage *borrow)
{
        Safetensors file = { 0 };
        TRY(safetensors_read((ByteSpan){ storage->data, storage->n_bytes }, borrow, &file));
        size_t total = 0;
        volatile uint8_t seen = 0;
        for (uint32_t i = 0; i < file.n_entries; i++) {
                const Tensor *tensor = file.entries[i].tensor;
                size_t n = (size_t)meta_numel(&tensor->meta) * (size_t)dtype_info[tensor->meta.dtype].bytes;
                const uint8_t *bytes = tensor_data(tensor);
                require(safetensors_find(&file, file.entries[i].name) == tensor, "%s is not found",
                        file.entries[i].name);
                if (n > 0)
                        seen = (uint8_t)(seen ^ bytes[0] ^ bytes[n - 1]);
                total += n;
        }
        require(total <= storage->n_bytes, "tensors of %zu bytes in a file of %zu", total, storage->n_bytes);
        safetensors_deinit(&file);
        return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        Storage *storage = fuzz_storage(data, n);
        Status copied = read_one(storage, NULL);
        if (copied != STATUS_OK)
                require_told(copied);
        Status borrowed = read_one(storage, storage);
        require(copied == borrowed, "copied: %s, borrowed: %s", status_code(copied), status_code(borrowed));
        storage_unref(storage);
        return 0;
}
