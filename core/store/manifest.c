// SPDX-License-Identifier: Apache-2.0
// One line per fact: `key value...`. Versions are groups opened by a `version` line. The last line is `checksum <sha256 of all bytes before
// it>`. Parsing accepts exactly what manifest_write writes: keys in order, no repeats, nothing unknown; the format number in the store's
// FORMAT file allows for change.
#include "core/store/manifest.h"
#include <stdio.h>
#include <string.h>

enum { MANIFEST_MAX_VERSIONS = 100000 };

Status manifest_write(const StoreGraph *graph, Text *out)
{
        size_t start = out->n;
        text_addf(out, "name %s\nnext_version %lld\ndefault_version %lld\n", graph->name, (long long)graph->next_version,
                  (long long)graph->default_version);
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                const StoreVersion *version = &graph->versions[i];
                text_addf(out, "version %lld\nid %s\nformat %s\ncreated_ms %lld\n", (long long)version->version, version->id.hex,
                          version->format, (long long)version->created_ms);
                if (version->model[0] != '\0')
                        text_addf(out, "model %s\n", version->model);
                for (uint32_t part = 0; part < version->n_parts; part++)
                        text_addf(out, "part %s %llu %s\n", version->parts[part].digest.hex,
                                  (unsigned long long)version->parts[part].n_bytes,
                                  version->parts[part].name[0] == '\0' ? "-" : version->parts[part].name);
        }
        TRY(text_status(out));
        HashHex checksum = sha256_of(out->data + start, out->n - start);
        text_addf(out, "checksum %s\n", checksum.hex);
        return text_status(out);
}

void manifest_deinit(StoreGraph *graph)
{
        free(graph->versions);
        graph->versions = NULL;
        graph->n_versions = 0;
}

typedef struct Lines {
        const char *at, *end;
} Lines;

// The value of the next line if its key is `key`: consumed and copied to `out`. False: some other line, or too long.
static bool take_line(Lines *lines, const char *key, char *out, size_t capacity)
{
        size_t n_key = strlen(key);
        const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
        if (newline == NULL || (size_t)(newline - lines->at) <= n_key || memcmp(lines->at, key, n_key) != 0 || lines->at[n_key] != ' ')
                return false;
        size_t n = (size_t)(newline - lines->at) - n_key - 1;
        if (n >= capacity)
                return false;
        memcpy(out, lines->at + n_key + 1, n);
        out[n] = '\0';
        lines->at = newline + 1;
        return true;
}

static bool take_number(Lines *lines, const char *key, int64_t *out)
{
        char text[32], *end;
        if (!take_line(lines, key, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
                return false;
        *out = strtoll(text, &end, 10);
        return *end == '\0';
}

static bool is_digest(const char *text)
{
        return strlen(text) == HASH_HEX_BYTES - 1 && strspn(text, "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

static bool take_part(Lines *lines, StorePart *out)
{
        char text[160], name[sizeof(out->name)], digest[HASH_HEX_BYTES];
        unsigned long long n_bytes;
        int used = 0;
        if (!take_line(lines, "part", text, sizeof(text)) || sscanf(text, "%64s %llu %15s%n", digest, &n_bytes, name, &used) != 3 ||
            text[used] != '\0' || !is_digest(digest))
                return false;
        memset(out, 0, sizeof(*out));
        memcpy(out->digest.hex, digest, sizeof(digest));
        out->n_bytes = n_bytes;
        if (strcmp(name, "-") != 0)
                memcpy(out->name, name, sizeof(name));
        return true;
}

static Status read_version(Lines *lines, int64_t number, StoreVersion *out)
{
        memset(out, 0, sizeof(*out));
        out->version = number;
        if (!take_line(lines, "id", out->id.hex, sizeof(out->id.hex)) || !is_digest(out->id.hex) ||
            !take_line(lines, "format", out->format, sizeof(out->format)) || !take_number(lines, "created_ms", &out->created_ms))
                return fail(STATUS_DAMAGED, "version %lld lacks its id, format or time", (long long)number);
        take_line(lines, "model", out->model, sizeof(out->model));
        while (out->n_parts < STORE_MAX_PARTS && take_part(lines, &out->parts[out->n_parts]))
                out->n_parts++;
        if (out->n_parts == 0)
                return fail(STATUS_DAMAGED, "version %lld names no uploaded bytes", (long long)number);
        return STATUS_OK;
}

static Status read_versions(Lines *lines, StoreGraph *graph)
{
        uint32_t capacity = 0;
        int64_t number, last = 0;
        while (take_number(lines, "version", &number)) {
                if (number <= last || graph->n_versions == MANIFEST_MAX_VERSIONS)
                        return fail(STATUS_DAMAGED, "version numbers are not ascending");
                last = number;
                TRY(array_reserve(&graph->versions, &capacity, graph->n_versions + 1, sizeof(*graph->versions)));
                TRY(read_version(lines, number, &graph->versions[graph->n_versions]));
                graph->n_versions++;
        }
        if (lines->at != lines->end)
                return fail(STATUS_DAMAGED, "a line is not understood");
        if (graph->n_versions == 0 || graph->next_version <= last)
                return fail(STATUS_DAMAGED, "it names no version, or its next version is in use");
        for (uint32_t i = 0; i < graph->n_versions; i++)
                if (graph->versions[i].version == graph->default_version)
                        return STATUS_OK;
        return fail(STATUS_DAMAGED, "its default version does not exist");
}

Status manifest_read(const char *text, size_t n, StoreGraph *out_graph)
{
        enum { CHECKSUM_LINE = 9 + HASH_HEX_BYTES }; // "checksum " hex "\n"
        StoreGraph graph = { 0 };
        if (n < CHECKSUM_LINE || memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return fail(STATUS_DAMAGED, "its checksum line is missing");
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        if (memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) != 0 || text[n - 1] != '\n')
                return fail(STATUS_DAMAGED, "its checksum does not match");
        Lines lines = { text, text + n - CHECKSUM_LINE };
        if (!take_line(&lines, "name", graph.name, sizeof(graph.name)) || !take_number(&lines, "next_version", &graph.next_version) ||
            !take_number(&lines, "default_version", &graph.default_version))
                return fail(STATUS_DAMAGED, "its head is not understood");
        Status status = read_versions(&lines, &graph);
        if (status != STATUS_OK) {
                manifest_deinit(&graph);
                return status;
        }
        *out_graph = graph;
        return STATUS_OK;
}
