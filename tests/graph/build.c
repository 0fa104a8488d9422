// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/make.h"

#include <stdio.h>

#include "core/base/limits.h"
#include "core/graph/footprint.h"

// x -> relu -> neg -> abs, as methods.
static Graph *relu_neg_abs(Opcode op, const char *prefix)
{
        Graph *graph = new_graph();
        Node *node = placeholder(graph, "x");
        static const char *const names[] = { "relu", "neg", "abs" };
        for (int i = 0; i < 3; i++) {
                char target[64];
                snprintf(target, sizeof(target), "%s%s", prefix, names[i]);
                node = call_one(graph, op, target, node);
        }
        output(graph, node_value(node));
        return graph;
}

Test(build, what_arguments_take_counts_as_memory_of_the_graph)
{
        Graph *graph = new_graph();
        Seq *items, *outer;
        size_t before = graph_footprint(graph);
        cr_assert_eq(seq_new(1000, &items), STATUS_OK);
        cr_assert_eq(seq_new(1, &outer), STATUS_OK);
        outer->items[0] = value_seq_take(VALUE_LIST, items);
        add(graph, OP_CALL_FUNCTION, "f", "torch.stack", value_seq_take(VALUE_TUPLE, outer), value_none());
        cr_expect_geq(graph_footprint(graph) - before, 1000 * sizeof(Value));
        cr_expect_lt(graph_footprint(graph) - before, 40000 + (size_t)64 * 1024);
        graph_unref(graph);
}

Test(build, modules_bring_their_parents_and_keep_their_order)
{
        Graph *graph = new_graph();
        Module *module;
        cr_assert_eq(graph_add_module(graph, "a.b.c", "torch.nn.modules.linear.Linear", &module), STATUS_OK);
        cr_assert_str_eq(module->type, "torch.nn.Linear");
        cr_assert_eq(graph->n_modules, 4);
        cr_assert_str_eq(graph->modules[0]->path, "");
        cr_assert_str_eq(graph->modules[1]->path, "a");
        cr_assert_null(graph_module(graph, "a.b")->type);
        cr_assert_eq(graph_add_module(graph, "a.b", "torch.nn.Sequential", &module), STATUS_OK);
        cr_assert_str_eq(graph_module(graph, "a.b")->type, "torch.nn.Sequential");
        fails_with(graph_add_module(graph, "a.b", "torch.nn.ReLU", &module), STATUS_LINT,
                   "\"a.b\" is defined twice", NULL);
        fails_with(graph_add_module(graph, "a..b", NULL, &module), STATUS_LINT, "empty part", NULL);
        graph_unref(graph);
}

Test(build, a_path_is_a_module_or_a_tensor_but_not_both)
{
        Graph *graph = new_graph();
        Module *module;
        State *added;
        state(graph, "w", small_tensor(DTYPE_F32, 2));
        cr_assert_eq(graph_add_module(graph, "m", "torch.nn.ReLU", &module), STATUS_OK);
        fails_with(graph_add_module(graph, "w.x", NULL, &module), STATUS_LINT, "\"w\" is both", NULL);
        fails_with(graph_add_state(graph, "m", small_tensor(DTYPE_F32, 2), &added), STATUS_LINT,
                   "\"m\" is both", NULL);
        fails_with(graph_add_state(graph, "w", small_tensor(DTYPE_F32, 2), &added), STATUS_LINT,
                   "\"w\" twice", NULL);
        fails_with(graph_add_state(graph, "", small_tensor(DTYPE_F32, 2), &added), STATUS_LINT, "empty path",
                   NULL);
        cr_assert_eq(graph->n_state, 1);
        graph_unref(graph);
}

static const StackEntry *entry(Graph *graph, const StackEntry *outer, const char *key)
{
        const StackEntry *made = NULL;
        const StackEntrySpec spec = { key, key, "torch.nn.modules.linear.Linear" };
        cr_assert_eq(graph_stack_entry(graph, outer, &spec, &made), STATUS_OK);
        return made;
}

