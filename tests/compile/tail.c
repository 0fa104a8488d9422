// SPDX-License-Identifier: Apache-2.0
// tail.c: graphs of which a part needs numbers that only a run knows: what is planned and what is
// left to the eager tail, that both together give what an eager run gives (three runs each, so
// that nothing leaks from one into the next), and what must not be planned because the tail and the
// calls would see each other's writes at the wrong time.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "core/base/text.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(tail, .init = start);

// ---- graphs ----
// Nodes as JSON with ' for "; "x" is a placeholder, the output node is added: its argument is
// `result`. `more`: further members ("" or "'state': {...}").
static Graph *graph_of(const char *nodes, const char *result, const char *more)
{
        Graph *graph = NULL;
        CheckReport report;
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text,
                  "{'format': 'fx/1', 'nodes': [{'op': 'placeholder', 'name': 'x', 'target': 'x'}, %s, "
                  "{'op': 'output', 'name': 'output', 'target': 'output', 'args': [%s]}]%s%s}",
                  nodes, result, *more == '\0' ? "" : ", ", more);
        cr_assert_eq(text_status(&text), STATUS_OK);
        for (size_t i = 0; i < text.n; i++)
                text.data[i] = text.data[i] == '\'' ? '"' : text.data[i];
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK);
        cr_assert_eq(report.n_rows + report.n_missing_state + report.n_unknown_config, 0u, "%s",
                     check_report_status(&report, graph) == STATUS_OK ? "" : failure_current()->message);
        check_report_deinit(&report);
        return graph;
}

static Value image(int64_t channels)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, DTYPE_F32, 4, (int64_t[]){ 1, channels, 5, 6 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&meta); i++)
                ((float *)tensor_data(tensor))[i] = (float)((i * 7 + 3) % 11 - 5) / 2;
        return value_tensor_take(tensor);
}

static void names_of_tail(const Program *program, char *out, size_t cap)
{
        const EagerTail *tail = program->recording->tail;
        size_t used = 0;
        out[0] = '\0';
        for (uint32_t i = 0; tail != NULL && i < tail->n_nodes; i++) {
                if (tail->nodes[i]->op != OP_OUTPUT)
                        used += (size_t)snprintf(out + used, cap - used, "%s%s", used == 0 ? "" : " ",
                                                 tail->nodes[i]->name);
        }
}

// `wanted`: the nodes of the tail but for the output node; NULL: the graph stays eager.
static void expect_tail_with(Graph *graph, Value x, const char *wanted)
{
        char words[600], names[600];
        Program *program = NULL;
        ValueSpan inputs = { &x, 1 };
        for (int i = 0; i < 2; i++) {
                CompileOptions options = { .n_threads = 1, .no_passes = i == 1 };
                BothResult result = run_both(graph, inputs, &options, 1e-5, 1e-5, words);
                cr_expect_eq(result, wanted == NULL ? BOTH_DYNAMIC : BOTH_EQUAL, "%s%s", words,
                             i == 1 ? " (no passes)" : "");
        }
        CompileOptions options = { .n_threads = 1 };
        if (compile_graph(graph, inputs, &options, NULL, &program) == STATUS_OK) {
                names_of_tail(program, names, sizeof(names));
                cr_expect_str_eq(names, wanted == NULL ? "(eager)" : wanted);
        }
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}

static void expect_tail(const char *nodes, const char *result, const char *wanted)
{
        expect_tail_with(graph_of(nodes, result, ""), image(3), wanted);
}

#define FUNCTION(name, target, ...)                                                                          \
        "{'op': 'call_function', 'name': '" name "', 'target': '" target "', 'args': [" __VA_ARGS__ "]}"
#define METHOD(name, target, ...)                                                                            \
        "{'op': 'call_method', 'name': '" name "', 'target': '" target "', 'args': [" __VA_ARGS__ "]}"
#define ATTR(name) "{'op': 'get_attr', 'name': '" name "', 'target': '" name "'}"
#define MASK       FUNCTION("mask", "operator.gt", "'%x', 0.6") // planned
#define COUNT      METHOD("sum", "sum", "'%mask'") ", " METHOD("n", "item", "'%sum'")

// Graphs are written one node to a line.
// clang-format off
// ---- what is left out ----
Test(tail, a_number_from_a_tensor_takes_its_readers_along)
{
        expect_tail(
                FUNCTION("relu", "torch.relu", "'%x'")
                ", " METHOD("sum", "sum", "'%x'")
                ", " METHOD("n", "item", "'%sum'")
                ", " FUNCTION("k", "operator.mul", "'%n', 2")
                ", " FUNCTION("k1", "operator.add", "'%k', 1")
                ", " FUNCTION("y", "operator.mul", "'%relu', '%k1'")
                ", " FUNCTION("z", "torch.sigmoid", "'%relu'"),
                "{'$tuple': ['%y', '%z', '%k1']}", "n k k1 y");
}

