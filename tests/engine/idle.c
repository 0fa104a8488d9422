// SPDX-License-Identifier: Apache-2.0
// What stored graphs learn, and keep: tune records from the first build to the next start, and what
// runs leave behind.
#include <criterion/criterion.h>
#include "core/engine/declared.h"
#include "core/engine/describe.h"
#include "core/engine/task.h"
#include "core/interp/interp.h"
#include "core/kernels/platform.h"
#include "core/targets/targets.h"
#include "tests/engine/put.h"
#include "tests/engine/scratch.h"

static Engine *engine;
static char *folder;

static void open_engine(void)
{
        EngineOptions options = { .loader = upload_loader, .data_folder = folder };
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
}

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        folder = scratch_make();
        open_engine();
}

static void stop(void)
{
        engine_close(engine);
        scratch_remove(folder);
}

TestSuite(idle, .init = start, .fini = stop);

// A convolution of x, times the number s.
static const char conv[] = "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", "
                           "\"target\": \"x\"}, {\"op\": \"placeholder\", "
                           "\"name\": \"s\", \"target\": \"s\"}, {\"op\": \"get_attr\", \"name\": \"w\", "
                           "\"target\": \"w\"}, {\"op\": \"call_function\", "
                           "\"name\": \"c\", \"target\": \"torch.conv2d\", \"args\": [\"%x\", \"%w\"]}, "
                           "{\"op\": \"call_function\", \"name\": \"y\", "
                           "\"target\": \"torch.mul\", \"args\": [\"%c\", \"%s\"]}, {\"op\": \"output\", "
                           "\"name\": \"output\", \"target\": \"output\", "
                           "\"args\": [\"%y\"]}], \"state\": {\"w\": {\"dtype\": \"float32\", \"shape\": [1, "
                           "1, 2, 2], \"data\": [1, 2, 3, 4]}}}";
// Needs a number of x as soon as it begins.
static const char item[] =
        "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"}, "
        "{\"op\": \"placeholder\", "
        "\"name\": \"s\", \"target\": \"s\"}, {\"op\": \"call_method\", \"name\": \"y\", \"target\": "
        "\"item\", \"args\": [\"%x\"]}, "
        "{\"op\": "
        "\"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [[\"%y\", \"%s\"]]}]}";

// x of `size` by `size` (1: a single number) and s, bound and planned; a build that is due is done
// at once when `builds`.
static void plan(GraphVersion *version, int64_t size, double s, bool builds, PlannedRun *out_plan,
                 EngineWork **out_build)
{
        TensorMeta meta;
        Tensor *x;
        Graph *graph = NULL;
        Wait wait;
        Ticket ticket = { .next = NULL };
        bool again;
        int64_t sizes[4] = { 1, 1, size, size };
        meta_init(&meta, DTYPE_F32, size == 1 ? 1 : 4, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &x), STATUS_OK);
        Value inputs[2] = { value_tensor_take(x), { .kind = VALUE_FLOAT, .f = s } };
        RunRequest request = { .inputs = { inputs, 2 }, .mode = RUN_MODE_COMPILED };
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK);
        *out_plan = (PlannedRun){ .graph = NULL };
        cr_assert_eq(engine_bind(graph, &request, out_plan), STATUS_OK, "%s", failure_current()->message);
        out_plan->n_threads = 1;
        cr_assert_eq(engine_plan(engine, out_plan, &ticket, &wait), STATUS_OK);
        *out_build = wait.work;
        if (*out_build != NULL && builds) {
                engine_work_do(*out_build);
                cr_assert_eq(engine_planned(out_plan, &ticket, &again), STATUS_OK, "%s",
                             failure_current()->message);
        }
        value_clear(&inputs[0]);
        graph_unref(graph);
}

// Runs it; whether something had to be built, and the program's id ("": none).
static bool run(GraphVersion *version, int64_t size, double s, char out_id[65])
{
        PlannedRun planned;
        EngineWork *build;
        Frame frame;
        RunContext ctx;
        RunResult result;
        RunProfile *profile;
        plan(version, size, s, true, &planned, &build);
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(run_profile_new((Graph *)(uintptr_t)planned.graph, planned.graph->n_nodes, &profile),
                     STATUS_OK);
        cr_assert_eq(engine_execute(&planned, &ctx, &frame, profile, &result), STATUS_OK, "%s",
                     failure_current()->message);
        snprintf(out_id, 65, "%s", profile->program == NULL ? "" : profile->program->id.hex);
        engine_record(engine, version, profile);
        run_profile_unref(profile);
        run_result_deinit(&result);
        frame_deinit(&frame);
        planned_run_deinit(&planned);
        return build != NULL;
}

