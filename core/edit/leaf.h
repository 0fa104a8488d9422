// SPDX-License-Identifier: Apache-2.0
// Which calls of child graphs stay calls: what torch.fx.Tracer asks is_leaf_module, for a graph
// that is there already.
#pragma once
#include "core/edit/edit.h"

// Texts are borrowed. Classes of torch.nn and torch.ao.nn are leaves in any case, but for
// torch.nn.Sequential.
typedef struct EditLeaves {
        const char **types; // class names of child graphs, or torch.fx.GraphModule for all of them
        const char **paths; // globs; `*` stands for any text, dots included
        uint32_t n_types, n_paths;
} EditLeaves;

// Every call of a child graph becomes the child's nodes, and so do the calls in these, unless the
// child is a leaf. Modules and state get their full paths. The node that gives a call's result
// takes the call's name. STATUS_VALUE: some type or path is that of no call. STATUS_UNSUPPORTED,
// STATUS_LINT: as edit_inline.
Status edit_inline_calls(Edit *edit, const EditLeaves *leaves);
