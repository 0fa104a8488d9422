// SPDX-License-Identifier: Apache-2.0
// rest_random.c: random graphs of views, writes and numbers that only a run knows; eager and
// compiled with an eager tail they give the same, sharing of bytes included.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"

enum { N_SEEDS = 400, N_STEPS = 28, POOL = 64 };

typedef struct Making {
        Graph *graph;
        uint32_t state;
        Node *matrices[POOL], *rows[POOL], *numbers[POOL]; // 3 x 3, 3, ints 0 or 1
        uint32_t n_matrices, n_rows, n_numbers;
        bool turns; // tensors change their geometry in place: most of these graphs stay eager
} Making;

static uint32_t below(Making *making, uint32_t n)
{
        making->state = making->state * 1664525u + 1013904223u;
        return (making->state >> 8) % n;
}

static Value of(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

static Node *add(Making *making, Opcode op, const char *target, uint32_t n, const Value *args)
{
        Seq *seq;
        Node *node;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = args[i];
        cr_assert_eq(
                graph_add_node(
                        making->graph,
                        &(NodeSpec){ .op = op, .target = target, .args = value_seq_take(VALUE_TUPLE, seq) },
                        &node),
                STATUS_OK, "%s", failure_current()->message);
        return node;
}
#define CALL(target, ...)                                                                                    \
        add(making, OP_CALL_FUNCTION, target, sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value),              \
            (const Value[]){ __VA_ARGS__ })
#define METHOD(target, ...)                                                                                  \
        add(making, OP_CALL_METHOD, target, sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value),                \
            (const Value[]){ __VA_ARGS__ })

static Value matrix(Making *making)
{
        return of(making->matrices[below(making, making->n_matrices)]);
}
static Value row(Making *making)
{
        return of(making->rows[below(making, making->n_rows)]);
}
static Value number(Making *making)
{
        return of(making->numbers[below(making, making->n_numbers)]);
}
static void keep_matrix(Making *making, Node *node)
{
        making->matrices[making->n_matrices++] = node;
}
static void keep_row(Making *making, Node *node)
{
        making->rows[making->n_rows++] = node;
}

static Node *make_number(Making *making)
{
        Node *positive = CALL("torch.gt", row(making), value_float(0.25));
        Node *any = METHOD("any", of(positive));
        Node *item = METHOD("item", of(any));
        return CALL("int", of(item));
}

// A child graph of one method call on its argument; the argument itself comes out, or the result.
static void add_child(Graph *graph, const char *path, const char *method, bool gives_argument)
{
        Making child = { .graph = NULL };
        Making *making = &child;
        Module *module;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &child.graph), STATUS_OK);
        Node *a = add(making, OP_PLACEHOLDER, "a", 0, NULL);
        Node *b = METHOD(method, of(a));
        Value result = of(gives_argument ? a : b);
        (void)add(making, OP_OUTPUT, "output", 1, &result);
        cr_assert_eq(graph_finish(child.graph), STATUS_OK);
        cr_assert_eq(graph_add_module(graph, path, NULL, &module), STATUS_OK);
        module->graph = child.graph;
}

static Node *make_cond(Making *making)
{
        static const char *const children[] = { "negates", "rectifies", "shares" };
        Node *positive = CALL("torch.gt", row(making), value_float(0.25));
        Node *any = METHOD("any", of(positive));
        Node *yes = add(making, OP_GET_ATTR, children[below(making, 3)], 0, NULL);
        Node *no = add(making, OP_GET_ATTR, children[below(making, 3)], 0, NULL);
        Seq *operands;
        cr_assert_eq(seq_new(1, &operands), STATUS_OK);
        operands->items[0] = matrix(making);
        return CALL("torch.ops.higher_order.cond", of(any), of(yes), of(no),
                    value_seq_take(VALUE_LIST, operands));
}

static Node *call_child(Making *making)
{
        static const char *const children[] = { "negates", "rectifies", "shares" };
        Value argument = matrix(making);
        return add(making, OP_CALL_MODULE, children[below(making, 3)], 1, &argument);
}

static Node *write_where(Making *making)
{
        Value m = matrix(making);
        Node *mask = CALL("torch.lt", m, value_float(-1));
        return CALL("operator.setitem", m, of(mask), value_float(0.125));
}

