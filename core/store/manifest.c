// SPDX-License-Identifier: Apache-2.0
// Manifests of FORMAT 1 and 2, read to be converted: `name`, `next_version`, `default_version`, and
// a group of lines per version that begins with `version`. FORMAT 2 has a `manifest` line first,
// and documents and holes; in FORMAT 1 each part is its own document.
#include <stdio.h>
#include <string.h>
#include "core/store/lines.h"
#include "core/store/record.h"

void manifest_deinit(Manifest *manifest)
{
        for (uint32_t i = 0; i < manifest->n_versions; i++)
                store_version_unref(&manifest->versions[i]);
        free(manifest->versions);
        store_head_deinit(&manifest->head);
        *manifest = (Manifest){ .n_versions = 0 };
}

static bool take_part(Lines *lines, bool is_first, StorePart *out)
{
        char text[224], name[16], digest[HASH_HEX_BYTES], document[HASH_HEX_BYTES];
        unsigned long long n_bytes;
        int used = 0, n;
        if (!lines_take(lines, "part", text, sizeof(text)))
                return false;
        if (is_first)
                n = 1 + sscanf(text, "%64s %llu %15s%n", digest, &n_bytes, name, &used);
        else
                n = sscanf(text, "%64s %llu %64s %15s%n", digest, &n_bytes, document, name, &used);
        if (n != 4 || text[used] != '\0' || !is_digest(digest) || (!is_first && !is_digest(document)))
                return false;
        *out = (StorePart){ .role = strcmp(name, "weights") == 0 ? STORE_WEIGHTS : STORE_GRAPH,
                            .n_bytes = n_bytes };
        memcpy(out->digest.hex, digest, sizeof(digest));
        memcpy(out->document.hex, is_first ? digest : document, sizeof(document));
        return true;
}

static Status read_version(Lines *lines, bool is_first, int64_t number, StoreVersion *out)
{
        *out = (StoreVersion){ .version = number };
        if (!lines_take_digest(lines, "id", &out->id) ||
            !lines_take(lines, "format", out->format, sizeof(out->format)) ||
            !lines_take_number(lines, "created_ms", &out->created_ms))
                return fail(STATUS_DAMAGED, "version %lld lacks its id, format or time", (long long)number);
        lines_take(lines, "model", out->model, sizeof(out->model));
        while (out->n_parts < 2 && take_part(lines, is_first, &out->parts[out->n_parts])) {
                StorePart *part = &out->parts[out->n_parts++];
                if (!is_first)
                        TRY(lines_take_holes(lines, part));
        }
        if (out->n_parts == 0 || (out->n_parts == 2 && out->parts[0].role == out->parts[1].role))
                return fail(STATUS_DAMAGED, "version %lld names no uploaded bytes", (long long)number);
        return STATUS_OK;
}

static Status read_versions(Lines *lines, bool is_first, Manifest *manifest)
{
        int64_t number, last = 0;
        while (lines_take_number(lines, "version", &number)) {
                if (number <= last)
                        return fail(STATUS_DAMAGED, "version numbers are not ascending");
                last = number;
                TRY(array_reserve(&manifest->versions, &manifest->capacity, manifest->n_versions + 1,
                                  sizeof(*manifest->versions)));
                // counted first: it is given back
                TRY(read_version(lines, is_first, number, &manifest->versions[manifest->n_versions++]));
        }
        if (lines->at != lines->end)
                return fail(STATUS_DAMAGED, "a line is not understood");
        if (manifest->n_versions == 0 || manifest->head.next_version <= last)
                return fail(STATUS_DAMAGED, "it names no version, or its next version is in use");
        for (uint32_t i = 0; i < manifest->n_versions; i++)
                if (manifest->versions[i].version == manifest->head.default_version)
                        return STATUS_OK;
        return fail(STATUS_DAMAGED, "its default version does not exist");
}

Status manifest_read(const char *text, size_t n, Manifest *out_manifest)
{
        Manifest manifest = { .n_versions = 0 };
        Lines lines;
        int64_t format = 1;
        TRY(lines_open(text, n, &lines));
        if (lines_take_number(&lines, "manifest", &format) && format != 2)
                return fail(STATUS_DAMAGED, "it has another format");
        if (!lines_take(&lines, "name", manifest.head.name, sizeof(manifest.head.name)) ||
            !lines_take_number(&lines, "next_version", &manifest.head.next_version) ||
            !lines_take_number(&lines, "default_version", &manifest.head.default_version))
                return fail(STATUS_DAMAGED, "its head is not understood");
        Status status = read_versions(&lines, format == 1, &manifest);
        if (status == STATUS_OK)
                *out_manifest = manifest;
        else
                manifest_deinit(&manifest);
        return status;
}