Test(idle, a_graph_is_tuned_once_however_many_of_its_programs_are_built_meanwhile)
{
        char id[65];
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        cr_assert_null(engine_idle_work(engine, 1), "its sizes are open");
        run(version, 8, 0.5, id);
        run(version, 9, 0.5, id);
        EngineWork *learning = engine_idle_work(engine, 1);
        cr_assert_not_null(learning);
        cr_assert_null(engine_idle_work(engine, 1), "one piece of work is enough");
        run(version, 10, 0.5, id);
        cr_assert_null(engine_work_do(learning));
        cr_assert_null(engine_idle_work(engine, 1), "what came meanwhile has nothing left to decide");
        graph_version_unref(version);
}

Test(idle, what_was_learnt_serves_all_values_of_a_number_that_only_scales)
{
        char id[65], tuned[65];
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        run(version, 8, 0.5, id);
        engine_work_do(engine_idle_work(engine, 1));
        cr_assert_not(run(version, 8, 0.7, tuned), "the tuned program is there");
        cr_assert_str_neq(id, tuned);
        graph_version_unref(version);
}

Test(idle, the_same_upload_after_a_start_reads_the_record_and_gives_the_same_program)
{
        char id[65], again[65];
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        run(version, 8, 0.5, id);
        engine_work_do(engine_idle_work(engine, 1));
        run(version, 8, 0.5, id);
        graph_version_unref(version);
        engine_close(engine);
        open_engine();
        int64_t due_ns, by_ns;
        version = put_graph(engine, "m", conv, NULL);
        cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns), "it is warmed up");
        run(version, 8, 0.5, again);
        cr_assert_str_eq(id, again);
        cr_assert_null(engine_idle_work(engine, 1), "and not tuned again");
        graph_version_unref(version);
}

Test(idle, a_record_of_another_library_is_not_used_and_decided_again)
{
        char id[65], again[65];
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        run(version, 8, 0.5, id);
        engine_work_do(engine_idle_work(engine, 1));
        HashHex of = store_tune_id(&version->stored);
        graph_version_unref(version);
        engine_close(engine);
        Store *store = NULL;
        Text text = { 0 };
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_OK);
        cr_assert_eq(store_get_tune(store, &of, &text), STATUS_OK);
        strstr(text.data, kernel_platform()->dnnl)[0]++;
        cr_assert_eq(store_put_tune(store, &of, (ByteSpan){ (const uint8_t *)text.data, text.n }), STATUS_OK);
        store_close(store);
        text_deinit(&text);
        open_engine();
        version = put_graph(engine, "m", conv, NULL);
        run(version, 8, 0.5, again);
        cr_assert_str_eq(again, id, "the program of no record");
        EngineWork *learning = engine_idle_work(engine, 1);
        cr_assert_not_null(learning, "it is tuned here");
        engine_work_do(learning);
        graph_version_unref(version);
}

Test(idle, models_of_one_archive_are_tuned_apart)
{
        char id[65];
        GraphVersion *a = put_graph(engine, "a", conv, "A");
        run(a, 8, 0.5, id);
        engine_work_do(engine_idle_work(engine, 1));
        GraphVersion *b = put_graph(engine, "b", conv, "B");
        run(b, 8, 0.5, id);
        EngineWork *learning = engine_idle_work(engine, 1);
        cr_assert_not_null(learning);
        engine_work_do(learning);
        Text text = { 0 };
        Store *store = NULL;
        HashHex of_a = store_tune_id(&a->stored), of_b = store_tune_id(&b->stored);
        cr_assert_eq(engine_delete(engine, "a", 0), STATUS_OK);
        graph_version_unref(a);
        graph_version_unref(b);
        engine_close(engine);
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_OK);
        cr_assert_eq(store_get_tune(store, &of_a, &text), STATUS_OK);
        cr_assert_eq(text.n, 0, "it went with its version");
        cr_assert_eq(store_get_tune(store, &of_b, &text), STATUS_OK);
        cr_assert_gt(text.n, 0);
        text_deinit(&text);
        store_close(store);
        open_engine();
}

