// SPDX-License-Identifier: Apache-2.0
// resolve.c: what an upload is told: unknown names, arguments that fit nothing, configuration,
// state; and which graphs may write to their state.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/targets/module_class.h"
#include "tests/targets/case_values.h"

// ---- building ----
typedef struct Build {
        Graph *graph;
        Node *last;
} Build;

static void start(Build *build)
{
        cr_assert_eq(targets_init(), STATUS_OK, "%s", failure_current()->message);
        build->last = NULL;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &build->graph), STATUS_OK);
}

// `args`: JSON of case_value(), where "%x" is node x.
static Value node_or_value(const Graph *graph, const json_t *json)
{
        const char *text = json_string_value(json);
        if (text != NULL && text[0] == '%')
                return (Value){ .kind = VALUE_NODE, .node = graph_node(graph, text + 1) };
        const json_t *list = json_object_get(json, "list");
        if (list == NULL)
                return case_value(json);
        Seq *seq;
        cr_assert_eq(seq_new((uint32_t)json_array_size(list), &seq), STATUS_OK);
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = node_or_value(graph, json_array_get(list, i));
        return value_seq_take(VALUE_LIST, seq);
}

static Node *add(Build *build, Opcode op, const char *name, const char *target, const char *args)
{
        json_t *json = json_loads(args, 0, NULL);
        cr_assert_not_null(json, "%s", args);
        Seq *seq;
        cr_assert_eq(seq_new((uint32_t)json_array_size(json), &seq), STATUS_OK);
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = node_or_value(build->graph, json_array_get(json, i));
        json_decref(json);
        cr_assert_eq(graph_add_node(build->graph,
                                    &(NodeSpec){ .op = op,
                                                 .name = name,
                                                 .target = target,
                                                 .args = value_seq_take(VALUE_TUPLE, seq) },
                                    &build->last),
                     STATUS_OK, "%s", failure_current()->message);
        return build->last;
}

// A function of arguments that all have names; `kwargs`: a JSON object of what add() takes.
static Node *add_by_name(Build *build, const char *name, const char *target, const char *kwargs)
{
        json_t *json = json_loads(kwargs, 0, NULL), *value;
        const char *key;
        uint32_t i = 0;
        Dict *dict;
        Seq *none;
        cr_assert_not_null(json, "%s", kwargs);
        cr_assert_eq(seq_new(0, &none), STATUS_OK);
        cr_assert_eq(dict_new((uint32_t)json_object_size(json), &dict), STATUS_OK);
        json_object_foreach(json, key, value)
        {
                cr_assert_eq(str_new(key, strlen(key), &dict->items[i].key), STATUS_OK);
                dict->items[i++].value = node_or_value(build->graph, value);
        }
        json_decref(json);
        cr_assert_eq(graph_add_node(build->graph,
                                    &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                                 .name = name,
                                                 .target = target,
                                                 .args = value_seq_take(VALUE_TUPLE, none),
                                                 .kwargs = { .kind = VALUE_DICT, .dict = dict } },
                                    &build->last),
                     STATUS_OK, "%s", failure_current()->message);
        return build->last;
}

