// SPDX-License-Identifier: Apache-2.0
// passes.c: what each pass of the base set does to a small graph, as text before and after; and
// what it must leave alone.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/graph/print.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"

static Graph *graph;

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
}

static void stop(void)
{
        graph = graph_unref(graph);
}

TestSuite(passes, .init = start, .fini = stop);

// ---- building ----
static Value of(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

static Node *add(Opcode op, const char *target, Value a, Value b)
{
        uint32_t n = a.kind == VALUE_ABSENT ? 0 : b.kind == VALUE_ABSENT ? 1 : 2;
        Seq *args;
        Node *node;
        cr_assert_eq(seq_new(n, &args), STATUS_OK);
        if (n > 0)
                args->items[0] = a;
        if (n > 1)
                args->items[1] = b;
        cr_assert_eq(
                graph_add_node(
                        graph,
                        &(NodeSpec){ .op = op, .target = target, .args = value_seq_take(VALUE_TUPLE, args) },
                        &node),
                STATUS_OK, "%s", failure_current()->message);
        return node;
}

static const Value absent = { .kind = VALUE_ABSENT };

static Node *input(const char *name)
{
        return add(OP_PLACEHOLDER, name, absent, absent);
}

static Node *call(const char *target, Value a, Value b)
{
        return add(OP_CALL_FUNCTION, target, a, b);
}

static Node *constant(const char *path, float first)
{
        TensorMeta meta;
        Tensor *tensor;
        State *state;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 3 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int i = 0; i < 3; i++)
                ((float *)tensor_data(tensor))[i] = first + (float)i;
        cr_assert_eq(graph_add_state(graph, path, tensor, &state), STATUS_OK);
        return add(OP_GET_ATTR, path, absent, absent);
}

static void finish(Node *result)
{
        CheckReport report;
        add(OP_OUTPUT, "output", of(result), absent);
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK);
        check_report_deinit(&report);
}

static void finish_two(Node *first, Node *second)
{
        Seq *pair;
        cr_assert_eq(seq_new(2, &pair), STATUS_OK);
        pair->items[0] = of(first);
        pair->items[1] = of(second);
        CheckReport report;
        add(OP_OUTPUT, "output", value_seq_take(VALUE_TUPLE, pair), absent);
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK);
        check_report_deinit(&report);
}

static Tensor *numbers(void)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 3 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        memcpy(tensor_data(tensor), (float[]){ -1, 0.5f, 2 }, 12);
        return tensor;
}

// ---- checking ----
// The recording after `pass` alone, or as recorded when NULL.
static void expect_text(const char *pass, const char *wanted)
{
        Value x = value_tensor_take(numbers());
        Recording *recording;
        RecordOptions options = { .inputs = { &x, 1 } };
        PassContext context = { .n_threads = 1 };
        cr_assert_eq(record_graph(graph, &options, NULL, &recording), STATUS_OK, "%s",
                     failure_current()->message);
        for (unsigned i = 0; pass != NULL && i < n_passes; i++) {
                if (strcmp(passes[i].name, pass) != 0)
                        continue;
                cr_assert_eq(passes[i].run(recording, &context), STATUS_OK, "%s", failure_current()->message);
                break;
        }
        Graph *shown;
        Text text = { 0 };
        cr_assert_eq(recording_graph(recording, &shown), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_print(shown, GRAPH_FORM_GRAPH, &text), STATUS_OK);
        cr_expect_str_eq(text.data, wanted, "%s:\n%s\nwanted:\n%s", pass == NULL ? "as recorded" : pass,
                         text.data, wanted);
        text_deinit(&text);
        graph_unref(shown);
        recording_free(recording);
        value_clear(&x);
}

static void expect_equal_runs(void)
{
        char words[600];
        Value x = value_tensor_take(numbers());
        CompileOptions options = { .n_threads = 1 };
        cr_expect_eq(run_both(graph, (ValueSpan){ &x, 1 }, &options, 0, 0, words), BOTH_EQUAL, "%s", words);
        options.no_passes = true;
        cr_expect_eq(run_both(graph, (ValueSpan){ &x, 1 }, &options, 0, 0, words), BOTH_EQUAL,
                     "without passes: %s", words);
        value_clear(&x);
}

