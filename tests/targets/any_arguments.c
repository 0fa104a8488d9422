// SPDX-License-Identifier: Apache-2.0
// any_arguments.c: every name is called with arguments of every kind, right or not. Nothing is
// compared: a call may fail as it likes, but it must come back, in bounds (sanitizers), within its
// memory budget, and with a message.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/kernels/random/generator.h"
#include "core/targets/module_class.h"
#include "core/targets/targets.h"

enum { ROUNDS = 60, MAX_ARGS = 12 };

static uint64_t state = 88172645463325252u;

static uint32_t roll(uint32_t n)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (uint32_t)(state >> 33) % n;
}

// ---- values of all kinds ----
static Value any_tensor(void)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_I64, DTYPE_BOOL,
                                        DTYPE_U8,  DTYPE_F64, DTYPE_F16, DTYPE_C64 };
        TensorMeta meta = { 0 };
        int64_t size[4];
        int rank = (int)roll(5);
        for (int d = 0; d < rank; d++)
                size[d] = roll(5);
        meta_init(&meta, dtypes[roll(9)], rank, size);
        Tensor *tensor;
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        uint8_t *data = tensor_data(tensor);
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                if (meta.dtype == DTYPE_C64)
                        memset(data + i * 8, 0, 8);
                else
                        element_from_i64(meta.dtype, data + i * dtype_info[meta.dtype].bytes,
                                         (int64_t)roll(7) - 3);
        }
        return value_tensor_take(tensor);
}

static Value text(ValueKind kind, const char *string)
{
        Value value;
        cr_assert_eq(value_str_new(string, strlen(string), &value), STATUS_OK);
        value.kind = kind;
        return value;
}

static Value any_value(int depth);

static Value any_seq(ValueKind kind, uint32_t n, int depth)
{
        Seq *seq;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        bool same = roll(2) == 0; // mostly lists of one kind are of use
        uint32_t which = roll(3);
        for (uint32_t i = 0; i < n; i++) {
                if (!same)
                        seq->items[i] = any_value(depth - 1);
                else
                        seq->items[i] = which == 0 ? any_tensor() : value_int((int64_t)roll(6) - 2);
        }
        return value_seq_take(kind, seq);
}

static Value any_value(int depth)
{
        static const char *const texts[] = { "constant", "bilinear", "mean", "shape",     "T",
                                             "reflect",  "",         "fro",  "ij,jk->ik", "tanh" };
        static const int64_t ints[] = { 0, 1, -1, 2, 3, 7, INT64_MAX, INT64_MIN, 1000000 };
        switch (roll(depth > 0 ? 18 : 12)) {
        case 0:
                return value_none();
        case 1:
                return value_bool(roll(2) == 0);
        case 2:
        case 3:
                return value_int(ints[roll(9)]);
        case 4:
                return value_float(roll(3) == 0 ? -1e300 : (double)roll(9) / 2 - 2);
        case 5:
                return text(VALUE_STR, texts[roll(10)]);
        case 6:
                return value_dtype((Dtype)roll(DTYPE_COUNT));
        case 7:
                return (Value){ .kind = VALUE_ELLIPSIS };
        case 8:
                return text(VALUE_DEVICE, "cpu");
        case 12:
        case 13:
                return any_seq(VALUE_LIST, roll(4), depth);
        case 14:
                return any_seq(VALUE_TUPLE, roll(4), depth);
        case 15: {
                int64_t sizes[3] = { 2, 3, -1 };
                Value size;
                cr_assert_eq(value_ints_new(VALUE_SIZE, sizes, roll(4), &size), STATUS_OK);
                return size;
        }
        case 16:
                return any_seq(VALUE_SLICE, 3, depth);
        case 17: {
                Dict *dict;
                cr_assert_eq(dict_new(1, &dict), STATUS_OK);
                cr_assert_eq(str_new("a", 1, &dict->items[0].key), STATUS_OK);
                dict->items[0].value = any_value(depth - 1);
                return (Value){ .kind = VALUE_DICT, .dict = dict };
        }
        default:
                return any_tensor();
        }
}

