// SPDX-License-Identifier: Apache-2.0
// nodes.c: what a derived graph keeps of its base and what it refuses.
#include <stdio.h>
#include "api/readers/pt2.h"
#include "core/base/limits.h"
#include "core/edit/edit.h"
#include "core/edit/partial.h"
#include "core/edit/passes.h"
#include "core/targets/targets.h"
#include "tests/graph/make.h"

static const char *const models[] = { "dev_lenet", "dev_linear",       "dev_mlp_bn",   "dev_mtcnn_pnet",
                                      "digits",    "dev_relu_neg_abs", "dev_resnet_hf" };

static Graph *load_export(const char *name)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s.pt2", MODELS, name);
        FILE *file = fopen(path, "rb");
        cr_assert_not_null(file, "%s", path);
        fseek(file, 0, SEEK_END);
        size_t n = (size_t)ftell(file);
        rewind(file);
        Storage *bytes;
        cr_assert_eq(storage_new(n, false, NULL, &bytes), STATUS_OK);
        cr_assert_eq(fread(bytes->data, 1, n, file), n);
        fclose(file);
        Graph *graph = NULL;
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(pt2_read((ByteSpan){ bytes->data, bytes->n_bytes }, bytes, NULL, &graph), STATUS_OK);
        storage_unref(bytes);
        return graph;
}

// x -> linear module -> relu -> output
static Graph *small_graph(void)
{
        Graph *graph = new_graph();
        Module *module;
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(graph_add_module(graph, "layer.act", "torch.nn.ReLU", &module), STATUS_OK);
        state(graph, "layer.scale", small_tensor(DTYPE_F32, 4));
        Node *act = call_one(graph, OP_CALL_MODULE, "layer.act", placeholder(graph, "x"));
        Node *scale = add(graph, OP_GET_ATTR, NULL, "layer.scale", value_none(), value_none());
        Node *mul = add(graph, OP_CALL_FUNCTION, NULL, "operator.mul",
                        sequence(VALUE_TUPLE, 2, node_value(act), node_value(scale)), value_none());
        output(graph, node_value(mul));
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

static Graph *finished(Edit *take_edit)
{
        Graph *graph = NULL;
        cr_assert_eq(edit_finish(take_edit, &graph), STATUS_OK, "%s", failure_current()->message);
        edit_free(take_edit);
        return graph;
}

static Node *append_call(Edit *edit, const char *after, const char *target)
{
        Node *node = edit_node(edit, after), *made = NULL;
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = target,
                        .args = sequence(VALUE_TUPLE, 1, node_value(node)),
                        .origin = node };
        cr_assert_eq(edit_insert_after(edit, node, &new, &made), STATUS_OK, "%s", failure_current()->message);
        return made;
}

static void same_text(const Graph *a, const Graph *b, GraphForm form)
{
        Text first = { 0 }, second = { 0 };
        cr_assert_eq(graph_print(a, form, &first), STATUS_OK);
        cr_assert_eq(graph_print(b, form, &second), STATUS_OK);
        cr_expect_str_eq(first.data, second.data);
        text_deinit(&first);
        text_deinit(&second);
}

Test(edit_nodes, an_export_without_edits_is_the_same_graph_again)
{
        for (size_t i = 0; i < ARRAY_LENGTH(models); i++) {
                Graph *base = load_export(models[i]);
                Graph *copy = finished(edit_of(graph_ref(base)));
                for (int form = 0; form < GRAPH_FORM_COUNT; form++)
                        same_text(base, copy, (GraphForm)form);
                cr_expect_eq(memcmp(base->fingerprint, copy->fingerprint, sizeof(base->fingerprint)), 0, "%s",
                             models[i]);
                cr_expect_eq(base->weights_bytes, copy->weights_bytes);
                cr_expect_eq(base->signature.n_arguments, copy->signature.n_arguments);
                cr_expect_eq(base->signature.n_guards, copy->signature.n_guards);
                cr_expect_eq(base->signature.in_tree->n_leaves, copy->signature.in_tree->n_leaves);
                for (uint32_t k = 0; k < base->n_state; k++)
                        cr_expect_eq(base->state[k].tensor, copy->state[k].tensor, "tensors are shared");
                graph_unref(base);
                same_text(copy, copy, GRAPH_FORM_JSON); // nothing of the base's memory is left in it
                graph_unref(copy);
        }
}

