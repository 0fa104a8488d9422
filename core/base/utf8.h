// SPDX-License-Identifier: Apache-2.0
// UTF-8: writing one character; length and well-formedness of one (Unicode 15, table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Bytes (1 to 4) of the well-formed character at `text` < `end`; 0 when it is malformed or cut off.
static inline size_t utf8_length(const char *text, const char *end)
{
        const unsigned char *at = (const unsigned char *)text;
        size_t left = (size_t)(end - text);
        unsigned char first = at[0];
        if (first < 0x80)
                return 1;
        size_t n = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
        if (n == 0 || n > left)
                return 0;
        unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (at[1] < low || at[1] > high)
                return 0;
        for (size_t i = 2; i < n; i++) {
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        }
        return n;
}

// Writes a character, at most U+10FFFF, and returns its bytes (1 to 4).
static inline size_t utf8_put(uint32_t c, char *out)
{
        if (c < 0x80) {
                out[0] = (char)c;
                return 1;
        }
        if (c < 0x800) {
                out[0] = (char)(0xc0 | c >> 6);
                out[1] = (char)(0x80 | (c & 63));
                return 2;
        }
        if (c < 0x10000) {
                out[0] = (char)(0xe0 | c >> 12);
                out[1] = (char)(0x80 | (c >> 6 & 63));
                out[2] = (char)(0x80 | (c & 63));
                return 3;
        }
        out[0] = (char)(0xf0 | c >> 18);
        out[1] = (char)(0x80 | (c >> 12 & 63));
        out[2] = (char)(0x80 | (c >> 6 & 63));
        out[3] = (char)(0x80 | (c & 63));
        return 4;
}
