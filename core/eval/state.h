// SPDX-License-Identifier: Apache-2.0
// State that lives on from one run to the next. The entries of a graph's state are numbered: its
// own in order, then those of its child graphs. Entries on one storage share the first one's
// number. Graphs with the same content have the same numbers.
#pragma once
#include "core/graph/graph.h"

// What a run starts from, and what it leaves. A run without one starts from the graph's state, and
// what it writes is dropped.
typedef struct RunState {
        uint32_t n;          // state_count of the graph
        Storage *const *now; // by number, borrowed; NULL: as uploaded. Nothing writes to them.
        // by number, counted: what the run has put in its place; NULL: it did not write there
        Storage **after;
} RunState;

uint32_t state_count(const Graph *graph);
// The number of the entries on `origin`; state_count where there are none.
uint32_t state_number(const Graph *graph, const Storage *origin);
// The entry with this number, and the graph that has it. NULL: none.
const State *state_at(const Graph *graph, uint32_t number);
// What the run starts from instead of `origin`, which is the entry's with this number.
static inline Storage *state_now(const RunState *state, uint32_t number, Storage *origin)
{
        return state == NULL || number >= state->n || state->now[number] == NULL ? origin
                                                                                 : state->now[number];
}
// Drops what the run left.
void run_state_clear(RunState *state);
