// SPDX-License-Identifier: Apache-2.0
// Operators that an upload brings along as graphs: the part "op:mylib.foo" is a graph that stands
// for each call of torch.ops.mylib.foo.
#pragma once
#include "api/readers/upload.h"
#include "core/kernels/run_context.h"

// The upload's graph `base` with what came along: each operator's graph in the place of its calls,
// in `base` and in what was put there, limits.max_child_graphs times at most, since an operator
// that calls itself never ends; and the processor that packed its weights (packed_on.h), which may
// be NULL. `poll` bounds it; may be NULL. The result is finished and resolved.
// STATUS_INPUT: nothing calls an operator, or has packed weights.
Status operators_inline(const Upload *upload, const Graph *base, const char *packed_on,
                        const RunContext *poll, Graph **out_graph);
// The upload's content, with that of its operators and the processor: `content` of the derived
// graph, and the recipe that says where it came from.
Status operators_content(const Upload *upload, const StoreVersion *identified, const char *packed_on,
                         uint64_t out_content[4], Text *out_recipe);
