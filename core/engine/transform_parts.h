// SPDX-License-Identifier: Apache-2.0
// Inside core/engine: what passes that walk a graph share.
#pragma once
#include "core/compile/shapes.h"
#include "core/edit/edit.h"

typedef struct TransformBounds {
        RunContext ctx;
        Budget budget;
} TransformBounds;
// Bounded like a run, and by what the session is for (edit_set_poll).
void transform_bounds_init(TransformBounds *bounds, const Edit *edit);
// The inputs by name in another graph. STATUS_INTERNAL if one is gone.
Status engine_same_inputs(const Graph *graph, const EditShape *shapes, uint32_t n, InputShape *out_shapes);
// The node's spec says what its result is.
Status engine_note_shape(Edit *edit, Node *node, const TensorMeta *meta);
