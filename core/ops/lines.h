// SPDX-License-Identifier: Apache-2.0
// Operators of lines [N, C, L] as operators of images of one row [N, C, 1, L].
#pragma once
#include "core/ops/op.h"

typedef enum LineRow {
        LINE_TO_IMAGE,   // (self, dim): a dimension of size 1 in front of `dim`
        LINE_FROM_IMAGE, // (self, dim): without it
        LINE_CONV,       // conv2d
        LINE_CONV_TRANSPOSED,
} LineRow;
const Overload *line_row(LineRow row);

// Of an operator that has a row for images: what becomes of its arguments. Those that it does not
// have are None.
typedef enum LineList {
        LIST_AS_IT_IS,
        LIST_ONE,   // a list of one item gets a one in front
        LIST_ZERO,  // a zero
        LIST_PAIRS, // a list of two items gets two zeros behind
} LineList;
typedef struct LineOp {
        const char *line, *image;
        uint8_t list[5]; // LineList, by argument
} LineOp;
// NULL: it has none.
const LineOp *line_op(const Overload *overload);