Test(edit_nodes, the_base_stays_as_it_was)
{
        Graph *base = small_graph(), *untouched = small_graph();
        Edit *edit = edit_of(graph_ref(base));
        Node *neg = append_call(edit, "mul", "torch.neg");
        cr_assert_eq(edit_replace_all_uses(edit, edit_node(edit, "mul"), node_value(neg), neg), STATUS_OK);
        cr_assert_eq(edit_delete_module(edit, "layer.act"), STATUS_OK);
        edit_free(edit);
        same_text(base, untouched, GRAPH_FORM_JSON);
        cr_expect_eq(memcmp(base->fingerprint, untouched->fingerprint, sizeof(base->fingerprint)), 0);
        graph_unref(base);
        graph_unref(untouched);
}

Test(edit_nodes, nodes_know_the_authored_node_that_they_stand_for)
{
        Edit *edit = edit_of(small_graph());
        Node *neg = append_call(edit, "mul", "torch.neg"), *made;
        EditNew fresh = { .op = OP_CALL_FUNCTION,
                          .target = "torch.tanh",
                          .args = sequence(VALUE_TUPLE, 1, node_value(edit_node(edit, "x"))) };
        cr_assert_eq(edit_replace_all_uses(edit, edit_node(edit, "mul"), node_value(neg), neg), STATUS_OK);
        cr_assert_eq(edit_replace(edit, edit_node(edit, "layer_act"), &fresh, &made), STATUS_OK);
        cr_assert_eq(edit_rename(edit, edit_node(edit, "mul"), "product"), STATUS_OK);
        Graph *once = finished(edit);
        cr_expect_str_eq(node_origin(graph_node(once, "tanh")), "layer_act");
        edit = edit_of(once);
        cr_assert_eq(edit_rename(edit, edit_node(edit, "neg"), "minus"), STATUS_OK);
        Graph *twice = finished(edit);
        cr_expect_str_eq(node_origin(graph_node(twice, "minus")), "mul");
        cr_expect_str_eq(node_origin(graph_node(twice, "product")), "mul");
        cr_expect_str_eq(node_origin(graph_node(twice, "x")), "x");
        graph_unref(twice);
}

Test(edit_nodes, nodes_of_other_graphs_and_erased_ones_are_refused)
{
        Edit *edit = edit_of(small_graph()), *foreign = edit_of(small_graph());
        Node *made, *x = edit_node(foreign, "x");
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = "torch.neg",
                        .args = sequence(VALUE_TUPLE, 1, node_value(x)) };
        fails_with(edit_insert_after(edit, NULL, &new, &made), STATUS_LINT,
                   "Argument 'x' of Node 'neg' does not belong to this Graph, but was used as an argument!",
                   "neg");
        cr_expect_eq(edit_erase(edit, x), STATUS_INTERNAL);
        Node *tanh = append_call(foreign, "mul", "torch.tanh");
        cr_assert_eq(edit_erase(foreign, tanh), STATUS_OK);
        fails_with(edit_rename(foreign, tanh, "again"), STATUS_LINT, "Node tanh was erased", "tanh");
        edit_free(edit);
        edit_free(foreign);
}

