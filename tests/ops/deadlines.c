// SPDX-License-Identifier: Apache-2.0
// deadlines.c: operators stop soon after they are told to. Every poll of a run with a deadline
// reads the clock, so clock_gettime, which this program defines itself, sees them all. Nothing here
// asserts on time: a call is cancelled at its third poll and must say so after few more, and the
// work that `cost` predicts of a whole call must be spread over enough polls, evenly. With
// FXSERVE_DEADLINE_TABLE set, operators run at their size limits under a deadline of 300 ms, and
// the largest time without a poll and the time after the deadline are printed.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "core/eval/eager.h"
#include "core/kernels/random/generator.h"
#include "tests/ops/deadline_call.h"

typedef struct DeadlineCase {
        const char *op, *args;
        int64_t small, large;
} DeadlineCase;

static const DeadlineCase cases[] = {
#define DEADLINE_CASE(op, args, small, large) { op, args, small, large },
#include "tests/ops/deadline_cases.def"
#undef DEADLINE_CASE
};

// ---- the clock ----
typedef struct Watch {
        bool on;
        RunContext *ctx;
        int64_t n_polls, cancel_at, n_after; // cancel_at 0: never; polls after it
        int64_t start_ns, last_ns, gap_ns;   // processor time of this thread; the longest without a poll
} Watch;
static _Thread_local Watch watch;

static int64_t read_clock(clockid_t clock)
{
        struct timespec now;
        syscall(SYS_clock_gettime, clock, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void watch_look(void)
{
        int64_t now = read_clock(CLOCK_THREAD_CPUTIME_ID);
        watch.gap_ns = MAX(watch.gap_ns, now - watch.last_ns);
        watch.last_ns = now;
}

int clock_gettime(clockid_t clock, struct timespec *out);
int clock_gettime(clockid_t clock, struct timespec *out)
{
        if (watch.on && clock == CLOCK_MONOTONIC) {
                watch_look();
                watch.n_after += watch.cancel_at != 0 && watch.n_polls >= watch.cancel_at;
                if (++watch.n_polls == watch.cancel_at)
                        atomic_store(&watch.ctx->cancelled, 1);
        }
        return (int)syscall(SYS_clock_gettime, clock, out);
}

// ---- one call ----
typedef struct Outcome {
        Status status;
        Cost cost;
        int64_t n_polls, n_after, gap_ns, total_ns, late_ns; // late: after the deadline
        char message[200];
} Outcome;

// ---- which kernels ran ----
enum { MOST_KERNELS = 512 };
typedef Status (*OpKernel)(const OpRun *run);
static OpKernel seen[MOST_KERNELS];
static uint32_t n_seen;
static const EmitterVtbl *plain_vtbl;

static bool is_seen(OpKernel kernel)
{
        for (uint32_t i = 0; i < n_seen; i++) {
                if (seen[i] == kernel)
                        return true;
        }
        return false;
}

static Status see_op(Emitter *emitter, OpCall *call, Value *out)
{
        if (call->op->run != NULL && !is_seen(call->op->run) && n_seen < MOST_KERNELS)
                seen[n_seen++] = call->op->run;
        return plain_vtbl->op(emitter, call, out);
}

// `deadline_ms` 0: none.
static void run_bound(const Overload *overload, const Value *args, uint64_t given, int64_t cancel_at,
                      int64_t deadline_ms, Outcome *out)
{
        RunContext ctx;
        Generator generator;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        _cleanup_(value_clear) Value result = value_none();
        run_context_init(&ctx);
        generator_seed(&generator, 0);
        ctx.generator = &generator;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(eager_open(graph, &ctx, &eager), STATUS_OK);
        EmitterVtbl seeing = *eager_emitter(eager)->vtbl;
        plain_vtbl = eager_emitter(eager)->vtbl;
        seeing.op = see_op;
        eager_emitter(eager)->vtbl = &seeing;
        eager_emitter(eager)->measure = true;
        ctx.deadline_ns = deadline_ms == 0 ? INT64_MAX : read_clock(CLOCK_MONOTONIC) + deadline_ms * 1000000;
        int64_t start = read_clock(CLOCK_THREAD_CPUTIME_ID);
        watch = (Watch){ .on = true, .ctx = &ctx, .cancel_at = cancel_at, .last_ns = start };
        out->status = emit(eager_emitter(eager), overload, args, given, &result);
        watch_look();
        watch.on = false;
        out->cost = eager_emitter(eager)->cost;
        out->n_polls = watch.n_polls;
        out->n_after = watch.n_after;
        out->late_ns = read_clock(CLOCK_MONOTONIC) - ctx.deadline_ns;
        out->gap_ns = watch.gap_ns;
        out->total_ns = watch.last_ns - start;
        eager_emitter(eager)->vtbl = plain_vtbl;
        if (out->status != STATUS_OK)
                snprintf(out->message, sizeof(out->message), "%.199s", failure_current()->message);
}

static void run_case(const DeadlineCase *row, bool large, int64_t cancel_at, int64_t deadline_ms,
                     Outcome *out)
{
        DeadlineCall call;
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given = 0;
        *out = (Outcome){ .status = STATUS_OK };
        const Overload *overload = op_find(row->op);
        cr_assert_not_null(overload, "%s is not in the table of operators", row->op);
        cr_assert(deadline_call_open(row->args, large ? row->large : row->small, &call), "%s: cannot read %s",
                  row->op, row->args);
        CallArgs bound = { .args = call.args.seq->items, .n_args = call.args.seq->n };
        if (call.kwargs.kind == VALUE_DICT) {
                bound.kwargs = call.kwargs.dict->items;
                bound.n_kwargs = call.kwargs.dict->n;
        }
        cr_assert_eq(schema_bind(&overload->schema, &bound, BIND_NUMBERS, args, &given), STATUS_OK,
                     "%s(%s): %s", row->op, row->args, failure_current()->message);
        run_bound(overload, args, given, cancel_at, deadline_ms, out);
        schema_release(&overload->schema, args, given);
        deadline_call_close(&call);
}

// ---- tests ----
enum { CANCEL_AT = 3, MOST_AFTER = 40 };

Test(deadlines, every_kernel_ends_soon_after_a_poll_says_cancelled, .timeout = 1200)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Outcome out;
                run_case(&cases[i], false, CANCEL_AT, 0, &out);
                cr_expect_eq(out.status, STATUS_CANCELLED, "%s(%s), N = %ld: %s after %ld polls %s",
                             cases[i].op, cases[i].args, (long)cases[i].small, status_code(out.status),
                             (long)out.n_polls, out.message);
                cr_expect_leq(out.n_after, MOST_AFTER, "%s(%s) goes on for %ld polls", cases[i].op,
                              cases[i].args, (long)out.n_after);
        }
}

