// SPDX-License-Identifier: Apache-2.0
// What is known of a graph's inputs and outputs: what the graph says, else what a run has shown.
#pragma once
#include "api/run/outputs.h"
#include "core/engine/describe.h"

typedef enum FactKind { FACT_TENSOR, FACT_INT, FACT_LITERAL } FactKind;
typedef struct TensorFact {
        const char *name; // the graph's
        FactKind kind;    // of an input
        Value literal;    // borrowed from the graph
        TensorSpec spec;  // dtype DTYPE_NONE, rank -1: not known
} TensorFact;
typedef struct GraphFacts {
        TensorFact *inputs; // not state
        uint32_t n_inputs;
        TensorFact *outputs; // one for each leaf of `list`
        OutputList list;
} GraphFacts;

// Valid as long as graph and programs. Deinit also after a failure.
Status graph_facts(const GraphVersion *version, const Graph *graph, const ProgramInfo *programs,
                   uint32_t n_programs, GraphFacts *out);
// With the programs that there are.
Status graph_facts_now(Engine *engine, GraphVersion *version, const Graph *graph, GraphFacts *out);
void graph_facts_deinit(GraphFacts *facts);
// What a client has to send or gets: DTYPE_F32 where that is not known, as before the first run.
Dtype fact_dtype(const TensorFact *fact);
