// SPDX-License-Identifier: Apache-2.0
// Operators that an upload brings along as graphs: the part "op:mylib.foo" is a graph that stands
// for each call of torch.ops.mylib.foo.
#pragma once
#include "api/readers/upload.h"
#include "core/kernels/run_context.h"

// Reads the graphs of the upload's operators and puts each in the place of its calls, in `base` and
// in what was put there. That is done limits.max_child_graphs times at most, since an operator that
// calls itself never ends. `poll` bounds it; may be NULL. The result is finished and resolved.
// STATUS_INPUT: nothing calls an operator.
Status operators_inline(const Upload *upload, const Graph *base, const RunContext *poll, Graph **out_graph);
// The upload's content, with that of its operators: `content` of the derived graph, and the recipe
// that says where it came from. `packed_on` (packed_on.h) may be NULL.
Status operators_content(const Upload *upload, const StoreVersion *identified, const char *packed_on,
                         uint64_t out_content[4], Text *out_recipe);
