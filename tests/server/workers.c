// SPDX-License-Identifier: Apache-2.0
#include "server/workers.h"
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

static _Atomic int phase; // 0: nothing yet; 1: the task runs; 2: it may end; 3: it ended

static void nap(void)
{
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static void run_like_a_run(Task *task, Worker *worker)
{
        (void)task;
        atomic_store(&worker->beat_ns, clock_ns());
        atomic_store(&phase, 1);
        while (atomic_load(&phase) < 2)
                nap();
        atomic_store(&phase, 3);
}

static void drop(Task *task)
{
        (void)task;
}

static void wait_for(int wanted)
{
        while (atomic_load(&phase) < wanted)
                nap();
}

Test(workers, a_run_that_gives_no_sign_of_life_counts_as_stalled_until_it_ends, .timeout = 60)
{
        Workers *workers;
        Task task = { .run = run_like_a_run, .drop = drop, .is_request = true };
        cr_assert_eq(workers_start(2, 1, 10, &workers), STATUS_OK);
        cr_assert_eq(workers_stalled(workers, 0), 0);
        cr_assert(workers_submit(workers, &task));
        wait_for(1);
        nap();
        cr_assert_eq(workers_stalled(workers, 1000000), 1);
        cr_assert_eq(workers_stalled(workers, (int64_t)3600 * 1000000000), 0);
        atomic_store(&phase, 2);
        while (workers_stalled(workers, 0) != 0)
                nap();
        workers_stop(workers);
}

static _Atomic int64_t ran_ns;

static void note_when(Task *task, Worker *worker)
{
        (void)task, (void)worker;
        atomic_store(&ran_ns, clock_ns());
}

Test(workers, idle_work_waits_until_it_is_due_and_other_idle_work_can_only_make_that_earlier, .timeout = 60)
{
        const int64_t hour_ns = (int64_t)3600 * 1000000000;
        Workers *workers;
        int64_t now = clock_ns(), soon = now + 50000000;
        Task task = { .run = note_when, .drop = drop, .is_idle = true, .due_ns = now + hour_ns };
        Task sooner = { .run = note_when, .drop = drop, .is_idle = true, .due_ns = soon }, later = sooner;
        later.due_ns = now + 2 * hour_ns;
        cr_assert_eq(workers_start(2, 1, 10, &workers), STATUS_OK);
        cr_assert(workers_submit(workers, &task));
        cr_assert_not(workers_submit(workers, &sooner), "one is enough");
        cr_assert_not(workers_submit(workers, &later));
        while (atomic_load(&ran_ns) == 0)
                nap();
        cr_assert_geq(atomic_load(&ran_ns), soon);
        workers_stop(workers);
}

Test(workers, polls_are_signs_of_life)
{
        RunContext ctx;
        _Atomic int64_t beat = 0;
        run_context_init(&ctx);
        cr_assert_eq(run_poll(&ctx), STATUS_OK);
        ctx.beat = &beat;
        int64_t before = clock_ns();
        cr_assert_eq(run_poll(&ctx), STATUS_OK);
        cr_assert_geq(atomic_load(&beat), before);
        ctx.deadline_ns = 1;
        atomic_store(&beat, 0);
        cr_assert_eq(run_poll(&ctx), STATUS_DEADLINE);
        cr_assert_geq(atomic_load(&beat), before);
}
