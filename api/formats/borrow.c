// SPDX-License-Identifier: Apache-2.0
// Two steps: a read-only storage of just the range, so that a write copies no more than that, and
// the run's own shell over it.
#include "api/formats/borrow.h"
#include <string.h>

static void release_bytes(void *owner, void *data)
{
        (void)data;
        storage_unref(owner);
}

Status borrow_storage(Storage *bytes, ByteSpan range, Budget *budget, Storage **out_shell)
{
        _cleanup_(storage_unrefp) Storage *part = NULL;
        Storage *owner = storage_ref(bytes);
        Status status =
                storage_adopt((void *)(uintptr_t)range.data, range.n, true, release_bytes, owner, &part);
        if (status != STATUS_OK) {
                storage_unref(owner);
                return status;
        }
        return storage_shell(part, budget, out_shell);
}

static Status copy_tensor(ByteSpan content, const TensorMeta *meta, Budget *budget, Tensor **out_tensor)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(tensor_new(meta, budget, &tensor));
        for (size_t i = 0; meta->dtype == DTYPE_BOOL && i < content.n; i++)
                if (content.data[i] > 1)
                        return fail(STATUS_VALUE, "byte 0x%02x at %zu: bytes of a bool tensor are 0 or 1",
                                    content.data[i], i);
        if (content.n > 0)
                memcpy(tensor_data(tensor), content.data, content.n);
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

Status borrow_tensor(Storage *bytes, ByteSpan content, const TensorMeta *meta, Budget *budget,
                     Tensor **out_tensor)
{
        _cleanup_(storage_unrefp) Storage *shell = NULL;
        bool aligned = (uintptr_t)content.data % dtype_info[meta->dtype].bytes == 0;
        if (content.n == 0 || !aligned || meta->dtype == DTYPE_BOOL)
                return copy_tensor(content, meta, budget, out_tensor);
        TRY(borrow_storage(bytes, content, budget, &shell));
        return tensor_new_view(shell, meta, 0, out_tensor);
}