// A value of the kind that the schema asks for, mostly.
static Value fitting_value(const SchemaArg *arg)
{
        if (roll(10) == 0)
                return any_value(1);
        if (arg->optional && roll(3) == 0)
                return value_none();
        if (arg->is_list && arg->type == ARG_TENSOR) {
                Seq *seq;
                cr_assert_eq(seq_new(roll(4), &seq), STATUS_OK);
                for (uint32_t i = 0; i < seq->n; i++)
                        seq->items[i] = any_tensor();
                return value_seq_take(VALUE_LIST, seq);
        }
        if (arg->is_list) {
                int64_t ints[8];
                for (int i = 0; i < 8; i++)
                        ints[i] = (int64_t)roll(6) - (roll(4) == 0 ? 3 : 0);
                Value list;
                cr_assert_eq(value_ints_new(VALUE_LIST, ints,
                                            arg->list_size > 0 ? (uint32_t)MIN(arg->list_size, 8) : roll(6),
                                            &list),
                             STATUS_OK);
                return list;
        }
        switch (arg->type) {
        case ARG_TENSOR:
                return any_tensor();
        case ARG_INT:
                return value_int(roll(20) == 0 ? INT64_MIN : (int64_t)roll(6) - 2);
        case ARG_FLOAT:
        case ARG_SCALAR:
                return roll(2) == 0 ? value_float((double)roll(8) / 2 - 1) : value_int((int64_t)roll(5) - 1);
        case ARG_BOOL:
                return value_bool(roll(2) == 0);
        case ARG_DTYPE:
                return value_dtype((Dtype)roll(DTYPE_COUNT));
        default:
                return any_value(1);
        }
}

// Arguments for one of the target's overloads: required ones, and some of the others.
static uint32_t fitting_args(const Target *target, Value *args)
{
        const Schema *schema = &target->overloads[roll(target->n_overloads)]->schema;
        uint32_t n = 0;
        while (n < schema->n_args && n < MAX_ARGS && !schema->args[n].kwarg_only &&
               (!schema->args[n].has_default || roll(3) != 0)) {
                args[n] = fitting_value(&schema->args[n]);
                n++;
        }
        return n;
}

// ---- calls ----
typedef struct Runner {
        Graph *graph;
        RunContext context;
        Budget budget;
        Generator generator;
        EagerEmitter *eager;
        uint32_t n_fine, n_failed;
} Runner;

static void runner_open(Runner *runner)
{
        Seq *seq;
        Node *node;
        cr_assert_eq(targets_init(), STATUS_OK, "%s", failure_current()->message);
        *runner = (Runner){ 0 };
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &runner->graph), STATUS_OK);
        cr_assert_eq(seq_new(1, &seq), STATUS_OK);
        cr_assert_eq(graph_add_node(runner->graph,
                                    &(NodeSpec){ .op = OP_OUTPUT,
                                                 .name = "output",
                                                 .target = "output",
                                                 .args = value_seq_take(VALUE_TUPLE, seq) },
                                    &node),
                     STATUS_OK);
        cr_assert_eq(graph_finish(runner->graph), STATUS_OK);
        run_context_init(&runner->context);
        budget_init(&runner->budget, 64 << 20);
        runner->context.budget = &runner->budget;
        generator_init(&runner->generator);
        generator_seed(&runner->generator, 0);
        runner->context.generator = &runner->generator;
        cr_assert_eq(eager_open(runner->graph, &runner->context, &runner->eager), STATUS_OK);
}

static void runner_close(Runner *runner)
{
        eager_close(runner->eager);
        graph_unref(runner->graph);
}

static void call_once(Runner *runner, const Target *target)
{
        Value args[MAX_ARGS], out = value_none();
        uint32_t n = roll(5) == 0 ? roll(5) + 1 : 0;
        for (uint32_t i = 0; i < n; i++)
                args[i] = i == 0 && roll(4) != 0 ? any_tensor() : any_value(2);
        if (n == 0)
                n = fitting_args(target, args);
        CallArgs call = { .args = args, .n_args = n };
        failure_current()->message[0] = '\0';
        Status status = target_call(eager_emitter(runner->eager), target, &call, &out);
        if (status != STATUS_OK) {
                // An assert fails with the words it was given, which may be none.
                cr_expect(failure_current()->message[0] != '\0' || status == STATUS_RUN,
                          "%s fails without a word", target->name);
                cr_expect_neq(status, STATUS_INTERNAL, "%s: %s", target->name, failure_current()->message);
                cr_expect_eq(out.kind, VALUE_NONE, "%s fails and gives a result", target->name);
        }
        *(status == STATUS_OK ? &runner->n_fine : &runner->n_failed) += 1;
        value_clear(&out);
        for (uint32_t i = 0; i < n; i++)
                value_clear(&args[i]);
}

