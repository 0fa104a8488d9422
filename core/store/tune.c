// SPDX-License-Identifier: Apache-2.0
// Tune records: tunes/<store_tune_id of a version> is the text (checked.h). They only save work: a
// damaged one counts as absent, and failing to remove one leaves an orphan, which the next start
// removes.
#include <string.h>
#include <unistd.h>
#include "core/store/checked.h"

HashHex store_tune_id(const StoreVersion *version)
{
        Sha256 sha;
        if (version->model[0] == '\0')
                return version->id;
        sha256_start(&sha);
        sha256_add(&sha, version->id.hex, sizeof(version->id.hex));
        sha256_add(&sha, version->model, strlen(version->model));
        return sha256_finish(&sha);
}

void store_remove_tune(Store *store, const HashHex *id)
{
        pthread_mutex_lock(&store->writing);
        if (!store->keep_orphans)
                unlinkat(store->tunes, id->hex, 0);
        pthread_mutex_unlock(&store->writing);
}

Status store_put_tune(Store *store, const HashHex *id, ByteSpan text)
{
        return checked_write(store, store->tunes, id->hex, text);
}

Status store_get_tune(Store *store, const HashHex *id, Text *out)
{
        bool found;
        return checked_read(store->tunes, id->hex, out, &found);
}
