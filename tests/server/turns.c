// SPDX-License-Identifier: Apache-2.0
#include "server/turns.h"
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "core/base/clock.h"

static const int64_t SECOND_NS = 1000000000;
static Turns turns;

static void init(void)
{
        turns_init(&turns);
}

static void deinit(void)
{
        turns_deinit(&turns);
}

TestSuite(turns, .init = init, .fini = deinit, .timeout = 60);

// How long a run that began a second ago waits.
static int64_t given_ns(void)
{
        int64_t now_ns = clock_ns();
        Turn turn = { .began_ns = now_ns - SECOND_NS };
        turns_give(&turns, &turn, now_ns);
        return turn.given_ns;
}

Test(turns, nobody_waits_while_no_core_is_needed)
{
        cr_assert_eq(given_ns(), 0);
        turns_need(&turns, TURN_EXPRESS);
        turns_done(&turns, TURN_EXPRESS);
        cr_assert_eq(given_ns(), 0);
}

Test(turns, one_that_does_not_come_is_forgotten)
{
        turns_need(&turns, TURN_LOOP);
        cr_assert_gt(given_ns(), 0);
        cr_assert_eq(given_ns(), 0);
}

Test(turns, short_runs_and_runs_that_gave_much_do_not_wait)
{
        int64_t now_ns = clock_ns();
        Turn shorter = { .began_ns = now_ns - 1000 };
        Turn new_one = { .began_ns = now_ns - 1000, .is_long = true };
        Turn generous = { .began_ns = now_ns - SECOND_NS, .given_ns = SECOND_NS / 2 };
        turns_need(&turns, TURN_LOOP);
        turns_give(&turns, &shorter, now_ns);
        turns_give(&turns, &generous, now_ns);
        cr_assert_eq(shorter.given_ns, 0);
        cr_assert_eq(generous.given_ns, SECOND_NS / 2);
        cr_assert_neq(atomic_load(&turns.needed), 0);
        turns_give(&turns, &new_one, now_ns);
        cr_assert_gt(new_one.given_ns, 0, "runs like it take long");
}

// How long the run after `last` waits, once it has given a millisecond.
static int64_t given_after(Turn last)
{
        int64_t now_ns = clock_ns();
        Turn turn = turns_next(&last, true, now_ns - 1000);
        turn.given_ns = 1000000;
        turns_need(&turns, TURN_LOOP);
        turns_give(&turns, &turn, now_ns);
        turns_done(&turns, TURN_LOOP);
        return turn.given_ns - 1000000;
}

Test(turns, a_run_gives_what_those_before_it_saved_but_no_more_than_a_few_milliseconds)
{
        cr_assert_eq(given_after((Turn){ .ran_ns = 0 }), 0);
        cr_assert_gt(given_after((Turn){ .ran_ns = 10000000 }), 0);
        cr_assert_gt(given_after((Turn){ .saved_ns = 2000000 }), 0, "short runs in between keep it");
        cr_assert_eq(given_after((Turn){ .ran_ns = 10000000, .given_ns = 3000000 }), 0, "it gave it");
        Turn idle = { .ran_ns = SECOND_NS }, next = turns_next(&idle, true, clock_ns());
        cr_assert_gt(next.saved_ns, 0);
        cr_assert_lt(next.saved_ns, SECOND_NS / 100);
}

Test(turns, a_poll_counts_how_long_a_long_run_ran)
{
        int64_t now_ns = clock_ns();
        Turn turn = { .began_ns = now_ns - SECOND_NS }, shorter = { .began_ns = now_ns - 1000 };
        turns_give(&turns, &turn, now_ns);
        turns_give(&turns, &shorter, now_ns);
        cr_assert_eq(turn.ran_ns, SECOND_NS);
        cr_assert_eq(shorter.ran_ns, 0);
}

Test(turns, only_one_thread_gives_way)
{
        turns_need(&turns, TURN_LOOP);
        atomic_store(&turns.given, true);
        cr_assert_eq(given_ns(), 0);
}

enum { N_ROUNDS = 200, MOST_ROUNDS = 4000 };
static _Atomic int n_given, n_forgotten;

static bool tried_enough(void)
{
        int n = atomic_load(&n_given);
        return n >= MOST_ROUNDS || (n >= N_ROUNDS && atomic_load(&n_forgotten) < n);
}

static void *give(void *argument)
{
        (void)argument;
        while (!tried_enough()) {
                int64_t ns = given_ns();
                atomic_fetch_add(&n_forgotten, ns >= 2000000);
                atomic_fetch_add(&n_given, ns > 0);
        }
        return NULL;
}

// A wait that nobody ends takes 2 ms. On a busy machine most of the others take as long:
// so it goes on until one did not.
Test(turns, a_wait_ends_when_all_that_need_a_core_are_done)
{
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, give, NULL), 0);
        while (!tried_enough()) {
                turns_need(&turns, TURN_LOOP);
                turns_need(&turns, TURN_EXPRESS);
                turns_done(&turns, TURN_LOOP);
                // until somebody waits, or has waited for too long
                while (!atomic_load(&turns.given) && atomic_load(&turns.needed) != 0 && !tried_enough())
                        nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
                nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
                turns_done(&turns, TURN_EXPRESS);
        }
        pthread_join(thread, NULL);
        cr_assert_lt(atomic_load(&n_forgotten), atomic_load(&n_given));
}

Test(turns, a_loop_with_events_that_it_did_not_begin_with_is_waited_for)
{
        int ends[2];
        char byte = 0;
        cr_assert_eq(pipe(ends), 0);
        turns_watch_loop(&turns, ends[0]);
        cr_assert_eq(given_ns(), 0);
        cr_assert_eq(write(ends[1], &byte, 1), 1);
        cr_assert_gt(given_ns(), 0);
        cr_assert_eq(read(ends[0], &byte, 1), 1);
        cr_assert_eq(given_ns(), 0);
        cr_assert_eq(write(ends[1], &byte, 1), 1);
        turns_watch_loop(&turns, -1);
        cr_assert_eq(given_ns(), 0);
        close(ends[0]);
        close(ends[1]);
}