// Steps of about a nanosecond (run_context.h), as the operator's cost has them.
static int64_t predicted_steps(const Cost *cost)
{
        return cost->flops / 16 + cost->bytes / 8;
}

enum { LEAST_STEPS = 1 << 16, MOST_STEPS_PER_POLL = 1 << 20 };

// Rows whose kernel no case has run.
static void check_coverage(void)
{
        static const char *const elsewhere[] = {
                "aten::_assert_async",
                "aten::_assert_async.msg", // read one element
                // noise is not positive definite; triangles and products have the same loops
                "aten::linalg_cholesky",
                "aten::linalg_cholesky_ex",
                "aten::cholesky",
                // noise is a failure, and no pivots
                "aten::_linalg_check_errors",
                "aten::lu_unpack",
                // offsets are no noise; its groups are products
                "fxserve::grouped_mm",
                // takes a group of a program: tests/load/deadlines.py
                "fxserve::fused",
                // run programs of their own: tests/compile/child.c stops a loop without an end
                "fxserve::while_loop",
                "fxserve::cond",
                "fxserve::scan",
        };
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                bool listed = false;
                for (size_t k = 0; k < ARRAY_LENGTH(elsewhere); k++)
                        listed |= strcmp(overload->name, elsewhere[k]) == 0;
                if (overload->op->run != NULL && !listed)
                        cr_expect(is_seen(overload->op->run),
                                  "%s: no row of deadline_cases.def runs its kernel", overload->name);
        }
}