static void add_state(Build *build, const char *path, int rank, const int64_t *size)
{
        TensorMeta meta = { 0 };
        Tensor *tensor;
        State *state;
        meta_init(&meta, DTYPE_F32, rank, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        cr_assert_eq(graph_add_state(build->graph, path, tensor, &state), STATUS_OK);
}

static Module *add_module(Build *build, const char *path, const char *type, const char *config)
{
        Module *module;
        cr_assert_eq(graph_add_module(build->graph, path, type, &module), STATUS_OK);
        json_t *json = json_loads(config, 0, NULL), *item;
        const char *key;
        json_object_foreach(json, key, item)
        {
                const char *copy = arena_text(&build->graph->arena, key, strlen(key));
                cr_assert_eq(module_add_config(module, copy, case_value(item)), STATUS_OK);
        }
        json_decref(json);
        return module;
}

static void finish(Build *build)
{
        char args[80];
        snprintf(args, sizeof(args), "[\"%%%s\"]", build->last->name);
        add(build, OP_OUTPUT, "output", "output", args);
        cr_assert_eq(graph_finish(build->graph), STATUS_OK, "%s", failure_current()->message);
}

// The upload's outcome; the message is in failure_current().
static Status resolve(Build *build)
{
        CheckReport report;
        Status status = graph_resolve(build->graph, &report);
        if (status != STATUS_OK)
                return status;
        status = check_report_status(&report, build->graph);
        check_report_deinit(&report);
        return status;
}

static void expect_refused(Build *build, Status status, const char *message)
{
        finish(build);
        cr_expect_eq(resolve(build), status);
        cr_expect_str_eq(failure_current()->message, message);
        graph_unref(build->graph);
}

static void expect_fine(Build *build)
{
        finish(build);
        Status status = resolve(build);
        cr_expect_eq(status, STATUS_OK, "%s", failure_current()->message);
        graph_unref(build->graph);
}

// ---- names ----
Test(resolve, unknown_names_are_listed_with_their_nodes_most_frequent_first)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_FUNCTION, "bar", "torch.bar", "[\"%x\"]");
        add(&build, OP_CALL_FUNCTION, "foo", "torch.ops.aten.foo.default", "[\"%bar\"]");
        add(&build, OP_CALL_FUNCTION, "foo_1", "torch.ops.aten.foo.default", "[\"%foo\"]");
        add(&build, OP_CALL_METHOD, "quux", "quux", "[\"%foo_1\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "4 of 6 nodes use operators fxserve 0.2 lacks: aten.foo.default (foo, foo_1), "
                       "Tensor.quux (quux), torch.bar (bar)");
}

Test(resolve, an_unknown_overload_of_a_known_operator_is_unknown)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_FUNCTION, "relu", "torch.ops.aten.relu.Foo", "[\"%x\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 3 nodes use operators fxserve 0.2 lacks: aten.relu.Foo (relu)");
}

Test(resolve, other_libraries_operators_need_no_overload_unless_they_are_internal)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_FUNCTION, "nms", "torch.ops.torchvision.nms", "[\"%x\", \"%x\", \"%x\"]");
        expect_fine(&build);
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_FUNCTION, "hidden", "torch.ops.fxserve.suppress", "[\"%x\", \"%x\", \"%x\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 3 nodes use operators fxserve 0.2 lacks: fxserve.suppress (hidden)");
}

Test(resolve, arguments_that_fit_no_overload_are_refused_with_the_reason)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_FUNCTION, "relu", "torch.relu", "[\"%x\", 3]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 3 nodes use operators fxserve 0.2 lacks: torch.relu (relu): relu() takes 1 "
                       "positional argument but 2 were given");
}

Test(resolve, values_of_other_nodes_fit_any_argument)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_METHOD, "size", "size", "[\"%x\", 0]");
        add(&build, OP_CALL_METHOD, "view", "view", "[\"%x\", \"%size\", -1]");
        add(&build, OP_CALL_FUNCTION, "cat", "torch.cat", "[{\"list\": [\"%view\", \"%view\"]}, 1]");
        add(&build, OP_CALL_FUNCTION, "add", "_operator.add", "[\"%cat\", \"%size\"]");
        expect_fine(&build);
}

Test(resolve, resolved_nodes_keep_what_was_found)
{
        Build build;
        start(&build);
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        Node *node = add(&build, OP_CALL_FUNCTION, "relu", "torch.relu", "[\"%x\"]");
        finish(&build);
        cr_expect_eq(resolve(&build), STATUS_OK);
        cr_expect_eq(node->resolved, target_function("torch.relu"));
        graph_unref(build.graph);
}

// ---- modules ----
static void linear_graph(Build *build, const char *config)
{
        start(build);
        add_module(build, "fc", "torch.nn.Linear", config);
        add(build, OP_PLACEHOLDER, "x", "x", "[]");
        add(build, OP_CALL_MODULE, "fc", "fc", "[\"%x\"]");
}

