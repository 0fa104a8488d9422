// SPDX-License-Identifier: Apache-2.0
#include "tests/api/formats/zip_maker.h"
#include "core/base/limits.h"

static const char zeros[100000];

static const ZipMember basic[] = {
        { .name = "m/a.txt", .content = "first member", .n = 12 },
        { .name = "m/b.bin",
          .content = "second member, second member, second member",
          .n = 43,
          .deflated = true },
        { .name = "m/c/", .content = "", .n = 0 },
        { .name = "m/d", .content = "described", .n = 9, .described = true, .padding = 23 },
};

static void expect_content(const Zip *zip, const char *name, const char *content, size_t n)
{
        const ZipEntry *entry = zip_find(zip, name);
        cr_assert_not_null(entry, "%s is missing", name);
        ZipContent read = { 0 };
        Status status = zip_read(zip, entry, SIZE_MAX, &read);
        cr_assert_eq(status, STATUS_OK, "%s: %s", name, failure_current()->message);
        cr_expect_eq(read.span.n, n);
        cr_expect(memcmp(read.span.data, content, n) == 0, "%s holds other bytes", name);
        zip_content_deinit(&read);
}

static void expect_basic(bool zip64)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(basic, 4, zip64, &bytes, &places);
        Status status = zip_open(span_of(&bytes), &zip);
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
        cr_expect_eq(zip_count(zip), 4);
        cr_expect_str_eq(zip_entry(zip, 1)->name, "m/b.bin");
        cr_expect_null(zip_find(zip, "m/a"));
        for (int i = 0; i < 4; i++)
                expect_content(zip, basic[i].name, basic[i].content, basic[i].n);
        zip_free(zip);
        text_deinit(&bytes);
}

Test(zip, reads_stored_deflated_empty_and_described_members)
{
        expect_basic(false);
}

Test(zip, reads_archives_with_zip64_end_records)
{
        expect_basic(true);
}

Test(zip, lends_stored_members_and_owns_inflated_ones)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        ZipContent stored = { 0 }, inflated = { 0 };
        make_zip(basic, 4, true, &bytes, &places);
        cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
        cr_assert_eq(zip_read(zip, zip_find(zip, "m/a.txt"), SIZE_MAX, &stored), STATUS_OK);
        cr_assert_eq(zip_read(zip, zip_find(zip, "m/b.bin"), SIZE_MAX, &inflated), STATUS_OK);
        cr_expect_null(stored.owned);
        cr_expect_eq((const char *)stored.span.data, bytes.data + places.data[0]);
        cr_expect_not_null(inflated.owned);
        zip_content_deinit(&stored);
        zip_content_deinit(&inflated);
        zip_free(zip);
        text_deinit(&bytes);
}

Test(zip, reads_an_archive_without_members)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(NULL, 0, false, &bytes, &places);
        cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
        cr_expect_eq(zip_count(zip), 0);
        zip_free(zip);
        text_deinit(&bytes);
}

Test(zip, refuses_to_read_a_member_over_the_callers_limit)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        ZipContent content = { 0 };
        make_zip(basic, 4, false, &bytes, &places);
        cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
        expect_failure("limit", zip_read(zip, zip_find(zip, "m/b.bin"), 42, &content), STATUS_TOO_LARGE,
                       "m/b.bin");
        cr_expect_eq(zip_read(zip, zip_find(zip, "m/b.bin"), 43, &content), STATUS_OK);
        zip_content_deinit(&content);
        zip_free(zip);
        text_deinit(&bytes);
}

// ---- damaged archives: one valid archive, a few fields overwritten ----
typedef enum Anchor { NOTHING, LOCAL, DATA, AFTER, CENTRAL, END64, LOCATOR, END } Anchor;
typedef struct Patch {
        Anchor anchor;
        int member;
        int offset, width;
        uint64_t value;
} Patch;
typedef struct DamagedCase {
        const char *what;
        Patch patches[4];
        Status status;
        const char *word;
} DamagedCase;

