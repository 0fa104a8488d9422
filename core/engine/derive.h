// SPDX-License-Identifier: Apache-2.0
// Derived graphs: made from a base by a recipe (the rules of a run), kept with the decoded graphs
// under a key of what they were made of. A request whose graph is there edits nothing.
#pragma once
#include "core/base/text.h"
#include "core/engine/plan.h"

// What a derived graph is made of. Borrowed.
typedef struct DerivedFrom {
        const Graph *base;
        const Text *recipe; // canonical text of the edits, without the values of hidden inputs
        GraphVersion *const *called;
        Graph *const *called_graphs; // decoded; NULL: not yet
        uint32_t n_called;
} DerivedFrom;

// The derived graph's content, too. It depends on the generations of all graphs: what was derived
// from bytes that were replaced since then is not found any more.
Status engine_derived_key(Engine *engine, const DerivedFrom *from, RegistryKey *out_key);
// The graph that is kept under the key, counted; NULL: none.
Graph *engine_find_derived(Engine *engine, const RegistryKey *key);
// Checks a graph that was just made as an upload would be, and keeps it under the key
// (engine_find_derived finds it). STATUS_UNSUPPORTED: it cannot run.
Status engine_keep_derived(Engine *engine, const DerivedFrom *from, const RegistryKey *key, Graph *graph);