Test(passes, remove_dead_drops_what_nobody_reads)
{
        Node *x = input("x");
        call("torch.neg", of(x), absent);
        finish(call("torch.relu", of(x), absent));
        expect_text(NULL, "graph():\n"
                          "    %x : [num_users=2] = placeholder[target=x]\n"
                          "    %neg_default : [num_users=0] = "
                          "call_function[target=torch.ops.aten.neg.default](args = (%x,), kwargs = {})\n"
                          "    %relu_default : [num_users=1] = "
                          "call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
                          "    return relu_default");
        expect_text("remove_dead",
                    "graph():\n"
                    "    %x : [num_users=1] = placeholder[target=x]\n"
                    "    %relu_default : [num_users=1] = "
                    "call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
                    "    return relu_default");
        expect_equal_runs();
}

Test(passes, remove_dead_keeps_what_may_refuse_its_values)
{
        static const struct {
                const char *target;
                Dtype dtype;
                bool kept;
        } cases[] = { { "torch.ops.aten.embedding.default", DTYPE_NONE, true },
                      { "torch.ops.aten.floor_divide.default", DTYPE_I64, true },
                      { "torch.ops.aten.remainder.Tensor", DTYPE_I64, true },
                      { "torch.ops.aten.floor_divide.default", DTYPE_F32, false },
                      { "torch.ops.aten.remainder.Tensor", DTYPE_F32, false },
                      { "torch.ops.aten.div.Tensor", DTYPE_I64, false } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Tensor *tensors[2];
                Value inputs[2];
                for (int k = 0; k < 2; k++) {
                        TensorMeta meta;
                        meta_init(&meta,
                                  cases[i].dtype == DTYPE_NONE ? (k == 0 ? DTYPE_F32 : DTYPE_I64)
                                                               : cases[i].dtype,
                                  2, (int64_t[]){ 2, 2 });
                        cr_assert_eq(tensor_new(&meta, NULL, &tensors[k]), STATUS_OK);
                        // 0 divides; row 0 is there
                        memset(tensor_data(tensors[k]), k == 0 ? 0x11 : 0, tensors[k]->storage->n_bytes);
                        inputs[k] = value_tensor_take(tensors[k]);
                }
                if (cases[i].dtype == DTYPE_NONE)
                        *(int64_t *)tensor_data(tensors[1]) = 9;
                Node *x = input("x"), *y = input("y");
                call(cases[i].target, of(x), of(y));
                finish(call("torch.neg", of(x), absent));
                char words[600];
                CompileOptions options = { .n_threads = 1 };
                cr_expect_eq(run_both(graph, (ValueSpan){ inputs, 2 }, &options, 0, 0, words),
                             cases[i].kept ? BOTH_FAIL : BOTH_EQUAL, "case %zu: %s", i, words);
                value_clear(&inputs[0]);
                value_clear(&inputs[1]);
                graph_unref(graph);
                cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        }
}

Test(passes, remove_dead_keeps_writes_that_somebody_reads)
{
        Node *x = input("x"), *copy = call("torch.clone", of(x), absent);
        call("torch.relu_", of(copy), absent);
        finish(copy);
        const char *text =
                "graph():\n"
                "    %x : [num_users=1] = placeholder[target=x]\n"
                "    %clone_default : [num_users=1] = "
                "call_function[target=torch.ops.aten.clone.default](args = (%x,), kwargs = {})\n"
                "    %relu__default : [num_users=1] = "
                "call_function[target=torch.ops.aten.relu_.default](args = (%clone_default,), kwargs "
                "= {})\n"
                "    return relu__default";
        expect_text(NULL, text);
        expect_text("remove_dead", text);
        expect_text("merge_equal", text);
        expect_text("remove_copies", text);
        expect_equal_runs();
}

