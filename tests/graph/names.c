// SPDX-License-Identifier: Apache-2.0
// Expected names are what torch.fx 2.13's _Namespace.create_name and Graph.create_node gave for the
// same wishes in the same order.
#include "tests/graph/make.h"

#include <stdio.h>

typedef struct Sequence {
        const char *wishes[12], *names[12];
} Sequence;

static const Sequence sequences[] = {
        { { "add", "add", "add_1", "add", "add_3", "add" },
          { "add", "add_1", "add_2", "add_3", "add_4", "add_5" } },
        { { "sum", "sum", "sum_1", "sum" }, { "sum_1", "sum_2", "sum_3", "sum_4" } },
        { { "x_5", "x", "x", "x_2", "x", "x_5" }, { "x_5", "x", "x_6", "x_2", "x_3", "x_4" } },
        { { "_1", "_1", "__1", "__1", "_" }, { "_1", "_1_1", "__1", "__2", "_" } },
        { { "torch", "torch", "device", "inf", "nan", "NoneType", "pytree", "fx_pytree" },
          { "torch_1", "torch_2", "device_1", "inf_1", "nan_1", "NoneType_1", "pytree_1", "fx_pytree_1" } },
        { { "a.b", "a..b", "a b", "0", "0", "", "", "é", "aéb", "_", "__" },
          { "a_b", "a_b_1", "a_b_2", "_0", "_0_1", "_unnamed", "_unnamed_1", "_", "a_b_3", "__1", "__" } },
        { { "class", "None", "True", "print", "input", "input_1", "input" },
          { "class_1", "None", "True_1", "print_1", "input_1", "input_2", "input_3" } },
        { { "add_007", "add", "add_7", "add" }, { "add_007", "add", "add_7", "add_8" } },
        { { "x_3", "x", "x_2", "x", "x" }, { "x_3", "x", "x_2", "x_4", "x_5" } },
        { { "a_1_2", "a_1", "a_1_2", "a_1" }, { "a_1_2", "a_1", "a_1_3", "a_2" } },
        { { "getattr", "getattr_1", "getattr_2", "getattr" },
          { "getattr_1", "getattr_2", "getattr_3", "getattr_4" } },
};

Test(names, fresh_names_are_the_ones_torch_fx_makes)
{
        for (size_t s = 0; s < ARRAY_LENGTH(sequences); s++) {
                Graph *graph = new_graph();
                for (int i = 0; i < 12 && sequences[s].wishes[i] != NULL; i++) {
                        const char *name = NULL;
                        cr_assert_eq(graph_fresh_name(graph, sequences[s].wishes[i], &name), STATUS_OK);
                        cr_assert_str_eq(name, sequences[s].names[i], "row %zu, wish %d: %s, want %s", s, i,
                                         name, sequences[s].names[i]);
                }
                graph_unref(graph);
        }
}

Test(names, nodes_without_a_name_get_one_from_their_target)
{
        static const struct {
                Opcode op;
                const char *target, *name;
        } rows[] = {
                { OP_CALL_MODULE, "features.0", "features_0" },
                { OP_CALL_MODULE, "0", "_0" },
                { OP_CALL_METHOD, "__add__", "add" },
                { OP_CALL_METHOD, "maxPool2D", "max_pool2d" },
                { OP_PLACEHOLDER, "*args", "_args" },
                { OP_PLACEHOLDER, "**kwargs", "_kwargs" },
                { OP_PLACEHOLDER, "input", "input_1" },
                { OP_GET_ATTR, "layer1.0.Conv.weight", "layer1_0_conv_weight" },
                { OP_CALL_METHOD, "HTMLParser", "htmlparser" },
                { OP_CALL_METHOD, "__", "_unnamed" },
                { OP_CALL_METHOD, "____", "_unnamed_1" },
                { OP_CALL_FUNCTION, "torch.ops.aten.add.Tensor", "add_tensor" },
                { OP_CALL_FUNCTION, "torch.ops.higher_order.cond", "cond" },
                { OP_CALL_FUNCTION, "_operator.getitem", "getitem" },
                { OP_CALL_FUNCTION, "F.relu", "relu" },
                { OP_CALL_FUNCTION, "torch.nn.functional.linear", "linear" },
                { OP_CALL_FUNCTION, "sum", "sum_1" },
                { OP_CALL_FUNCTION, "torch.segment_reduce", "segment_reduce" },
        };
        Graph *graph = new_graph();
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                cr_assert_str_eq(
                        add(graph, rows[i].op, NULL, rows[i].target, value_none(), value_none())->name,
                        rows[i].name);
        graph_unref(graph);
}

