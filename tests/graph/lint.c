// SPDX-License-Identifier: Apache-2.0
// Words are torch.fx's Graph.lint's where it has them.
#include "tests/graph/make.h"

Test(lint, a_good_graph_passes_and_cannot_be_finished_twice)
{
        Graph *graph = new_graph();
        output(graph, node_value(placeholder(graph, "x")));
        cr_assert_eq(graph_lint(graph), STATUS_OK);
        finish(graph);
        cr_assert_eq(graph_finish(graph), STATUS_INTERNAL);
        graph_unref(graph);
}

Test(lint, a_graph_without_output_is_refused)
{
        Graph *graph = new_graph();
        fails_with(graph_finish(graph), STATUS_LINT, "no output node", NULL);
        placeholder(graph, "x");
        fails_with(graph_finish(graph), STATUS_LINT, "no output node", NULL);
        graph_unref(graph);
}

Test(lint, the_output_comes_last_and_once)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x");
        output(graph, node_value(x));
        output(graph, node_value(x));
        fails_with(graph_finish(graph), STATUS_LINT, "output node 'output' is not the last node", "output");
        graph_unref(graph);
}

Test(lint, a_value_used_before_its_definition_is_named)
{
        Graph *graph = new_graph();
        Node *neg =
                add(graph, OP_CALL_METHOD, NULL, "neg", sequence(VALUE_TUPLE, 1, value_none()), value_none());
        Node *x = placeholder(graph, "x");
        neg->args.seq->items[0] = node_value(x);
        output(graph, node_value(neg));
        fails_with(graph_finish(graph), STATUS_LINT,
                   "Argument 'x' of Node 'neg' was used before it has been defined! Please check that Nodes "
                   "in the graph are topologically "
                   "ordered",
                   "neg");
        graph_unref(graph);
}

Test(lint, a_node_that_reads_itself_is_a_cycle)
{
        Graph *graph = new_graph();
        Node *neg =
                add(graph, OP_CALL_METHOD, NULL, "neg", sequence(VALUE_TUPLE, 1, value_none()), value_none());
        neg->args.seq->items[0] = node_value(neg);
        output(graph, node_value(neg));
        fails_with(graph_finish(graph), STATUS_LINT, "Argument 'neg' of Node 'neg' was used before", "neg");
        graph_unref(graph);
}

Test(lint, a_node_of_another_graph_is_no_argument)
{
        Graph *graph = new_graph(), *other = new_graph();
        Node *x = placeholder(other, "x");
        output(graph, node_value(x));
        fails_with(graph_finish(graph), STATUS_LINT,
                   "Argument 'x' of Node 'output' does not belong to this Graph", "output");
        graph_unref(graph);
        graph_unref(other);
}

Test(lint, modules_that_do_not_exist_are_named_atom_by_atom)
{
        static const struct {
                const char *target, *message;
        } rows[] = {
                { "conv", "Node conv target conv references nonexistent attribute conv of " },
                { "block.conv",
                  "Node block_conv target block.conv references nonexistent attribute conv of block" },
                { "block.0.conv.x",
                  "target block.0.conv.x references nonexistent attribute conv of block.0" },
                { "w", "Node w target w w of  does not reference an nn.Module" },
                { "block.b", "Node block_b target block.b b of block does not reference an nn.Module" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Graph *graph = new_graph();
                Module *module;
                cr_assert_eq(graph_add_module(graph, "block.0", "torch.nn.ReLU", &module), STATUS_OK);
                state(graph, "w", small_tensor(DTYPE_F32, 1));
                state(graph, "block.b", small_tensor(DTYPE_F32, 1));
                Node *x = placeholder(graph, "x");
                Node *call = call_one(graph, OP_CALL_MODULE, rows[i].target, x);
                output(graph, node_value(call));
                fails_with(graph_finish(graph), STATUS_LINT, rows[i].message, call->name);
                graph_unref(graph);
        }
}

Test(lint, get_attr_may_name_what_the_weights_still_bring_but_not_a_part_of_a_tensor)
{
        Graph *graph = new_graph();
        Node *weight = add(graph, OP_GET_ATTR, NULL, "linear.weight", value_none(), value_none());
        output(graph, node_value(weight));
        cr_assert_eq(graph_lint(graph), STATUS_OK);
        graph_unref(graph);
        graph = new_graph();
        state(graph, "w", small_tensor(DTYPE_F32, 1));
        output(graph, node_value(add(graph, OP_GET_ATTR, NULL, "w.T", value_none(), value_none())));
        fails_with(graph_finish(graph), STATUS_LINT,
                   "Node w_t target w.T references nonexistent attribute T of w", "w_t");
        graph_unref(graph);
}

Test(lint, argument_counts_that_python_could_not_run_are_refused)
{
        Graph *graph = new_graph();
        add(graph, OP_PLACEHOLDER, NULL, "x", sequence(VALUE_TUPLE, 2, value_int(1), value_int(2)),
            value_none());
        output(graph, value_none());
        fails_with(graph_finish(graph), STATUS_LINT, "placeholder 'x' has 2 arguments", "x");
        graph_unref(graph);

        graph = new_graph();
        add(graph, OP_CALL_METHOD, NULL, "relu", value_none(), value_none());
        output(graph, value_none());
        fails_with(graph_finish(graph), STATUS_LINT, "call_method node 'relu' has no arguments", "relu");
        graph_unref(graph);

        graph = new_graph();
        add(graph, OP_OUTPUT, NULL, "output", value_none(), value_none());
        fails_with(graph_finish(graph), STATUS_LINT, "output node 'output' has 0 arguments", "output");
        graph_unref(graph);
}

Test(lint, two_placeholders_of_one_argument_are_refused_as_python_does)
{
        Graph *graph = new_graph();
        placeholder(graph, "x");
        placeholder(graph, "x");
        output(graph, value_none());
        fails_with(graph_finish(graph), STATUS_LINT, "duplicate argument 'x' in function definition", "x_1");
        graph_unref(graph);
}
