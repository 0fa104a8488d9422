// SPDX-License-Identifier: Apache-2.0
// Programs as callers see them: eager, parked, ready. "many" stands for more nodes than are
// compiled at once.
#include <pthread.h>
#include "core/engine/describe.h"
#include "tests/engine/caller.h"

TestSuite(build, .init = start, .fini = stop);

Test(build, sixty_four_callers_that_want_a_program_get_it_from_one_build)
{
        enum { N = 64 };
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Graph *graph = graph_of(version);
        static Caller callers[N];
        uint32_t n_builds = 0;
        for (int i = 0; i < N; i++) {
                call(&callers[i], graph, 3, RUN_MODE_COMPILED);
                cr_assert(callers[i].wait.parked);
                n_builds += callers[i].wait.work != NULL;
        }
        cr_assert_eq(n_builds, 1);
        cr_assert_eq(count(engine_work_do(callers[0].wait.work)), N);
        for (int i = 0; i < N; i++) {
                bool again;
                cr_assert_eq(engine_planned(&callers[i].plan, &callers[i].ticket, &again), STATUS_OK);
                cr_assert_not(again);
                cr_assert_eq(callers[i].plan.program, callers[0].plan.program);
        }
        cr_assert_eq(run(&callers[5]), 1.5f);
        for (int i = 0; i < N; i++)
                leave(&callers[i]);
        cr_assert_eq(engine_stats(engine).compiles, 1);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, the_second_hit_starts_a_build_and_everybody_goes_on_eagerly_until_it_is_there)
{
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Graph *graph = graph_of(version);
        Caller first, second, third, fourth;
        call(&first, graph, 3, RUN_MODE_AUTO);
        cr_assert(!first.wait.parked && first.plan.program == NULL && first.wait.work == NULL);
        call(&second, graph, 3, RUN_MODE_AUTO);
        cr_assert(!second.wait.parked && second.plan.program == NULL && second.wait.work != NULL);
        cr_assert_not(second.wait.at_once);
        call(&third, graph, 3, RUN_MODE_AUTO);
        cr_assert(!third.wait.parked && third.plan.program == NULL && third.wait.work == NULL,
                  "one build is enough");
        cr_assert_null(engine_work_do(second.wait.work), "nobody waited");
        call(&fourth, graph, 3, RUN_MODE_AUTO);
        cr_assert_not_null(fourth.plan.program);
        cr_assert_eq(run(&first), run(&fourth));
        leave(&first);
        leave(&second);
        leave(&third);
        leave(&fourth);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, a_failed_build_answers_all_its_waiters_with_its_failure_and_the_next_caller_tries_again)
{
        GraphVersion *version = put_chain("bad", "torch.tril", 1);
        Graph *graph = graph_of(version);
        Caller first, second, third;
        bool again;
        call(&first, graph, 3, RUN_MODE_COMPILED);
        call(&second, graph, 3, RUN_MODE_COMPILED);
        engine_work_do(first.wait.work);
        cr_assert_neq(engine_planned(&first.plan, &first.ticket, &again), STATUS_OK);
        cr_assert_not(again);
        Status status = engine_planned(&second.plan, &second.ticket, &again);
        cr_assert(status_class(status) == STATUS_CLASS_CALLER, "%s", status_code(status));
        cr_assert_neq(failure_current()->message[0], '\0');
        call(&third, graph, 3, RUN_MODE_COMPILED);
        cr_assert_not_null(third.wait.work, "a failure is not remembered");
        engine_work_do(third.wait.work);
        leave(&first);
        leave(&second);
        leave(&third);
        cr_assert_eq(engine_stats(engine).compiles, 0);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, the_one_that_came_first_may_leave_without_stopping_the_build_of_the_others)
{
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Graph *graph = graph_of(version);
        Caller first, second;
        bool again;
        call(&first, graph, 3, RUN_MODE_COMPILED);
        call(&second, graph, 3, RUN_MODE_COMPILED);
        EngineWork *build = first.wait.work;
        cr_assert(ticket_cancel(&first.ticket));
        leave(&first);
        cr_assert_eq(count(engine_work_do(build)), 1);
        cr_assert_eq(engine_planned(&second.plan, &second.ticket, &again), STATUS_OK);
        cr_assert_not_null(second.plan.program);
        leave(&second);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, a_build_that_nobody_wants_any_more_stops_and_counts_as_nothing)
{
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Graph *graph = graph_of(version);
        Caller first, next;
        call(&first, graph, 3, RUN_MODE_COMPILED);
        EngineWork *build = first.wait.work;
        cr_assert(ticket_cancel(&first.ticket));
        leave(&first);
        cr_assert_eq(atomic_load(engine_work_stop(build)), 1);
        call(&next, graph, 3, RUN_MODE_COMPILED);
        cr_assert_not_null(next.wait.work, "what is stopping is not waited for");
        cr_assert_null(engine_work_do(build));
        cr_assert_eq(engine_stats(engine).compiles, 0);
        cr_assert_eq(count(engine_work_drop(next.wait.work)), 1);
        bool again;
        cr_assert_eq(engine_planned(&next.plan, &next.ticket, &again), STATUS_OK);
        cr_assert(again, "given up by the server: plan again");
        leave(&next);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, a_graph_deleted_while_it_is_built_still_serves_who_waits)
{
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Graph *graph = graph_of(version);
        Caller caller;
        bool again;
        call(&caller, graph, 3, RUN_MODE_COMPILED);
        cr_assert_eq(engine_delete(engine, "many", 0), STATUS_OK);
        cr_assert_eq(count(engine_work_do(caller.wait.work)), 1);
        cr_assert_eq(engine_planned(&caller.plan, &caller.ticket, &again), STATUS_OK);
        cr_assert_eq(run(&caller), 1.5f);
        leave(&caller);
        cr_assert_eq(engine_stats(engine).programs.n_entries, 0, "and is gone afterwards");
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, a_graph_keeps_its_sixty_four_most_recently_used_programs)
{
        GraphVersion *version = put_chain("short", "torch.neg", 1),
                     *other = put_chain("other", "torch.abs", 1);
        Graph *graph = graph_of(version), *graph_of_other = graph_of(other);
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        Caller caller;
        call(&caller, graph_of_other, 3, RUN_MODE_COMPILED);
        engine_work_do(caller.wait.work);
        leave(&caller);
        for (int size = 1; size <= ENGINE_MAX_PROGRAMS + 3; size++) {
                call(&caller, graph, size, RUN_MODE_COMPILED);
                engine_work_do(caller.wait.work);
                leave(&caller);
        }
        cr_assert_eq(engine_programs(engine, other, programs), 1);
        program_unref(programs[0].program);
        cr_assert_eq(engine_programs(engine, version, programs), ENGINE_MAX_PROGRAMS);
        cr_assert_eq(programs[0].program->signature[0].tensor->meta.size[0], ENGINE_MAX_PROGRAMS + 3,
                     "the newest first");
        cr_assert_eq(programs[ENGINE_MAX_PROGRAMS - 1].program->signature[0].tensor->meta.size[0], 4,
                     "the oldest have left");
        for (int i = 0; i < ENGINE_MAX_PROGRAMS; i++)
                program_unref(programs[i].program);
        cr_assert_eq(engine_stats(engine).programs.evictions, 3);
        graph_unref(graph);
        graph_unref(graph_of_other);
        graph_version_unref(version);
        graph_version_unref(other);
}

