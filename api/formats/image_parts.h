// SPDX-License-Identifier: Apache-2.0
// Shared by the files of image.h.
#pragma once
#include "api/formats/image.h"

bool jpeg_is(ByteSpan bytes);
bool png_is(ByteSpan bytes);
Status jpeg_read(ByteSpan bytes, const RunContext *ctx, Image *out_image);
Status png_read(ByteSpan bytes, const RunContext *ctx, Image *out_image);

// Checks the size and makes the rows: zeroed, of a picture that is not turned.
Status image_new(uint64_t width, uint64_t height, const RunContext *ctx, Image *out_image);
// The orientation that a TIFF structure (Exif without its prefix) names; 1 where it names none.
int exif_turn(ByteSpan tiff);
