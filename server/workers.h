// SPDX-License-Identifier: Apache-2.0
// The worker pool: threads that run tasks, fed by one bounded queue (fair.h), and one express
// thread for requests that are short beside those on the workers. A task is a request's job, a
// program build, or idle work.
#pragma once
#include "core/engine/frame.h"
#include "server/turns.h"

typedef struct Workers Workers;

// What a task finds on its thread.
typedef struct Worker {
        RunWatch watch; // of the runs on this thread
        Workers *pool;
        Turn turn;               // of the current run
        Frame frame;             // the thread's memory for programs
        int n_threads;           // that one run may use, the worker included
        _Atomic int *stop;       // worker_stoppable; guarded by the pool
        bool is_idle_task;       // the current task is an idle task
        _Atomic int64_t beat_ns; // the current run's last poll; 0: no run
        uint64_t n_shrunk;       // of the pool's n_shrinks
        uint64_t n_trimmed;      // of its n_trims
        uint32_t n_taken;        // tasks that are done with the current one, itself included
        bool is_express;         // it is the express thread (workers.c)
        bool runs_request;       // now, of this kind
        bool is_long;            // runs of this kind took long of late (turns.h)
        uint64_t kind;
} Worker;

// Embedded in the queued object; zeroed by its owner. In the queue from submit until a worker takes
// it; from then on `run` owns it.
typedef struct Task Task;
struct Task {
        Task *next, *previous;
        void (*run)(Task *task, Worker *worker);
        void (*drop)(Task *task); // the pool ends and the task will never run
        size_t n_bytes;           // memory it holds while it waits
        int64_t queued_ns;        // when it was queued last
        bool is_request;
        uint64_t kind; // tasks of one kind keep their order and share their turns (fair.h)
        uint8_t level; // 1 is first (fair.h); 0: that of most tasks
        // not run before that (clock_ns()) unless so many requests of its kind wait; 0: at once
        int64_t hold_ns;
        uint32_t hold_for;
        // of those that share it so many may wait, 0: any number; the pool counts. NULL: no share
        _Atomic int64_t *n_waiting;
        int64_t most_waiting;
        // runs only while nothing else waits, or when it is overdue, one at a time; told to stop
        // when a request finds no free worker
        bool is_idle;
        bool is_queued;
        int64_t due_ns; // idle: not before this (clock_ns())
        int64_t by_ns;  // idle: overdue from then on (clock_ns()), 0: never
        // when it must have ended (clock_ns()), 0: never; asked when it is submitted
        int64_t deadline_ns;
};

// `n_wide`: threads that runs on the first worker may use; runs on the others have one.
Status workers_start(int n_workers, int n_wide, int64_t max_queued, Workers **out_workers);
// Threads that a run may use on most workers.
int workers_width(const Workers *workers);
// For those that workers with long runs give way to.
Turns *workers_turns(Workers *workers);
// Tells the threads to end after their current tasks, and waits `wait_ns` for them. False: some
// task does not end; nothing that it may touch can be freed.
bool workers_end(Workers *workers, int64_t wait_ns);
// Ends the threads, however long that takes; queued tasks are dropped.
Workers *workers_stop(Workers *workers);
// Unless it is SUBMITTED, the caller still owns the task. Any thread.
typedef enum Submitted {
        SUBMITTED,
        QUEUE_FULL,       // --max-queue
        QUEUE_BYTES_FULL, // --max-queue-bytes
        KIND_FULL,        // --max-queue-per-graph
        SHARE_FULL,       // most_waiting
        TOO_LATE,         // it would not end by its deadline (workers_wait_ns)
        IDLE_TASK_WAITS,  // one is enough; its times are the earlier of both
} Submitted;
Submitted workers_submit(Workers *workers, Task *task);
// While `late`, requests that find free workers wake them at the next workers_wake only, or when
// there are WORKERS_LATE_MOST. For a thread that submits all it has and shares its only core with
// the workers: they would take it in between, and run one by one what could be run together. Any
// thread.
enum { WORKERS_LATE_MOST = 64 };
void workers_wake_late(Workers *workers, bool late);
void workers_wake(Workers *workers);
// How long a task like this one would take from now on, waiting included, by what such tasks took
// of late. Any thread.
int64_t workers_wait_ns(Workers *workers, const Task *task);
// For builds, and for tasks that were accepted before: never refused. Any thread.
void workers_resubmit(Workers *workers, Task *task);
// For a running task: a run with this context begins. Its polls show that it goes on
// (workers_stalled), and give way (turns.h).
void worker_begins_run(Worker *worker, RunContext *ctx, int64_t now_ns);
// For a running task: where a 1 is stored when it should stop (the pool ends, or it is an idle task
// and others wait). NULL: none is stored.
void worker_stoppable(Worker *worker, _Atomic int *stop);
// For a running idle task: others that wait do not stop it.
void worker_insists(Worker *worker);
// For a running task: takes up to `most` waiting requests of this kind, in order. They count as
// running until workers_ran.
uint32_t worker_take_alike(Worker *worker, uint64_t kind, uint32_t most, Task **out_tasks);
void workers_ran(Workers *workers, uint32_t n);
// Takes a task out of the queue. False: it is not there. Any thread.
bool workers_withdraw(Workers *workers, Task *task);
// Requests that wait, and that run on a worker; detached ones count until they have stopped.
void workers_counts(Workers *workers, int64_t *out_queued, int64_t *out_running);
// Much memory was freed: the heap's free pages go back to the system soon, even while requests go
// on. Any thread.
void workers_give_back(Workers *workers);
// Each worker gives back the memory that it keeps for the next run, as soon as it runs nothing. Any
// thread.
void workers_shrink(Workers *workers);
// How far the run with this context is: nodes that are done, of all of its graph. False: no program
// runs with it now. Any thread; `ctx` is only compared.
bool workers_progress(Workers *workers, const RunContext *ctx, uint32_t *out_done, uint32_t *out_nodes);
// Workers whose run has not polled for `silence_ns`: they are in one long kernel, or stuck. Any
// thread.
int workers_stalled(Workers *workers, int64_t silence_ns);
