// SPDX-License-Identifier: Apache-2.0
// The worker pool: threads that run tasks, fed by one bounded queue. A task is a request's job, a
// program to build, or something that is done only when nobody waits.
#pragma once
#include "core/interp/interp.h"

typedef struct Workers Workers;

// What a task finds on its thread.
typedef struct Worker {
        Workers *pool;
        Frame frame;             // the thread's memory for programs
        int n_threads;           // it may use for one run, itself included
        _Atomic int *stop;       // worker_stoppable; guarded by the pool
        bool is_idle_task;       // what it runs
        _Atomic int64_t beat_ns; // the last sign of life of the run it has; 0: it has none
} Worker;

// Embedded in whatever is queued; zeroed by its owner. In the queue from submit until a worker
// takes it; from then on it is run's.
typedef struct Task Task;
struct Task {
        Task *next, *previous;
        void (*run)(Task *task, Worker *worker);
        void (*drop)(Task *task); // the pool ends: it will never run
        size_t n_bytes;           // what it holds while it waits
        int64_t queued_ns;        // when it was queued last
        bool is_request;
        // runs only while nothing else waits, one at a time; told to stop when a request finds no
        // free worker
        bool is_idle;
        bool is_queued;
        int64_t due_ns; // idle: not before this (clock_ns())
};

// `n_wide`: threads that runs on the first worker may use; runs on the others have one.
Status workers_start(int n_threads, int n_wide, int64_t max_queued, Workers **out_workers);
// Threads that a run may use on most workers.
int workers_width(const Workers *workers);
// Tells the threads to end after the tasks they have, and waits for them so long. False: some task
// does not end; nothing that it may touch can be freed.
bool workers_end(Workers *workers, int64_t wait_ns);
// Ends the threads, however long that takes; what is queued is dropped.
Workers *workers_stop(Workers *workers);
// Unless it is SUBMITTED, the caller still owns the task. Any thread.
typedef enum Submitted {
        SUBMITTED,
        QUEUE_FULL,       // --max-queue
        QUEUE_BYTES_FULL, // --max-queue-bytes
        IDLE_TASK_WAITS,  // one is enough; it is now due when either is
} Submitted;
Submitted workers_submit(Workers *workers, Task *task);
// For what was accepted before and for builds: never refused. Any thread.
void workers_resubmit(Workers *workers, Task *task);
// For a task that is being run: where to put a 1 when it should stop (the pool ends, or it is an
// idle task and others wait). NULL: nowhere.
void worker_stoppable(Worker *worker, _Atomic int *stop);
// Takes a task out of the queue. False: it is not there. Any thread.
bool workers_withdraw(Workers *workers, Task *task);
// Requests that wait, and that a worker has; detached ones count until they have really stopped.
void workers_counts(Workers *workers, int64_t *out_queued, int64_t *out_running);
// Much was freed: the heap's free pages go back to the system soon, though requests go on. Any
// thread.
void workers_give_back(Workers *workers);
// Workers whose run has given no sign of life for `silence_ns`: they are in one long kernel, or
// stuck. Any thread.
int workers_stalled(Workers *workers, int64_t silence_ns);
