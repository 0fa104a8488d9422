// SPDX-License-Identifier: Apache-2.0
// Text: a growing byte buffer for printing. Out-of-memory is sticky: add freely, ask text_status()
// once at the end.
#pragma once
#include "core/base/memory.h"

typedef struct Text {
        char *data; // NUL-terminated once anything was added; NULL before
        size_t n, capacity;
        bool failed;
} Text;

void text_deinit(Text *text);
void text_add_n(Text *text, const char *bytes, size_t n);
void text_add(Text *text, const char *string);
void text_add_char(Text *text, char c);
void text_repeat(Text *text, char c, size_t n);
void text_addf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_int(Text *text, int64_t value);
// As JSON. What is not finite stands in quotes: "NaN", "Infinity", "-Infinity".
void text_add_f32(Text *text, float value);
void text_add_f64(Text *text, double value);
// Adds `string` as a JSON string literal, quotes included; invalid UTF-8 becomes U+FFFD.
void text_add_json(Text *text, const char *string);
void text_add_json_n(Text *text, const char *bytes, size_t n);
// Room for `n` more bytes at the returned address (then add to text->n what was written); NULL when
// out of memory.
char *text_reserve(Text *text, size_t n);
Status text_status(const Text *text);
// The bytes (caller frees; "" rather than NULL), leaving the text empty. NULL when out of memory.
char *text_take(Text *text);
