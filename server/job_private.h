// SPDX-License-Identifier: Apache-2.0
// Shared by the files of job.h: job.c drives, job_steps.c has the steps, job_work.c does what jobs
// wait for.
#pragma once
#include "server/job.h"

// PARKED: the job belongs to the thread that publishes its object or cancels it; it may not be
// touched. ON_WORKER: it cannot continue on the loop thread.
// REPLIED: the reply is there already.
typedef enum Next { NEXT_STEP, NEXT_PARKED, NEXT_ON_WORKER, NEXT_REPLIED } Next;

typedef struct Drive {
        Job *job;
        Worker *worker; // NULL: on the loop thread, so no disk, no compiling, nothing long
        Frame *frame;
        int n_threads;
        Engine *engine; // the job's, which may be another thread's by now
        uint64_t kind;  // likewise
} Drive;

// For a task that a worker has taken: accounts for the time it waited.
Drive job_begin(Task *task, Worker *worker);
// Continues until step `until`, or the reply is there (both true), or the job is parked or must
// leave the loop thread. Between steps it stops if it was cancelled.
bool job_advance(const Drive *drive, JobStep until);
// Continues to the end, and gives the job back, unless it is parked.
void job_end(const Drive *drive);
// Kinds of tasks, which take turns: the runs of each graph and version, by name, runs of graphs
// that come along, and all other requests. Builds and loads are of the kind that asked for them.
enum { KIND_OTHER, KIND_INLINE, KIND_FIRST_GRAPH };
uint64_t job_kind(const Job *job);
// When a run must be answered, as far as it is known before the body is read.
int64_t job_deadline(const Job *job);
// The job is about to run, on a worker: takes waiting jobs of its kind along, and ends all of them.
void job_run_alike(const Drive *drive);
// By step; STEP_SEND ends the way. A failure becomes the reply.
extern Status (*const job_steps[STEP_SEND])(const Drive *drive, Next *next);
// Server-Timing.
void job_add_timing(Job *job);
// Puts the jobs of these tickets into the queue again.
void job_wake(Ticket *tickets);
// Does the work that `wait` hands out, here or at the end of the queue; here, too, without memory
// for that. The job may be another thread's already: only what `drive` has is looked at.
void job_see_to(const Drive *drive, const Wait *wait);
