// SPDX-License-Identifier: Apache-2.0
// node_effects: what calls may do to their arguments, read off their names.
#include <criterion/criterion.h>
#include "core/targets/targets.h"

static Graph *graph;

static void start(void)
{
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
}

static void stop(void)
{
        graph = graph_unref(graph);
}

TestSuite(effects, .init = start, .fini = stop);

static uint32_t of_call(Opcode op, const char *target, Value second)
{
        Node *x = graph_node(graph, "x"), *node;
        Seq *args, *none;
        if (x == NULL) {
                cr_assert_eq(seq_new(0, &none), STATUS_OK);
                cr_assert_eq(graph_add_node(graph,
                                            &(NodeSpec){ .op = OP_PLACEHOLDER,
                                                         .name = "x",
                                                         .target = "x",
                                                         .args = value_seq_take(VALUE_TUPLE, none) },
                                            &x),
                             STATUS_OK);
        }
        cr_assert_eq(seq_new(second.kind == VALUE_NONE ? 1 : 2, &args), STATUS_OK);
        args->items[0] = (Value){ .kind = VALUE_NODE, .node = x };
        if (second.kind != VALUE_NONE)
                args->items[1] = second;
        cr_assert_eq(
                graph_add_node(
                        graph,
                        &(NodeSpec){ .op = op, .target = target, .args = value_seq_take(VALUE_TUPLE, args) },
                        &node),
                STATUS_OK);
        return node_effects(graph, node);
}
#define FUNCTION(target) of_call(OP_CALL_FUNCTION, target, value_none())
#define METHOD(target)   of_call(OP_CALL_METHOD, target, value_none())

Test(effects, of_what_computes_are_none)
{
        static const char *const functions[] = { "torch.relu",
                                                 "torch.ops.aten.item.default",
                                                 "torch.nonzero",
                                                 "torch.ops.aten.sym_size.int",
                                                 "_operator.neg",
                                                 "builtins.int",
                                                 "torch.ops.aten._assert_async.default",
                                                 "torch.ops.aten.sum.default" };
        for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
                cr_expect_eq(FUNCTION(functions[i]), 0u, "%s: %x", functions[i], FUNCTION(functions[i]));
        cr_expect_eq(METHOD("item"), 0u);
}

Test(effects, of_views_are_sharing)
{
        cr_expect_eq(of_call(OP_CALL_METHOD, "view", value_int(-1)) &
                             (NODE_SHARES | NODE_WRITES | NODE_WRITES_FIRST),
                     (uint32_t)NODE_SHARES);
        cr_expect_neq(of_call(OP_CALL_FUNCTION, "_operator.getitem", value_int(0)) & NODE_SHARES, 0u);
        cr_expect_neq(METHOD("contiguous") & NODE_SHARES, 0u);
        cr_expect_neq(
                of_call(OP_CALL_FUNCTION, "torch.nn.functional.dropout", value_float(0.5)) & NODE_SHARES, 0u);
}

Test(effects, of_writers_are_writing_to_the_first_argument)
{
        static const char *const methods[] = { "relu_", "zero_" };
        for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
                cr_expect_eq(METHOD(methods[i]) & (NODE_WRITES | NODE_WRITES_FIRST),
                             (uint32_t)NODE_WRITES_FIRST, "%s", methods[i]);
        cr_expect_eq(of_call(OP_CALL_FUNCTION, "_operator.iadd", value_int(1)) &
                             (NODE_WRITES | NODE_WRITES_FIRST),
                     (uint32_t)NODE_WRITES_FIRST);
        cr_expect_neq(of_call(OP_CALL_METHOD, "unsqueeze_", value_int(0)) & NODE_MOVES, 0u);
        cr_expect_eq(METHOD("relu_") & NODE_MOVES, 0u);
        cr_expect_eq(METHOD("detach_") & NODE_MOVES, 0u); // exports put it behind every constant
}

Test(effects, of_names_that_nobody_knows_are_all)
{
        uint32_t all = NODE_WRITES | NODE_SHARES | NODE_DRAWS | NODE_MOVES;
        cr_expect_eq(FUNCTION("torch.some_day"), all);
        cr_expect_eq(of_call(OP_CALL_MODULE, "nowhere", value_none()), all);
}
