// SPDX-License-Identifier: Apache-2.0
// Two steps: a read-only storage of just the range, so that a write copies no more than that, and
// the run's own shell over it.
#include "api/formats/borrow.h"

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