// No part of a call goes on for long without a poll: the longest stretch, as a share of the call's
// processor time, in the best of a few runs, for anything may hold one up.
static bool polls_evenly(const DeadlineCase *row, Outcome *out)
{
        enum { TRIES = 6, SHARE = 2, SHORT_NS = 4000000 };
        for (int i = 0; i < TRIES && out->total_ns > SHORT_NS && out->gap_ns > out->total_ns / SHARE; i++)
                run_case(row, false, 0, 0, out);
        return out->total_ns <= SHORT_NS || out->gap_ns <= out->total_ns / SHARE;
}

Test(deadlines, work_between_polls_is_bounded_for_every_kernel, .timeout = 1200)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Outcome out;
                run_case(&cases[i], false, 0, 0, &out);
                int64_t steps = predicted_steps(&out.cost);
                cr_expect_eq(out.status, STATUS_OK, "%s(%s): %s", cases[i].op, cases[i].args, out.message);
                cr_expect_geq(steps, LEAST_STEPS, "%s(%s): cost knows of %ld steps only", cases[i].op,
                              cases[i].args, (long)steps);
                cr_expect_leq(steps / MAX(out.n_polls, 1), MOST_STEPS_PER_POLL,
                              "%s(%s): %ld steps, %ld polls", cases[i].op, cases[i].args, (long)steps,
                              (long)out.n_polls);
                cr_expect(polls_evenly(&cases[i], &out), "%s(%s): %ld of %ld us without a poll", cases[i].op,
                          cases[i].args, (long)(out.gap_ns / 1000), (long)(out.total_ns / 1000));
        }
        check_coverage();
}

Test(deadlines, cost_knows_windows_and_rows)
{
        static const struct {
                const char *op, *args;
                int64_t n;
                Status status;
        } rows[] = {
                { "aten.max_pool2d.default", "f32[1,1,N,N], [3,3], [1,1]", 160, STATUS_OK },
                { "aten.max_pool2d.default", "f32[1,1,N,N], [99,99], [1,1]", 160, STATUS_TOO_LARGE },
                { "aten.max_pool2d_with_indices.default", "f32[1,1,N,N], [31,31], [1,1]", 64,
                  STATUS_TOO_LARGE },
                { "aten.adaptive_max_pool2d.default", "f32[1,1,N,N], [50,50]", 160, STATUS_OK },
                { "aten.sort.default", "f32[N]", 40000, STATUS_OK },
                { "aten.sort.default", "f32[N]", 80000, STATUS_TOO_LARGE },
                { "aten.topk.default", "f32[N], 3", 80000, STATUS_OK },
                { "aten.addbmm.default", "f32[20,20], f32[N,20,20], f32[N,20,20]", 100, STATUS_TOO_LARGE },
                { "aten.upsample_bicubic2d.default", "f32[1,1,10,10], [N,N], False", 200, STATUS_TOO_LARGE },
        };
        int64_t limit = limits.max_node_flops;
        cr_assert_eq(ops_init(), STATUS_OK);
        limits.max_node_flops = 1000000;
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Outcome out;
                DeadlineCase row = { rows[i].op, rows[i].args, rows[i].n, rows[i].n };
                run_case(&row, false, 0, 0, &out);
                cr_expect_eq(out.status, rows[i].status, "%s(%s): %s, %ld operations", row.op, row.args,
                             status_code(out.status), (long)out.cost.flops);
        }
        limits.max_node_flops = limit;
}

// ---- figures ----
Test(deadlines, table_of_operators_at_their_size_limits, .timeout = 7200)
{
        const char *only = getenv("FXSERVE_DEADLINE_TABLE");
        if (only == NULL)
                return;
        cr_assert_eq(ops_init(), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Outcome out;
                if (strstr(cases[i].op, only) == NULL)
                        continue;
                run_case(&cases[i], true, 0, 300, &out);
                printf("late %6.1f ms, without a poll %6.1f ms, cost %9.1f Mflop %8.1f MB, %s: %s(%s), N = "
                       "%ld %s\n",
                       (double)out.late_ns / 1e6, (double)out.gap_ns / 1e6, (double)out.cost.flops / 1e6,
                       (double)out.cost.bytes / 1e6, status_code(out.status), cases[i].op, cases[i].args,
                       (long)cases[i].large, out.message);
                fflush(stdout);
        }
}
