// SPDX-License-Identifier: Apache-2.0
#include "api/readers/fx_json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/graph/print.h"

#define OUTPUT(value) "{\"op\": \"output\", \"args\": [" value "]}"
#define X             "{\"op\": \"placeholder\", \"target\": \"x\"}"

static Graph *read_with(const char *text, const FxStateSource *source)
{
        Graph *graph = NULL;
        cr_assert_eq(fx_json_read(text, strlen(text), source, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        return graph;
}

static Graph *parse(const char *text)
{
        return read_with(text, NULL);
}

static void fails(const char *text, const FxStateSource *source, Status want, const char *message)
{
        Graph *graph = NULL;
        Status status = fx_json_read(text, strlen(text), source, &graph);
        cr_assert_eq(status, want, "%s: %s", status_code(status), failure_current()->message);
        cr_assert(strstr(failure_current()->message, message) != NULL, "%s", failure_current()->message);
        cr_assert_null(graph);
}

static void prints(Graph *graph, GraphForm form, const char *part)
{
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, form, &text), STATUS_OK);
        cr_assert(strstr(text.data, part) != NULL, "%s", text.data);
        text_deinit(&text);
}

Test(fx_json, the_example_of_the_wire_description_is_read)
{
        Graph *graph = parse(
                "{\"format\": \"fx/1\", \"nodes\": ["
                "{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"},"
                "{\"op\": \"call_module\", \"name\": \"linear\", \"target\": \"linear\", \"args\": [\"%x\"]},"
                "{\"op\": \"call_function\", \"name\": \"relu\", \"target\": \"torch.relu\", \"args\": "
                "[\"%linear\"]},"
                "{\"op\": \"call_method\", \"name\": \"view\", \"target\": \"view\", \"args\": [\"%relu\", "
                "-1]},"
                "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%view\"]}],"
                "\"modules\": {\"linear\": {\"type\": \"torch.nn.Linear\", \"config\": {\"in_features\": 2, "
                "\"out_features\": 1}}},"
                "\"state\": {\"linear.weight\": {\"dtype\": \"float32\", \"shape\": [1, 2], \"data\": [1.5, "
                "-2]}, \"linear.bias\": "
                "[0.25]}}");
        cr_assert_eq(graph->n_nodes, 5);
        const Module *linear = graph_module(graph, "linear");
        cr_assert_str_eq(linear->type, "torch.nn.Linear");
        cr_assert(!linear->training);
        cr_assert_eq(linear->n_config, 2);
        cr_assert_str_eq(linear->config[1].key, "out_features");
        cr_assert_eq(linear->config[1].value.i, 1);
        const State *weight = graph_state(graph, "linear.weight");
        cr_assert(weight->is_parameter);
        cr_assert_eq(((float *)tensor_data(weight->tensor))[1], -2);
        cr_assert_eq(graph_state(graph, "linear.bias")->tensor->meta.dtype, DTYPE_F32);
        cr_assert_eq(graph->weights_bytes, 12);
        cr_assert(graph->finished);
        graph_unref(graph);
}

Test(fx_json, members_may_come_in_any_order)
{
        Graph *graph = parse("{\"state\": {\"w\": {\"data\": [[1, 2]], \"shape\": [1, 2], \"dtype\": "
                             "\"float64\"}}, \"modules\": {\"m\": "
                             "{\"training\": true, \"type\": \"nn.ReLU\"}},"
                             "\"nodes\": [{\"target\": \"w\", \"op\": \"get_attr\"}, {\"args\": [\"%w\"], "
                             "\"target\": \"m\", \"op\": "
                             "\"call_module\"}, " OUTPUT("\"%m\"") "]}");
        cr_assert_eq(graph_state(graph, "w")->tensor->meta.dtype, DTYPE_F64);
        cr_assert(graph_module(graph, "m")->training);
        cr_assert_str_eq(graph_module(graph, "m")->type, "torch.nn.ReLU");
        graph_unref(graph);
}

