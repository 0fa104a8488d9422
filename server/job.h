// SPDX-License-Identifier: Apache-2.0
// A request is a machine of named steps, driven by one loop on whichever worker has it:
//   a run:         ROUTE (loop thread) → ENVELOPE → GRAPH → INPUTS → DERIVE → BIND → PROGRAM →
//                  (SESSION) → RUN → ENCODE → SEND (loop thread) → DONE
//   other routes:  ROUTE → ENVELOPE → GRAPH → ANSWER → SEND → DONE
// A job that waits, for a graph being loaded or a program being built, holds no thread: its one
// ticket (core/base/ticket.h) is parked, and whoever publishes the object queues the job again.
// Loads and builds are tasks of their own. Before RUN, waiting jobs for the same graph may be taken
// along, to be run as one (job_batch.c).
//
// Ownership. A job is ON THE LOOP (owned by the loop thread) before job_submit and after it came
// back. In between it is ON A WORKER: in the queue, parked, or running. It comes back through
// `finished`, exactly once, whatever happens. While a job is on a worker, the loop thread may call
//   job_cancel   it stops as soon as it can and comes back with a failure as its reply.
//   job_detach   nobody waits for it any more (the client left, or got its 504): it stops as soon
//                as it can and frees itself, on its worker unless it had just come back. It counts
//                as running until it has really stopped.
// A job that is queued or parked stops at once and runs nothing. One that runs stops at its next
// poll.
#pragma once
#include "api/run/reply_cache.h"
#include "api/run/run.h"
#include "server/workers.h"

typedef enum JobStep {
        STEP_ENVELOPE,
        STEP_GRAPH,
        STEP_INPUTS,
        STEP_DERIVE,
        STEP_BIND,
        STEP_PROGRAM,
        STEP_SESSION,
        STEP_RUN,
        STEP_ENCODE,
        STEP_ANSWER,
        STEP_SEND,
        STEP_COUNT
} JobStep;

typedef struct Job Job;
struct Job {
        Task task; // in the workers' queue
        Job *next; // in the owner's list of finished jobs
        ApiCall call;
        ApiContext context;
        ServerFacts facts; // snapshot of the loop thread's counters
        bool is_run;
        JobStep step;
        GraphVersion *version;
        RegistryKey reply_key; // of its kept reply, with has_reply_key
        bool has_reply_key;
        _Atomic bool found_graph; // the graph exists: its name may appear in the metrics
        Graph *graph;
        Ticket ticket; // for whatever the step waits for
        int64_t received_ns;
        int64_t began_ns; // the step it is in
        bool has_timing;  // the reply has its header
        int64_t step_ns[STEP_COUNT];
        int64_t queue_ns;
        // When a run must be answered (clock_ns()); 0: never; DEADLINE_ANSWERED: it was, by the
        // loop's thread. Set by that thread before it submits; moved forward by the worker when the
        // body asks for less.
        _Atomic int64_t deadline_ns;
        bool detached;         // loop thread only
        _Atomic int last_word; // which came first: job_detach, or the worker that finished it
        Workers *workers;
        void *owner;    // the context of `finished`; outlives all jobs
        void *exchange; // the loop thread's side; never touched on a worker
        // gives the job back to the loop; any thread. The receiver calls job_reap first
        void (*finished)(Job *job);
        // the last two members: what job_new need not zero is at the ends of both
        ApiReply reply;
        RunCall run;
};

// A run in a session is either answered by the clock or changes its session: whichever thread comes
// first. False: the other one did.
enum { DEADLINE_ANSWERED = -1 };
bool job_answer_late(Job *job, int64_t deadline_ns); // loop thread; `deadline_ns` as it was read
bool job_never_late(Job *job);                       // worker: from here on the clock does not answer

// `workers` must outlive the job.
Status job_new(Workers *workers, Job **out_job);
Job *job_free(Job *job); // on the loop only
// For logs, metrics and events: the graph that was asked for; a session's once it is found, ""
// before.
const char *job_graph_name(const Job *job);
// Another job with the same request, times and exchange, at STEP_SEND and without a reply: it
// answers in place of a job that is on a worker and about to be detached.
Status job_stand_in(const Job *job, Job **out_job);
// Puts the job into the workers' queue. STATUS_BUSY: too many requests or bytes wait; the job is
// still on the loop.
Status job_submit(Job *job);
// Runs the job on the loop thread if that takes microseconds: graph and program ready, the run
// predicted to be short whatever its inputs' values, its reply small. For small bodies, before
// job_submit. Loop thread. True: it is at STEP_SEND with its reply (`finished` is not called).
// False: nothing is lost, submit it.
bool job_try_here(Job *job, Frame *frame);
// See above. Loop thread, while the job is on a worker.
void job_cancel(Job *job);
void job_detach(Job *job);
// Loop thread, after the job came back: true when it had been detached; then it is freed.
bool job_reap(Job *job);
// Lets a worker do the engine's idle work, if there is any. Any thread.
void jobs_use_idle_time(Workers *workers, Engine *engine);
