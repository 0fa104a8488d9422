// SPDX-License-Identifier: Apache-2.0
// What a program would run together: the graph is recorded and goes through the passes, but no
// program is made.
#pragma once
#include "core/graph/figures.h"
#include "core/kernels/pack_cache.h"
#include "core/program/recording.h"

typedef struct FusingInputs {
        const Recording *recorded; // of the walk on metas
        const Value *values;       // of that walk: one per node but the output
        const RunContext *poll;
        PackCache *cache; // shares constants that passes make; may be NULL
} FusingInputs;

// Fills in fused_with and why_not of each node that calls something. A graph that no program can be
// made of runs eagerly, and its nodes say so. Failures are those of a build.
Status graph_fusing(const Graph *graph, const FusingInputs *inputs, GraphFigures *inout_figures);
