// SPDX-License-Identifier: Apache-2.0
// Two runs compared: their results, and the values of their nodes, with torch.testing's
// assert_close. The second run may be samples, values that were recorded elsewhere.
//
// Eager sides are compared value by value as they are made, before later nodes write to them: `a`
// runs and keeps values of its nodes up to limits.max_compare_bytes, then `b` runs and each of its
// values is compared with the one kept; and again for the nodes that are left. A compiled side has
// no values of nodes but those that it is compiled to give: another program than the one that
// serves, and what a later node writes into a value shows. Then both sides run for groups of nodes
// that hold no more than the limit.
#pragma once
#include "core/base/text.h"
#include "core/engine/task.h"
#include "core/kernels/reduce/close.h"

typedef struct CompareSample { // of a recorded node or output
        const char *name;
        Tensor *tensor; // borrowed
} CompareSample;

typedef struct CompareSide {
        RunTask *task;                // with its inputs, borrowed; NULL: samples
        const CompareSample *samples; // of nodes
        uint32_t n_samples;
        bool is_compiled; // set by compare_open: mode compiled, and there is a program
        struct Program *program;
        struct Frame *frame; // of compare_times; NULL: each run has one of its own
        int64_t run_ns;      // of the last run
} CompareSide;

typedef struct CompareRow {
        const Node *a;
        const char *name, *name_b; // authored, of what is compared; of the node of `b`
        Closeness close;
        char *message; // NULL: close
} CompareRow;

typedef struct Comparison {
        CompareRow *rows; // pairs of nodes, in the order in which `a` runs them
        uint32_t n_rows;
        const Node **alone[2]; // nodes of `a` and `b` without a partner, in order
        uint32_t n_alone[2];
        uint32_t n_runs; // of both sides together
} Comparison;

void comparison_deinit(Comparison *comparison);

// Binds the inputs; mode compiled: makes the program. What cannot be compiled runs eagerly.
Status compare_open(Engine *engine, CompareSide *side);
void compare_close(CompareSide *side);
// The result of a side that is no samples. Owned by the caller.
Status compare_result(CompareSide *side, Value *out_value);
// Both sides, which are no samples, `n` times in turns, after two turns that do not count. Medians.
Status compare_times(CompareSide *a, CompareSide *b, uint32_t n, int64_t out_ns[2]);
// Both sides are open; `a` is no samples.
Status compare_nodes(Engine *engine, CompareSide *a, CompareSide *b, const CloseRule *rule,
                     Comparison *out_comparison);
// Values of any kind: containers item by item; the message is of the first item that differs.
Status value_close(Value a, Value b, const CloseRule *rule, const RunContext *ctx, Closeness *out_close,
                   Text *message);

// ---- between the files of this header ----
typedef struct NodePair {
        const char *name; // authored, of what both stand for
        const Node *a, *b;
} NodePair;
// Nodes of two graphs that stand for each other, in the order of `a`: by name, then by the authored
// node that they stand for, then by structure (the same operator on partners). A node that rules
// put in the place of several is in several pairs. Outputs and what observes are left out.
// `out_pairs` is the caller's to free.
Status compare_pairs(const Graph *a, const Graph *b, NodePair **out_pairs, uint32_t *out_n,
                     Comparison *alone);