Test(edit_nodes, what_cannot_run_is_said_when_the_session_ends)
{
        static const struct {
                const char *target, *message;
                Status status;
        } rows[] = { { "torch.sigmod", "torch.sigmod", STATUS_UNSUPPORTED },
                     { "torch.matmul", "torch.matmul", STATUS_UNSUPPORTED } };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Edit *edit = edit_of(small_graph());
                Graph *graph = NULL;
                append_call(edit, "mul", rows[i].target);
                fails_with(edit_finish(edit, &graph), rows[i].status, rows[i].message, NULL);
                cr_expect_null(graph);
                cr_expect_eq(edit_finish(edit, &graph), STATUS_INTERNAL);
                edit_free(edit);
        }
        Edit *edit = edit_of(small_graph());
        Graph *graph = NULL;
        cr_assert_eq(edit_delete_module(edit, "layer"), STATUS_OK);
        fails_with(edit_finish(edit, &graph), STATUS_LINT, "references nonexistent attribute", "layer_act");
        edit_free(edit);
}

// ---- modules and state ----

Test(edit_nodes, modules_are_added_replaced_and_deleted)
{
        Edit *edit = edit_of(small_graph());
        ModuleConfig slope = { "negative_slope", value_float(0.5) };
        EditModule leaky = { .type = "nn.LeakyReLU", .config = &slope, .n_config = 1 };
        EditModule tanh = { .type = "torch.nn.Tanh" };
        cr_assert_eq(edit_replace_module(edit, "layer.act", &leaky), STATUS_OK);
        cr_assert_eq(edit_add_module(edit, "layer.new", &tanh), STATUS_OK);
        fails_with(edit_add_module(edit, "layer.new", &tanh), STATUS_LINT, "is defined twice", NULL);
        fails_with(edit_delete_module(edit, "layer.none"), STATUS_LINT, "no module \"layer.none\"", NULL);
        cr_assert_eq(edit_set_target(edit, edit_node(edit, "layer_act"), "layer.new"), STATUS_OK);
        Graph *graph = finished(edit);
        cr_expect_str_eq(graph_module(graph, "layer.act")->type, "torch.nn.LeakyReLU");
        cr_expect_eq(graph_module(graph, "layer.act")->n_config, 1);
        edit = edit_of(graph);
        cr_assert_eq(edit_delete_module(edit, "layer.act"), STATUS_OK);
        graph = finished(edit);
        cr_expect_null(graph_module(graph, "layer.act"));
        cr_expect_not_null(graph_module(graph, "layer.new"));
        cr_expect_not_null(graph_state(graph, "layer.scale"));
        graph_unref(graph);
}

Test(edit_nodes, unknown_configuration_is_refused)
{
        Edit *edit = edit_of(small_graph());
        Graph *graph = NULL;
        ModuleConfig wrong = { "slope", value_float(0.5) };
        EditModule relu = { .type = "torch.nn.ReLU", .config = &wrong, .n_config = 1 };
        cr_assert_eq(edit_replace_module(edit, "layer.act", &relu), STATUS_OK);
        fails_with(edit_finish(edit, &graph), STATUS_UNKNOWN_CONFIG, "layer.act: slope", NULL);
        edit_free(edit);
}

Test(edit_nodes, a_module_goes_with_its_state)
{
        Edit *edit = edit_of(small_graph());
        Tensor *other = small_tensor(DTYPE_F32, 4);
        cr_assert_eq(edit_set_state(edit, "apart", tensor_ref(other)), STATUS_OK);
        cr_assert_eq(edit_set_target(edit, edit_node(edit, "layer_scale"), "apart"), STATUS_OK);
        cr_assert_eq(edit_replace_input(edit, edit_node(edit, "mul"), edit_node(edit, "layer_act"),
                                        node_value(edit_node(edit, "x"))),
                     STATUS_OK);
        cr_assert_eq(edit_erase(edit, edit_node(edit, "layer_act")), STATUS_OK);
        cr_assert_eq(edit_delete_module(edit, "layer"), STATUS_OK);
        Graph *graph = finished(edit);
        cr_expect_eq(graph->n_state, 1);
        cr_expect_eq(graph->n_modules, 1);
        cr_expect_eq(graph_state(graph, "apart")->tensor, other);
        cr_expect_null(graph_state(graph, "layer.scale"));
        tensor_unref(other);
        graph_unref(graph);
}

