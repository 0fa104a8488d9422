// SPDX-License-Identifier: Apache-2.0
// fair.c: kinds of tasks take turns by the time that they use.
#include "server/fair.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "server/workers.h"

enum { TASKS = 400 };

typedef struct Load { // tasks of one kind that always wait, each of which takes `ns`
        uint64_t kind;
        int64_t ns, served_ns;
        uint8_t level;
        Task tasks[TASKS];
        int next;
} Load;

static FairQueue *queue;

static void start(void)
{
        queue = calloc(1, sizeof(*queue));
        cr_assert_not_null(queue);
}

static void end(void)
{
        free(queue);
}

TestSuite(fair, .init = start, .fini = end);

static void add(Load *load)
{
        Task *task = &load->tasks[load->next];
        *task = (Task){
                .kind = load->kind, .level = load->level, .is_request = true, .queued_ns = load->next++
        };
        fair_add(queue, task);
}

static Load *serve(Load *loads, int n)
{
        Task *task = fair_next(queue, INT64_MAX);
        cr_assert_not_null(task);
        for (int i = 0; i < n; i++) {
                if (loads[i].kind != task->kind)
                        continue;
                FairDone done = {
                        .kind = task->kind, .level = task->level, .took_ns = loads[i].ns, .n_tasks = 1
                };
                done.charged_ns = fair_begin(queue, task);
                fair_remove(queue, task);
                fair_end(queue, &done);
                loads[i].served_ns += loads[i].ns;
                return &loads[i];
        }
        cr_assert_fail("a task of nobody");
        return NULL;
}

Test(fair, tasks_of_one_kind_keep_their_order)
{
        static Load load = { .kind = 7, .ns = 100 };
        for (int i = 0; i < 5; i++)
                add(&load);
        for (int i = 0; i < 5; i++) {
                cr_assert_eq(fair_next(queue, INT64_MAX), &load.tasks[i]);
                serve(&load, 1);
        }
        cr_assert_null(fair_next(queue, INT64_MAX));
        cr_assert_eq(queue->n_queued, 0);
}

Test(fair, kinds_get_equal_time_whatever_their_tasks_take)
{
        static Load loads[3] = { { .kind = 4, .ns = 1000 },
                                 { .kind = 5, .ns = 10000 },
                                 { .kind = 6, .ns = 50000 } };
        for (int k = 0; k < 3; k++)
                for (int i = 0; i < TASKS; i++)
                        add(&loads[k]);
        while (loads[0].served_ns < 300000)
                serve(loads, 3);
        for (int k = 0; k < 3; k++) // within the two tasks of the slowest that may be under way
                cr_expect_leq(llabs(loads[k].served_ns - 300000), 100000, "kind %d was served %lld ns", k,
                              (long long)loads[k].served_ns);
}

Test(fair, a_kind_that_was_idle_saves_up_no_time_and_is_next)
{
        static Load loads[2] = { { .kind = 4, .ns = 1000 }, { .kind = 5, .ns = 1000 } };
        for (int i = 0; i < TASKS; i++)
                add(&loads[0]);
        for (int i = 0; i < 200; i++)
                serve(loads, 2);
        for (int i = 0; i < 50; i++)
                add(&loads[1]);
        int n_second = 0;
        for (int i = 0; i < 20; i++)
                n_second += serve(loads, 2) == &loads[1];
        cr_expect(n_second >= 9 && n_second <= 11, "%d of 20", n_second);
}

Test(fair, one_long_task_does_not_lock_its_kind_out)
{
        static Load loads[2] = { { .kind = 4, .ns = 1000000 }, { .kind = 5, .ns = 10000000000 } };
        add(&loads[1]);
        serve(loads, 2);
        for (int i = 0; i < 200; i++)
                add(&loads[0]);
        loads[1].ns = 1000000;
        add(&loads[1]);
        int n = 1; // at most 50 ms of the others come first
        while (serve(loads, 2) != &loads[1])
                n++;
        cr_expect_leq(n, 52);
}

