// SPDX-License-Identifier: Apache-2.0
#include "server/workers.h"
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>
#include "core/base/limits.h"

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

static void wait_until_ended(Workers *workers)
{
        int64_t queued, running;
        do {
                nap();
                workers_counts(workers, &queued, &running);
        } while (queued + running > 0);
}

static void drop(Task *task)
{
        (void)task;
}

static void run_at_once(Task *task, Worker *worker)
{
        (void)task, (void)worker;
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
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        wait_for(1);
        nap();
        cr_assert_eq(workers_stalled(workers, 1000000), 1);
        cr_assert_eq(workers_stalled(workers, (int64_t)3600 * 1000000000), 0);
        atomic_store(&phase, 2);
        while (workers_stalled(workers, 0) != 0)
                nap();
        workers_stop(workers);
}

// Submits `n` of `tasks` to a worker that has nothing to do.
static void submit(Workers *workers, Task *tasks, int n)
{
        for (int i = 0; i < n; i++) {
                tasks[i] = (Task){ .run = run_at_once, .drop = drop, .is_request = true };
                cr_assert_eq(workers_submit(workers, &tasks[i]), SUBMITTED);
        }
}

// The same, and waits for a while. How many still wait: none where the worker was not asleep yet.
static int64_t still_queued(Workers *workers, Task *tasks, int n)
{
        int64_t queued, running;
        submit(workers, tasks, n);
        for (int i = 0; i < 10; i++)
                nap();
        workers_counts(workers, &queued, &running);
        return queued;
}

Test(workers, requests_that_come_together_wake_a_worker_together, .timeout = 60)
{
        enum { FEW = 3, TRIES = 100 };
        Task tasks[WORKERS_LATE_MOST + 1];
        Workers *workers;
        int64_t queued = 0;
        cr_assert_eq(workers_start(1, 1, 2 * WORKERS_LATE_MOST, &workers), STATUS_OK);
        workers_wake_late(workers, true);
        for (int i = 0; i < TRIES && queued == 0; i++) {
                queued = still_queued(workers, tasks, FEW);
                workers_wake(workers);
                wait_until_ended(workers);
        }
        cr_assert_eq(queued, FEW);
        submit(workers, tasks, WORKERS_LATE_MOST + 1); // so many wake it: the test ends
        wait_until_ended(workers);
        (void)still_queued(workers, tasks, FEW);
        workers_wake_late(workers, false);
        wait_until_ended(workers);
        submit(workers, tasks, FEW);
        wait_until_ended(workers);
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
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &sooner), IDLE_TASK_WAITS);
        cr_assert_eq(workers_submit(workers, &later), IDLE_TASK_WAITS);
        while (atomic_load(&ran_ns) == 0)
                nap();
        cr_assert_geq(atomic_load(&ran_ns), soon);
        workers_stop(workers);
}

static _Atomic int stop_idle, idle_began;

static void run_until_told_to_stop(Task *task, Worker *worker)
{
        (void)task;
        worker_stoppable(worker, &stop_idle);
        atomic_store(&idle_began, 1);
        while (atomic_load(&stop_idle) == 0)
                nap();
        worker_stoppable(worker, NULL);
}

static void run_until_the_idle_task_is_told(Task *task, Worker *worker)
{
        (void)task, (void)worker;
        while (atomic_load(&stop_idle) == 0)
                nap();
}

Test(workers, an_idle_task_is_told_to_stop_when_two_requests_come_together_and_one_thread_has_nothing_to_do,
     .timeout = 60)
{
        Workers *workers;
        Task idle = { .run = run_until_told_to_stop, .drop = drop, .is_idle = true };
        Task requests[2] = { { .run = run_until_the_idle_task_is_told, .drop = drop, .is_request = true } };
        requests[1] = requests[0];
        cr_assert_eq(workers_start(2, 1, 10, &workers), STATUS_OK);
        cr_assert_eq(workers_submit(workers, &idle), SUBMITTED);
        while (atomic_load(&idle_began) == 0)
                nap();
        nap(); // the other thread has gone to sleep
        for (int i = 0; i < 2; i++)
                cr_assert_eq(workers_submit(workers, &requests[i]), SUBMITTED);
        wait_until_ended(workers);
        workers_stop(workers);
}

typedef struct Flood { // requests that come back to the queue as soon as they have run
        Task task;     // first
        _Atomic int *end;
        _Atomic int n_runs;
} Flood;

static void run_again(Task *task, Worker *worker)
{
        Flood *flood = (Flood *)task;
        atomic_fetch_add(&flood->n_runs, 1);
        nap();
        if (atomic_load(flood->end) == 0)
                workers_resubmit(worker->pool, task);
}

