// SPDX-License-Identifier: Apache-2.0
// Printed forms of a graph, byte for byte as PyTorch 2.13 (no newline is added at the end; callers
// add exactly one on the wire).
#pragma once
#include "core/base/text.h"
#include "core/graph/graph.h"

typedef enum GraphForm {
        GRAPH_FORM_GRAPH,
        GRAPH_FORM_CODE,
        GRAPH_FORM_READABLE,
        GRAPH_FORM_TABULAR,
        GRAPH_FORM_DOT,
        GRAPH_FORM_JSON,
        GRAPH_FORM_COUNT
} GraphForm;
extern const char *const graph_form_names[GRAPH_FORM_COUNT]; // "graph", "code" ...

// str(graph) | gm.code | gm.print_readable()'s text | print_tabular's table with object reprs
// replaced by qualified names | a digraph for graphviz
// | FX JSON without state data (state by dtype and shape).
Status graph_print(const Graph *graph, GraphForm form, Text *out);
// For graphviz. `share`: by node index, of a run's time, 0 to 1, which gives the colours; NULL: a
// colour per module.
Status graph_print_dot(const Graph *graph, const double *share, Text *out);
// One node's line of str(graph), without indentation: "%add : [num_users=1] =
// call_function[target=operator.add](args = (%x, %y), kwargs = {})".
void node_print(const Node *node, Text *out);
// Python repr of an argument: strings quoted, node names bare.
void value_print_repr(Value value, Text *out);
// An argument as FX JSON has it: "%add" for a node, {"$tuple": [1, 2]}.
void value_print_json(Value value, Text *out);
// FX JSON, complete: read together with the state it gives the same graph. `write_data` adds
// members with the numbers to one tensor's object; NULL: the weights come apart.
Status graph_print_json(const Graph *graph,
                        Status (*write_data)(void *context, const State *state, Text *out), void *context,
                        Text *out);
