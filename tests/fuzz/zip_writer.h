// SPDX-License-Identifier: Apache-2.0
// Zip archives of stored members, for targets that fuzz what is inside.
#pragma once
#include <zlib.h>
#include "core/base/text.h"

typedef struct ZipPart {
        const char *name;
        const void *content;
        size_t n;
} ZipPart;

static inline void zip_put(Text *out, uint64_t value, int n_bytes)
{
        for (int i = 0; i < n_bytes; i++)
                text_add_char(out, (char)(value >> (8 * i) & 0xff));
}

static inline void zip_put_shared(Text *out, const ZipPart *part)
{
        zip_put(out, 0, 2 + 2 + 2); // stored; time and date
        zip_put(out, crc32_z(0, part->content, part->n), 4);
        zip_put(out, part->n, 4);
        zip_put(out, part->n, 4);
        zip_put(out, strlen(part->name), 2);
}

static inline void zip_write(const ZipPart *parts, size_t n, Text *out)
{
        size_t places[16];
        for (size_t i = 0; i < n; i++) {
                places[i] = out->n;
                zip_put(out, 0x04034b50, 4);
                zip_put(out, 20, 2);
                zip_put(out, 0x0800, 2);
                zip_put_shared(out, &parts[i]);
                zip_put(out, 0, 2);
                text_add(out, parts[i].name);
                text_add_n(out, parts[i].content, parts[i].n);
        }
        size_t directory = out->n;
        for (size_t i = 0; i < n; i++) {
                zip_put(out, 0x02014b50, 4);
                zip_put(out, 20, 2);
                zip_put(out, 20, 2);
                zip_put(out, 0x0800, 2);
                zip_put_shared(out, &parts[i]);
                zip_put(out, 0, 2 + 2 + 2 + 2);
                zip_put(out, 0, 4);
                zip_put(out, places[i], 4);
                text_add(out, parts[i].name);
        }
        size_t end = out->n;
        zip_put(out, 0x06054b50, 4);
        zip_put(out, 0, 4);
        zip_put(out, n, 2);
        zip_put(out, n, 2);
        zip_put(out, end - directory, 4);
        zip_put(out, directory, 4);
        zip_put(out, 0, 2);
}
