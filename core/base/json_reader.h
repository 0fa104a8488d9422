// SPDX-License-Identifier: Apache-2.0
// The inside of JsonReader, shared by json.c (containers and scalars), json_fail.c, json_string.c,
// json_keys.c and json_row.c. Not for other rooms.
#pragma once
#include "core/base/json.h"

// Where a container stands: just entered, a comma (or colon) was read and a value must follow, or a
// value is complete.
typedef enum JsonState { JSON_AT_START, JSON_AT_VALUE, JSON_AFTER_VALUE } JsonState;

typedef struct JsonFrame {
        char kind;          // '{', '[' or 0 for the document itself
        uint8_t state;      // JsonState
        uint32_t first_key; // keys of this object start here in JsonReader.keys
} JsonFrame;

// A key of an object that is still open.
typedef struct JsonKey {
        const char *text;
        uint32_t n;
        uint32_t hash;
        uint32_t depth;
        uint32_t slot;
} JsonKey;

struct JsonReader {
        const char *text, *end;
        const char *at;                      // next byte
        const char *polled;                  // where poll was asked last
        Status (*poll)(const void *context); // NULL: nobody is
        const void *poll_context;
        Arena *arena;
        int max_depth, depth;
        int64_t max_values, n_values;
        JsonKey *keys; // of all open objects, outermost first
        uint32_t n_keys, key_capacity;
        uint32_t *key_slots; // linear probing over `keys`; 0 = free, else index + 1
        uint32_t n_key_slots;
        JsonFrame frames[JSON_MAX_DEPTH + 1];
};

// A string as it stands between its quotes; validated.
typedef struct JsonString {
        const char *text;
        size_t n;
        bool escaped;
} JsonString;

static inline JsonFrame *json_top(JsonReader *reader)
{
        return &reader->frames[reader->depth];
}

static inline void json_space(JsonReader *reader)
{
        const char *at = reader->at;
        while (at < reader->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
                at++;
        reader->at = at;
}

// A failure at byte `at` of the document: "line 3, column 17: ...".
Status json_fail(const JsonReader *reader, const char *at, Status status, const char *format, ...)
        __attribute__((format(printf, 4, 5), cold));
// The failure for "`expected`, found ...".
Status json_fail_expected(const JsonReader *reader, const char *expected) __attribute__((cold));
// The failure where a key, or the comma or end of a container, should be.
Status json_fail_key(const JsonReader *reader) __attribute__((cold));
Status json_fail_comma(const JsonReader *reader, bool in_object) __attribute__((cold));
// The failure for "no value starts at reader->at". It names the fix where the mistake is a common
// one.
Status json_fail_value(const JsonReader *reader) __attribute__((cold));

// reader->at is on the opening quote; moves it behind the closing one. Validates everything, copies
// nothing.
Status json_scan_string(JsonReader *reader, JsonString *out_string);
// Decodes into `out` (string.n bytes suffice); returns the bytes written.
size_t json_decode_string(JsonString string, char *out);

// Notes a key of the innermost object; refuses the second of its name. `text` must live as long as
// the object is open.
Status json_keys_add(JsonReader *reader, const char *text, size_t n, const char *at);
// Forgets the keys from `first_key` on.
void json_keys_close(JsonReader *reader, uint32_t first_key);
