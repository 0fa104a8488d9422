// SPDX-License-Identifier: Apache-2.0
// zip.c: APPNOTE 6.3 as far as archives of weights need it. Opening reads the end record (and its
// zip64 twin), walks the central directory once and follows each member to its local header; after
// that an entry's offset and sizes are known to lie within the archive and to be its own. Nothing
// is inflated while opening: the declared sizes bound what zip_read may ever allocate, and
// inflating more than was declared is an error.
#include "api/formats/zip.h"

#include <string.h>
#include <zlib.h>
#include "core/base/limits.h"
#include "core/base/utf8.h"

enum {
        END_BYTES = 22,
        LOCATOR_BYTES = 20,
        END64_BYTES = 56,
        CENTRAL_BYTES = 46,
        LOCAL_BYTES = 30,
        FLAG_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13, // traditional, strong, masked headers
        FLAG_PATCHED = 1 << 5,
        FLAG_DESCRIPTOR = 1 << 3,
        METHOD_STORED = 0,
        METHOD_DEFLATED = 8,
        EXTRA_ZIP64 = 1,
        MODE_TYPE = 0170000,
        MODE_REGULAR = 0100000,
        MODE_FOLDER = 0040000,
        // members up to here may inflate by any factor: zeros deflate a thousandfold
        SMALL_BYTES = 1 << 20,
        INFLATE_STEP = 1 << 30,
};
#define SIGNATURE_LOCAL      0x04034b50u
#define SIGNATURE_CENTRAL    0x02014b50u
#define SIGNATURE_END        0x06054b50u
#define SIGNATURE_END64      0x06064b50u
#define SIGNATURE_LOCATOR    0x07064b50u
#define SIGNATURE_DESCRIPTOR 0x08074b50u

struct Zip {
        ByteSpan bytes;
        ZipEntry *entries;
        uint32_t n_entries;
        char *names; // all names, each NUL-terminated
        StringMap by_name;
        size_t n_inflated;
};

// Where the central directory lies and what it claims to hold.
typedef struct Directory {
        size_t offset, n_bytes, n_entries;
} Directory;

// One central header, sizes widened by its zip64 field.
typedef struct Header {
        uint16_t flags, method;
        uint32_t crc;
        uint64_t packed_bytes, n_bytes, offset;
        const uint8_t *name;
        uint16_t name_n;
        uint32_t mode;
} Header;

// The bytes of the archive that one member takes, headers included.
typedef struct Extent {
        size_t begin, end;
        uint32_t index;
} Extent;

