// SPDX-License-Identifier: Apache-2.0
// Runs step by step: the decoded graph, inputs bound to it, what they are run with, the run itself.
// task.h is all of it for one request.
#pragma once
#include "core/engine/engine.h"
#include "core/engine/work.h"
#include "core/eval/bind.h"

typedef struct Frame Frame; // frame.h

// ---- decoded graphs ----
// *out_graph counted; or, when *out_wait says so, the ticket is parked and comes back with the
// Graph. Once it is parked nothing but *out_wait is written.
Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Graph **out_graph,
                      Wait *out_wait);
// Whether the version's graph is decoded, so that a run need not read it first. Does not count as a
// use.
bool engine_is_resident(Engine *engine, const GraphVersion *version);
// The graph, decoded here if it is not decoded yet: waits for nobody else who decodes it.
Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph);
// Graphs sent along with POST /v1/run, cached by content: NULL when not cached.
Graph *engine_cached_graph(Engine *engine, const RegistryKey *key);
Status engine_cache_graph(Engine *engine, const RegistryKey *key, Graph *graph);

// ---- runs ----
// AUTO: the first run of a signature is eager, the second hit starts a build, runs are eager until
// it is done. COMPILED: waits for the program.
typedef enum RunMode { RUN_MODE_AUTO, RUN_MODE_COMPILED, RUN_MODE_EAGER } RunMode;
typedef struct RunRequest {
        ValueSpan inputs;         // flat user inputs in signature order (bind.h)
        const Node *const *fetch; // NULL: the graph's outputs
        uint32_t n_fetch;
        RunMode mode;
        Precision precision; // of programs; an eager run is of float32
        // Not 0: precision by choice, within this tolerance (core/ops/choice.h), by samples of
        // the version, which is borrowed.
        int bucket;
        GraphVersion *version;
        const RunContext *poll; // while it is bound; may be NULL
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
        bool keeps_state;              // the run has a RunState (eval/state.h)
        struct SharedTune *tune;       // counted; NULL: none
        struct Choice *choice;         // counted; NULL: none, or not known yet
        struct CachedProgram *program; // counted; NULL: eager
        uint64_t by_value;             // numbers whose values are in the key it was looked up by
} PlannedRun;
void planned_run_deinit(PlannedRun *plan); // leaves it zeroed

// Inputs against the signature: bind.h says what is checked. A failure leaves the plan zeroed.
Status engine_bind(const Graph *graph, const RunRequest *request, PlannedRun *plan);
// About how long that takes, and reading the inputs apart from their bytes. -1: not known before
// the graph's first run.
int64_t engine_bind_ns(const Graph *graph);

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
// Recent time of the plan's program; -1: unknown, or dependent on the inputs' values (an eager
// tail).
int64_t engine_predict_ns(const PlannedRun *plan);
// How many numbers and characters the results take, an empty row counted as one; INT64_MAX:
// unknown, or some lie in a mapped file and may have to be read first.
int64_t engine_result_values(const PlannedRun *plan);
// On the calling thread. `frame` (the thread's memory for programs) may be NULL: eager. `profile`
// (made by run_profile_new for this graph) receives rows, run time, memory figures and the program.
Status engine_execute(PlannedRun *plan, RunContext *ctx, Frame *frame, RunProfile *profile,
                      RunResult *out_result);
// engine_plan for programs without a server: builds on the calling thread, and runs eagerly while
// others build.
Status engine_plan_here(Engine *engine, PlannedRun *plan);

// Whether stored bytes that `graph` uses could not be read since it was loaded: STATUS_DAMAGED, and
// its versions are marked. Ask after a run and after its results were read, before they leave.
// Cheap as long as no page ever failed.
Status engine_check_pages(Engine *engine, const Graph *graph);
// The same for the decoded graph of a version, whose name the failure says.
Status engine_check_version(Engine *engine, GraphVersion *version);
// The same for the graph that the plan's program was made from, which may be an older one.
Status engine_check_program(Engine *engine, const PlannedRun *plan);
