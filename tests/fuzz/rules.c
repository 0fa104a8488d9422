// SPDX-License-Identifier: Apache-2.0
// The value of "overrides", or an object of "leaf" and "overrides": read, applied to a graph with
// calls of modules and of child graphs, once with hidden inputs and once with state, and the
// derived graph run eagerly. Every graph that a rule calls is the base.
#include "api/readers/fx_json.h"
#include "api/readers/rules.h"
#include "core/base/limits.h"
#include "core/engine/task.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

#define STACK(key)                                                                                           \
        ", \"meta\": {\"nn_module_stack\": {\"\": [\"\", \"Net\"], \"" key "\": [\"a\", \"Block\"]}}"
#define OPEN(op, name, target)       "{\"op\": \"" op "\", \"name\": \"" name "\", \"target\": \"" target "\""
#define ARGS(args)                   ", \"args\": [" args "]"
#define CALL(op, name, target, args) OPEN("call_" op, name, target) ARGS(args)
#define END(name)                    OPEN("output", "output", "output") ARGS("\"%" name "\"") "}"
#define PLACEHOLDER                  OPEN("placeholder", "x", "x") "},"
#define STATE(name)                  OPEN("get_attr", name, name) "},"
#define GRAPH(class)                 "{\"class_name\": \"" class "\", \"nodes\": [" PLACEHOLDER

// the child that "m" calls twice
#define SCALED CALL("function", "neg", "torch.mul", "\"%x\", \"%g\"") "},"
#define INNER  GRAPH("Inner") STATE("g") SCALED END("neg") "], \"state\": {\"g\": [2, 1]}}"
// "m", which is called twice, too
#define C     CALL("module", "c", "inner", "\"%x\"") "},"
#define D     CALL("module", "d", "inner", "\"%c\"") "},"
#define OUTER GRAPH("Outer") C D END("d") "], \"modules\": {\"inner\": {\"graph\": " INNER "}}}"

#define MUL     CALL("function", "mul", "torch.mul", "\"%x\", \"%w\"") STACK("a") "},"
#define ADD     CALL("function", "add", "torch.add", "\"%mul\", \"%x\"") STACK("a") "},"
#define SIGMOID CALL("method", "sigmoid", "sigmoid", "\"%add\"") "},"
#define SUM     CALL("function", "sum_1", "torch.sum", "\"%sigmoid\"") DIM STACK("a@1") "},"
#define DIM     ", \"kwargs\": {\"dim\": 0}"
#define ONE     CALL("module", "one", "m", "\"%sum_1\"") "},"
#define TWO     CALL("module", "two", "m", "\"%one\"") "},"
#define MODULES "], \"modules\": {\"m\": {\"graph\": " OUTER "}}, "
static const char text[] = GRAPH("Net") STATE("w") MUL ADD SIGMOID SUM ONE TWO END("two") MODULES
        "\"state\": {\"w\": [1.5, 2]}}";
static Graph *base;

static void make_base(void)
{
        CheckReport report;
        require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        require(fx_json_read(text, strlen(text), NULL, &base) == STATUS_OK, "%s", failure_current()->message);
        require(graph_resolve(base, &report) == STATUS_OK && report.n_rows == 0, "%s",
                failure_current()->message);
        check_report_deinit(&report);
        limits.max_numel = limits.max_run_memory = 1 << 24;
}

// Values that the rules' calls cannot take are failures of the run.
static void run(Graph *take_graph, ValueSpan hidden)
{
        RunTask task;
        float data[4] = { 1, -2, 3, 4 };
        int64_t size[2] = { 2, 2 };
        TensorMeta meta;
        Tensor *x;
        run_task_init(&task);
        task.graph = graph_ref(base);
        meta_init(&meta, DTYPE_F32, 2, size);
        require(tensor_new(&meta, NULL, &x) == STATUS_OK, "no memory");
        memcpy(tensor_data(x), data, sizeof(data));
        require(run_task_open(&task) == STATUS_OK, "%s", failure_current()->message);
        task.inputs[0] = value_tensor_take(x);
        task.deadline_ms = 1000;
        task.ctx.deadline_ns = clock_ns() + 1000000000;
        require(run_task_derive(&task, take_graph, hidden) == STATUS_OK, "%s", failure_current()->message);
        require(run_task_bind(&task) == STATUS_OK, "%s", failure_current()->message);
        Status status = run_task_execute(&task, NULL);
        if (status != STATUS_OK && status != STATUS_DEADLINE)
                require_told(status);
        run_task_deinit(&task);
}

static void derive(const Recipe *recipe, bool as_state)
{
        Graph *graph = NULL;
        uint32_t n_hidden = 0;
        const Graph **called = new_array(recipe->n_called, sizeof(Graph *));
        require(called != NULL, "no memory");
        for (uint32_t i = 0; i < recipe->n_called; i++)
                called[i] = base;
        Status status = recipe_derive(recipe, base, called, as_state, NULL, &graph);
        free(called);
        if (status != STATUS_OK) {
                require_told(status);
                return;
        }
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                n_hidden += graph->signature.inputs[i].hidden;
        require(graph_lint(graph) == STATUS_OK, "%s", failure_current()->message);
        require(n_hidden == (as_state ? 0 : recipe->n_hidden), "%u hidden inputs of %u", n_hidden,
                recipe->n_hidden);
        require(graph->n_rules == recipe->n_rules, "%u rules of %u", graph->n_rules, recipe->n_rules);
        if (as_state)
                graph_unref(graph);
        else
                run(graph, (ValueSpan){ recipe->hidden, recipe->n_hidden });
}

static Status read_members(JsonReader *json, Recipe *recipe)
{
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                Recipe nothing = { .n_hidden = 0 };
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        return recipe_begin_with(recipe, &nothing, NULL);
                TRY(strcmp(key, "leaf") == 0 ? recipe_read_leaf(json, recipe)
                                             : recipe_read_overrides(json, NULL, recipe));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        Arena arena;
        JsonReader *json = NULL;
        Recipe recipe = { .n_rules = 0 };
        if (base == NULL)
                make_base();
        arena_init(&arena, 1 << 22);
        Status status = json_open((const char *)data, n, (int)limits.max_json_depth_run, 0, &arena, &json);
        if (status == STATUS_OK)
                status = json_peek(json) == JSON_OBJECT ? read_members(json, &recipe)
                                                        : recipe_read_overrides(json, NULL, &recipe);
        json_close(json);
        arena_deinit(&arena);
        if (status == STATUS_OK) {
                derive(&recipe, false);
                derive(&recipe, true);
        } else {
                require_told(status);
        }
        recipe_deinit(&recipe);
        return 0;
}
