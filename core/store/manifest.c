// SPDX-License-Identifier: Apache-2.0
// One line per fact: `key value...`. Versions are groups opened by a `version` line; a part's holes follow its line. The last line is
// `checksum <sha256 of all bytes before it>`. Parsing accepts exactly what manifest_write writes: keys in order, no repeats, nothing
// unknown. FORMAT 1's manifests had no `manifest` line, no documents and no holes; they are read, never written.
#include "core/store/manifest.h"
#include <stdio.h>
#include <string.h>

enum { MANIFEST_MAX_VERSIONS = 100000, MANIFEST_FORMAT = 2 };

static void write_part(const StorePart *part, Text *out)
{
        text_addf(out, "part %s %llu %s %s\n", part->digest.hex, (unsigned long long)part->n_bytes, part->document.hex,
                  part->name[0] == '\0' ? "-" : part->name);
        for (uint32_t i = 0; part->holes != NULL && i < part->holes->n; i++) {
                const StoreHole *hole = &part->holes->items[i];
                text_addf(out, "hole %llu %llu %s %llu\n", (unsigned long long)hole->offset, (unsigned long long)hole->n, hole->digest.hex,
                          (unsigned long long)hole->n_bytes);
        }
}

Status manifest_write(const StoreGraph *graph, Text *out)
{
        size_t start = out->n;
        if (graph->n_versions > MANIFEST_MAX_VERSIONS)
                return fail(STATUS_TOO_LARGE, "graph '%s' has %u versions, the most there can be; delete some of them", graph->name,
                            graph->n_versions - 1);
        text_addf(out, "manifest %d\n", MANIFEST_FORMAT);
        text_addf(out, "name %s\nnext_version %lld\ndefault_version %lld\n", graph->name, (long long)graph->next_version,
                  (long long)graph->default_version);
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                const StoreVersion *version = &graph->versions[i];
                text_addf(out, "version %lld\nid %s\nformat %s\ncreated_ms %lld\n", (long long)version->version, version->id.hex,
                          version->format, (long long)version->created_ms);
                if (version->model[0] != '\0')
                        text_addf(out, "model %s\n", version->model);
                for (uint32_t part = 0; part < version->n_parts; part++)
                        write_part(&version->parts[part], out);
        }
        TRY(text_status(out));
        HashHex checksum = sha256_of(out->data + start, out->n - start);
        text_addf(out, "checksum %s\n", checksum.hex);
        return text_status(out);
}

void manifest_deinit(StoreGraph *graph)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                store_version_unref(&graph->versions[i]);
        free(graph->versions);
        graph->versions = NULL;
        graph->n_versions = 0;
}

typedef struct Lines {
        const char *at, *end;
        bool is_old; // FORMAT 1
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
        char text[224], name[sizeof(out->name)], digest[HASH_HEX_BYTES], document[HASH_HEX_BYTES] = "";
        unsigned long long n_bytes;
        int used = 0, n;
        if (!take_line(lines, "part", text, sizeof(text)))
                return false;
        if (lines->is_old)
                n = 1 + sscanf(text, "%64s %llu %15s%n", digest, &n_bytes, name, &used);
        else
                n = sscanf(text, "%64s %llu %64s %15s%n", digest, &n_bytes, document, name, &used);
        if (n != 4 || text[used] != '\0' || !is_digest(digest) || (!lines->is_old && !is_digest(document)))
                return false;
        memset(out, 0, sizeof(*out));
        memcpy(out->digest.hex, digest, sizeof(digest));
        memcpy(out->document.hex, lines->is_old ? digest : document, sizeof(document));
        out->n_bytes = n_bytes;
        if (strcmp(name, "-") != 0)
                memcpy(out->name, name, sizeof(name));
        return true;
}

static bool take_hole(Lines *lines, StoreHole *out)
{
        char text[160], digest[HASH_HEX_BYTES];
        unsigned long long offset, n, n_bytes;
        int used = 0;
        if (!take_line(lines, "hole", text, sizeof(text)) ||
            sscanf(text, "%llu %llu %64s %llu%n", &offset, &n, digest, &n_bytes, &used) != 4 || text[used] != '\0' || !is_digest(digest))
                return false;
        *out = (StoreHole){ .offset = offset, .n = n, .n_bytes = n_bytes };
        memcpy(out->digest.hex, digest, sizeof(digest));
        return true;
}

static Status read_holes(Lines *lines, StorePart *part)
{
        StoreHole hole;
        uint32_t capacity = 0;
        while (!lines->is_old && take_hole(lines, &hole)) {
                uint32_t n = part->holes == NULL ? 0 : part->holes->n;
                if (n == capacity) {
                        capacity = MAX(capacity * 2, 16u);
                        StoreHoles *more = realloc(part->holes, sizeof(*more) + capacity * sizeof(StoreHole));
                        if (more == NULL)
                                return fail_memory();
                        part->holes = more;
                        refcount_init(&more->ref);
                }
                part->holes->items[n] = hole;
                part->holes->n = n + 1;
        }
        return STATUS_OK;
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
                TRY(read_holes(lines, &out->parts[out->n_parts++]));
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
                TRY(read_version(lines, number, &graph->versions[graph->n_versions++])); // counted first: what it has is given back
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

Status manifest_read(const char *text, size_t n, StoreGraph *out_graph, bool *out_old)
{
        enum { CHECKSUM_LINE = 9 + HASH_HEX_BYTES }; // "checksum " hex "\n"
        StoreGraph graph = { 0 };
        if (n < CHECKSUM_LINE || memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return fail(STATUS_DAMAGED, "its checksum line is missing");
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        if (memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) != 0 || text[n - 1] != '\n')
                return fail(STATUS_DAMAGED, "its checksum does not match");
        Lines lines = { .at = text, .end = text + n - CHECKSUM_LINE };
        int64_t format = 1;
        lines.is_old = !take_number(&lines, "manifest", &format);
        if (!lines.is_old && format != MANIFEST_FORMAT)
                return fail(STATUS_DAMAGED, "it has another format");
        if (!take_line(&lines, "name", graph.name, sizeof(graph.name)) || !take_number(&lines, "next_version", &graph.next_version) ||
            !take_number(&lines, "default_version", &graph.default_version))
                return fail(STATUS_DAMAGED, "its head is not understood");
        Status status = read_versions(&lines, &graph);
        if (status != STATUS_OK) {
                manifest_deinit(&graph);
                return status;
        }
        *out_graph = graph;
        *out_old = lines.is_old;
        return STATUS_OK;
}
