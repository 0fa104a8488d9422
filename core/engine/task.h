// SPDX-License-Identifier: Apache-2.0
// A run, apart from the wire that brought it and the thread that has it:
//
//     decoded ──▶ RunTask ──bind──▶ plan ──execute──▶ result, profile ──▶ encoded
//
// Whoever decodes sets the graph, opens the inputs and fills in those that were sent, what is to be
// fetched, mode, deadline and seed. One thread at a time has it; any thread may set ctx.cancelled.
#pragma once
#include "core/engine/plan.h"
#include "core/kernels/random/generator.h"

typedef struct RunTask {
        Graph *graph; // counted
        // the base, when `graph` was derived from it: names that the request uses are its nodes';
        // counted, else NULL
        Graph *authored;
        GraphVersion *version; // counted; NULL: the graph came with the request
        int64_t received_ns;   // clock_ns() when the request came
        int64_t deadline_ms;   // from then on; limits.run_deadline_ms or less
        RunMode mode;
        Precision precision;
        int bucket;         // of the tolerance, instead of `precision`; 0: none
        Value *inputs;      // flat user inputs (n_inputs), owned; VALUE_ABSENT: not given
        const Input **user; // the signature's entries for them
        uint32_t n_inputs;
        uint32_t n_hidden;  // of them, the last ones: values of rules
        const Node **asked; // derived: the authored nodes that `fetch` stands for; else NULL
        const Node **fetch; // n_fetch 0: the graph's outputs
        uint32_t n_fetch, fetch_capacity;
        // behind the first n_fetch of `fetch` and of the result's values: nodes that observe
        // others, in the order of the graph's rules
        uint32_t n_watched;
        // behind these, nodes whose values outlive the run; the authored ones. NULL: none
        const Node **kept;
        uint32_t n_kept;
        // behind these, what the run leaves in written state and inputs, and whose values they are
        const char **mutated; // borrowed: a path of the state, or an input's name
        uint32_t n_mutated;
        Budget budget;    // of tensors (inputs and what the run makes), and of long texts
        RunContext ctx;   // cancel, deadline
        RunState state;   // of a run in a session, else empty
        bool keeps_state; // it is such a run
        PlannedRun plan;
        RunResult result;
        RunProfile *profile;
        bool ran; // in a batch: the result is there
        // Seeded by whoever decodes; after the run, `started` if it drew. The last member: its
        // words are made by the first draw.
        Generator generator;
} RunTask;

void run_task_init(RunTask *task);
void run_task_deinit(RunTask *task);
// Lets go of the graph and of all values, but for the version: what the reply does not need.
void run_task_empty(RunTask *task);

// A run may write to its inputs: a copy-on-write view for one run of a tensor that others use, too,
// charged to `budget` if it is written.
Status tensor_new_shell(const Tensor *tensor, Budget *budget, Tensor **out_tensor);
// With the graph set: lists its inputs, none of them given.
Status run_task_open(RunTask *task);
Status run_task_fetch(RunTask *task, const Node *node);
// With everything decoded against the task's graph: puts a graph that was derived from it in its
// place (taken, also on failure). `hidden` are the values of its hidden inputs, borrowed. Nodes to
// be fetched are found again: what stands for a node that a rule matched, the node of the same
// name, or the one that stands for it. STATUS_VALUE: nothing does.
Status run_task_derive(RunTask *task, Graph *take_graph, ValueSpan hidden);
// The graph as the request knows it.
static inline const Graph *run_task_authored(const RunTask *task)
{
        return task->authored != NULL ? task->authored : task->graph;
}

// Before binding: all nodes that compute something are kept, the first `n_nodes` of the authored
// graph. Weights are not.
Status run_task_keep(RunTask *task, uint32_t n_nodes);
// Before binding: fetches what the run leaves in the state and inputs of an export that it writes.
// STATUS_UNSUPPORTED: the graph writes state, but is no export, which says where.
Status run_task_mutations(RunTask *task);
// The same for state alone that an export gives back as outputs. Before binding, of runs in a
// session: they leave all other state that they write in task->state.
Status run_task_keep_state(RunTask *task);
// In the session: the run starts from what is there, and goes on with its random numbers unless it
// has a seed of its own.
Status run_task_enter(RunTask *task, const Session *session);
// After the run succeeded: all that it wrote stays in the session. Or nothing does; failures are
// those of session_commit, and of a run that was cancelled or came to its deadline meanwhile.
Status run_task_commit(RunTask *task, Session *session);
// After the run: n_mutated values, borrowed.
const Value *run_task_mutated(const RunTask *task);
// STATUS_TOO_LARGE: what was kept is over limits.max_kept_bytes.
Status run_task_check_kept(const RunTask *task);

// Inputs against the signature: makes plan and profile (its id, names and times are the caller's).
// Only here it shows which inputs are missing.
Status run_task_bind(RunTask *task);
// Runs what was bound, with the plan's program or without one, on the calling thread, unless it ran
// in a batch (batch.h). `frame`: the thread's memory for programs; NULL: eager.
Status run_task_execute(RunTask *task, Frame *frame);
