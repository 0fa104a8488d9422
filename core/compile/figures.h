// SPDX-License-Identifier: Apache-2.0
// What a run with inputs of given shapes would cost, without running it: operations and bytes of
// each node, and the memory that is live when it runs.
#pragma once
#include "core/compile/shapes.h"
#include "core/graph/figures.h"
#include "core/kernels/pack_cache.h"

// The memory is that of an eager run: a storage lives until the last reader of the last value on
// it. Inputs are counted; state and temporary tensors within one node are not. `cache` shares
// constants that passes make to see what fuses; may be NULL. Failures are those of graph_shapes.
Status graph_figures(const Graph *graph, const InputShapes *inputs, const RunContext *poll, PackCache *cache,
                     GraphFigures *out_figures);
