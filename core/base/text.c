// SPDX-License-Identifier: Apache-2.0
// text.c: a growing buffer; capacity always leaves room for the NUL. Once an addition failed
// nothing more is added, so that the text is never silently missing its middle.
#include "core/base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/base/number.h"
#include "core/base/utf8.h"

enum { TEXT_FIRST = 64 };

void text_deinit(Text *text)
{
        if (text == NULL)
                return;
        free(text->data);
        *text = (Text){ 0 };
}

char *text_reserve(Text *text, size_t n)
{
        if (text->failed)
                return NULL;
        size_t needed;
        if (!add_size(text->n, n, &needed) || !add_size(needed, 1, &needed)) {
                text->failed = true;
                return NULL;
        }
        if (needed > text->capacity) {
                size_t capacity = MAX(MAX(needed, (size_t)TEXT_FIRST),
                                      text->capacity > SIZE_MAX / 2 ? needed : text->capacity * 2);
                char *grown = realloc(text->data, capacity);
                if (grown == NULL) {
                        text->failed = true;
                        return NULL;
                }
                text->data = grown;
                text->capacity = capacity;
                text->data[text->n] = '\0';
        }
        return text->data + text->n;
}

void text_add_n(Text *text, const char *bytes, size_t n)
{
        char *to = text_reserve(text, n);
        if (to == NULL)
                return;
        if (n > 0)
                memcpy(to, bytes, n);
        to[n] = '\0';
        text->n += n;
}

void text_add(Text *text, const char *string)
{
        text_add_n(text, string, strlen(string));
}

void text_add_char(Text *text, char c)
{
        text_add_n(text, &c, 1);
}

void text_repeat(Text *text, char c, size_t n)
{
        char *to = text_reserve(text, n);
        if (to == NULL)
                return;
        memset(to, c, n);
        to[n] = '\0';
        text->n += n;
}

void text_addf(Text *text, const char *format, ...)
{
        char small[256];
        va_list args, again;
        va_start(args, format);
        va_copy(again, args);
        int n = vsnprintf(small, sizeof(small), format, args);
        va_end(args);
        if (n < 0) {
                text->failed = true;
        } else if ((size_t)n < sizeof(small)) {
                text_add_n(text, small, (size_t)n);
        } else {
                char *to = text_reserve(text, (size_t)n);
                if (to != NULL) {
                        vsnprintf(to, (size_t)n + 1, format, again);
                        text->n += (size_t)n;
                }
        }
        va_end(again);
}

void text_add_int(Text *text, int64_t value)
{
        char digits[NUMBER_TEXT_MAX];
        text_add_n(text, digits, number_print_i64(value, digits));
}

static void add_float(Text *text, const char *digits, size_t n, bool is_finite)
{
        const char *quote = is_finite ? "" : "\"";
        text_add(text, quote);
        text_add_n(text, digits, n);
        text_add(text, quote);
}

void text_add_f32(Text *text, float value)
{
        char digits[NUMBER_TEXT_MAX];
        add_float(text, digits, number_print_f32(value, digits), isfinite(value));
}

void text_add_f64(Text *text, double value)
{
        char digits[NUMBER_TEXT_MAX];
        add_float(text, digits, number_print_f64(value, digits), isfinite(value));
}

static bool is_plain(unsigned char c)
{
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

// The short escapes of JSON; 0 when `c` has none.
static char short_escape(unsigned char c)
{
        switch (c) {
        case '"':
        case '\\':
                return (char)c;
        case '\b':
                return 'b';
        case '\f':
                return 'f';
        case '\n':
                return 'n';
        case '\r':
                return 'r';
        case '\t':
                return 't';
        default:
                return 0;
        }
}

void text_add_json_n(Text *text, const char *bytes, size_t n)
{
        text_add_char(text, '"');
        for (size_t i = 0; i < n && !text->failed;) {
                size_t plain = i;
                while (plain < n && is_plain((unsigned char)bytes[plain]))
                        plain++;
                text_add_n(text, bytes + i, plain - i);
                i = plain;
                if (i == n)
                        break;
                unsigned char c = (unsigned char)bytes[i];
                size_t length = utf8_length(bytes + i, bytes + n);
                if (length > 1) {
                        text_add_n(text, bytes + i, length);
                        i += length;
                        continue;
                }
                i++;
                if (length == 0)
                        text_add(text, "\xef\xbf\xbd");
                else if (short_escape(c) != 0)
                        text_add_n(text, (char[]){ '\\', short_escape(c) }, 2);
                else
                        text_addf(text, "\\u%04x", c);
        }
        text_add_char(text, '"');
}

void text_add_json(Text *text, const char *string)
{
        text_add_json_n(text, string, strlen(string));
}

Status text_status(const Text *text)
{
        return text->failed ? fail_memory() : STATUS_OK;
}

char *text_take(Text *text)
{
        text_add_n(text, "", 0);
        char *data = text->failed ? NULL : take_ptr(text->data);
        text_deinit(text);
        return data;
}