Test(edit_nodes, state_of_an_export_keeps_its_dtype_and_shape)
{
        Edit *edit = edit_of(load_export("dev_linear"));
        const char *path = edit_base(edit)->state[0].path;
        fails_with(edit_set_state(edit, path, small_tensor(DTYPE_F64, 3)), STATUS_SHAPE, "must be alike",
                   NULL);
        edit_free(edit);
}

// ---- results and inputs of exports ----

Test(edit_nodes, an_export_gets_and_loses_results)
{
        Edit *edit = edit_of(load_export("dev_lenet"));
        Node *last = edit_previous(edit_output(edit));
        char inner[64];
        snprintf(inner, sizeof(inner), "%s", edit_previous(last)->name);
        cr_assert_eq(edit_add_output(edit, node_value(edit_node(edit, inner))), STATUS_OK);
        Graph *graph = finished(edit);
        cr_expect_eq(graph->signature.n_outputs, 2);
        cr_expect_eq(graph->signature.out_tree->n_leaves, 2);
        cr_expect_str_eq(graph->signature.outputs[1].arg.node->name, inner);
        edit = edit_of(graph);
        cr_assert_eq(edit_remove_output(edit, 0), STATUS_OK);
        fails_with(edit_remove_output(edit, 1), STATUS_LINT, "no output 1", "output");
        graph = finished(edit);
        cr_expect_eq(graph->signature.n_outputs, 1);
        cr_expect_eq(graph->signature.out_tree->n_leaves, 1);
        cr_expect_str_eq(graph->signature.outputs[0].arg.node->name, inner);
        graph_unref(graph);
}

// Added and removed one by one, the results would be copied four billion times.
Test(edit_nodes, an_export_gets_very_many_results_by_extraction, .timeout = 60)
{
        enum { MANY = 60000 };
        Graph *base = load_export("dev_lenet");
        for (uint32_t n = MANY; n > 0; n /= MANY) {
                Edit *edit = edit_of(base);
                Node *input = NULL;
                for (Node *node = edit_first(edit); input == NULL; node = edit_next(node))
                        input = node->op == OP_PLACEHOLDER && strcmp(node->name, "x") == 0 ? node : NULL;
                Node **results = new_array(n, sizeof(*results));
                for (uint32_t i = 0; i < n; i++)
                        results[i] = edit_previous(edit_output(edit));
                cr_assert_eq(edit_extract_subgraph(edit, &input, 1, results, n), STATUS_OK, "%s",
                             failure_current()->message);
                base = finished(edit);
                cr_expect_eq(base->signature.n_outputs, n);
                cr_expect_eq(base->signature.out_tree->n_leaves, n);
                free(results);
        }
        graph_unref(base);
}

Test(edit_nodes, the_number_of_an_exports_results_changes_only_one_by_one)
{
        Edit *edit = edit_of(load_export("dev_lenet"));
        Graph *graph = NULL;
        Node *last = edit_output(edit);
        cr_assert_eq(
                edit_set_args(edit, last, sequence(VALUE_TUPLE, 1, sequence(VALUE_TUPLE, 0)), value_none()),
                STATUS_INTERNAL);
        edit_free(edit);
        edit = edit_of(load_export("dev_lenet"));
        last = edit_output(edit);
        cr_assert_eq(edit_set_args(edit, last, sequence(VALUE_TUPLE, 1, sequence(VALUE_TUPLE, 0)),
                                   value_ref(last->kwargs)),
                     STATUS_OK);
        fails_with(edit_finish(edit, &graph), STATUS_LINT, "the export gives 1 results", "output");
        edit_free(edit);
}

