// SPDX-License-Identifier: Apache-2.0
// Whole pictures are compared with Pillow's by tests/live/images.py; here is what it cannot see.
#include "api/formats/image_parts.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"

static uint8_t file[4096];

static ByteSpan load(const char *name)
{
        char path[512];
        snprintf(path, sizeof(path), TESTS_FOLDER "/%s", name);
        FILE *from = fopen(path, "rb");
        cr_assert_not_null(from, "%s", path);
        size_t n = fread(file, 1, sizeof(file), from);
        fclose(from);
        return (ByteSpan){ file, n };
}

static const char *const pictures[] = { "fuzz/corpus/image/progressive.jpg", "fuzz/corpus/image/cmyk.jpg",
                                        "fuzz/corpus/image/grey.jpg",        "fuzz/corpus/image/restarts.jpg",
                                        "fuzz/corpus/image/turned.png",      "fuzz/corpus/image/deep.png" };

static Status read_with(ByteSpan bytes, size_t budget_bytes, Image *out)
{
        RunContext ctx;
        Budget budget;
        run_context_init(&ctx);
        budget_init(&budget, budget_bytes);
        ctx.budget = &budget;
        Status status = image_read(bytes, &ctx, out);
        if (status == STATUS_OK)
                image_deinit(out);
        cr_expect_eq(atomic_load(&budget.used), 0);
        return status;
}

Test(image, files_are_read_within_their_budget_and_pixels_only)
{
        for (size_t i = 0; i < ARRAY_LENGTH(pictures); i++) {
                Image image;
                ByteSpan bytes = load(pictures[i]);
                limits.max_image_pixels = 1000;
                cr_assert_eq(read_with(bytes, 1 << 20, &image), STATUS_OK, "%s: %s", pictures[i],
                             failure_current()->message);
                cr_expect_eq(read_with(bytes, 50, &image), STATUS_TOO_LARGE);
                limits.max_image_pixels = image.width * image.height;
                cr_expect_eq(read_with(bytes, 1 << 20, &image), STATUS_OK);
                limits.max_image_pixels -= 1;
                cr_expect_eq(read_with(bytes, 1 << 20, &image), STATUS_TOO_LARGE);
        }
}

// Besides its pixels, a progressive picture keeps all coefficients.
Test(image, coefficients_of_progressive_files_count)
{
        Image image;
        ByteSpan bytes = load(pictures[0]);
        cr_expect_eq(read_with(bytes, 24 * 17 * 3 + 1000, &image), STATUS_TOO_LARGE);
        cr_expect_not_null(strstr(failure_current()->message, "decoding the JPEG file"));
}

Test(image, cut_anywhere_is_an_error_and_leaks_nothing)
{
        for (size_t i = 0; i < ARRAY_LENGTH(pictures); i++) {
                ByteSpan bytes = load(pictures[i]);
                for (size_t n = 3; n + 20 < bytes.n; n++) {
                        Image image;
                        uint8_t *part = malloc(n);
                        memcpy(part, bytes.data, n);
                        if (image_is((ByteSpan){ part, n }))
                                cr_expect_eq(read_with((ByteSpan){ part, n }, 1 << 20, &image),
                                             STATUS_MALFORMED, "%s cut at %zu", pictures[i], n);
                        free(part);
                }
        }
}

Test(image, of_no_pixels_or_of_absurd_ones_is_refused)
{
        RunContext ctx;
        Image image;
        run_context_init(&ctx);
        cr_expect_eq(image_new((uint64_t)1 << 40, (uint64_t)1 << 40, &ctx, &image), STATUS_TOO_LARGE);
        cr_expect_eq(image_new(0, 3, &ctx, &image), STATUS_MALFORMED);
}

static int turn_of(const char *text, size_t n)
{
        uint8_t *copy = malloc(n);
        memcpy(copy, text, n);
        int turn = exif_turn((ByteSpan){ copy, n });
        free(copy);
        return turn;
}

Test(exif, gives_the_orientation_of_either_byte_order_and_1_for_anything_else)
{
        static const char little[] = "II*\0\x08\0\0\0\x02\0"
                                     "\x0f\x01\x02\0\x01\0\0\0\0\0\0\0"
                                     "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        static const char big[] = "MM\0*\0\0\0\x08\0\x01"
                                  "\x01\x12\0\x03\0\0\0\x01\0\x03\0\0";
        char changed[sizeof(little) - 1];
        cr_expect_eq(turn_of(little, sizeof(little) - 1), 6);
        cr_expect_eq(turn_of(big, sizeof(big) - 1), 3);
        for (size_t n = 0; n < sizeof(little) - 1; n++)
                cr_expect_eq(turn_of(little, n), 1, "cut at %zu", n);
        static const struct {
                size_t at;
                char to;
        } changes[] = { { 0, 'M' }, { 2, '+' }, { 7, '\xff' }, { 22, 0 }, { 24, 4 }, { 30, 0 }, { 30, 9 } };
        for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
                memcpy(changed, little, sizeof(changed));
                changed[changes[i].at] = changes[i].to;
                cr_expect_eq(turn_of(changed, sizeof(changed)), 1, "change %zu", i);
        }
}

Test(image, orientations_are_views_of_the_same_bytes)
{
        // 1 2      what is seen with each orientation, row by row
        // 3 4
        // 5 6
        static const char *const seen[] = { "123456", "214365", "654321", "563412",
                                            "135246", "531642", "642531", "246135" };
        Storage *bytes = NULL;
        cr_assert_eq(storage_new(6 * IMAGE_CHANNELS, false, NULL, &bytes), STATUS_OK);
        for (int i = 0; i < 6 * IMAGE_CHANNELS; i++)
                bytes->data[i] = (uint8_t)('1' + i / IMAGE_CHANNELS);
        for (int turn = 1; turn <= 8; turn++) {
                Image image = { .width = 2, .height = 3, .turn = turn, .bytes = bytes };
                ImageView view = image_as_rgb(&image);
                char text[7] = "";
                cr_expect_eq(view.width, turn < 5 ? 2 : 3);
                for (int64_t y = 0; y < view.height; y++)
                        for (int64_t x = 0; x < view.width; x++)
                                text[y * view.width + x] = (char)view.origin[y * view.row + x * view.column];
                cr_expect_str_eq(text, seen[turn - 1]);
        }
        storage_unref(bytes);
}
