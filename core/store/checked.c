// SPDX-License-Identifier: Apache-2.0
#include "core/store/checked.h"

#include <string.h>

enum { CHECKSUM_LINE = 9 + HASH_HEX_BYTES }; // "checksum " hex "\n"

Status checked_write(Store *store, int folder, const char *name, ByteSpan text)
{
        if (text.n > CHECKED_MAX_BYTES)
                return fail(STATUS_TOO_LARGE, "a record of %zu bytes", text.n);
        _cleanup_(text_deinit) Text record = { 0 };
        text_add_n(&record, (const char *)text.data, text.n);
        text_addf(&record, "checksum %s\n", sha256_of(text.data, text.n).hex);
        TRY(text_status(&record));
        pthread_mutex_lock(&store->writing);
        Status status = folder_write(store->tmp, folder, name,
                                     (ByteSpan){ (const uint8_t *)record.data, record.n }, 0600);
        pthread_mutex_unlock(&store->writing);
        return status;
}

Status checked_read(int folder, const char *name, Text *out, bool *out_found)
{
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        bool missing;
        *out_found = false;
        Status status = folder_read(folder, name, CHECKED_MAX_BYTES + CHECKSUM_LINE, &text, &n, &missing);
        if (status == STATUS_NO_MEMORY)
                return status;
        if (status != STATUS_OK || missing || n < CHECKSUM_LINE ||
            memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return STATUS_OK;
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        *out_found = memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) == 0 &&
                     text[n - 1] == '\n';
        if (*out_found)
                text_add_n(out, text, n - CHECKSUM_LINE);
        return text_status(out);
}