Test(passes, merge_equal_makes_one_of_two_equal_calls)
{
        Node *x = input("x"), *a = call("torch.relu", of(x), absent), *b = call("torch.relu", of(x), absent);
        finish(call("torch.add", of(a), of(b)));
        expect_text("merge_equal",
                    "graph():\n"
                    "    %x : [num_users=1] = placeholder[target=x]\n"
                    "    %relu_default : [num_users=1] = "
                    "call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
                    "    %add_tensor : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args "
                    "= (%relu_default, %relu_default), "
                    "kwargs = {})\n"
                    "    return add_tensor");
        expect_equal_runs();
}

Test(passes, merge_equal_takes_room_for_each_node_once)
{
        enum { MANY = 5000 };
        Node *x = input("x");
        Seq *all;
        cr_assert_eq(seq_new(MANY, &all), STATUS_OK);
        for (int i = 0; i < MANY; i++)
                all->items[i] = of(call("torch.relu", of(x), absent));
        finish(call("torch.cat", value_seq_take(VALUE_LIST, all), absent));
        Value value = value_tensor_take(numbers());
        Recording *recording;
        RecordOptions options = { .inputs = { &value, 1 } };
        PassContext context = { .n_threads = 1 };
        cr_assert_eq(record_graph(graph, &options, NULL, &recording), STATUS_OK);
        size_t before = recording->arena.total_bytes;
        cr_assert_eq(pass_merge_equal(recording, &context), STATUS_OK);
        cr_expect_eq(recording->calls[0]->n_nodes, MANY);
        cr_expect_leq(recording->arena.total_bytes, before + 64 * MANY);
        recording_free(recording);
        value_clear(&value);
}

Test(passes, merge_equal_keeps_views_apart_that_stand_on_other_constants)
{
        input("x");
        // of equal bits
        Node *a = call("torch.sum", of(constant("a", 1)), absent),
             *b = call("torch.sum", of(constant("b", 1)), absent);
        call("torch.unsqueeze", of(a), value_int(0));
        finish_two(call("torch.unsqueeze", of(b), value_int(0)), b);
        expect_equal_runs();
}

Test(passes, merge_equal_leaves_results_that_may_not_share_bytes)
{
        Node *x = input("x");
        Node *a = call("torch.relu", of(x), absent);
        finish_two(a, call("torch.relu", of(x), absent));
        expect_equal_runs();
}

Test(passes, merge_equal_keeps_views_of_what_it_merged)
{
        Node *x = input("x"), *a = call("torch.relu", of(x), absent), *b = call("torch.relu", of(x), absent);
        Node *view = call("torch.unsqueeze", of(b), value_int(0));
        finish(call("torch.add", of(view), of(a)));
        expect_equal_runs();
}

Test(passes, fold_constants_computes_what_depends_on_weights_alone)
{
        Node *x = input("x"), *w = constant("w", 1), *double_w = call("torch.mul", of(w), value_int(2));
        finish(call("torch.add", of(x), of(double_w)));
        expect_text(NULL,
                    "graph():\n"
                    "    %x : [num_users=1] = placeholder[target=x]\n"
                    "    %w : [num_users=1] = get_attr[target=w]\n"
                    "    %mul_scalar : [num_users=1] = call_function[target=torch.ops.aten.mul.Scalar](args "
                    "= (%w, 2), kwargs = {})\n"
                    "    %add_tensor : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args "
                    "= (%x, %mul_scalar), kwargs = {})\n"
                    "    return add_tensor");
        expect_text("fold_constants", "graph():\n"
                                      "    %x : [num_users=1] = placeholder[target=x]\n"
                                      "    %_constant_0 : [num_users=1] = get_attr[target=_constant_0]\n"
                                      "    %add_tensor : [num_users=1] = "
                                      "call_function[target=torch.ops.aten.add.Tensor](args = (%x, "
                                      "%_constant_0), kwargs = {})\n"
                                      "    return add_tensor");
        expect_equal_runs();
}

