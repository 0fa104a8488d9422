// SPDX-License-Identifier: Apache-2.0
// Programs that are built before anybody asks for them.
#include <unistd.h>
#include "tests/engine/caller.h"
#include "tests/engine/scratch.h"

TestSuite(warm_up, .init = start, .fini = stop);

// neg of x, whose first size is `size` (a number, or a symbol in quotes).
static GraphVersion *put_typed(const char *name, const char *size)
{
        Text text = { 0 };
        text_addf(&text,
                  "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": "
                  "\"x\", \"meta\": {\"dtype\": "
                  "\"float32\", \"shape\": [%s]}}, {\"op\": \"call_function\", \"name\": \"y\", \"target\": "
                  "\"torch.neg\", \"args\": "
                  "[\"%%x\"]}, "
                  "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%%y\"]}]}",
                  size);
        return put_text(name, &text);
}

Test(warm_up, a_graph_whose_signature_leaves_nothing_open_is_built_before_its_first_run)
{
        GraphVersion *version = put_typed("closed", "3");
        Graph *graph = graph_of(version);
        Caller caller;
        int64_t due_ns = -1, by_ns = -1;
        cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
        cr_assert_eq(due_ns, 0);
        cr_assert_eq(by_ns, 0, "nobody waits for it");
        EngineWork *build = engine_idle_work(engine, 1);
        cr_assert_not_null(build);
        cr_assert_null(engine_work_do(build));
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        call(&caller, graph, 3, RUN_MODE_AUTO);
        cr_assert_not_null(caller.plan.program, "the first run is planned");
        cr_assert_eq(run(&caller), 1.5f);
        leave(&caller);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(warm_up, sizes_that_are_open_are_not_guessed)
{
        GraphVersion *open = put_typed("open", "\"N\"");
        cr_assert_null(engine_idle_work(engine, 1));
        graph_version_unref(open);
}

Test(warm_up, sizes_that_no_tensor_can_have_are_not_warmed_up)
{
        GraphVersion *huge = put_typed("huge", "4611686018427387904, 4, 4"),
                     *large = put_typed("large", "65536, 65536");
        cr_assert_null(engine_idle_work(engine, 1));
        graph_version_unref(huge);
        graph_version_unref(large);
}

// Until the engine's idle work is due.
static void wait_until_due(void)
{
        int64_t due_ns = 0, by_ns;
        cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
        while (clock_ns() < due_ns)
                cr_assert_eq(usleep(1000), 0);
}

Test(warm_up, a_warm_up_that_was_stopped_is_tried_again_after_pauses_that_double)
{
        enum { STOPS = 3, PAUSE_NS = 100000000 };
        GraphVersion *version = put_typed("closed", "5");
        EngineWork *build = engine_idle_work(engine, 1);
        int64_t due_ns = 0, by_ns;
        for (int i = 0; i < STOPS; i++) {
                cr_assert_not_null(build);
                atomic_store(engine_work_stop(build), 1);
                int64_t began_ns = clock_ns();
                cr_assert_null(engine_work_do(build));
                int64_t ended_ns = clock_ns(), pause_ns = (int64_t)PAUSE_NS << i;
                cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
                cr_assert_geq(due_ns - began_ns, pause_ns);
                cr_assert_leq(due_ns - ended_ns, pause_ns);
                cr_assert_eq(engine_stats(engine).compiles, 0);
                cr_assert_eq(engine_stats(engine).programs.n_entries, 0);
                build = engine_idle_work(engine, 1);
                cr_assert(build == NULL || clock_ns() >= due_ns, "not before it is due");
                if (build == NULL) {
                        wait_until_due();
                        build = engine_idle_work(engine, 1);
                }
        }
        cr_assert_not_null(build);
        cr_assert_null(engine_work_do(build));
        cr_assert_eq(engine_stats(engine).compiles, 1);
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        graph_version_unref(version);
}

Test(warm_up, tuning_that_was_stopped_more_than_three_times_is_not_given_up)
{
        enum { STOPS = 4 };
        char *folder = scratch_make();
        EngineOptions options = { .data_folder = folder, .loader = upload_loader };
        engine_close(engine);
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
        GraphVersion *version = put_typed("closed", "5");
        int64_t due_ns, by_ns;
        for (int i = 0; i <= STOPS; i++) {
                EngineWork *build = engine_idle_work(engine, 1);
                cr_assert_not_null(build, "after %d stops", i);
                atomic_store(engine_work_stop(build), i < STOPS);
                cr_assert_null(engine_work_do(build));
                if (i < STOPS)
                        wait_until_due();
        }
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        cr_assert_eq(engine_stats(engine).programs.n_entries, 1);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
        start();
}

Test(warm_up, a_warm_up_that_was_stopped_because_its_graph_goes_is_not_tried_again)
{
        GraphVersion *version = put_typed("closed", "5");
        int64_t due_ns, by_ns;
        EngineWork *build = engine_idle_work(engine, 1);
        cr_assert_not_null(build);
        cr_assert_eq(engine_delete(engine, "closed", 0), STATUS_OK);
        atomic_store(engine_work_stop(build), 1);
        cr_assert_null(engine_work_do(build));
        wait_until_due();
        cr_assert_null(engine_idle_work(engine, 1));
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        cr_assert_eq(engine_stats(engine).programs.n_entries, 0);
        graph_version_unref(version);
}

Test(warm_up, nothing_is_built_ahead_where_that_was_not_wanted)
{
        EngineOptions options = { .loader = upload_loader, .no_warm_up = true };
        engine_close(engine);
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
        GraphVersion *version = put_typed("closed", "3");
        int64_t due_ns, by_ns;
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        graph_version_unref(version);
}
