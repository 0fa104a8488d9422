// SPDX-License-Identifier: Apache-2.0
// RunContext: what a run carries through kernels — cancel, deadline, threads, memory budget, random
// seed. One run, one thread that owns it; `cancelled` may be set by any thread.
#pragma once
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/status.h"

// Bytes that kernels may use as scratch instead of the heap, taken and given back in stack order;
// whoever runs programs provides them.
typedef struct ScratchPool {
        uint8_t *data; // 64-byte aligned
        size_t n_bytes;
        _Atomic size_t used;   // threads of one kernel take pieces side by side
        _Atomic size_t wanted; // most that would have been used, had there been room
} ScratchPool;

typedef struct RunContext {
        _Atomic int cancelled;   // 1: the caller is gone
        int64_t deadline_ns;     // clock_ns(); 0 = none
        int n_threads;           // threads parallel_for may use, >= 1
        Budget *budget;          // bytes of this run's tensors; may be NULL
        uint64_t seed;           // of this run's generator
        bool seeded;             // false: random operators are refused
        ScratchPool *pool;       // may be NULL
        struct HaltReport *halt; // filled in by what ends the run with STATUS_HALTED; may be NULL
        _Atomic int64_t *beat;   // every poll writes clock_ns() there: a sign of life; may be NULL
        // the run that this context is a part of: its `cancelled` counts; NULL: a run of its own
        const struct RunContext *within;
} RunContext;

static inline bool run_is_cancelled(const RunContext *ctx)
{
        const RunContext *run = ctx->within == NULL ? ctx : ctx->within;
        return __builtin_expect(atomic_load_explicit(&run->cancelled, memory_order_relaxed) != 0, 0);
}

static inline bool run_deadline_passed(const RunContext *ctx)
{
        if (ctx->deadline_ns == 0 && ctx->beat == NULL)
                return false;
        int64_t now = clock_ns();
        if (ctx->beat != NULL)
                atomic_store_explicit(ctx->beat, now, memory_order_relaxed);
        return ctx->deadline_ns != 0 && now > ctx->deadline_ns;
}

void run_context_init(RunContext *ctx);
// A context for a part of `outer`'s run on this one thread: the same memory, cancelled and late
// with it. `outer` may be NULL and outlives it.
void run_context_within(RunContext *ctx, const RunContext *outer);
// STATUS_CANCELLED, STATUS_DEADLINE or OK. Cheap enough for every node; long kernels call it every
// millisecond or so. `ctx` may be NULL.
Status run_poll(const RunContext *ctx);

// True when long loops should stop early; run_poll, asked afterwards, says why. `ctx` may be NULL.
static inline bool run_stopping(const RunContext *ctx)
{
        return ctx != NULL && (run_is_cancelled(ctx) || run_deadline_passed(ctx));
}

// How kernels poll: each thread counts the steps that it has done and asks run_stopping every
// WORK_PER_POLL of them. A step is about a nanosecond: one addition or comparison, one element
// copied; a square root counts 4, an exponential or a power 16.
enum { WORK_PER_POLL = 1 << 18, WORK_BLOCK = 1 << 14 };
typedef struct Work {
        const RunContext *ctx; // may be NULL
        int64_t steps;         // since the last poll
        bool stops;            // a poll said so: nothing more is to be done
} Work;

// Adds `steps` that were done, or will be before the next call. Once true, true for ever: results
// are thrown away.
static inline bool work_stops(Work *work, int64_t steps)
{
        work->steps += steps;
        if (__builtin_expect(work->steps < WORK_PER_POLL, 1))
                return work->stops;
        work->steps = 0;
        work->stops = work->stops || run_stopping(work->ctx);
        return work->stops;
}

// Cuts a long loop: for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end) goes
// over 0..n in blocks of at most WORK_BLOCK elements, `steps` each, and ends early when the run
// stops. Rows of up to WORK_BLOCK elements stay whole.
static inline int64_t work_end(Work *work, int64_t at, int64_t n, int64_t steps)
{
        int64_t left = n - at < WORK_BLOCK ? n - at : WORK_BLOCK;
        return left <= 0 || work_stops(work, left * steps) ? at : at + left;
}

// STATUS_TOO_LARGE for what one node may not cost (--max-node-flops, --max-node-bytes): known
// before it runs.
Status run_check_cost(int64_t flops, int64_t bytes);

// Calls body(argument, begin, end) over 0..n in pieces of at least `grain`, on ctx->n_threads
// threads (OpenMP; serial without it or when n <= grain), polling between pieces. Pieces are split
// over outputs, never over a reduction, so results do not depend on the number of threads.
typedef void (*ParallelBody)(void *argument, int64_t begin, int64_t end);
Status parallel_for(const RunContext *ctx, int64_t n, int64_t grain, ParallelBody body, void *argument);