static _Atomic int n_idle_runs;

static void run_idle_again(Task *task, Worker *worker)
{
        atomic_fetch_add(&n_idle_runs, 1);
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        task->by_ns = clock_ns();
        if (workers_submit(worker->pool, task) != SUBMITTED)
                cr_expect_fail("no idle task waits");
}

Test(workers, an_idle_task_that_is_overdue_begins_although_the_queue_is_never_empty, .timeout = 60)
{
        Workers *workers;
        _Atomic int end = 0;
        Flood floods[3] = { { .task = { .run = run_again, .drop = drop, .is_request = true } } };
        const int64_t hour_ns = (int64_t)3600 * 1000000000, now_ns = clock_ns();
        Task idle = { .run = note_when, .drop = drop, .is_idle = true, .by_ns = now_ns + hour_ns };
        Task sooner = idle, never = idle;
        cr_assert_eq(workers_start(1, 1, 10, &workers), STATUS_OK);
        for (int i = 0; i < 3; i++) {
                floods[i] = floods[0];
                floods[i].task.kind = (uint64_t)i;
                floods[i].end = &end;
                cr_assert_eq(workers_submit(workers, &floods[i].task), SUBMITTED);
        }
        cr_assert_eq(workers_submit(workers, &idle), SUBMITTED);
        sooner.by_ns = now_ns + 100000000;
        never.by_ns = 0;
        cr_assert_eq(workers_submit(workers, &sooner), IDLE_TASK_WAITS);
        cr_assert_eq(workers_submit(workers, &never), IDLE_TASK_WAITS);
        while (atomic_load(&ran_ns) == 0 && clock_ns() < now_ns + 20000000000)
                nap();
        cr_expect_geq(atomic_load(&ran_ns), now_ns + 100000000, "it began at %lld",
                      (long long)atomic_load(&ran_ns));
        atomic_store(&end, 1);
        wait_until_ended(workers);
        workers_stop(workers);
}

Test(workers, idle_tasks_that_are_overdue_leave_half_of_the_time_to_those_that_wait, .timeout = 60)
{
        enum { IDLE_RUNS = 6, REQUESTS = 2 * (IDLE_RUNS - 1) }; // 2 and 50 ms of sleep each
        Workers *workers;
        _Atomic int end = 0;
        Flood floods[2] = { { .task = { .run = run_again, .drop = drop, .is_request = true } } };
        Task idle = { .run = run_idle_again, .drop = drop, .is_idle = true, .by_ns = 1 };
        cr_assert_eq(workers_start(1, 1, 10, &workers), STATUS_OK);
        for (int i = 0; i < 2; i++) {
                floods[i] = floods[0];
                floods[i].end = &end;
                cr_assert_eq(workers_submit(workers, &floods[i].task), SUBMITTED);
        }
        cr_assert_eq(workers_submit(workers, &idle), SUBMITTED);
        while (atomic_load(&n_idle_runs) < IDLE_RUNS)
                nap();
        int n_runs = atomic_load(&floods[0].n_runs) + atomic_load(&floods[1].n_runs);
        cr_expect_geq(n_runs, REQUESTS, "%d requests ran", n_runs);
        atomic_store(&end, 1);
        wait_until_ended(workers);
        workers_stop(workers);
}

Test(workers, the_end_does_not_wait_for_a_task_that_does_not_end, .timeout = 60)
{
        Workers *workers;
        Task task = { .run = run_like_a_run, .drop = drop, .is_request = true };
        cr_assert_eq(workers_start(2, 1, 10, &workers), STATUS_OK);
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        wait_for(1);
        cr_assert_not(workers_end(workers, 20000000));
        atomic_store(&phase, 2);
        wait_for(3);
        cr_assert(workers_end(workers, (int64_t)3600 * 1000000000));
        workers_stop(workers);
}

static void run_for_a_while(Task *task, Worker *worker)
{
        (void)task, (void)worker;
        nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
}

static void teach(Workers *workers, uint64_t kind, void (*run)(Task *, Worker *))
{
        Task task = { .run = run, .drop = drop, .is_request = true, .kind = kind };
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        wait_until_ended(workers);
}

