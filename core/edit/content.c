// SPDX-License-Identifier: Apache-2.0
// content.c: every part is hashed with its length in front, so that no two recipes feed the same
// bytes.
#include "core/edit/content.h"
#include <stdio.h>

#include <string.h>
#include "core/base/hash.h"

static void add_u64(Sha256 *sha, uint64_t value)
{
        uint8_t bytes[8];
        for (int i = 0; i < 8; i++)
                bytes[i] = (uint8_t)(value >> (8 * i));
        sha256_add(sha, bytes, sizeof(bytes));
}

static void add_content(Sha256 *sha, const uint64_t content[4])
{
        for (int i = 0; i < 4; i++)
                add_u64(sha, content[i]);
}

void edit_content(const uint64_t base[4], const char *recipe, size_t n_recipe, const uint64_t (*called)[4],
                  uint32_t n_called, uint64_t out_content[4])
{
        static const char kind[] = "a derived graph, 1"; // change the text when the derivation changes
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, kind, sizeof(kind));
        add_content(&sha, base);
        add_u64(&sha, n_recipe);
        sha256_add(&sha, recipe, n_recipe);
        add_u64(&sha, n_called);
        for (uint32_t i = 0; i < n_called; i++)
                add_content(&sha, called[i]);
        HashHex hash = sha256_finish(&sha);
        for (int i = 0; i < 4; i++) {
                char part[17];
                memcpy(part, hash.hex + 16 * i, 16);
                part[16] = '\0';
                out_content[i] = strtoull(part, NULL, 16);
        }
}

HashHex content_hex(const uint64_t content[4])
{
        HashHex hex;
        for (int i = 0; i < 4; i++)
                snprintf(hex.hex + 16 * i, 17, "%016llx", (unsigned long long)content[i]);
        return hex;
}
