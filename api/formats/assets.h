// SPDX-License-Identifier: Apache-2.0
// The files of web/, which the build compresses and embeds (tools/generate/embed_web.py).
#pragma once
#include "core/base/hash.h"

typedef struct Asset {
        const char *name, *type; // "main.js"; its media type
        HashHex tag;             // SHA-256 of the file
        const uint8_t *gzip;
        size_t n_gzip, n_plain; // bytes
} Asset;
extern const Asset assets[];
extern const size_t n_assets;
// A page of its own without data (api/formats/report_html.h).
extern const Asset report_asset;
