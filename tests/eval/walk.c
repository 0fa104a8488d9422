// SPDX-License-Identifier: Apache-2.0
// walk_graph: the six opcodes with torch.fx.Interpreter's meaning, failures with the line PyTorch
// prints, state that no run leaks into another.
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

TestSuite(walk, .init = open_sample, .fini = close_sample);

static Value text(const char *string)
{
        return sample_text(&sample, string);
}

static Node *function(const char *target, uint32_t n, const Value *args)
{
        return add_node(&sample, OP_CALL_FUNCTION, NULL, target, n, args);
}

static Value run(uint32_t n, const Value *inputs)
{
        Value out;
        must(run_graph(&sample, n, inputs, &out));
        return out;
}

Test(walk, relu_neg_abs_runs_as_functions_and_as_methods)
{
        Node *x = add_input(&sample, "x");
        Node *relu = function("torch.relu", VALUES(node_value(x)));
        Node *neg = add_node(&sample, OP_CALL_METHOD, NULL, "neg", VALUES(node_value(relu)));
        Node *abs = function("torch.ops.aten.abs.default", VALUES(node_value(neg)));
        add_output(&sample, node_value(abs));
        finish(&sample);
        Value in = F32(&sample, SIZES(3, 4), DOUBLES(-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12));
        EXPECT(run(VALUES(in)), 0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12);
        EXPECT(in, -1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12);
}

// Looking through all that is fetched at each node would take minutes.
Test(walk, very_many_values_are_fetched, .timeout = 30)
{
        enum { MANY = 90000 };
        static const Node *fetch[2 * MANY];
        static Value fetched[2 * MANY];
        Node *x = add_input(&sample, "x"), *neg = x;
        for (uint32_t i = 0; i < MANY; i++) {
                neg = function("torch.neg", VALUES(node_value(neg)));
                fetch[i] = fetch[2 * MANY - 1 - i] = neg;
        }
        add_output(&sample, node_value(x));
        finish(&sample);
        Value in = F32(&sample, SIZES(1), DOUBLES(3)), out;
        WalkOptions options = { .inputs = { .items = &in, .n = 1 }, .fetch = fetch, .n_fetch = 2 * MANY };
        must(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, fetched));
        for (uint32_t i = 0; i < 2 * MANY; i++) {
                bool again = (i < MANY ? i : 2 * MANY - 1 - i) % 2 == 1;
                cr_assert_eq(*(float *)tensor_data(fetched[i].tensor), again ? 3 : -3);
                value_unref(fetched[i]);
        }
        value_unref(out);
}

Test(walk, a_placeholder_falls_back_to_its_default)
{
        Node *x = add_input(&sample, "x");
        Node *scale = add_node(&sample, OP_PLACEHOLDER, "scale", "scale", VALUES(value_float(2)));
        Node *mul = function("torch.mul", VALUES(node_value(x), node_value(scale)));
        add_output(&sample, node_value(mul));
        finish(&sample);
        Value in = F32(&sample, SIZES(2), DOUBLES(1, 2));
        EXPECT(run(VALUES(in)), 2, 4);
        EXPECT(run(VALUES(in, ((Value){ .kind = VALUE_ABSENT }))), 2, 4);
        EXPECT(run(VALUES(in, value_float(3))), 3, 6);
}

Test(walk, a_missing_input_is_named)
{
        Node *x = add_input(&sample, "x");
        add_output(&sample, node_value(x));
        finish(&sample);
        Value out;
        cr_assert_eq(run_graph(&sample, 0, NULL, &out), STATUS_INPUT);
        cr_assert(strstr(failure_current()->message,
                         "Expected positional argument for parameter x, but one was not passed in!") != NULL);
        cr_assert_str_eq(failure_current()->argument, "x");
}

Test(walk, surplus_inputs_are_refused)
{
        Node *x = add_input(&sample, "x");
        add_output(&sample, node_value(x));
        finish(&sample);
        Value in = F32(&sample, SIZES(1), NULL), out;
        cr_assert_eq(run_graph(&sample, VALUES(in, in), &out), STATUS_INPUT);
}