Test(resolve, unknown_configuration_keys_list_what_the_class_knows)
{
        Build build;
        linear_graph(&build, "{\"in_feature\": 3, \"out_features\": 2, \"in_features\": 3}");
        expect_refused(&build, STATUS_UNKNOWN_CONFIG,
                       "module configuration that does not fit: fc: in_feature (torch.nn.Linear knows "
                       "in_features, out_features, bias)");
}

Test(resolve, required_configuration_that_is_missing_is_named)
{
        Build build;
        linear_graph(&build, "{\"in_features\": 3}");
        expect_refused(&build, STATUS_UNKNOWN_CONFIG,
                       "module configuration that does not fit: fc: out_features is missing (torch.nn.Linear "
                       "knows in_features, "
                       "out_features, bias)");
}

Test(resolve, configuration_of_a_wrong_type_is_named)
{
        Build build;
        linear_graph(&build, "{\"in_features\": \"3\", \"out_features\": 2}");
        expect_refused(&build, STATUS_UNKNOWN_CONFIG,
                       "module configuration that does not fit: fc: Linear(): argument 'in_features' "
                       "(position 1) must be int, not str "
                       "(torch.nn.Linear knows "
                       "in_features, out_features, bias)");
}

Test(resolve, missing_state_is_listed_in_full)
{
        Build build;
        linear_graph(&build, "{\"in_features\": 3, \"out_features\": 2}");
        expect_refused(&build, STATUS_MISSING_STATE,
                       "the graph needs state that did not come along: fc.weight, fc.bias; put it under "
                       "\"state\", or send a safetensors "
                       "file beside the graph "
                       "(curl -F graph=@g.json -F weights=@w.safetensors)");
}

Test(resolve, state_that_the_configuration_switches_off_is_not_needed)
{
        Build build;
        linear_graph(&build, "{\"in_features\": 3, \"out_features\": 2, \"bias\": false}");
        add_state(&build, "fc.weight", 2, (const int64_t[]){ 2, 3 });
        expect_fine(&build);
}

Test(resolve, state_whose_shape_contradicts_the_configuration_is_refused)
{
        Build build;
        linear_graph(&build, "{\"in_features\": 3, \"out_features\": 2}");
        add_state(&build, "fc.weight", 2, (const int64_t[]){ 3, 2 });
        add_state(&build, "fc.bias", 1, (const int64_t[]){ 2 });
        expect_refused(&build, STATUS_SHAPE,
                       "size mismatch for fc.weight: the state has shape [3, 2], but the configuration of "
                       "\"fc\" (torch.nn.Linear) makes "
                       "it [2, 3]");
}