Test(build, nodes_of_one_call_share_its_entry_and_a_copy_keeps_the_stack)
{
        Graph *graph = new_graph(), *other = new_graph();
        Node *x = placeholder(graph, "x"), *y = placeholder(other, "y");
        const StackEntry *a = entry(graph, NULL, "a"), *b = entry(graph, a, "b");
        cr_assert_str_eq(b->type, "torch.nn.Linear");
        cr_assert_eq(b, entry(graph, a, "b"));
        cr_assert_neq(b, entry(graph, NULL, "b"));
        cr_assert_eq(b, entry(graph, b, "a")); // as a key of a dict, it stands once
        cr_assert_eq(graph->n_calls, 3);
        x->module_stack = b;
        cr_assert_eq(graph_set_trace(graph, x, "File \"m.py\""), STATUS_OK);
        cr_assert_eq(graph_copy_place(other, x, y), STATUS_OK);
        cr_assert_eq(y->module_stack->depth, 2);
        cr_assert_str_eq(y->module_stack->outer->key, "a");
        cr_assert_str_eq(y->stack_trace, "File \"m.py\"");
        cr_assert_neq(y->stack_trace, x->stack_trace);
        graph_unref(graph);
        graph_unref(other);
}

Test(build, calls_around_each_other_are_limited)
{
        Graph *graph = new_graph();
        const StackEntry *inner = NULL;
        char key[16] = "0";
        for (int i = 0; i < MAX_MODULE_DEPTH; i++) {
                snprintf(key, sizeof(key), "%d", i);
                inner = entry(graph, inner, key);
        }
        const StackEntrySpec spec = { "last", "last", "M" };
        fails_with(graph_stack_entry(graph, inner, &spec, &inner), STATUS_TOO_LARGE, "256 entries", NULL);
        graph_unref(graph);
}

Test(build, paths_that_nest_without_end_are_refused)
{
        Graph *graph = new_graph();
        Module *module;
        char path[4000];
        for (size_t i = 0; i < sizeof(path) - 1; i++)
                path[i] = i % 2 == 0 ? 'a' : '.';
        path[sizeof(path) - 1] = '\0';
        fails_with(graph_add_module(graph, path, NULL, &module), STATUS_TOO_LARGE, "parts", NULL);
        cr_assert_leq(graph->n_modules, 1);
        graph_unref(graph);
}

Test(build, a_graph_over_the_node_limit_is_refused)
{
        int64_t before = limits.max_nodes;
        limits.max_nodes = 2;
        Graph *graph = new_graph();
        placeholder(graph, "a");
        placeholder(graph, "b");
        Node *node;
        Status status = graph_add_node(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .target = "c" }, &node);
        limits.max_nodes = before;
        fails_with(status, STATUS_TOO_LARGE, "more than 2 nodes", NULL);
        graph_unref(graph);
}

Test(build, arguments_are_taken_even_when_the_node_is_refused)
{
        Graph *graph = new_graph();
        placeholder(graph, "x");
        Node *node;
        // The sanitizer build sees a leak if they are not.
        Value args = sequence(VALUE_TUPLE, 2, text_value("a"), sequence(VALUE_LIST, 1, text_value("b")));
        fails_with(graph_add_node(graph,
                                  &(NodeSpec){ .op = OP_CALL_METHOD,
                                               .name = "x",
                                               .target = "view",
                                               .args = args,
                                               .kwargs = dict_of_one("k", text_value("v")) },
                                  &node),
                   STATUS_LINT, "redefined", "x");
        graph_unref(graph);
}

Test(finish, users_are_counted_once_per_reading_node)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x");
        Node *sum =
                add(graph, OP_CALL_FUNCTION, NULL, "operator.add",
                    sequence(VALUE_TUPLE, 2, node_value(x), node_value(x)), dict_of_one("k", node_value(x)));
        Node *dead = call_one(graph, OP_CALL_METHOD, "neg", x);
        output(graph, node_value(sum));
        finish(graph);
        cr_assert_eq(x->n_users, 2);
        cr_assert_eq(sum->n_users, 1);
        cr_assert_eq(dead->n_users, 0);
        cr_assert_eq(graph->output, graph->nodes[3]);
        graph_unref(graph);
}

