// SPDX-License-Identifier: Apache-2.0
// Parts of a run, as torch.fx.Interpreter.run(initial_env=...) has them: nodes whose values are
// given are not run, all others are; and a run may end early.
#pragma once
#include "core/edit/edit.h"

// The value of a node comes with the request, in the session's next hidden input, which stands
// for the node. STATUS_VALUE: there is no such node, or it is the output or an input of the user.
Status edit_give_value(Edit *edit, const char *name, const TensorSpec *spec);
// Calls and get_attr behind the node go, and the graph returns an empty tuple: values are to be
// fetched. To be called before edit_give_value, whose nodes may stand behind. STATUS_VALUE: there
// is no such node, or it is the output.
Status edit_stop_after(Edit *edit, const char *name);
