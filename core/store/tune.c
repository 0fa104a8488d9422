// SPDX-License-Identifier: Apache-2.0
// Tune records: tunes/<store_tune_id of a version> is the text, closed by a line `checksum <sha256
// of all bytes before it>`. They only save work: a damaged one counts as absent, and failing to
// remove one leaves an orphan, which the next start removes.
#include <string.h>
#include <unistd.h>
#include "core/store/store_private.h"

enum { TUNE_MAX_BYTES = 16 << 20, CHECKSUM_LINE = 9 + HASH_HEX_BYTES }; // "checksum " hex "\n"

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
        if (text.n > TUNE_MAX_BYTES)
                return fail(STATUS_TOO_LARGE, "a tune record of %zu bytes", text.n);
        _cleanup_(text_deinit) Text record = { 0 };
        text_add_n(&record, (const char *)text.data, text.n);
        text_addf(&record, "checksum %s\n", sha256_of(text.data, text.n).hex);
        TRY(text_status(&record));
        pthread_mutex_lock(&store->writing);
        Status status = folder_write(store->tmp, store->tunes, id->hex,
                                     (ByteSpan){ (const uint8_t *)record.data, record.n }, 0600);
        pthread_mutex_unlock(&store->writing);
        return status;
}

Status store_get_tune(Store *store, const HashHex *id, Text *out)
{
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        bool missing;
        Status status =
                folder_read(store->tunes, id->hex, TUNE_MAX_BYTES + CHECKSUM_LINE, &text, &n, &missing);
        if (status == STATUS_NO_MEMORY)
                return status;
        if (status != STATUS_OK || missing || n < CHECKSUM_LINE ||
            memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return STATUS_OK;
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        if (memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) == 0 && text[n - 1] == '\n')
                text_add_n(out, text, n - CHECKSUM_LINE);
        return text_status(out);
}
