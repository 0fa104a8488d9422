// SPDX-License-Identifier: Apache-2.0
// Polling and parallel_for. Pieces have a fixed size that depends on n and grain only, so that results are the same for any number of
// threads; with OpenMP the pieces are dealt statically.
#include "core/kernels/run_context.h"
#include <string.h>
#include "core/base/memory.h"
#ifdef _OPENMP
#include <omp.h>
#endif

void run_context_init(RunContext *ctx)
{
        memset(ctx, 0, sizeof(*ctx));
        ctx->n_threads = 1;
}

Status run_poll(const RunContext *ctx)
{
        if (ctx == NULL)
                return STATUS_OK;
        if (__builtin_expect(atomic_load_explicit(&ctx->cancelled, memory_order_relaxed) != 0, 0))
                return fail(STATUS_CANCELLED, "the client closed the connection before the run ended");
        if (ctx->deadline_ns != 0 && clock_ns() > ctx->deadline_ns)
                return fail(STATUS_DEADLINE, "the run did not end within its deadline; send a larger \"deadline_ms\" or start the server "
                                             "with --run-deadline-ms");
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
                        if (atomic_load_explicit(&ctx->cancelled, memory_order_relaxed) != 0 ||
                            (ctx->deadline_ns != 0 && clock_ns() > ctx->deadline_ns))
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