Test(edit_nodes, an_export_gets_and_loses_inputs)
{
        Edit *edit = edit_of(load_export("dev_linear"));
        Node *last = NULL, *made;
        for (Node *node = edit_first(edit); node != NULL && node->op == OP_PLACEHOLDER;
             node = edit_next(node))
                last = node;
        char first[64];
        snprintf(first, sizeof(first), "%s", last->name);
        EditNew new = { .op = OP_PLACEHOLDER, .target = "extra" };
        cr_assert_eq(edit_insert_after(edit, last, &new, &made), STATUS_OK);
        cr_assert_eq(edit_replace_all_uses(edit, last, node_value(made), NULL), STATUS_OK);
        Graph *graph = finished(edit);
        const Signature *signature = &graph->signature;
        cr_expect_eq(signature->in_tree->n_leaves, 2);
        cr_expect_str_eq(signature->in_tree->children[1]->keys[0], "extra");
        cr_expect_str_eq(signature->argument_names[1], "extra");
        cr_expect_eq(signature->n_user_inputs, 2);
        edit = edit_of(graph);
        cr_assert_eq(edit_erase(edit, edit_node(edit, first)), STATUS_OK);
        graph = finished(edit);
        cr_expect_eq(graph->signature.in_tree->n_leaves, 1);
        cr_expect_eq(graph->signature.in_tree->children[0]->n, 0);
        cr_expect_eq(graph->signature.n_arguments, 1);
        cr_expect_str_eq(graph->signature.argument_names[0], "extra");
        graph_unref(graph);
}

// forward(p), a list of `n` tensors p_0, p_1 ...
static Graph *takes_list(uint32_t n)
{
        Graph *graph = new_graph();
        Arena *arena = &graph->arena;
        Tree *trees = arena_array(arena, n + 4, sizeof(Tree));
        Tree **inner = arena_array(arena, 3, sizeof(Tree *)),
             **leaves = arena_array(arena, n, sizeof(Tree *));
        const char **names = arena_array(arena, 1, sizeof(char *));
        cr_assert_eq(targets_init(), STATUS_OK);
        for (uint32_t i = 0; i < n; i++) {
                char name[20];
                snprintf(name, sizeof(name), "p_%u", i);
                placeholder(graph, name);
                leaves[i] = &trees[i + 4];
                *leaves[i] = (Tree){ .kind = TREE_LEAF, .first_leaf = i, .n_leaves = 1 };
        }
        for (uint32_t i = 0; i < 3; i++)
                inner[i] = &trees[i + 1];
        trees[0] = (Tree){ .kind = TREE_TUPLE, .n = 2, .children = inner, .n_leaves = n };
        trees[1] = (Tree){ .kind = TREE_TUPLE, .n = 1, .children = &inner[2], .n_leaves = n };
        trees[2] = (Tree){ .kind = TREE_DICT };
        trees[3] = (Tree){ .kind = TREE_LIST, .n = n, .children = leaves, .n_leaves = n };
        names[0] = "p";
        output(graph, node_value(graph_node(graph, "p_1")));
        finish(graph);
        graph->signature.in_tree = trees;
        graph->signature.argument_names = names;
        graph->signature.n_arguments = 1;
        return graph;
}

Test(edit_nodes, long_lists_of_inputs_have_no_keys_to_be_sorted_by)
{
        enum { MANY = 40 };
        Edit *edit = edit_of(takes_list(MANY));
        cr_assert_eq(edit_erase(edit, edit_node(edit, "p_0")), STATUS_OK);
        Graph *graph = finished(edit);
        const Tree *list = graph->signature.in_tree->children[0]->children[0];
        cr_expect_eq(list->n, MANY - 1);
        cr_expect_null(list->keys);
        cr_expect_null(list->by_key);
        graph_unref(graph);
}

