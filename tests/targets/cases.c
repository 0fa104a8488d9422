// SPDX-License-Identifier: Apache-2.0
// cases.c: calls by the names people use, against what PyTorch gave (cases.json, made by
// tools/generate/make_target_cases.py), through the eager emitter.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/targets/targets.h"
#include "tests/targets/case_values.h"

typedef struct Outcome {
        Status status;
        Value result;
        Value args; // after the call
} Outcome;

static void call_args(Value args, Value kwargs, CallArgs *out)
{
        *out = (CallArgs){ .args = args.seq->items,
                           .n_args = args.seq->n,
                           .kwargs = kwargs.dict->items,
                           .n_kwargs = kwargs.dict->n };
}

static Value array_value(const json_t *items)
{
        Seq *seq;
        cr_assert_eq(seq_new((uint32_t)json_array_size(items), &seq), STATUS_OK);
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = case_value(json_array_get(items, i));
        return value_seq_take(VALUE_TUPLE, seq);
}

static Value object_value(const json_t *object)
{
        json_t *wrapped = json_pack("{s:O}", "dict", object);
        Value value = case_value(wrapped);
        json_decref(wrapped);
        return value;
}

static Graph *empty_graph(void)
{
        Graph *graph;
        Node *node;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        Seq *seq;
        cr_assert_eq(seq_new(1, &seq), STATUS_OK);
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_OUTPUT,
                                                 .name = "output",
                                                 .target = "output",
                                                 .args = value_seq_take(VALUE_TUPLE, seq) },
                                    &node),
                     STATUS_OK);
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
        return graph;
}

// ---- claims of the rows ----
typedef struct Sharing {
        const Tensor *tensor;
        Value others;
        bool found;
} Sharing;

static Status look_at_argument(void *context, const Value *leaf)
{
        Sharing *sharing = context;
        sharing->found |= leaf->kind == VALUE_TENSOR && leaf->tensor->storage == sharing->tensor->storage;
        return STATUS_OK;
}

static Status look_at_result(void *context, const Value *leaf)
{
        Sharing *sharing = context;
        sharing->tensor = leaf->tensor;
        return leaf->kind == VALUE_TENSOR ? value_walk(sharing->others, look_at_argument, sharing)
                                          : STATUS_OK;
}

static bool shares_storage(Value result, Value args)
{
        Sharing sharing = { .others = args };
        (void)value_walk(result, look_at_result, &sharing);
        return sharing.found;
}

static bool claims_fresh(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                if (op_alias(target->overloads[i]) != ALIAS_FRESH)
                        return false;
        }
        return true;
}

static void run_target(const json_t *json, Outcome *out)
{
        const char *name = json_string_value(json_object_get(json, "target"));
        bool method = strcmp(json_string_value(json_object_get(json, "kind")), "method") == 0;
        const Target *target = method ? target_method(name) : target_function(name);
        out->args = array_value(json_object_get(json, "args"));
        if (target == NULL) {
                out->status = fail(STATUS_UNSUPPORTED, "'%s' object has no attribute '%s'",
                                   value_kind_name(out->args.seq->items[0].kind), name);
                return;
        }
        Graph *graph = empty_graph();
        RunContext context;
        run_context_init(&context);
        EagerEmitter *eager;
        cr_assert_eq(eager_open(graph, &context, &eager), STATUS_OK);
        Value kwargs = object_value(json_object_get(json, "kwargs"));
        CallArgs call;
        call_args(out->args, kwargs, &call);
        out->status = target_call(eager_emitter(eager), target, &call, &out->result);
        if (out->status == STATUS_OK && claims_fresh(target))
                cr_expect(!shares_storage(out->result, out->args),
                          "%s claims fresh results, but one shares bytes with an argument", name);
        value_clear(&kwargs);
        eager_close(eager);
        graph_unref(graph);
}

// ---- modules: a graph of one call_module node ----
static Node *add_node(Graph *graph, Opcode op, const char *name, const char *target, Value args)
{
        Node *node;
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = op, .name = name, .target = target, .args = args },
                                    &node),
                     STATUS_OK, "%s", failure_current()->message);
        return node;
}

static void add_config(Graph *graph, Module *module, const json_t *config)
{
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)config, key, item) cr_assert_eq(
                module_add_config(module, arena_text(&graph->arena, key, strlen(key)), case_value(item)),
                STATUS_OK);
}

