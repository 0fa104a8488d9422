// SPDX-License-Identifier: Apache-2.0
// child.c: loops, branches and scans whose child graphs are programs of their own: that nothing is
// left to the eager tail, that both ways give the same bits, and what must stay in the tail.
#include <criterion/criterion.h>
#include <stdio.h>
#include "api/readers/fx_json.h"
#include "core/base/text.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(child, .init = start);

// ---- graphs: JSON with ' for " ----
#define CALL(name, target, ...)                                                                              \
        ", {'op': 'call_function', 'name': '" name "', 'target': '" target "', 'args': [" __VA_ARGS__ "]}"
#define INPUT(name)  "{'op': 'placeholder', 'name': '" name "', 'target': '" name "'}"
#define FETCH(name)  ", {'op': 'get_attr', 'name': '" name "', 'target': '" name "'}"
#define RESULT(args) ", {'op': 'output', 'name': 'output', 'target': 'output', 'args': [" args "]}"
#define CHILD(name, nodes)                                                                                   \
        "'" name "': {'type': 'torch.fx.GraphModule', 'graph': {'format': 'fx/1', 'nodes': [" nodes "]}}"
#define LOOP "torch.ops.higher_order.while_loop"
#define COND "torch.ops.higher_order.cond"
#define SCAN "torch.ops.higher_order.scan"

static Graph *graph_of(const char *nodes, const char *modules)
{
        Graph *graph = NULL;
        CheckReport report;
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text, "{'format': 'fx/1', 'nodes': [%s], 'modules': {%s}}", nodes, modules);
        for (size_t i = 0; i < text.n; i++)
                text.data[i] = text.data[i] == '\'' ? '"' : text.data[i];
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK);
        return graph;
}

// Rows of numbers from -0.6 to 0.6.
static Value matrix(int64_t n_rows, int64_t n_columns)
{
        Tensor *tensor;
        int64_t size[] = { n_rows, n_columns };
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 2, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int64_t i = 0; i < n_rows * n_columns; i++)
                ((float *)tensor_data(tensor))[i] = (float)(i * 7 % 13 - 6) / 10;
        return value_tensor_take(tensor);
}

// Both ways, with and without passes; `has_tail`: some node runs eagerly.
static void expect(Graph *graph, int64_t n_rows, bool has_tail)
{
        char words[600];
        Program *program = NULL;
        Value x = matrix(n_rows, 4);
        ValueSpan inputs = { &x, 1 };
        for (int i = 0; i < 2; i++) {
                CompileOptions options = { .n_threads = 1, .no_passes = i == 1 };
                cr_expect_eq(run_both(graph, inputs, &options, 0, 0, words), BOTH_EQUAL, "%s", words);
        }
        CompileOptions options = { .n_threads = 1 };
        cr_assert_eq(compile_graph(graph, inputs, &options, NULL, &program), STATUS_OK, "%s",
                     failure_current()->message);
        cr_expect_eq(program->recording->tail != NULL, has_tail);
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}

#define SMALL CHILD("small", INPUT("i") ", " INPUT("y") CALL("r", "torch.lt", "'%i', 5") RESULT("'%r'"))
#define OF_X                                                                                                 \
        INPUT("x")                                                                                           \
        CALL("zero", "torch.sum", "'%x'") CALL("i", "torch.mul", "'%zero', 0") CALL("y", "torch.neg", "'%x'")

// ---- programs ----
Test(child, a_loop_carries_two_values)
{
        expect(graph_of(OF_X FETCH("small") FETCH("step") CALL(
                                "l", LOOP, "'%small', '%step', {'$tuple': ['%i', '%y']}, {'$tuple': []}")
                                CALL("a", "operator.getitem", "'%l', 1") CALL("z", "torch.exp", "'%a'")
                                        RESULT("{'$tuple': ['%z', '%l']}"),
                        SMALL ", " CHILD("step", INPUT("i") ", " INPUT("y") CALL("j", "torch.add", "'%i', 1")
                                                         CALL("s", "torch.sin", "'%y'")
                                                                 CALL("w", "torch.add", "'%s', '%j'")
                                                                         RESULT("{'$tuple': ['%j', '%w']}"))),
               3, false);
}

Test(child, carried_values_change_places)
{
        expect(graph_of(INPUT("x") CALL("y", "torch.neg", "'%x'") CALL("z", "torch.cos",
                                                                       "'%x'") FETCH("small") FETCH("step")
                                CALL("l", LOOP, "'%small', '%step', {'$tuple': ['%y', '%z']}, {'$tuple': []}")
                                        RESULT("'%l'"),
                        CHILD("small",
                              INPUT("a") ", " INPUT("b") CALL("s", "torch.sum", "'%b'") CALL("r", "torch.lt",
                                                                                             "'%s', 20")
                                      RESULT("'%r'")) ", " CHILD("step",
                                                                 INPUT("a") ", " INPUT("b") CALL(
                                                                         "c", "torch.clone",
                                                                         "'%a'") CALL("d", "torch.add",
                                                                                      "'%b', 1")
                                                                         RESULT("{'$tuple': ['%d', '%c']}"))),
               3, false);
}