Test(walk, starred_placeholders_are_a_tuple_and_a_dict_and_empty_by_default)
{
        Node *rest = add_node(&sample, OP_PLACEHOLDER, "rest", "*rest", 0, NULL);
        Node *options = add_node(&sample, OP_PLACEHOLDER, "options", "**options", 0, NULL);
        Value both = sample_list(&sample, VALUE_TUPLE, VALUES(node_value(rest), node_value(options)));
        add_output(&sample, both);
        finish(&sample);
        Value out = run(0, NULL);
        cr_assert_eq(out.seq->items[0].kind, VALUE_TUPLE);
        cr_assert_eq(out.seq->items[0].seq->n, 0);
        cr_assert_eq(out.seq->items[1].kind, VALUE_DICT);
        out = run(VALUES(sample_list(&sample, VALUE_TUPLE, VALUES(value_int(1), value_int(2)))));
        cr_assert_eq(out.seq->items[0].seq->n, 2);
}

Test(walk, nodes_nest_in_lists_and_results_keep_their_structure)
{
        Node *x = add_input(&sample, "x");
        Node *y = add_input(&sample, "y");
        Value pair = sample_list(&sample, VALUE_LIST, VALUES(node_value(x), node_value(y), node_value(x)));
        Node *cat = function("torch.cat", VALUES(pair, value_int(0)));
        Value inner = sample_list(&sample, VALUE_TUPLE, VALUES(node_value(cat), value_int(7)));
        Value outer = sample_list(&sample, VALUE_LIST, VALUES(inner, node_value(y), text("done")));
        add_output(&sample, outer);
        finish(&sample);
        Value a = F32(&sample, SIZES(1), DOUBLES(1)), b = F32(&sample, SIZES(2), DOUBLES(2, 3));
        Value out = run(VALUES(a, b));
        cr_assert_eq(out.kind, VALUE_LIST);
        cr_assert_eq(out.seq->items[0].kind, VALUE_TUPLE);
        EXPECT(out.seq->items[0].seq->items[0], 1, 2, 3, 1);
        cr_assert_eq(out.seq->items[0].seq->items[1].i, 7);
        cr_assert_eq(out.seq->items[1].tensor, b.tensor);
        cr_assert_str_eq(out.seq->items[2].str->text, "done");
}

Test(walk, long_argument_lists_run_from_the_heap)
{
        enum { N = 40 };
        Node *x = add_input(&sample, "x");
        Value items[N];
        for (int i = 0; i < N; i++)
                items[i] = node_value(x);
        Node *cat = function("torch.cat", VALUES(sample_list(&sample, VALUE_LIST, N, items)));
        add_output(&sample, node_value(cat));
        finish(&sample);
        cr_assert_eq(run(VALUES(F32(&sample, SIZES(3), NULL))).tensor->meta.size[0], 3 * N);
}

Test(walk, values_are_dropped_by_their_last_reader)
{
        enum { N = 100, ELEMENTS = 1 << 14 };
        Node *last = add_input(&sample, "x");
        for (int i = 0; i < N; i++)
                last = function("torch.neg", VALUES(node_value(last)));
        function("torch.neg", VALUES(node_value(last))); // never read: drops itself
        add_output(&sample, node_value(last));
        finish(&sample);
        run(VALUES(F32(&sample, SIZES(ELEMENTS), NULL)));
        // The input, one value and its successor; not a hundred.
        cr_assert_leq(atomic_load(&sample.budget.peak), (size_t)4 * ELEMENTS * sizeof(float));
}

Test(walk, fetched_nodes_live_to_the_end_and_show_later_writes)
{
        Node *x = add_input(&sample, "x");
        Node *neg = function("torch.neg", VALUES(node_value(x)));
        Node *add = add_node(&sample, OP_CALL_METHOD, NULL, "add_", VALUES(node_value(neg), value_int(10)));
        Node *abs = function("torch.abs", VALUES(node_value(add)));
        add_output(&sample, node_value(abs));
        finish(&sample);
        Value in = F32(&sample, SIZES(2), DOUBLES(1, 2)), out, fetched[2];
        const Node *fetch[] = { neg, x };
        WalkOptions options = { .inputs = { .items = &in, .n = 1 }, .fetch = fetch, .n_fetch = 2 };
        must(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, fetched));
        EXPECT(keep(&sample, fetched[0]), 9, 8);
        cr_assert_eq(keep(&sample, fetched[1]).tensor, in.tensor);
        EXPECT(keep(&sample, out), 9, 8);
}