static Graph *module_graph(const json_t *json)
{
        Graph *graph;
        Module *module;
        State *state;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        size_t n = json_array_size(json_object_get(json, "args"));
        Seq *args, *result;
        cr_assert_eq(seq_new((uint32_t)n, &args), STATUS_OK);
        cr_assert_eq(seq_new(1, &result), STATUS_OK);
        for (uint32_t i = 0; i < n; i++) {
                char name[16];
                Seq *none;
                cr_assert_eq(seq_new(0, &none), STATUS_OK);
                snprintf(name, sizeof(name), "x%u", i);
                args->items[i] = (Value){ .kind = VALUE_NODE,
                                          .node = add_node(graph, OP_PLACEHOLDER, name, name,
                                                           value_seq_take(VALUE_TUPLE, none)) };
        }
        cr_assert_eq(
                graph_add_module(graph, "layer", json_string_value(json_object_get(json, "type")), &module),
                STATUS_OK);
        module->training = json_is_true(json_object_get(json, "training"));
        add_config(graph, module, json_object_get(json, "config"));
        const char *key;
        json_t *item;
        json_object_foreach(json_object_get(json, "state"), key, item)
        {
                char path[64];
                snprintf(path, sizeof(path), "layer.%s", key);
                Value tensor = case_value(item);
                cr_assert_eq(graph_add_state(graph, path, tensor.tensor, &state), STATUS_OK);
        }
        result->items[0] = (Value){ .kind = VALUE_NODE,
                                    .node = add_node(graph, OP_CALL_MODULE, "layer", "layer",
                                                     value_seq_take(VALUE_TUPLE, args)) };
        add_node(graph, OP_OUTPUT, "output", "output", value_seq_take(VALUE_TUPLE, result));
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
        return graph;
}

static bool state_equal(Emitter *emitter, const Graph *graph, const json_t *want, Text *why)
{
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)want, key, item)
        {
                char path[64];
                snprintf(path, sizeof(path), "layer.%s", key);
                Value seen = value_none();
                if (emitter->vtbl->state(emitter, graph, path, &seen) != STATUS_OK ||
                    !case_equal(seen, item, why)) {
                        text_addf(why, " (state %s)", path);
                        value_clear(&seen);
                        return false;
                }
                value_clear(&seen);
        }
        return true;
}

static void run_module(const json_t *json, Outcome *out, Text *why)
{
        Graph *graph = module_graph(json);
        CheckReport report;
        out->args = array_value(json_object_get(json, "args"));
        out->status = graph_resolve(graph, &report);
        if (out->status == STATUS_OK) {
                out->status = check_report_status(&report, graph);
                check_report_deinit(&report);
        }
        if (out->status == STATUS_OK) {
                RunContext context;
                run_context_init(&context);
                EagerEmitter *eager;
                cr_assert_eq(eager_open(graph, &context, &eager), STATUS_OK);
                WalkOptions options = { .inputs = { out->args.seq->items, out->args.seq->n } };
                out->status = walk_graph(eager_emitter(eager), graph, &options, &out->result, NULL);
                if (out->status == STATUS_OK && json_object_get(json, "state_after") != NULL &&
                    !state_equal(eager_emitter(eager), graph, json_object_get(json, "state_after"), why))
                        out->status = fail(STATUS_RUN, "the state afterwards: %s", why->data);
                eager_close(eager);
        }
        graph_unref(graph);
}

// ---- checking ----
static bool check(const json_t *json, const Outcome *outcome, Text *why)
{
        const char *error = json_string_value(json_object_get(json, "error"));
        if (error != NULL) {
                const char *words = strstr(error, ": ") + 2;
                if (outcome->status != STATUS_OK && strstr(failure_current()->message, words) != NULL)
                        return true;
                if (outcome->status == STATUS_UNSUPPORTED)
                        return true;
                text_addf(why, "%s, but PyTorch fails with \"%s\"",
                          outcome->status == STATUS_OK ? "no failure" : failure_current()->message, words);
                return false;
        }
        if (outcome->status != STATUS_OK) {
                text_add(why, failure_current()->message);
                return outcome->status == STATUS_UNSUPPORTED;
        }
        const json_t *after = json_object_get(json, "after");
        if (after != NULL && !case_equal(outcome->args.seq->items[0], after, why)) {
                text_add(why, " (argument 0 afterwards)");
                return false;
        }
        return case_equal(outcome->result, json_object_get(json, "want"), why);
}