Test(passes, remove_copies_reads_the_original)
{
        Node *x = input("x"), *copy = call("torch.clone", of(x), absent);
        finish(call("torch.relu", of(copy), absent));
        expect_text("remove_copies",
                    "graph():\n"
                    "    %x : [num_users=1] = placeholder[target=x]\n"
                    "    %relu_default : [num_users=1] = "
                    "call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
                    "    return relu_default");
        expect_equal_runs();
}

Test(passes, remove_same_views_reads_and_writes_the_tensor_itself)
{
        Node *x = input("x"), *neg = call("torch.neg", of(x), absent),
             *same = call("torch.ops.aten.alias.default", of(neg), absent);
        Node *sum = call("torch.ops.aten.add_.Tensor", of(same), of(x));
        finish(call("torch.mul", of(sum), of(same)));
        expect_text(
                "remove_same_views",
                "graph():\n"
                "    %x : [num_users=2] = placeholder[target=x]\n"
                "    %neg_default : [num_users=1] = "
                "call_function[target=torch.ops.aten.neg.default](args = (%x,), kwargs = {})\n"
                "    %add__tensor : [num_users=1] = "
                "call_function[target=torch.ops.aten.add_.Tensor](args = (%neg_default, %x), kwargs = {})\n"
                "    %mul_tensor : [num_users=1] = "
                "call_function[target=torch.ops.aten.mul.Tensor](args = (%add__tensor, %add__tensor), "
                "kwargs = {})\n"
                "    return mul_tensor");
        expect_equal_runs();
}

Test(passes, no_write_leaks_from_one_run_into_the_next_or_into_the_state)
{
        Node *x = input("x"), *w = constant("w", 1);
        Node *sum = call("torch.ops.aten.add_.Tensor", of(w), of(x));
        finish(call("torch.mul", of(sum), of(w)));
        expect_equal_runs(); // runs three times in one frame
        cr_assert_eq(((float *)tensor_data(graph_state(graph, "w")->tensor))[0], 1.0f);
}

// ---- programs ----
Test(passes, a_result_is_not_written_over_bytes_that_are_read_in_another_order)
{
        Value times; // more than a kernel's tile holds
        cr_assert_eq(value_ints_new(VALUE_LIST, (int64_t[]){ 50 }, 1, &times), STATUS_OK);
        Node *many = call("torch.ops.aten.repeat.default", of(input("x")), times);
        Node *row = call("torch.unsqueeze", of(many), value_int(0)),
             *column = call("torch.unsqueeze", of(many), value_int(1));
        Node *square = call("torch.neg", of(call("torch.sub", of(row), of(column))), absent);
        finish(call("torch.sub", of(square), of(call("torch.t", of(square), absent))));
        expect_equal_runs();
}

Test(passes, equal_signatures_have_equal_keys_and_others_have_not)
{
        ProgramKey a, b;
        Node *x = input("x");
        finish(call("torch.relu", of(x), absent));
        Value value = value_tensor_take(numbers()), number = value_int(3);
        CompileOptions options = { .n_threads = 1 }, two = { .n_threads = 2 };
        cr_assert_eq(program_key(graph, (ValueSpan){ &value, 1 }, &options, BY_VALUE_ALL, &a), STATUS_OK);
        cr_assert_eq(program_key(graph, (ValueSpan){ &value, 1 }, &options, BY_VALUE_ALL, &b), STATUS_OK);
        cr_expect_arr_eq(a.bytes, b.bytes, 32);
        cr_assert_eq(program_key(graph, (ValueSpan){ &value, 1 }, &two, BY_VALUE_ALL, &b), STATUS_OK);
        cr_expect_neq(memcmp(a.bytes, b.bytes, 32), 0);
        cr_assert_eq(program_key(graph, (ValueSpan){ &number, 1 }, &options, BY_VALUE_ALL, &b), STATUS_OK);
        cr_expect_neq(memcmp(a.bytes, b.bytes, 32), 0);
        value.tensor->meta.dtype = DTYPE_I32;
        cr_assert_eq(program_key(graph, (ValueSpan){ &value, 1 }, &options, BY_VALUE_ALL, &b), STATUS_OK);
        cr_expect_neq(memcmp(a.bytes, b.bytes, 32), 0);
        cr_expect_eq(strlen(program_key_id(&a).hex), 64u);
        value_clear(&value);
}