Test(child, a_loop_that_never_runs_gives_what_it_was_given)
{
        expect(graph_of(OF_X CALL("ten", "torch.add", "'%i', 10") FETCH("small") FETCH("step") CALL(
                                "l", LOOP, "'%small', '%step', {'$tuple': ['%ten', '%y']}, {'$tuple': []}")
                                CALL("a", "operator.getitem", "'%l', 1") RESULT("'%a'"),
                        SMALL ", " CHILD("step", INPUT("i") ", " INPUT("y") CALL("j", "torch.add", "'%i', 1")
                                                         CALL("s", "torch.sin", "'%y'")
                                                                 RESULT("{'$tuple': ['%j', '%s']}"))),
               3, false);
}

#define BRANCHES                                                                                             \
        CHILD("yes", INPUT("a") CALL("b", "torch.sin", "'%a'") RESULT("'%b'"))                               \
        ", " CHILD("no", INPUT("a") CALL("b", "torch.cos", "'%a'") RESULT("'%b'"))

Test(child, a_branch_whose_condition_is_computed)
{
        for (int64_t n = 1; n < 5; n++)
                expect(graph_of(OF_X CALL("p", "torch.gt", "'%zero', 0") FETCH("yes") FETCH("no")
                                        CALL("r", COND, "'%p', '%yes', '%no', ['%y']")
                                                CALL("z", "torch.exp", "'%r'") RESULT("'%z'"),
                                BRANCHES),
                       n, false);
}

Test(child, a_scan_stacks_what_its_body_returns)
{
        expect(graph_of(INPUT("x") CALL("h", "torch.sum", "'%x', 0") FETCH("step")
                                CALL("s", SCAN, "'%step', ['%h'], ['%x'], []") RESULT("'%s'"),
                        CHILD("step", INPUT("h") ", " INPUT("r") CALL("m", "torch.mul", "'%h', 0.5") CALL(
                                              "n", "torch.add", "'%m', '%r'") CALL("c", "torch.exp", "'%n'")
                                              RESULT("{'$tuple': ['%n', '%c']}"))),
               9, false);
}

// ---- what stays in the tail ----
Test(child, a_branch_that_returns_its_operand_stays_eager)
{
        expect(graph_of(OF_X CALL("p", "torch.gt", "'%zero', 0") FETCH("yes") FETCH("no")
                                CALL("r", COND, "'%p', '%yes', '%no', ['%y']") CALL("z", "torch.exp", "'%r'")
                                        RESULT("'%z'"),
                        CHILD("yes", INPUT("a") RESULT("'%a'")) ", " CHILD(
                                "no", INPUT("a") CALL("b", "torch.cos", "'%a'") RESULT("'%b'"))),
               3, true);
}

Test(child, a_loop_that_writes_what_it_is_given_stays_eager)
{
        expect(graph_of(OF_X FETCH("small") FETCH("step")
                                CALL("l", LOOP, "'%small', '%step', {'$tuple': ['%i', '%y']}, {'$tuple': []}")
                                        RESULT("{'$tuple': ['%l', '%y']}"),
                        SMALL ", " CHILD("step", INPUT("i") ", " INPUT("y") CALL("j", "torch.add", "'%i', 1")
                                                         CALL("w", "torch.ops.aten.add_.Tensor", "'%y', 1")
                                                                 CALL("s", "torch.sin", "'%y'")
                                                                         RESULT("{'$tuple': ['%j', '%s']}"))),
               3, true);
}

Test(child, a_value_that_grows_stays_eager)
{
        expect(graph_of(OF_X FETCH("small") FETCH("step")
                                CALL("l", LOOP, "'%small', '%step', {'$tuple': ['%i', '%y']}, {'$tuple': []}")
                                        RESULT("'%l'"),
                        SMALL ", " CHILD("step", INPUT("i") ", " INPUT("y") CALL("j", "torch.add", "'%i', 1")
                                                         CALL("w", "torch.cat", "['%y', '%y']")
                                                                 RESULT("{'$tuple': ['%j', '%w']}"))),
               1, true);
}

// ---- runs that end early ----
Test(child, an_endless_loop_is_stopped_by_the_deadline)
{
        Graph *graph = graph_of(
                OF_X FETCH("ever") FETCH("step")
                        CALL("l", LOOP, "'%ever', '%step', {'$tuple': ['%i', '%y']}, {'$tuple': []}")
                                RESULT("'%l'"),
                CHILD("ever",
                      INPUT("i") ", " INPUT("y") CALL("r", "torch.ge", "'%i', 0") RESULT(
                              "'%r'")) ", " CHILD("step",
                                                  INPUT("i") ", " INPUT("y") CALL("j", "torch.mul", "'%i', 1")
                                                          CALL("s", "torch.sin", "'%y'")
                                                                  RESULT("{'$tuple': ['%j', '%s']}")));
        Program *program = NULL;
        Frame frame;
        RunContext ctx;
        Value x = matrix(3, 4), out = value_none();
        CompileOptions options = { .n_threads = 1 };
        ProgramRun run = { .inputs = { &x, 1 } };
        cr_assert_eq(compile_graph(graph, run.inputs, &options, NULL, &program), STATUS_OK);
        cr_assert_null(program->recording->tail);
        frame_init(&frame);
        run_context_init(&ctx);
        ctx.deadline_ns = clock_ns() + 20 * 1000 * 1000;
        cr_expect_eq(program_run(program, &frame, &run, &ctx, &out, NULL), STATUS_DEADLINE);
        frame_deinit(&frame);
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}
