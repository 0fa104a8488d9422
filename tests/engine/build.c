// SPDX-License-Identifier: Apache-2.0
// Programs as callers see them: eager, parked, ready. Graphs are FX JSON; "many" stands for more
// nodes than are compiled at once.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "api/readers/upload.h"
#include "core/base/limits.h"
#include "core/engine/describe.h"
#include "core/engine/task.h"
#include "core/interp/interp.h"
#include "core/targets/targets.h"
#include "tests/engine/scratch.h"

static Engine *engine;

static void start(void)
{
        EngineOptions options = { .loader = upload_loader };
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
}

static void stop(void)
{
        engine_close(engine);
}

TestSuite(build, .init = start, .fini = stop);

// x, then `n` times torch.<function>, then out. Uploaded as `name`.
static GraphVersion *put_text(const char *name, Text *text);

static GraphVersion *put_chain(const char *name, const char *function, int n)
{
        Text text = { 0 };
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"n0\", "
                        "\"target\": \"x\"}");
        for (int i = 1; i <= n; i++)
                text_addf(&text,
                          ", {\"op\": \"call_function\", \"name\": \"n%d\", \"target\": \"%s\", \"args\": "
                          "[\"%%n%d\"]}",
                          i, function, i - 1);
        text_addf(&text,
                  ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": "
                  "[\"%%n%d\"]}]}",
                  n);
        return put_text(name, &text);
}

static GraphVersion *put_text(const char *name, Text *text)
{
        Storage *bytes = NULL;
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        size_t n_bytes = text->n;
        cr_assert_eq(storage_adopt(text_take(text), n_bytes, true, NULL, NULL, &bytes), STATUS_OK);
        UploadPart part = { .name = "", .bytes = bytes };
        cr_assert_eq(upload_identify(&part, 1, NULL, "fx", &identified), STATUS_OK);
        cr_assert_eq(upload_decode(&part, 1, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        PutRequest put = {
                .name = name, .parts = &part, .n_parts = 1, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK);
        graph_unref(graph);
        storage_unref(bytes);
        return version;
}

// A caller: what the server's job is.
typedef struct Caller {
        Ticket ticket;
        PlannedRun plan;
        Value input;
        Wait wait;
} Caller;

static void call_with(Caller *caller, Graph *graph, Value take_input, RunMode mode)
{
        *caller = (Caller){ .input = take_input };
        RunRequest request = { .inputs = { &caller->input, 1 }, .mode = mode };
        cr_assert_eq(engine_bind(graph, &request, &caller->plan), STATUS_OK);
        cr_assert_eq(engine_plan(engine, &caller->plan, &caller->ticket, &caller->wait), STATUS_OK);
}

static void call(Caller *caller, Graph *graph, int size, RunMode mode)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[1] = { size };
        meta_init(&meta, DTYPE_F32, 1, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int i = 0; i < size; i++)
                ((float *)tensor_data(tensor))[i] = (float)i - 1.5f;
        call_with(caller, graph, value_tensor_take(tensor), mode);
}

static void leave(Caller *caller)
{
        planned_run_deinit(&caller->plan);
        value_clear(&caller->input);
        ticket_drop(&caller->ticket);
}

static uint32_t count(const Ticket *tickets)
{
        uint32_t n = 0;
        for (; tickets != NULL; tickets = tickets->next)
                n++;
        return n;
}

static float run(Caller *caller)
{
        Frame frame;
        RunContext ctx;
        RunProfile *profile = NULL;
        RunResult result;
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(run_profile_new((Graph *)(uintptr_t)caller->plan.graph, caller->plan.graph->n_nodes,
                                     &profile),
                     STATUS_OK);
        cr_assert_eq(engine_execute(&caller->plan, &ctx, &frame, profile, &result), STATUS_OK, "%s",
                     failure_current()->message);
        float first = ((float *)tensor_data(result.value.tensor))[0];
        run_result_deinit(&result);
        run_profile_unref(profile);
        frame_deinit(&frame);
        return first;
}

static Graph *graph_of(GraphVersion *version)
{
        Graph *graph = NULL;
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK);
        return graph;
}

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

