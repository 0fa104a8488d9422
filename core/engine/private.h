// SPDX-License-Identifier: Apache-2.0
// Shared by the engine's own files.
#pragma once
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include "core/base/map.h"
#include "core/compile/compile.h"
#include "core/engine/describe.h"
#include "core/engine/plan.h"
#include "core/engine/put.h"
#include "core/kernels/pack_cache.h"

enum { ENGINE_SEEN = 4096 };
typedef struct SeenTable {
        _Atomic uint64_t words[ENGINE_SEEN];
} SeenTable;

enum { ENGINE_BY_VALUE = 512 };
typedef struct ByValueTable {
        uint64_t words[ENGINE_BY_VALUE], masks[ENGINE_BY_VALUE];
} ByValueTable;

typedef struct EngineGraph {
        StoreHead head;
        uint32_t n_versions, capacity;
        GraphVersion **versions; // counted, ascending
} EngineGraph;

// ---- settings.c ----
// What its versions keep beside their place in the head. Under engine->mutex, or before others see
// the graph.
void engine_read_settings(Engine *engine, EngineGraph *graph);
// In `head`, for the version and those after it. It may be one that is about to be there.
Status engine_set_setting(const EngineGraph *graph, SettingKind kind, int64_t version, const char *text,
                          StoreHead *head);
// The same for this version alone: versions after it stay as they are.
Status engine_set_own_setting(const EngineGraph *graph, SettingKind kind, int64_t version, const char *text,
                              StoreHead *head);

typedef struct IdlePiece IdlePiece;

struct Engine {
        pthread_mutex_t writing; // serialises put and delete: held while the disk is written
        pthread_mutex_t mutex;   // guards `graphs`: held for moments only
        StringMap graphs;        // name -> EngineGraph *
        StringMap contents;      // key as hex -> how many versions have it; guarded by `writing`
        Store *store;            // NULL: memory only
        GraphLoader loader;
        const SampleReader *samples; // NULL: none
        Registry *decoded;           // graphs by content
        Registry *programs;          // CachedProgram by program key, in groups by graph content
        PackCache *packs;            // of constants that programs hold packed
        SeenTable seen, unplannable; // of program keys
        ByValueTable by_value;       // guarded by `mutex`
        StringMap tunes;             // TuneEntry by content, of stored graphs; guarded by `mutex`
        IdlePiece *idle;             // first in, first out; guarded by `mutex`
        uint32_t n_idle;
        _Atomic uint32_t n_warming; // versions whose declared warm-ups are waited for
        _Atomic bool was_warm;      // there were none, once
        bool no_warm_up;
        ProfileRing *profiles;
        struct KeptRing *kept;
        struct Sessions *sessions;
        StringMap passes; // SavedPass by name; guarded by `mutex`
        StatsPool *statistics;
        _Atomic uint64_t n_runs;
        _Atomic uint64_t n_compiles, n_searches;
        _Atomic uint64_t n_derived, n_derived_found;
        _Atomic uint64_t n_batches, n_batched_runs;
        // how often stored bytes turned out bad while they were in use (engine_set_content)
        _Atomic uint64_t n_damaged;
        void (*log)(void *context, const char *message);
        void *log_context;
        void (*built)(void *context, const char *program_id, int64_t took_ns);
        void *built_context;
        pthread_t scrubber;
        bool scrubbing;
        _Atomic bool stopping;
};

// Before `graph` is shared: two uploads of one architecture with different weights need different
// programs.
static inline void graph_set_content(Graph *graph, const RegistryKey *key)
{
        static_assert(sizeof(graph->content) == sizeof(key->bytes), "a content hash is 32 bytes");
        memcpy(graph->content, key->bytes, sizeof(key->bytes));
}

// ---- engine.c ----
void engine_say(Engine *engine, const char *format, ...) __attribute__((format(printf, 2, 3)));
Status engine_version_new(Engine *engine, const char *name, const StoreVersion *stored, GraphState state,
                          GraphVersion **out_version);
Status engine_graph_new(const char *name, EngineGraph **out_graph);
void engine_graph_free(EngineGraph *graph);
DEFINE_CLEANUP(EngineGraph, engine_graph_free)
GraphVersion *engine_version_of(const EngineGraph *graph, int64_t number); // borrowed; NULL: there is none
Status engine_not_found(const char *name);

// ---- saved.c ----
Status engine_load_passes(Engine *engine);
void engine_free_passes(Engine *engine);

