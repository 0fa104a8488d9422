// SPDX-License-Identifier: Apache-2.0
// Tune records: tunes/<store_tune_id of a version> is the text, closed by a line `checksum <sha256 of all bytes before it>`. They only save
// work: one that does not check counts as absent, and failing to remove one leaves an orphan, removed at the next start.
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

static bool has_id(const StoreVersion *version, const void *id)
{
        return strcmp(store_tune_id(version).hex, id) == 0;
}

// The same without a hash.
static bool has_content_of(const StoreVersion *version, const void *other)
{
        const StoreVersion *wanted = other;
        return memcmp(version->id.hex, wanted->id.hex, sizeof(wanted->id.hex)) == 0 && strcmp(version->model, wanted->model) == 0;
}

// While writing: nobody else changes the manifests then.
static bool has_version(const Store *store, bool (*is_it)(const StoreVersion *version, const void *what), const void *what)
{
        for (uint32_t i = 0; i < store->manifests.n; i++) {
                const StoreGraph *graph = store->manifests.entries[i].key == NULL ? NULL : store->manifests.entries[i].value;
                for (uint32_t v = 0; graph != NULL && v < graph->n_versions; v++)
                        if (is_it(&graph->versions[v], what))
                                return true;
        }
        return false;
}

// Most versions have no record, and all of a graph's come by with each that is added or removed: whether there is one is asked first.
void tune_remove_unused(Store *store, const StoreGraph *gone)
{
        for (uint32_t i = 0; i < gone->n_versions && !store->keep_orphans; i++) {
                HashHex id = store_tune_id(&gone->versions[i]);
                if (faccessat(store->tunes, id.hex, F_OK, 0) == 0 && !has_version(store, has_content_of, &gone->versions[i]))
                        unlinkat(store->tunes, id.hex, 0);
        }
}

Status tune_remove_orphan(void *context, const char *name)
{
        Store *store = context;
        if (!has_version(store, has_id, name))
                unlinkat(store->tunes, name, 0);
        return STATUS_OK;
}

Status store_put_tune(Store *store, const HashHex *id, ByteSpan text)
{
        if (text.n > TUNE_MAX_BYTES)
                return fail(STATUS_TOO_LARGE, "a tune record of %zu bytes", text.n);
        _cleanup_(text_deinit) Text record = { 0 };
        text_add_n(&record, (const char *)text.data, text.n);
        text_addf(&record, "checksum %s\n", sha256_of(text.data, text.n).hex);
        TRY(text_status(&record));
        Status status = STATUS_OK;
        pthread_mutex_lock(&store->writing);
        if (has_version(store, has_id, id->hex)) // deleted meanwhile: nobody will ask
                status = folder_write(store->tmp, store->tunes, id->hex, (ByteSpan){ (const uint8_t *)record.data, record.n }, 0600);
        pthread_mutex_unlock(&store->writing);
        return status;
}

Status store_get_tune(Store *store, const HashHex *id, Text *out)
{
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        bool missing;
        Status status = folder_read(store->tunes, id->hex, TUNE_MAX_BYTES + CHECKSUM_LINE, &text, &n, &missing);
        if (status == STATUS_NO_MEMORY)
                return status;
        if (status != STATUS_OK || missing || n < CHECKSUM_LINE || memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return STATUS_OK;
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        if (memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) == 0 && text[n - 1] == '\n')
                text_add_n(out, text, n - CHECKSUM_LINE);
        return text_status(out);
}
