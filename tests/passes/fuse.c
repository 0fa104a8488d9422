// SPDX-License-Identifier: Apache-2.0
// fuse.c: groups of pointwise calls: what a graph is before and after, as text, and random graphs
// of pointwise calls, views, reductions and writes, which must give the bits of an eager run.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/graph/print.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/kernels/sample.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(fuse, .init = start, .timeout = 120);

// ---- building ----
static Value node_value(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

static Node *add_placeholder(Graph *graph, const char *name)
{
        Node *node;
        cr_assert_eq(graph_add_node(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .target = name }, &node),
                     STATUS_OK);
        return node;
}

static Node *add_call(Graph *graph, const char *target, const Value *args, uint32_t n)
{
        Node *node;
        Seq *seq;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        memcpy(seq->items, args, n * sizeof(Value));
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                                 .target = target,
                                                 .args = value_seq_take(VALUE_TUPLE, seq) },
                                    &node),
                     STATUS_OK);
        return node;
}
#define CALL(graph, target, ...)                                                                             \
        add_call(graph, "torch.ops.aten." target, (Value[]){ __VA_ARGS__ },                                  \
                 sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value))

static void close_graph(Graph *graph, Node *const *results, uint32_t n)
{
        Seq *seq, *args;
        Node *node;
        CheckReport report;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = node_value(results[i]);
        cr_assert_eq(seq_new(1, &args), STATUS_OK);
        args->items[0] = value_seq_take(VALUE_TUPLE, seq);
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_OUTPUT,
                                                 .target = "output",
                                                 .args = value_seq_take(VALUE_TUPLE, args) },
                                    &node),
                     STATUS_OK);
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK, "%s", failure_current()->message);
        check_report_deinit(&report);
}

static Value random_tensor(Sample *sample, Dtype dtype, int rank, const int64_t *size)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, rank, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&meta); i++)
                element_from_f64(dtype, (char *)tensor_data(tensor) + i * dtype_info[dtype].bytes,
                                 (double)sample_int(sample, -300, 300) / 64);
        return value_tensor_take(tensor);
}

