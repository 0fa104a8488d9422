// SPDX-License-Identifier: Apache-2.0
// Key-value text, one `key value...` per line, closed by `checksum <sha256 of all bytes before
// it>`. Reading accepts keys in order only.
#pragma once
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/store/store.h"

typedef struct Lines {
        const char *at, *end; // without the checksum line
} Lines;

// STATUS_DAMAGED when the checksum is missing or does not match.
Status lines_open(const char *text, size_t n, Lines *out_lines);
// Adds the checksum line over what was added since `start`.
Status lines_close(Text *out, size_t start);
// The value of the next line if its key is `key`: consumed and copied to `out`. False: some other
// line, or too long.
bool lines_take(Lines *lines, const char *key, char *out, size_t capacity);
bool lines_take_number(Lines *lines, const char *key, int64_t *out);
bool lines_take_digest(Lines *lines, const char *key, HashHex *out);
// Skips lines of this key; the skipped bytes, newlines included, are [*out_from, lines->at).
void lines_skip(Lines *lines, const char *key, const char **out_from);
bool is_digest(const char *text);
// The `hole` lines that follow. On failure what was read so far is in the part.
Status lines_take_holes(Lines *lines, StorePart *part);
