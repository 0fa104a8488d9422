// SPDX-License-Identifier: Apache-2.0
// pass.c: saved passes: passes/<name> is the text that was saved under that name (checked.h). A
// damaged one counts as absent; the next one of its name replaces it.
#include "core/store/checked.h"

Status store_put_pass(Store *store, const char *name, ByteSpan text)
{
        return checked_write(store, store->passes, name, text);
}

Status store_remove_pass(Store *store, const char *name)
{
        pthread_mutex_lock(&store->writing);
        Status status = folder_remove(store->passes, name);
        pthread_mutex_unlock(&store->writing);
        return status;
}

typedef struct Visiting {
        Store *store;
        StorePassVisit visit;
        void *context;
} Visiting;

static Status visit_pass(void *context, const char *name)
{
        const Visiting *visiting = context;
        bool found;
        _cleanup_(text_deinit) Text text = { 0 };
        TRY(checked_read(visiting->store->passes, name, &text, &found));
        if (!found) {
                store_say(visiting->store, "a saved pass is damaged and counts as absent");
                return STATUS_OK;
        }
        return visiting->visit(visiting->context, name, (ByteSpan){ (const uint8_t *)text.data, text.n });
}

Status store_each_pass(Store *store, StorePassVisit visit, void *context)
{
        Visiting visiting = { store, visit, context };
        return folder_each(store->passes, visit_pass, &visiting);
}
