// SPDX-License-Identifier: Apache-2.0
// Zip archives in memory, read only, one member at a time, never to disk.
//
// The central directory is the truth; every local header (and data descriptor) must agree with it.
// Refused when opening: members that overlap each other or the directory, duplicate names,
// encryption, links, names that are absolute or hold "..", ".", "//", a backslash or control
// characters, several disks, bytes before the first or after the last part, and any size beyond the
// file, limits.max_archive_entries or limits.max_inflate_ratio. Failures are STATUS_MALFORMED or
// STATUS_TOO_LARGE and name the member.
#pragma once
#include "core/base/map.h"
#include "core/base/span.h"

typedef struct ZipEntry {
        const char *name;    // NUL-terminated UTF-8, owned by the Zip
        bool deflated;       // otherwise stored
        uint32_t crc;        // CRC-32 of the content
        size_t packed_bytes; // in the archive
        size_t n_bytes;      // content
        size_t offset;       // of the first packed byte in the archive
} ZipEntry;

typedef struct Zip Zip;

// The content of a member: a borrowed span of the archive when stored, own bytes when it was
// deflated.
typedef struct ZipContent {
        ByteSpan span;
        uint8_t *owned; // NULL when borrowed
} ZipContent;

// `bytes` is borrowed and must stay unchanged while the Zip lives. One thread at a time; reading is
// safe from several threads.
Status zip_open(ByteSpan bytes, Zip **out_zip);
Zip *zip_free(Zip *zip); // NULL-safe, returns NULL
DEFINE_CLEANUP(Zip, zip_free)

uint32_t zip_count(const Zip *zip);
// What the deflated members inflate to, all together; SIZE_MAX: more than fits.
size_t zip_inflated(const Zip *zip);
// Member `index` < zip_count, in the order of the central directory. Directories (names ending in
// "/") are listed too.
const ZipEntry *zip_entry(const Zip *zip, uint32_t index);
const ZipEntry *zip_find(const Zip *zip, const char *name); // NULL if absent
// Checks the CRC. A member larger than `max_bytes` is refused with STATUS_TOO_LARGE before memory
// is taken.
Status zip_read(const Zip *zip, const ZipEntry *entry, size_t max_bytes, ZipContent *out_content);
// The same into `out`, which has room for entry->n_bytes: for members that are large.
Status zip_read_into(const Zip *zip, const ZipEntry *entry, uint8_t *out);
void zip_content_deinit(ZipContent *content); // for _cleanup_
