// SPDX-License-Identifier: Apache-2.0
// The one table of limits (limits.def). Set before threads start, read-only afterwards.
#pragma once
#include <stdint.h>
#include <stddef.h>

typedef struct Limits {
#define LIMIT(name, value, flag, unit, help) int64_t name;
#include "core/base/limits.def"
#undef LIMIT
} Limits;

typedef struct LimitRow {
        const char *name, *flag, *unit, *help; // flag NULL: fixed
        int64_t value;                         // default
        size_t offset;                         // of the field in Limits
} LimitRow;

extern Limits limits;
extern const LimitRow limit_rows[];
extern const size_t n_limit_rows;

// The row of a field of `limits`.
const LimitRow *limit_row(const int64_t *field);
