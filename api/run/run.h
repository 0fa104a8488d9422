// SPDX-License-Identifier: Apache-2.0
// A run request in steps, so that the server's step machine can move it between threads: options →
// (graph) → decode → bind → (program) → run → encode. POST /v1/run brings its graph in the body:
// run_inline_graph gives it first.
#pragma once
#include "api/call.h"

typedef enum RunEncoding { RUN_ENCODING_LIST, RUN_ENCODING_FLAT, RUN_ENCODING_B64 } RunEncoding;
typedef enum RunAs { RUN_AS_JSON, RUN_AS_NPY, RUN_AS_NPZ, RUN_AS_SAFETENSORS, RUN_AS_COUNT } RunAs;

enum { RUN_HINT_BYTES = 96 }; // longest list that a message repeats

typedef struct RunCall {
        // options, from the query and then the body (given twice: STATUS_VALUE)
        const ApiCall *call; // whose query was read; NULL: none
        bool profile_in_reply;
        RunEncoding encoding;
        bool bare;
        RunAs as;
        int64_t deadline_ms; // limits.run_deadline_ms or less
        uint64_t seed;
        bool seeded;
        RunMode mode;
        // what runs
        Graph *graph;          // counted
        GraphVersion *version; // counted; NULL for POST /v1/run
        Budget budget;         // of tensors: inputs and everything the run makes
        RunContext ctx;
        Engine *engine; // for programs; NULL: eager
        Frame *frame;   // the worker's; NULL: eager
        Value *inputs;  // flat user inputs (n_inputs), owned
        uint32_t n_inputs;
        const Input **user; // the signature's entries for them
        StringMap names;    // what they may be called; filled at the first look (run_find_name)
        const Node **fetch; // NULL: the graph's outputs
        uint32_t n_fetch, fetch_capacity;
        PlannedRun plan;
        RunResult result;
        RunProfile *profile;
        // for the hints of API "Errors"
        char inputs_text[RUN_HINT_BYTES + 1]; // the JSON of "inputs" when it was a list and short, else ""
        bool inputs_as_list;
        const char *guessed_int; // an input whose dtype was guessed as int64 (lives in the graph); NULL: none
        char path[160];          // where in a structure the reader is: "batch.b", cut when too long
        size_t path_n;
} RunCall;

void run_call_init(RunCall *run);
void run_call_deinit(RunCall *run);
// Reads query parameters, Accept and preconditions (run->version, when set).
Status run_options(const ApiCall *call, RunCall *run);
// POST /v1/run: finds "graph" in the body, decodes it or takes it from the cache by content; sets
// run->graph.
Status run_inline_graph(const ApiContext *context, const ApiCall *call, RunCall *run);
// With run->graph set: decodes the body (JSON, .npy, .npz, safetensors or multipart, told by its
// content) into run->inputs, fetch and options. Charges run->budget; tensors may lie in the body
// and hold a reference to it.
Status run_decode(const ApiCall *call, RunCall *run);
// The inputs against the signature: makes run->plan and run->profile (id, names and times are the
// caller's).
Status run_bind(RunCall *run);
// Runs on the calling thread; fills run->result and run->profile. Binds and plans
// (engine_plan_here), too, when that has not been done.
Status run_execute(RunCall *run);
// The reply; profile members must be set by then except encode and total, which this sets from
// clock_ns() and `received_ns`.
Status run_encode(RunCall *run, int64_t received_ns, ApiReply *reply);
