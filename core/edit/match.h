// SPDX-License-Identifier: Apache-2.0
// Which nodes a rule means.
#pragma once
#include "core/edit/edit.h"
#include "core/targets/targets.h"

// All conditions that are given must hold; NULL (and nth -1): any.
typedef struct EditMatch {
        bool has_op;
        Opcode op;
        // By meaning: torch.sigmoid = Tensor.sigmoid = aten.sigmoid = nn.Sigmoid if the module is
        // one call. The name of an overload (aten.add.Tensor) means only that one. Nodes without a
        // meaning are compared by text.
        const char *target;
        const char *name; // glob
        // glob over the path, and class, of the module that a call_module node calls; of other
        // nodes, of a module in whose call they were made (edit_call_fits)
        const char *module, *module_type;
        int64_t nth; // from 0, of those for which all else holds
} EditMatch;

// The operators that a node's call stands for, if it is one call of one.
void graph_node_meaning(const Graph *graph, const Node *node, Meaning *out_meaning);
// `*` stands for any text, dots included. At most strlen(pattern) * strlen(text) steps.
bool glob_matches(const char *pattern, const char *text);
int64_t glob_cost(const char *pattern, const char *text); // as a number of nodes, for edit_visit
// Whether the glob fits the module's path or, for its second call, "path@1", and so on.
bool edit_call_fits(const char *pattern, const StackEntry *call);
const char *edit_call_suffix(const StackEntry *call); // "@1" of the second call; "" of the first
// The nodes in their order; the array is the caller's to free. No hit is no failure here.
Status edit_match(Edit *edit, const EditMatch *match, Node ***out_nodes, uint32_t *out_n);
// The failure for a rule without a hit: "no node has target torch.sigmod; this graph calls: ...".
Status edit_no_match(const Edit *edit, const EditMatch *match);
