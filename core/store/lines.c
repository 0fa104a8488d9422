// SPDX-License-Identifier: Apache-2.0
#include "core/store/lines.h"
#include <stdio.h>
#include <string.h>

enum { CHECKSUM_LINE = 9 + HASH_HEX_BYTES }; // "checksum " hex "\n"

Status lines_open(const char *text, size_t n, Lines *out_lines)
{
        if (n < CHECKSUM_LINE || memcmp(text + n - CHECKSUM_LINE, "checksum ", 9) != 0)
                return fail(STATUS_DAMAGED, "its checksum line is missing");
        HashHex checksum = sha256_of(text, n - CHECKSUM_LINE);
        if (memcmp(text + n - HASH_HEX_BYTES, checksum.hex, HASH_HEX_BYTES - 1) != 0 || text[n - 1] != '\n')
                return fail(STATUS_DAMAGED, "its checksum does not match");
        // values are C strings: bytes after a NUL would be lost when they are written again
        if (memchr(text, '\0', n) != NULL)
                return fail(STATUS_DAMAGED, "it holds a NUL byte");
        *out_lines = (Lines){ .at = text, .end = text + n - CHECKSUM_LINE };
        return STATUS_OK;
}

Status lines_close(Text *out, size_t start)
{
        TRY(text_status(out));
        text_addf(out, "checksum %s\n", sha256_of(out->data + start, out->n - start).hex);
        return text_status(out);
}

// The bytes of the value of the next line, and where the line ends, if its key is `key`.
static bool find_value(const Lines *lines, const char *key, const char **out_value, const char **out_end)
{
        size_t n_key = strlen(key);
        const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
        if (newline == NULL || (size_t)(newline - lines->at) <= n_key || memcmp(lines->at, key, n_key) != 0 ||
            lines->at[n_key] != ' ')
                return false;
        *out_value = lines->at + n_key + 1;
        *out_end = newline;
        return true;
}

bool lines_take(Lines *lines, const char *key, char *out, size_t capacity)
{
        const char *value, *end;
        if (!find_value(lines, key, &value, &end) || (size_t)(end - value) >= capacity)
                return false;
        memcpy(out, value, (size_t)(end - value));
        out[end - value] = '\0';
        lines->at = end + 1;
        return true;
}

bool lines_take_number(Lines *lines, const char *key, int64_t *out)
{
        char text[32], *end;
        if (!lines_take(lines, key, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
                return false;
        *out = strtoll(text, &end, 10);
        return *end == '\0';
}

bool is_digest(const char *text)
{
        return strlen(text) == HASH_HEX_BYTES - 1 && strspn(text, "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

bool lines_take_digest(Lines *lines, const char *key, HashHex *out)
{
        return lines_take(lines, key, out->hex, sizeof(out->hex)) && is_digest(out->hex);
}

void lines_skip(Lines *lines, const char *key, const char **out_from)
{
        const char *value, *end;
        *out_from = lines->at;
        while (find_value(lines, key, &value, &end))
                lines->at = end + 1;
}

static bool take_hole(Lines *lines, StoreHole *out)
{
        char text[160], digest[HASH_HEX_BYTES];
        unsigned long long offset, n, n_bytes;
        int used = 0;
        if (!lines_take(lines, "hole", text, sizeof(text)) ||
            sscanf(text, "%llu %llu %64s %llu%n", &offset, &n, digest, &n_bytes, &used) != 4 ||
            text[used] != '\0' || !is_digest(digest))
                return false;
        *out = (StoreHole){ .offset = offset, .n = n, .n_bytes = n_bytes };
        memcpy(out->digest.hex, digest, sizeof(digest));
        return true;
}

Status lines_take_holes(Lines *lines, StorePart *part)
{
        StoreHole hole;
        uint32_t capacity = 0;
        while (take_hole(lines, &hole)) {
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
