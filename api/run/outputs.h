// SPDX-License-Identifier: Apache-2.0
// The flat list of a graph's outputs: names, nodes and (after a run) values, with the structure
// they came in.
#pragma once
#include "core/base/map.h"
#include "core/base/text.h"
#include "core/graph/graph.h"

typedef struct OutputLeaf {
        const char *name; // path in the output structure, or the node's name; unique
        const Node *node; // NULL: a literal
        Value value;      // borrowed from the run's result; VALUE_NONE without one
        size_t at, end;   // its {"$out": n} in the structure
} OutputLeaf;

typedef struct OutputList {
        OutputLeaf *leaves;
        uint32_t n, capacity;
        Text structure; // {"logits": {"$out": 0}}; of fetched nodes: an object by name
        // one value or a flat tuple, or fetched nodes: the structure says nothing that the list
        // does not
        bool plain;
        Arena arena;
        StringMap names; // of the leaves -> the suffix to try next
        StringMap keys;  // the same for the names of fetched nodes
} OutputList;

void output_list_deinit(OutputList *list);
// `value`: the output node's structure after a run, or NULL for the graph's info.
Status output_list_of(const Graph *graph, const Value *value, OutputList *out_list);
// Fetched nodes instead of the graph's outputs; containers are flattened.
Status output_list_of_nodes(const Node *const *nodes, const Value *values, uint32_t n, OutputList *out_list);
// `{"name": ..., "node": ...`, left open for what else is said of it.
void output_write_name(const OutputLeaf *leaf, Text *out);
