// SPDX-License-Identifier: Apache-2.0
// json_fail.c: where the reader is, and failures that say what to do. Lines and columns are counted
// only when somebody asks.
#include "core/base/json_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void position_of(const JsonReader *reader, const char *at, int *out_line, int *out_column)
{
        int line = 1, column = 1;
        for (const char *c = reader->text; c < at; c++) {
                if (*c == '\n') {
                        line++;
                        column = 1;
                } else if (((unsigned char)*c & 0xc0) != 0x80) {
                        column++;
                }
        }
        *out_line = line;
        *out_column = column;
}

void json_position(const JsonReader *reader, int *out_line, int *out_column)
{
        position_of(reader, reader->at, out_line, out_column);
}

size_t json_tell(const JsonReader *reader)
{
        const char *at = reader->at;
        while (at < reader->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
                at++;
        return (size_t)(at - reader->text);
}

Status json_fail(const JsonReader *reader, const char *at, Status status, const char *format, ...)
{
        char message[512];
        va_list args;
        va_start(args, format);
        vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        int line, column;
        position_of(reader, at, &line, &column);
        return fail(status, "line %d, column %d: %s", line, column, message);
}

Status json_fail_expected(const JsonReader *reader, const char *expected)
{
        if (reader->at == reader->end)
                return json_fail(reader, reader->at, STATUS_MALFORMED, "expected %s, but the text ends here",
                                 expected);
        unsigned char c = (unsigned char)*reader->at;
        if (c > 0x20 && c < 0x7f)
                return json_fail(reader, reader->at, STATUS_MALFORMED, "expected %s, found '%c'", expected,
                                 c);
        return json_fail(reader, reader->at, STATUS_MALFORMED, "expected %s, found byte 0x%02x", expected, c);
}

static bool starts_with(const JsonReader *reader, const char *word)
{
        size_t n = strlen(word);
        return (size_t)(reader->end - reader->at) >= n && memcmp(reader->at, word, n) == 0;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

Status json_fail_key(const JsonReader *reader)
{
        if (starts_with(reader, "'"))
                return json_fail(
                        reader, reader->at, STATUS_MALFORMED,
                        "keys are written in double quotes: json.dumps(body) does, str(body) does not");
        if (starts_with(reader, "/") || starts_with(reader, "#"))
                return json_fail(reader, reader->at, STATUS_MALFORMED,
                                 "comments are not part of JSON; remove them");
        bool is_word =
                reader->at < reader->end && ((*reader->at | 0x20) >= 'a' && (*reader->at | 0x20) <= 'z');
        if (is_word)
                return json_fail(reader, reader->at, STATUS_MALFORMED,
                                 "expected a key in double quotes or '}', found '%c'; a shell takes quotes "
                                 "away unless the body stands in "
                                 "single ones: -d '{\"inputs\": ...}'",
                                 *reader->at);
        return json_fail_expected(reader, "a key in double quotes or '}'");
}

Status json_fail_comma(const JsonReader *reader, bool in_object)
{
        const char *expected = in_object ? "',' or '}'" : "',' or ']'";
        char c = reader->at < reader->end ? *reader->at : '\0';
        if (c == '/' || c == '#')
                return json_fail(reader, reader->at, STATUS_MALFORMED,
                                 "comments are not part of JSON; remove them");
        bool begins_item = is_digit(c) || c == '-' || c == '"' || c == '[' || c == '{';
        bool apart = reader->at > reader->text &&
                     (reader->at[-1] == ' ' || reader->at[-1] == '\n' || reader->at[-1] == ']');
        if (begins_item && apart && !in_object)
                return json_fail(reader, reader->at, STATUS_MALFORMED,
                                 "expected %s, found '%c'; items need commas between them "
                                 "(json.dumps(x.tolist()) writes them)",
                                 expected, c);
        return json_fail_expected(reader, expected);
}

Status json_fail_value(const JsonReader *reader)
{
        static const struct {
                const char *start, *advice;
        } mistakes[] = {
                { "NaN", "NaN is not a JSON number; write \"NaN\" as a string" },
                { "nan", "nan is not a JSON number; write \"NaN\" as a string" },
                { "Infinity", "Infinity is not a JSON number; write \"Infinity\" as a string" },
                { "-Infinity", "-Infinity is not a JSON number; write \"-Infinity\" as a string" },
                { "inf", "inf is not a JSON number; write \"Infinity\" as a string" },
                { "-inf", "-inf is not a JSON number; write \"-Infinity\" as a string" },
                { "True", "JSON writes true, not True" },
                { "False", "JSON writes false, not False" },
                { "None", "JSON writes null, not None" },
                { "'", "strings are written in double quotes" },
                { "//", "comments are not part of JSON; remove them" },
                { "/*", "comments are not part of JSON; remove them" },
                { "#", "comments are not part of JSON; remove them" },
                { ".", "a number needs a digit before its point, as in 0.5" },
                { "+", "a number has no leading '+'" },
                { "(", "JSON has no tuples; write a list in square brackets" },
                { "array(", "this is how Python prints an array; json.dumps(x.tolist()) writes it as JSON" },
                { "tensor(", "this is how Python prints a tensor; json.dumps(x.tolist()) writes it as JSON" },
                { "undefined", "undefined is no JSON value; write null, or leave the member out" },
                { "@", "this begins like a file's name; curl reads files with --data-binary @body.json" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(mistakes); i++) {
                if (starts_with(reader, mistakes[i].start))
                        return json_fail(reader, reader->at, STATUS_MALFORMED, "%s", mistakes[i].advice);
        }
        const char *at = reader->at;
        const char *digits = at + (at < reader->end && *at == '-');
        if (digits < reader->end && *digits == '0' && digits + 1 < reader->end && is_digit(digits[1]))
                return json_fail(reader, at, STATUS_MALFORMED, "a number has no leading zeros");
        if (digits < reader->end && is_digit(*digits))
                return json_fail(reader, at, STATUS_MALFORMED,
                                 "a number needs digits after its point and after its 'e'");
        if (digits > at)
                return json_fail(reader, at, STATUS_MALFORMED, "expected digits after '-'");
        if (at < reader->end && (*at == ']' || *at == '}') && json_top((JsonReader *)reader)->kind != 0)
                return json_fail(reader, at, STATUS_MALFORMED,
                                 "expected a value, found '%c'; remove the comma before it", *at);
        return json_fail_expected(reader, "a value");
}