Test(fx_json, every_form_of_argument_reaches_the_code)
{
        Graph *graph = parse(
                "{\"nodes\": [" X
                ", {\"op\": \"call_function\", \"target\": \"torch.cat\", \"args\": [[\"%x\", {\"$tuple\": "
                "[1]}], {\"$slice\": [null, \"%x\", 2]},"
                "{\"$dtype\": \"half\"}, {\"$device\": \"cuda:1\"}, {\"$memory_format\": \"channels_last\"}, "
                "{\"$layout\": "
                "\"strided\"}, {\"$ellipsis\": true},"
                "{\"$float\": \"-inf\"}, {\"$complex\": [0, 1.5]}, \"%%x\", \"$$y\", {\"%%k\": null, \"a\": "
                "false}, "
                "9223372036854775807, 1.0, 1e3, \"\"],"
                "\"kwargs\": {\"dim\": -1}}, " OUTPUT("null") "]}");
        prints(graph, GRAPH_FORM_CODE,
               "torch.cat([x, (1,)], slice(None, x, 2), torch.float16, device(type='cuda', index=1), "
               "torch.channels_last, torch.strided, "
               "Ellipsis, -inf, 1.5j, "
               "'%x', '$y', {'%k': None, 'a': False}, 9223372036854775807, 1.0, 1000.0, '', dim = -1);  x = "
               "cat = None");
        graph_unref(graph);
}

Test(fx_json, placeholders_carry_defaults_stars_types_and_signatures)
{
        Graph *graph = parse("{\"nodes\": [{\"op\": \"placeholder\", \"target\": \"x\", \"meta\": "
                             "{\"dtype\": \"float32\", \"shape\": [\"N\", 10, "
                             "\"2*N + 1\"]}},"
                             "{\"op\": \"placeholder\", \"target\": \"y\", \"args\": [1.5], \"type\": "
                             "\"torch.Tensor\", \"meta\": "
                             "{\"tensor_meta\": {\"any\": [1]}}},"
                             "{\"op\": \"placeholder\", \"target\": \"*args\"}, {\"op\": \"placeholder\", "
                             "\"target\": \"**kwargs\"}, " OUTPUT("\"%x\"") "]}");
        const Signature *signature = &graph->signature;
        cr_assert_eq(signature->n_inputs, 4);
        cr_assert_eq(signature->inputs[0].value_kind, VALUE_TENSOR);
        cr_assert_eq(signature->inputs[0].spec.dtype, DTYPE_F32);
        cr_assert_eq(signature->inputs[0].spec.rank, 3);
        cr_assert_str_eq(signature->inputs[0].spec.size[0].expr, "N");
        cr_assert_eq(signature->inputs[0].spec.size[1].value, 10);
        cr_assert_null(signature->inputs[0].spec.size[1].expr);
        cr_assert_eq(signature->inputs[1].value_kind, VALUE_NONE);
        cr_assert_str_eq(signature->argument_names[2], "args");
        prints(graph, GRAPH_FORM_CODE, "def forward(self, x, y : torch.Tensor = 1.5, *args, **kwargs):");
        graph_unref(graph);
}

Test(fx_json, child_graphs_are_modules_with_state_of_their_own)
{
        Graph *graph = parse(
                "{\"nodes\": [" X ", {\"op\": \"call_module\", \"target\": \"sub\", \"args\": [\"%x\"]}, "
                "{\"op\": \"get_attr\", \"target\": "
                "\"deep.er\"}, " OUTPUT(
                        "\"%sub\"") "],"
                                    "\"modules\": {\"sub\": {\"type\": \"torch.fx.GraphModule\", \"graph\": "
                                    "{\"nodes\": [" X ", {\"op\": \"get_attr\", \"target\": \"w\"}, " OUTPUT(
                                            "\"%w\"") "],"
                                                      "\"state\": {\"w\": [1, 2]}}}, \"deep.er\": "
                                                      "{\"graph\": {\"nodes\": [" OUTPUT("null") "]}}}}");
        const Graph *child = graph_module(graph, "sub")->graph;
        cr_assert(child->finished);
        cr_assert_not_null(graph_state(child, "w"));
        cr_assert_null(graph_state(graph, "w"));
        cr_assert_eq(graph->weights_bytes, 16);
        cr_assert_str_eq(graph_module(graph, "deep.er")->type, "torch.fx.GraphModule");
        graph_unref(graph);
}

Test(fx_json, tied_entries_share_one_tensor)
{
        Graph *graph = parse("{\"nodes\": [" OUTPUT(
                "null") "], \"state\": {\"b\": {\"same_as\": \"a.w\"}, \"a.w\": [1.0, 2.0]}}");
        cr_assert_eq(graph_state(graph, "b")->tensor, graph_state(graph, "a.w")->tensor);
        cr_assert_eq(graph->weights_bytes, 8);
        graph_unref(graph);
}

