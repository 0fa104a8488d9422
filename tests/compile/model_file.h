// SPDX-License-Identifier: Apache-2.0
// Models of tests/models with the inputs that stand beside them.
#pragma once
#include "api/formats/safetensors.h"
#include "core/graph/graph.h"

// `file`: name within tests/models, or a path that starts with '/'. `weights` (another such file)
// may be NULL.
Status model_read(const char *file, const char *weights, Graph **out_graph);
// The values of input set `set` of `<stem>.safetensors`, bound to the graph's placeholders;
// *out_found false when there is none.
Status model_inputs(const Graph *graph, const char *stem, int set, Value *out_inputs, bool *out_found);
void model_inputs_free(const Graph *graph, Value *inputs);
