// SPDX-License-Identifier: Apache-2.0
// One writing of FX JSON, shared by print_json.c (document, nodes, modules), print_json_state.c and
// print_json_signature.c. Private to this room.
#pragma once
#include "core/graph/print.h"
#include "core/graph/storages.h"

typedef struct JsonWriter {
        Status (*write_data)(void *context, const State *state, Text *out);
        void *context;
        StateStorages storages; // of the whole document
        Text *out;
        Status status; // first failure
} JsonWriter;

void json_add_dimension(const SymDim *dim, Text *out);
// The entries of "state".
Status json_add_state(JsonWriter *writer, const Graph *graph);
// `, "hints": ..., "signature": ...`, each where there is something to say.
Status json_add_signature(const Graph *graph, Text *out);
