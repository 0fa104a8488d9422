// SPDX-License-Identifier: Apache-2.0
// Polling and parallel_for. Pieces have a fixed size that depends on n and grain only, so that
// results are the same for any number of threads; with OpenMP the pieces are dealt statically.
#include "core/kernels/run_context.h"
#include <string.h>
#include "core/base/limits.h"
#include "core/base/memory.h"
#ifdef _OPENMP
#include <omp.h>
#endif

void run_context_init(RunContext *ctx)
{
        memset(ctx, 0, sizeof(*ctx));
        ctx->n_threads = 1;
}

void run_context_within(RunContext *ctx, const RunContext *outer)
{
        run_context_init(ctx);
        if (outer == NULL)
                return;
        ctx->deadline_ns = outer->deadline_ns;
        ctx->budget = outer->budget;
        ctx->pool = outer->pool;
        ctx->watch = outer->watch;
        ctx->within = outer->within == NULL ? outer : outer->within;
}

Status run_poll(const RunContext *ctx)
{
        if (ctx == NULL)
                return STATUS_OK;
        if (run_is_cancelled(ctx))
                return fail(STATUS_CANCELLED,
                            "cancelled before the run ended: the client left, or the server is stopping");
        if (run_deadline_passed(ctx))
                return fail(STATUS_DEADLINE, "the run did not end within its deadline; send a larger "
                                             "\"deadline_ms\" or start the server "
                                             "with --run-deadline-ms");
        return STATUS_OK;
}

// A time to wait until, of the clock that mutexes and conditions know.
static struct timespec next_poll(void)
{
        enum { POLL_NS = 10000000, SECOND_NS = 1000000000 };
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / SECOND_NS;
        until.tv_nsec %= SECOND_NS;
        return until;
}

Status run_lock(const RunContext *ctx, pthread_mutex_t *mutex)
{
        for (;;) {
                struct timespec until = next_poll();
                if (pthread_mutex_timedlock(mutex, &until) == 0)
                        return STATUS_OK;
                TRY(run_poll(ctx));
        }
}

Status run_wait(const RunContext *ctx, pthread_cond_t *changed, pthread_mutex_t *mutex)
{
        struct timespec until = next_poll();
        pthread_cond_timedwait(changed, mutex, &until);
        pthread_mutex_unlock(mutex); // a poll may wait itself
        Status status = run_poll(ctx);
        pthread_mutex_lock(mutex);
        return status;
}

Status run_check_cost(int64_t flops, int64_t bytes)
{
        if (flops > limits.max_node_flops)
                return fail(STATUS_TOO_LARGE,
                            "the node needs %lld floating point operations; the limit is %lld "
                            "(--max-node-flops, FXSERVE_MAX_NODE_FLOPS)",
                            (long long)flops, (long long)limits.max_node_flops);
        if (bytes > limits.max_node_bytes)
                return fail(STATUS_TOO_LARGE,
                            "the node reads and writes %lld bytes; the limit is %lld (--max-node-bytes, "
                            "FXSERVE_MAX_NODE_BYTES)",
                            (long long)bytes, (long long)limits.max_node_bytes);
        return STATUS_OK;
}

Status parallel_for(const RunContext *ctx, int64_t n, int64_t grain, ParallelBody body, void *argument)
{
        if (n <= 0)
                return STATUS_OK;
        grain = MAX(grain, 1);
        int64_t n_pieces = n / grain + (n % grain != 0);
#ifdef _OPENMP
        int n_threads = ctx == NULL ? 1 : (int)MIN((int64_t)ctx->n_threads, n_pieces);
        if (n_threads > 1) {
                _Atomic int stop = 0;
#pragma omp parallel for num_threads(n_threads) schedule(static)
                for (int64_t piece = 0; piece < n_pieces; piece++) {
                        if (atomic_load_explicit(&stop, memory_order_relaxed) != 0)
                                continue;
                        body(argument, piece * grain, MIN(n, (piece + 1) * grain));
                        if (run_stopping(ctx))
                                atomic_store_explicit(&stop, 1, memory_order_relaxed);
                }
                return run_poll(ctx);
        }
#endif
        for (int64_t piece = 0; piece < n_pieces; piece++) {
                body(argument, piece * grain, MIN(n, (piece + 1) * grain));
                if (n_pieces > 1)
                        TRY(run_poll(ctx));
        }
        return STATUS_OK;
}
