// SPDX-License-Identifier: Apache-2.0
// Engine: the façade of core. Graphs by name and version, stored or in memory; runs; profiles. Any
// thread; nothing here waits for another request: what is not ready yet parks a ticket (work.h).
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/compile/compile.h"
#include "core/engine/work.h"
#include "core/eval/bind.h"
#include "core/eval/walk.h"
#include "core/profile/profile.h"
#include "core/registry/registry.h"
#include "core/store/store.h"
#include "core/tensor/pieces.h"

typedef struct Engine Engine;

// One body of an upload: the whole request body, or one part of multipart. `bytes` is counted and
// may outlive the call (weights may point into it).
typedef struct UploadPart {
        const char *name; // "" (the graph, alone), or one of store_role_names
        Storage *bytes;
        HashHex digest; // SHA-256 of the bytes; "": not known yet
        // borrowed: the weights among the bytes, for the loader (core/tensor/pieces.h); NULL: none
        Pieces *pieces;
} UploadPart;

// Decodes parts into a finished, resolved graph: api implements it, so that stored graphs can be
// decoded again after a restart.
typedef struct GraphLoader {
        Status (*load)(void *context, const UploadPart *parts, uint32_t n_parts, const char *model,
                       Graph **out_graph);
        void *context;
} GraphLoader;

typedef struct EngineOptions {
        const char *data_folder; // NULL: memory only
        GraphLoader loader;
        void (*log)(void *context, const char *message); // one line, no path; may be NULL
        void *log_context;
        bool no_warm_up; // build nothing that was not asked for, and tune nothing
        bool scrub;      // read what is stored once, slowly, in the background, and mark what is damaged
} EngineOptions;

// UNREAD: stored before the start of this process, its bytes not looked at yet. It can be served,
// so clients see "ready".
typedef enum GraphState { GRAPH_STATE_UNREAD, GRAPH_STATE_READY, GRAPH_STATE_DAMAGED } GraphState;
extern const char *const graph_state_names[]; // "ready", "ready", "damaged"

// One version of a named graph: immutable but for state and statistics; refcounted, so that delete
// and replace never disturb a run.
typedef struct GraphVersion {
        RefCount ref;
        char name[STORE_NAME_MAX + 1];
        StoreVersion stored;             // version, id, format, parts
        RegistryKey key;                 // id and model
        Storage *bytes[STORE_MAX_PARTS]; // memory-only engines: the uploaded bodies, counted
        ProfileStats *stats;
        _Atomic int state;       // GraphState
        char *reason;            // why damaged; written once before state (graph_version_reason)
        char latest_program[65]; // id of the last one that ran; guarded by the engine
} GraphVersion;

Status engine_open(const EngineOptions *options, Engine **out_engine);
Engine *engine_close(Engine *engine);
DEFINE_CLEANUP(Engine, engine_close)

// At upload, of a decoded graph: STATUS_UNSUPPORTED with the full list of what an exported graph
// cannot do here, as far as the sizes that the exporter recorded show it. Bounded in time and
// memory; other graphs pass.
Status engine_check(const Graph *graph);

// What the name of a part says it is: "" and "graph" are the graph.
StoreRole upload_role(const char *name);
// Content id of an upload: SHA-256 of the graph; with weights: SHA-256 of both concatenated
// lower-case hex digests. Other parts do not count.
Status upload_identify(const UploadPart *parts, uint32_t n_parts, const char *model, const char *format,
                       StoreVersion *out_version);