// ---- change.c; while writing ----
// Counts one more version with this content.
Status engine_use_content(Engine *engine, const RegistryKey *key);

// ---- store.c ----
// Stores the parts of an upload (nothing without a store) and holds them;
// the storages among `pieces` have the stored bytes then. Fills in documents and holes. Release
// after the version was written, always.
Status engine_hold_parts(Engine *engine, const UploadPart *parts, StoreVersion *version);
void engine_release_parts(Engine *engine, const StoreVersion *version);
// Gives a fresh version those that `latest` has, unless it is damaged, and that were not sent.
void engine_keep_along(const GraphVersion *latest, GraphVersion *version);
// The bytes of one part of a version, without its holes' contents.
Status engine_part_bytes(Engine *engine, const GraphVersion *version, uint32_t index, Storage **out_bytes);
// Calls `read`, which reads the version's stored bytes. Those that are missing are damaged only
// while the version is listed: after a delete it is STATUS_NOT_FOUND, and where the same content
// was put again with other samples or labels, the version that is listed now is read instead.
// Changes are waited for, so that no caller may hold the engine's mutex.
typedef Status (*VersionRead)(Engine *engine, const GraphVersion *version, void *context);
Status engine_read_stored(Engine *engine, const GraphVersion *version, VersionRead read, void *context);
// Decodes a version from where it is kept; reads what makes its content, and nothing that comes
// along.
Status engine_read_graph(Engine *engine, const GraphVersion *version, Graph **out_graph);
// Notes the outcome of reading a version: ready, or damaged with this thread's failure as the
// reason.
void engine_mark(Engine *engine, GraphVersion *version, Status status);
// graph_set_content for versions, with the generation of the bytes.
void engine_set_content(Engine *engine, Graph *graph, const RegistryKey *key);
// Of graphs that are decoded from now on. Programs made of the bytes read before must not serve
// them, although the content has the same name.
uint64_t engine_generation(Engine *engine);
void engine_start_scrub(Engine *engine);
void engine_stop_scrub(Engine *engine);

// ---- programs ----
typedef struct Batches Batches; // batch_private.h
Batches *batches_free(Batches *batches);
// The registry's object: a program and its use. The program itself is immutable.
typedef struct CachedProgram {
        RefCount ref;
        Program *program;  // counted
        RunLabels *labels; // of its runs; counted
        _Atomic uint64_t n_runs;
        _Atomic int64_t run_ns;     // smoothed; -1: never ran
        int64_t result_values;      // engine_result_values
        _Atomic(Batches *) batches; // owned; NULL: nobody asked yet (batch.c)
        _Atomic uint32_t batch;     // so many runs are one with it; 0: it has run for one
} CachedProgram;
Status programs_open(Engine *engine);
void programs_close(Engine *engine);
Status cached_program_new(Program *take_program, CachedProgram **out_cached);
CachedProgram *cached_program_unref(CachedProgram *cached);
void cached_program_used(CachedProgram *cached, int64_t run_ns);

// Remembers which program ran last.
void engine_note_program(Engine *engine, GraphVersion *version, const Program *program);

// ---- signatures seen before ----
// Small tables of hashes in which a collision overwrites: a lost entry costs one more eager run, or
// a build that finds the program ready.
bool seen_before(SeenTable *table, const RegistryKey *key);
bool seen_is_marked(SeenTable *table, const RegistryKey *key);
void seen_forget(SeenTable *table, const RegistryKey *key);
// Which number inputs a program depends on (Program.by_value), by the key without any values.
// False: unknown, and *out_mask is BY_VALUE_ALL.
bool by_value_of(Engine *engine, const RegistryKey *base, uint64_t *out_mask);
// Adds to what is known, and returns that: programs of other values may depend on other numbers.
uint64_t by_value_learn(Engine *engine, const RegistryKey *base, uint64_t mask);

// ---- work (work.c) ----
typedef struct EngineWorkType {
        Ticket *(*run)(EngineWork *take_work); // engine_work_do
        void (*free)(EngineWork *work);
} EngineWorkType;
// The first member of what is to be done.
struct EngineWork {
        RefCount ref; // its owner's, and one of whoever holds its stop flag
        const EngineWorkType *type;
        Engine *engine;
        Registry *registry;   // of `entry`
        RegistryEntry *entry; // that it fills; NULL: nobody waits for it
        _Atomic int *stop;    // NULL: it cannot be stopped
        bool insists;         // others do not stop it
};
void work_init(EngineWork *work, const EngineWorkType *type, Engine *engine);
typedef struct WorkPlace {
        Registry *registry;
        RegistryKey key, group;
        bool has_group;
} WorkPlace;
// What is at the place (*out_object, counted); else parks the ticket (NULL: asks without waiting)
// and, when nobody does it yet, hands out the work. `out_wait` is zeroed by the caller. Once the
// ticket is parked, only *out_wait is written.
Status work_begin(EngineWork *take_work, const WorkPlace *place, Ticket *ticket, void **out_object,
                  Wait *out_wait);