static size_t place_of(const ZipPlaces *places, const Patch *patch)
{
        switch (patch->anchor) {
        case LOCAL:
                return places->local[patch->member];
        case DATA:
                return places->data[patch->member];
        case AFTER:
                return places->after[patch->member];
        case CENTRAL:
                return places->central[patch->member];
        case END64:
                return places->end64;
        case LOCATOR:
                return places->locator;
        default:
                return places->end;
        }
}

// Sizes of `basic`: a.txt 12, b.bin 43 (deflated), c/ 0, d 9 (described).
static const DamagedCase damaged[] = {
        { "end signature", { { END, 0, 0, 4, 0 } }, STATUS_MALFORMED, "end record" },
        { "comment longer than the file", { { END, 0, 20, 2, 7 } }, STATUS_MALFORMED, "end record" },
        { "directory offset beyond the file",
          { { END, 0, 16, 4, 0x7fffffff }, { LOCATOR, 0, 0, 4, 0 } },
          STATUS_MALFORMED,
          "central directory" },
        { "directory size too small",
          { { END, 0, 12, 4, 46 }, { LOCATOR, 0, 0, 4, 0 } },
          STATUS_MALFORMED,
          "central directory" },
        { "directory size of 4 GiB",
          { { END, 0, 12, 4, 0xffffffff }, { LOCATOR, 0, 0, 4, 0 } },
          STATUS_MALFORMED,
          "central directory" },
        { "another disk",
          { { END, 0, 4, 2, 1 }, { LOCATOR, 0, 0, 4, 0 }, { END, 0, 16, 4, 0 } },
          STATUS_MALFORMED,
          "disks" },
        { "one member too many",
          { { END, 0, 8, 2, 5 }, { END, 0, 10, 2, 5 }, { END64, 0, 24, 8, 5 }, { END64, 0, 32, 8, 5 } },
          STATUS_MALFORMED,
          "central directory" },
        { "one member too few",
          { { END, 0, 8, 2, 3 }, { END, 0, 10, 2, 3 }, { END64, 0, 24, 8, 3 }, { END64, 0, 32, 8, 3 } },
          STATUS_MALFORMED,
          "longer" },
        { "a million members",
          { { END, 0, 10, 2, 0xffff }, { END64, 0, 24, 8, 1000000 }, { END64, 0, 32, 8, 1000000 } },
          STATUS_TOO_LARGE,
          "1000000 members" },
        { "more members than headers fit",
          { { END, 0, 10, 2, 0xffff }, { END64, 0, 24, 8, 1000 }, { END64, 0, 32, 8, 1000 } },
          STATUS_MALFORMED,
          "too short" },
        { "zip64 locator points elsewhere", { { LOCATOR, 0, 8, 8, 10 } }, STATUS_MALFORMED, "zip64" },
        { "zip64 locator points beyond the file",
          { { LOCATOR, 0, 8, 8, UINT64_MAX - 10 } },
          STATUS_MALFORMED,
          "zip64" },
        { "zip64 locator on another disk", { { LOCATOR, 0, 4, 4, 3 } }, STATUS_MALFORMED, "disks" },
        { "zip64 record of another size", { { END64, 0, 4, 8, 45 } }, STATUS_MALFORMED, "zip64" },
        { "zip64 record of huge size", { { END64, 0, 4, 8, UINT64_MAX } }, STATUS_MALFORMED, "zip64" },
        { "zip64 entry counts differ", { { END64, 0, 24, 8, 3 } }, STATUS_MALFORMED, "zip64" },
        { "zip64 directory offset differs", { { END64, 0, 48, 8, 1 } }, STATUS_MALFORMED, "zip64" },
        { "zip64 directory size lies",
          { { END, 0, 12, 4, 0xffffffff }, { END64, 0, 40, 8, UINT64_MAX } },
          STATUS_MALFORMED,
          "central directory" },
        { "central signature", { { CENTRAL, 1, 0, 4, 0 } }, STATUS_MALFORMED, "damaged at byte" },
        { "central name reaches out", { { CENTRAL, 3, 28, 2, 60000 } }, STATUS_MALFORMED, "damaged at byte" },
        { "central size without its zip64 field",
          { { CENTRAL, 0, 24, 4, 0xffffffff } },
          STATUS_MALFORMED,
          "zip64" },
        { "central offset without its zip64 field",
          { { CENTRAL, 0, 42, 4, 0xffffffff } },
          STATUS_MALFORMED,
          "zip64" },
        { "stored member with two sizes",
          { { CENTRAL, 0, 24, 4, 13 } },
          STATUS_MALFORMED,
          "two different sizes" },
        { "encrypted", { { CENTRAL, 0, 8, 2, 0x0801 } }, STATUS_MALFORMED, "encrypted" },
        { "strongly encrypted", { { CENTRAL, 0, 8, 2, 0x0840 } }, STATUS_MALFORMED, "encrypted" },
        { "patched data", { { CENTRAL, 0, 8, 2, 0x0820 } }, STATUS_MALFORMED, "method" },
        { "method 12 (bzip2)", { { CENTRAL, 1, 10, 2, 12 } }, STATUS_MALFORMED, "method 12" },
        { "symbolic link", { { CENTRAL, 0, 38, 4, 0xa1ff0000 } }, STATUS_MALFORMED, "link" },
        { "device file", { { CENTRAL, 0, 38, 4, 0x21ff0000 } }, STATUS_MALFORMED, "special file" },
        { "folder with content",
          { { CENTRAL, 2, 24, 4, 5 }, { CENTRAL, 2, 20, 4, 5 } },
          STATUS_MALFORMED,
          "folder" },
        { "central on another disk", { { CENTRAL, 1, 34, 2, 1 } }, STATUS_MALFORMED, "another disk" },
        { "local signature", { { LOCAL, 1, 0, 4, 0 } }, STATUS_MALFORMED, "no local header" },
        { "local name differs", { { LOCAL, 1, 31, 1, '-' } }, STATUS_MALFORMED, "another name" },
        { "local name length differs", { { LOCAL, 1, 26, 2, 6 } }, STATUS_MALFORMED, "another name" },
        { "local method differs", { { LOCAL, 1, 8, 2, 0 } }, STATUS_MALFORMED, "method or flags" },
        { "local encrypted", { { LOCAL, 1, 6, 2, 0x0801 } }, STATUS_MALFORMED, "method or flags" },
        { "local crc differs", { { LOCAL, 1, 14, 4, 1 } }, STATUS_MALFORMED, "sizes or CRC" },
        { "local packed size differs", { { LOCAL, 1, 18, 4, 1 } }, STATUS_MALFORMED, "sizes or CRC" },
        { "local size differs", { { LOCAL, 1, 22, 4, 44 } }, STATUS_MALFORMED, "sizes or CRC" },
        { "local extra fields reach out", { { LOCAL, 3, 28, 2, 0xffff } }, STATUS_MALFORMED, "m/d" },
        { "local extra field does not fit", { { LOCAL, 3, 35, 2, 500 } }, STATUS_MALFORMED, "m/d" },
        { "descriptor with another size", { { AFTER, 3, -4, 4, 10 } }, STATUS_MALFORMED, "descriptor" },
        { "descriptor with another crc", { { AFTER, 3, -12, 4, 10 } }, STATUS_MALFORMED, "descriptor" },
        { "two headers share a member", { { CENTRAL, 2, 42, 4, 0 } }, STATUS_MALFORMED, "another name" },
        { "member reaches beyond the archive",
          { { CENTRAL, 0, 20, 4, 100000 },
            { CENTRAL, 0, 24, 4, 100000 },
            { LOCAL, 0, 18, 4, 100000 },
            { LOCAL, 0, 22, 4, 100000 } },
          STATUS_MALFORMED,
          "beyond the archive" },
        { "member overlaps the next",
          { { CENTRAL, 0, 20, 4, 30 },
            { CENTRAL, 0, 24, 4, 30 },
            { LOCAL, 0, 18, 4, 30 },
            { LOCAL, 0, 22, 4, 30 } },
          STATUS_MALFORMED,
          "overlap" },
        { "grows a thousandfold",
          { { CENTRAL, 1, 24, 4, 5000000 }, { LOCAL, 1, 22, 4, 5000000 } },
          STATUS_TOO_LARGE,
          "grow" },
};

