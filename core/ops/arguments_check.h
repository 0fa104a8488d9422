// SPDX-License-Identifier: Apache-2.0
// Checks a table of argument positions (arguments.def) against schemas.
#pragma once
#include "core/ops/schema.h"

typedef struct ArgumentRow {
        const char *schemas; // names of a family, space-separated; NULL: an argument of the family before
        int position;
        const char *names; // "a|b": the schemas call it either
        bool optional;     // some schemas of the family end before this position
} ArgumentRow;

// The schemas that a family's name stands for, one after the other; NULL at the end.
typedef const Schema *(*FindSchema)(const char *name, uint32_t index);

// STATUS_INTERNAL: a family names no schema; or a schema has another argument at a position, or
// none. `table` is the file that the message names. A row may be optional only if one schema of its
// family has the argument and another one lacks it.
Status arguments_check(const char *table, const ArgumentRow *rows, size_t n_rows, FindSchema find);
