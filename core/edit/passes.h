// SPDX-License-Identifier: Apache-2.0
// Passes over authored graphs: a working copy is changed in place, by the rules of the pass of the
// same name in torch.fx. *out_n is the number of nodes that were taken away or changed.
#pragma once
#include "core/edit/edit.h"
#include "core/ops/emitter.h"

// Graph.eliminate_dead_code: removes calls and get_attr nodes that nobody reads, from the end to
// the front. Impure ones (node_is_impure) stay. Child graphs are left alone.
Status edit_eliminate_dead_code(Edit *edit, uint32_t *out_n);
// CSEPass: a call equal to an earlier one becomes that one. Impure calls stay. A graph with a call
// that writes is left as it is: two equal calls may have seen different values.
Status edit_cse(Edit *edit, uint32_t *out_n);
// experimental.optimization.remove_dropout: calls of torch.nn.Dropout become their argument, in
// training mode too.
Status edit_remove_dropout(Edit *edit, uint32_t *out_n);
// Functions and methods become the overload that they call (torch.ops.aten.relu.default), with its
// arguments by position, where that is decided without knowing types. Modules, Python's operators
// and calls that are more than one operator stay.
Status edit_normalise(Edit *edit, uint32_t *out_n);
// experimental.optimization.extract_subgraph: `inputs` become the placeholders, in order, and
// `outputs` a list of results; what these do not need goes. STATUS_LINT if they need an input of
// the graph that is not among `inputs`.
Status edit_extract_subgraph(Edit *edit, Node *const *inputs, uint32_t n_inputs, Node *const *outputs,
                             uint32_t n_outputs);

// experimental.const_fold, in two parts, because running a graph belongs to rooms above. The calls
// that depend on state alone, as a graph without inputs; no results: nothing can be folded. A graph
// with a call that writes is left as it is.
Status edit_constants(Edit *edit, EditChild *out_child);
// `values` are the child's results (borrowed), in order. Tensors become state at
// _FX_CONST_FOLDED_ATTRS, several at _FX_CONST_FOLDED_ATTRS.0 and so on; they are copied and owe
// nothing to a budget.
Status edit_put_constants(Edit *edit, const EditChild *child, const Value *values, uint32_t *out_n);
// experimental.optimization.fuse: a batch norm behind a convolution or linear layer that nothing
// else reads is folded into its weights. STATUS_LINT for modules in training mode, as in torch. A
// layer that several nodes call keeps its weights. `emitter` computes.
Status edit_fuse(Edit *edit, Emitter *emitter, uint32_t *out_n);