// x [n, 256] times a constant [256, 256].
static GraphVersion *put_linear(const char *name, float bias)
{
        enum { N = 256 };
        Text text = { 0 };
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", "
                        "\"target\": \"x\"}, {\"op\": \"get_attr\", "
                        "\"name\": \"w\", \"target\": \"w\"}, {\"op\": \"call_function\", \"name\": \"y\", "
                        "\"target\": \"torch.matmul\", \"args\": "
                        "[\"%x\", \"%w\"]}, {\"op\": \"output\", \"name\": \"output\", \"target\": "
                        "\"output\", \"args\": [\"%y\"]}], \"state\": "
                        "{\"w\": {\"dtype\": \"float32\", \"shape\": [256, 256], \"data\": [");
        for (int i = 0; i < N * N; i++)
                text_addf(&text, "%s%g", i == 0 ? "" : ", ", (double)(i % 7) + (double)bias);
        text_add(&text, "]}}}");
        return put_text(name, &text);
}

static size_t compiled_bytes(Graph *graph, int rows)
{
        Caller caller;
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[2] = { rows, 256 };
        meta_init(&meta, DTYPE_F32, 2, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        call_with(&caller, graph, value_tensor_take(tensor), RUN_MODE_COMPILED);
        engine_work_do(caller.wait.work);
        leave(&caller);
        return engine_stats(engine).programs.bytes;
}

Test(build, programs_of_one_graph_share_its_packed_weights)
{
        const size_t weight = (size_t)256 * 256 * sizeof(float);
        GraphVersion *version = put_linear("linear", 0.0f);
        Graph *graph = graph_of(version);
        size_t one = compiled_bytes(graph, 32), two = compiled_bytes(graph, 48);
        cr_assert_geq(one, weight);
        cr_assert_lt(two, one + weight / 2, "%zu, then %zu", one, two);
        cr_assert_eq(engine_delete(engine, "linear", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0, "and they go with the last of them");
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, a_number_that_only_scales_is_no_part_of_the_key_once_that_is_known)
{
        static const char head[] = "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": "
                                   "\"x\", \"target\": \"x\"}, {\"op\": "
                                   "\"placeholder\", \"name\": \"s\", \"target\": \"s\"}, {\"op\": "
                                   "\"call_function\", \"name\": \"y\", \"target\": "
                                   "\"torch.mul\", \"args\": [\"%x\", \"%s\"]}, {\"op\": \"output\", "
                                   "\"name\": \"output\", \"target\": \"output\", \"args\": "
                                   "[\"%y\"]}]}";
        Text text = { 0 };
        text_add(&text, head);
        GraphVersion *version = put_text("scale", &text);
        Graph *graph = graph_of(version);
        uint32_t n_builds = 0;
        for (int i = 0; i < 5; i++) {
                Caller caller = { .wait = { .parked = false } };
                TensorMeta meta;
                Tensor *tensor;
                int64_t sizes[1] = { 2 };
                meta_init(&meta, DTYPE_F32, 1, sizes);
                cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
                ((float *)tensor_data(tensor))[0] = 4.0f;
                caller.input = value_tensor_take(tensor);
                Value inputs[2] = { caller.input, { .kind = VALUE_FLOAT, .f = 0.5 * (i + 1) } };
                RunRequest request = { .inputs = { inputs, 2 }, .mode = RUN_MODE_AUTO };
                cr_assert_eq(engine_bind(graph, &request, &caller.plan), STATUS_OK);
                cr_assert_eq(engine_plan(engine, &caller.plan, &caller.ticket, &caller.wait), STATUS_OK);
                cr_assert_eq(caller.plan.program != NULL, i >= 2,
                             "the first runs eagerly, the second builds");
                cr_assert_eq(run(&caller), 2.0f * (float)(i + 1));
                if (caller.wait.work != NULL) {
                        n_builds++;
                        engine_work_do(caller.wait.work);
                }
                leave(&caller);
        }
        cr_assert_eq(n_builds, 1);
        graph_unref(graph);
        graph_version_unref(version);
}

Test(build, what_eager_runs_leave_on_a_graph_is_counted_with_it)
{
        RunLabels *labels;
        GraphVersion *version = put_chain("chain", "torch.neg", 4000);
        Graph *graph = graph_of(version);
        cr_assert_eq(run_labels_new(graph, NULL, &labels), STATUS_OK);
        size_t counted = engine_stats(engine).graphs.bytes - graph->weights_bytes - graph->arena.total_bytes;
        cr_expect(counted > run_labels_bytes(labels) / 3 && counted < run_labels_bytes(labels) * 3,
                  "%zu, not %zu", counted, run_labels_bytes(labels));
        run_labels_unref(labels);
        graph_unref(graph);
        graph_version_unref(version);
}

// x of one element and two numbers, until there is a program or a build to wait for.
static void plan_numbers(Caller *caller, Graph *graph, int64_t a, int64_t b)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[1] = { 1 };
        *caller = (Caller){ .wait = { .parked = false } };
        meta_init(&meta, DTYPE_F32, 1, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        ((float *)tensor_data(tensor))[0] = 4.0f;
        caller->input = value_tensor_take(tensor);
        Value inputs[3] = { caller->input, value_int(a), value_int(b) };
        RunRequest request = { .inputs = { inputs, 3 }, .mode = RUN_MODE_COMPILED };
        cr_assert_eq(engine_bind(graph, &request, &caller->plan), STATUS_OK);
        cr_assert_eq(engine_plan(engine, &caller->plan, &caller->ticket, &caller->wait), STATUS_OK);
}

static float finish_numbers(Caller *caller)
{
        for (bool again = caller->plan.program == NULL; again;) {
                cr_assert_eq(engine_planned(&caller->plan, &caller->ticket, &again), STATUS_OK);
                if (!again)
                        break;
                caller->wait = (Wait){ .parked = false };
                cr_assert_eq(engine_plan(engine, &caller->plan, &caller->ticket, &caller->wait), STATUS_OK);
                if (caller->wait.work != NULL)
                        engine_work_do(caller->wait.work);
                again = caller->plan.program == NULL;
        }
        cr_assert_not_null(caller->plan.program);
        float result = run(caller);
        leave(caller);
        return result;
}

Test(build, runs_that_wait_for_one_program_differ_in_no_number_it_depends_on)
{
        // With a = 0 it adds x b, for any b; with a = 1 the number 5 b.
        static const char head[] =
                "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": "
                "\"x\"}, {\"op\": \"placeholder\", \"name\": \"a\", \"target\": \"a\"}, {\"op\": "
                "\"placeholder\", \"name\": \"b\", \"target\": \"b\"}, {\"op\": \"call_function\", \"name\": "
                "\"sel\", \"target\": \"operator.getitem\", \"args\": [[\"%x\", 5], \"%a\"]}, {\"op\": "
                "\"call_function\", \"name\": \"p\", \"target\": \"operator.mul\", \"args\": [\"%sel\", "
                "\"%b\"]}, {\"op\": \"call_function\", \"name\": \"q\", \"target\": \"torch.add\", \"args\": "
                "[\"%x\", \"%p\"]}, {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", "
                "\"args\": [\"%q\"]}]}";
        Text text = { 0 };
        Caller first, second;
        text_add(&text, head);
        GraphVersion *version = put_text("numbers", &text);
        Graph *graph = graph_of(version);
        plan_numbers(&first, graph, 0, 2);
        engine_work_do(first.wait.work);
        cr_assert_eq(finish_numbers(&first), 12.0f);
        plan_numbers(&first, graph, 0, 3);
        cr_assert_not_null(first.plan.program, "one program for any b");
        cr_assert_eq(finish_numbers(&first), 16.0f);
        plan_numbers(&first, graph, 1, 2);
        plan_numbers(&second, graph, 1, 3);
        cr_assert_null(second.wait.work, "it waits for the first one's");
        engine_work_do(first.wait.work);
        cr_assert_eq(finish_numbers(&first), 14.0f);
        cr_assert_eq(finish_numbers(&second), 19.0f);
        graph_unref(graph);
        graph_version_unref(version);
}

// Whether there is a program for x of one element and this n; it runs either way.
static bool is_planned(Graph *graph, int64_t n)
{
        Caller caller = { .wait = { .parked = false } };
        TensorMeta meta;
        Tensor *tensor;
        bool again;
        int64_t sizes[1] = { 1 };
        meta_init(&meta, DTYPE_F32, 1, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        ((float *)tensor_data(tensor))[0] = 4.0f;
        caller.input = value_tensor_take(tensor);
        Value inputs[2] = { caller.input, value_int(n) };
        RunRequest request = { .inputs = { inputs, 2 }, .mode = RUN_MODE_COMPILED };
        cr_assert_eq(engine_bind(graph, &request, &caller.plan), STATUS_OK);
        cr_assert_eq(engine_plan(engine, &caller.plan, &caller.ticket, &caller.wait), STATUS_OK);
        if (caller.wait.work != NULL) {
                engine_work_do(caller.wait.work);
                cr_assert_eq(engine_planned(&caller.plan, &caller.ticket, &again), STATUS_OK, "%s",
                             failure_current()->message);
        }
        bool planned = caller.plan.program != NULL;
        cr_assert_eq(run(&caller), n == 0 ? -4.0f : 16.0f);
        leave(&caller);
        return planned;
}

Test(build, a_number_with_which_a_graph_cannot_be_planned_does_not_speak_for_others)
{
        // With n = 0 it is neg of x; else it needs a number of x as soon as it begins.
        static const char head[] = "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": "
                                   "\"x\", \"target\": \"x\"}, {\"op\": "
                                   "\"placeholder\", \"name\": \"n\", \"target\": \"n\"}, {\"op\": "
                                   "\"get_attr\", \"name\": \"yes\", \"target\": \"yes\"}, "
                                   "{\"op\": \"get_attr\", \"name\": \"no\", \"target\": \"no\"}, {\"op\": "
                                   "\"call_function\", \"name\": \"y\", \"target\": "
                                   "\"torch.ops.higher_order.cond\", \"args\": [\"%n\", \"%yes\", \"%no\", "
                                   "[\"%x\"]]}, {\"op\": \"output\", \"name\": "
                                   "\"output\", \"target\": \"output\", \"args\": [\"%y\"]}], \"modules\": "
                                   "{\"yes\": {\"type\": \"torch.fx.GraphModule\", "
                                   "\"graph\": {\"nodes\": [{\"op\": \"placeholder\", \"name\": \"a\", "
                                   "\"target\": \"a\"}, {\"op\": \"call_method\", "
                                   "\"name\": \"k\", \"target\": \"item\", \"args\": [\"%a\"]}, {\"op\": "
                                   "\"call_function\", \"name\": \"m\", \"target\": "
                                   "\"torch.mul\", \"args\": [\"%a\", \"%k\"]}, {\"op\": \"output\", "
                                   "\"name\": \"output\", \"target\": \"output\", "
                                   "\"args\": [\"%m\"]}]}}, \"no\": {\"type\": \"torch.fx.GraphModule\", "
                                   "\"graph\": {\"nodes\": [{\"op\": "
                                   "\"placeholder\", \"name\": \"a\", \"target\": \"a\"}, {\"op\": "
                                   "\"call_function\", \"name\": \"m\", \"target\": "
                                   "\"torch.neg\", \"args\": [\"%a\"]}, {\"op\": \"output\", \"name\": "
                                   "\"output\", \"target\": \"output\", \"args\": "
                                   "[\"%m\"]}]}}}}";
        Text text = { 0 };
        text_add(&text, head);
        GraphVersion *version = put_text("choice", &text);
        Graph *graph = graph_of(version);
        cr_expect_not(is_planned(graph, 1));
        cr_expect(is_planned(graph, 0), "one number is not all");
        for (int64_t n = 2; n < 8; n++)
                cr_expect_not(is_planned(graph, n));
        cr_expect(is_planned(graph, 0), "what was planned once stays");
        graph_unref(graph);
        graph_version_unref(version);
}

// ---- idle work ----
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

Test(build, a_graph_whose_signature_leaves_nothing_open_is_built_before_its_first_run)
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

Test(build, sizes_that_are_open_are_not_guessed)
{
        GraphVersion *open = put_typed("open", "\"N\"");
        cr_assert_null(engine_idle_work(engine, 1));
        graph_version_unref(open);
}

Test(build, sizes_that_no_tensor_can_have_are_not_warmed_up)
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

Test(build, a_warm_up_that_was_stopped_is_tried_again_after_pauses_that_double)
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

Test(build, tuning_that_was_stopped_more_than_three_times_is_not_given_up)
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

Test(build, a_warm_up_that_was_stopped_because_its_graph_goes_is_not_tried_again)
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

Test(build, nothing_is_built_ahead_where_that_was_not_wanted)
{
        EngineOptions options = { .loader = upload_loader, .no_warm_up = true };
        engine_close(engine);
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
        GraphVersion *version = put_typed("closed", "3");
        int64_t due_ns, by_ns;
        cr_assert_not(engine_has_idle_work(engine, &due_ns, &by_ns));
        graph_version_unref(version);
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
