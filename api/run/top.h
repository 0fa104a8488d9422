// SPDX-License-Identifier: Apache-2.0
// The greatest values of each row of an output, with the labels that were uploaded with the graph.
#pragma once
#include "api/run/run.h"

enum { TOP_MAX = 100 };

// What stands in each line of a version's labels. The n-th is that of index n.
typedef struct Labels {
        Storage *bytes; // counted; NULL: there are none
        ByteSpan *lines;
        uint32_t n;
} Labels;

// At upload. STATUS_MALFORMED: not UTF-8; STATUS_TOO_LARGE: over limits.max_labels.
Status labels_check(ByteSpan text);
// Of the run's graph; without labels OK, too. May read the disk.
Status labels_open(const RunCall *run, Labels *out);
void labels_deinit(Labels *labels);

// One of the greatest values: NaN counts as the greatest, and of equal ones the first comes first.
typedef struct TopValue {
        int64_t index;
        double value;  // of floats
        int64_t whole; // else; uint64 wraps
} TopValue;
typedef struct TopRow {
        Dtype dtype;
        const uint8_t *data; // contiguous
        int64_t n;
} TopRow;
// The `k` greatest values of a row, in `out`; *out_n: how many there are. STATUS_CANCELLED,
// STATUS_DEADLINE.
Status top_of_row(const RunCall *run, const TopRow *row, int64_t k, TopValue out[TOP_MAX], int64_t *out_n);
void top_write_integer(Dtype dtype, const TopValue *value, Text *out);
// Whether the tensor has rows of real numbers.
bool top_applies(const Tensor *tensor);
// For each row, as nested as the tensor without its last dimension:
// [{"index": 7, "value": 1.5, "label": "seven"}, ...].
Status top_write(RunCall *run, const Tensor *tensor, Text *out);