Test(zip, refuses_damaged_archives_and_names_what_is_wrong)
{
        for (size_t i = 0; i < ARRAY_LENGTH(damaged); i++) {
                Text bytes = { 0 };
                ZipPlaces places;
                Zip *zip = NULL;
                make_zip(basic, 4, true, &bytes, &places);
                for (int k = 0; k < 4; k++) {
                        const Patch *patch = &damaged[i].patches[k];
                        for (int b = 0; b < patch->width && patch->anchor != NOTHING; b++)
                                bytes.data[(long)place_of(&places, patch) + patch->offset + b] =
                                        (char)(patch->value >> (8 * b));
                }
                expect_failure(damaged[i].what, zip_open(span_of(&bytes), &zip), damaged[i].status,
                               damaged[i].word);
                zip_free(zip);
                text_deinit(&bytes);
        }
}

Test(zip, refuses_content_that_does_not_match_its_crc_or_size)
{
        static const struct {
                const char *what;
                int member;
                Patch patch;
                const char *word;
        } cases[] = {
                { "stored byte changed", 0, { DATA, 0, 3, 1, 'X' }, "CRC" },
                { "deflated byte changed", 1, { DATA, 1, 0, 1, 0xff }, "inflate" },
                { "described byte changed", 3, { DATA, 3, 0, 1, 'X' }, "CRC" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text bytes = { 0 };
                ZipPlaces places;
                Zip *zip = NULL;
                ZipContent content = { 0 };
                make_zip(basic, 4, true, &bytes, &places);
                bytes.data[place_of(&places, &cases[i].patch) + (size_t)cases[i].patch.offset] =
                        (char)cases[i].patch.value;
                cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
                expect_failure(cases[i].what,
                               zip_read(zip, zip_entry(zip, (uint32_t)cases[i].member), SIZE_MAX, &content),
                               STATUS_MALFORMED, cases[i].word);
                zip_free(zip);
                text_deinit(&bytes);
        }
}

Test(zip, refuses_declared_sizes_that_deflated_data_does_not_have)
{
        for (int delta = -1; delta <= 1; delta += 2) {
                Text bytes = { 0 };
                ZipPlaces places;
                Zip *zip = NULL;
                ZipContent content = { 0 };
                make_zip(basic, 4, false, &bytes, &places);
                bytes.data[places.central[1] + 24] = bytes.data[places.local[1] + 22] = (char)(43 + delta);
                cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
                expect_failure("size", zip_read(zip, zip_entry(zip, 1), SIZE_MAX, &content), STATUS_MALFORMED,
                               "inflate");
                zip_free(zip);
                text_deinit(&bytes);
        }
}

Test(zip, refuses_names_that_could_leave_a_folder_or_hide)
{
        static const struct {
                const char *name, *word;
        } cases[] = {
                { "../up", ".." },
                { "m/../../up", ".." },
                { "m/..", ".." },
                { "/etc/passwd", "absolute" },
                { "C:/windows", "absolute" },
                { "m\\up", "backslash" },
                { "m//a", "empty" },
                { "./a", "\".\"" },
                { "m/./a", "\".\"" },
                { "m/a\nb", "control" },
                { "m/\x7f", "control" },
                { "m/\xff", "UTF-8" },
                { "m/\xc0\xaf", "UTF-8" },
                { "", "empty" },
                { "m/\xed\xa0\x80", "UTF-8" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text bytes = { 0 };
                ZipPlaces places;
                Zip *zip = NULL;
                ZipMember member = { .name = cases[i].name, .content = "x", .n = 1 };
                make_zip(&member, 1, false, &bytes, &places);
                expect_failure(cases[i].name, zip_open(span_of(&bytes), &zip), STATUS_MALFORMED,
                               cases[i].word);
                zip_free(zip);
                text_deinit(&bytes);
        }
}

Test(zip, refuses_a_nul_in_a_name)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(basic, 4, false, &bytes, &places);
        bytes.data[places.local[0] + 32] = bytes.data[places.central[0] + 48] = '\0';
        expect_failure("nul", zip_open(span_of(&bytes), &zip), STATUS_MALFORMED, "control character");
        text_deinit(&bytes);
}

Test(zip, refuses_two_members_of_one_name)
{
        const ZipMember twins[] = { { .name = "m/a", .content = "1", .n = 1 },
                                    { .name = "m/a", .content = "2", .n = 1 } };
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(twins, 2, false, &bytes, &places);
        expect_failure("twins", zip_open(span_of(&bytes), &zip), STATUS_MALFORMED, "twice");
        text_deinit(&bytes);
}

Test(zip, refuses_bytes_before_and_after_the_archive)
{
        Text bytes = { 0 }, after = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        text_add(&bytes, "MZ this is a program");
        make_zip(basic, 4, false, &bytes, &places);
        expect_failure("before", zip_open(span_of(&bytes), &zip), STATUS_MALFORMED,
                       "before its first member");
        make_zip(basic, 4, false, &after, &places);
        text_add(&after, "more");
        expect_failure("after", zip_open(span_of(&after), &zip), STATUS_MALFORMED, "end record");
        text_deinit(&bytes);
        text_deinit(&after);
}

Test(zip, lets_small_members_of_zeros_deflate_by_any_factor)
{
        const ZipMember member = {
                .name = "m/zeros", .content = zeros, .n = sizeof(zeros), .deflated = true
        };
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(&member, 1, false, &bytes, &places);
        cr_assert_lt(bytes.n, 1000);
        cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK, "%s", failure_current()->message);
        expect_content(zip, "m/zeros", zeros, sizeof(zeros));
        zip_free(zip);
        text_deinit(&bytes);
}

