// SPDX-License-Identifier: Apache-2.0
// A request is a machine of named steps, driven by one loop on whichever worker has it:
//   ROUTE (loop thread) → GRAPH → DECODE → RUN → ENCODE → SEND (loop thread) → DONE;   other routes: GRAPH → ANSWER → SEND.
// A job that waits for a graph being loaded holds no thread: it is parked in the registry and queued again by whoever publishes.
#pragma once
#include "api/run.h"

typedef enum JobStep { STEP_GRAPH, STEP_DECODE, STEP_RUN, STEP_ENCODE, STEP_ANSWER, STEP_SEND, STEP_COUNT } JobStep;
extern const char *const step_names[STEP_COUNT];

typedef struct Job Job;
struct Job {
        Job *next; // in the queue, or in the list of finished jobs
        ApiCall call;
        ApiReply reply;
        ApiContext context;
        ServerFacts facts;           // snapshot of the loop thread's counters
        struct RequestCount *counts; // owned; only for the routes that show them
        RunCall run;
        bool is_run;
        JobStep step;
        GraphVersion *version;
        Graph *graph;
        Ticket ticket;
        int64_t received_ns, queued_ns, started_ns;
        int64_t step_ns[STEP_COUNT];
        int64_t queue_ns;
        void *exchange;             // the server's side; not touched by workers
        void (*requeue)(Job *job);  // puts a parked job back into the workers' queue
        void (*finished)(Job *job); // hands the job back to the loop thread
};

Status job_new(Job **out_job);
Job *job_free(Job *job);
// Drives the job until it is parked or finished. On a worker; `frame` is the worker's memory for programs.
void job_advance(Job *job, Frame *frame);
// Asks a running job to stop; any thread.
void job_cancel(Job *job);