// ---- weights that come apart ----

typedef struct Weights {
        const char *path[8];
        Tensor *tensor[8];
} Weights;

static Status each(void *context, Status (*visit)(void *visitor, const char *path, Tensor *tensor),
                   void *visitor)
{
        const Weights *weights = context;
        for (int i = 0; i < 8 && weights->path[i] != NULL; i++)
                TRY(visit(visitor, weights->path[i], weights->tensor[i]));
        return STATUS_OK;
}

static void fill(Weights *weights)
{
        for (int i = 0; i < 8 && weights->path[i] != NULL; i++) {
                TensorMeta meta;
                int64_t size = i + 1;
                meta_init(&meta, DTYPE_F32, 1, &size);
                cr_assert_eq(tensor_new(&meta, NULL, &weights->tensor[i]), STATUS_OK);
        }
}

static void drop(Weights *weights)
{
        for (int i = 0; i < 8 && weights->path[i] != NULL; i++)
                tensor_unref(weights->tensor[i]);
}

#define CHILDREN                                                                                             \
        "\"modules\": {\"sub\": {\"graph\": {\"nodes\": [" OUTPUT("null") "], \"modules\": {\"in.ner\": "    \
                                                                          "{\"graph\": {\"nodes\": "         \
                                                                          "[" OUTPUT("null") "]}}}}}, "      \
                                                                                             "\"plain\": "   \
                                                                                             "{\"type\": "   \
                                                                                             "\"torch.nn."   \
                                                                                             "Linear\"}}"

Test(fx_json, weights_go_to_the_graph_that_their_path_leads_to)
{
        Weights weights = { .path = { "plain.weight", "sub.w", "sub.in.ner.layer.w", "sub.in.x", "free" } };
        fill(&weights);
        FxStateSource source = { .each = each, .context = &weights };
        Graph *graph =
                read_with("{\"nodes\": [" OUTPUT(
                                  "null") "], " CHILDREN
                                          ", \"state\": {\"plain.bias\": {\"same_as\": \"plain.weight\"}, "
                                          "\"free\": {\"dtype\": \"float32\", \"shape\": [5]}}}",
                          &source);
        Graph *sub = graph_module(graph, "sub")->graph, *inner = graph_module(sub, "in.ner")->graph;
        cr_assert_eq(graph_state(graph, "plain.weight")->tensor, weights.tensor[0]);
        cr_assert_eq(graph_state(graph, "plain.bias")->tensor, weights.tensor[0]);
        cr_assert_eq(graph_state(sub, "w")->tensor, weights.tensor[1]);
        cr_assert_eq(graph_state(inner, "layer.w")->tensor, weights.tensor[2]);
        cr_assert_eq(graph_state(sub, "in.x")->tensor, weights.tensor[3]);
        cr_assert_eq(graph_state(graph, "free")->tensor, weights.tensor[4]);
        cr_assert_eq(graph->weights_bytes, 4 * (1 + 2 + 3 + 4 + 5));
        graph_unref(graph);
        drop(&weights);
}

Test(fx_json, weights_must_agree_with_what_the_document_says_of_them)
{
        Weights weights = { .path = { "w" } };
        fill(&weights);
        FxStateSource source = { .each = each, .context = &weights };
        fails("{\"nodes\": [" OUTPUT(
                      "null") "], \"state\": {\"w\": {\"dtype\": \"float32\", \"shape\": [2]}}}",
              &source, STATUS_SHAPE,
              "state \"w\": the graph declares float32 [2], the weights hold float32 [1]");
        fails("{\"nodes\": [" OUTPUT("null") "], \"state\": {\"w\": {\"dtype\": \"int64\", \"shape\": [1]}}}",
              &source, STATUS_SHAPE, "declares int64 [1]");
        fails("{\"nodes\": [" OUTPUT("null") "], \"state\": {\"w\": [1.0]}}", &source, STATUS_MALFORMED,
              "weight \"w\": this tensor is in the graph's \"state\" as well");
        fails("{\"nodes\": [" OUTPUT("null") "], \"state\": {\"v\": {\"same_as\": \"u\"}}}", &source,
              STATUS_MALFORMED, "state \"v\": \"same_as\" names \"u\"");
        drop(&weights);
}

