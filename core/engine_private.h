// SPDX-License-Identifier: Apache-2.0
// Shared by the engine's own files.
#pragma once
#include <pthread.h>
#include "core/base/map.h"
#include "core/engine.h"

typedef struct EngineGraph {
        char name[STORE_NAME_MAX + 1];
        int64_t next_version, default_version;
        uint32_t n_versions, capacity;
        GraphVersion **versions; // counted, ascending
} EngineGraph;

struct Engine {
        pthread_mutex_t writing; // serialises put and delete: held while the disk is written
        pthread_mutex_t mutex;   // guards `graphs`: held for moments only
        StringMap graphs;        // name -> EngineGraph *
        Store *store;            // NULL: memory only
        GraphLoader loader;
        Registry *decoded; // graphs by content
        ProfileRing *profiles;
        _Atomic uint64_t n_runs;
};