// ---- text ----
static void print_stage(const Graph *graph, ValueSpan inputs, ProgramStage stage, Text *out)
{
        CompileOptions options = { .n_threads = 1 };
        _cleanup_(graph_unrefp) Graph *printed = NULL;
        cr_assert_eq(compile_stage(graph, inputs, &options, stage, &printed), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(graph_print(printed, GRAPH_FORM_GRAPH, out), STATUS_OK);
        text_add(out, "\n");
        for (uint32_t i = 1; i < printed->n_modules; i++) {
                text_addf(out, "%s: ", printed->modules[i]->path);
                cr_assert_eq(graph_print(printed->modules[i]->graph, GRAPH_FORM_GRAPH, out), STATUS_OK);
                text_add(out, "\n");
        }
}

static void expect_stages(Graph *graph, ValueSpan inputs, const char *before, const char *after)
{
        _cleanup_(text_deinit) Text aten = { 0 }, optimised = { 0 };
        print_stage(graph, inputs, STAGE_ATEN, &aten);
        print_stage(graph, inputs, STAGE_OPTIMISED, &optimised);
        cr_expect_str_eq(aten.data, before);
        cr_expect_str_eq(optimised.data, after);
}

Test(fuse, a_chain_with_a_second_reader_becomes_one_call_with_two_results)
{
        Sample sample = { 1 };
        Graph *graph;
        const int64_t size[] = { 3, 4 };
        Value inputs[] = { random_tensor(&sample, DTYPE_F32, 2, size),
                           random_tensor(&sample, DTYPE_F32, 1, size + 1) };
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        Node *x = add_placeholder(graph, "x"), *bias = add_placeholder(graph, "bias");
        Node *sum = CALL(graph, "add.Tensor", node_value(x), node_value(bias));
        Node *relu = CALL(graph, "relu.default", node_value(sum));
        Node *scaled = CALL(graph, "mul.Tensor", node_value(relu), value_float(0.5));
        Node *total = CALL(graph, "sum.default", node_value(relu));
        Node *late = CALL(graph, "tanh.default", node_value(scaled));
        close_graph(graph, (Node *[]){ late, total }, 2);
        expect_stages(graph, (ValueSpan){ inputs, 2 },
                      "graph():\n"
                      "    %x : [num_users=1] = placeholder[target=x]\n"
                      "    %bias : [num_users=1] = placeholder[target=bias]\n"
                      "    %add_tensor : [num_users=1] = "
                      "call_function[target=torch.ops.aten.add.Tensor](args = (%x, %bias), kwargs = {})\n"
                      "    %relu_default : [num_users=2] = "
                      "call_function[target=torch.ops.aten.relu.default](args = (%add_tensor,), kwargs = "
                      "{})\n"
                      "    %mul_tensor : [num_users=1] = "
                      "call_function[target=torch.ops.aten.mul.Tensor](args = (%relu_default, 0.5), kwargs = "
                      "{})\n"
                      "    %sum_default : [num_users=1] = "
                      "call_function[target=torch.ops.aten.sum.default](args = (%relu_default,), kwargs = "
                      "{})\n"
                      "    %tanh_default : [num_users=1] = "
                      "call_function[target=torch.ops.aten.tanh.default](args = (%mul_tensor,), kwargs = "
                      "{})\n"
                      "    return (tanh_default, sum_default)\n",
                      "graph():\n"
                      "    %x : [num_users=1] = placeholder[target=x]\n"
                      "    %bias : [num_users=1] = placeholder[target=bias]\n"
                      "    %fused_0 : [num_users=1] = get_attr[target=fused_0]\n"
                      "    %fused_default : [num_users=2] = "
                      "call_function[target=torch.ops.fxserve.fused.default](args = ([%x, %bias], "
                      "%fused_0), kwargs = {})\n"
                      "    %getitem : [num_users=1] = call_function[target=operator.getitem](args = "
                      "(%fused_default, 0), kwargs = {})\n"
                      "    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = "
                      "(%fused_default, 1), kwargs = {})\n"
                      "    %sum_default : [num_users=1] = "
                      "call_function[target=torch.ops.aten.sum.default](args = (%getitem,), kwargs = {})\n"
                      "    %tanh_default : [num_users=1] = "
                      "call_function[target=torch.ops.aten.tanh.default](args = (%getitem_1,), kwargs = {})\n"
                      "    return (tanh_default, sum_default)\n"
                      "fused_0: graph():\n"
                      "    %x0 : [num_users=1] = placeholder[target=x0]\n"
                      "    %x1 : [num_users=1] = placeholder[target=x1]\n"
                      "    %add_tensor : [num_users=1] = "
                      "call_function[target=torch.ops.aten.add.Tensor](args = (%x0, %x1), kwargs = {})\n"
                      "    %relu_default : [num_users=2] = "
                      "call_function[target=torch.ops.aten.relu.default](args = (%add_tensor,), kwargs = "
                      "{})\n"
                      "    %mul_tensor : [num_users=1] = "
                      "call_function[target=torch.ops.aten.mul.Tensor](args = (%relu_default, 0.5), kwargs = "
                      "{})\n"
                      "    return (relu_default, mul_tensor)\n");
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        cr_assert_eq(run_both(graph, (ValueSpan){ inputs, 2 }, &options, 0, 0, words), BOTH_EQUAL, "%s",
                     words);
        graph_unref(graph);
        value_clear(&inputs[0]);
        value_clear(&inputs[1]);
}

// ---- random graphs ----
enum { MAX_NODES = 40 };

static Node *random_cast(Sample *sample, Graph *graph, Value a)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64,
                                        DTYPE_I64, DTYPE_I32, DTYPE_U8,   DTYPE_BOOL };
        Value there = value_dtype(dtypes[sample_int(sample, 0, ARRAY_LENGTH(dtypes) - 1)]),
              back = value_dtype(DTYPE_F32);
        // Clamped, so that whole numbers hold it on all machines; and back, because most calls are
        // for floats.
        Node *small = CALL(graph, "clamp.default", a, value_int(0), value_int(100));
        return CALL(graph, "to.dtype", node_value(CALL(graph, "to.dtype", node_value(small), there)), back);
}