Test(fx_json, missing_weights_are_no_failure_of_reading)
{
        Graph *graph = parse("{\"nodes\": [{\"op\": \"get_attr\", \"target\": \"w\"}, " OUTPUT(
                "\"%w\"") "], \"state\": {\"w\": {\"dtype\": \"float32\", \"shape\": [2]}, \"v\": "
                          "{\"same_as\": \"w\"}}}");
        cr_assert_eq(graph->n_state, 0);
        graph_unref(graph);
}

// ---- caps ----

static char *repeat(const char *head, const char *middle, size_t n, const char *tail)
{
        size_t h = strlen(head), m = strlen(middle), t = strlen(tail);
        char *text = malloc(h + m * n + t + 1);
        memcpy(text, head, h);
        for (size_t i = 0; i < n; i++)
                memcpy(text + h + i * m, middle, m);
        memcpy(text + h + n * m, tail, t + 1);
        return text;
}

static void fails_and_frees(char *text, Status want, const char *message)
{
        fails(text, NULL, want, message);
        free(text);
}

Test(fx_json, nesting_has_caps_for_values_and_for_graphs)
{
        fails_and_frees(repeat("{\"nodes\": [{\"op\": \"output\", \"args\": [", "[", 40, ""),
                        STATUS_TOO_LARGE, "values are nested more than 32 deep");
        fails_and_frees(repeat("{\"nodes\": [{\"op\": \"output\", \"args\": [", "{\"a\":", 40, ""),
                        STATUS_TOO_LARGE, "nested more than 32 deep");
        fails_and_frees(repeat("{\"nodes\": [{\"op\": \"output\", \"args\": [", "{\"$tuple\":[", 100000, ""),
                        STATUS_TOO_LARGE, "nested more than 32 deep");
        fails_and_frees(
                repeat("", "{\"nodes\": [" OUTPUT("null") "], \"modules\": {\"m\": {\"graph\": ", 17, "{}"),
                STATUS_TOO_LARGE, "graphs are nested more than 16 deep");
        char *deep = repeat("", "{\"nodes\": [" OUTPUT("null") "], \"modules\": {\"m\": {\"graph\": ", 15,
                            "{\"nodes\": [" OUTPUT("null") "]}");
        size_t n = strlen(deep);
        char *closed = repeat(deep, "}}}", 15, "");
        Graph *graph = parse(closed);
        cr_assert_gt(strlen(closed), n);
        graph_unref(graph);
        free(deep);
        free(closed);
}

Test(fx_json, the_size_of_a_document_is_capped_without_its_tensor_data)
{
        int64_t before = limits.max_graph_json;
        limits.max_graph_json = 4096;
        char *padded =
                repeat("{\"nodes\": [" X ", ", "                                ", 200, OUTPUT("null") "]}");
        Graph *graph = NULL;
        Status status = fx_json_read(padded, strlen(padded), NULL, &graph);
        char *data =
                repeat("{\"nodes\": [" OUTPUT("null") "], \"state\": {\"w\": [0.0", ", 1.5", 4000, "]}}");
        Status with_data = fx_json_read(data, strlen(data), NULL, &graph);
        limits.max_graph_json = before;
        cr_assert_eq(status, STATUS_TOO_LARGE);
        cr_assert_eq(with_data, STATUS_OK);
        cr_assert_eq(graph_state(graph, "w")->tensor->meta.size[0], 4001);
        graph_unref(graph);
        free(padded);
        free(data);
}

Test(fx_json, many_nodes_and_many_ties_take_no_quadratic_time, .timeout = 20)
{
        enum { N = 60000 };
        Text text = { 0 };
        text_add(&text, "{\"nodes\": [" X);
        for (int i = 0; i < N; i++)
                text_add(&text, ", {\"op\": \"call_method\", \"target\": \"neg\", \"args\": [\"%x\"]}");
        text_add(&text,
                 ", " OUTPUT("\"%neg\"") "], \"state\": {\"w\": {\"dtype\": \"float32\", \"shape\": [1]}");
        for (int i = 0; i < N; i++)
                text_addf(&text, ", \"w%d\": {\"same_as\": \"w\"}", i);
        text_add(&text, "}}");
        Graph *graph = parse(text.data);
        char last[32];
        snprintf(last, sizeof(last), "neg_%d", N - 1);
        cr_assert_not_null(graph_node(graph, last));
        graph_unref(graph);
        text_deinit(&text);
}

