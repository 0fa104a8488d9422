// SPDX-License-Identifier: Apache-2.0
// Keys of programs, and what programs and graphs are counted with.
#include "tests/engine/caller.h"

TestSuite(programs, .init = start, .fini = stop);

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

Test(programs, programs_of_one_graph_share_its_packed_weights)
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

Test(programs, a_number_that_only_scales_is_no_part_of_the_key_once_that_is_known)
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

Test(programs, what_eager_runs_leave_on_a_graph_is_counted_with_it)
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

Test(programs, runs_that_wait_for_one_program_differ_in_no_number_it_depends_on)
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

Test(programs, a_number_with_which_a_graph_cannot_be_planned_does_not_speak_for_others)
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