Test(walk, a_trace_has_one_row_per_node_in_order)
{
        Node *x = add_input(&sample, "x");
        Node *relu = function("torch.relu", VALUES(node_value(x)));
        Value size = sample_list(&sample, VALUE_LIST, VALUES(value_int(6)));
        Node *view = add_node(&sample, OP_CALL_METHOD, NULL, "view", VALUES(node_value(relu), size));
        add_output(&sample, node_value(view));
        finish(&sample);
        NodeTiming rows[4];
        WalkTrace trace = { .rows = rows, .capacity = 4 };
        Value in = F32(&sample, SIZES(2, 3), NULL), out;
        WalkOptions options = { .inputs = { .items = &in, .n = 1 }, .trace = &trace };
        must(walk_graph(sample_emitter(&sample), sample.graph, &options, &out, NULL));
        keep(&sample, out);
        cr_assert_eq(trace.n_rows, 4);
        cr_assert_null(rows[0].kernel);
        cr_assert_str_eq(rows[1].kernel, "relu");
        cr_assert_str_eq(rows[2].kernel, "view");
        cr_assert_eq(rows[1].bytes, 48);
        cr_assert_eq(rows[2].meta.size[0], 6);
        cr_assert_leq(rows[0].start_ns, rows[0].end_ns);
        cr_assert_eq(rows[0].end_ns, rows[1].start_ns);
        cr_assert_geq(trace.live_bytes_peak, 48);
}

// ---- failures ----
Test(walk, a_failure_goes_on_with_the_line_pytorch_prints)
{
        Node *x = add_input(&sample, "x");
        Node *y = add_input(&sample, "y");
        Node *add = function("_operator.add", VALUES(node_value(x), node_value(y)));
        add_output(&sample, node_value(add));
        finish(&sample);
        Value a = F32(&sample, SIZES(3), NULL), b = F32(&sample, SIZES(4), NULL), out;
        cr_assert_eq(run_graph(&sample, VALUES(a, b), &out), STATUS_SHAPE);
        cr_assert_str_eq(failure_current()->message,
                         "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
                         "dimension 0\n\n"
                         "While executing %add : [num_users=1] = call_function[target=operator.add](args = "
                         "(%x, %y), kwargs = {})");
        cr_assert_str_eq(failure_current()->node, "add");
}

Test(walk, a_cancelled_run_stops_and_blames_no_node)
{
        Node *x = add_input(&sample, "x");
        add_output(&sample, node_value(function("torch.neg", VALUES(node_value(x)))));
        finish(&sample);
        atomic_store(&sample.ctx.cancelled, 1);
        Value in = F32(&sample, SIZES(1), NULL), out;
        cr_assert_eq(run_graph(&sample, VALUES(in), &out), STATUS_CANCELLED);
        cr_assert_null(strstr(failure_current()->message, "While executing"));
        atomic_store(&sample.ctx.cancelled, 0);
        sample.ctx.deadline_ns = 1;
        cr_assert_eq(run_graph(&sample, VALUES(in), &out), STATUS_DEADLINE);
}

// ---- state ----
static Tensor *add_state(const char *path, bool written, Storage *tied)
{
        Tensor *tensor;
        State *state;
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 2 });
        if (tied == NULL) {
                must(tensor_new(&meta, NULL, &tensor));
                ((float *)tensor_data(tensor))[0] = 1;
                ((float *)tensor_data(tensor))[1] = 2;
                tensor->storage->readonly = true; // as weights are: mapped, shared by all threads
        } else {
                must(tensor_new_view(tied, &meta, 0, &tensor));
        }
        must(graph_add_state(sample.graph, path, tensor, &state));
        state->written = written;
        return tensor;
}

