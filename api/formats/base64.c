// SPDX-License-Identifier: Apache-2.0
// base64.c: four characters at a time through a table; 0xff marks characters outside the alphabet.
#include "api/formats/base64.h"

#include "core/base/memory.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t sextet(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (uint8_t)(c - 'A');
        if (c >= 'a' && c <= 'z')
                return (uint8_t)(c - 'a' + 26);
        if (c >= '0' && c <= '9')
                return (uint8_t)(c - '0' + 52);
        return c == '+' ? 62 : c == '/' ? 63 : 0xff;
}

static size_t padding(const char *text, size_t n)
{
        if (n == 0 || text[n - 1] != '=')
                return 0;
        return text[n - 2] == '=' ? 2 : 1;
}

Status base64_bytes(const char *text, size_t n, size_t *out_bytes)
{
        if (n % 4 != 0)
                return fail(STATUS_MALFORMED,
                            "base64 text has %zu characters; a multiple of 4 is needed (padded with \"=\", "
                            "without line breaks)",
                            n);
        *out_bytes = n / 4 * 3 - padding(text, n);
        return STATUS_OK;
}

static Status fail_at(const char *text, size_t at)
{
        unsigned char c = (unsigned char)text[at];
        if (c == '-' || c == '_')
                return fail(STATUS_MALFORMED,
                            "base64 text has '%c' at character %zu; the standard alphabet with '+' and '/' "
                            "is needed",
                            c, at);
        return fail(STATUS_MALFORMED,
                    "base64 text has byte 0x%02x at character %zu, which is not in the alphabet", c, at);
}

Status base64_decode(const char *text, size_t n, uint8_t *out)
{
        uint8_t table[256];
        size_t n_bytes;
        TRY(base64_bytes(text, n, &n_bytes));
        size_t pad = padding(text, n);
        for (int c = 0; c < 256; c++)
                table[c] = sextet((char)c);
        for (size_t at = 0; at < n; at += 4) {
                size_t given = at + 4 == n ? 4 - pad : 4;
                uint8_t digit[4] = { 0 };
                for (size_t i = 0; i < given; i++) {
                        digit[i] = table[(unsigned char)text[at + i]];
                        if (digit[i] == 0xff)
                                return fail_at(text, at + i);
                }
                uint32_t bits = (uint32_t)digit[0] << 18 | (uint32_t)digit[1] << 12 |
                                (uint32_t)digit[2] << 6 | digit[3];
                if ((given == 2 && (bits & 0xffff) != 0) || (given == 3 && (bits & 0xff) != 0))
                        return fail(STATUS_MALFORMED, "base64 text has stray bits in its last characters");
                *out++ = (uint8_t)(bits >> 16);
                if (given > 2)
                        *out++ = (uint8_t)(bits >> 8);
                if (given > 3)
                        *out++ = (uint8_t)bits;
        }
        return STATUS_OK;
}

void base64_encode(const void *bytes, size_t n, Text *out)
{
        const uint8_t *from = bytes;
        size_t n_text = n / 3;
        if (!add_size(n_text, n % 3 != 0, &n_text) || !mul_size(n_text, 4, &n_text)) {
                out->failed = true;
                return;
        }
        char *to = text_reserve(out, n_text);
        if (to == NULL)
                return;
        for (size_t at = 0; at < n; at += 3, to += 4) {
                size_t left = n - at;
                uint32_t bits = (uint32_t)from[at] << 16 | (left > 1 ? (uint32_t)from[at + 1] << 8 : 0) |
                                (left > 2 ? from[at + 2] : 0u);
                to[0] = alphabet[bits >> 18];
                to[1] = alphabet[bits >> 12 & 63];
                to[2] = left > 1 ? alphabet[bits >> 6 & 63] : '=';
                to[3] = left > 2 ? alphabet[bits & 63] : '=';
        }
        *to = '\0';
        out->n += n_text;
}