static Node *random_call(Sample *sample, Graph *graph, Node *const *made, int n)
{
        Value a = node_value(made[sample_int(sample, MAX(0, n - 4), n - 1)]),
              b = node_value(made[sample_int(sample, 0, n - 1)]);
        Value c = node_value(made[sample_int(sample, 0, n - 1)]), two = value_int(2), one = value_int(1),
              minus = value_int(-1), yes = value_bool(true);
        Value dims;
        switch (sample_int(sample, 0, 23)) {
        case 0:
                return CALL(graph, "relu.default", a);
        case 1:
                return CALL(graph, "tanh.default", a);
        case 2:
                return CALL(graph, "sigmoid.default", a);
        case 3:
        case 4:
                return CALL(graph, "mul.Tensor", a, b);
        case 5:
        case 6:
                return CALL(graph, "add.Tensor", a, b);
        case 7:
                return CALL(graph, "mul.Tensor", a, value_float(0.3));
        case 8:
                return CALL(graph, "sub.Tensor", b, a);
        case 9:
                return CALL(graph, "maximum.default", a, c);
        case 10:
                return CALL(graph, "where.self", node_value(CALL(graph, "gt.Tensor", a, b)), b, c);
        case 11:
                return CALL(graph, "clamp.default", a, minus, two);
        case 12:
                return CALL(graph, "gelu.default", a);
        case 13:
                return CALL(graph, "addcmul.default", a, b, c);
        case 14:
                return CALL(graph, "neg.default", a);
        case 15:
                return CALL(graph, "pow.Tensor_Scalar", a, two);
        case 16:
                cr_assert_eq(value_ints_new(VALUE_LIST, (const int64_t[]){ 1 }, 1, &dims), STATUS_OK);
                return CALL(graph, "amax.default", a, dims, yes); // [n, 1]
        case 17:
                return CALL(graph, "add_.Tensor",
                            node_value(CALL(graph, "exp.default",
                                            node_value(CALL(graph, "clamp_max.default", a, one)))),
                            b);
        case 18:
                return CALL(graph, "t.default", node_value(CALL(graph, "t.default", a)));
        case 19:
                return CALL(graph, "slice.Tensor", a, value_int(0), value_int(0), one); // [1, m]
        case 20:
                return CALL(graph, "relu_.default", node_value(CALL(graph, "neg.default", a)));
        case 21:
        case 22:
                return random_cast(sample, graph, a);
        default:
                return CALL(graph, "rsub.Scalar", a, one);
        }
}

// 3 x 5 by 1 x 5, 3 x 1 and so on; squares, so that transposed layouts broadcast as well.
static void random_graph(Sample *sample, Dtype dtype)
{
        Graph *graph;
        Node *made[MAX_NODES + 4];
        Value inputs[4];
        int n = 0;
        int64_t side = sample_int(sample, 1, 4) == 1 ? 67 : 5;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        for (; n < 3; n++) {
                char name[8];
                const int64_t size[] = { n == 1 ? 1 : side, n == 2 ? 1 : side };
                snprintf(name, sizeof(name), "x%d", n);
                made[n] = add_placeholder(graph, name);
                inputs[n] = random_tensor(sample, dtype, 2, size);
        }
        for (int64_t left = sample_int(sample, 2, MAX_NODES); left > 0; left--, n++)
                made[n] = random_call(sample, graph, made, n);
        Node *results[3] = { made[n - 1], made[sample_int(sample, 3, n - 1)],
                             made[sample_int(sample, 3, n - 1)] };
        close_graph(graph, results, 3);
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        BothResult result = run_both(graph, (ValueSpan){ inputs, 3 }, &options, 0, 0, words);
        if (result == BOTH_DIFFER) {
                Text text = { 0 };
                cr_assert_eq(graph_print(graph, GRAPH_FORM_GRAPH, &text), STATUS_OK);
                fprintf(stderr, "%s\n", text.data);
                print_stage(graph, (ValueSpan){ inputs, 3 }, STAGE_OPTIMISED, &text);
                fprintf(stderr, "%s\n", text.data);
                text_deinit(&text);
        }
        cr_assert_neq(result, BOTH_DIFFER, "%s", words);
        for (int i = 0; i < 3; i++)
                value_clear(&inputs[i]);
        graph_unref(graph);
}

Test(fuse, random_graphs_give_the_bits_of_an_eager_run)
{
        Sample sample = { 11 };
        for (int i = 0; i < 400; i++)
                random_graph(&sample, i % 4 == 0 ? DTYPE_BF16 : i % 4 == 1 ? DTYPE_F16 : DTYPE_F32);
}
