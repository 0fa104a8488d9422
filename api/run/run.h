// SPDX-License-Identifier: Apache-2.0
// A run request on the wire: a RunTask, and what only the wire knows of it. In steps, so that the
// server's step machine can move it between threads:
//     (graph) → decode → bind → (program) → execute → encode
#pragma once
#include "api/call.h"
#include "api/readers/rules.h"
#include "core/engine/task.h"

typedef struct Codec Codec; // codec.h
typedef enum RunEncoding { RUN_ENCODING_LIST, RUN_ENCODING_FLAT, RUN_ENCODING_B64 } RunEncoding;
// What the body says about its inputs.
typedef enum RunSent { RUN_SENT_INPUTS, RUN_SENT_NO_INPUTS, RUN_SENT_NO_BODY } RunSent;

// What a prediction holds: the value of the only input, "instances" or "inputs".
typedef enum PredictForm { PREDICT_BARE, PREDICT_ROWS, PREDICT_COLUMNS } PredictForm;

enum { RUN_HINT_BYTES = 96 }; // longest list that a message repeats

typedef struct RunCall {
        const ApiCall *call;  // borrowed; its body is read by run_decode only
        const Codec *replies; // the reply's; never NULL
        // how it replies: options from the query and then the body (given twice: STATUS_VALUE)
        bool profile_in_reply;
        bool has_precision, has_tolerance; // the request names one
        RunEncoding encoding;
        bool bare;
        int64_t priority; // 1 to BATCH_PRIORITIES; 0: as the graph's runs are
        int64_t top;      // of each output's rows the so many greatest values; 0: all of its data
        int64_t encode_began_ns;
        Recipe recipe;         // of the graph that the body asks for; without text: its base
        Recipe given;          // values of "initial_env", before they are part of the recipe
        const Node *until;     // of the authored graph; NULL: the run goes to its end
        bool keep;             // values outlive the run
        bool has_initial_env;  // of the request's values some may be those that another run kept
        bool mutations;        // the reply has what the run wrote to state and inputs
        bool found_called;     // `called` is filled in
        GraphVersion **called; // by the recipe's names; counted
        Graph **called_graphs; // decoded; counted, NULL: not yet
        Session *session;      // that the run is in, counted; NULL: none
        bool entered;          // nobody else is in it
        bool opened, ends;     // the run begins a sequence, or is the last of one
        bool committed;        // what the run wrote is in the session
        StringMap names;       // what the task's inputs may be called; filled at the first look
        StringMap keywords;    // names in dicts of "**kwargs"
        // for the hints of messages
        RunSent sent;
        char inputs_text[RUN_HINT_BYTES + 1]; // the JSON of "inputs" when it was a list and short, else ""
        bool inputs_as_list;
        const char *guessed_int; // an input whose dtype was guessed as int64 (lives in the graph); NULL: none
        char path[160];          // where in a structure the reader is: "batch.b", cut when too long
        size_t path_n;
        PredictForm predict; // of the body, and so of the reply (predict.c)
        struct OipRun *oip;  // of a request of the Open Inference Protocol (oip.h); else NULL
        RunTask task;        // the last member: run_task_init zeroes it
} RunCall;

void run_call_init(RunCall *run);
void run_call_deinit(RunCall *run);
// POST /v1/run: decodes the graph in the body, or finds it in the cache by content.
Status run_take_graph(const ApiContext *context, const ApiCall *call, RunCall *run);
// Whether decoding the body takes time that its size bounds.
bool run_is_bounded(const ApiCall *call);
// With the task's graph set (and its version, if it has one, for preconditions): reads query,
// headers and body.
Status run_decode(const ApiCall *call, RunCall *run);
// Whether another graph is to be derived from the task's. Then run_derive_known finds one that is
// there already (*out_known, and the task has it). Else run_next_called names the graphs that have
// to be decoded (NULL: all are), run_take_called takes them, and run_derive makes the graph.
bool run_has_recipe(const RunCall *run);
Status run_derive_known(const ApiContext *context, RunCall *run, bool *out_known);
GraphVersion *run_next_called(const RunCall *run); // borrowed
void run_take_called(RunCall *run, Graph *take_graph);
Status run_derive(const ApiContext *context, RunCall *run);
// engine_check_pages for the task's graph and all that it was derived from.
Status run_check_pages(const ApiContext *context, const RunCall *run);
// run_task_bind and run_task_execute; failures add a hint at what was probably meant.
Status run_bind(RunCall *run);
// "session": the run is in this one, of the task's version.
Status run_take_session(RunCall *run, const char *id);
// The session that the caller began under this id (whose first character tells kinds of ids apart),
// of the task's version. STATUS_VALUE: none. `starts`: a new one. `ends`: this run is its last.
Status run_take_sequence(RunCall *run, const char *id, bool starts, bool ends);
// Ends a sequence that ended or did not begin; called with run_leave and run_call_deinit.
void run_end_sequence(RunCall *run);
// Waits for the session, if there is one: *out_entered, or the ticket is parked (session_enter).
Status run_enter(RunCall *run, Ticket *ticket, bool *out_entered);
// Of a run that succeeded, after its reply was made.
Status run_commit(RunCall *run);
// The tickets to be woken.
Ticket *run_leave(RunCall *run);
Status run_execute(RunCall *run, Frame *frame);
// After a run with "keep", when the profile has its id.
Status run_keep(const ApiContext *context, const RunCall *run);
// The reply; profile members must be set by then except encode and total, which this sets.
Status run_encode(RunCall *run, ApiReply *reply);