// Before the parts of an upload are decoded to be put: makes the loader note the weights in
// pieces[i] (caller's, zeroed; pieces_deinit after engine_put), so that they are stored by content.
// Without a data folder nothing happens.
void engine_collect(Engine *engine, UploadPart *parts, uint32_t n_parts, Pieces *pieces);
bool engine_has_folder(const Engine *engine);
// A file without a name in the data folder, for bytes that are too many for memory.
// STATUS_NOT_FOUND: there is no data folder.
Status engine_temporary(Engine *engine, int *out_fd);
// Its bytes, read only; the descriptor may be closed then.
Status engine_map_temporary(int fd, size_t n_bytes, Storage **out_storage);
// When it does not say STATUS_OK, nothing is put and its failure is the put's. Called with changes
// held up, as between engine_begin_change and engine_end_change; the weights are written before,
// while others may change what they like.
typedef struct PutCondition {
        Status (*check)(void *context);
        void *context;
} PutCondition;
typedef struct PutRequest {
        const char *name; // NULL or "": the id is the name. One of 64 hex digits must be the content's own id
        const UploadPart *parts;
        uint32_t n_parts;
        const StoreVersion *identified; // upload_identify's of the parts
        Graph *graph;                   // finished, resolved; counted by the engine
        const PutCondition *only_if;    // NULL: in any case
} PutRequest;
// Makes the graph a version of its name. *out_created false: equal to the latest version's content,
// which is returned. Durable when it returns OK; the graph's weights are the stored ones then.
Status engine_put(Engine *engine, const PutRequest *put, GraphVersion **out_version, bool *out_created);
// version 0: the default one. STATUS_NOT_FOUND names what exists.
Status engine_find(Engine *engine, const char *name, int64_t version, GraphVersion **out_version);
Status engine_find_alias(Engine *engine, const char *name, const char *alias, GraphVersion **out_version);
const char *graph_version_reason(const GraphVersion *version); // of a damaged one
GraphVersion *graph_version_ref(GraphVersion *version);
GraphVersion *graph_version_unref(GraphVersion *version);
DEFINE_CLEANUP(GraphVersion, graph_version_unref)
// Between begin and end nobody else puts, deletes or sets defaults, so that what was looked at
// still holds when it is changed. The calls in between are this thread's; short.
void engine_begin_change(Engine *engine);
void engine_end_change(Engine *engine);
// version 0: the graph with all its versions. STATUS_CONFLICT: an alias names the version.
Status engine_delete(Engine *engine, const char *name, int64_t version);
// All of it or nothing. Durable when it returns OK.
typedef struct AliasChange {
        char name[STORE_NAME_MAX + 1];
        int64_t version; // 0: the alias goes
} AliasChange;
typedef struct HeadChange {
        int64_t default_version; // 0: stays
        uint32_t n_aliases;
        const AliasChange *aliases;
} HeadChange;
Status engine_change(Engine *engine, const char *name, const HeadChange *change);
// Default versions of graphs whose name sorts after `after` (NULL: all), by name; at most `limit`,
// counted. *out_next: more follow.
Status engine_list(Engine *engine, const char *after, uint32_t limit, GraphVersion **out, uint32_t *out_n,
                   bool *out_more);
// A name's default version, aliases, and all versions, ascending.
typedef struct VersionList {
        StoreHead head;
        uint32_t n;
        GraphVersion **versions; // counted
} VersionList;
Status engine_versions(Engine *engine, const char *name, VersionList *out);
void version_list_deinit(VersionList *list);

// ---- decoded graphs ----
// *out_graph counted; or, when *out_wait says so, the ticket is parked and comes back with the
// Graph. Once it is parked nothing but *out_wait is written.
Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Graph **out_graph,
                      Wait *out_wait);
// Whether the version's graph is decoded, so that a run need not read it first. Counts as no use.
bool engine_is_resident(Engine *engine, const GraphVersion *version);
// Blocking form for programs without a server (fxserve run).
Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph);
// Graphs sent along with POST /v1/run, cached by content: NULL when not cached.
Graph *engine_cached_graph(Engine *engine, const RegistryKey *key);
Status engine_cache_graph(Engine *engine, const RegistryKey *key, Graph *graph);

// ---- runs ----
// AUTO: eager at first sight of a signature, compiled from the second on, eager
// while it is built. COMPILED: waits for the program.
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