static inline uint16_t read_u16(const uint8_t *at)
{
        return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t read_u32(const uint8_t *at)
{
        return (uint32_t)read_u16(at) | (uint32_t)read_u16(at + 2) << 16;
}

static inline uint64_t read_u64(const uint8_t *at)
{
        return (uint64_t)read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

static bool within(ByteSpan bytes, uint64_t offset, uint64_t n)
{
        return offset <= bytes.n && n <= bytes.n - offset;
}

// ---- end records ----
static Status find_end(ByteSpan bytes, size_t *out_at)
{
        if (bytes.n < END_BYTES)
                return fail(STATUS_MALFORMED, "the archive has %zu bytes, too few for a zip file", bytes.n);
        size_t last = bytes.n - END_BYTES;
        size_t first = last > UINT16_MAX ? last - UINT16_MAX : 0;
        for (size_t at = last + 1; at-- > first;) {
                if (read_u32(bytes.data + at) == SIGNATURE_END &&
                    at + END_BYTES + read_u16(bytes.data + at + 20) == bytes.n) {
                        *out_at = at;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_MALFORMED,
                    "the archive has no zip end record: the file is cut off or bytes follow its end");
}

// The zip64 end record, when its locator precedes the end record at `end`. `*out_start` is where
// the end records begin.
static Status read_end64(ByteSpan bytes, size_t end, Directory *directory, size_t *out_start)
{
        *out_start = end;
        if (end < LOCATOR_BYTES || read_u32(bytes.data + end - LOCATOR_BYTES) != SIGNATURE_LOCATOR)
                return STATUS_OK;
        const uint8_t *locator = bytes.data + end - LOCATOR_BYTES;
        uint64_t at = read_u64(locator + 8);
        if (read_u32(locator + 4) != 0 || read_u32(locator + 16) > 1)
                return fail(STATUS_MALFORMED, "the archive is split over several disks");
        if (!within(bytes, at, END64_BYTES) || read_u32(bytes.data + at) != SIGNATURE_END64)
                return fail(STATUS_MALFORMED, "the zip64 end record is not where its locator says");
        const uint8_t *record = bytes.data + at;
        uint64_t n_record = read_u64(record + 4);
        if (n_record < END64_BYTES - 12 || n_record > bytes.n || at + 12 + n_record != end - LOCATOR_BYTES)
                return fail(STATUS_MALFORMED, "the zip64 end record has a wrong size");
        if (read_u32(record + 16) != 0 || read_u32(record + 20) != 0)
                return fail(STATUS_MALFORMED, "the archive is split over several disks");
        uint64_t n = read_u64(record + 32), n_bytes = read_u64(record + 40), offset = read_u64(record + 48);
        if (read_u64(record + 24) != n)
                return fail(STATUS_MALFORMED, "the zip64 end record gives two numbers of members");
        const uint8_t *plain = bytes.data + end;
        if ((read_u16(plain + 10) != UINT16_MAX && read_u16(plain + 10) != n) ||
            (read_u32(plain + 12) != UINT32_MAX && read_u32(plain + 12) != n_bytes) ||
            (read_u32(plain + 16) != UINT32_MAX && read_u32(plain + 16) != offset))
                return fail(STATUS_MALFORMED, "the zip64 end record disagrees with the end record");
        *directory = (Directory){ .offset = offset, .n_bytes = n_bytes, .n_entries = n };
        *out_start = at;
        return STATUS_OK;
}

static Status find_directory(ByteSpan bytes, Directory *out_directory)
{
        size_t end, start;
        TRY(find_end(bytes, &end));
        const uint8_t *record = bytes.data + end;
        Directory directory = { .offset = read_u32(record + 16),
                                .n_bytes = read_u32(record + 12),
                                .n_entries = read_u16(record + 10) };
        TRY(read_end64(bytes, end, &directory, &start));
        if (start == end && (read_u16(record + 4) != 0 || read_u16(record + 6) != 0 ||
                             read_u16(record + 8) != directory.n_entries))
                return fail(STATUS_MALFORMED, "the archive is split over several disks");
        if (!within(bytes, directory.offset, directory.n_bytes) ||
            directory.offset + directory.n_bytes != start)
                return fail(STATUS_MALFORMED, "the central directory is not where the end record says: the "
                                              "file was cut, padded or joined with another");
        if (directory.n_entries > (uint64_t)limits.max_archive_entries)
                return fail(STATUS_TOO_LARGE,
                            "the archive has %zu members; the limit is %lld (max_archive_entries in GET /v1)",
                            directory.n_entries, (long long)limits.max_archive_entries);
        if (directory.n_entries > directory.n_bytes / CENTRAL_BYTES)
                return fail(STATUS_MALFORMED, "the central directory is too short for %zu members",
                            directory.n_entries);
        *out_directory = directory;
        return STATUS_OK;
}

// ---- names ----
static const char *name_fault(const uint8_t *name, size_t n)
{
        const char *at = (const char *)name, *end = at + n;
        if (n == 0)
                return "is empty";
        if (*at == '/')
                return "is absolute";
        if (n >= 2 && at[1] == ':')
                return "is absolute (drive letter)";
        const char *part = at;
        while (at < end) {
                size_t width = utf8_length(at, end);
                if (width == 0)
                        return "is not UTF-8";
                if ((unsigned char)*at < 0x20 || *at == 0x7f)
                        return "holds a control character";
                if (*at == '\\')
                        return "holds a backslash";
                at += width;
                if (at < end && *at != '/')
                        continue;
                size_t part_n = (size_t)(at - part);
                if (part_n == 0 || (part_n == 1 && part[0] == '.'))
                        return "holds an empty or \".\" part";
                if (part_n == 2 && part[0] == '.' && part[1] == '.')
                        return "holds \"..\"";
                if (at < end)
                        part = ++at; // past the slash
                if (at < end && *at == '/')
                        return "holds an empty or \".\" part";
        }
        return NULL;
}

// For messages about a name that cannot be shown as it is.
static const char *name_shown(const uint8_t *name, size_t n, char out[80])
{
        size_t shown = MIN(n, 76);
        for (size_t i = 0; i < shown; i++)
                out[i] = name[i] < 0x20 || name[i] > 0x7e ? '?' : (char)name[i];
        memcpy(out + shown, shown < n ? "..." : "", shown < n ? 4 : 1);
        return out;
}

static Status check_name(const Header *header)
{
        char shown[80];
        const char *fault = name_fault(header->name, header->name_n);
        if (fault != NULL)
                return fail(STATUS_MALFORMED, "the name of member \"%s\" %s",
                            name_shown(header->name, header->name_n, shown), fault);
        uint32_t type = header->mode & MODE_TYPE;
        if (type != 0 && type != MODE_REGULAR && type != MODE_FOLDER)
                return fail(STATUS_MALFORMED, "member \"%s\" is a link or a special file",
                            name_shown(header->name, header->name_n, shown));
        return STATUS_OK;
}

// ---- headers ----
// Finds extra field `id`; *out_field is NULL when it is absent. False when the
// fields do not tile the area or the field stands there twice.
static bool find_extra(const uint8_t *extra, size_t n, uint16_t id, const uint8_t **out_field, size_t *out_n)
{
        *out_field = NULL;
        *out_n = 0;
        while (n >= 4) {
                size_t field_n = read_u16(extra + 2);
                if (field_n > n - 4)
                        return false;
                if (read_u16(extra) == id) {
                        if (*out_field != NULL)
                                return false;
                        *out_field = extra + 4;
                        *out_n = field_n;
                }
                extra += 4 + field_n;
                n -= 4 + field_n;
        }
        return true; // up to three bytes of padding are common
}

static bool widen(uint64_t *value, uint64_t sentinel, const uint8_t **field, size_t *n)
{
        if (*value != sentinel)
                return true;
        if (*field == NULL || *n < 8)
                return false;
        *value = read_u64(*field);
        *field += 8;
        *n -= 8;
        return true;
}

static Status read_central(ByteSpan area, size_t *at, Header *out_header)
{
        if (!within(area, *at, CENTRAL_BYTES) || read_u32(area.data + *at) != SIGNATURE_CENTRAL)
                return fail(STATUS_MALFORMED, "the central directory is damaged at byte %zu", *at);
        const uint8_t *raw = area.data + *at;
        uint16_t name_n = read_u16(raw + 28), extra_n = read_u16(raw + 30), comment_n = read_u16(raw + 32);
        size_t n = (size_t)CENTRAL_BYTES + name_n + extra_n + comment_n;
        if (!within(area, *at, n))
                return fail(STATUS_MALFORMED, "the central directory is damaged at byte %zu", *at);
        Header header = { .flags = read_u16(raw + 8),
                          .method = read_u16(raw + 10),
                          .crc = read_u32(raw + 16),
                          .packed_bytes = read_u32(raw + 20),
                          .n_bytes = read_u32(raw + 24),
                          .offset = read_u32(raw + 42),
                          .name = raw + CENTRAL_BYTES,
                          .name_n = name_n,
                          .mode = read_u32(raw + 38) >> 16 };
        TRY(check_name(&header));
        const uint8_t *wide;
        size_t wide_n;
        if (!find_extra(raw + CENTRAL_BYTES + name_n, extra_n, EXTRA_ZIP64, &wide, &wide_n))
                return fail(STATUS_MALFORMED, "member \"%.*s\" has damaged extra fields", (int)name_n,
                            (const char *)header.name);
        if (!widen(&header.n_bytes, UINT32_MAX, &wide, &wide_n) ||
            !widen(&header.packed_bytes, UINT32_MAX, &wide, &wide_n) ||
            !widen(&header.offset, UINT32_MAX, &wide, &wide_n))
                return fail(STATUS_MALFORMED, "member \"%.*s\" lacks its zip64 sizes", (int)name_n,
                            (const char *)header.name);
        if (read_u16(raw + 34) != 0)
                return fail(STATUS_MALFORMED, "member \"%.*s\" lies on another disk", (int)name_n,
                            (const char *)header.name);
        *at += n;
        *out_header = header;
        return STATUS_OK;
}

static Status check_header(const Header *header, const char *name)
{
        if ((header->flags & FLAG_ENCRYPTED) != 0)
                return fail(STATUS_MALFORMED, "member \"%s\" is encrypted", name);
        if ((header->flags & FLAG_PATCHED) != 0 ||
            (header->method != METHOD_STORED && header->method != METHOD_DEFLATED))
                return fail(STATUS_MALFORMED,
                            "member \"%s\" uses compression method %u; only stored and deflated members can "
                            "be read",
                            name, header->method);
        if (header->method == METHOD_STORED && header->packed_bytes != header->n_bytes)
                return fail(STATUS_MALFORMED, "stored member \"%s\" gives two different sizes", name);
        if (name[strlen(name) - 1] == '/' && header->n_bytes != 0)
                return fail(STATUS_MALFORMED, "folder \"%s\" has content", name);
        if (header->n_bytes > SMALL_BYTES &&
            header->n_bytes / (uint64_t)limits.max_inflate_ratio > header->packed_bytes)
                return fail(STATUS_TOO_LARGE,
                            "member \"%s\" would grow from %llu to %llu bytes; the limit is %lld times "
                            "(max_inflate_ratio in GET /v1)",
                            name, (unsigned long long)header->packed_bytes,
                            (unsigned long long)header->n_bytes, (long long)limits.max_inflate_ratio);
        return STATUS_OK;
}

// The descriptor after the data of a streamed member: with or without signature, sizes of 4 or 8
// bytes. Returns its length, 0 when none fits.
static size_t descriptor_length(ByteSpan bytes, size_t at, const Header *header)
{
        for (int form = 3; form >= 0; form--) {
                size_t mark = (form & 1) != 0 ? 4 : 0, size_n = (form & 2) != 0 ? 4 : 8,
                       n = mark + 4 + 2 * size_n;
                if (!within(bytes, at, n) || (mark != 0 && read_u32(bytes.data + at) != SIGNATURE_DESCRIPTOR))
                        continue;
                const uint8_t *raw = bytes.data + at + mark;
                uint64_t packed = size_n == 4 ? read_u32(raw + 4) : read_u64(raw + 4);
                uint64_t content = size_n == 4 ? read_u32(raw + 8) : read_u64(raw + 12);
                if (read_u32(raw) == header->crc && packed == header->packed_bytes &&
                    content == header->n_bytes)
                        return n;
        }
        return 0;
}

// Whether the sizes and CRC of the local header are those of the central one; zeros are allowed
// when a descriptor follows.
static bool local_sizes_agree(const uint8_t *raw, const uint8_t *extra, size_t extra_n, const Header *header)
{
        uint32_t crc = read_u32(raw + 14);
        uint64_t packed = read_u32(raw + 18), content = read_u32(raw + 22);
        const uint8_t *wide;
        size_t wide_n;
        if (!find_extra(extra, extra_n, EXTRA_ZIP64, &wide, &wide_n))
                return false;
        if (!widen(&content, UINT32_MAX, &wide, &wide_n) || !widen(&packed, UINT32_MAX, &wide, &wide_n))
                return false;
        bool streamed = (header->flags & FLAG_DESCRIPTOR) != 0;
        if (streamed && crc == 0 && packed == 0 && content == 0)
                return true;
        return crc == header->crc && packed == header->packed_bytes && content == header->n_bytes;
}

// Follows a member to its local header: fills the entry's offset and the extent it takes.
static Status locate(ByteSpan bytes, const Directory *directory, const Header *header, ZipEntry *entry,
                     Extent *out_extent)
{
        if (!within(bytes, header->offset, LOCAL_BYTES) ||
            read_u32(bytes.data + header->offset) != SIGNATURE_LOCAL)
                return fail(STATUS_MALFORMED,
                            "member \"%s\" has no local header where the central directory says",
                            entry->name);
        const uint8_t *raw = bytes.data + header->offset;
        size_t name_n = read_u16(raw + 26), extra_n = read_u16(raw + 28);
        size_t data = (size_t)header->offset + LOCAL_BYTES + name_n + extra_n;
        if (data > bytes.n || name_n != header->name_n ||
            memcmp(raw + LOCAL_BYTES, header->name, name_n) != 0)
                return fail(STATUS_MALFORMED, "member \"%s\" has another name in its local header",
                            entry->name);
        uint16_t compared = FLAG_ENCRYPTED | FLAG_DESCRIPTOR | FLAG_PATCHED;
        if (read_u16(raw + 8) != header->method || ((read_u16(raw + 6) ^ header->flags) & compared) != 0)
                return fail(STATUS_MALFORMED,
                            "the local header of member \"%s\" disagrees with the central directory: method "
                            "or flags",
                            entry->name);
        if (!local_sizes_agree(raw, raw + LOCAL_BYTES + name_n, extra_n, header))
                return fail(STATUS_MALFORMED,
                            "the local header of member \"%s\" disagrees with the central directory: sizes "
                            "or CRC",
                            entry->name);
        if (!within(bytes, data, header->packed_bytes))
                return fail(STATUS_MALFORMED, "member \"%s\" reaches beyond the archive", entry->name);
        size_t end = data + (size_t)header->packed_bytes;
        if ((header->flags & FLAG_DESCRIPTOR) != 0) {
                size_t n = descriptor_length(bytes, end, header);
                if (n == 0)
                        return fail(
                                STATUS_MALFORMED,
                                "the data descriptor of member \"%s\" disagrees with the central directory",
                                entry->name);
                end += n;
        }
        if (end > directory->offset)
                return fail(STATUS_MALFORMED, "member \"%s\" overlaps the central directory", entry->name);
        entry->offset = data;
        *out_extent = (Extent){ .begin = (size_t)header->offset, .end = end };
        return STATUS_OK;
}

static int compare_extents(const void *a, const void *b)
{
        const Extent *left = a, *right = b;
        return left->begin < right->begin ? -1 : left->begin > right->begin;
}

static Status check_overlaps(const Zip *zip, Extent *extents)
{
        qsort(extents, zip->n_entries, sizeof(*extents), compare_extents);
        if (zip->n_entries > 0 && extents[0].begin != 0)
                return fail(STATUS_MALFORMED, "the archive has %zu bytes before its first member",
                            extents[0].begin);
        for (uint32_t i = 1; i < zip->n_entries; i++) {
                if (extents[i].begin < extents[i - 1].end)
                        return fail(STATUS_MALFORMED, "members \"%s\" and \"%s\" overlap",
                                    zip->entries[extents[i - 1].index].name,
                                    zip->entries[extents[i].index].name);
        }
        return STATUS_OK;
}

static Status read_directory(Zip *zip, const Directory *directory, Extent *extents)
{
        ByteSpan area = { zip->bytes.data + directory->offset, directory->n_bytes };
        char *names = zip->names;
        size_t at = 0;
        for (size_t i = 0; i < directory->n_entries; i++) {
                Header header;
                TRY(read_central(area, &at, &header));
                memcpy(names, header.name, header.name_n);
                names[header.name_n] = '\0';
                TRY(check_header(&header, names));
                ZipEntry *entry = &zip->entries[i];
                *entry = (ZipEntry){ .name = names,
                                     .deflated = header.method == METHOD_DEFLATED,
                                     .crc = header.crc,
                                     .packed_bytes = (size_t)header.packed_bytes,
                                     .n_bytes = (size_t)header.n_bytes };
                TRY(locate(zip->bytes, directory, &header, entry, &extents[i]));
                extents[i].index = zip->n_entries++;
                if (entry->deflated && !add_size(zip->n_inflated, entry->n_bytes, &zip->n_inflated))
                        zip->n_inflated = SIZE_MAX;
                void *earlier = string_map_get(&zip->by_name, names);
                if (earlier != NULL)
                        return fail(STATUS_MALFORMED, "member \"%s\" stands in the archive twice", names);
                TRY(string_map_set(&zip->by_name, names, entry, NULL));
                names += header.name_n + 1;
        }
        if (at != directory->n_bytes)
                return fail(STATUS_MALFORMED, "the central directory is longer than its %zu members",
                            directory->n_entries);
        return STATUS_OK;
}

Status zip_open(ByteSpan bytes, Zip **out_zip)
{
        Directory directory;
        TRY(find_directory(bytes, &directory));
        _cleanup_(zip_freep) Zip *zip = calloc(1, sizeof(*zip));
        _cleanup_(freep) Extent *extents = new_array(directory.n_entries, sizeof(*extents));
        if (zip == NULL || extents == NULL)
                return fail_memory();
        zip->bytes = bytes;
        zip->entries = new_array(directory.n_entries, sizeof(*zip->entries));
        zip->names = malloc(directory.n_bytes + 1); // a header is longer than the NUL its name needs
        if (zip->entries == NULL || zip->names == NULL)
                return fail_memory();
        TRY(read_directory(zip, &directory, extents));
        TRY(check_overlaps(zip, extents));
        *out_zip = take_ptr(zip);
        return STATUS_OK;
}

Zip *zip_free(Zip *zip)
{
        if (zip == NULL)
                return NULL;
        string_map_deinit(&zip->by_name);
        free(zip->entries);
        free(zip->names);
        free(zip);
        return NULL;
}

uint32_t zip_count(const Zip *zip)
{
        return zip->n_entries;
}

size_t zip_inflated(const Zip *zip)
{
        return zip->n_inflated;
}

const ZipEntry *zip_entry(const Zip *zip, uint32_t index)
{
        return &zip->entries[index];
}

const ZipEntry *zip_find(const Zip *zip, const char *name)
{
        return string_map_get(&zip->by_name, name);
}

// ---- content ----
static Status inflate_into(ByteSpan packed, const ZipEntry *entry, uint8_t *out)
{
        z_stream stream = { 0 };
        if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
                return fail_memory();
        size_t in_left = packed.n, out_left = entry->n_bytes;
        uint8_t nothing;
        stream.next_in = (uint8_t *)(uintptr_t)packed.data; // zlib reads only
        stream.next_out = out == NULL ? &nothing : out;
        int code;
        do {
                stream.avail_in = (uInt)MIN(in_left, (size_t)INFLATE_STEP);
                stream.avail_out = (uInt)MIN(out_left, (size_t)INFLATE_STEP);
                uInt in_given = stream.avail_in, out_given = stream.avail_out;
                code = inflate(&stream, Z_NO_FLUSH);
                in_left -= in_given - stream.avail_in;
                out_left -= out_given - stream.avail_out;
                if (code == Z_OK && in_given == stream.avail_in && out_given == stream.avail_out)
                        code = Z_BUF_ERROR;
        } while (code == Z_OK);
        inflateEnd(&stream);
        if (code == Z_MEM_ERROR)
                return fail_memory();
        if (code != Z_STREAM_END || in_left != 0 || out_left != 0)
                return fail(STATUS_MALFORMED, "member \"%s\" does not inflate to its %zu bytes", entry->name,
                            entry->n_bytes);
        return STATUS_OK;
}

Status zip_read(const Zip *zip, const ZipEntry *entry, size_t max_bytes, ZipContent *out_content)
{
        if (entry->n_bytes > max_bytes)
                return fail(STATUS_TOO_LARGE, "member \"%s\" has %zu bytes; the limit is %zu", entry->name,
                            entry->n_bytes, max_bytes);
        ByteSpan packed = { zip->bytes.data + entry->offset, entry->packed_bytes };
        _cleanup_(freep) uint8_t *owned = NULL;
        ByteSpan content = packed;
        if (entry->deflated) {
                owned = malloc(entry->n_bytes == 0 ? 1 : entry->n_bytes);
                if (owned == NULL)
                        return fail_memory();
                TRY(inflate_into(packed, entry, owned));
                content = (ByteSpan){ owned, entry->n_bytes };
        }
        if (crc32_z(0, content.data, content.n) != entry->crc)
                return fail(STATUS_MALFORMED,
                            "member \"%s\" has a wrong CRC: the file was damaged on its way", entry->name);
        *out_content = (ZipContent){ .span = content, .owned = take_ptr(owned) };
        return STATUS_OK;
}

Status zip_read_into(const Zip *zip, const ZipEntry *entry, uint8_t *out)
{
        ByteSpan packed = { zip->bytes.data + entry->offset, entry->packed_bytes };
        if (entry->deflated)
                TRY(inflate_into(packed, entry, out));
        else if (packed.n > 0)
                memcpy(out, packed.data, packed.n);
        if (crc32_z(0, out, entry->n_bytes) != entry->crc)
                return fail(STATUS_MALFORMED,
                            "member \"%s\" has a wrong CRC: the file was damaged on its way", entry->name);
        return STATUS_OK;
}

void zip_content_deinit(ZipContent *content)
{
        free(content->owned);
        *content = (ZipContent){ 0 };
}