// registry_publish for its entry.
Ticket *work_publish(EngineWork *work, void *take_object);

// ---- builds (build.c) ----
void engine_tell_built(Engine *engine, const Program *program, int64_t start_ns);
// Copies what it needs of the plan.
Status program_build_new(Engine *engine, const PlannedRun *plan, const RegistryKey *key,
                         EngineWork **out_build);
// One that decides the graph's tune record. Nobody waits for it.
Status program_build_learning(Engine *engine, const PlannedRun *plan, EngineWork **out_build);
const Graph *program_build_graph(const EngineWork *build);
// For a warm-up: when it is stopped, it is tried again later.
void program_build_warms(EngineWork *build, GraphVersion *version, uint32_t n_stops);
// The plan's program, made on this thread unless it is ready. `keeps`: for the next to ask.
// `engine` NULL: nothing is looked up or kept. Failures are those of compile_graph. Leaves the plan
// as it was.
Status engine_compile(Engine *engine, PlannedRun *plan, bool keeps, const RunContext *poll,
                      Program **out_program);
// Small enough to be built at once, by whoever asked.
bool program_build_is_small(const Graph *graph);
CompileOptions engine_compile_options(const PlannedRun *plan);
Status engine_program_key(const PlannedRun *plan, uint64_t by_value, RegistryKey *out_key);
// A build nobody waits for, begun, when the plan's program is neither there nor being built; else
// NULL.
Status engine_plan_background(Engine *engine, PlannedRun *plan, EngineWork **out_build);

// ---- idle work (idle.c) ----
// Immutable once shared.
struct SharedTune {
        RefCount ref;
        TuneRecord *record;
};
typedef struct SharedTune SharedTune;
SharedTune *shared_tune_unref(SharedTune *tune); // NULL-safe
DEFINE_CLEANUP(SharedTune, shared_tune_unref)
// The record that programs of this graph are made with, counted; NULL: none.
SharedTune *engine_tune_of(Engine *engine, const Graph *graph);
void engine_forget_tune(Engine *engine, const RegistryKey *content);
// Reads the tune record of a version's content, before its graph is shared: its programs are made
// with it from the first one on.
void engine_recall_tune(Engine *engine, const GraphVersion *version);
// The graph of this version has just come in: warm it up when there is idle time.
void engine_prepare(Engine *engine, GraphVersion *version);
// After a program was built without a record: makes one in idle time, if the graph still lacks it.
void engine_learn_later(Engine *engine, const PlannedRun *plan);
// After the n-th interruption: tries again later.
void engine_learn_again(Engine *engine, EngineWork *take_build, uint32_t n_stops);
void engine_warm_up_again(Engine *engine, GraphVersion *version, uint32_t n_stops);
// Stores what was learned, first on disk. On failure the graph goes on without a record.
Status engine_learnt(Engine *engine, const Graph *graph, const TuneRecord *record, SharedTune **out_tune);
void engine_not_learnt(Engine *engine, const Graph *graph);
void engine_close_idle(Engine *engine);
bool engine_wants_tuning(Engine *engine, const Graph *graph);
// For inputs of these shapes (edit_read_shapes), without bytes; those that are not named have to be
// closed in the signature. The caller ends it with planned_run_deinit.
Status engine_shapes_plan(const Graph *graph, const char *shapes, int n_threads, PlannedRun *out_plan);
// Under the mutex. False: no memory.
bool engine_push_declared(Engine *engine, GraphVersion *version, uint32_t n_stops);

// ---- declared warm-ups (declared.c) ----
// Under the mutex, after settings or the default version changed: starts what is new; `again`: all.
void engine_declare(Engine *engine, EngineGraph *graph, bool again);
void engine_declare_again(Engine *engine, const char *name);
// `late`: it is overdue.
EngineWork *declared_work_new(Engine *engine, GraphVersion *version, uint32_t n_stops, bool late,
                              int n_threads);
