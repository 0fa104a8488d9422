// SPDX-License-Identifier: Apache-2.0
// json.c: the pull parser's containers and scalars. One frame per open container (a fixed array, no
// recursion) says what may come next:
//   AT_START --value--> AFTER_VALUE --comma--> AT_VALUE --value--> AFTER_VALUE ... --bracket-->
//   closed
// A container counts as its parent's value from the moment it is entered. The grammar is RFC 8259,
// nothing more.
#include "core/base/json_reader.h"

#include <string.h>

static bool starts_with(const JsonReader *reader, const char *word)
{
        size_t n = strlen(word);
        return (size_t)(reader->end - reader->at) >= n && memcmp(reader->at, word, n) == 0;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

Status json_open(const char *text, size_t n, int max_depth, int64_t max_values, Arena *arena,
                 JsonReader **out_reader)
{
        if (max_depth < 0 || max_depth > JSON_MAX_DEPTH)
                return fail(STATUS_INTERNAL, "json_open: depth %d is out of range", max_depth);
        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                return fail(STATUS_MALFORMED, "line 1, column 1: the text starts with a byte order mark "
                                              "(BOM); save it as UTF-8 without BOM");
        if (n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
                return fail(STATUS_MALFORMED,
                            "line 1, column 1: the text is UTF-16; save it as UTF-8 without BOM");
        JsonReader *reader = malloc(sizeof(*reader)); // a frame is written when it is entered
        if (reader == NULL)
                return fail_memory();
        memset(reader, 0, offsetof(JsonReader, frames) + sizeof(reader->frames[0]));
        reader->text = reader->at = reader->polled = n == 0 ? "" : text;
        reader->end = reader->text + n;
        reader->arena = arena;
        reader->max_depth = max_depth;
        reader->max_values = max_values;
        reader->frames[0].state = JSON_AT_VALUE;
        *out_reader = reader;
        return STATUS_OK;
}

JsonReader *json_close(JsonReader *reader)
{
        if (reader == NULL)
                return NULL;
        free(reader->keys);
        free(reader->key_slots);
        free(reader);
        return NULL;
}

static JsonType type_at(const JsonReader *reader)
{
        if (reader->at == reader->end)
                return JSON_END;
        switch (*reader->at) {
        case '{':
                return JSON_OBJECT;
        case '[':
                return JSON_ARRAY;
        case '"':
                return JSON_STRING;
        case 't':
                return starts_with(reader, "true") ? JSON_TRUE : JSON_BAD;
        case 'f':
                return starts_with(reader, "false") ? JSON_FALSE : JSON_BAD;
        case 'n':
                return starts_with(reader, "null") ? JSON_NULL : JSON_BAD;
        case '-':
                return reader->at + 1 < reader->end && is_digit(reader->at[1]) ? JSON_NUMBER : JSON_BAD;
        default:
                return is_digit(*reader->at) ? JSON_NUMBER : JSON_BAD;
        }
}

JsonType json_peek(JsonReader *reader)
{
        json_space(reader);
        return type_at(reader);
}

bool json_opens_with(JsonReader *reader, const char *key)
{
        if (json_peek(reader) != JSON_OBJECT)
                return false;
        const char *at = reader->at + 1;
        size_t n = strlen(key);
        while (at < reader->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
                at++;
        return (size_t)(reader->end - at) >= n + 2 && at[0] == '"' && memcmp(at + 1, key, n) == 0 &&
               at[n + 1] == '"';
}

static const char *type_name(JsonType type)
{
        static const char *const names[] = { "nothing",  "null",     "true",      "false",  "a number",
                                             "a string", "an array", "an object", "nothing" };
        return names[type];
}

// Checks that a value may start here and counts it. It fails with STATUS_INTERNAL only when the
// caller reads out of order.
static Status begin_value(JsonReader *reader)
{
        if (json_top(reader)->state != JSON_AT_VALUE)
                return fail(STATUS_INTERNAL, "json: a value was read out of turn");
        json_space(reader);
        if (reader->max_values != 0 && reader->n_values >= reader->max_values)
                return json_fail(reader, reader->at, STATUS_TOO_LARGE,
                                 "more than %lld values (max_json_values in GET /v1)",
                                 (long long)reader->max_values);
        reader->n_values++;
        return STATUS_OK;
}

static void end_value(JsonReader *reader)
{
        json_top(reader)->state = JSON_AFTER_VALUE;
}

// The failure for a value of another type than asked for.
static Status fail_type(const JsonReader *reader, const char *expected)
{
        JsonType found = type_at(reader);
        if (found == JSON_BAD || found == JSON_END)
                return json_fail_value(reader);
        return json_fail(reader, reader->at, STATUS_MALFORMED, "expected %s, found %s", expected,
                         type_name(found));
}

static Status enter(JsonReader *reader, char kind)
{
        TRY(begin_value(reader));
        if (reader->at == reader->end || *reader->at != kind)
                return fail_type(reader, kind == '{' ? "an object" : "an array");
        if (reader->depth >= reader->max_depth)
                return json_fail(reader, reader->at, STATUS_TOO_LARGE,
                                 "nesting is deeper than %d levels (max_json_depth_run or "
                                 "max_json_depth_model in GET /v1)",
                                 reader->max_depth);
        end_value(reader);
        reader->at++;
        reader->depth++;
        *json_top(reader) = (JsonFrame){ .kind = kind, .state = JSON_AT_START, .first_key = reader->n_keys };
        return STATUS_OK;
}

Status json_enter_object(JsonReader *reader)
{
        return enter(reader, '{');
}

Status json_enter_array(JsonReader *reader)
{
        return enter(reader, '[');
}

void json_set_poll(JsonReader *reader, Status (*poll)(const void *context), const void *context)
{
        reader->poll = poll;
        reader->poll_context = context;
        reader->polled = reader->at;
}

static Status poll_now(JsonReader *reader)
{
        reader->polled = reader->at;
        return reader->poll == NULL ? STATUS_OK : reader->poll(reader->poll_context);
}

// Moves to the next member: consumes the comma, or the closing bracket and with it the container.
static Status next(JsonReader *reader, char kind, char close, bool *out_more)
{
        JsonFrame *top = json_top(reader);
        if (top->kind != kind)
                return fail(STATUS_INTERNAL, "json: next was called outside of its container");
        json_space(reader);
        enum { BYTES_PER_POLL = 1 << 16 };
        if (__builtin_expect(reader->at - reader->polled > BYTES_PER_POLL, 0))
                TRY(poll_now(reader));
        if (top->state == JSON_AT_VALUE) {
                *out_more = true;
                return STATUS_OK;
        }
        char c = reader->at < reader->end ? *reader->at : '\0';
        if (c == close && reader->at < reader->end) {
                reader->at++;
                json_keys_close(reader, top->first_key);
                reader->depth--;
                *out_more = false;
                return STATUS_OK;
        }
        if (top->state == JSON_AFTER_VALUE) {
                if (c != ',')
                        return json_fail_comma(reader, kind == '{');
                reader->at++;
                json_space(reader);
        }
        top->state = JSON_AT_VALUE;
        *out_more = true;
        return STATUS_OK;
}

Status json_next_item(JsonReader *reader, bool *out_more)
{
        return next(reader, '[', ']', out_more);
}

// No room for a text of `n` bytes: the caller set a cap, or there is no memory.
static Status fail_arena(const JsonReader *reader, size_t n, const char *at)
{
        const Arena *arena = reader->arena;
        const Budget *budget = arena->budget;
        enum { BLOCK = 64 }; // what arena_alloc adds at most
        size_t own = arena->total_bytes - arena->n_charged,
               used = budget == NULL ? 0 : atomic_load(&budget->used);
        bool in_cap = arena->max_bytes == 0 || n + BLOCK < arena->max_bytes - MIN(arena->max_bytes, own);
        if (in_cap || (budget != NULL && n + BLOCK < budget->limit - MIN(budget->limit, used)))
                return fail_memory();
        if (budget != NULL)
                return json_fail(
                        reader, at, STATUS_TOO_LARGE,
                        "keys and texts up to here, with what else the run holds, take more than %zu "
                        "bytes (--max-run-memory)",
                        budget->limit);
        return json_fail(reader, at, STATUS_TOO_LARGE, "keys and texts up to here take more than %zu bytes",
                         arena->max_bytes);
}

// The key and its colon. With `keep`, the key is copied to the arena, else it may stay where it is.
static Status next_key(JsonReader *reader, bool keep, const char **out_key, bool *out_more)
{
        if (json_top(reader)->kind == '{' && json_top(reader)->state == JSON_AT_VALUE)
                return fail(STATUS_INTERNAL, "json: the value of a key was not read");
        TRY(next(reader, '{', '}', out_more));
        if (!*out_more)
                return STATUS_OK;
        const char *at = reader->at;
        if (at < reader->end && *at == '}')
                return json_fail(reader, at, STATUS_MALFORMED,
                                 "expected a key, found '}'; remove the comma before it");
        if (at == reader->end || *at != '"')
                return json_fail_key(reader);
        JsonString string;
        TRY(json_scan_string(reader, &string));
        const char *key = string.text;
        size_t n = string.n;
        if (keep || string.escaped) {
                char *copy = arena_alloc(reader->arena, string.n + 1);
                if (copy == NULL)
                        return fail_arena(reader, string.n, at);
                n = json_decode_string(string, copy);
                key = copy;
        }
        TRY(json_keys_add(reader, key, n, at));
        json_space(reader);
        if (reader->at == reader->end || *reader->at != ':')
                return json_fail_expected(reader, "':'");
        reader->at++;
        *out_key = key;
        return STATUS_OK;
}

Status json_next_key(JsonReader *reader, const char **out_key, bool *out_more)
{
        return next_key(reader, true, out_key, out_more);
}

Status json_each_member(JsonReader *reader,
                        Status (*read)(void *context, JsonReader *reader, const char *key), void *context)
{
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read(context, reader, key));
        }
}

static Status read_word(JsonReader *reader, const char *word)
{
        reader->at += strlen(word);
        end_value(reader);
        return STATUS_OK;
}

Status json_read_null(JsonReader *reader)
{
        TRY(begin_value(reader));
        return type_at(reader) == JSON_NULL ? read_word(reader, "null") : fail_type(reader, "null");
}

Status json_read_bool(JsonReader *reader, bool *out_value)
{
        TRY(begin_value(reader));
        JsonType type = type_at(reader);
        if (type != JSON_TRUE && type != JSON_FALSE)
                return fail_type(reader, "true or false");
        *out_value = type == JSON_TRUE;
        return read_word(reader, type == JSON_TRUE ? "true" : "false");
}

static Status scan_number(JsonReader *reader, const char *expected, NumberKind *out_kind, int64_t *out_int,
                          double *out_double)
{
        TRY(begin_value(reader));
        if (type_at(reader) != JSON_NUMBER)
                return fail_type(reader, expected);
        const char *after = number_scan(reader->at, reader->end, out_kind, out_int, out_double);
        if (after == NULL)
                return json_fail_value(reader);
        reader->at = after;
        end_value(reader);
        return STATUS_OK;
}

Status json_read_number(JsonReader *reader, NumberKind *out_kind, int64_t *out_int, double *out_double)
{
        NumberKind kind;
        int64_t whole = 0;
        double value;
        TRY(scan_number(reader, "a number", &kind, &whole, &value));
        *out_kind = kind;
        if (kind == NUMBER_INT)
                *out_int = whole;
        *out_double = value;
        return STATUS_OK;
}

Status json_read_int(JsonReader *reader, int64_t *out_value)
{
        json_space(reader);
        const char *at = reader->at;
        NumberKind kind;
        int64_t whole;
        double value;
        TRY(scan_number(reader, "an integer", &kind, &whole, &value));
        if (kind != NUMBER_INT)
                return json_fail(reader, at, STATUS_MALFORMED, "expected an integer of 64 bits, found %.*s",
                                 (int)MIN(reader->at - at, 60), at);
        *out_value = whole;
        return STATUS_OK;
}

Status json_read_string(JsonReader *reader, const char **out_text, size_t *out_n)
{
        TRY(begin_value(reader));
        if (type_at(reader) != JSON_STRING)
                return fail_type(reader, "a string");
        JsonString string;
        TRY(json_scan_string(reader, &string));
        char *text = arena_alloc(reader->arena, string.n + 1);
        if (text == NULL)
                return fail_arena(reader, string.n, reader->at);
        size_t n = json_decode_string(string, text);
        end_value(reader);
        *out_text = text;
        if (out_n != NULL)
                *out_n = n;
        return STATUS_OK;
}

// One scalar, or the opening of a container.
static Status skip_token(JsonReader *reader)
{
        NumberKind kind;
        int64_t whole;
        double value;
        bool truth;
        JsonString string;
        switch (json_peek(reader)) {
        case JSON_OBJECT:
                return enter(reader, '{');
        case JSON_ARRAY:
                return enter(reader, '[');
        case JSON_STRING:
                TRY(begin_value(reader));
                TRY(json_scan_string(reader, &string));
                end_value(reader);
                return STATUS_OK;
        case JSON_NUMBER:
                return scan_number(reader, "a number", &kind, &whole, &value);
        case JSON_TRUE:
        case JSON_FALSE:
                return json_read_bool(reader, &truth);
        default:
                return json_read_null(reader);
        }
}

void json_cap_values(JsonReader *reader, int64_t more)
{
        reader->max_values = more == 0 ? 0 : reader->n_values + more;
}

Status json_skip(JsonReader *reader)
{
        int base = reader->depth;
        do {
                bool more = true;
                const char *key;
                if (reader->depth > base)
                        TRY(json_top(reader)->kind == '{' ? next_key(reader, false, &key, &more)
                                                          : json_next_item(reader, &more));
                if (more)
                        TRY(skip_token(reader));
        } while (reader->depth > base);
        return STATUS_OK;
}

Status json_read_raw(JsonReader *reader, const char **out_text, size_t *out_n)
{
        json_space(reader);
        const char *start = reader->at;
        TRY(json_skip(reader));
        *out_text = start;
        *out_n = (size_t)(reader->at - start);
        return STATUS_OK;
}

Status json_finish(JsonReader *reader)
{
        if (reader->depth != 0)
                return fail(STATUS_INTERNAL, "json: finished inside a container");
        json_space(reader);
        if (json_top(reader)->state != JSON_AFTER_VALUE)
                return json_fail_value(reader);
        if (reader->at != reader->end)
                return json_fail_expected(reader, "the end of the text");
        return STATUS_OK;
}
