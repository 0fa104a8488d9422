// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/make.h"

#include "core/graph/region.h"

static const StackEntry *entry(Graph *graph, const StackEntry *outer, const char *key, const char *path)
{
        const StackEntry *made = NULL;
        const StackEntrySpec spec = { key, path, "M" };
        cr_assert_eq(graph_stack_entry(graph, outer, &spec, &made), STATUS_OK);
        return made;
}

static Node *two_of(Graph *graph, Node *a, Node *b, const StackEntry *stack)
{
        Node *node;
        NodeSpec spec = { .op = OP_CALL_FUNCTION, .target = "torch.add" };
        spec.args = sequence(VALUE_TUPLE, 2, node_value(a), node_value(b));
        cr_assert_eq(graph_add_node(graph, &spec, &node), STATUS_OK);
        node->module_stack = stack;
        return node;
}

Test(region, each_call_of_a_module_is_one_with_inputs_by_first_use)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x"), *y = placeholder(graph, "y");
        const StackEntry *first = entry(graph, NULL, "b", "b"), *second = entry(graph, NULL, "b@1", "b");
        const StackEntry *inner = entry(graph, second, "b.c@1", "b.c");
        Node *one = two_of(graph, x, x, first);
        Node *two = two_of(graph, y, one, second), *three = two_of(graph, two, x, inner);
        output(graph, node_value(three));
        cr_assert_eq(graph_finish(graph), STATUS_OK);
        Region *regions;
        uint32_t n;
        cr_assert_eq(graph_regions(graph, "b", &regions, &n), STATUS_OK);
        cr_assert_eq(n, 2);
        cr_expect_eq(regions[0].entry, first);
        cr_expect_eq(regions[0].n_nodes, 1);
        cr_expect_eq(regions[0].n_inputs, 1);
        cr_expect_eq(regions[0].outputs[0], one);
        cr_assert_eq(regions[1].n_nodes, 2);
        cr_expect_eq(regions[1].nodes[1], three);
        cr_assert_eq(regions[1].n_inputs, 3);
        cr_expect(regions[1].inputs[0] == y && regions[1].inputs[1] == one && regions[1].inputs[2] == x);
        cr_assert_eq(regions[1].n_outputs, 1);
        cr_expect_eq(regions[1].outputs[0], three);
        cr_expect_null(regions[1].between);
        regions_free(regions, n);
        cr_assert_eq(graph_regions(graph, "b.d", &regions, &n), STATUS_OK);
        cr_expect_eq(n, 0);
        regions_free(regions, n);
        graph_unref(graph);
}

Test(region, a_way_out_and_back_is_no_convex_region)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x");
        const StackEntry *call = entry(graph, NULL, "b", "b");
        Node *in = two_of(graph, x, x, call), *out = two_of(graph, in, x, NULL),
             *more = two_of(graph, out, x, NULL);
        Node *back = two_of(graph, in, more, call);
        output(graph, node_value(back));
        cr_assert_eq(graph_finish(graph), STATUS_OK);
        Region *regions;
        uint32_t n;
        cr_assert_eq(graph_regions(graph, "b", &regions, &n), STATUS_OK);
        cr_assert_eq(n, 1);
        cr_expect_eq(regions[0].between, more);
        cr_expect_eq(regions[0].n_outputs, 2);
        regions_free(regions, n);
        graph_unref(graph);
}
