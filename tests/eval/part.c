// SPDX-License-Identifier: Apache-2.0
// Walks over a part of a graph: nodes whose values are known, nodes that are left out, and storages
// that several parts share.
#include "tests/eval/sample.h"

static Sample sample;

static void open_sample(void)
{
        sample_open(&sample);
}

static void close_sample(void)
{
        sample_close(&sample);
}

TestSuite(part, .init = open_sample, .fini = close_sample);

typedef struct Chain { // x, y -> relu(x) -> neg -> add(neg, y) -> output
        Node *x, *y, *relu, *neg, *add;
} Chain;

static Chain chain(void)
{
        Chain made;
        made.x = add_input(&sample, "x");
        made.y = add_input(&sample, "y");
        made.relu = add_node(&sample, OP_CALL_FUNCTION, "relu", "torch.relu", VALUES(node_value(made.x)));
        made.neg = add_node(&sample, OP_CALL_FUNCTION, "neg", "torch.neg", VALUES(node_value(made.relu)));
        made.add = add_node(&sample, OP_CALL_FUNCTION, "add", "torch.add",
                            VALUES(node_value(made.neg), node_value(made.y)));
        add_output(&sample, node_value(made.add));
        finish(&sample);
        return made;
}

Test(part, goes_on_from_values_that_are_known)
{
        Chain nodes = chain();
        bool skip[6] = { [0] = true, [2] = true }; // x, relu
        Value y = F32(&sample, SIZES(2), DOUBLES(10, 20)), relu = F32(&sample, SIZES(2), DOUBLES(1, 2)), out,
              fetched[2];
        const WalkKnown known[] = { { nodes.relu, relu } };
        const Node *const fetch[] = { nodes.relu, nodes.neg };
        NodeTiming rows[6];
        WalkTrace trace = { .rows = rows, .capacity = 6 };
        const Value inputs[] = { value_none(), y };
        WalkOptions options = { .inputs = { inputs, 2 },
                                .skip = skip,
                                .known = known,
                                .n_known = 1,
                                .fetch = fetch,
                                .n_fetch = 2,
                                .trace = &trace };
        must(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, fetched));
        EXPECT(keep(&sample, out), 9, 18);
        cr_expect_eq(keep(&sample, fetched[0]).tensor, relu.tensor);
        EXPECT(keep(&sample, fetched[1]), -1, -2);
        // Rows are for calls only, as those of programs are.
        cr_assert_eq(trace.n_rows, 2u);
        cr_expect_eq(rows[0].node, nodes.neg);
        cr_expect_eq(rows[1].node, nodes.add);
}

Test(part, says_which_value_is_missing)
{
        Chain nodes = chain();
        bool skip[6] = { [0] = true, [2] = true };
        const Value inputs[] = { value_none(), value_none() };
        Value out;
        WalkOptions options = { .inputs = { inputs, 2 }, .skip = skip };
        cr_expect_eq(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, NULL), STATUS_LINT);
        cr_expect_str_eq(failure_current()->node, nodes.neg->name);
}

typedef struct Left {
        const Node *nodes[6];
        uint32_t n;
        bool relu_was_there;
} Left;

static Status note_left(void *context, const Node *node, const Value *values)
{
        Left *left = context;
        left->relu_was_there |= values[2].kind == VALUE_TENSOR;
        left->nodes[left->n++] = node;
        return STATUS_OK;
}

Test(part, leaves_out_a_node_and_all_that_read_it)
{
        Chain nodes = chain();
        bool marks[6] = { [3] = true };
        Left left = { .n = 0 };
        WalkSplit split = { .left = marks, .leave = note_left, .context = &left };
        const Value inputs[] = { F32(&sample, SIZES(2), DOUBLES(1, -2)),
                                 F32(&sample, SIZES(2), DOUBLES(1, 1)) };
        Value out;
        WalkOptions options = { .inputs = { inputs, 2 }, .split = &split };
        must(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, NULL));
        cr_expect_eq(out.kind, VALUE_DYNAMIC);
        cr_assert_eq(left.n, 3u);
        cr_expect_eq(left.nodes[0], nodes.neg);
        cr_expect_eq(left.nodes[1], nodes.add);
        cr_expect_eq(left.nodes[2], sample.graph->output);
        cr_expect(left.relu_was_there, "its inputs are there when a node is left out");
        cr_expect(marks[4] && marks[5]);
        cr_expect(!marks[0] && !marks[1] && !marks[2]);
}

Test(part, sees_shared_storages_through_the_shell_that_others_got)
{
        State *state;
        Value w = F32(&sample, SIZES(2), DOUBLES(1, 2)), out;
        must(graph_add_state(sample.graph, "w", tensor_ref(w.tensor), &state));
        Node *attr = add_node(&sample, OP_GET_ATTR, "w", "w", 0, NULL);
        add_output(&sample, node_value(attr));
        finish(&sample);
        Storage *first, *second;
        (void)sample_emitter(&sample);
        must(eager_shell(sample.eager, w.tensor->storage, &first));
        must(eager_shell(sample.eager, w.tensor->storage, &second));
        cr_expect_eq(first, second);
        must(storage_make_writable(first));
        ((float *)first->data)[1] = 7;
        must(run_graph(&sample, 0, NULL, &out));
        EXPECT(out, 1, 7);
        EXPECT(w, 1, 2);
        storage_unref(first);
        storage_unref(second);
}
