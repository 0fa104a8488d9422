// SPDX-License-Identifier: Apache-2.0
// The difference of two texts by lines, as `diff -u` prints it.
#pragma once
#include "core/base/text.h"

typedef struct DiffSide {
        const char *name; // for the line "--- name" or "+++ name"
        const char *text; // not NULL
        size_t n;
} DiffSide;

// Adds nothing when the texts are equal. Memory grows with the number of lines. After `max_steps`
// comparisons of lines what is still unknown counts as changed: the difference is still right, but
// longer than it could be.
Status line_diff(const DiffSide *from, const DiffSide *to, int64_t max_steps, Text *out);