Test(names, a_given_name_is_kept_even_if_it_hides_a_builtin)
{
        Graph *graph = new_graph();
        cr_assert_str_eq(add(graph, OP_PLACEHOLDER, "input", "input", value_none(), value_none())->name,
                         "input");
        cr_assert_not_null(graph_node(graph, "input"));
        graph_unref(graph);
}

Test(names, a_name_that_is_taken_is_refused_in_pytorchs_words)
{
        Graph *graph = new_graph();
        placeholder(graph, "x");
        Node *node;
        fails_with(
                graph_add_node(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .name = "x", .target = "y" }, &node),
                STATUS_LINT, "Node redefined name x!", "x");
        fails_with(graph_add_node(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .name = "a.b", .target = "y" },
                                  &node),
                   STATUS_LINT, "\"a.b\" is not a Python identifier", "a.b");
        fails_with(graph_add_node(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .name = "1x", .target = "y" },
                                  &node),
                   STATUS_LINT, "\"1x\"", "1x");
        graph_unref(graph);
}

Test(names, ten_thousand_equal_wishes_are_numbered_without_gaps)
{
        Graph *graph = new_graph();
        char want[32];
        for (int i = 0; i < 10000; i++) {
                const char *name;
                cr_assert_eq(graph_fresh_name(graph, "add", &name), STATUS_OK);
                snprintf(want, sizeof(want), i == 0 ? "add" : "add_%d", i);
                cr_assert_str_eq(name, want);
        }
        graph_unref(graph);
}

Test(names, spellings_of_functions_become_pytorchs_qualified_names)
{
        static const char *const rows[][2] = {
                { "F.linear", "torch._C._nn.linear" },
                { "torch.nn.functional.linear", "torch._C._nn.linear" },
                { "torch._C._nn.linear", "torch._C._nn.linear" },
                { "nn.functional.relu", "torch.nn.functional.relu" },
                { "F.conv2d", "torch.conv2d" },
                { "torch.einsum", "torch.functional.einsum" },
                { "torch.linalg.det", "torch._C._linalg.linalg_det" },
                { "torch.fft.fft2", "torch._C._fft.fft_fft2" },
                { "torch.special.entr", "torch._C._special.special_entr" },
                { "F.gelu", "torch._C._nn.gelu" },
                { "F.logsigmoid", "torch._C._nn.log_sigmoid" },
                { "operator.add", "_operator.add" },
                { "_operator.add", "_operator.add" },
                { "builtins.getattr", "getattr" },
                { "aten.add.Tensor", "torch.ops.aten.add.Tensor" },
                { "aten::add.Tensor", "torch.ops.aten.add.Tensor" },
                { "aten::relu", "torch.ops.aten.relu.default" },
                { "torch.relu", "torch.relu" },
                { "math.floor", "math.floor" },
                { "my.own.function", "my.own.function" },
        };
        Graph *graph = new_graph();
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                cr_assert_str_eq(graph_normalise_target(graph, rows[i][0]), rows[i][1]);
        graph_unref(graph);
}

Test(names, spellings_of_module_classes_become_torch_nn_names)
{
        static const char *const rows[][2] = {
                { "torch.nn.modules.linear.Linear", "torch.nn.Linear" },
                { "torch.nn.Linear", "torch.nn.Linear" },
                { "nn.Conv2d", "torch.nn.Conv2d" },
                { "torch.nn.modules.batchnorm._BatchNorm", "torch.nn.modules.batchnorm._BatchNorm" },
                { "torch.nn.modules.linear.NonDynamicallyQuantizableLinear",
                  "torch.nn.modules.linear.NonDynamicallyQuantizableLinear" },
                { "torch.fx.graph_module.GraphModule", "torch.fx.GraphModule" },
                { "torch.fx.graph_module.GraphModule.__new__.<locals>.GraphModuleImpl",
                  "torch.fx.GraphModule" },
                { "mine.Block", "mine.Block" },
        };
        Graph *graph = new_graph();
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                cr_assert_str_eq(graph_normalise_module_type(graph, rows[i][0]), rows[i][1]);
        graph_unref(graph);
}
