// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg. It reports errors by leaving the call: every call that may do so is in a
// step, and `guarded` runs a step. Nothing but the Jpeg outlives one.
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include <setjmp.h>
#include <string.h>
#include "api/formats/image_parts.h"

// A progressive file may go over all its pixels again for every bit; honest ones have some ten
// scans.
enum { MAX_SCANS = 100, INK_CHANNELS = 4 };

typedef struct Jpeg {
        struct jpeg_decompress_struct info;
        struct jpeg_error_mgr errors;
        struct jpeg_progress_mgr progress;
        jmp_buf out;
        ByteSpan bytes;
        const RunContext *ctx;
        Work work;
        Image image;
        uint8_t *inks; // one row of a CMYK picture, else NULL
        bool cut_off, too_many_scans;
} Jpeg;

bool jpeg_is(ByteSpan bytes)
{
        return bytes.n >= 3 && memcmp(bytes.data, "\xff\xd8\xff", 3) == 0;
}

static void on_error(j_common_ptr info)
{
        longjmp(((Jpeg *)info)->out, 1);
}

static void on_message(j_common_ptr info, int level)
{
        Jpeg *jpeg = (Jpeg *)info;
        if (level < 0 && jpeg->errors.msg_code == JWRN_JPEG_EOF)
                jpeg->cut_off = true;
}

static void on_progress(j_common_ptr info)
{
        Jpeg *jpeg = (Jpeg *)info;
        jpeg->too_many_scans = jpeg->info.input_scan_number > MAX_SCANS;
        if (jpeg->too_many_scans || jpeg->cut_off || work_stops(&jpeg->work, 64 * jpeg->info.image_width))
                longjmp(jpeg->out, 1);
}

static bool guarded(Jpeg *jpeg, void (*step)(Jpeg *jpeg))
{
        if (setjmp(jpeg->out) != 0)
                return false;
        step(jpeg);
        return !jpeg->cut_off;
}

static Status explain_jpeg(Jpeg *jpeg)
{
        char message[JMSG_LENGTH_MAX];
        if (jpeg->work.stops)
                return run_poll(jpeg->ctx);
        if (jpeg->too_many_scans)
                return fail(STATUS_TOO_LARGE, "the JPEG file has more than %d scans", MAX_SCANS);
        if (jpeg->cut_off)
                return fail(STATUS_MALFORMED, "the JPEG file is cut off");
        if (jpeg->errors.msg_code == JERR_OUT_OF_MEMORY)
                return fail_memory();
        jpeg->errors.format_message((j_common_ptr)&jpeg->info, message);
        return fail(STATUS_MALFORMED, "the JPEG file is broken: %s", message);
}

// ---- steps ----
static void step_head(Jpeg *jpeg)
{
        jpeg_create_decompress(&jpeg->info);
        jpeg->info.progress = &jpeg->progress;
        jpeg->progress.progress_monitor = on_progress;
        jpeg_mem_src(&jpeg->info, jpeg->bytes.data, jpeg->bytes.n);
        jpeg_save_markers(&jpeg->info, JPEG_APP0 + 1, 0xffff);
        jpeg_read_header(&jpeg->info, TRUE);
}

static uint8_t shaded(uint8_t ink, uint8_t black)
{
        // all four as Adobe writes them: 255 is no ink
        unsigned part = (255U - ink) * black + 128;
        return (uint8_t)(black - (((part >> 8) + part) >> 8));
}

static void take_inks(const uint8_t *inks, int64_t n, uint8_t *out)
{
        for (int64_t i = 0; i < n; i++, inks += INK_CHANNELS, out += IMAGE_CHANNELS)
                for (int c = 0; c < IMAGE_CHANNELS; c++)
                        out[c] = shaded(inks[c], inks[INK_CHANNELS - 1]);
}

