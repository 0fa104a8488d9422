// SPDX-License-Identifier: Apache-2.0
// Makes zip archives for tests: whole ones, and ones with chosen fields overwritten afterwards.
#pragma once
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>
#include "api/formats/zip.h"
#include "core/base/text.h"

enum { ZIP_MAKER_MEMBERS = 32 };

typedef struct ZipMember {
        const char *name;
        const char *content;
        size_t n;
        bool deflated, described; // described: sizes follow in a data descriptor
        unsigned padding;         // bytes of extra field in the local header, as torch writes to align data
} ZipMember;

// Where the parts of an archive begin.
typedef struct ZipPlaces {
        size_t local[ZIP_MAKER_MEMBERS], data[ZIP_MAKER_MEMBERS], after[ZIP_MAKER_MEMBERS],
                central[ZIP_MAKER_MEMBERS];
        size_t end64, locator, end;
} ZipPlaces;

static inline void put(Text *out, uint64_t value, int n_bytes)
{
        for (int i = 0; i < n_bytes; i++)
                text_add_char(out, (char)(value >> (8 * i) & 0xff));
}

static inline size_t deflate_raw(const char *content, size_t n, uint8_t *out, size_t cap)
{
        z_stream stream = { .next_in = (uint8_t *)(uintptr_t)content,
                            .avail_in = (uInt)n,
                            .next_out = out,
                            .avail_out = (uInt)cap };
        cr_assert(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
        cr_assert(deflate(&stream, Z_FINISH) == Z_STREAM_END);
        size_t packed = cap - stream.avail_out;
        deflateEnd(&stream);
        return packed;
}

// Appends an archive to `out`. `zip64`: with a zip64 end record and locator, as torch writes
// always.
static inline void make_zip(const ZipMember *members, size_t n_members, bool zip64, Text *out,
                            ZipPlaces *places)
{
        uint32_t crcs[ZIP_MAKER_MEMBERS];
        size_t packed[ZIP_MAKER_MEMBERS];
        for (size_t i = 0; i < n_members; i++) {
                const ZipMember *member = &members[i];
                size_t cap = member->n + member->n / 8 + 64;
                uint8_t *bytes = malloc(cap);
                crcs[i] = (uint32_t)crc32_z(0, (const uint8_t *)member->content, member->n);
                packed[i] =
                        member->deflated ? deflate_raw(member->content, member->n, bytes, cap) : member->n;
                places->local[i] = out->n;
                bool later = member->described;
                put(out, 0x04034b50, 4);
                put(out, 20, 2);
                put(out, later ? 0x0808 : 0x0800, 2);
                put(out, member->deflated ? 8 : 0, 2);
                put(out, 0, 4);
                put(out, later ? 0 : crcs[i], 4);
                put(out, later ? 0 : packed[i], 4);
                put(out, later ? 0 : member->n, 4);
                put(out, strlen(member->name), 2);
                put(out, member->padding == 0 ? 0 : member->padding + 4, 2);
                text_add(out, member->name);
                if (member->padding > 0) {
                        put(out, 0x4246, 2);
                        put(out, member->padding, 2);
                        text_repeat(out, 'Z', member->padding);
                }
                places->data[i] = out->n;
                text_add_n(out, member->deflated ? (char *)bytes : member->content, packed[i]);
                if (later) {
                        put(out, 0x08074b50, 4);
                        put(out, crcs[i], 4);
                        put(out, packed[i], 4);
                        put(out, member->n, 4);
                }
                places->after[i] = out->n;
                free(bytes);
        }
        size_t directory = out->n;
        for (size_t i = 0; i < n_members; i++) {
                const ZipMember *member = &members[i];
                places->central[i] = out->n;
                put(out, 0x02014b50, 4);
                put(out, 20, 2);
                put(out, 20, 2);
                put(out, member->described ? 0x0808 : 0x0800, 2);
                put(out, member->deflated ? 8 : 0, 2);
                put(out, 0, 4);
                put(out, crcs[i], 4);
                put(out, packed[i], 4);
                put(out, member->n, 4);
                put(out, strlen(member->name), 2);
                put(out, 0, 2);
                put(out, 0, 2);
                put(out, 0, 2);
                put(out, 0, 2);
                put(out, 0, 4);
                put(out, places->local[i], 4);
                text_add(out, member->name);
        }
        size_t n_directory = out->n - directory;
        places->end64 = out->n;
        if (zip64) {
                put(out, 0x06064b50, 4);
                put(out, 44, 8);
                put(out, 45, 2);
                put(out, 45, 2);
                put(out, 0, 8);
                put(out, n_members, 8);
                put(out, n_members, 8);
                put(out, n_directory, 8);
                put(out, directory, 8);
                places->locator = out->n;
                put(out, 0x07064b50, 4);
                put(out, 0, 4);
                put(out, places->end64, 8);
                put(out, 1, 4);
        }
        places->end = out->n;
        put(out, 0x06054b50, 4);
        put(out, 0, 4);
        put(out, n_members, 2);
        put(out, n_members, 2);
        put(out, n_directory, 4);
        put(out, directory, 4);
        put(out, 0, 2);
        cr_assert_eq(text_status(out), STATUS_OK);
}

static inline ByteSpan span_of(const Text *text)
{
        return (ByteSpan){ (const uint8_t *)text->data, text->n };
}

// The failure must have this status and its message this word.
static inline void expect_failure(const char *what, Status got, Status wanted, const char *word)
{
        cr_expect_eq(got, wanted, "%s: got %s (%s), expected %s", what, status_code(got),
                     got == STATUS_OK ? "" : failure_current()->message, status_code(wanted));
        if (got == wanted && got != STATUS_OK)
                cr_expect(strstr(failure_current()->message, word) != NULL, "%s: \"%s\" does not say \"%s\"",
                          what, failure_current()->message, word);
}
