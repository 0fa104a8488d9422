// SPDX-License-Identifier: Apache-2.0
// Passes over authored graphs: a working copy is changed in place, by the rules of the pass of the
// same name in torch.fx. *out_n is the number of nodes that were taken away or changed.
#pragma once
#include "core/edit/edit.h"

// Graph.eliminate_dead_code: removes calls and get_attr nodes that nobody reads, from the end to
// the front. Impure ones (node_is_impure) stay. Child graphs are left alone.
Status edit_eliminate_dead_code(Edit *edit, uint32_t *out_n);
// CSEPass: a call equal to an earlier one becomes that one. Impure calls stay. A graph with a call
// that writes is left as it is: two equal calls may have seen different values.
Status edit_cse(Edit *edit, uint32_t *out_n);
// experimental.optimization.remove_dropout: calls of torch.nn.Dropout become their argument, in
// training mode too.
Status edit_remove_dropout(Edit *edit, uint32_t *out_n);