// Short keys are kept by the thread, long ones are not; either way they are those of their inputs.
Test(passes, keys_of_many_inputs_stay_apart)
{
        enum { MOST = 120 };
        static ProgramKey first[2 * MOST];
        CompileOptions options = { .n_threads = 1 };
        Value values[MOST];
        finish(call("torch.relu", of(input("x")), absent));
        for (uint32_t i = 0; i < MOST; i++)
                values[i] = value_int(i);
        for (int again = 0; again < 2; again++) {
                for (uint32_t i = 0; i < 2 * MOST; i++) {
                        uint32_t n = i / 2 + 1;
                        ProgramKey key;
                        values[n - 1] = value_int(n + i % 2 * 1000);
                        cr_assert_eq(
                                program_key(graph, (ValueSpan){ values, n }, &options, BY_VALUE_ALL, &key),
                                STATUS_OK);
                        for (uint32_t k = 0; k < (again ? 2 * MOST : i); k++)
                                cr_assert_eq(memcmp(&first[k], &key, sizeof(key)) == 0, again && k == i,
                                             "keys %u and %u", i, k);
                        first[i] = key;
                }
        }
}

static Program *compile_for(const Value *x, const Node *const *fetch, uint32_t n_fetch)
{
        Program *program = NULL;
        CompileOptions options = { .n_threads = 1, .fetch = fetch, .n_fetch = n_fetch };
        cr_assert_eq(compile_graph(graph, (ValueSpan){ x, 1 }, &options, NULL, &program), STATUS_OK, "%s",
                     failure_current()->message);
        return program;
}

Test(passes, fetched_nodes_come_along_even_where_they_would_be_fused_away)
{
        Node *x = input("x"), *relu = call("torch.relu", of(x), absent),
             *neg = call("torch.neg", of(relu), absent);
        finish(call("torch.abs", of(neg), absent));
        Value value = value_tensor_take(numbers()), out, fetched[1];
        const Node *fetch[] = { neg };
        Program *program = compile_for(&value, fetch, 1);
        Frame frame;
        RunContext ctx;
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(
                program_run(program, &frame, &(ProgramRun){ .inputs = { &value, 1 } }, &ctx, &out, fetched),
                STATUS_OK);
        cr_expect_eq(((float *)tensor_data(fetched[0].tensor))[2], -2.0f);
        cr_expect_eq(((float *)tensor_data(out.tensor))[2], 2.0f);
        value_clear(&fetched[0]);
        value_clear(&out);
        frame_deinit(&frame);
        program_unref(program);
        value_clear(&value);
}

Test(passes, rows_name_every_called_node_once)
{
        Node *x = input("x"), *view = call("torch.unsqueeze", of(x), value_int(0)),
             *relu = call("torch.relu", of(view), absent);
        call("torch.neg", of(x), absent); // dead
        finish(relu);
        Value value = value_tensor_take(numbers());
        Program *program = compile_for(&value, NULL, 0);
        unsigned seen[16] = { 0 };
        for (uint32_t i = 0; i < program->n_rows; i++) {
                cr_expect_eq(program->rows[i].why == NULL, program->rows[i].instruction >= 0);
                for (uint32_t k = 0; k < program->rows[i].n_nodes; k++)
                        seen[program->rows[i].nodes[k]->index]++;
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                cr_expect_eq(seen[i], node_is_call(graph->nodes[i]) ? 1u : 0u, "%s", graph->nodes[i]->name);
        cr_expect_str_eq(program->rows[0].why, "view");
        program_unref(program);
        value_clear(&value);
}

Test(passes, a_program_refuses_inputs_it_was_not_made_for)
{
        Node *x = input("x");
        finish(call("torch.relu", of(x), absent));
        Value value = value_tensor_take(numbers()), out = value_none();
        Program *program = compile_for(&value, NULL, 0);
        Frame frame;
        RunContext ctx;
        frame_init(&frame);
        run_context_init(&ctx);
        value.tensor->meta.size[0] = 2;
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { &value, 1 } }, &ctx, &out, NULL),
                     STATUS_INTERNAL);
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { &value, 0 } }, &ctx, &out, NULL),
                     STATUS_INTERNAL);
        frame_deinit(&frame);
        program_unref(program);
        value_clear(&value);
}

