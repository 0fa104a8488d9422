// SPDX-License-Identifier: Apache-2.0
// Finding a small graph in a working copy and putting another in its place, by the rules of
// torch.fx's SubgraphMatcher and subgraph_rewriter.
#pragma once
#include "core/edit/edit.h"

// A pattern is a finished graph. A placeholder stands for any node, number or list, the same at
// each place; another node for a node of the same opcode and target. Found nodes have no readers
// outside, except those that the pattern returns.
typedef struct EditPattern {
        const Graph *graph;
        bool ignore_literals; // constants of the pattern match any argument
} EditPattern;

// One place where the pattern was found.
typedef struct EditFound {
        Node *anchor;        // of the pattern's first result that nothing else in it reads
        Value *values;       // by index of the pattern's nodes; output: VALUE_ABSENT. Counted.
        Node **replacements; // after a rewrite: what was inserted, in order
        uint32_t n_replacements;
} EditFound;
typedef struct EditFinds {
        EditFound *items; // in order of their anchors; no two share a node
        uint32_t n, capacity;
        uint32_t n_values; // of each
} EditFinds;
void edit_finds_deinit(EditFinds *finds);

// All places that do not overlap, the first of two that do. No place is no failure. A pattern with
// dead nodes, with unused placeholders or without a node is refused (STATUS_LINT); more than
// limits.max_match_steps comparisons: STATUS_TOO_LARGE.
Status edit_find(Edit *edit, const EditPattern *pattern, EditFinds *out_finds);
// Replaces all of them. `replacement` has as many placeholders and results as the pattern. Paths of
// modules and state that the working copy has mean the copy's; others are added. *out_finds
// describes the nodes as they were; their names may be gone.
Status edit_rewrite(Edit *edit, const EditPattern *pattern, const Graph *replacement, EditFinds *out_finds);
