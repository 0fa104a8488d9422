// SPDX-License-Identifier: Apache-2.0
// limits.c: the table of limits.def, twice: as values and as rows that describe them.
#include "core/base/limits.h"

Limits limits = {
#define LIMIT(name, value, flag, unit, help) .name = (value),
#include "core/base/limits.def"
#undef LIMIT
};

const LimitRow limit_rows[] = {
#define LIMIT(name, value, flag, unit, help) { #name, flag, unit, help, (value), offsetof(Limits, name) },
#include "core/base/limits.def"
#undef LIMIT
};

const size_t n_limit_rows = sizeof(limit_rows) / sizeof(limit_rows[0]);

const LimitRow *limit_row(const int64_t *field)
{
        const LimitRow *row = limit_rows;
        while ((const int64_t *)(const void *)((const char *)&limits + row->offset) != field)
                row++;
        return row;
}