Test(tail, places_that_are_not_zero_and_what_stands_there)
{
        expect_tail(
                FUNCTION("y", "torch.tanh", "'%x'")
                ", " FUNCTION("at", "torch.nonzero", "'%y'")
                ", " FUNCTION("rows", "torch.ops.aten.select.int", "'%at', 1, 2")
                ", " FUNCTION("picked", "torch.ops.aten.index_select.default", "'%y', 2, '%rows'")
                ", " METHOD("sum", "sum", "'%picked'"),
                "'%sum'", "at rows picked sum");
}

Test(tail, a_boolean_mask_then_a_sum)
{
        expect_tail(
                FUNCTION("y", "operator.mul", "'%x', 3")
                ", " MASK
                ", " FUNCTION("picked", "operator.getitem", "'%y', '%mask'")
                ", " METHOD("sum", "sum", "'%picked'")
                ", " FUNCTION("z", "torch.exp", "'%y'"),
                "['%sum', '%z']", "picked sum");
}

// What type such a number has is looked at before anything is computed with it.
Test(tail, a_tensor_in_the_place_of_a_number)
{
        expect_tail(
                FUNCTION("y", "torch.tanh", "'%x'")
                ", " METHOD("sum", "sum", "'%y'")
                ", " FUNCTION("mask", "torch.ops.aten.gt.Scalar", "'%y', '%sum'"),
                "'%mask'", "mask");
}

Test(tail, a_graph_that_is_all_tail_stays_eager)
{
        expect_tail(
                FUNCTION("at", "torch.nonzero", "'%x'")
                ", " METHOD("sum", "sum", "'%at'"),
                "'%sum'", NULL);
}

// One branch returns what it is given, so the branches are no programs of their own.
Test(tail, a_branch_in_the_middle_of_a_convolutional_network)
{
        static const char branches[] =
                "'modules': {'c1': {'type': 'torch.nn.Conv2d', 'config': {'in_channels': 3, 'out_channels': "
                "2, 'kernel_size': 1}}, "
                "'c2': {'type': 'torch.nn.Conv2d', 'config': {'in_channels': 2, 'out_channels': 1, "
                "'kernel_size': 1}}, "
                "'yes': {'type': 'torch.fx.GraphModule', 'graph': {'format': 'fx/1', 'nodes': ["
                "{'op': 'placeholder', 'name': 'a', 'target': 'a'}, {'op': 'call_function', 'name': 'b', "
                "'target': 'torch.neg', 'args': "
                "['%a']}, {'op': 'output', 'name': 'output', 'target': 'output', 'args': [['%b']]}]}}, "
                "'no': {'type': 'torch.fx.GraphModule', 'graph': {'format': 'fx/1', 'nodes': ["
                "{'op': 'placeholder', 'name': 'a', 'target': 'a'}, {'op': 'call_function', 'name': 'b', "
                "'target': 'torch.exp', 'args': "
                "['%a']}, {'op': 'output', 'name': 'output', 'target': 'output', 'args': [['%a']]}]}}}, "
                "'state': {'c1.weight': {'dtype': 'float32', 'shape': [2, 3, 1, 1], 'data': [1, 2, 3, -1, "
                "-2, 0.5]}, "
                "'c1.bias': {'dtype': 'float32', 'shape': [2], 'data': [0.5, -0.5]}, "
                "'c2.weight': {'dtype': 'float32', 'shape': [1, 2, 1, 1], 'data': [0.25, 2]}, "
                "'c2.bias': {'dtype': 'float32', 'shape': [1], 'data': [1]}}";
        static const char nodes[] = "{'op': 'call_module', 'name': 'c1', 'target': 'c1', 'args': ['%x']}, "
                FUNCTION("r", "torch.relu", "'%c1'")
                ", " METHOD("sum", "sum", "'%r'")
                ", " FUNCTION("pred", "operator.gt", "'%sum', 40")
                ", " ATTR("yes")
                ", " ATTR("no")
                ", " FUNCTION("cond", "torch.ops.higher_order.cond", "'%pred', '%yes', '%no', ['%r']")
                ", " FUNCTION("first", "operator.getitem", "'%cond', 0")
                ", {'op': 'call_module', 'name': 'c2', 'target': 'c2', 'args': ['%first']}, "
                FUNCTION("later", "torch.tanh", "'%r'");
        expect_tail_with(graph_of(nodes, "{'$tuple': ['%c2', '%later']}", branches), image(3),
                         "yes no cond first c2");
}