Test(edit_nodes, guards_follow_what_moved_within_a_list)
{
        const char *guards[] = { "L['p'][1].size()[0] > 5", "L['p'][0].size()[0] > 1",
                                 "L['p'][2].size()[0] == 2*L['p'][1].size()[0]",
                                 "L['p'][1].size()[0] == L['p'][0].size()[0]" };
        Graph *base = takes_list(3);
        base->signature.guards = guards;
        base->signature.n_guards = ARRAY_LENGTH(guards);
        Edit *edit = edit_of(base);
        cr_assert_eq(edit_erase(edit, edit_node(edit, "p_0")), STATUS_OK);
        Graph *graph = finished(edit);
        cr_assert_eq(graph->signature.n_guards, 2);
        cr_expect_str_eq(graph->signature.guards[0], "L['p_1'].size()[0] > 5");
        cr_expect_str_eq(graph->signature.guards[1], "L['p_2'].size()[0] == 2*L['p_1'].size()[0]");
        graph_unref(graph);
}

// Looking for the last placeholder each time would take minutes.
Test(edit_nodes, very_many_nodes_are_given_values, .timeout = 60)
{
        enum { MANY = 150000 };
        Graph *base = new_graph();
        TensorSpec spec = { .dtype = DTYPE_F32, .rank = 1 };
        limits.max_nodes = limits.max_edit_growth = 4 * MANY;
        cr_assert_eq(targets_init(), STATUS_OK);
        Node *x = placeholder(base, "x");
        for (uint32_t i = 0; i < MANY; i++)
                call_one(base, OP_CALL_FUNCTION, "torch.relu", x);
        output(base, node_value(x));
        finish(base);
        Edit *edit = edit_of(graph_ref(base));
        for (uint32_t i = 1; i <= MANY; i++)
                cr_assert_eq(edit_give_value(edit, base->nodes[i]->name, &spec), STATUS_OK, "%s",
                             failure_current()->message);
        Graph *graph = finished(edit);
        cr_assert_eq(graph->n_nodes, MANY + 2);
        for (uint32_t i = 1; i <= MANY; i++)
                cr_assert_str_eq(graph->nodes[i]->origin, base->nodes[i]->name);
        graph_unref(graph);
        graph_unref(base);
}

static const char *format_text(Graph *graph, const char *format, uint32_t number)
{
        char text[80];
        snprintf(text, sizeof(text), format, number);
        return arena_text(&graph->arena, text, strlen(text));
}

// Looking for every argument in every guard would take minutes.
Test(edit_nodes, guards_on_inputs_that_are_gone_are_dropped_however_many_there_are, .timeout = 60)
{
        enum { MANY = 50000 };
        Graph *base = new_graph();
        Signature *signature = &base->signature;
        cr_assert_eq(targets_init(), STATUS_OK);
        for (uint32_t i = 0; i < MANY; i++)
                placeholder(base, format_text(base, "x_%u", i));
        output(base, node_value(graph_node(base, "x_7")));
        finish(base);
        signature->guards = arena_array(&base->arena, MANY, sizeof(char *));
        for (uint32_t i = 0; i < MANY; i++)
                signature->guards[signature->n_guards++] =
                        format_text(base, i % 2 == 0 ? "L['x_%u'].size()[0] > 2" : "1 < L[\"x_%u\"].ndim", i);
        Edit *edit = edit_of(base);
        for (uint32_t i = 0; i < MANY; i++) {
                char name[20];
                snprintf(name, sizeof(name), "x_%u", i);
                if (i != 7 && i != 10)
                        cr_assert_eq(edit_erase(edit, edit_node(edit, name)), STATUS_OK);
        }
        Graph *graph = finished(edit);
        cr_assert_eq(graph->signature.n_guards, 2);
        cr_expect_str_eq(graph->signature.guards[0], "1 < L[\"x_7\"].ndim");
        cr_expect_str_eq(graph->signature.guards[1], "L['x_10'].size()[0] > 2");
        graph_unref(graph);
}

