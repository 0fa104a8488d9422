// SPDX-License-Identifier: Apache-2.0
// What a run would cost, without running it.
#pragma once
#include "core/edit/edit.h"
#include "core/engine/engine.h"
#include "core/graph/figures.h"

// Memory is that of an eager run: a storage lives until the last reader of the last value on it.
// Inputs are counted; state and temporary tensors within one node are not. An input that is not
// among `shapes` has the sizes that the graph declares, or its default; STATUS_INPUT if it has
// neither. The shapes are checked as those of a run are (bind.h): STATUS_SHAPE and STATUS_GUARD
// name the input. Other failures are those of an eager run. Bounded by limits.run_deadline_ms. Any
// thread.
Status engine_figures(Engine *engine, const Graph *graph, const EditShape *shapes, uint32_t n_shapes,
                      GraphFigures *out_figures);