Test(workers, a_short_request_does_not_wait_for_the_long_one_that_has_the_only_worker, .timeout = 60)
{
        enum { LONG = 1, SHORT, UNKNOWN };
        Workers *workers;
        Task holds = { .run = run_like_a_run, .drop = drop, .is_request = true, .kind = LONG };
        Task passes = { .run = note_when, .drop = drop, .is_request = true, .kind = SHORT };
        Task unknown = { .run = note_when, .drop = drop, .is_request = true, .kind = UNKNOWN };
        Task alike = { .run = note_when, .drop = drop, .is_request = true, .kind = LONG };
        int64_t queued, running;
        cr_assert_eq(workers_start(1, 1, 10, &workers), STATUS_OK);
        teach(workers, LONG, run_for_a_while);
        teach(workers, SHORT, note_when);
        atomic_store(&ran_ns, 0);
        cr_assert_eq(workers_submit(workers, &holds), SUBMITTED);
        wait_for(1);
        cr_assert_eq(workers_submit(workers, &passes), SUBMITTED);
        while (atomic_load(&ran_ns) == 0)
                nap();
        cr_assert_eq(workers_submit(workers, &unknown), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &alike), SUBMITTED);
        for (int i = 0; i < 10; i++)
                nap();
        workers_counts(workers, &queued, &running);
        cr_expect_eq(queued, 2, "%lld wait", (long long)queued);
        atomic_store(&phase, 2);
        workers_stop(workers);
}

enum { HELD_LONG = 1, HELD_SHORT };
static const int64_t HOLD_NS = 100000000;

// The only worker knows two kinds.
static Workers *knows_two_kinds(Task *holds)
{
        Workers *workers;
        *holds = (Task){ .run = run_like_a_run, .drop = drop, .is_request = true, .kind = HELD_LONG };
        cr_assert_eq(workers_start(1, 1, 10, &workers), STATUS_OK);
        teach(workers, HELD_LONG, run_for_a_while);
        teach(workers, HELD_SHORT, note_when);
        atomic_store(&ran_ns, 0);
        return workers;
}

static Task held(uint64_t kind, int64_t until_ns)
{
        return (Task){ .run = note_when,
                       .drop = drop,
                       .is_request = true,
                       .kind = kind,
                       .hold_ns = until_ns,
                       .hold_for = 2 };
}

static void expect_run_from(int64_t hold_ns)
{
        while (atomic_load(&ran_ns) == 0 && clock_ns() < hold_ns + 20 * 1000000000LL)
                nap();
        cr_expect_geq(atomic_load(&ran_ns), hold_ns, "it ran at %lld", (long long)atomic_load(&ran_ns));
}

Test(workers, a_short_request_that_is_held_goes_when_its_hold_ends_while_the_only_worker_is_busy,
     .timeout = 60)
{
        Task holds;
        Workers *workers = knows_two_kinds(&holds);
        cr_assert_eq(workers_submit(workers, &holds), SUBMITTED);
        wait_for(1);
        int64_t hold_ns = clock_ns() + HOLD_NS;
        Task later = held(HELD_SHORT, hold_ns + 3600 * 1000000000LL), passes = held(HELD_SHORT, hold_ns);
        later.hold_for = passes.hold_for = 3;
        cr_assert_eq(workers_submit(workers, &later), SUBMITTED);
        nap(); // the express thread sleeps until then
        cr_assert_eq(workers_submit(workers, &passes), SUBMITTED);
        expect_run_from(hold_ns);
        atomic_store(&phase, 2);
        workers_stop(workers);
}

Test(workers, a_short_request_that_is_held_goes_when_its_hold_ends_though_the_worker_was_free_when_it_came,
     .timeout = 60)
{
        Task holds;
        Workers *workers = knows_two_kinds(&holds);
        int64_t hold_ns = clock_ns() + HOLD_NS;
        Task passes = held(HELD_SHORT, hold_ns);
        cr_assert_eq(workers_submit(workers, &passes), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &holds), SUBMITTED);
        expect_run_from(hold_ns);
        atomic_store(&phase, 2);
        workers_stop(workers);
}

static int64_t processor_ns(void)
{
        struct timespec used;
        cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
        return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

Test(workers, the_express_thread_sleeps_beside_requests_that_are_not_for_it, .timeout = 60)
{
        Task holds;
        Workers *workers = knows_two_kinds(&holds);
        cr_assert_eq(workers_submit(workers, &holds), SUBMITTED);
        wait_for(1);
        Task alike = held(HELD_LONG, clock_ns() + 1000000), waits = held(HELD_LONG, 0);
        Task short_one = held(HELD_SHORT, clock_ns() + 3600 * 1000000000LL);
        waits.hold_for = 0;
        cr_assert_eq(workers_submit(workers, &alike), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &waits), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &short_one), SUBMITTED);
        int64_t began_ns = processor_ns();
        nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
        cr_expect_lt(processor_ns() - began_ns, 100000000);
        atomic_store(&phase, 2);
        workers_stop(workers);
}