Test(edit_nodes, what_was_recorded_of_changed_values_is_forgotten)
{
        Edit *edit = edit_of(load_export("dev_lenet"));
        Node *relu = edit_first(edit);
        while (strstr(relu->target, "relu") == NULL)
                relu = edit_next(relu);
        char name[64], before[64], after[64];
        snprintf(name, sizeof(name), "%s", relu->name);
        snprintf(before, sizeof(before), "%s", edit_previous(relu)->name);
        snprintf(after, sizeof(after), "%s", edit_next(relu)->name);
        cr_assert_eq(edit_set_target(edit, relu, "torch.ops.aten.neg.default"), STATUS_OK);
        Graph *graph = finished(edit);
        cr_expect_null(graph_node(graph, name)->spec);
        cr_expect_null(graph_node(graph, after)->spec);
        cr_expect_not_null(graph_node(graph, before)->spec);
        graph_unref(graph);
}

// ---- child graphs ----

// small_graph() as a child, called once or twice.
static Graph *with_child(int n_calls)
{
        Graph *graph = new_graph();
        Module *module;
        cr_assert_eq(graph_add_module(graph, "sub", "torch.fx.GraphModule", &module), STATUS_OK);
        module->graph = small_graph();
        Node *node = placeholder(graph, "x");
        for (int i = 0; i < n_calls; i++)
                node = call_one(graph, OP_CALL_MODULE, "sub", node);
        output(graph, node_value(node));
        finish(graph);
        return graph;
}

Test(edit_nodes, an_inlined_child_keeps_its_paths)
{
        Edit *edit = edit_of(with_child(1));
        cr_assert_eq(edit_inline(edit, edit_node(edit, "sub")), STATUS_OK, "%s", failure_current()->message);
        Graph *graph = finished(edit);
        cr_expect_null(graph_module(graph, "sub")->graph);
        cr_expect_str_eq(graph_node(graph, "layer_act")->target, "sub.layer.act");
        cr_expect_str_eq(graph_node(graph, "layer_scale")->target, "sub.layer.scale");
        cr_expect_not_null(graph_state(graph, "sub.layer.scale"));
        graph_unref(graph);
}

Test(edit_nodes, a_child_that_is_called_twice_shares_its_tensors)
{
        Edit *edit = edit_of(with_child(2));
        cr_assert_eq(edit_inline(edit, edit_node(edit, "sub")), STATUS_OK, "%s", failure_current()->message);
        cr_expect_not_null(edit_module(edit, "sub")->graph);
        cr_assert_eq(edit_inline(edit, edit_node(edit, "sub_1")), STATUS_OK, "%s",
                     failure_current()->message);
        Graph *graph = finished(edit);
        cr_expect_eq(graph->n_state, 2);
        cr_expect_eq(graph_state(graph, "sub.layer.scale")->tensor,
                     graph_state(graph, "sub_1.layer.scale")->tensor);
        cr_expect_eq(graph->weights_bytes, 16);
        graph_unref(graph);
}

Test(edit_nodes, a_call_with_other_arguments_is_not_inlined)
{
        Edit *edit = edit_of(with_child(1));
        Node *call = edit_node(edit, "sub");
        cr_assert_eq(edit_set_args(edit, call, sequence(VALUE_TUPLE, 0), value_ref(call->kwargs)), STATUS_OK);
        fails_with(edit_inline(edit, call), STATUS_LINT, "missing 1 required positional argument: 'x'",
                   "sub");
        fails_with(edit_inline(edit, edit_node(edit, "x")), STATUS_LINT, "calls no child graph", "x");
        edit_free(edit);
}

