// SPDX-License-Identifier: Apache-2.0
// pt2_json.c: each level of a document is scanned once to find its members and once more to read
// them, so that nothing depends on the order of keys. The first scan of the whole document has
// proven its syntax; later failures are about types and members.
#include "api/readers/pt2_json.h"

#include <math.h>
#include <string.h>
#include "core/base/limits.h"

Status json_text_open(JsonText text, Arena *arena, JsonReader **out_reader)
{
        return json_open(text.text, text.n, (int)limits.max_json_depth_model, limits.max_json_values, arena,
                         out_reader);
}

Status json_text_fields(JsonText object, const char *what, Arena *arena, const char *const *names, uint32_t n,
                        JsonText *out_fields)
{
        memset(out_fields, 0, n * sizeof(*out_fields));
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(object, arena, &reader));
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "%s is not an object", what);
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                uint32_t i = 0;
                while (i < n && strcmp(names[i], key) != 0)
                        i++;
                if (i == n || json_peek(reader) == JSON_NULL)
                        TRY(json_skip(reader));
                else
                        TRY(json_read_raw(reader, &out_fields[i].text, &out_fields[i].n));
        }
        return json_finish(reader);
}

Status json_text_string(JsonText text, Arena *arena, const char **out_string)
{
        *out_string = NULL;
        if (text.n == 0)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, arena, &reader));
        return json_read_string(reader, out_string, NULL);
}

Status json_text_int(JsonText text, Arena *arena, int64_t if_absent, int64_t *out_value)
{
        *out_value = if_absent;
        if (text.n == 0)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, arena, &reader));
        return json_read_int(reader, out_value);
}

Status json_text_bool(JsonText text, Arena *arena, bool if_absent, bool *out_value)
{
        *out_value = if_absent;
        if (text.n == 0)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, arena, &reader));
        return json_read_bool(reader, out_value);
}

static bool is_unset(JsonReader *reader, const char *tag)
{
        JsonType type = json_peek(reader);
        return type == JSON_NULL || (type == JSON_FALSE && strcmp(tag, "as_none") == 0);
}

Status json_union_enter(JsonReader *reader, const char **out_tag)
{
        TRY(json_enter_object(reader));
        for (;;) {
                const char *tag;
                bool more;
                TRY(json_next_key(reader, &tag, &more));
                if (!more)
                        return fail(STATUS_MALFORMED, "an argument has no value: one member such as "
                                                      "\"as_tensor\" or \"as_int\" must be set");
                if (!is_unset(reader, tag)) {
                        *out_tag = tag;
                        return STATUS_OK;
                }
                TRY(json_skip(reader));
        }
}

Status json_union_leave(JsonReader *reader, const char *tag)
{
        for (;;) {
                const char *other;
                bool more;
                TRY(json_next_key(reader, &other, &more));
                if (!more)
                        return STATUS_OK;
                if (!is_unset(reader, other))
                        return fail(STATUS_MALFORMED, "an argument has two values, \"%s\" and \"%s\"", tag,
                                    other);
                TRY(json_skip(reader));
        }
}

Status json_read_float(JsonReader *reader, double *out_value)
{
        if (json_peek(reader) == JSON_STRING) {
                const char *text;
                size_t n;
                TRY(json_read_string(reader, &text, &n));
                return number_word(text, n, out_value)
                               ? STATUS_OK
                               : fail(STATUS_MALFORMED, "\"%s\" is not a number", text);
        }
        NumberKind kind;
        int64_t whole;
        return json_read_number(reader, &kind, &whole, out_value);
}