// ---- writes ----
Test(tail, a_write_before_a_node_of_the_tail_is_planned)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "operator.add", "'%x', 1")
                ", " METHOD("w", "mul_", "'%y', 2")
                ", " FUNCTION("z", "operator.mul", "'%y', '%n'"),
                "['%z', '%y']", "n z");
}

Test(tail, a_write_behind_a_node_of_the_tail_that_reads_the_bytes_joins_it)
{
        expect_tail(
                MASK
                ", " FUNCTION("y", "operator.add", "'%x', 1")
                ", " FUNCTION("picked", "operator.getitem", "'%y', '%mask'")
                ", " METHOD("w", "mul_", "'%y', 2")
                ", " FUNCTION("after", "torch.neg", "'%y'")
                ", " METHOD("sum", "sum", "'%picked'"),
                "['%sum', '%y', '%after']", "picked w after sum");
}

Test(tail, reads_behind_a_write_of_the_tail_join_it)
{
        expect_tail(
                MASK
                ", " FUNCTION("y", "operator.add", "'%x', 1")
                ", " FUNCTION("before", "torch.neg", "'%y'")
                ", " COUNT
                ", " METHOD("w", "mul_", "'%y', '%n'")
                ", " FUNCTION("after", "torch.neg", "'%y'")
                ", " FUNCTION("other", "torch.exp", "'%x'"),
                "['%before', '%after', '%y', '%other']", "n w after");
}

Test(tail, a_write_through_a_view_that_the_rest_made_is_seen)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "operator.add", "'%x', 1")
                ", " METHOD("flat", "view", "'%y', -1")
                ", " FUNCTION("part", "operator.getitem", "'%flat', {'$slice': [0, '%n', null]}")
                ", " METHOD("w", "zero_", "'%part'")
                ", " METHOD("total", "sum", "'%y'"),
                "['%total', '%flat']", "n part w total");
}

Test(tail, equal_calls_are_not_merged_when_the_rest_writes_one)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("a", "operator.add", "'%x', 1")
                ", " FUNCTION("b", "operator.add", "'%x', 1")
                ", " METHOD("c", "clone", "'%a'")
                ", " METHOD("w", "mul_", "'%a', '%n'"),
                "['%a', '%b', '%c']", "n w");
}

Test(tail, a_planned_twin_that_the_rest_writes_again)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("a", "operator.add", "'%x', 1")
                ", " METHOD("r", "relu_", "'%a'")
                ", " FUNCTION("b", "torch.sigmoid", "'%a'")
                ", " METHOD("c", "clone", "'%a'")
                ", " METHOD("w", "mul_", "'%r', '%n'"),
                "['%a', '%b', '%c', '%r']", "n w");
}

Test(tail, a_constant_that_the_rest_writes_is_made_anew_for_each_run)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("c", "torch.ones", "3")
                ", " FUNCTION("d", "operator.add", "'%c', 1")
                ", " METHOD("w", "mul_", "'%d', '%n'")
                ", " FUNCTION("y", "torch.neg", "'%x'"),
                "['%d', '%c', '%y']", "n w");
}

Test(tail, an_input_that_the_rest_writes)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "torch.neg", "'%x'")
                ", " METHOD("w", "mul_", "'%x', '%n'")
                ", " FUNCTION("z", "torch.neg", "'%x'"),
                "['%x', '%y', '%z']", "n w z");
}

Test(tail, an_input_that_a_call_writes_is_seen_by_the_rest)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " METHOD("w", "mul_", "'%x', 2")
                ", " FUNCTION("z", "operator.mul", "'%x', '%n'"),
                "['%x', '%z']", "n z");
}

Test(tail, a_view_that_changes_in_place_between_two_nodes_keeps_the_graph_eager)
{
        expect_tail(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "operator.add", "'%x', 1")
                ", " FUNCTION("p", "operator.mul", "'%y', '%n'")
                ", " METHOD("u", "unsqueeze_", "'%y', 0")
                ", " FUNCTION("q", "operator.mul", "'%y', '%n'"),
                "['%p', '%q']", NULL);
}

static const char counter[] = "'state': {'k': {'dtype': 'float32', 'shape': [3, 1, 1], 'data': [1, 2, 3]}}";

Test(tail, state_that_only_calls_write_stays_planned)
{
        expect_tail_with(graph_of(MASK
                ", " COUNT
                ", " ATTR("k")
                ", " METHOD("w", "add_", "'%k', 1")
                ", " FUNCTION("y", "operator.mul", "'%x', '%k'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%n'"),
                "['%z']", counter), image(3), "n z");
}

Test(tail, state_that_both_sides_touch_is_the_rests)
{
        expect_tail_with(graph_of(MASK
                ", " COUNT
                ", " ATTR("k")
                ", " METHOD("w", "add_", "'%k', 1")
                ", " FUNCTION("y", "operator.mul", "'%x', '%k'")
                ", " FUNCTION("z", "operator.mul", "'%k', '%n'")
                ", " METHOD("v", "mul_", "'%k', '%n'")
                ", " FUNCTION("u", "torch.neg", "'%x'"),
                "['%z', '%y', '%k', '%u']", counter), image(3), "n k w y z v");
}