static void call_all(TargetKind kind)
{
        Runner runner;
        runner_open(&runner);
        const char *name;
        for (uint32_t i = 0; (name = target_name_at(kind, i)) != NULL; i++) {
                char qualified[160];
                const Target *target = kind == TARGET_METHODS ? target_method(name) : target_function(name);
                if (target == NULL) {
                        snprintf(qualified, sizeof(qualified), "torch.%s", name);
                        target = target_function(qualified);
                }
                cr_assert_not_null(target, "%s is listed but not found", name);
                for (int round = 0; round < ROUNDS; round++)
                        call_once(&runner, target);
        }
        cr_expect_gt(runner.n_fine, 1000);
        cr_expect_gt(runner.n_failed, 1000);
        runner_close(&runner);
}

Test(any_arguments, no_function_crashes_whatever_it_is_given)
{
        call_all(TARGET_FUNCTIONS);
}

Test(any_arguments, no_method_crashes_whatever_it_is_given)
{
        call_all(TARGET_METHODS);
}

// ---- module classes ----
// A graph that calls one module with any configuration and any input.
static Graph *module_graph(const char *type, const Schema *config)
{
        Graph *graph;
        Module *module;
        Node *node;
        Seq *none, *args, *result;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(graph_add_module(graph, "layer", type, &module), STATUS_OK);
        module->training = roll(4) == 0;
        for (uint32_t i = 0; i < config->n_args; i++) {
                if (!config->args[i].has_default || roll(3) == 0)
                        cr_assert_eq(module_add_config(module,
                                                       arena_text(&graph->arena, config->args[i].name,
                                                                  strlen(config->args[i].name)),
                                                       fitting_value(&config->args[i])),
                                     STATUS_OK);
        }
        cr_assert_eq(seq_new(0, &none), STATUS_OK);
        cr_assert_eq(seq_new(1, &args), STATUS_OK);
        cr_assert_eq(seq_new(1, &result), STATUS_OK);
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_PLACEHOLDER,
                                                 .name = "x",
                                                 .target = "x",
                                                 .args = value_seq_take(VALUE_TUPLE, none) },
                                    &node),
                     STATUS_OK);
        args->items[0] = (Value){ .kind = VALUE_NODE, .node = node };
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_CALL_MODULE,
                                                 .name = "layer",
                                                 .target = "layer",
                                                 .args = value_seq_take(VALUE_TUPLE, args) },
                                    &node),
                     STATUS_OK);
        result->items[0] = (Value){ .kind = VALUE_NODE, .node = node };
        cr_assert_eq(graph_add_node(graph,
                                    &(NodeSpec){ .op = OP_OUTPUT,
                                                 .name = "output",
                                                 .target = "output",
                                                 .args = value_seq_take(VALUE_TUPLE, result) },
                                    &node),
                     STATUS_OK);
        cr_assert_eq(graph_finish(graph), STATUS_OK);
        return graph;
}

static bool run_module(const char *type, const Schema *config)
{
        Graph *graph = module_graph(type, config);
        CheckReport report;
        RunContext context;
        EagerEmitter *eager;
        Status status = graph_resolve(graph, &report);
        if (status == STATUS_OK) {
                status = check_report_status(&report, graph);
                check_report_deinit(&report);
        }
        if (status == STATUS_OK) {
                Value out = value_none(), x = roll(8) == 0 ? any_value(2) : any_tensor();
                Generator generator;
                run_context_init(&context);
                generator_init(&generator);
                generator_seed(&generator, 0);
                context.generator = &generator;
                cr_assert_eq(eager_open(graph, &context, &eager), STATUS_OK);
                WalkOptions options = { .inputs = { &x, 1 } };
                status = walk_graph(eager_emitter(eager), graph, &options, &out, NULL);
                value_clear(&out);
                value_clear(&x);
                eager_close(eager);
        }
        cr_expect_neq(status, STATUS_INTERNAL, "%s: %s", type, failure_current()->message);
        graph_unref(graph);
        return status == STATUS_OK;
}

Test(any_arguments, no_module_crashes_whatever_its_configuration)
{
        uint32_t n_fine = 0;
        const char *type;
        cr_assert_eq(targets_init(), STATUS_OK);
        for (uint32_t i = 0; (type = target_name_at(TARGET_MODULES, i)) != NULL; i++) {
                Arena arena;
                Schema config;
                arena_init(&arena, 0);
                cr_assert_eq(schema_parse(module_class(type)->config, &arena, &config), STATUS_OK);
                for (int round = 0; round < ROUNDS; round++)
                        n_fine += run_module(type, &config);
                arena_deinit(&arena);
        }
        cr_expect_gt(n_fine, 100);
}
