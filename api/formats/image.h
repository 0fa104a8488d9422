// SPDX-License-Identifier: Apache-2.0
// JPEG and PNG files as pixels of three bytes: red, green, blue. Grey and palettes become colours,
// alpha is dropped, of 16 bits the upper 8 count, CMYK is Adobe's: as Pillow's convert("RGB").
#pragma once
#include "core/base/span.h"
#include "core/kernels/pool/image.h"
#include "core/tensor/tensor.h"

enum { IMAGE_CHANNELS = 3 };
typedef struct Image {
        int64_t width, height; // as stored, before it is turned
        int turn;              // EXIF's orientation: 1 (as it is) to 8
        Storage *bytes;        // height rows of width * IMAGE_CHANNELS bytes; counted
} Image;

// Whether the bytes begin as a JPEG or PNG file does.
bool image_is(ByteSpan bytes);
// STATUS_TOO_LARGE, before anything is decoded: more pixels than limits.max_image_pixels, or more
// memory than the context's budget has. STATUS_MALFORMED: broken or cut off. Any thread.
Status image_read(ByteSpan bytes, const RunContext *ctx, Image *out_image);
void image_deinit(Image *image);
// Pixels of one byte, the luma of ITU-R 601 as Pillow's convert("L") rounds it, instead of three.
// Returns the view as turned.
ImageView image_as_grey(const Image *image);
ImageView image_as_rgb(const Image *image);