Test(walk, state_that_is_written_is_copied_first_and_fresh_in_every_run)
{
        Tensor *count = add_state("count", true, NULL);
        Node *x = add_input(&sample, "x");
        Node *attr = add_node(&sample, OP_GET_ATTR, "count", "count", 0, NULL);
        add_node(&sample, OP_CALL_METHOD, NULL, "add_", VALUES(node_value(attr), node_value(x)));
        Node *again = add_node(&sample, OP_GET_ATTR, "count_1", "count", 0, NULL);
        add_output(&sample, node_value(again));
        finish(&sample);
        Value in = F32(&sample, SIZES(2), DOUBLES(10, 20));
        for (int i = 0; i < 2; i++) {
                EXPECT(run(VALUES(in)), 11, 22);
                sample.eager = eager_close(sample.eager);
        }
        cr_assert_float_eq(((float *)tensor_data(count))[0], 1, 0);
}

Test(walk, tied_state_sees_the_write_through_its_twin)
{
        Tensor *first = add_state("first", true, NULL);
        add_state("second", false, first->storage);
        Node *second = add_node(&sample, OP_GET_ATTR, "second", "second", 0, NULL);
        Node *attr = add_node(&sample, OP_GET_ATTR, "first", "first", 0, NULL);
        add_node(&sample, OP_CALL_METHOD, NULL, "add_", VALUES(node_value(attr), value_int(1)));
        add_output(&sample, node_value(second));
        finish(&sample);
        EXPECT(run(0, NULL), 2, 3);
        cr_assert_float_eq(((float *)tensor_data(first))[1], 2, 0);
}

Test(walk, shared_state_is_never_written_even_where_nobody_said_it_would_be)
{
        Tensor *fixed = add_state("fixed", false, NULL);
        Node *attr = add_node(&sample, OP_GET_ATTR, "fixed", "fixed", 0, NULL);
        Node *add = add_node(&sample, OP_CALL_METHOD, NULL, "add_", VALUES(node_value(attr), value_int(1)));
        add_output(&sample, node_value(add));
        must(graph_finish(sample.graph));
        Value out;
        cr_assert_neq(run_graph(&sample, 0, NULL, &out), STATUS_OK);
        cr_assert_float_eq(((float *)tensor_data(fixed))[0], 1, 0);
}

