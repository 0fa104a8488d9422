// SPDX-License-Identifier: Apache-2.0
// Zip archives: opened, every member read, then read as a .pt2. The last byte's low bit asks that
// checksums of stored members be made right before, so that changed content gets past them.
#include <zlib.h>
#include "api/readers/pt2.h"
#include "api/formats/zip.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

enum { LOCAL = 30, CENTRAL = 46, MOST_BYTES = 1 << 20 };

static uint64_t word(const uint8_t *at, int n_bytes)
{
        uint64_t value = 0;
        for (int i = 0; i < n_bytes; i++)
                value |= (uint64_t)at[i] << (8 * i);
        return value;
}

// For each central header whose local header and stored content lie within the file: the content's
// checksum in both.
static void mend_checksums(uint8_t *data, size_t n)
{
        for (size_t at = 0; at + CENTRAL <= n; at++) {
                if (memcmp(data + at, "PK\1\2", 4) != 0 || word(data + at + 10, 2) != 0)
                        continue;
                uint64_t local = word(data + at + 42, 4), n_bytes = word(data + at + 24, 4);
                if (local + LOCAL > n || memcmp(data + local, "PK\3\4", 4) != 0)
                        continue;
                uint64_t content = local + LOCAL + word(data + local + 26, 2) + word(data + local + 28, 2);
                if (content > n || n_bytes > n - content)
                        continue;
                uint32_t crc = (uint32_t)crc32_z(0, data + content, n_bytes);
                for (int i = 0; i < 4; i++)
                        data[local + 14 + (size_t)i] = data[at + 16 + (size_t)i] = (uint8_t)(crc >> (8 * i));
        }
}

static void read_members(ByteSpan bytes)
{
        Zip *zip = NULL;
        Status status = zip_open(bytes, &zip);
        if (status != STATUS_OK) {
                require_told(status);
                return;
        }
        size_t total = 0;
        for (uint32_t i = 0; i < zip_count(zip); i++) {
                const ZipEntry *entry = zip_entry(zip, i);
                ZipContent content = { .owned = NULL };
                require(entry->name[0] != '/' && strstr(entry->name, "..") == NULL, "a name that escapes: %s",
                        entry->name);
                require(zip_find(zip, entry->name) == entry, "%s is not found", entry->name);
                total += entry->packed_bytes;
                status = zip_read(zip, entry, MOST_BYTES, &content);
                if (status != STATUS_OK) {
                        require_told(status);
                        continue;
                }
                require(content.span.n == entry->n_bytes && content.span.n <= MOST_BYTES,
                        "%s has another size", entry->name);
                require(crc32_z(0, content.span.data, content.span.n) == entry->crc,
                        "%s has another checksum", entry->name);
                zip_content_deinit(&content);
        }
        require(total <= bytes.n, "members overlap");
        zip_free(zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static bool ready;
        if (!ready)
                require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        ready = true;
        Storage *storage = fuzz_storage(data, n);
        if (n > 0 && (data[n - 1] & 1) == 1)
                mend_checksums(storage->data, n);
        ByteSpan bytes = { storage->data, n };
        read_members(bytes);
        Graph *graph = NULL;
        Status status = pt2_read(bytes, storage, NULL, &graph);
        if (status != STATUS_OK)
                require_told(status);
        storage_unref(storage);
        graph_unref(graph);
        return 0;
}