Test(workers, what_is_full_is_said, .timeout = 60)
{
        Workers *workers;
        Task task = { .run = run_like_a_run, .drop = drop, .is_request = true }, large = task, second = task,
             third = task;
        large.n_bytes = second.n_bytes = (size_t)limits.max_queue_bytes;
        cr_assert_eq(workers_start(1, 1, 2, &workers), STATUS_OK);
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        wait_for(1);
        cr_assert_eq(workers_submit(workers, &large), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &second), QUEUE_BYTES_FULL);
        second.n_bytes = 0;
        cr_assert_eq(workers_submit(workers, &second), SUBMITTED);
        cr_assert_eq(workers_submit(workers, &third), QUEUE_FULL);
        atomic_store(&phase, 2);
        workers_stop(workers);
}

typedef struct Seen {
        RunWatch watch; // first
        int64_t last_ns;
} Seen;

static void see(RunWatch *watch, int64_t now_ns)
{
        ((Seen *)watch)->last_ns = now_ns;
}

static void run_and_poll(Task *task, Worker *worker)
{
        (void)task;
        RunContext ctx;
        run_context_init(&ctx);
        worker_begins_run(worker, &ctx, clock_ns() - 1000000000);
        atomic_store(&phase, 1);
        while (atomic_load(&phase) < 2)
                (void)run_poll(&ctx);
        cr_expect_gt(worker->turn.given_ns, 0);
        cr_expect_lt(clock_ns() - atomic_load(&worker->beat_ns), 60000000000);
        atomic_store(&phase, 3);
}

Test(workers, a_long_run_gives_way_at_its_polls_to_who_needs_a_core, .timeout = 60)
{
        Workers *workers;
        Task task = { .run = run_and_poll, .drop = drop, .is_request = true };
        cr_assert_eq(workers_start(1, 1, 10, &workers), STATUS_OK);
        cr_assert_eq(workers_submit(workers, &task), SUBMITTED);
        wait_for(1);
        turns_need(workers_turns(workers), TURN_LOOP);
        while (atomic_load(&workers_turns(workers)->needed) != 0) // forgotten after the wait
                nap();
        atomic_store(&phase, 2);
        wait_for(3);
        workers_stop(workers);
}

static void begin_a_run(Task *task, Worker *worker)
{
        RunContext ctx;
        run_context_init(&ctx);
        worker_begins_run(worker, &ctx, clock_ns());
        atomic_store(&phase, task->kind == HELD_LONG && worker->turn.is_long     ? 1
                             : task->kind == HELD_SHORT && !worker->turn.is_long ? 2
                                                                                 : 3);
}

Test(workers, a_run_of_a_kind_whose_runs_took_long_gives_way_from_its_beginning, .timeout = 60)
{
        Task holds;
        Workers *workers = knows_two_kinds(&holds);
        for (uint64_t kind = HELD_LONG; kind <= HELD_SHORT; kind++) {
                teach(workers, kind, begin_a_run);
                cr_expect_eq(atomic_load(&phase), (int)kind);
        }
        workers_stop(workers);
}

Test(workers, polls_are_signs_of_life)
{
        RunContext ctx;
        Seen seen = { .watch = { see } };
        run_context_init(&ctx);
        cr_assert_eq(run_poll(&ctx), STATUS_OK);
        ctx.watch = &seen.watch;
        int64_t before = clock_ns();
        cr_assert_eq(run_poll(&ctx), STATUS_OK);
        cr_assert_geq(seen.last_ns, before);
        ctx.deadline_ns = 1;
        seen.last_ns = 0;
        cr_assert_eq(run_poll(&ctx), STATUS_DEADLINE);
        cr_assert_geq(seen.last_ns, before);
}

// Threads let go of the mutex while they give memory back, and may be told to end then.
Test(workers, threads_end_while_they_give_memory_back, .timeout = 60)
{
        for (int round = 0; round < 3000; round++) {
                Workers *workers;
                cr_assert_eq(workers_start(2, 1, 10, &workers), STATUS_OK);
                for (volatile int i = 0; i < round * 20; i = i + 1)
                        continue;
                workers_shrink(workers);
                for (volatile int i = 0; i < round % 100 * 50; i = i + 1)
                        continue;
                cr_assert(workers_end(workers, (int64_t)5 * 1000000000), "in round %d", round);
                workers_stop(workers);
        }
}