// A run in the making: engine_bind, engine_plan (with engine_planned when it had to wait),
// engine_execute. Zeroed before engine_bind.
typedef struct PlannedRun {
        const Graph *graph;            // borrowed, as are the request's fetched nodes
        RunRequest request;            // its inputs may be gone after engine_bind
        Value *inputs;                 // one per placeholder
        uint32_t n_inputs;             // 0: not bound
        int n_threads;                 // that will run it
        struct SharedTune *tune;       // counted; NULL: none
        struct CachedProgram *program; // counted; NULL: eager
} PlannedRun;
void planned_run_deinit(PlannedRun *plan); // leaves it zeroed

// Inputs against the signature: bind.h says what is checked. A failure leaves the plan zeroed.
Status engine_bind(const Graph *graph, const RunRequest *request, PlannedRun *plan);

// What to run it with: when *out_wait says that the ticket is parked, engine_planned says it after
// the ticket came back, and the plan may be somebody else's until then.
Status engine_plan(Engine *engine, PlannedRun *plan, Ticket *ticket, Wait *out_wait);
// After the ticket came back. STATUS_OK and *out_again: nothing was built and nothing is wrong;
// plan again. Builds that find that the graph cannot be planned leave it to an eager run; any other
// failure is the run's.
Status engine_planned(PlannedRun *plan, Ticket *ticket, bool *out_again);
// Forgets what engine_plan chose, so that it can be called again.
void engine_unplan(PlannedRun *plan);
// How many of `n_threads` threads are worth their while for the bound plan; to be set as
// plan->n_threads before engine_plan. A matter of sizes alone, so that the same run always asks for
// the same program.
int engine_width(const PlannedRun *plan, int n_threads);
// Only looks: true when a program is ready for the plan, which then has it. Cheap enough for the
// loop thread.
bool engine_plan_ready(Engine *engine, PlannedRun *plan);
// Time that the plan's program took of late; -1: not known, or a matter of the inputs' values (a
// dynamic rest).
int64_t engine_predict_ns(const PlannedRun *plan);
// Numbers and characters that its results have to be written with, each row of nothing counted as
// one; INT64_MAX: not known, or some lie in a mapped file and may have to be read first.
int64_t engine_result_values(const PlannedRun *plan);
// On the calling thread. `frame` (the thread's memory for programs) may be NULL: eager. `profile`
// (made by run_profile_new for this graph) receives rows, run time, memory figures and the program.
Status engine_execute(PlannedRun *plan, RunContext *ctx, Frame *frame, RunProfile *profile,
                      RunResult *out_result);
// engine_plan for programs without a server: builds on the calling thread what is to be built, and
// goes on eagerly while others build.
Status engine_plan_here(Engine *engine, PlannedRun *plan);

// ---- programs ----
enum { ENGINE_MAX_PROGRAMS = 64 }; // of one graph
typedef struct ProgramInfo {
        Program *program; // counted
        uint64_t n_runs;
        int64_t run_ns; // of late; -1: not known
} ProgramInfo;
// Live programs of a version's graph, the most recently used first; at most ENGINE_MAX_PROGRAMS.
uint32_t engine_programs(Engine *engine, const GraphVersion *version, ProgramInfo out[ENGINE_MAX_PROGRAMS]);
// The id of the program that ran last for this version; "" if none has.
void engine_latest_program(Engine *engine, const GraphVersion *version, char out_id[65]);
void engine_note_program(Engine *engine, GraphVersion *version, const Program *program);
// Records a finished run: the ring and (when version is not NULL) its statistics.
void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile);
ProfileRing *engine_profiles(Engine *engine);

// Whether stored bytes that `graph` uses could not be read since it was loaded: STATUS_DAMAGED, and
// its versions are marked. To be asked after a run and after its results were read, before they
// leave. Cheap as long as nothing ever failed.
Status engine_check_pages(Engine *engine, const Graph *graph);
// The same for the graph that the plan's program was made from, which may have been read before.
Status engine_check_program(Engine *engine, const PlannedRun *plan);

typedef struct EngineStats {
        uint32_t n_graphs, n_versions;
        uint64_t runs, compiles;
        RegistryStats graphs, programs;
        ProfileUse profiles; // of runs and statistics
} EngineStats;
EngineStats engine_stats(Engine *engine);