static bool run_case(const json_t *json, size_t *n_lacking)
{
        Text why = { 0 };
        Outcome outcome = { .result = value_none(), .args = value_none() };
        if (strcmp(json_string_value(json_object_get(json, "kind")), "module") == 0)
                run_module(json, &outcome, &why);
        else
                run_target(json, &outcome);
        bool right = check(json, &outcome, &why);
        bool lacking = outcome.status == STATUS_UNSUPPORTED && right &&
                       strcmp(json_string_value(json_object_get(json, "target")), "no_such_method") != 0;
        *n_lacking += lacking;
        if (!right || (lacking && getenv("SHOW_LACKING") != NULL)) {
                char *args = json_dumps(json_object_get(json, "args"), JSON_COMPACT),
                     *config = json_dumps(json_object_get(json, "config"), JSON_COMPACT);
                fprintf(stderr, "%s(%.160s) %s: %s\n", json_string_value(json_object_get(json, "target")),
                        args, config == NULL ? "" : config, why.data);
                free(args);
                free(config);
        }
        value_clear(&outcome.result);
        value_clear(&outcome.args);
        text_deinit(&why);
        return right;
}

// At most `max_lacking` cases may be refused for want of an operator; all others must be as in
// PyTorch.
static void run_group(const char *group, size_t max_lacking)
{
        json_error_t error;
        json_t *cases = json_load_file(CASES_FILE, 0, &error);
        cr_assert_not_null(cases, "%s", error.text);
        cr_assert_eq(targets_init(), STATUS_OK, "%s", failure_current()->message);
        size_t n = 0, n_wrong = 0, n_lacking = 0;
        for (size_t i = 0; i < json_array_size(cases); i++) {
                const json_t *json = json_array_get(cases, i);
                if (strcmp(json_string_value(json_object_get(json, "group")), group) != 0)
                        continue;
                n++;
                n_wrong += !run_case(json, &n_lacking);
        }
        json_decref(cases);
        cr_expect_gt(n, n_lacking);
        cr_expect_leq(n_lacking, max_lacking,
                      "%zu cases of \"%s\" need operators that are not there, not %zu", n_lacking, group,
                      max_lacking);
        cr_expect_eq(n_wrong, 0, "%zu of %zu cases of \"%s\" differ from PyTorch", n_wrong, n, group);
}

Test(cases, torch_functions_choose_their_overload_by_the_arguments)
{
        run_group("names", 0);
}

Test(cases, tensor_methods_take_every_call_form_of_python)
{
        run_group("methods", 0);
}

Test(cases, functionals_have_pythons_signatures)
{
        run_group("functional", 1);
}

Test(cases, operators_on_tensors_dispatch_as_in_python)
{
        run_group("operators", 0);
}

Test(cases, operators_on_numbers_are_pythons)
{
        run_group("numbers", 0);
}

Test(cases, getattr_reads_what_tensors_have)
{
        run_group("attributes", 0);
}

Test(cases, indexing_gives_and_writes_what_pytorch_does)
{
        run_group("indexing", 0);
}

Test(cases, module_classes_compute_what_torch_nn_does)
{
        run_group("modules", 1);
}

Test(cases, what_is_easily_taken_is_refused_where_pytorch_refuses)
{
        run_group("corners", 0);
}

Test(cases, images_are_resized_with_and_without_antialiasing)
{
        run_group("resizing", 0);
}

Test(cases, questions_about_tensors_have_pythons_answers)
{
        run_group("questions", 0);
}

Test(cases, the_math_module_and_checks_are_pythons)
{
        run_group("mathematics", 0);
}

Test(cases, names_that_are_seldom_written_mean_what_they_mean_in_pytorch)
{
        run_group("second_names", 0);
}

Test(cases, every_group_of_the_file_is_run_here)
{
        static const char *const groups[] = { "names",      "methods",    "functional", "operators",
                                              "numbers",    "attributes", "indexing",   "modules",
                                              "corners",    "resizing",   "questions",  "second_names",
                                              "mathematics" };
        json_t *cases = json_load_file(CASES_FILE, 0, NULL);
        for (size_t i = 0; i < json_array_size(cases); i++) {
                const char *group = json_string_value(json_object_get(json_array_get(cases, i), "group"));
                bool is_run = false;
                for (size_t k = 0; k < ARRAY_LENGTH(groups); k++)
                        is_run |= strcmp(groups[k], group) == 0;
                cr_assert(is_run, "no test runs the cases of \"%s\"", group);
        }
        json_decref(cases);
}