Test(edit_nodes, an_export_is_spliced_with_its_state_and_structure)
{
        Graph *export = load_export("dev_linear");
        Edit *edit = edit_of(small_graph());
        Value x = node_value(edit_node(edit, "x")), result = value_none();
        EditSplice splice = { .graph = export,
                              .prefix = "other",
                              .before = edit_node(edit, "layer_act"),
                              .inputs = &x,
                              .n_inputs = 1 };
        cr_assert_eq(edit_splice(edit, &splice, &result), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(result.kind, VALUE_NODE);
        cr_assert_eq(edit_replace_input(edit, edit_node(edit, "layer_act"), x.node, result), STATUS_OK);
        Graph *graph = finished(edit);
        cr_expect_eq(graph->n_state, 1 + export->n_state);
        char path[200];
        snprintf(path, sizeof(path), "other.%s", export->state[0].path);
        cr_expect_eq(graph_state(graph, path)->tensor, export->state[0].tensor);
        graph_unref(graph);
        graph_unref(export);
}

// ---- limits ----

static Status set_nones(Edit *edit, Node *node, uint32_t n)
{
        Seq *args;
        Dict *kwargs;
        cr_assert_eq(seq_new(n, &args), STATUS_OK);
        cr_assert_eq(dict_new(0, &kwargs), STATUS_OK);
        return edit_set_args(edit, node, value_seq_take(VALUE_TUPLE, args),
                             (Value){ .kind = VALUE_DICT, .dict = kwargs });
}

Test(edit_nodes, recipes_are_limited_in_the_values_that_they_add)
{
        limits.max_edit_values = 10;
        Edit *edit = edit_of(small_graph());
        Node *mul = edit_node(edit, "mul");
        for (int round = 0; round < 5; round++) // what is replaced counts no more
                cr_expect_eq(set_nones(edit, mul, 8), STATUS_OK, "%s", failure_current()->message);
        fails_with(set_nones(edit, mul, 13), STATUS_TOO_LARGE, "max_edit_values", NULL);
        edit_free(edit);
}

Test(edit_nodes, recipes_end_at_the_deadline_and_when_nobody_waits)
{
        RunContext poll;
        run_context_init(&poll);
        Edit *edit = edit_of(small_graph());
        edit_set_poll(edit, &poll);
        cr_expect_eq(edit_step(edit), STATUS_OK);
        cr_expect_eq(edit_visit(edit, 1), STATUS_OK);
        poll.deadline_ns = 1;
        fails_with(edit_step(edit), STATUS_DEADLINE, "deadline", NULL);
        fails_with(edit_visit(edit, 100000), STATUS_DEADLINE, "deadline", NULL);
        poll.deadline_ns = 0;
        poll.cancelled = 1;
        Graph *graph = NULL;
        Edit *next = NULL;
        cr_assert_eq(edit_reopen(edit, &graph, &next), STATUS_OK);
        fails_with(edit_step(next), STATUS_CANCELLED, "cancelled", NULL);
        edit_free(next);
        graph_unref(graph);
        edit_free(edit);
}

Test(edit_nodes, recipes_are_limited_in_steps_and_growth)
{
        Edit *edit = edit_of(small_graph());
        limits.max_edit_steps = 2;
        cr_expect_eq(edit_step(edit), STATUS_OK);
        cr_expect_eq(edit_step(edit), STATUS_OK);
        fails_with(edit_step(edit), STATUS_TOO_LARGE, "max_edit_steps", NULL);
        limits.max_edit_growth = 2;
        append_call(edit, "mul", "torch.neg");
        cr_assert_eq(edit_erase(edit, append_call(edit, "mul", "torch.neg")), STATUS_OK);
        Node *made;
        EditNew new = { .op = OP_CALL_FUNCTION, .target = "torch.neg" };
        fails_with(edit_insert_after(edit, NULL, &new, &made), STATUS_TOO_LARGE, "max_edit_growth", NULL);
        limits.max_edit_growth = 100;
        limits.max_nodes = edit_n_nodes(edit);
        fails_with(edit_insert_after(edit, NULL, &new, &made), STATUS_TOO_LARGE, "max_nodes", NULL);
        edit_free(edit);
}
