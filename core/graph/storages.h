// SPDX-License-Identifier: Apache-2.0
// How a document names the storages of a graph's state. A storage that is exactly one dense tensor
// needs no name: the tensor's path stands for it. Any other (several views, a view of a part, other
// strides) is called "storage:N".
#pragma once
#include "core/graph/graph.h"

enum { STORAGE_NAME_MAX = 24 };
typedef struct StateStorage {
        Storage *storage; // borrowed from the graph
        uint32_t number;  // of those that are named, in the document's order
        bool is_named;
} StateStorage;
typedef struct StateStorages {
        StateStorage *items; // by address
        uint32_t n;
} StateStorages;

// Storages of the state of the graph and its child graphs, each once.
Status state_storages_of(const Graph *graph, StateStorages *out_storages);
void state_storages_deinit(StateStorages *storages);
// NULL: not among them.
const StateStorage *state_storages_find(const StateStorages *storages, const Storage *storage);
void state_storage_name(const StateStorage *storage, char out[STORAGE_NAME_MAX]);
