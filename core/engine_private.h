// SPDX-License-Identifier: Apache-2.0
// Shared by the engine's own files.
#pragma once
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include "core/base/map.h"
#include "core/engine.h"

enum { ENGINE_SEEN = 4096 };
typedef struct SeenTable {
        _Atomic uint64_t words[ENGINE_SEEN];
} SeenTable;

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
        Registry *decoded;           // graphs by content
        Registry *programs;          // by program key
        SeenTable seen, unplannable; // of program keys
        ProfileRing *profiles;
        _Atomic uint64_t n_runs;
        _Atomic uint64_t n_compiles;
};

// Before `graph` is shared: two uploads of one architecture with other weights need programs of their own.
static inline void graph_set_content(Graph *graph, const RegistryKey *key)
{
        static_assert(sizeof(graph->content) == sizeof(key->bytes), "a content hash is 32 bytes");
        memcpy(graph->content, key->bytes, sizeof(key->bytes));
}

extern const RegistryType engine_program_type;
// The program for a bound run (counted), or NULL: run eagerly. Compiles on this thread when it is time to. Never fails.
void engine_choose(Engine *engine, const Graph *graph, const RunRequest *request, ValueSpan inputs, const RunContext *ctx,
                   Program **out_program);