static void step(Making *making)
{
        switch (below(making, 22)) {
        case 17:
                return keep_matrix(making, METHOD(making->turns ? "t_" : "t", matrix(making)));
        case 18:
                return keep_matrix(making, make_cond(making));
        case 19:
                return keep_matrix(making, call_child(making));
        case 20:
                (void)write_where(making);
                return;
        case 0:
                return keep_matrix(making, CALL("torch.neg", matrix(making)));
        case 1:
                return keep_matrix(making, METHOD("t", matrix(making)));
        case 2:
                return keep_matrix(making, METHOD("clone", matrix(making)));
        case 3:
                return keep_matrix(making, CALL("torch.add", matrix(making), matrix(making)));
        case 4:
                return keep_matrix(making, CALL("operator.mul", matrix(making), number(making)));
        case 5:
                return keep_matrix(making, METHOD("relu_", matrix(making)));
        case 6:
                return keep_matrix(making, METHOD("contiguous", matrix(making)));
        case 7:
                return keep_row(making, METHOD("select", matrix(making), value_int(below(making, 2)),
                                               value_int(below(making, 3))));
        case 8:
                return keep_row(making, CALL("operator.getitem", matrix(making), number(making)));
        case 9:
                return keep_row(making, METHOD("mul_", row(making), number(making)));
        case 10:
                return keep_row(making, METHOD("add_", row(making), value_float(0.5)));
        case 11:
                return keep_row(making, CALL("torch.tanh", row(making)));
        case 12:
                (void)CALL("operator.setitem", matrix(making), number(making), row(making));
                return;
        case 13:
                (void)CALL("operator.setitem", matrix(making), value_int(1), row(making));
                return;
        case 14:
                return keep_matrix(making, METHOD("mul_", matrix(making), value_float(-0.5)));
        case 15:
                return keep_row(making, METHOD("sum", matrix(making), value_int(0)));
        case 16:
                return keep_row(making, METHOD("copy_", row(making), row(making)));
        default:
                making->numbers[making->n_numbers++] = make_number(making);
        }
}

static void make_graph(Making *making)
{
        static const float data[9] = { 1, -2, 0.5f, 0.25f, -1, 3, 2, 0, -0.75f };
        TensorMeta meta;
        Tensor *tensor;
        State *state;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 3, 3 });
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &making->graph), STATUS_OK);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        memcpy(tensor_data(tensor), data, sizeof(data));
        cr_assert_eq(graph_add_state(making->graph, "w", tensor, &state), STATUS_OK);
        making->turns = below(making, 5) == 0;
        add_child(making->graph, "negates", "neg", false);
        add_child(making->graph, "rectifies", "relu_", true);
        add_child(making->graph, "shares", "t", false);
        keep_matrix(making, add(making, OP_PLACEHOLDER, "x", 0, NULL));
        Node *w = add(making, OP_GET_ATTR, "w", 0, NULL);
        keep_matrix(making, CALL("operator.add", of(making->matrices[0]), of(w)));
        if (below(making, 3) == 0)
                keep_matrix(making, w); // may be written
        keep_row(making, METHOD("select", of(making->matrices[1]), value_int(0), value_int(2)));
        making->numbers[making->n_numbers++] = make_number(making);
        for (int i = 0; i < N_STEPS; i++)
                step(making);
        Seq *results;
        uint32_t n = 0;
        cr_assert_eq(seq_new(making->n_matrices + making->n_rows + making->n_numbers, &results), STATUS_OK);
        for (uint32_t i = 0; i < making->n_matrices; i++)
                results->items[n++] = of(making->matrices[i]);
        for (uint32_t i = 0; i < making->n_rows; i++)
                results->items[n++] = of(making->rows[i]);
        for (uint32_t i = 0; i < making->n_numbers; i++)
                results->items[n++] = of(making->numbers[i]);
        Value result = value_seq_take(VALUE_TUPLE, results);
        (void)add(making, OP_OUTPUT, "output", 1, &result);
        CheckReport report;
        cr_assert_eq(graph_finish(making->graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_resolve(making->graph, &report), STATUS_OK);
        cr_assert_eq(report.n_rows, 0u);
        check_report_deinit(&report);
}

Test(tail_random, graphs_give_compiled_what_they_give_eagerly, .timeout = 120)
{
        uint32_t counts[4] = { 0 };
        TensorMeta meta;
        Tensor *x;
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 3, 3 });
        cr_assert_eq(tensor_new(&meta, NULL, &x), STATUS_OK);
        for (uint32_t seed = 0; seed < N_SEEDS; seed++) {
                Making making = { .state = seed * 7919u + 17 };
                make_graph(&making);
                for (int i = 0; i < 9; i++)
                        ((float *)tensor_data(x))[i] = (float)((int)below(&making, 9) - 4) / 4;
                Value input = { .kind = VALUE_TENSOR, .tensor = x };
                for (int i = 0; i < 2; i++) {
                        char words[600];
                        CompileOptions options = { .n_threads = 1, .no_passes = i == 1 };
                        BothResult result =
                                run_both(making.graph, (ValueSpan){ &input, 1 }, &options, 1e-5, 1e-5, words);
                        cr_expect_neq(result, BOTH_DIFFER, "seed %u%s: %s", seed,
                                      i == 1 ? " without passes" : "", words);
                        counts[result]++;
                }
                graph_unref(making.graph);
        }
        tensor_unref(x);
        fprintf(stderr, "%u equal, %u wholly eager, %u failing alike\n", counts[BOTH_EQUAL],
                counts[BOTH_DYNAMIC], counts[BOTH_FAIL]);
        cr_expect_gt(counts[BOTH_EQUAL], N_SEEDS);
}
