// SPDX-License-Identifier: Apache-2.0
// rewrite.c: what a search tells and what it refuses. That rewrites give PyTorch's graphs is in
// cases.json.
#include "core/base/limits.h"
#include "core/edit/pattern.h"
#include "core/targets/targets.h"
#include "tests/graph/make.h"

static Node *relu_of(Graph *graph, Node *node)
{
        return call_one(graph, OP_CALL_FUNCTION, "torch.relu", node);
}

// x -> n relus -> output
static Graph *relus(int n)
{
        Graph *graph = new_graph();
        cr_assert_eq(targets_init(), STATUS_OK);
        Node *node = placeholder(graph, "x");
        for (int i = 0; i < n; i++)
                node = relu_of(graph, node);
        output(graph, node_value(node));
        finish(graph);
        return graph;
}

static Edit *edit_of(Graph *take_graph)
{
        Edit *edit = NULL;
        cr_assert_eq(edit_new(take_graph, &edit), STATUS_OK, "%s", failure_current()->message);
        graph_unref(take_graph);
        return edit;
}

Test(edit_rewrite, a_search_tells_what_stands_for_what)
{
        Edit *edit = edit_of(relus(5));
        Graph *pattern = relus(2);
        EditPattern what = { .graph = pattern };
        EditFinds finds;
        cr_assert_eq(edit_find(edit, &what, &finds), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(finds.n, 2);
        cr_expect_str_eq(finds.items[0].anchor->name, "relu_1");
        cr_expect_str_eq(finds.items[0].values[0].node->name, "x");
        cr_expect_str_eq(finds.items[0].values[1].node->name, "relu");
        cr_expect_str_eq(finds.items[1].anchor->name, "relu_3");
        cr_expect_eq(finds.items[0].values[3].kind, VALUE_ABSENT);
        edit_finds_deinit(&finds);
        graph_unref(pattern);
        edit_free(edit);
}

Test(edit_rewrite, patterns_without_meaning_are_refused)
{
        Edit *edit = edit_of(relus(1));
        EditFinds finds;
        Graph *dead = new_graph();
        Node *x = placeholder(dead, "x");
        Node *kept = relu_of(dead, x);
        relu_of(dead, x);
        output(dead, node_value(kept));
        finish(dead);
        EditPattern what = { .graph = dead };
        fails_with(edit_find(edit, &what, &finds), STATUS_LINT, "is read by nothing", "relu_1");
        graph_unref(dead);
        Graph *nothing = new_graph();
        output(nothing, value_int(1));
        finish(nothing);
        what.graph = nothing;
        fails_with(edit_find(edit, &what, &finds), STATUS_LINT, "returns no node", NULL);
        graph_unref(nothing);
        edit_free(edit);
}

Test(edit_rewrite, the_replacement_has_the_patterns_inputs_and_results)
{
        Edit *edit = edit_of(relus(2));
        Graph *pattern = relus(1), *none = new_graph(), *two = new_graph();
        EditPattern what = { .graph = pattern };
        EditFinds finds;
        output(none, value_int(1));
        finish(none);
        fails_with(edit_rewrite(edit, &what, none, &finds), STATUS_LINT, "Placeholder count mismatch: 1 vs 0",
                   NULL);
        Node *x = placeholder(two, "x");
        output(two, sequence(VALUE_TUPLE, 2, node_value(x), node_value(x)));
        finish(two);
        fails_with(edit_rewrite(edit, &what, two, &finds), STATUS_LINT,
                   "the pattern returns 1 nodes, the replacement 2 values", NULL);
        graph_unref(pattern);
        graph_unref(none);
        graph_unref(two);
        edit_free(edit);
}

// n results that each match every relu: n! ways.
Test(edit_rewrite, a_search_comes_to_an_end)
{
        enum { WIDTH = 12 };
        Graph *wide = new_graph();
        cr_assert_eq(targets_init(), STATUS_OK);
        Node *x = placeholder(wide, "x");
        Seq *results;
        cr_assert_eq(seq_new(WIDTH, &results), STATUS_OK);
        for (int i = 0; i < WIDTH; i++)
                results->items[i] = node_value(relu_of(wide, x));
        output(wide, value_seq_take(VALUE_TUPLE, results));
        finish(wide);
        Edit *edit = edit_of(graph_ref(wide));
        EditPattern what = { .graph = wide };
        EditFinds finds;
        limits.max_match_steps = 100000;
        fails_with(edit_find(edit, &what, &finds), STATUS_TOO_LARGE, "max_match_steps", NULL);
        edit_free(edit);
        graph_unref(wide);
}

Test(edit_rewrite, long_chains_do_not_go_deep)
{
        Edit *edit = edit_of(relus(8000));
        Graph *pattern = relus(8000);
        EditPattern what = { .graph = pattern };
        EditFinds finds;
        limits.max_match_steps = INT64_MAX;
        cr_assert_eq(edit_find(edit, &what, &finds), STATUS_OK, "%s", failure_current()->message);
        cr_expect_eq(finds.n, 1);
        edit_finds_deinit(&finds);
        graph_unref(pattern);
        edit_free(edit);
}
