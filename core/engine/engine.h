// SPDX-License-Identifier: Apache-2.0
// Engine: the façade of core. Any thread; nothing here waits for another request: what is not ready
// yet parks a ticket (work.h).
//     engine.h    the engine; graphs by name and version, stored or in memory
//     put.h       uploads
//     plan.h      decoded graphs, and runs step by step
//     task.h      a run as a whole
//     derive.h    graphs that rules make of others; put.h stores what variants and transforms make
//     transform.h, saved.h   steps on a graph, and lists of steps by name
//     kept.h      values that runs keep for later ones
//     declared.h  warm-ups that graphs declare
//     compare.h   two results against each other
//     work.h      what has to be made so that others can go on
//     shrink.h    memory that can be given up
//     describe.h  what may be shown of programs and runs
//     frame.h     what a thread brings that executes tasks
// The server, its commands and libfxserve see core through these headers and core/base alone
// (tests/layering/house.py).
#pragma once
#include "core/session/session.h"
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/profile/profile.h"
#include "core/registry/registry.h"
#include "core/store/store.h"

typedef struct Engine Engine;

// One body of an upload: the whole request body, or one part of multipart. `bytes` is counted and
// may outlive the call (weights may point into it).
typedef struct UploadPart {
        const char *name; // "" (the graph, alone), or one of store_role_names
        Storage *bytes;
        HashHex digest; // SHA-256 of the bytes; "": not known yet
        // borrowed: the weights among the bytes, for the loader (core/tensor/pieces.h); NULL: none
        struct Pieces *pieces;
} UploadPart;

// Decodes parts into a finished, resolved graph: api implements it, so that stored graphs can be
// decoded again after a restart.
typedef struct GraphLoader {
        Status (*load)(void *context, const UploadPart *parts, uint32_t n_parts, const char *model,
                       Graph **out_graph);
        void *context;
        // The head of a weights file that `load` reads, without the tensors' bytes, and where those
        // of each begin in the file. Tensors are dense.
        Status (*weights_head)(const char *const *names, Tensor *const *tensors, uint32_t n, Text *out_head,
                               size_t *out_begins);
} GraphLoader;

// Reads the samples that came with a version: api implements it, which knows their names.
typedef struct SampleReader {
        Status (*count)(Storage *bytes, int64_t *out_n);
        // The flat user inputs of one sample; the array and its values are the caller's.
        Status (*inputs)(const Graph *graph, Storage *bytes, int64_t at, Value **out_inputs, uint32_t *out_n);
} SampleReader;

typedef struct EngineOptions {
        const char *data_folder; // NULL: memory only
        GraphLoader loader;
        const SampleReader *samples; // NULL: none are read, and no precision is chosen by them
        void (*log)(void *context, const char *message); // one line, no path; may be NULL
        void *log_context;
        // A program was built, on whichever thread; may be NULL.
        void (*built)(void *context, const char *program_id, int64_t took_ns);
        void *built_context;
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
        Graph *kept;                     // memory-only engines: a derived graph, counted; else NULL
        ProfileStats *stats;
        _Atomic int state;         // GraphState
        _Atomic bool unloaded;     // engine_set_loaded
        _Atomic int precision;     // Precision of its runs that name none: SETTING_PRECISION
        _Atomic int bucket;        // of their tolerance, SETTING_TOLERANCE; 0: `precision` holds
        _Atomic uint64_t batching; // SETTING_BATCHING, packed (batch.h)
        // of the last reading of its settings, unlike that of any other version or time: kept
        // replies are those of before
        _Atomic uint64_t settings_read;
        _Atomic int warming;     // WarmUpState (declared.h)
        uint64_t n_declared;     // how often; guarded by the engine
        char *declared;          // SETTING_WARM_UP as it was read last; guarded by the engine
        _Atomic bool unbatched;  // its last planned run cannot be one of a batch
        char *reason;            // why damaged; written once before state (graph_version_reason)
        char latest_program[65]; // id of the last one that ran; guarded by the engine
} GraphVersion;

// Before the first engine and before threads: which instruction set, operators, names. Further
// calls do nothing. STATUS_USAGE: FXSERVE_ISA names no set that this machine has.
Status engine_init(void);
Status engine_open(const EngineOptions *options, Engine **out_engine);
Engine *engine_close(Engine *engine);
DEFINE_CLEANUP(Engine, engine_close)
bool engine_has_folder(const Engine *engine);

// version 0: the default one. STATUS_NOT_FOUND names what exists.
Status engine_find(Engine *engine, const char *name, int64_t version, GraphVersion **out_version);
Status engine_find_alias(Engine *engine, const char *name, const char *alias, GraphVersion **out_version);
// By "m", "m@2" or "m@prod". STATUS_VALUE: what stands behind the @ is neither.
Status engine_find_named(Engine *engine, const char *text, GraphVersion **out_version);
const char *graph_version_reason(const GraphVersion *version); // of a damaged one
GraphVersion *graph_version_ref(GraphVersion *version);
GraphVersion *graph_version_unref(GraphVersion *version);
DEFINE_CLEANUP(GraphVersion, graph_version_unref)
// Between begin and end no other thread puts, deletes or sets defaults, so that a checked condition
// still holds when the change is made. The calls in between are this thread's; keep them short.
void engine_begin_change(Engine *engine);
void engine_end_change(Engine *engine);
// version 0: the graph with all its versions. STATUS_CONFLICT: an alias names the version.
Status engine_delete(Engine *engine, const char *name, int64_t version);
// Marks all versions of a name as loaded or not, until the process ends. Unloading lets go of their
// decoded graphs and programs; running requests keep theirs.
Status engine_set_loaded(Engine *engine, const char *name, bool loaded);
// All changes or none. Durable when it returns OK.
typedef struct AliasChange {
        char name[STORE_NAME_MAX + 1];
        int64_t version; // 0: the alias goes
} AliasChange;
typedef struct HeadChange {
        int64_t default_version; // 0: stays
        uint32_t n_aliases;
        const AliasChange *aliases;
        int64_t set_version; // which version `settings` are for, and those after it; 0: none
        // one line each of at most STORE_SETTING_MAX bytes; "": none any more; NULL: stays
        const char *settings[SETTING_KINDS];
} HeadChange;
Status engine_change(Engine *engine, const char *name, const HeadChange *change);
// Adds a setting of a version, as engine_change set it; nothing where none is.
Status engine_setting(Engine *engine, const GraphVersion *version, SettingKind kind, Text *out);
// Default versions of graphs whose name sorts after `after` (NULL: all), by name; at most `limit`,
// counted. *out_next: there are more.
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

// Values that runs kept (kept.h).
typedef struct KeptUse {
        uint32_t n_runs;
        size_t bytes;
        uint64_t evictions; // runs that left for want of room
} KeptUse;
typedef struct EngineStats {
        uint32_t n_graphs, n_versions;
        uint64_t runs, compiles, searches;
        uint64_t derived, derived_found; // graphs that rules made; runs that found theirs
        uint64_t batches, batched_runs;  // several runs at once; the runs in them
        KeptUse kept;
        SessionUse sessions;
        RegistryStats graphs, programs;
        ProfileUse profiles; // of runs and statistics
} EngineStats;
EngineStats engine_stats(Engine *engine);
// Of its graphs (core/session/session.h).
Sessions *engine_sessions(Engine *engine);