Test(resolve, shapes_with_groups_and_kernel_sizes_are_worked_out)
{
        Build build;
        start(&build);
        add_module(&build, "conv", "torch.nn.Conv2d",
                   "{\"in_channels\": 4, \"out_channels\": 6, \"kernel_size\": {\"list\": [3, 1]}, "
                   "\"groups\": 2, \"bias\": false}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "conv", "conv", "[\"%x\"]");
        add_state(&build, "conv.weight", 4, (const int64_t[]){ 6, 4, 3, 1 });
        expect_refused(&build, STATUS_SHAPE,
                       "size mismatch for conv.weight: the state has shape [6, 4, 3, 1], but the "
                       "configuration of \"conv\" "
                       "(torch.nn.Conv2d) makes it [6, 2, 3, 1]");
}

Test(resolve, unknown_module_classes_are_listed)
{
        Build build;
        start(&build);
        add_module(&build, "a", "torch.nn.Foo", "{}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "a", "a", "[\"%x\"]");
        add(&build, OP_CALL_MODULE, "a_1", "a", "[\"%a\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "2 of 4 nodes use operators fxserve 0.2 lacks: torch.nn.Foo (a, a_1)");
}

Test(resolve, modules_that_nobody_calls_need_no_state)
{
        Build build;
        start(&build);
        add_module(&build, "spare", "torch.nn.Linear", "{\"in_features\": 3, \"out_features\": 2}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        expect_fine(&build);
}

Test(resolve, forward_takes_its_own_arguments_only)
{
        Build build;
        start(&build);
        add_module(&build, "relu", "torch.nn.ReLU", "{}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "relu_1", "relu", "[\"%x\", 2]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 3 nodes use operators fxserve 0.2 lacks: torch.nn.ReLU (relu_1): forward() "
                       "takes 1 positional argument but 2 "
                       "were given");
}

Test(resolve, stacks_name_the_modules_that_they_lack)
{
        Build build;
        start(&build);
        add_module(&build, "enc", "torch.nn.TransformerEncoder", "{}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "enc_1", "enc", "[\"%x\"]");
        expect_refused(
                &build, STATUS_UNSUPPORTED,
                "1 of 3 nodes use operators fxserve 0.2 lacks: torch.nn.TransformerEncoder (enc_1): it "
                "needs the module \"enc.layers.0\" in \"modules\"");
}

Test(resolve, modules_of_stacks_have_the_classes_that_bound_their_depth)
{
        Build build;
        start(&build);
        add_module(&build, "enc", "torch.nn.TransformerEncoder", "{}");
        add_module(&build, "enc.layers.0", "torch.nn.TransformerEncoder", "{}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "enc_1", "enc", "[\"%x\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 3 nodes use operators fxserve 0.2 lacks: torch.nn.TransformerEncoder (enc_1): "
                       "\"enc.layers.0\" should be a torch.nn.TransformerEncoderLayer");
}

Test(resolve, layers_of_recurrent_networks_are_counted_before_their_state)
{
        Build build;
        start(&build);
        add_module(&build, "rnn", "torch.nn.LSTM",
                   "{\"input_size\": 1, \"hidden_size\": 1, \"num_layers\": 2000000000}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "rnn_1", "rnn", "[\"%x\"]");
        expect_refused(
                &build, STATUS_UNSUPPORTED,
                "1 of 3 nodes use operators fxserve 0.2 lacks: torch.nn.LSTM (rnn_1): num_layers times "
                "directions is at most 64, got 2000000000 layers");
}

// ---- recorded dtypes ----
Test(resolve, dtypes_that_the_exporter_recorded_are_checked)
{
        Build build;
        start(&build);
        Node *x = add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        x->spec = arena_alloc(&build.graph->arena, sizeof(*x->spec));
        *x->spec = (TensorSpec){ .dtype = DTYPE_I64, .rank = -1 };
        add(&build, OP_CALL_FUNCTION, "softmax", "torch.ops.aten._softmax.default", "[\"%x\", 0, false]");
        finish(&build);
        cr_expect_eq(resolve(&build), STATUS_UNSUPPORTED);
        cr_expect_not_null(strstr(failure_current()->message,
                                  "aten._softmax.default: int64 tensors (softmax): it takes float"),
                           "%s", failure_current()->message);
        graph_unref(build.graph);
}

// ---- child graphs ----
Test(resolve, child_graphs_are_checked_too)
{
        Build build, child;
        start(&build);
        start(&child);
        add(&child, OP_PLACEHOLDER, "y", "y", "[]");
        add(&child, OP_CALL_FUNCTION, "deep", "torch.deep_secret", "[\"%y\"]");
        finish(&child);
        add_module(&build, "child", "torch.fx.GraphModule", "{}")->graph = child.graph;
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "child_1", "child", "[\"%x\"]");
        expect_refused(&build, STATUS_UNSUPPORTED,
                       "1 of 6 nodes use operators fxserve 0.2 lacks: torch.deep_secret (deep)");
}

// ---- writes ----
static bool written_after(Build *build)
{
        finish(build);
        cr_assert_eq(resolve(build), STATUS_OK, "%s", failure_current()->message);
        bool written = build->graph->state[0].written;
        graph_unref(build->graph);
        return written;
}

Test(writes, an_in_place_call_on_state_marks_it)
{
        Build build;
        start(&build);
        add_state(&build, "b", 1, (const int64_t[]){ 3 });
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_CALL_METHOD, "add_", "add_", "[\"%b\", 1]");
        cr_expect(written_after(&build));
}

Test(writes, a_write_through_a_view_marks_the_state_behind_it)
{
        Build build;
        start(&build);
        add_state(&build, "b", 2, (const int64_t[]){ 3, 2 });
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_CALL_FUNCTION, "getitem", "_operator.getitem", "[\"%b\", 0]");
        add(&build, OP_CALL_FUNCTION, "iadd", "_operator.iadd", "[\"%getitem\", 1]");
        cr_expect(written_after(&build));
}

Test(writes, an_assignment_marks_the_state)
{
        Build build;
        start(&build);
        add_state(&build, "b", 2, (const int64_t[]){ 3, 2 });
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_CALL_FUNCTION, "setitem", "_operator.setitem", "[\"%b\", 0, 1]");
        cr_expect(written_after(&build));
}

Test(writes, in_place_activations_of_computed_values_leave_state_alone)
{
        Build build;
        start(&build);
        add_state(&build, "fc.weight", 2, (const int64_t[]){ 2, 3 });
        add_state(&build, "fc.bias", 1, (const int64_t[]){ 2 });
        add_module(&build, "fc", "torch.nn.Linear", "{\"in_features\": 3, \"out_features\": 2}");
        add_module(&build, "relu", "torch.nn.ReLU", "{\"inplace\": true}");
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "fc", "fc", "[\"%x\"]");
        add(&build, OP_CALL_MODULE, "relu", "relu", "[\"%fc\"]");
        add(&build, OP_CALL_METHOD, "add_", "add_", "[\"%relu\", 1]");
        cr_expect_not(written_after(&build));
}

Test(writes, reading_state_does_not_mark_it)
{
        Build build;
        start(&build);
        add_state(&build, "b", 1, (const int64_t[]){ 3 });
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_CALL_FUNCTION, "mul", "_operator.mul", "[\"%b\", 2]");
        add(&build, OP_CALL_METHOD, "add_", "add_", "[\"%mul\", 1]");
        cr_expect_not(written_after(&build));
}

// Programs hold what is not marked as constant: weights stay packed beside a buffer that changes.
Test(writes, only_what_a_write_can_reach_is_marked)
{
        Build build;
        start(&build);
        for (int i = 0; i < 4; i++)
                add_state(&build, (const char *[]){ "b", "w", "tied", "viewed" }[i], 1,
                          (const int64_t[]){ 3 });
        Graph *graph = build.graph;
        storage_unref(graph->state[2].tensor->storage);
        graph->state[2].tensor->storage = storage_ref(graph->state[0].tensor->storage);
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_GET_ATTR, "w", "w", "[]");
        add(&build, OP_GET_ATTR, "viewed", "viewed", "[]");
        add(&build, OP_CALL_METHOD, "copy_", "copy_", "[\"%b\", \"%w\"]");
        add(&build, OP_CALL_METHOD, "view", "view", "[\"%viewed\", 3, 1]");
        add(&build, OP_CALL_FUNCTION, "item", "_operator.getitem", "[\"%view\", 0]");
        add(&build, OP_CALL_METHOD, "add_", "add_", "[\"%item\", \"%w\"]");
        finish(&build);
        cr_assert_eq(resolve(&build), STATUS_OK, "%s", failure_current()->message);
        cr_expect(graph->state[0].written);
        cr_expect_not(graph->state[1].written, "it is only read");
        cr_expect(graph->state[2].written, "it lies where b lies");
        cr_expect(graph->state[3].written, "through a view of a view");
        graph_unref(graph);
}

Test(writes, lists_of_state_stay_state)
{
        Build build;
        start(&build);
        add_state(&build, "b", 1, (const int64_t[]){ 3 });
        add(&build, OP_GET_ATTR, "b", "b", "[]");
        add(&build, OP_CALL_FUNCTION, "mul", "_operator.mul", "[{\"list\": [\"%b\"]}, 2]");
        add(&build, OP_CALL_FUNCTION, "getitem", "_operator.getitem", "[\"%mul\", 0]");
        add(&build, OP_CALL_METHOD, "add_", "add_", "[\"%getitem\", 1]");
        cr_expect(written_after(&build));
}

// Whether a write to the first item of the list that node "made" gives marks the state.
static bool written_through(Build *build)
{
        add(build, OP_CALL_FUNCTION, "getitem", "_operator.getitem", "[\"%made\", 0]");
        add(build, OP_CALL_METHOD, "add_", "add_", "[\"%getitem\", 1]");
        return written_after(build);
}

static void start_with_state(Build *build)
{
        start(build);
        add_state(build, "b", 1, (const int64_t[]){ 3 });
        add(build, OP_GET_ATTR, "b", "b", "[]");
}

Test(writes, lists_given_by_name_stay_state)
{
        static const struct {
                const char *target, *kwargs;
        } calls[] = { { "_operator.mul", "{\"a\": {\"list\": [\"%b\"]}, \"b\": 2}" },
                      { "_operator.mul", "{\"a\": 2, \"b\": {\"list\": [\"%b\"]}}" },
                      { "_operator.add", "{\"a\": {\"list\": [\"%b\"]}, \"b\": {\"list\": [\"%b\"]}}" } };
        for (size_t i = 0; i < ARRAY_LENGTH(calls); i++) {
                Build build;
                start_with_state(&build);
                add_by_name(&build, "made", calls[i].target, calls[i].kwargs);
                cr_expect(written_through(&build), "%s %s", calls[i].target, calls[i].kwargs);
        }
}

Test(writes, a_sum_of_lists_of_state_stays_state)
{
        Build build;
        start_with_state(&build);
        add(&build, OP_CALL_FUNCTION, "made", "builtins.sum",
            "[{\"list\": [{\"list\": [\"%b\"]}]}, {\"list\": []}]");
        cr_expect(written_through(&build));
}

Test(writes, training_batch_norm_marks_its_statistics)
{
        Build build;
        start(&build);
        Module *module = add_module(&build, "bn", "torch.nn.BatchNorm2d", "{\"num_features\": 2}");
        module->training = true;
        static const char *const names[] = { "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var" };
        for (int i = 0; i < 4; i++)
                add_state(&build, names[i], 1, (const int64_t[]){ 2 });
        add(&build, OP_PLACEHOLDER, "x", "x", "[]");
        add(&build, OP_CALL_MODULE, "bn", "bn", "[\"%x\"]");
        cr_expect(written_after(&build));
}

// ---- listings ----
static bool listed(TargetKind kind, const char *name)
{
        const char *at;
        for (uint32_t i = 0; (at = target_name_at(kind, i)) != NULL; i++) {
                if (strcmp(at, name) == 0)
                        return true;
        }
        return false;
}

Test(listings, functions_methods_and_modules_can_be_listed)
{
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_expect(listed(TARGET_FUNCTIONS, "torch.nn.functional.relu"));
        cr_expect(listed(TARGET_FUNCTIONS, "_operator.getitem"));
        cr_expect(listed(TARGET_FUNCTIONS, "relu"));
        cr_expect(listed(TARGET_METHODS, "view"));
        cr_expect(listed(TARGET_MODULES, "torch.nn.Conv2d"));
        cr_expect_not(listed(TARGET_MODULES, "torch.nn.Foo"));
}

Test(names, every_spelling_of_relu_is_found)
{
        cr_assert_eq(targets_init(), STATUS_OK);
        static const char *const spellings[] = {
                "torch.relu",          "torch.nn.functional.relu", "torch.ops.aten.relu.default",
                "torch.ops.aten.relu", "torch.Tensor.relu",        "torch.relu_"
        };
        for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++)
                cr_expect_not_null(target_function(spellings[i]), "%s", spellings[i]);
        cr_expect_null(target_function("torch.nn.functional.no_such_thing"));
        cr_expect_null(target_function("relu"));
        cr_expect_null(target_function("numpy.relu"));
        cr_expect_null(module_class("torch.nn.Sequential"));
}

