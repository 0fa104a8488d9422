// SPDX-License-Identifier: Apache-2.0
// FX JSON ("fx/1") -> Graph and back.
#pragma once
#include "core/base/text.h"
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

// Weights that come apart from the document, by full dotted path ("linear.weight"; for a child
// graph its module's path in front).
typedef struct FxStateSource {
        // Calls visit with every tensor (borrowed), in order; stops at the first failure.
        Status (*each)(void *context, Status (*visit)(void *visitor, const char *path, Tensor *tensor),
                       void *visitor);
        void *context;
} FxStateSource;

// Reads a document into a finished graph. `state` may be NULL; its tensors are shared, not copied.
// Failures are the caller's: STATUS_MALFORMED, STATUS_LINT, STATUS_VALUE, STATUS_UNKNOWN_MEMBER,
// STATUS_TOO_LARGE ... and name node and field. Missing weights are not a failure here: resolving
// targets lists them all at once. Any thread.
Status fx_json_read(const char *text, size_t n, const FxStateSource *state, Graph **out_graph);
// The same within a run: STATUS_CANCELLED, STATUS_DEADLINE. `poll` may be NULL.
Status fx_json_read_within(const char *text, size_t n, const FxStateSource *state, const RunContext *poll,
                           Graph **out_graph);

// Writes a document that fx_json_read accepts. Without `with_data` tensors are given by dtype and
// shape only.
Status fx_json_write(const Graph *graph, bool with_data, Text *out);