Test(idle, a_graph_that_cannot_be_planned_is_not_tried_again_with_every_number)
{
        char id[65];
        GraphVersion *version = put_graph(engine, "m", item, NULL);
        for (int i = 0; i < 8; i++) {
                cr_expect_eq(run(version, 1, i + 0.5, id), i < 4, "%d", i);
                cr_assert_str_eq(id, "");
                cr_expect_not(run(version, 1, i + 0.5, id), "the same number again");
        }
        graph_version_unref(version);
}

Test(idle, recorded_runs_keep_neither_the_graph_nor_the_program)
{
        char id[65];
        Graph *graph = NULL;
        SignatureSummary *summary;
        uint32_t n;
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        run(version, 8, 0.5, id);
        engine_work_do(engine_idle_work(engine, 1));
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0);
        cr_assert_eq(atomic_load(&graph->ref.count), 1);
        graph_unref(graph);
        cr_assert_eq(
                profile_stats_read(version->stats, (ProfileGrouping){ PROFILE_BY_NODE, 0 }, &summary, &n),
                STATUS_OK);
        cr_assert_eq(n, 1);
        cr_assert_str_eq(run_program_id(summary[0].labels), id);
        cr_assert_str_eq(summary[0].groups[summary[0].n_groups - 1].key, "y");
        profile_summary_free(summary, n);
        graph_version_unref(version);
        cr_assert_gt(engine_stats(engine).profiles.bytes, 0);
}

// ---- conditions ----
typedef struct Watch {
        uint32_t n_calls, fails_at;
        int n_blobs[2];
} Watch;

static Status watch(void *context)
{
        Watch *seen = context;
        if (seen->n_calls < 2)
                seen->n_blobs[seen->n_calls] = scratch_count(folder, "blobs");
        return ++seen->n_calls == seen->fails_at ? fail(STATUS_PRECONDITION, "changed meanwhile") : STATUS_OK;
}

Test(idle, a_condition_is_asked_before_the_parts_are_written_and_again_before_they_are_named)
{
        for (uint32_t fails_at = 1; fails_at <= 3; fails_at++) {
                Storage *bytes = NULL;
                Graph *graph = NULL;
                GraphVersion *version = NULL;
                StoreVersion identified;
                bool created;
                Watch seen = { .fails_at = fails_at };
                PutCondition only_if = { watch, &seen };
                cr_assert_eq(storage_new(sizeof(conv) - 1, false, NULL, &bytes), STATUS_OK);
                memcpy(bytes->data, conv, sizeof(conv) - 1);
                UploadPart part = { .name = "", .bytes = bytes };
                cr_assert_eq(upload_identify(&part, 1, NULL, "fx", &identified), STATUS_OK);
                cr_assert_eq(upload_decode(&part, 1, NULL, true, &graph), STATUS_OK);
                PutRequest put = { .name = "m",
                                   .parts = &part,
                                   .n_parts = 1,
                                   .identified = &identified,
                                   .graph = graph,
                                   .only_if = &only_if };
                Status status = engine_put(engine, &put, &version, &created);
                cr_assert_eq(status, fails_at < 3 ? STATUS_PRECONDITION : STATUS_OK);
                cr_assert_eq(seen.n_calls, MIN(fails_at, 2u));
                cr_assert_eq(seen.n_blobs[0], 0);
                cr_assert_eq(seen.n_blobs[1], fails_at > 1);
                cr_assert_eq(scratch_count(folder, "blobs"), fails_at == 3, "what was not named is gone");
                graph_version_unref(version);
                graph_unref(graph);
                storage_unref(bytes);
        }
}

// ---- declared warm-ups ----
static void declare(const char *name, const char *line)
{
        HeadChange change = { .set_version = 1 };
        change.settings[SETTING_WARM_UP] = line;
        cr_assert_eq(engine_change(engine, name, &change), STATUS_OK);
}

// All that is due by now or later; tuning comes first, so pieces come back.
static void do_idle_work(void)
{
        int64_t due_ns, by_ns;
        while (engine_has_idle_work(engine, &due_ns, &by_ns)) {
                EngineWork *work = engine_idle_work(engine, 1);
                if (work != NULL)
                        cr_assert_null(engine_work_do(work));
        }
}