Test(finish, values_are_freed_by_their_last_reader_in_order_of_appearance)
{
        Graph *graph = new_graph();
        Node *a = placeholder(graph, "a"), *b = placeholder(graph, "b"), *unused = placeholder(graph, "c");
        Node *both =
                add(graph, OP_CALL_FUNCTION, NULL, "torch.cat",
                    sequence(VALUE_TUPLE, 1,
                             sequence(VALUE_LIST, 3, node_value(b),
                                      sequence(VALUE_SLICE, 3, node_value(a), value_none(), value_none()),
                                      node_value(b))),
                    value_none());
        Node *dead = call_one(graph, OP_CALL_METHOD, "relu_", both);
        Node *last = call_one(graph, OP_CALL_METHOD, "neg", both);
        output(graph, node_value(last));
        finish(graph);
        cr_assert_eq(both->n_frees, 2);
        cr_assert_eq(both->frees[0], b);
        cr_assert_eq(both->frees[1], a);
        cr_assert_eq(dead->n_frees, 1);
        cr_assert_eq(dead->frees[0], dead); // nobody reads it
        cr_assert_eq(last->n_frees, 1);
        cr_assert_eq(last->frees[0], both);
        cr_assert_eq(unused->n_frees, 0);
        cr_assert_eq(graph->output->n_frees, 0);
        graph_unref(graph);
}

Test(finish, a_graph_without_metadata_takes_one_input_per_placeholder)
{
        Graph *graph = relu_neg_abs(OP_CALL_METHOD, "");
        finish(graph);
        cr_assert_eq(graph->signature.n_inputs, 1);
        cr_assert_eq(graph->signature.n_user_inputs, 1);
        cr_assert_eq(graph->signature.inputs[0].kind, INPUT_USER);
        cr_assert_eq(graph->signature.inputs[0].value_kind, VALUE_NONE);
        cr_assert_eq(graph->signature.inputs[0].spec.rank, -1);
        cr_assert_str_eq(graph->signature.argument_names[0], "x");
        graph_unref(graph);
}

Test(finish, tied_weights_count_once)
{
        Graph *graph = relu_neg_abs(OP_CALL_METHOD, "");
        Tensor *tensor = small_tensor(DTYPE_F32, 8);
        state(graph, "a", tensor_ref(tensor));
        state(graph, "b", tensor);
        state(graph, "c", small_tensor(DTYPE_F64, 1));
        finish(graph);
        cr_assert_eq(graph->weights_bytes, 8 * 4 + 8);
        graph_unref(graph);
}

static bool same_fingerprint(Graph *a, Graph *b)
{
        if (!a->finished)
                finish(a);
        if (!b->finished)
                finish(b);
        return memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)) == 0;
}

Test(fingerprint, names_annotations_and_weights_do_not_count)
{
        Graph *a = relu_neg_abs(OP_CALL_METHOD, ""), *b = new_graph();
        Node *x = add(b, OP_PLACEHOLDER, "other", "x", value_none(), value_none());
        x->type = "torch.Tensor";
        Node *relu =
                add(b, OP_CALL_METHOD, "r", "relu", sequence(VALUE_TUPLE, 1, node_value(x)), value_none());
        output(b, node_value(call_one(b, OP_CALL_METHOD, "abs", call_one(b, OP_CALL_METHOD, "neg", relu))));
        Tensor *ones = small_tensor(DTYPE_F32, 4);
        memset(ones->storage->data, 1, 16);
        state(a, "w", small_tensor(DTYPE_F32, 4));
        state(b, "w", ones);
        cr_assert(same_fingerprint(a, b));
        cr_assert_neq(a->fingerprint[0] | a->fingerprint[1] | a->fingerprint[2] | a->fingerprint[3], 0);
        graph_unref(a);
        graph_unref(b);
}

