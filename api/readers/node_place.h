// SPDX-License-Identifier: Apache-2.0
// Where a node comes from: the nn_module_stack of documents -> Node.module_stack.
#pragma once
#include "core/graph/graph.h"

// "key,path,type;key,path,type", as torch.export.save writes it.
Status read_module_stack(Graph *graph, const char *text, Node *node);
// Whether it is {"key": ["path", "type"], ...} with at least one entry. FX JSON may have anything
// under this name.
bool is_module_stack(const char *json, size_t n);
// A text for which is_module_stack holds.
Status read_module_stack_json(Graph *graph, const char *json, size_t n, Node *node);
