// SPDX-License-Identifier: Apache-2.0
// A request is a machine of named steps, driven by one loop on whichever worker has it:
//   a run:         ROUTE (loop thread) → ENVELOPE → GRAPH → INPUTS → BIND → PROGRAM → RUN →
//                  ENCODE → SEND (loop thread) → DONE
//   other routes:  ROUTE → ENVELOPE → GRAPH → ANSWER → SEND → DONE
// A job that waits, for a graph being loaded or a program being built, holds no thread: its one
// ticket (core/base/ticket.h) is parked, and whoever publishes queues it again. What is to be built
// is a task of its own.
//
// Who has it. HOME: the loop thread's, before job_submit and after it came back. AWAY: in the
// queue, parked, or on a worker; it comes back through `finished`, exactly once, whatever happens.
// What the loop thread may do with a job that is away:
//   job_cancel   it stops as soon as it can and comes back with a failure as its reply.
//   job_detach   nobody waits for it any more (the client is gone, or got its 504): it stops as
//                soon as it can and frees itself, on its worker unless it had just come back. It
//                counts as running until it has really stopped.
// A job that waits, in the queue or parked, stops at once and runs nothing; one on a worker stops
// at its next poll.
#pragma once
#include "api/run/run.h"
#include "server/workers.h"

typedef enum JobStep {
        STEP_ENVELOPE,
        STEP_GRAPH,
        STEP_INPUTS,
        STEP_BIND,
        STEP_PROGRAM,
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
        ApiReply reply;
        ApiContext context;
        ServerFacts facts; // snapshot of the loop thread's counters
        RunCall run;
        bool is_run;
        JobStep step;
        GraphVersion *version;
        _Atomic bool found_graph; // it has been: its name may be shown among the metrics
        Graph *graph;
        Ticket ticket; // for whatever the step waits for
        int64_t received_ns;
        int64_t began_ns; // the step it is in
        int64_t step_ns[STEP_COUNT];
        int64_t queue_ns;
        // When a run must have been answered (clock_ns()); 0: never. Set by the loop thread before
        // it submits; brought forward while the job is away, when the body asks for less.
        _Atomic int64_t deadline_ns;
        bool detached;         // loop thread only
        _Atomic int last_word; // who came first: job_detach, or the worker that has done with it
        Workers *workers;
        void *owner;    // what `finished` works on: outlives all jobs
        void *exchange; // the loop thread's side: never touched while the job is away
        // hands the job back; any thread. Its receiver asks job_reap before it looks at anything
        // else
        void (*finished)(Job *job);
};

// `workers` must outlive the job.
Status job_new(Workers *workers, Job **out_job);
Job *job_free(Job *job); // at home only
// Another job with the same request, times and exchange, at STEP_SEND and with no reply yet: it
// answers in place of a job that is away and about to be detached.
Status job_stand_in(const Job *job, Job **out_job);
// Sends the job away. STATUS_BUSY: as many requests or bytes wait as may; the job is still at home.
Status job_submit(Job *job);
// Runs the job here as far as that is a matter of microseconds: graph and program ready, the run
// predicted short whatever its inputs' values, its reply small. For small bodies, instead of
// job_submit. Loop thread. True: it is at STEP_SEND with its reply (`finished` is not called).
// False: nothing is lost, submit it.
bool job_try_here(Job *job, Frame *frame);
// See above. Loop thread, job away.
void job_cancel(Job *job);
void job_detach(Job *job);
// Loop thread, job just come back: true when it had been detached; then it is freed.
bool job_reap(Job *job);
// Has a worker do what the engine keeps for when nobody waits, if there is any. Any thread.
void jobs_use_idle_time(Workers *workers, Engine *engine);
