// SPDX-License-Identifier: Apache-2.0
// json_string.c: string literals in two passes. The first finds the closing quote and proves the
// text between (escapes, surrogate pairs, UTF-8, no control characters, no U+0000); the second,
// needed only when there are escapes, decodes and cannot fail.
#include "core/base/json_reader.h"

#include <string.h>
#include "core/base/utf8.h"

// The first byte that needs a look: a quote, a backslash, a control character or anything outside
// ASCII. Eight bytes at a time.
static const char *plain_end(const char *at, const char *end)
{
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        while (end - at >= 8) {
                uint64_t word;
                memcpy(&word, at, 8);
                uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
                // Borrows may mark a byte above a marked one, never one below the first that is
                // marked.
                uint64_t marks = ((quote - ones) | (slash - ones) | (word - ones * 0x20) | word) & tops;
                if (marks != 0)
                        break;
                at += 8;
        }
        while (at < end && *at != '"' && *at != '\\' && (signed char)*at >= 0x20)
                at++;
        return at;
}

// Four hexadecimal digits, or -1.
static int hex4(const char *at, const char *end)
{
        if (end - at < 4)
                return -1;
        int value = 0;
        for (int i = 0; i < 4; i++) {
                char c = at[i];
                int digit = c >= '0' && c <= '9'                     ? c - '0'
                            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                     : -1;
                if (digit < 0)
                        return -1;
                value = value * 16 + digit;
        }
        return value;
}

// `at` stands behind "\u". Moves behind the escape, and behind the second half of a surrogate pair.
static Status check_unicode(const JsonReader *reader, const char **at)
{
        const char *escape = *at - 2;
        int unit = hex4(*at, reader->end);
        if (unit < 0)
                return json_fail(reader, escape, STATUS_MALFORMED,
                                 "\\u must be followed by four hexadecimal digits");
        if (unit == 0)
                return json_fail(reader, escape, STATUS_MALFORMED,
                                 "the character U+0000 is not allowed in a string");
        *at += 4;
        if (unit < 0xd800 || unit > 0xdfff)
                return STATUS_OK;
        int low = unit < 0xdc00 && reader->end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u'
                          ? hex4(*at + 2, reader->end)
                          : -1;
        if (low < 0xdc00 || low > 0xdfff)
                return json_fail(reader, escape, STATUS_MALFORMED,
                                 "\\u%04x is half of a surrogate pair; write both halves", (unsigned)unit);
        *at += 6;
        return STATUS_OK;
}

static Status check_escape(const JsonReader *reader, const char **at)
{
        const char *escape = *at;
        if (reader->end - escape < 2)
                return json_fail(reader, reader->end, STATUS_MALFORMED, "the text ends inside a string");
        *at += 2;
        switch (escape[1]) {
        case 'u':
                return check_unicode(reader, at);
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
                return STATUS_OK;
        default:
                return json_fail(reader, escape, STATUS_MALFORMED,
                                 "unknown escape in a string; a backslash itself is written \\\\");
        }
}

Status json_scan_string(JsonReader *reader, JsonString *out_string)
{
        const char *start = reader->at + 1, *at = start;
        bool escaped = false;
        for (;;) {
                at = plain_end(at, reader->end);
                if (at == reader->end)
                        return json_fail(reader, at, STATUS_MALFORMED, "the text ends inside a string");
                unsigned char c = (unsigned char)*at;
                if (c == '"')
                        break;
                if (c == '\\') {
                        escaped = true;
                        TRY(check_escape(reader, &at));
                        continue;
                }
                if (c == 0)
                        return json_fail(reader, at, STATUS_MALFORMED,
                                         "the character U+0000 is not allowed in a string");
                if (c < 0x20)
                        return json_fail(reader, at, STATUS_MALFORMED,
                                         "the control character 0x%02x in a string must be written \\u%04x",
                                         c, c);
                size_t n = utf8_length(at, reader->end);
                if (n == 0)
                        return json_fail(reader, at, STATUS_MALFORMED,
                                         "byte 0x%02x is not valid UTF-8; send the text as UTF-8", c);
                at += n;
        }
        *out_string = (JsonString){ .text = start, .n = (size_t)(at - start), .escaped = escaped };
        reader->at = at + 1;
        return STATUS_OK;
}

// What the character behind a backslash stands for.
static char unescape(char c)
{
        switch (c) {
        case 'b':
                return '\b';
        case 'f':
                return '\f';
        case 'n':
                return '\n';
        case 'r':
                return '\r';
        case 't':
                return '\t';
        default:
                return c;
        }
}

size_t json_decode_string(JsonString string, char *out)
{
        const char *at = string.text, *end = string.text + string.n;
        char *to = out;
        while (at < end) {
                const char *slash = memchr(at, '\\', (size_t)(end - at));
                size_t n = (size_t)((slash == NULL ? end : slash) - at);
                memcpy(to, at, n);
                to += n;
                at += n;
                if (slash == NULL)
                        break;
                if (at[1] != 'u') {
                        *to++ = unescape(at[1]);
                        at += 2;
                        continue;
                }
                uint32_t c = (uint32_t)hex4(at + 2, end);
                at += 6;
                if (c >= 0xd800 && c <= 0xdfff) {
                        c = 0x10000 + ((c & 0x3ff) << 10 | ((uint32_t)hex4(at + 2, end) & 0x3ff));
                        at += 6;
                }
                to += utf8_put(c, to);
        }
        return (size_t)(to - out);
}
