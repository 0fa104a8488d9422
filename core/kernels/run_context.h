// SPDX-License-Identifier: Apache-2.0
// RunContext: what kernels need to know about the run that they are part of: cancelling, deadline,
// threads, memory budget, random numbers. It belongs to one run and to the thread that owns the
// run. Any thread may set `cancelled`.
#pragma once
#include <pthread.h>
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/status.h"

// Scratch memory for kernels, used instead of the heap. Pieces are taken and given back in stack
// order. The frame of a program's run provides it.
typedef struct ScratchPool {
        uint8_t *data; // 64-byte aligned
        size_t n_bytes;
        _Atomic size_t used;   // atomic: the threads of one kernel take pieces at the same time
        _Atomic size_t wanted; // the largest value that `used` would have had with enough room
} ScratchPool;

// What the owner of a run does at its polls. `polled` is called by every thread of the run, with
// clock_ns(); it may wait for a moment.
typedef struct RunWatch RunWatch;
struct RunWatch {
        void (*polled)(RunWatch *watch, int64_t now_ns);
};

typedef struct RunContext {
        _Atomic int cancelled; // 1: nobody waits for the result any more
        int64_t deadline_ns;   // clock_ns(); 0 = none
        int n_threads;         // that parallel_for may use, >= 1
        Budget *budget;        // bytes of this run's tensors; may be NULL
        ScratchPool *pool;     // may be NULL
        // of the run's random numbers; NULL: nothing may draw (kernels/random/generator.h)
        struct Generator *generator;
        // of a session, which lives on from run to run (eval/state.h); NULL: the graph's own
        struct RunState *state;
        struct HaltReport *halt; // filled in by what ends the run with STATUS_HALTED; may be NULL
        RunWatch *watch;         // may be NULL
        // The outer run that this context is part of: `cancelled` is read there. NULL: this context
        // is a run's own.
        const struct RunContext *within;
} RunContext;

static inline bool run_is_cancelled(const RunContext *ctx)
{
        const RunContext *run = ctx->within == NULL ? ctx : ctx->within;
        return __builtin_expect(atomic_load_explicit(&run->cancelled, memory_order_relaxed) != 0, 0);
}

static inline bool run_deadline_passed(const RunContext *ctx)
{
        if (ctx->deadline_ns == 0 && ctx->watch == NULL)
                return false;
        int64_t now = clock_ns();
        if (ctx->watch != NULL)
                ctx->watch->polled(ctx->watch, now);
        return ctx->deadline_ns != 0 && now > ctx->deadline_ns;
}

void run_context_init(RunContext *ctx);
// A context for a part of the run of `outer`, on one thread: same budget and scratch, same
// deadline, and cancelled when `outer` is. It draws no random numbers. `outer` may be NULL; it must
// outlive `ctx`.
void run_context_within(RunContext *ctx, const RunContext *outer);
// STATUS_CANCELLED, STATUS_DEADLINE or OK. Cheap enough to call before every node; long kernels
// call it about once per millisecond. `ctx` may be NULL.
Status run_poll(const RunContext *ctx);
// The same as a callback of readers, such as json_set_poll. `ctx` is a RunContext or NULL.
static inline Status run_poll_callback(const void *ctx)
{
        return run_poll(ctx);
}

// Locks a mutex that another thread may hold for long, and polls meanwhile. After a failure it is
// not locked. `ctx` may be NULL.
Status run_lock(const RunContext *ctx, pthread_mutex_t *mutex);
// Waits for `changed` until it is time for a poll, or shorter. The caller holds the lock before and
// afterwards, not all the time between.
Status run_wait(const RunContext *ctx, pthread_cond_t *changed, pthread_mutex_t *mutex);

// True when a long loop should stop early. Then run_poll tells why. `ctx` may be NULL.
static inline bool run_stopping(const RunContext *ctx)
{
        return ctx != NULL && (run_is_cancelled(ctx) || run_deadline_passed(ctx));
}

// How kernels poll: each thread counts its steps and asks run_stopping every WORK_PER_POLL steps. A
// step takes about a nanosecond: an addition, a comparison, or an element copied counts 1; a square
// root counts 4; an exponential or a power counts 16.
enum { WORK_PER_POLL = 1 << 18, WORK_BLOCK = 1 << 14 };
typedef struct Work {
        const RunContext *ctx; // may be NULL
        int64_t steps;         // since the last poll
        bool stops;            // run_stopping was true: the loop ends
} Work;

// Adds `steps` that were done since the last call, or will be done before the next one. Once it has
// returned true it always does. The results of a stopped run are discarded.
static inline bool work_stops(Work *work, int64_t steps)
{
        work->steps += steps;
        if (__builtin_expect(work->steps < WORK_PER_POLL, 1))
                return work->stops;
        work->steps = 0;
        work->stops = work->stops || run_stopping(work->ctx);
        return work->stops;
}

// The same for functions that fail: what run_poll says.
static inline Status work_spend(Work *work, int64_t steps)
{
        return work_stops(work, steps) ? run_poll(work->ctx) : STATUS_OK;
}

// Cuts a long loop into blocks of at most WORK_BLOCK elements:
//     for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
// Each element counts `steps`. The loop ends early when the run stops.
static inline int64_t work_end(Work *work, int64_t at, int64_t n, int64_t steps)
{
        int64_t left = n - at < WORK_BLOCK ? n - at : WORK_BLOCK;
        return left <= 0 || work_stops(work, left * steps) ? at : at + left;
}

// STATUS_TOO_LARGE if one node would cost more than --max-node-flops or --max-node-bytes allow.
// Called before the node runs.
Status run_check_cost(int64_t flops, int64_t bytes);

// Calls body(argument, begin, end) for pieces of 0..n of at least `grain`, on ctx->n_threads
// threads (OpenMP; serial without it or when n <= grain), and polls between pieces. Callers split
// outputs into pieces, never a reduction, so results do not depend on the number of threads.
typedef void (*ParallelBody)(void *argument, int64_t begin, int64_t end);
Status parallel_for(const RunContext *ctx, int64_t n, int64_t grain, ParallelBody body, void *argument);

// A grain for bodies that poll themselves: each thread has one piece, of at least `least`.
static inline int64_t run_share(const RunContext *ctx, int64_t n, int64_t least)
{
        int64_t n_threads = ctx == NULL ? 1 : ctx->n_threads, share = (n + n_threads - 1) / n_threads;
        return share > least ? share : least;
}