static WarmUpState state_of(const char *name)
{
        GraphVersion *version = NULL;
        cr_assert_eq(engine_find(engine, name, 0, &version), STATUS_OK);
        WarmUpState state = warm_up_state(version);
        graph_version_unref(version);
        return state;
}

Test(idle, a_declared_warm_up_is_waited_for_after_each_start)
{
        GraphVersion *version = put_graph(engine, "m", conv, NULL);
        graph_version_unref(version);
        cr_assert(engine_is_warm(engine), "nothing is declared");
        declare("m", "x:1,1,4,4;s: x:1,1,8,8;s:");
        cr_assert_eq(state_of("m"), WARM_UP_WAITING);
        cr_assert(engine_is_warm(engine), "a server that was ready stays so");
        do_idle_work();
        cr_assert_eq(state_of("m"), WARM_UP_DONE);
        uint64_t n_compiles = engine_stats(engine).compiles;
        cr_assert_geq(n_compiles, 2u);

        engine_close(engine);
        open_engine();
        cr_assert_eq(state_of("m"), WARM_UP_WAITING);
        cr_assert_not(engine_is_warm(engine));
        do_idle_work();
        cr_assert_eq(state_of("m"), WARM_UP_DONE);
        cr_assert(engine_is_warm(engine));
        cr_assert_eq(engine_stats(engine).compiles, 2u);

        declare("m", "x:1,1,4,4;s:");
        cr_assert_eq(state_of("m"), WARM_UP_WAITING);
        declare("m", "");
        cr_assert_eq(state_of("m"), WARM_UP_NONE);
        do_idle_work();
        cr_assert_eq(state_of("m"), WARM_UP_NONE);
}

Test(idle, a_declared_warm_up_is_overdue_after_a_second_and_then_comes_first)
{
        const int64_t second_ns = 1000000000;
        int64_t due_ns, by_ns, before_ns = clock_ns();
        graph_version_unref(put_graph(engine, "m", conv, NULL));
        declare("m", "x:1,1,4,4;s:");
        cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
        cr_expect_leq(due_ns, before_ns);
        cr_expect_geq(by_ns, before_ns + second_ns);
        cr_expect_leq(by_ns, clock_ns() + second_ns);
        for (int stops = 0; stops < 5; stops++) { // while the queue is never empty
                EngineWork *work = NULL;
                cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
                cr_assert_neq(by_ns, 0);
                while (clock_ns() <= by_ns)
                        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
                work = engine_idle_work(engine, 1);
                cr_assert_not_null(work);
                cr_expect_not(engine_work_insists(work), "after %d stops", stops);
                atomic_store(engine_work_stop(work), 1);
                cr_assert_null(engine_work_do(work));
        }
        // the tuning that it waits for came into the line before it and waits still
        cr_assert(engine_has_idle_work(engine, &due_ns, &by_ns));
        while (clock_ns() <= by_ns)
                nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        EngineWork *work = engine_idle_work(engine, 1);
        cr_assert_not_null(work);
        cr_expect(engine_work_insists(work));
        cr_assert_null(engine_work_do(work));
        cr_expect_eq(state_of("m"), WARM_UP_DONE);
        cr_expect(engine_has_idle_work(engine, &due_ns, &by_ns), "the tuning");
        cr_expect_eq(by_ns, 0);
}

Test(idle, a_declared_warm_up_that_fails_or_whose_graph_has_gone_is_not_waited_for)
{
        graph_version_unref(put_graph(engine, "m", conv, NULL));
        graph_version_unref(put_graph(engine, "gone", item, NULL));
        declare("m", "x:1,1,1,1;s:"); // smaller than the kernel
        declare("gone", "x:;s:");
        engine_close(engine);
        open_engine();
        cr_assert_eq(state_of("m"), WARM_UP_WAITING);
        cr_assert_eq(engine_delete(engine, "gone", 0), STATUS_OK);
        cr_assert_not(engine_is_warm(engine));
        do_idle_work();
        cr_assert_eq(state_of("m"), WARM_UP_FAILED);
        cr_assert(engine_is_warm(engine));
}
