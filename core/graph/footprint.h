// SPDX-License-Identifier: Apache-2.0
// What a graph holds in memory, for limits.max_graph_memory.
#pragma once
#include "core/graph/graph.h"

// Bytes of the graph's arena and of its nodes' arguments, and those of its child graphs. Without
// tensors. Arguments that several nodes share count for each of them.
size_t graph_footprint(const Graph *graph);
