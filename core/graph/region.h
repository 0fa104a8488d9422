// SPDX-License-Identifier: Apache-2.0
// The nodes that one call of a module made, in a graph where they stand among others: what they
// take from outside, what others take from them, and whether one call could stand for all of them.
#pragma once
#include "core/graph/graph.h"

typedef struct Region {
        const char *path;        // of the module
        const StackEntry *entry; // the call; NULL: its nodes have no nn_module_stack
        // In the graph's order. `inputs` are in order of first use; parameters, buffers and other
        // state are none.
        const Node **nodes, **inputs, **outputs;
        uint32_t n_nodes, n_inputs, n_outputs;
        // A node outside that reads a result of the region and that the region reads (by way of
        // others, perhaps). NULL: the region is convex.
        const Node *between;
} Region;
void region_deinit(Region *region);

// Every call of the module at `path`, in order of their first nodes; *out_n 0: nothing calls it.
// Without a stack, a call_module node of `path` is a call of it, and those of modules below `path`
// are one call together, since nothing tells more. Freed by regions_free. STATUS_TOO_LARGE: over
// limits.max_match_steps.
Status graph_regions(const Graph *graph, const char *path, Region **out_regions, uint32_t *out_n);
void regions_free(Region *regions, uint32_t n);
// The path of the innermost module that the node belongs to: what call_module calls, else from the
// stack. NULL: none is known.
const char *node_module(const Node *node);
