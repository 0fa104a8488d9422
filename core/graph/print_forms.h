// SPDX-License-Identifier: Apache-2.0
// The printers behind graph_print, one per file. Private to this room.
#pragma once
#include "core/graph/print.h"
#include "core/graph/python_text.h"

// "operator.add", "builtins.getattr", "torch.relu", "linear": as str(graph) shows it.
void target_print(const Node *node, Text *out);
// GraphModule.code; `readable`: with the shape of each value and the lines of Python, as
// GraphModule.print_readable has it within its class.
Status print_function_code(const Graph *graph, bool readable, Text *out);
Status print_readable(const Graph *graph, Text *out);
// `: "f32[2, 3]"` in the place of what *annotation holds, where the node's value is known.
void readable_annotation(const Node *node, Text *annotation);
// "File: m.py:12 in forward, code: y = self.lin(x)"
void readable_summary(const Node *node, Text *out);
Status print_tabular(const Graph *graph, Text *out);

// Names of printed code: fresh for every print.
typedef struct CodeNames {
        Arena arena;
        Namespace space;
        StringMap globals;  // qualified name -> name in the code
        const char **nodes; // by index; NULL until first used
        Status status;      // first failure; later calls do nothing
} CodeNames;

// The name under which code refers to a function or type: its qualified name when it comes from
// torch, else a global. Never NULL.
const char *code_global(CodeNames *names, const char *qualified_name);
// An annotation as generated code spells it: "typing.Optional[torch.Tensor]" ->
// "typing_Union[torch.Tensor,NoneType]".
void code_annotation(CodeNames *names, const char *type, Text *out);
