// SPDX-License-Identifier: Apache-2.0
// JSON pull parser: reads one document from memory, in order, without a tree. The caller asks for
// what it expects; depth and the number of values are capped. UTF-8 is validated, duplicate keys
// within an object are refused (exactly, whatever the size of the object). Failures are
// STATUS_MALFORMED (or STATUS_TOO_LARGE over a cap) and name line and column: `line 3, column 17:
// expected ',' or '}'`. The text must stay unchanged while the reader lives. One thread.
#pragma once
#include "core/base/arena.h"
#include "core/base/text.h"
#include "core/base/number.h"

typedef enum JsonType {
        JSON_END,
        JSON_NULL,
        JSON_TRUE,
        JSON_FALSE,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
        JSON_BAD
} JsonType;
enum { JSON_MAX_DEPTH = 256 };

typedef struct JsonReader JsonReader;

// `arena` receives decoded strings and keys. `max_depth` <= JSON_MAX_DEPTH. `max_values` 0 = no
// cap. A leading byte order mark is refused; the message says how to remove it.
Status json_open(const char *text, size_t n, int max_depth, int64_t max_values, Arena *arena,
                 JsonReader **out_reader);
JsonReader *json_close(JsonReader *reader); // NULL-safe, returns NULL
// Asked between values, about every 64 KiB: a failure of `poll` ends reading. `context` outlives
// the reader.
void json_set_poll(JsonReader *reader, Status (*poll)(const void *context), const void *context);
DEFINE_CLEANUP(JsonReader, json_close)

// Type of the next value, without consuming it. JSON_BAD: no value starts here; the next read
// returns the failure.
JsonType json_peek(JsonReader *reader);

// Whether the next value is an object whose first key is this one. Consumes nothing.
bool json_opens_with(JsonReader *reader, const char *key);

// Objects: enter, then while (next) read the value of `*out_key`; leaving happens when next sets
// *out_more = false.
//   TRY(json_enter_object(r));  for (;;) { TRY(json_next_key(r, &key, &more)); if (!more) break;
//   ... }
Status json_enter_object(JsonReader *reader);
Status json_next_key(JsonReader *reader, const char **out_key, bool *out_more);
// The whole object: `read` takes the value of each key. What is no object fails.
Status json_each_member(JsonReader *reader,
                        Status (*read)(void *context, JsonReader *reader, const char *key), void *context);
Status json_enter_array(JsonReader *reader);
Status json_next_item(JsonReader *reader, bool *out_more);

Status json_read_null(JsonReader *reader);
Status json_read_bool(JsonReader *reader, bool *out_value);
Status json_read_int(JsonReader *reader, int64_t *out_value); // integer literals within int64 only
Status json_read_number(JsonReader *reader, NumberKind *out_kind, int64_t *out_int, double *out_double);
// NUL-terminated in the arena; a string holding U+0000 is refused. `out_n` may be NULL.
Status json_read_string(JsonReader *reader, const char **out_text, size_t *out_n);
Status json_skip(JsonReader *reader); // any value, still validated
// At most `more` values may follow from here on; 0 lifts the cap.
void json_cap_values(JsonReader *reader, int64_t more);
// The raw text of the next value (validated and consumed), for handing to another parser. Borrowed
// from the document.
Status json_read_raw(JsonReader *reader, const char **out_text, size_t *out_n);
Status json_finish(JsonReader *reader); // nothing but white space may follow

// Numbers in bulk: the hot path of tensor data. json_read_f32_row reads numbers (and the strings
// "NaN", "Infinity", "-Infinity") of the array that the reader just entered. It stops after
// `capacity` numbers, at the end of the array, or at the first item that is not a number. It
// returns how many were read; *out_state says why it stopped:
//   END    the array is closed and left (also when it closes right after `capacity` numbers).
//   FULL   more may follow: call again, or ask json_next_item whether there is any.
//   OTHER  the next item is not such a number: read it at once (json_next_item is allowed before,
//          not needed).
// Numbers read in rows do not count as values: `capacity` bounds them. A literal beyond the range
// of the type (1e39 as float32) is STATUS_VALUE. json_read_i64_row takes integer literals that fit
// int64; anything else, 1.0 included, is OTHER.
typedef enum JsonRow {
        JSON_ROW_END,
        JSON_ROW_FULL,
        JSON_ROW_OTHER
} JsonRow; // array closed (and left) | capacity reached | next item is no number
Status json_read_f32_row(JsonReader *reader, float *out, size_t capacity, size_t *out_n, JsonRow *out_state);
Status json_read_f64_row(JsonReader *reader, double *out, size_t capacity, size_t *out_n, JsonRow *out_state);
Status json_read_i64_row(JsonReader *reader, int64_t *out, size_t capacity, size_t *out_n,
                         JsonRow *out_state);

// Where the reader is, for messages: 1-based.
void json_position(const JsonReader *reader, int *out_line, int *out_column);
// Byte offset of the next value in the document.
size_t json_tell(const JsonReader *reader);