// Variants that must all differ from one another and from the plain graph.
static Graph *variant(int i)
{
        Graph *graph = new_graph();
        Module *module;
        Node *x = placeholder(graph, i == 1 ? "y" : "x");
        Value number = i == 2 ? value_float(1) : i == 3 ? value_bool(true) : value_int(i == 16 ? 2 : 1);
        Value args = i == 4 ? sequence(VALUE_TUPLE, 1, sequence(VALUE_LIST, 2, node_value(x), number))
                            : sequence(VALUE_TUPLE, 2, node_value(x), number);
        Value kwargs = i == 5   ? dict_of_one("alpha", value_int(2))
                       : i == 6 ? dict_of_one("alphb", value_int(2))
                                : value_none();
        Node *sum = add(graph, OP_CALL_FUNCTION, NULL, i == 7 ? "torch.sub" : "torch.add", args, kwargs);
        if ((i >= 8 && i <= 10) || i >= 17) {
                cr_assert_eq(graph_add_module(graph, "m", i == 8 ? "torch.nn.ReLU" : "torch.nn.ELU", &module),
                             STATUS_OK);
                if (i == 10 || i >= 17)
                        cr_assert_eq(module_add_config(module, i == 17 ? "beta" : "alpha",
                                                       value_float(i == 18 ? 2 : 1)),
                                     STATUS_OK);
                module->training = i == 19;
        }
        if (i >= 11 && i <= 13)
                state(graph, i == 13 ? "v" : "w", small_tensor(i == 12 ? DTYPE_F64 : DTYPE_F32, 4));
        if (i == 14)
                // rank 0, bool: declared inputs bind differently
                x->spec = arena_alloc(&graph->arena, sizeof(TensorSpec));
        output(graph, i == 15 ? node_value(x) : node_value(sum));
        finish(graph);
        return graph;
}

Test(fingerprint, everything_that_changes_the_computation_counts)
{
        enum { N = 20 };
        Graph *graphs[N];
        for (int i = 0; i < N; i++) {
                graphs[i] = variant(i);
                for (int j = 0; j < i; j++)
                        cr_assert(!same_fingerprint(graphs[i], graphs[j]), "variants %d and %d", i, j);
        }
        for (int i = 0; i < N; i++)
                graph_unref(graphs[i]);
}

Test(print, the_three_forms_of_the_smallest_graph_are_pytorchs)
{
        Graph *graph = relu_neg_abs(OP_CALL_METHOD, "");
        finish(graph);
        prints_as(graph, GRAPH_FORM_GRAPH,
                  "graph():\n"
                  "    %x : [num_users=1] = placeholder[target=x]\n"
                  "    %relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})\n"
                  "    %neg : [num_users=1] = call_method[target=neg](args = (%relu,), kwargs = {})\n"
                  "    %abs_1 : [num_users=1] = call_method[target=abs](args = (%neg,), kwargs = {})\n"
                  "    return abs_1");
        prints_as(graph, GRAPH_FORM_CODE,
                  "\n\n\ndef forward(self, x):\n"
                  "    relu = x.relu();  x = None\n"
                  "    neg = relu.neg();  relu = None\n"
                  "    abs_1 = neg.abs();  neg = None\n"
                  "    return abs_1\n"
                  "    ");
        prints_as(graph, GRAPH_FORM_TABULAR,
                  "opcode       name    target    args      kwargs\n"
                  "-----------  ------  --------  --------  --------\n"
                  "placeholder  x       x         ()        {}\n"
                  "call_method  relu    relu      (x,)      {}\n"
                  "call_method  neg     neg       (relu,)   {}\n"
                  "call_method  abs_1   abs       (neg,)    {}\n"
                  "output       output  output    (abs_1,)  {}");
        graph_unref(graph);
}

Test(print, functions_appear_by_qualified_name)
{
        Graph *graph = relu_neg_abs(OP_CALL_FUNCTION, "torch.");
        finish(graph);
        prints_as(graph, GRAPH_FORM_CODE,
                  "\n\n\ndef forward(self, x):\n"
                  "    relu = torch.relu(x);  x = None\n"
                  "    neg = torch.neg(relu);  relu = None\n"
                  "    abs_1 = torch.abs(neg);  neg = None\n"
                  "    return abs_1\n"
                  "    ");
        graph_unref(graph);
}

Test(print, one_node_prints_as_pytorch_quotes_it_in_failures)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x");
        Node *sum = add(graph, OP_CALL_FUNCTION, NULL, "operator.add",
                        sequence(VALUE_TUPLE, 2, node_value(x), text_value("it's")), value_none());
        output(graph, node_value(sum));
        finish(graph);
        Text text = { 0 };
        node_print(sum, &text);
        cr_assert_str_eq(
                text.data,
                "%add : [num_users=1] = call_function[target=operator.add](args = (%x, it's), kwargs = {})");
        text_deinit(&text);
        graph_unref(graph);
}

