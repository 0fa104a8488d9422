// SPDX-License-Identifier: Apache-2.0
// What stands in a data folder's graphs/ and versions/: heads, versions, and the manifests of
// FORMAT 1 and 2. The input is a text without its checksum line, which is added here, so that what
// stands before it is reached; once it is read as it is, too. What is read is written again, and
// reads back as the same.
#include "core/store/lines.h"
#include "core/store/record.h"
#include "tests/fuzz/fuzz.h"

// The statuses that damage on a disk may give; never an internal error, or the start would end.
static void require_damage(Status status)
{
        require_told(status);
        require(status == STATUS_DAMAGED || status == STATUS_TOO_LARGE, "%s: %s", status_code(status),
                failure_current()->message);
}

static void try_head(const char *text, size_t n)
{
        _cleanup_(head_freep) Head *head = NULL, *again = NULL;
        Text first = { 0 }, second = { 0 };
        Status status = record_read_head(text, n, &head);
        if (status != STATUS_OK) {
                require_damage(status);
                return;
        }
        require(record_write_head(head, &first) == STATUS_OK, "a head that was read is not written");
        status = record_read_head(first.data, first.n, &again);
        require(status == STATUS_OK, "a head that was written is not read: %s\n%.*s",
                failure_current()->message, (int)first.n, first.data);
        require(record_write_head(again, &second) == STATUS_OK && first.n == second.n &&
                        memcmp(first.data, second.data, first.n) == 0,
                "a head written twice differs");
        text_deinit(&first);
        text_deinit(&second);
}

static void try_version(const char *text, size_t n)
{
        const Head head = { .head = { .name = "digits" }, .incarnation = "0123456789abcdef" };
        StoreVersion version = { .n_parts = 0 }, again = { .n_parts = 0 };
        bool foreign = false;
        Text first = { 0 };
        Status status = record_read_version(text, n, &head, 4, &version, &foreign);
        if (status != STATUS_OK)
                require_damage(status);
        if (status != STATUS_OK || foreign)
                return;
        require(record_write_version(&head, &version, &first) == STATUS_OK,
                "a version that was read is not written");
        status = record_read_version(first.data, first.n, &head, 4, &again, &foreign);
        require(status == STATUS_OK && !foreign, "a version that was written is not read: %s\n%.*s",
                failure_current()->message, (int)first.n, first.data);
        require(again.n_parts == version.n_parts && strcmp(again.model, version.model) == 0,
                "a version changes when it is written");
        store_version_unref(&version);
        store_version_unref(&again);
        text_deinit(&first);
}

static void try_manifest(const char *text, size_t n)
{
        Manifest manifest = { .n_versions = 0 };
        (void)record_is_head(text, n);
        Status status = manifest_read(text, n, &manifest);
        if (status == STATUS_OK)
                manifest_deinit(&manifest);
        else
                require_damage(status);
}

static void try_all(const char *text, size_t n)
{
        try_head(text, n);
        try_version(text, n);
        try_manifest(text, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        Text text = { 0 };
        try_all((const char *)data, n);
        text_add_n(&text, (const char *)data, n);
        require(lines_close(&text, 0) == STATUS_OK, "no memory");
        char *exact = malloc(text.n);
        require(exact != NULL, "no memory");
        memcpy(exact, text.data, text.n);
        try_all(exact, text.n);
        free(exact);
        text_deinit(&text);
        return 0;
}