// ---- what constants alone say ----
static void one_call(Build *build, Opcode op, const char *target, const char *args)
{
        start(build);
        add(build, OP_PLACEHOLDER, "x", "x", "[]");
        add(build, OP_PLACEHOLDER, "y", "y", "[]");
        add(build, op, "n", target, args);
        finish(build);
}

static void expect_word(Opcode op, const char *target, const char *args, const char *word)
{
        Build build;
        one_call(&build, op, target, args);
        cr_expect_eq(resolve(&build), STATUS_UNSUPPORTED, "%s%s is accepted", target, args);
        cr_expect(strstr(failure_current()->message, word) != NULL, "%s%s: %s", target, args,
                  failure_current()->message);
        graph_unref(build.graph);
}

static void expect_accepted(Opcode op, const char *target, const char *args)
{
        Build build;
        one_call(&build, op, target, args);
        cr_expect_eq(resolve(&build), STATUS_OK, "%s%s: %s", target, args, failure_current()->message);
        graph_unref(build.graph);
}

#define FUNCTIONAL "torch.nn.functional."
Test(resolve, constant_arguments_that_no_run_can_serve_are_refused)
{
        expect_word(OP_CALL_METHOD, "cuda", "[\"%x\"]", "cpu");
        expect_word(OP_CALL_METHOD, "to", "[\"%x\", \"cuda\"]", "cpu");
}

