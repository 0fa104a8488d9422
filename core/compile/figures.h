// SPDX-License-Identifier: Apache-2.0
// What a run with inputs of given shapes would cost, without running it: operations and bytes of
// each node, and the memory that is live when it runs.
#pragma once
#include "core/compile/shapes.h"
#include "core/graph/figures.h"

// The memory is that of an eager run: a storage lives until the last reader of the last value on
// it. Inputs are counted; state and temporary tensors within one node are not. Failures are those
// of graph_shapes.
Status graph_figures(const Graph *graph, const InputShapes *inputs, const RunContext *poll,
                     GraphFigures *out_figures);