static void step_rows(Jpeg *jpeg)
{
        struct jpeg_decompress_struct *info = &jpeg->info;
        info->out_color_space = jpeg->inks != NULL ? JCS_CMYK : JCS_RGB;
        jpeg_start_decompress(info);
        while (info->output_scanline < info->output_height) {
                uint8_t *row = jpeg->image.bytes->data +
                               (size_t)info->output_scanline * (size_t)jpeg->image.width * IMAGE_CHANNELS;
                JSAMPROW to = jpeg->inks != NULL ? jpeg->inks : row;
                jpeg_read_scanlines(info, &to, 1);
                if (jpeg->inks != NULL)
                        take_inks(jpeg->inks, jpeg->image.width, row);
        }
}

// ---- the whole ----
static int jpeg_turn(const Jpeg *jpeg)
{
        enum { PREFIX = 6 };
        for (jpeg_saved_marker_ptr at = jpeg->info.marker_list; at != NULL; at = at->next)
                if (at->data_length > PREFIX && memcmp(at->data, "Exif\0\0", PREFIX) == 0)
                        return exif_turn((ByteSpan){ at->data + PREFIX, at->data_length - PREFIX });
        return 1;
}

// Bytes that libjpeg keeps of a picture whose pixels come in several scans: all coefficients.
static size_t coefficient_bytes(Jpeg *jpeg)
{
        size_t n_blocks = 0;
        for (int i = 0; i < jpeg->info.num_components && jpeg_has_multiple_scans(&jpeg->info); i++) {
                const jpeg_component_info *component = &jpeg->info.comp_info[i];
                n_blocks += (size_t)(component->width_in_blocks + (JDIMENSION)component->h_samp_factor) *
                            (component->height_in_blocks + (JDIMENSION)component->v_samp_factor);
        }
        return n_blocks * sizeof(JBLOCK);
}

static Status read_pixels(Jpeg *jpeg)
{
        _cleanup_(storage_unrefp) Storage *inks = NULL;
        Budget *budget = jpeg->ctx->budget;
        size_t n_bytes = coefficient_bytes(jpeg);
        if (jpeg->info.num_components == INK_CHANNELS)
                TRY(storage_new((size_t)jpeg->image.width * INK_CHANNELS, false, budget, &inks));
        jpeg->inks = inks == NULL ? NULL : inks->data;
        if (!budget_take(budget, n_bytes))
                return fail(STATUS_TOO_LARGE, "decoding the JPEG file takes %zu bytes over --max-run-memory",
                            n_bytes);
        bool done = guarded(jpeg, step_rows);
        budget_give(budget, n_bytes);
        return done ? STATUS_OK : explain_jpeg(jpeg);
}

static Status read_jpeg(Jpeg *jpeg)
{
        if (!guarded(jpeg, step_head))
                return explain_jpeg(jpeg);
        int n = jpeg->info.num_components;
        if ((n != 1 && n != IMAGE_CHANNELS && n != INK_CHANNELS) || jpeg->info.data_precision != 8)
                return fail(STATUS_UNSUPPORTED,
                            "the JPEG file has %d channels of %d bits; 1, 3 or 4 of 8 bits are read", n,
                            jpeg->info.data_precision);
        TRY(image_new(jpeg->info.image_width, jpeg->info.image_height, jpeg->ctx, &jpeg->image));
        jpeg->image.turn = jpeg_turn(jpeg);
        return read_pixels(jpeg);
}

Status jpeg_read(ByteSpan bytes, const RunContext *ctx, Image *out_image)
{
        Jpeg jpeg = { .bytes = bytes, .ctx = ctx, .work = { .ctx = ctx } };
        jpeg.info.err = jpeg_std_error(&jpeg.errors);
        jpeg.errors.error_exit = on_error;
        jpeg.errors.emit_message = on_message;
        Status status = read_jpeg(&jpeg);
        jpeg_destroy_decompress(&jpeg.info);
        if (status != STATUS_OK)
                image_deinit(&jpeg.image);
        else
                *out_image = jpeg.image;
        return status;
}
