// SPDX-License-Identifier: Apache-2.0
#include "api/formats/image_parts.h"
#include "core/base/limits.h"

bool image_is(ByteSpan bytes)
{
        return jpeg_is(bytes) || png_is(bytes);
}

Status image_read(ByteSpan bytes, const RunContext *ctx, Image *out_image)
{
        return jpeg_is(bytes) ? jpeg_read(bytes, ctx, out_image) : png_read(bytes, ctx, out_image);
}

Status image_new(uint64_t width, uint64_t height, const RunContext *ctx, Image *out_image)
{
        Image image = { .width = (int64_t)width, .height = (int64_t)height, .turn = 1 };
        if (width == 0 || height == 0)
                return fail(STATUS_MALFORMED, "the image has no pixels");
        if (width > (uint64_t)limits.max_image_pixels / height)
                return fail(STATUS_TOO_LARGE,
                            "the image has %llu x %llu pixels; %lld are taken (--max-image-pixels, "
                            "FXSERVE_MAX_IMAGE_PIXELS): send a smaller one",
                            (unsigned long long)width, (unsigned long long)height,
                            (long long)limits.max_image_pixels);
        TRY(storage_new((size_t)width * height * IMAGE_CHANNELS, true, ctx->budget, &image.bytes));
        *out_image = image;
        return STATUS_OK;
}

void image_deinit(Image *image)
{
        image->bytes = storage_unref(image->bytes);
}

// ---- Exif ----
static uint32_t number_at(const uint8_t *at, int n, bool little)
{
        uint32_t value = 0;
        for (int i = 0; i < n; i++)
                value = value << 8 | at[little ? n - 1 - i : i];
        return value;
}

int exif_turn(ByteSpan tiff)
{
        enum { HEAD = 8, ENTRY = 12, ORIENTATION = 0x112, SHORT = 3 };
        if (tiff.n < HEAD || tiff.data[0] != tiff.data[1] || (tiff.data[0] != 'I' && tiff.data[0] != 'M'))
                return 1;
        bool little = tiff.data[0] == 'I';
        size_t at = number_at(tiff.data + 4, 4, little);
        if (number_at(tiff.data + 2, 2, little) != 42 || at > tiff.n - 2)
                return 1;
        uint32_t n = number_at(tiff.data + at, 2, little);
        at += 2;
        for (uint32_t i = 0; i < n && tiff.n - at >= ENTRY; i++, at += ENTRY) {
                const uint8_t *entry = tiff.data + at;
                if (number_at(entry, 2, little) != ORIENTATION || number_at(entry + 2, 2, little) != SHORT)
                        continue;
                uint32_t turn = number_at(entry + 8, 2, little);
                return turn >= 1 && turn <= 8 ? (int)turn : 1;
        }
        return 1;
}

// ---- views ----
// Orientations 5 to 8 have rows and columns exchanged; of the others and of these, some run
// backwards.
static ImageView view_of(const Image *image, int channels)
{
        static const struct {
                bool crossed, from_right, from_bottom; // of the stored picture
        } turns[] = {
                [1] = { false, false, false }, [2] = { false, true, false }, [3] = { false, true, true },
                [4] = { false, false, true },  [5] = { true, false, false }, [6] = { true, false, true },
                [7] = { true, true, true },    [8] = { true, true, false }
        };
        bool crossed = turns[image->turn].crossed;
        bool from_right = turns[image->turn].from_right, from_bottom = turns[image->turn].from_bottom;
        int64_t column = channels, row = image->width * channels;
        const uint8_t *origin = image->bytes->data + (from_right ? (image->width - 1) * column : 0) +
                                (from_bottom ? (image->height - 1) * row : 0);
        column = from_right ? -column : column;
        row = from_bottom ? -row : row;
        return (ImageView){ .origin = origin,
                            .width = crossed ? image->height : image->width,
                            .height = crossed ? image->width : image->height,
                            .column = crossed ? row : column,
                            .row = crossed ? column : row,
                            .channels = channels };
}

ImageView image_as_grey(const Image *image)
{
        uint8_t *to = image->bytes->data;
        const uint8_t *from = to;
        for (int64_t i = 0; i < image->width * image->height; i++, from += IMAGE_CHANNELS)
                to[i] = (uint8_t)((19595U * from[0] + 38470U * from[1] + 7471U * from[2] + 0x8000U) >> 16);
        return view_of(image, 1);
}

ImageView image_as_rgb(const Image *image)
{
        return view_of(image, IMAGE_CHANNELS);
}