Test(zip, counts_what_all_deflated_members_together_inflate_to)
{
        const ZipMember members[] = {
                { .name = "m/stored", .content = zeros, .n = sizeof(zeros) },
                { .name = "m/a", .content = zeros, .n = sizeof(zeros), .deflated = true },
                { .name = "m/b", .content = zeros, .n = sizeof(zeros), .deflated = true }
        };
        Text bytes = { 0 };
        ZipPlaces places;
        Zip *zip = NULL;
        make_zip(members, 3, false, &bytes, &places);
        cr_assert_eq(zip_open(span_of(&bytes), &zip), STATUS_OK);
        cr_expect_eq(zip_inflated(zip), 2 * sizeof(zeros));
        zip_free(zip);
        text_deinit(&bytes);
}

Test(zip, survives_truncation_at_every_byte)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_zip(basic, 4, true, &bytes, &places);
        for (size_t n = 0; n < bytes.n; n++) {
                Zip *zip = NULL;
                uint8_t *cut = malloc(n == 0 ? 1 : n); // its own allocation, so that reading past it is seen
                memcpy(cut, bytes.data, n);
                cr_expect_eq(zip_open((ByteSpan){ cut, n }, &zip), STATUS_MALFORMED, "cut at %zu", n);
                zip_free(zip);
                free(cut);
        }
        text_deinit(&bytes);
}

Test(zip, survives_any_changed_byte)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_zip(basic, 4, true, &bytes, &places);
        for (size_t at = 0; at < bytes.n; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        Zip *zip = NULL;
                        bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
                        if (zip_open(span_of(&bytes), &zip) == STATUS_OK) {
                                for (uint32_t i = 0; i < zip_count(zip); i++) {
                                        ZipContent content = { 0 };
                                        if (zip_read(zip, zip_entry(zip, i), 1 << 20, &content) == STATUS_OK)
                                                zip_content_deinit(&content);
                                }
                        }
                        zip_free(zip);
                        bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
                }
        }
        text_deinit(&bytes);
}
