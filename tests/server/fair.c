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
        *task = (Task){ .kind = load->kind, .is_request = true, .queued_ns = load->next++ };
        fair_add(queue, task);
}

static Load *serve(Load *loads, int n)
{
        Task *task = fair_next(queue);
        cr_assert_not_null(task);
        for (int i = 0; i < n; i++) {
                if (loads[i].kind != task->kind)
                        continue;
                int64_t charged = fair_begin(queue, task->kind);
                fair_remove(queue, task);
                fair_end(queue, task->kind, charged, loads[i].ns, 1);
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
                cr_assert_eq(fair_next(queue), &load.tasks[i]);
                serve(&load, 1);
        }
        cr_assert_null(fair_next(queue));
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
        cr_expect_eq(fair_end_ns(queue, 4, 1), 0);
        add(&loads[0]);
        serve(loads, 2);
        cr_expect_eq(fair_end_ns(queue, 4, 1), 1000);
        for (int i = 0; i < 10; i++)
                add(&loads[0]);
        cr_expect_eq(fair_end_ns(queue, 4, 1), 11000);
        cr_expect_eq(fair_end_ns(queue, 4, 2), 6000);
        add(&loads[1]);
        serve(loads, 2); // one of either
        serve(loads, 2);
        for (int i = 0; i < 30; i++)
                add(&loads[1]);
        int64_t ns = fair_end_ns(queue, 4, 1);
        cr_expect(ns >= 19000 && ns <= 21000, "as long as both take turns: %lld", (long long)ns);
}
