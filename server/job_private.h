// SPDX-License-Identifier: Apache-2.0
// Shared by the files of job.h: job.c drives, job_steps.c has the steps, job_work.c does what jobs
// wait for.
#pragma once
#include "server/job.h"

// PARKED: the job belongs to the thread that publishes its object or cancels it; it may not be
// touched. ON_WORKER: it cannot continue on the loop thread.
typedef enum Next { NEXT_STEP, NEXT_PARKED, NEXT_ON_WORKER } Next;

typedef struct Drive {
        Job *job;
        Worker *worker; // NULL: on the loop thread, so no disk, no compiling, nothing long
        Frame *frame;
        int n_threads;
        Engine *engine; // the job's, which may be another thread's by now
} Drive;

// By step; STEP_SEND ends the way. A failure becomes the reply.
extern Status (*const job_steps[STEP_SEND])(const Drive *drive, Next *next);
// Server-Timing.
void job_add_timing(Job *job);
// Does the work that `wait` hands out, here or at the end of the queue; here, too, without memory
// for that. The job may be another thread's already: only what `drive` has is looked at.
void job_see_to(const Drive *drive, const Wait *wait);