Test(resolve, the_same_calls_with_constants_that_can_be_served_are_accepted)
{
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "embedding", "[\"%x\", \"%y\", null, {\"f\": \"1.0\"}]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "interpolate",
                        "[\"%x\", {\"list\": [5, 5]}, null, \"bilinear\", null, null, false]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "interpolate",
                        "[\"%x\", {\"list\": [5, 5]}, null, \"%y\", null, null, true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", {\"f\": \"0.5\"}, false]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", {\"f\": \"0.5\"}, true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", {\"f\": \"0.0\"}, true]");
        expect_accepted(OP_CALL_FUNCTION, "torch.ops.aten.native_dropout.default",
                        "[\"%x\", {\"f\": \"0.5\"}, true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "rrelu",
                        "[\"%x\", {\"f\": \"0.1\"}, {\"f\": \"0.3\"}, true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", {\"f\": \"1.0\"}, true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", {\"f\": \"0.5\"}, \"%y\"]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "dropout", "[\"%x\", \"%y\", true]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "rrelu",
                        "[\"%x\", {\"f\": \"0.1\"}, {\"f\": \"0.3\"}, \"%y\"]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "embedding", "[\"%x\", \"%y\", null, null]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "scaled_dot_product_attention",
                        "[\"%x\", \"%x\", \"%y\", null, {\"f\": \"0.0\"}]");
        expect_accepted(OP_CALL_FUNCTION, FUNCTIONAL "scaled_dot_product_attention",
                        "[\"%x\", \"%x\", \"%y\", null, {\"f\": \"0.1\"}]");
        expect_accepted(OP_CALL_FUNCTION, "torch.norm", "[\"%x\", \"fro\"]");
        expect_accepted(OP_CALL_METHOD, "to", "[\"%x\", \"cpu\"]");
        expect_accepted(OP_CALL_METHOD, "to", "[\"%x\", \"%y\"]");
        expect_accepted(OP_CALL_FUNCTION, "torch.ops.higher_order.wrap_with_autocast",
                        "[\"cpu\", null, false, true, \"%y\", \"%x\"]");
        expect_accepted(OP_CALL_FUNCTION, "torch.ops.higher_order.wrap_with_autocast",
                        "[\"cpu\", null, true, true, \"%y\", \"%x\"]");
}

Test(resolve, modules_that_draw_in_training_mode_are_accepted)
{
        for (int training = 0; training < 2; training++) {
                Build build;
                start(&build);
                add(&build, OP_PLACEHOLDER, "x", "x", "[]");
                add_module(&build, "drop", "torch.nn.Dropout", "{\"p\": {\"f\": \"0.25\"}}")->training =
                        training == 1;
                add(&build, OP_CALL_MODULE, "n", "drop", "[\"%x\"]");
                finish(&build);
                cr_expect_eq(resolve(&build), STATUS_OK, "%s", failure_current()->message);
                graph_unref(build.graph);
        }
}
