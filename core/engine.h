// SPDX-License-Identifier: Apache-2.0
// Engine: the façade of core. Graphs by name and version, stored or in memory; runs; profiles. Any thread; nothing here waits for another
// request: what is not ready yet parks a ticket (registry.h).
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/compile/compile.h"
#include "core/eval/bind.h"
#include "core/eval/walk.h"
#include "core/profile/profile.h"
#include "core/registry/registry.h"
#include "core/store/store.h"

typedef struct Engine Engine;

// One body of an upload: the whole request body, or one part of multipart. `bytes` is counted and may outlive the call (weights may point
// into it).
typedef struct UploadPart {
        const char *name; // "", "graph", "weights"
        Storage *bytes;
} UploadPart;

// Decodes parts into a finished, resolved graph: api implements it, so that stored graphs can be decoded again after a restart.
typedef struct GraphLoader {
        Status (*load)(void *context, const UploadPart *parts, uint32_t n_parts, const char *model, Graph **out_graph);
        void *context;
} GraphLoader;

typedef struct EngineOptions {
        const char *data_folder; // NULL: memory only
        GraphLoader loader;
        void (*log)(void *context, const char *message); // one line, no path; may be NULL
        void *log_context;
} EngineOptions;

typedef enum GraphState { GRAPH_STATE_LOADING, GRAPH_STATE_READY, GRAPH_STATE_DAMAGED } GraphState;
extern const char *const graph_state_names[]; // "loading", "ready", "damaged"

// One version of a named graph: immutable but for state and statistics; refcounted, so that delete and replace never disturb a run.
typedef struct GraphVersion {
        RefCount ref;
        char name[STORE_NAME_MAX + 1];
        StoreVersion stored;             // version, id, format, parts
        RegistryKey key;                 // id and model
        Storage *bytes[STORE_MAX_PARTS]; // memory-only engines: the uploaded bodies, counted
        ProfileStats *stats;
        _Atomic int state;       // GraphState
        char reason[256];        // why damaged; written once before state
        char latest_program[65]; // id of the last one that ran; guarded by the engine
} GraphVersion;

Status engine_open(const EngineOptions *options, Engine **out_engine);
Engine *engine_close(Engine *engine);
DEFINE_CLEANUP(Engine, engine_close)

// Content id of an upload: SHA-256 of the body; of several parts: SHA-256 of their concatenated lower-case hex digests, sorted by part
// name.
Status upload_identify(const UploadPart *parts, uint32_t n_parts, const char *model, const char *format, StoreVersion *out_version);

// Makes `graph` (finished, resolved; counted by the engine) a version of `name` (NULL or "": the id is the name). *out_created false: equal
// to the latest version's content, which is returned. Durable when it returns OK. A name of 64 hex digits must be the content's own id.
Status engine_put(Engine *engine, const char *name, const UploadPart *parts, uint32_t n_parts, const StoreVersion *identified, Graph *graph,
                  GraphVersion **out_version, bool *out_created);
// version 0: the default one. STATUS_NOT_FOUND names what exists.
Status engine_find(Engine *engine, const char *name, int64_t version, GraphVersion **out_version);
GraphVersion *graph_version_ref(GraphVersion *version);
GraphVersion *graph_version_unref(GraphVersion *version);
DEFINE_CLEANUP(GraphVersion, graph_version_unref)
// version 0: the graph with all its versions.
Status engine_delete(Engine *engine, const char *name, int64_t version);
// Default versions of graphs whose name sorts after `after` (NULL: all), by name; at most `limit`, counted. *out_next: more follow.
Status engine_list(Engine *engine, const char *after, uint32_t limit, GraphVersion **out, uint32_t *out_n, bool *out_more);
// All versions of a name, ascending, counted; *out_default is the default version's number.
Status engine_versions(Engine *engine, const char *name, GraphVersion ***out, uint32_t *out_n, int64_t *out_default);

// ---- decoded graphs ----
// READY: *out_graph counted. PARKED: ticket will be among those a publish returns (its object is a Graph). PARKED_START: also call
// engine_load on a worker.
Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Acquired *out_how, Graph **out_graph,
                      RegistryEntry **out_build);
// Loads and publishes; returns the tickets to wake. Never fails: the failure travels in the tickets.
Ticket *engine_load(Engine *engine, GraphVersion *version, RegistryEntry *build);
// Blocking form for programs without a server (fxserve run).
Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph);
// Graphs sent along with POST /v1/run, cached by content: NULL when not cached.
Graph *engine_cached_graph(Engine *engine, const RegistryKey *key);
Status engine_cache_graph(Engine *engine, const RegistryKey *key, Graph *graph);

// ---- runs ----
// AUTO: eager at first sight of a signature, compiled from the second on. DETERMINISTIC: the same bits every time, whatever else happens.
typedef enum RunMode { RUN_MODE_AUTO, RUN_MODE_COMPILED, RUN_MODE_EAGER } RunMode;
typedef struct RunRequest {
        ValueSpan inputs;         // flat user inputs in signature order (bind.h)
        const Node *const *fetch; // NULL: the graph's outputs
        uint32_t n_fetch;
        RunMode mode;
} RunRequest;
typedef struct RunResult {
        Value value;    // the output node's structure
        Value *fetched; // n_fetch values, or NULL
        uint32_t n_fetched;
} RunResult;
void run_result_deinit(RunResult *result);
// Binds and runs on the calling thread. `engine` and `frame` (the thread's memory for programs) may be NULL: eager. `profile` (made by
// run_profile_new for this graph) receives rows, run and compile times, memory figures and the program.
Status engine_run(Engine *engine, const Graph *graph, const RunRequest *request, RunContext *ctx, Frame *frame, RunProfile *profile,
                  RunResult *out_result);
// A program by its id, counted; NULL when it is not (or no longer) there.
Program *engine_program(Engine *engine, const char *id);
// The id of the program that ran last for this version; "" if none has.
void engine_latest_program(Engine *engine, const GraphVersion *version, char out_id[65]);
void engine_note_program(Engine *engine, GraphVersion *version, const Program *program);
// Records a finished run: the ring and (when version is not NULL) its statistics.
void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile);
ProfileRing *engine_profiles(Engine *engine);

typedef struct EngineStats {
        uint32_t n_graphs, n_versions;
        uint64_t runs, compiles;
        RegistryStats graphs, programs;
} EngineStats;
EngineStats engine_stats(Engine *engine);