// ---- threads ----
typedef struct Racer {
        pthread_t thread;
        Graph *graph;
} Racer;

static void *race(void *argument)
{
        Racer *racer = argument;
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[1] = { 7 };
        meta_init(&meta, DTYPE_F32, 1, sizes);
        if (tensor_new(&meta, NULL, &tensor) != STATUS_OK)
                return NULL;
        Value input = value_tensor_take(tensor);
        RunRequest request = { .inputs = { &input, 1 }, .mode = RUN_MODE_COMPILED };
        PlannedRun plan = { .graph = NULL };
        Ticket ticket = { .next = NULL };
        Wait wait;
        if (engine_bind(racer->graph, &request, &plan) == STATUS_OK &&
            engine_plan(engine, &plan, &ticket, &wait) == STATUS_OK && wait.work != NULL)
                engine_work_do(wait.work);
        // Who is parked waits for its wake-up in the server; here it is enough to see that there
        // was one build.
        if (!ticket_cancel(&ticket))
                ticket_drop(&ticket);
        planned_run_deinit(&plan);
        value_clear(&input);
        return NULL;
}

Test(build, threads_that_come_at_once_make_one_program)
{
        enum { N = 16 };
        GraphVersion *version = put_chain("many", "torch.neg", 101);
        Racer racers[N];
        for (int i = 0; i < N; i++) {
                racers[i].graph = graph_of(version);
                pthread_create(&racers[i].thread, NULL, race, &racers[i]);
        }
        for (int i = 0; i < N; i++) {
                pthread_join(racers[i].thread, NULL);
                graph_unref(racers[i].graph);
        }
        cr_assert_eq(engine_stats(engine).compiles, 1);
        graph_version_unref(version);
}
