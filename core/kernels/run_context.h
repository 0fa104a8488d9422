// SPDX-License-Identifier: Apache-2.0
// RunContext: what a run carries through kernels — cancel, deadline, threads, memory budget, random seed. One run, one thread that owns it;
// `cancelled` may be set by any thread.
#pragma once
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/status.h"

// Bytes that kernels may use as scratch instead of the heap, taken and given back in stack order; whoever runs programs provides them.
typedef struct ScratchPool {
        uint8_t *data; // 64-byte aligned
        size_t n_bytes;
        _Atomic size_t used;   // threads of one kernel take pieces side by side
        _Atomic size_t wanted; // most that would have been used, had there been room
} ScratchPool;

typedef struct RunContext {
        _Atomic int cancelled; // 1: the caller is gone
        int64_t deadline_ns;   // clock_ns(); 0 = none
        int n_threads;         // threads parallel_for may use, >= 1
        Budget *budget;        // bytes of this run's tensors; may be NULL
        uint64_t seed;         // of this run's generator
        bool seeded;           // false: random operators are refused
        ScratchPool *pool;     // may be NULL
        _Atomic int64_t *beat; // every poll writes clock_ns() there: a sign of life; may be NULL
} RunContext;

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
// STATUS_CANCELLED, STATUS_DEADLINE or OK. Cheap enough for every node; long kernels call it every millisecond or so. `ctx` may be NULL.
Status run_poll(const RunContext *ctx);

// STATUS_TOO_LARGE for what one node may not cost (--max-node-flops, --max-node-bytes): known before it runs.
Status run_check_cost(int64_t flops, int64_t bytes);

// Calls body(argument, begin, end) over 0..n in pieces of at least `grain`, on ctx->n_threads threads (OpenMP; serial without it or when n
// <= grain), polling between pieces. Pieces are split over outputs, never over a reduction, so results do not depend on the number of
// threads.
typedef void (*ParallelBody)(void *argument, int64_t begin, int64_t end);
Status parallel_for(const RunContext *ctx, int64_t n, int64_t grain, ParallelBody body, void *argument);