Test(fx_json, writing_leaves_weights_out_unless_asked_for)
{
        Graph *graph = parse("{\"nodes\": [" OUTPUT(
                "null") "], \"state\": {\"w\": {\"dtype\": \"float16\", \"shape\": [2], \"data\": [0.5, "
                        "\"Infinity\"]}, \"e\": {\"dtype\": \"bool\", \"shape\": [0, 3], \"data\": []}}}");
        Text text = { 0 };
        cr_assert_eq(fx_json_write(graph, false, &text), STATUS_OK);
        cr_assert(strstr(text.data, "\"w\": {\"dtype\": \"float16\", \"shape\": [2]}") != NULL, "%s",
                  text.data);
        Graph *bare = parse(text.data);
        cr_assert_eq(bare->n_state, 0);
        text_deinit(&text);
        cr_assert_eq(fx_json_write(graph, true, &text), STATUS_OK);
        cr_assert(strstr(text.data, "\"data\": [0.5, \"Infinity\"]") != NULL, "%s", text.data);
        Graph *again = parse(text.data);
        cr_assert_eq(memcmp(tensor_data(graph_state(again, "w")->tensor),
                            tensor_data(graph_state(graph, "w")->tensor), 4),
                     0);
        cr_assert_eq(graph_state(again, "e")->tensor->meta.size[1], 3);
        text_deinit(&text);
        graph_unref(graph);
        graph_unref(bare);
        graph_unref(again);
}

Test(fx_json, truncation_at_every_byte_is_refused_cleanly)
{
        static const char whole[] =
                "{\"format\": \"fx/1\", \"nodes\": [" X
                ", {\"op\": \"call_method\", \"name\": \"n\", \"target\": \"add\", \"args\": [\"%x\", "
                "{\"$slice\": [1, null, 2.5]}],"
                "\"kwargs\": {\"a\": {\"b\": {\"$tuple\": [\"%x\"]}}}}, " OUTPUT(
                        "\"%n\"") "], \"modules\": {\"m.n\": {\"type\": \"nn.Linear\", \"config\": {\"k\": "
                                  "[1]}},"
                                  "\"g\": {\"graph\": {\"nodes\": [" OUTPUT(
                                          "null") "]}}}, \"state\": {\"w\": {\"dtype\": \"int8\", \"shape\": "
                                                  "[2], \"data\": [1, 2]}, "
                                                  "\"v\": {\"same_as\": \"w\"}}}";
        Graph *graph = parse(whole);
        graph_unref(graph);
        for (size_t n = 0; n < sizeof(whole) - 1; n++) {
                char *cut = malloc(n == 0 ? 1 : n); // so that reading past the end shows
                memcpy(cut, whole, n);
                graph = NULL;
                Status status = fx_json_read(cut, n, NULL, &graph);
                cr_assert_neq(status, STATUS_OK, "cut after %zu", n);
                cr_assert_eq(status_class(status), STATUS_CLASS_CALLER, "cut after %zu: %s", n,
                             failure_current()->message);
                free(cut);
        }
}

Test(fx_json, reading_stops_when_nobody_waits_for_it)
{
        RunContext poll;
        run_context_init(&poll);
        char *text = repeat("{\"nodes\": [" X ", ", "                                ", 4000,
                            OUTPUT("null") ", {\"op\": \"none\"}]}");
        Graph *graph = NULL;
        atomic_store(&poll.cancelled, 1);
        cr_assert_eq(fx_json_read_within(text, strlen(text), NULL, &poll, &graph), STATUS_CANCELLED);
        atomic_store(&poll.cancelled, 0);
        poll.deadline_ns = 1;
        cr_assert_eq(fx_json_read_within(text, strlen(text), NULL, &poll, &graph), STATUS_DEADLINE);
        poll.deadline_ns = 0;
        cr_assert_neq(fx_json_read_within(text, strlen(text), NULL, &poll, &graph), STATUS_OK);
        cr_assert_eq(status_class(failure_current()->status), STATUS_CLASS_CALLER);
        free(text);
}