Test(fair, the_end_of_a_further_task_follows_from_what_waits)
{
        static Load loads[2] = { { .kind = 4, .ns = 1000 }, { .kind = 5, .ns = 1000 } };
        cr_expect_eq(fair_end_ns(queue, 4, 0, 1), 0);
        add(&loads[0]);
        serve(loads, 2);
        cr_expect_eq(fair_end_ns(queue, 4, 0, 1), 1000);
        for (int i = 0; i < 10; i++)
                add(&loads[0]);
        cr_expect_eq(fair_end_ns(queue, 4, 0, 1), 11000);
        cr_expect_eq(fair_end_ns(queue, 4, 0, 2), 6000);
        add(&loads[1]);
        serve(loads, 2); // one of either
        serve(loads, 2);
        for (int i = 0; i < 30; i++)
                add(&loads[1]);
        int64_t ns = fair_end_ns(queue, 4, 0, 1);
        cr_expect(ns >= 19000 && ns <= 21000, "as long as both take turns: %lld", (long long)ns);
}

// The machine slept, or a program was built: as many tasks as workers took longer than all others.
Test(fair, the_end_of_a_further_task_is_told_by_tasks_as_they_usually_are)
{
        static Load load = { .kind = 4, .ns = 4000000000 };
        for (int i = 0; i < 100; i++) {
                load.ns = i == 0 || i == 50 || i == 53 ? 4000000000 : 1000;
                add(&load);
                serve(&load, 1);
                cr_expect_eq(fair_end_ns(queue, 4, 0, 1), i == 0 ? 4000000000 : 1000, "after %d", i + 1);
        }
        load.ns = 4000000000;
        for (int i = 0; i < 14; i++) {
                add(&load);
                serve(&load, 1);
        }
        cr_expect_geq(fair_end_ns(queue, 4, 0, 1), 3000000000, "they came to take longer");
}

static Task *waiting(Task *task, uint8_t level, int64_t queued_ns)
{
        *task = (Task){ .kind = 7, .level = level, .is_request = true, .queued_ns = queued_ns };
        fair_add(queue, task);
        return task;
}

Test(fair, a_level_counts_as_much_as_a_second_of_waiting)
{
        Task late, usual, first, old;
        waiting(&old, 5, 5000000000);
        waiting(&usual, 0, 10000000000);
        waiting(&late, 9, 10000000000);
        waiting(&first, 1, 10000000001);
        Task *order[] = { &old, &first, &usual, &late };
        FairPlaces places = { .begun = false };
        for (int i = 0; i < 4; i++)
                cr_assert_eq(fair_walk(queue, 7, &places), order[i], "place %d", i);
        cr_assert_null(fair_walk(queue, 7, &places));
        for (int i = 0; i < 4; i++) {
                cr_assert_eq(fair_next(queue, INT64_MAX), order[i], "place %d", i);
                fair_remove(queue, order[i]);
        }
}

Test(fair, a_better_level_of_one_kind_gets_more_time_and_leaves_some_to_the_other)
{
        static Load loads[2] = { { .kind = 4, .ns = 1000, .level = 3 }, { .kind = 5, .ns = 1000 } };
        for (int k = 0; k < 2; k++)
                for (int i = 0; i < TASKS; i++)
                        add(&loads[k]);
        for (int i = 0; i < 200; i++)
                serve(loads, 2);
        cr_expect_geq(loads[0].served_ns, 150000); // of 200,000, four times as much as the other
        cr_expect_geq(loads[1].served_ns, 30000);
}