Test(tail, state_that_the_rest_writes_is_new_in_each_run)
{
        expect_tail_with(graph_of(MASK
                ", " COUNT
                ", " ATTR("k")
                ", " FUNCTION("y", "operator.mul", "'%x', '%k'")
                ", " METHOD("c", "clone", "'%k'")
                ", " METHOD("v", "mul_", "'%k', '%n'")
                ", " FUNCTION("u", "operator.add", "'%k', 1"),
                "['%y', '%k', '%u', '%c']", counter), image(3), "n k v u");
}

// ---- fetching, failures, rows ----
static Program *compile_fetching(Graph *graph, const Value *x, const Node *const *fetch, uint32_t n_fetch)
{
        Program *program = NULL;
        CompileOptions options = { .n_threads = 1, .fetch = fetch, .n_fetch = n_fetch };
        cr_assert_eq(compile_graph(graph, (ValueSpan){ x, 1 }, &options, NULL, &program), STATUS_OK, "%s",
                     failure_current()->message);
        return program;
}

Test(tail, planned_nodes_and_nodes_of_the_tail_can_be_fetched)
{
        Graph *graph = graph_of(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "torch.neg", "'%x'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%n'"),
                "'%z'", "");
        Value x = image(3), out, fetched[3];
        const Node *fetch[3] = { graph_node(graph, "sum"), graph_node(graph, "n"), graph_node(graph, "x") };
        Program *program = compile_fetching(graph, &x, fetch, 3);
        Frame frame;
        RunContext ctx;
        NodeTiming rows[16];
        WalkTrace trace = { .rows = rows, .capacity = 16 };
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_leq(program->n_rows, 16u);
        cr_assert_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { &x, 1 }, .trace = &trace }, &ctx,
                                 &out, fetched),
                     STATUS_OK);
        cr_expect_eq(fetched[0].kind, VALUE_TENSOR);
        cr_expect_eq(fetched[1].kind, VALUE_INT);
        cr_expect_eq(*(int64_t *)tensor_data(fetched[0].tensor), fetched[1].i);
        cr_expect_eq(fetched[2].kind, VALUE_TENSOR);
        // Each call has one row, planned ones first.
        static const char *const names[] = { "mask", "sum", "y", "n", "z" };
        cr_assert_eq(trace.n_rows, 5u);
        for (uint32_t i = 0; i < 5; i++)
                cr_expect_str_eq(rows[i].node->name, names[i]);
        for (int i = 0; i < 3; i++)
                value_unref(fetched[i]);
        value_unref(out);
        frame_deinit(&frame);
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}

Test(tail, a_failure_names_the_node_of_the_rest)
{
        Graph *graph = graph_of(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "torch.neg", "'%x'")
                ", " FUNCTION("part", "torch.ops.aten.select.int", "'%y', 0, '%n'"),
                "'%part'", "");
        Value x = image(3), out = value_none();
        Program *program = compile_fetching(graph, &x, NULL, 0);
        Frame frame;
        RunContext ctx;
        Budget budget;
        budget_init(&budget, 1 << 20);
        frame_init(&frame);
        run_context_init(&ctx);
        ctx.budget = &budget;
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { &x, 1 } }, &ctx, &out, NULL),
                     STATUS_INDEX);
        cr_expect_str_eq(failure_current()->node, "part");
        cr_expect_not_null(strstr(failure_current()->message, "While executing %part"), "%s",
                           failure_current()->message);
        cr_expect_eq(budget.used, 0u);
        frame_deinit(&frame);
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}

Test(tail, stands_in_the_listing)
{
        Graph *graph = graph_of(
                MASK
                ", " COUNT
                ", " FUNCTION("y", "torch.neg", "'%x'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%n'"),
                "'%z'", "");
        Value x = image(3);
        Program *program = compile_fetching(graph, &x, NULL, 0);
        _cleanup_(text_deinit) Text text = { 0 };
        program_print(program, &text);
        cr_assert_eq(text_status(&text), STATUS_OK);
        cr_expect_not_null(
                strstr(text.data,
                       "eager tail: 3 nodes on real tensors, after the instructions; from them: sum, y\n"),
                "%s", text.data);
        cr_expect_not_null(strstr(text.data, "# y\n        alone: no call beside it\n"), "%s", text.data);
        cr_expect_not_null(strstr(text.data, "      %z : [num_users=1] = call_function"), "%s", text.data);
        program_unref(program);
        value_unref(x);
        graph_unref(graph);
}
