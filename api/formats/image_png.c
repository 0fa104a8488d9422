// SPDX-License-Identifier: Apache-2.0
// PNG through libspng, row by row.
#include <spng.h>
#include <stdlib.h>
#include <string.h>
#include "api/formats/image_parts.h"

enum { MAX_CHUNK = 8 << 20, MAX_CHUNKS = 16 << 20 }; // bytes of one chunk, and of all that are kept

bool png_is(ByteSpan bytes)
{
        return bytes.n >= 8 && memcmp(bytes.data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

// ---- memory ----
// What libspng says when zlib got no memory is what it says of a broken file.
static _Thread_local bool ran_out;

static void *noted(void *data)
{
        ran_out = ran_out || data == NULL;
        return data;
}

static void *take(size_t n)
{
        return noted(malloc(n));
}

static void *take_more(void *data, size_t n)
{
        return noted(realloc(data, n));
}

static void *take_zeroed(size_t n, size_t bytes)
{
        return noted(calloc(n, bytes));
}

// ---- reading ----
static Status png_check(int code)
{
        if (code == 0)
                return STATUS_OK;
        if (ran_out)
                return fail_memory();
        if (code == SPNG_IO_EOF)
                return fail(STATUS_MALFORMED, "the PNG file is cut off");
        return fail(STATUS_MALFORMED, "the PNG file is broken: %s", spng_strerror(code));
}

// Rows of an interlaced picture come several times, each time with more of their pixels.
static Status read_rows(spng_ctx *png, const RunContext *ctx, const Image *image)
{
        size_t n = (size_t)image->width * IMAGE_CHANNELS;
        Work work = { .ctx = ctx };
        struct spng_row_info row;
        TRY(png_check(spng_decode_image(png, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE)));
        for (int code = 0; code == 0;) {
                TRY(png_check(spng_get_row_info(png, &row)));
                code = spng_decode_row(png, image->bytes->data + row.row_num * n, n);
                if (code != SPNG_EOI)
                        TRY(png_check(code));
                if (work_stops(&work, 4 * image->width))
                        return run_poll(ctx);
        }
        return STATUS_OK;
}

// Exif may stand before or behind the pixels. What is broken there does not matter.
static int turn_of(spng_ctx *png)
{
        struct spng_exif exif;
        spng_decode_chunks(png);
        return spng_get_exif(png, &exif) == 0 ? exif_turn((ByteSpan){ (uint8_t *)exif.data, exif.length })
                                              : 1;
}

static Status read_png(spng_ctx *png, ByteSpan bytes, const RunContext *ctx, Image *image)
{
        struct spng_ihdr head;
        TRY(png_check(spng_set_image_limits(png, INT32_MAX, INT32_MAX)));
        TRY(png_check(spng_set_chunk_limits(png, MAX_CHUNK, MAX_CHUNKS)));
        TRY(png_check(spng_set_png_buffer(png, bytes.data, bytes.n)));
        TRY(png_check(spng_get_ihdr(png, &head)));
        TRY(image_new(head.width, head.height, ctx, image));
        TRY(read_rows(png, ctx, image));
        image->turn = turn_of(png);
        return STATUS_OK;
}

Status png_read(ByteSpan bytes, const RunContext *ctx, Image *out_image)
{
        Image image = { .bytes = NULL };
        struct spng_alloc memory = {
                .malloc_fn = take, .realloc_fn = take_more, .calloc_fn = take_zeroed, .free_fn = free
        };
        ran_out = false;
        spng_ctx *png = spng_ctx_new2(&memory, 0);
        if (png == NULL)
                return fail_memory();
        Status status = read_png(png, bytes, ctx, &image);
        spng_ctx_free(png);
        if (status != STATUS_OK)
                image_deinit(&image);
        else
                *out_image = image;
        return status;
}