Test(fair, a_held_task_goes_when_it_is_due_or_others_have_joined_it)
{
        Task held[3], other = { .kind = 8, .is_request = true, .queued_ns = 9 };
        for (int i = 0; i < 2; i++) {
                held[i] = (Task){
                        .kind = 7, .is_request = true, .queued_ns = i + 1, .hold_ns = 100 + i, .hold_for = 3
                };
                fair_add(queue, &held[i]);
        }
        cr_assert_null(fair_next(queue, 50));
        cr_assert_eq(fair_due_ns(queue), 100);
        fair_add(queue, &other);
        cr_assert_eq(fair_next(queue, 50), &other);
        fair_remove(queue, &other);
        cr_assert_eq(fair_next(queue, 100), &held[0]);
        held[2] = (Task){ .kind = 7, .is_request = true, .queued_ns = 3, .hold_ns = 102, .hold_for = 3 };
        fair_add(queue, &held[2]);
        cr_assert_eq(fair_next(queue, 50), &held[0]);
        for (int i = 0; i < 3; i++)
                fair_remove(queue, &held[i]);
        cr_assert_eq(queue->n_held, 0);
        cr_assert_eq(fair_due_ns(queue), INT64_MAX);
}

Test(fair, the_first_held_task_is_asked_for_among_kinds_that_are_short)
{
        static Load loads[3] = { { .kind = 4, .ns = 1000 }, { .kind = 5, .ns = 8000 }, { .kind = 6 } };
        static Task held[3];
        for (int k = 0; k < 2; k++) { // the third one's time is not known
                add(&loads[k]);
                serve(loads, 2);
        }
        for (int k = 0; k < 3; k++) {
                held[k] = (Task){
                        .kind = loads[k].kind, .is_request = true, .hold_ns = 300 - 100 * k, .hold_for = 2
                };
                fair_add(queue, &held[k]);
        }
        cr_expect_eq(fair_due_ns(queue), 100);
        cr_expect_eq(fair_due_short_ns(queue, 8000), 200);
        cr_expect_eq(fair_due_short_ns(queue, 7999), 300);
        cr_expect_eq(fair_due_short_ns(queue, 999), INT64_MAX);
        cr_expect_null(fair_next_short(queue, 7999, 299));
        cr_expect_eq(fair_next_short(queue, 7999, 300), &held[0]);
}

Test(fair, a_held_task_does_not_hold_those_behind_it)
{
        Task first = { .kind = 7, .is_request = true, .queued_ns = 1, .hold_ns = 1000, .hold_for = 4 },
             hurried = { .kind = 7, .is_request = true, .queued_ns = 2, .hold_ns = 100, .hold_for = 4 },
             other = { .kind = 7 + FAIR_FLOWS, .is_request = true, .queued_ns = 3 };
        fair_add(queue, &first);
        fair_add(queue, &hurried);
        cr_expect_null(fair_next(queue, 50));
        cr_expect_eq(fair_due_ns(queue), 100);
        cr_expect_eq(fair_next(queue, 100), &hurried);
        fair_add(queue, &other);
        cr_expect_eq(fair_next(queue, 50), &other);
        cr_expect_eq(fair_next(queue, 1000), &first);
}

// Runs with time to spare cost their graph's other callers nothing.
Test(fair, one_of_a_late_level_is_no_burden_to_others_of_its_kind)
{
        static Task tasks[3 * TASKS];
        int64_t served[2] = { 0, 0 };
        for (int i = 0; i < TASKS; i++) {
                Task *late = &tasks[3 * i], *usual = late + 1, *other = late + 2;
                *late = (Task){ .kind = 7, .level = 9, .is_request = true, .queued_ns = i - 8000000000 };
                *usual = (Task){ .kind = 7, .is_request = true, .queued_ns = i };
                *other = (Task){ .kind = 8, .is_request = true, .queued_ns = i };
                fair_add(queue, late);
                fair_add(queue, usual);
                fair_add(queue, other);
        }
        for (int i = 0; i < 200; i++) {
                Task *task = fair_next(queue, INT64_MAX);
                FairDone done = { .kind = task->kind, .level = task->level, .took_ns = 1000, .n_tasks = 1 };
                done.charged_ns = fair_begin(queue, task);
                fair_remove(queue, task);
                fair_end(queue, &done);
                served[task->kind - 7]++;
        }
        cr_expect_geq(served[0], 90);
        cr_expect_geq(served[1], 90);
}
