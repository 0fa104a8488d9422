// SPDX-License-Identifier: Apache-2.0
// Shapes of all nodes of a graph for given shapes of its inputs, without computing numbers.
#pragma once
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"
#include "core/ops/decompose.h"
#include "core/program/recording.h"

typedef struct InputShape {
        const Node *placeholder;
        Dtype dtype; // DTYPE_NONE: as declared, else float32
        int rank;
        const int64_t *size;
} InputShape;

typedef struct InputShapes {
        const InputShape *items;
        uint32_t n;
        bool checked; // as inputs of a run (bind.h); else they need not fit the signature
} InputShapes;
typedef Status (*ShapeVisit)(void *context, const Node *node, const TensorMeta *meta);

// Calls `visit` for each node whose result is a tensor, in order. An input that is not among
// `inputs` has the sizes that the graph declares, or its default; STATUS_INPUT if it has neither.
// Sizes that vary are those that follow from `inputs`, else hints. Nodes whose sizes depend on
// numbers are left out, with all that read them. Other failures are those of an eager run.
Status graph_shapes(const Graph *graph, const InputShapes *inputs, const RunContext *poll, ShapeVisit visit,
                    void *context);

// The walk behind it: `then` gets what was recorded and one value per node but the output, as it
// was when the node had run. Tensors in it are Recorded. VALUE_DYNAMIC: left out.
typedef Status (*ShapesThen)(void *context, const Recording *recording, const Value *values);
Status shapes_walk(const Graph *graph, const InputShapes *inputs, const RunContext *poll, ShapesThen then,
                   void *context);
// The same with operators decomposed (core/ops/decompose.h).
Status shapes_walk_decomposed(const Graph *graph, const InputShapes *inputs, const RunContext *poll,
                              Decompositions decompositions, ShapesThen then, void *context);