Test(passes, a_graph_of_nothing_but_numbers_that_only_a_run_knows_stays_eager)
{
        finish(call("torch.nonzero", of(input("x")), absent));
        char words[600];
        Value value = value_tensor_take(numbers());
        CompileOptions options = { .n_threads = 1 };
        cr_expect_eq(run_both(graph, (ValueSpan){ &value, 1 }, &options, 0, 0, words), BOTH_DYNAMIC, "%s",
                     words);
        value_clear(&value);
}

Test(passes, a_cancelled_run_stops_and_gives_everything_back)
{
        Node *x = input("x");
        finish(call("torch.relu", of(x), absent));
        Value value = value_tensor_take(numbers()), out = value_none();
        Program *program = compile_for(&value, NULL, 0);
        Frame frame;
        RunContext ctx;
        Budget budget;
        budget_init(&budget, 1 << 20);
        frame_init(&frame);
        run_context_init(&ctx);
        ctx.budget = &budget;
        atomic_store(&ctx.cancelled, 1);
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { &value, 1 } }, &ctx, &out, NULL),
                     STATUS_CANCELLED);
        cr_expect_eq(budget.used, 0u);
        frame_deinit(&frame);
        program_unref(program);
        value_clear(&value);
}

Test(passes, fuse_pointwise_takes_in_what_is_done_to_the_rows)
{
        Node *x = input("x"), *column = call("torch.unsqueeze", of(x), value_int(1)),
             *sum = call("torch.add", of(x), of(column));
        finish(call("torch.softmax", of(call("torch.tanh", of(sum), absent)), value_int(-1)));
        expect_text(NULL, "graph():\n"
                          "    %x : [num_users=2] = placeholder[target=x]\n"
                          "    %unsqueeze_default : [num_users=1] = "
                          "call_function[target=torch.ops.aten.unsqueeze.default](args = (%x, 1), "
                          "kwargs = {})\n"
                          "    %add_tensor : [num_users=1] = "
                          "call_function[target=torch.ops.aten.add.Tensor](args = (%x, "
                          "%unsqueeze_default), kwargs = {})\n"
                          "    %tanh_default : [num_users=1] = "
                          "call_function[target=torch.ops.aten.tanh.default](args = (%add_tensor,), "
                          "kwargs = {})\n"
                          "    %softmax_int : [num_users=1] = "
                          "call_function[target=torch.ops.aten.softmax.int](args = (%tanh_default, -1), "
                          "kwargs = {})\n"
                          "    return softmax_int");
        expect_text("fuse_pointwise",
                    "graph():\n"
                    "    %x : [num_users=2] = placeholder[target=x]\n"
                    "    %unsqueeze_default : [num_users=1] = "
                    "call_function[target=torch.ops.aten.unsqueeze.default](args = (%x, 1), "
                    "kwargs = {})\n"
                    "    %fused_0 : [num_users=1] = get_attr[target=fused_0]\n"
                    "    %fused_default : [num_users=1] = "
                    "call_function[target=torch.ops.fxserve.fused.default](args = ([%x, "
                    "%unsqueeze_default], %fused_0), kwargs = {})\n"
                    "    %getitem : [num_users=1] = call_function[target=operator.getitem](args = "
                    "(%fused_default, 0), kwargs = {})\n"
                    "    return getitem");
        expect_equal_runs();
}