Test(print, values_print_as_python_reprs)
{
        const struct {
                Value value;
                const char *want;
        } rows[] = {
                { value_none(), "None" },
                { value_bool(true), "True" },
                { value_int(INT64_MIN), "-9223372036854775808" },
                { value_float(1e16), "1e+16" },
                { value_float(1e-5), "1e-05" },
                { value_float(-0.0), "-0.0" },
                { { .kind = VALUE_COMPLEX, .c = { 0, 1.5 } }, "1.5j" },
                { { .kind = VALUE_COMPLEX, .c = { 1, -2 } }, "(1-2j)" },
                { { .kind = VALUE_COMPLEX, .c = { -0.0, 1 } }, "(-0+1j)" },
                { { .kind = VALUE_ELLIPSIS }, "Ellipsis" },
                { value_dtype(DTYPE_BF16), "torch.bfloat16" },
                { { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CHANNELS_LAST_3D },
                  "torch.channels_last_3d" },
                { text_value("it's"), "\"it's\"" },
                { text_value("it's \"so\"\n\x01\xc3\xa9\xe2\x80\x8b\xf0\x9f\x98\x80"),
                  "'it\\'s \"so\"\\n\\x01\xc3\xa9\\u200b\xf0\x9f\x98\x80'" },
                { sequence(VALUE_TUPLE, 1, value_int(1)), "(1,)" },
                { sequence(VALUE_SIZE, 2, value_int(1), value_int(2)), "torch.Size([1, 2])" },
                { sequence(VALUE_SLICE, 3, value_none(), value_int(2), value_none()),
                  "slice(None, 2, None)" },
                { dict_of_one("k", sequence(VALUE_LIST, 0)), "{'k': []}" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Text text = { 0 };
                value_print_repr(rows[i].value, &text);
                cr_assert_str_eq(text.data, rows[i].want);
                text_deinit(&text);
                value_unref(rows[i].value);
        }
        Value device = text_value("cuda:1");
        device.kind = VALUE_DEVICE;
        Text text = { 0 };
        value_print_repr(device, &text);
        cr_assert_str_eq(text.data, "device(type='cuda', index=1)");
        text_deinit(&text);
        value_unref(device);
}

Test(print, pytree_code_flattens_the_users_arguments)
{
        Graph *graph = new_graph();
        Node *a = placeholder(graph, "a_1"), *b = placeholder(graph, "b_1");
        output(graph, sequence(VALUE_LIST, 2, node_value(a), node_value(b)));
        finish(graph);
        static const char *names[] = { "a", "b" }, *const keys[] = { "b" };
        Tree leaf = { .kind = TREE_LEAF }, *leaves[] = { &leaf };
        Tree args = { .kind = TREE_TUPLE, .n = 1, .children = leaves },
             kwargs = { .kind = TREE_DICT, .n = 1, .keys = keys, .children = leaves };
        Tree *pair[] = { &args, &kwargs }, in = { .kind = TREE_TUPLE, .n = 2, .children = pair };
        graph->pytree = true;
        graph->signature.in_tree = &in;
        graph->signature.out_tree = &leaf;
        graph->signature.argument_names = names;
        graph->signature.n_arguments = 2;
        prints_as(graph, GRAPH_FORM_CODE,
                  "\n\n\ndef forward(self, a, b):\n"
                  "    a_1, b_1, = fx_pytree.tree_flatten_spec(([a], {'b':b}), self._in_spec)\n"
                  "    return pytree.tree_unflatten([a_1, b_1], self._out_spec)\n"
                  "    ");
        args.n = 2;
        graph->signature.in_tree = &args;
        prints_as(graph, GRAPH_FORM_CODE,
                  "\n\n\ndef forward(self, a, b):\n"
                  "    a_1, b_1, = fx_pytree.tree_flatten_spec([a, b], self._in_spec)\n"
                  "    return pytree.tree_unflatten([a_1, b_1], self._out_spec)\n"
                  "    ");
        graph_unref(graph);
}