// ---- child graphs ----
static Graph *child_graph(const char *target)
{
        Graph *graph;
        Node *a, *b, *call, *output;
        Seq *seq;
        must(graph_new(GRAPH_FX_JSON, &graph));
        must(seq_new(0, &seq));
        must(graph_add_node(graph,
                            &(NodeSpec){ .op = OP_PLACEHOLDER,
                                         .name = "a",
                                         .target = "a",
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &a));
        must(seq_new(1, &seq));
        seq->items[0] = value_int(100);
        must(graph_add_node(graph,
                            &(NodeSpec){ .op = OP_PLACEHOLDER,
                                         .name = "b",
                                         .target = "b",
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &b));
        must(seq_new(2, &seq));
        seq->items[0] = node_value(a);
        seq->items[1] = node_value(b);
        must(graph_add_node(graph,
                            &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                         .target = target,
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &call));
        must(seq_new(1, &seq));
        seq->items[0] = node_value(call);
        must(graph_add_node(graph,
                            &(NodeSpec){ .op = OP_OUTPUT,
                                         .name = "output",
                                         .target = "output",
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &output));
        must(graph_finish(graph));
        return graph;
}

static void add_child(const char *path, const char *target)
{
        Module *module;
        must(graph_add_module(sample.graph, path, "torch.fx.GraphModule", &module));
        module->graph = child_graph(target);
}

Test(walk, a_child_graph_takes_positions_keywords_and_defaults)
{
        add_child("inner", "torch.add");
        Node *x = add_input(&sample, "x");
        Node *plain = add_node(&sample, OP_CALL_MODULE, NULL, "inner", VALUES(node_value(x)));
        Node *both = add_node(&sample, OP_CALL_MODULE, NULL, "inner", VALUES(node_value(x), value_int(1)));
        Seq *seq;
        Dict *dict;
        Node *keyword;
        must(seq_new(1, &seq));
        seq->items[0] = node_value(x);
        must(dict_new(1, &dict));
        must(str_new("b", 1, &dict->items[0].key));
        dict->items[0].value = value_int(2);
        must(graph_add_node(sample.graph,
                            &(NodeSpec){ .op = OP_CALL_MODULE,
                                         .target = "inner",
                                         .args = value_seq_take(VALUE_TUPLE, seq),
                                         .kwargs = (Value){ .kind = VALUE_DICT, .dict = dict } },
                            &keyword));
        add_output(&sample, sample_list(&sample, VALUE_TUPLE,
                                        VALUES(node_value(plain), node_value(both), node_value(keyword))));
        finish(&sample);
        Value out = run(VALUES(F32(&sample, SIZES(1), DOUBLES(5))));
        EXPECT(out.seq->items[0], 105);
        EXPECT(out.seq->items[1], 6);
        EXPECT(out.seq->items[2], 7);
}

Test(walk, a_failure_in_a_child_names_the_inner_node_and_both_lines)
{
        add_child("inner", "torch.add");
        Node *x = add_input(&sample, "x");
        Node *y = add_input(&sample, "y");
        Node *call = add_node(&sample, OP_CALL_MODULE, NULL, "inner", VALUES(node_value(x), node_value(y)));
        add_output(&sample, node_value(call));
        finish(&sample);
        Value a = F32(&sample, SIZES(3), NULL), b = F32(&sample, SIZES(4), NULL), out;
        cr_assert_eq(run_graph(&sample, VALUES(a, b), &out), STATUS_SHAPE);
        cr_assert(strstr(failure_current()->message, "While executing %add : ") != NULL);
        cr_assert(strstr(failure_current()->message, "While executing %inner : ") != NULL);
        cr_assert_str_eq(failure_current()->node, "add");
}

Test(walk, a_condition_chooses_its_branch)
{
        add_child("yes", "torch.add");
        add_child("no", "torch.mul");
        add_output(&sample, value_none());
        finish(&sample);
        Emitter *emitter = sample_emitter(&sample);
        const Graph *yes = graph_module(sample.graph, "yes")->graph,
                    *no = graph_module(sample.graph, "no")->graph;
        Value operands[] = { F32(&sample, SIZES(1), DOUBLES(3)), value_int(4) }, out;
        ValueSpan span = { .items = operands, .n = 2 };
        must(emitter->vtbl->cond(emitter, value_bool(true), yes, no, span, &out));
        EXPECT(keep(&sample, out), 7);
        must(emitter->vtbl->cond(emitter, sample_tensor(&sample, DTYPE_BOOL, 0, NULL, DOUBLES(0)), yes, no,
                                 span, &out));
        EXPECT(keep(&sample, out), 12);
        cr_assert_eq(emitter->vtbl->cond(emitter, F32(&sample, SIZES(2), NULL), yes, no, span, &out),
                     STATUS_VALUE);
        cr_assert_str_eq(failure_current()->message,
                         "Boolean value of Tensor with more than one value is ambiguous");
}

Test(walk, a_loop_carries_values_until_its_condition_fails_and_polls)
{
        add_child("less", "torch.lt");
        add_child("step", "torch.add");
        add_output(&sample, value_none());
        finish(&sample);
        Emitter *emitter = sample_emitter(&sample);
        const Graph *less = graph_module(sample.graph, "less")->graph,
                    *step = graph_module(sample.graph, "step")->graph;
        Value carried = F32(&sample, SIZES(1), DOUBLES(1)), additional = value_int(10), out;
        must(emitter->vtbl->loop(emitter, less, step, (ValueSpan){ .items = &carried, .n = 1 },
                                 (ValueSpan){ .items = &additional, .n = 1 }, &out));
        keep(&sample, out);
        cr_assert_eq(out.seq->n, 1);
        EXPECT(out.seq->items[0], 11);
        sample.ctx.deadline_ns = clock_ns() + 20 * 1000 * 1000;
        Value nothing = value_int(0), always = F32(&sample, SIZES(1), DOUBLES(-1));
        Status status = emitter->vtbl->loop(emitter, less, step, (ValueSpan){ .items = &always, .n = 1 },
                                            (ValueSpan){ .items = &nothing, .n = 1 }, &out);
        cr_assert_eq(status, STATUS_DEADLINE);
}

// ---- values that grow at every node ----
// A child graph that gives its argument back.
static void add_identity(const char *path)
{
        Module *module;
        Node *x, *output;
        Seq *seq;
        must(graph_add_module(sample.graph, path, "torch.fx.GraphModule", &module));
        must(graph_new(GRAPH_FX_JSON, &module->graph));
        must(seq_new(0, &seq));
        must(graph_add_node(module->graph,
                            &(NodeSpec){ .op = OP_PLACEHOLDER,
                                         .name = "x",
                                         .target = "x",
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &x));
        must(seq_new(1, &seq));
        seq->items[0] = node_value(x);
        must(graph_add_node(module->graph,
                            &(NodeSpec){ .op = OP_OUTPUT,
                                         .name = "output",
                                         .target = "output",
                                         .args = value_seq_take(VALUE_TUPLE, seq) },
                            &output));
        must(graph_finish(module->graph));
}

// n nodes, each of them called with a list that holds the one before `copies` times.
static void add_wrapping_nodes(Opcode op, const char *target, uint32_t n, uint32_t copies)
{
        const Node *last = add_input(&sample, "x");
        for (uint32_t i = 0; i < n; i++) {
                Seq *list, *args;
                Node *node;
                must(seq_new(copies, &list));
                for (uint32_t k = 0; k < copies; k++)
                        list->items[k] = node_value(last);
                must(seq_new(1, &args));
                args->items[0] = value_seq_take(VALUE_LIST, list);
                must(graph_add_node(
                        sample.graph,
                        &(NodeSpec){ .op = op, .target = target, .args = value_seq_take(VALUE_TUPLE, args) },
                        &node));
                last = node;
        }
        add_output(&sample, node_value(last));
        finish(&sample);
}

static void expect_too_deep(void)
{
        Value out;
        cr_assert_eq(run_graph(&sample, VALUES(value_int(1)), &out), STATUS_TOO_LARGE);
        cr_assert(strstr(failure_current()->message,
                         "nests deeper than 32 levels or holds more than 65536 items") != NULL,
                  "%s", failure_current()->message);
}

Test(walk, a_list_around_a_list_at_every_call_ends_at_the_limit)
{
        add_wrapping_nodes(OP_CALL_FUNCTION, "builtins.tuple", 99990, 1);
        expect_too_deep();
}

Test(walk, a_list_around_a_list_at_every_child_graph_ends_at_the_limit)
{
        add_identity("same");
        add_wrapping_nodes(OP_CALL_MODULE, "same", 99990, 1);
        expect_too_deep();
}

Test(walk, a_list_twice_in_a_list_at_every_node_ends_at_the_limit)
{
        add_identity("same");
        add_wrapping_nodes(OP_CALL_MODULE, "same", 40, 2);
        expect_too_deep();
}

Test(walk, an_output_that_holds_one_list_many_times_ends_at_the_limit)
{
        Node *x = add_input(&sample, "x");
        Value items[300];
        for (size_t i = 0; i < ARRAY_LENGTH(items); i++)
                items[i] = node_value(x);
        add_output(&sample, sample_list(&sample, VALUE_LIST, ARRAY_LENGTH(items), items));
        finish(&sample);
        Value ints[300];
        for (size_t i = 0; i < ARRAY_LENGTH(ints); i++)
                ints[i] = value_int((int64_t)i);
        Value in = sample_list(&sample, VALUE_LIST, ARRAY_LENGTH(ints), ints), out;
        cr_assert_eq(run_graph(&sample, VALUES(in), &out), STATUS_TOO_LARGE);
        cr_assert_str_eq(failure_current()->node, "output");
}

Test(walk, thirty_two_levels_fit)
{
        add_identity("same");
        add_wrapping_nodes(OP_CALL_MODULE, "same", 32, 1);
        Value value = run(VALUES(value_int(7)));
        for (int level = 0; level < 32; level++) {
                cr_assert_eq(value.kind, VALUE_LIST);
                value = value.seq->items[0];
        }
        cr_assert_eq(value.i, 7);
}

Test(walk, child_graphs_nest_no_deeper_than_the_limit)
{
        add_child("inner", "torch.add");
        add_output(&sample, value_none());
        finish(&sample);
        Emitter *emitter = sample_emitter(&sample);
        Value in = F32(&sample, SIZES(1), NULL), out;
        emitter->depth = 16;
        cr_assert_eq(emitter->vtbl->call(emitter, graph_module(sample.graph, "inner")->graph,
                                         (ValueSpan){ .items = &in, .n = 1 }, &out),
                     STATUS_RUN);
        emitter->depth = 0;
}
