// SPDX-License-Identifier: Apache-2.0
// What a run with inputs of given shapes would cost: figures of each node and of the whole graph.
#pragma once
#include "core/base/arena.h"
#include "core/tensor/tensor.h"

struct Node;

typedef struct NodeFigures {
        bool has_tensor; // `meta` is that of its value, a tensor
        TensorMeta meta;
        // as in profiles: of all calls that the node makes; views cost nothing
        int64_t flops, bytes;
        int64_t live_bytes; // results that this or a later node reads, its own included
        int64_t held_bytes; // of storages that it made, live at the peak
        // Nodes that a program runs in one call, the node itself among them; 0: none, and `why_not`
        // says why. Both are empty where the node calls nothing.
        const struct Node *const *fused_with;
        uint32_t n_fused_with;
        const char *why_not;
} NodeFigures;

typedef struct GraphFigures {
        NodeFigures *nodes; // by index
        int64_t flops, bytes, peak_bytes;
        uint32_t peak; // index of the node
        Arena arena;   // texts and lists of the nodes
} GraphFigures;

static inline void graph_figures_deinit(GraphFigures *figures)
{
        free(figures->nodes);
        arena_deinit(&figures->arena);
        figures->nodes = NULL;
}
