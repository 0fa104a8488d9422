// SPDX-License-Identifier: Apache-2.0
// The actions of a rule on a node that it matches, as edits of a working copy. The node's readers
// get the action's result, which stands for the node.
#pragma once
#include "core/edit/edit.h"

// A call that gives back its argument, on which actions work where a node is no call. Of a
// placeholder or get_attr it reads the value, and the node's readers read it. Of placeholders these
// calls stand behind all placeholders, in their order. Of an output it stands between the graph's
// only result and the output.
Status edit_identity(Edit *edit, Node *node, Node **out_call);
// A copy of the value of `node`, made in front of `before`.
Status edit_copy_before(Edit *edit, Node *before, Node *node, Node **out_copy);
// The readers get argument `index` of the call; the node goes. In a module or function call 0 is
// the first argument, of a method its object.
Status edit_passthrough(Edit *edit, Node *node, uint32_t index);
// Sets another target for the same arguments. A method stays a method if the new name is one;
// anything else becomes a call of a function.
Status edit_retarget(Edit *edit, Node *node, const char *target);
// Another call in the node's place. In args and kwargs (taken, also on failure) these texts stand
// for arguments of the node: "$args" as an item of args for all positional ones, "$0" for one,
// "$kw:dim" for one by name. A text that begins with "$$" is that text with one "$".
Status edit_retarget_call(Edit *edit, Node *node, const EditNew *take_new, Node **out_node);
// Replaces the node by a copy of another graph, which takes the node's arguments: those by name go
// to the parameters of these names. The graph's modules and state go below a free path made from
// `name`; copies of one graph share them. Nodes check what the graph's signature demands of its
// inputs. *out_value (counted; NULL: not wanted) is what the readers got.
Status edit_call_graph(Edit *edit, Node *node, const Graph *graph, const char *name, Value *out_value);
// The readers get a copy of the node's result in which the part at `index` is changed, as by
//     y = y.clone();  y[index] = v    or   y[index] += v   or   y[index] *= v
// so views of the result by others keep their values. `index` is a tuple as Python's indexing takes
// it, `value` a node or number.
typedef enum EditPatchKind { PATCH_SET, PATCH_ADD, PATCH_SCALE } EditPatchKind;
typedef struct EditPatch {
        EditPatchKind kind;
        Value index, value; // borrowed
        Node *behind;       // as in EditWrap
} EditPatch;
Status edit_patch(Edit *edit, Node *node, const EditPatch *patch, Node **out_result);
// `before` (or NULL) takes the node's positional arguments and gives the new ones: one value, or a
// tuple of several. `after` (or NULL) takes the node's result and gives the readers' value.
typedef struct EditWrap {
        const Graph *before, *after;
        const char *before_name, *after_name;
        // The last node of what was put behind `node` before and keeps reading it; NULL: nothing.
        Node *behind;
} EditWrap;
Status edit_wrap(Edit *edit, Node *node, const EditWrap *wrap, Value *out_value);
