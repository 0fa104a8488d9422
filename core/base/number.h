// SPDX-License-Identifier: Apache-2.0
// Numbers as JSON text. Reading equals (float)strtod / strtod to the bit; printing gives the
// shortest text that reads back equal, the closest among equals. No locale, no allocation, any
// thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBER_TEXT_MAX = 40 }; // longest text any number_print_* writes, NUL excluded

typedef enum NumberKind { NUMBER_NONE, NUMBER_INT, NUMBER_FLOAT } NumberKind;

// Reads one JSON number (RFC 8259 grammar) at `text`, not past `end`. Returns the first byte after
// it, NULL if none is there. `out_kind` INT when it has neither fraction nor exponent and fits
// int64 (then `out_int` is set); `out_double` = strtod of the text always (inf when it overflows).
const char *number_scan(const char *text, const char *end, NumberKind *out_kind, int64_t *out_int,
                        double *out_double);

// Floats that JSON has no literals for stand as texts: "NaN", "Infinity", "-Infinity". False: none
// of them.
bool number_word(const char *text, size_t n, double *out_double);

// Shortest decimal text: plain from 0.0001 up to below 1e16, else with an exponent (1e-5, 1.5e20;
// Python writes 1e-05, 1.5e+20); integral values keep ".0" (1.0). A float's text reads back both as
// strtof and as (float)strtod. Not finite: "NaN", "Infinity", "-Infinity" WITHOUT quotes. May write
// anything within NUMBER_TEXT_MAX bytes, no NUL; returns how many of them are the text.
size_t number_print_f32(float value, char *out);
size_t number_print_f64(double value, char *out);
// Many as items of a JSON list, each with ", " behind it, what is not finite in quotes. May write n
// * (NUMBER_TEXT_MAX + 4) bytes.
size_t number_print_f32_row(const float *values, size_t n, char *out);
size_t number_print_i64(int64_t value, char *out);
size_t number_print_u64(uint64_t value, char *out);
// Python's repr(float): 1e-05, 1e+16, 0.1, inf, nan.
size_t number_print_python(double value, char *out);
