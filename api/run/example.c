// SPDX-License-Identifier: Apache-2.0
// Makes inputs and tries them. What an input looks like comes from the signature, else from a
// former run. Symbolic sizes take the exporter's own, which hold every guard; where there are none
// (FX JSON), small sizes are tried until binding and a run accept them. Values: multiples of an
// eighth for floats, zeros for integers (valid as indices), ones for what is called a mask; then a
// few other fillings.
#include "api/run/example.h"
#include <stdio.h>
#include <string.h>
#include "api/run/run_private.h"
#include "api/formats/tensor_json.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/graph/expr.h"

enum { MAX_SYMBOLS = 32, MAX_TRIES = 400, MAX_RUNS = 24, N_FILLINGS = 4, MIN_ITEM_TEXT = 3 };
static const int64_t small_sizes[] = { 2, 1, 3, 4, 8, 16, 32, 64, 5, 6, 128, 256 };

typedef struct Symbol {
        const char *name;
        int64_t value, min, max;
} Symbol;

typedef struct Maker {
        Graph *graph;
        const Input **inputs; // user inputs and literals
        TensorSpec *specs;    // of each; rank -1: not a tensor, or left out
        uint32_t n;
        Value *values; // VALUE_ABSENT: left out
        bool use_hints;
        Symbol symbols[MAX_SYMBOLS];
        uint32_t n_symbols;
        Arena arena;     // parsed expressions
        Budget budget;   // of a try: its inputs and its run, as a run has one
        int64_t n_items; // of all inputs of a try
        int64_t deadline_ns;
        int n_runs;
} Maker;

static void maker_deinit(Maker *maker)
{
        for (uint32_t i = 0; i < maker->n; i++)
                value_clear(&maker->values[i]);
        free(maker->inputs);
        free(maker->specs);
        free(maker->values);
        arena_deinit(&maker->arena);
}

// ---- what inputs look like ----
static bool may_be_left_out(const Input *input)
{
        return input->kind == INPUT_USER &&
               (input->placeholder->target[0] == '*' || input->placeholder->args.seq->n > 0);
}

static bool is_tensor(const Input *input)
{
        return input->kind == INPUT_USER &&
               (input->value_kind == VALUE_TENSOR || input->value_kind == VALUE_NONE);
}

static void spec_of_meta(const TensorMeta *meta, TensorSpec *out)
{
        *out = (TensorSpec){ .dtype = meta->dtype, .rank = meta->rank };
        for (int d = 0; d < meta->rank; d++)
                out->size[d].value = meta->size[d];
}

// The input's spec as a run has shown it. Rows of eager runs name placeholders; programs keep the
// signature that they were compiled for.
static bool spec_of_run(const SignatureSummary *run, const Graph *graph, const Input *input, TensorSpec *out)
{
        const RunLabels *labels = run->labels;
        for (uint32_t i = 0; labels != NULL && i < MIN(labels->n_inputs, graph->signature.n_inputs); i++) {
                if (&graph->signature.inputs[i] == input && labels->inputs[i].is_tensor) {
                        spec_of_meta(&labels->inputs[i].meta, out);
                        return true;
                }
        }
        for (uint32_t i = 0; i < run->n_nodes; i++) {
                const NodeSummary *row = &run->nodes[i];
                if (row->node != NULL && row->has_tensor &&
                    strcmp(row->node->name, input->placeholder->name) == 0) {
                        spec_of_meta(&row->meta, out);
                        return true;
                }
        }
        return false;
}

static Status find_spec(Maker *maker, uint32_t i, const SignatureSummary *runs, uint32_t n_runs)
{
        const Input *input = maker->inputs[i];
        maker->specs[i] = (TensorSpec){ .dtype = DTYPE_NONE, .rank = -1 };
        if (!is_tensor(input) || may_be_left_out(input))
                return STATUS_OK;
        maker->specs[i] = input->spec;
        if (input->spec.rank >= 0 && input->spec.dtype != DTYPE_NONE)
                return STATUS_OK;
        for (uint32_t run = 0; run < n_runs; run++)
                if (spec_of_run(&runs[run], maker->graph, input, &maker->specs[i]))
                        return STATUS_OK;
        Status status = fail(STATUS_CONFLICT,
                             "the graph does not say what input \"%s\" looks like; declare it in its "
                             "placeholder (\"meta\": {\"dtype\": "
                             "\"float32\", \"shape\": [\"N\", 10]}), or run the graph once",
                             input->placeholder->name);
        return failure_at_argument(status, input->placeholder->name);
}

static Status find_specs(Maker *maker, ProfileStats *stats)
{
        SignatureSummary *runs = NULL;
        uint32_t n_runs = 0;
        TRY(profile_stats_shapes(stats, PROFILE_MAX_SIGNATURES, &runs, &n_runs));
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < maker->n && status == STATUS_OK; i++)
                status = find_spec(maker, i, runs, n_runs);
        profile_summary_free(runs, n_runs);
        return status;
}

// ---- symbols ----
static Status add_symbol(Maker *maker, const char *name)
{
        for (uint32_t i = 0; i < maker->n_symbols; i++)
                if (strcmp(maker->symbols[i].name, name) == 0)
                        return STATUS_OK;
        if (maker->n_symbols == MAX_SYMBOLS)
                return fail(STATUS_CONFLICT,
                            "the graph has more than %d symbolic sizes; there is no example for it",
                            MAX_SYMBOLS);
        Symbol symbol = { .name = name, .min = 0, .max = INT64_MAX };
        const Signature *signature = &maker->graph->signature;
        for (uint32_t i = 0; i < signature->n_ranges; i++)
                if (strcmp(signature->ranges[i].symbol, name) == 0) {
                        symbol.min = signature->ranges[i].min;
                        symbol.max = signature->ranges[i].max;
                }
        maker->symbols[maker->n_symbols++] = symbol;
        return STATUS_OK;
}

static Status add_dimension(Maker *maker, const SymDim *dim)
{
        Expr *expr;
        if (dim->expr == NULL)
                return STATUS_OK;
        maker->use_hints = maker->use_hints && dim->value >= 0;
        TRY(expr_parse(dim->expr, &maker->arena, &expr));
        const char *name = expr_single_symbol(expr);
        // of several: each stands alone somewhere, or nothing can be known
        return name == NULL ? STATUS_OK : add_symbol(maker, name);
}

static Status find_symbols(Maker *maker)
{
        maker->use_hints = true;
        for (uint32_t i = 0; i < maker->n; i++) {
                const Input *input = maker->inputs[i];
                int rank = input->kind == INPUT_USER && input->value_kind == VALUE_INT ? 1
                                                                                       : maker->specs[i].rank;
                const SymDim *size = is_tensor(input) ? maker->specs[i].size : input->spec.size;
                for (int d = 0; d < rank; d++)
                        TRY(add_dimension(maker, &size[d]));
        }
        return STATUS_OK;
}

static bool lookup(void *context, const char *name, ExprNumber *out)
{
        const Maker *maker = context;
        for (uint32_t i = 0; i < maker->n_symbols; i++)
                if (strcmp(maker->symbols[i].name, name) == 0) {
                        *out = (ExprNumber){ .i = maker->symbols[i].value };
                        return true;
                }
        return false;
}

static Status size_of(Maker *maker, const SymDim *dim, int64_t *out_size)
{
        Expr *expr;
        ExprNumber number = { .i = 0 };
        bool known = false;
        *out_size = dim->value;
        if (dim->expr == NULL || maker->use_hints)
                return STATUS_OK;
        TRY(expr_parse(dim->expr, &maker->arena, &expr));
        TRY(expr_eval(expr, lookup, maker, &number, &known));
        if (!known || number.is_float)
                return fail(STATUS_CONFLICT,
                            "the size %.100s cannot be computed; there is no example for this graph",
                            dim->expr);
        *out_size = number.i;
        return STATUS_OK;
}

// ---- values ----
static void fill(const char *name, int filling, Tensor *tensor)
{
        Dtype dtype = tensor->meta.dtype;
        uint8_t *at = tensor_data(tensor);
        size_t bytes = dtype_info[dtype].bytes;
        int64_t numel = meta_numel(&tensor->meta);
        if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX) {
                memset(at, 0, (size_t)numel * bytes);
                return;
        }
        bool ones = filling == 2 || strstr(name, "mask") != NULL;
        for (int64_t i = 0; i < numel; i++, at += bytes) {
                double eighths = (double)((i * 7 + 3) % 17 - 8) / 8;
                if (dtype_info[dtype].kind == DTYPE_KIND_FLOAT)
                        element_from_f64(dtype, at,
                                         filling == 0   ? eighths
                                         : filling == 1 ? (eighths < 0 ? -eighths : eighths) + 0.5
                                                        : filling == 2);
                else
                        element_from_i64(dtype, at, dtype == DTYPE_BOOL ? filling < 3 : ones);
        }
}

static Status too_large(void)
{
        return fail(STATUS_CONFLICT,
                    "an example would be a body of more than %lld bytes (--max-run-body, "
                    "FXSERVE_MAX_RUN_BODY), or of more lists than "
                    "max_json_values in GET /v1; send such inputs as .npy, .npz or safetensors",
                    (long long)limits.max_run_body);
}

static Status make_tensor(Maker *maker, uint32_t i, int filling, Value *out)
{
        const TensorSpec *spec = &maker->specs[i];
        int64_t size[MAX_RANK], numel;
        TensorMeta meta;
        Tensor *tensor;
        for (int d = 0; d < spec->rank; d++)
                TRY(size_of(maker, &spec->size[d], &size[d]));
        TRY(shape_numel(spec->rank, size, &numel));
        if (numel > limits.max_run_body / MIN_ITEM_TEXT - maker->n_items)
                return too_large();
        maker->n_items += numel;
        meta_init(&meta, spec->dtype, spec->rank, size);
        TRY(tensor_new(&meta, &maker->budget, &tensor));
        fill(maker->inputs[i]->placeholder->name, filling, tensor);
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status make_value(Maker *maker, uint32_t i, int filling, Value *out)
{
        const Input *input = maker->inputs[i];
        *out = (Value){ .kind = VALUE_ABSENT };
        if (input->kind == INPUT_LITERAL) {
                *out = value_ref(input->literal);
                return STATUS_OK;
        }
        if (may_be_left_out(input))
                return STATUS_OK;
        if (is_tensor(input))
                return make_tensor(maker, i, filling, out);
        if (input->value_kind != VALUE_INT) {
                *out = input->value_kind == VALUE_FLOAT ? value_float(0.5) : value_bool(true);
                return STATUS_OK;
        }
        int64_t number;
        TRY(size_of(maker, &input->spec.size[0], &number));
        *out = value_int(number);
        return STATUS_OK;
}

// ---- trying ----
// On this thread, node by node.
static Status run_once(Maker *maker, PlannedRun *plan)
{
        _cleanup_(run_profile_unrefp) RunProfile *profile = NULL;
        RunResult result = { .value = value_none() };
        RunContext ctx;
        Generator generator;
        run_context_init(&ctx);
        ctx.budget = &maker->budget;
        ctx.n_threads = 1;
        ctx.deadline_ns = maker->deadline_ns;
        generator_seed(&generator, 0);
        ctx.generator = &generator;
        maker->n_runs++;
        TRY(run_profile_new(maker->graph, maker->graph->n_nodes, &profile));
        TRY(engine_execute(plan, &ctx, NULL, profile, &result));
        run_result_deinit(&result);
        return STATUS_OK;
}

static Status make_values(Maker *maker, int filling)
{
        for (uint32_t i = 0; i < maker->n; i++)
                value_clear(&maker->values[i]);
        maker->n_items = 0;
        for (uint32_t i = 0; i < maker->n; i++)
                TRY(make_value(maker, i, filling, &maker->values[i]));
        return STATUS_OK;
}

static bool is_final(Status status)
{
        return status == STATUS_OK || status == STATUS_DEADLINE || status == STATUS_CANCELLED ||
               status == STATUS_CONFLICT || status_class(status) == STATUS_CLASS_INTERNAL;
}

// These sizes, with each filling.
static Status try_sizes(Maker *maker)
{
        Status status = STATUS_OK;
        for (int filling = 0; filling < N_FILLINGS && maker->n_runs < MAX_RUNS; filling++) {
                _cleanup_(planned_run_deinit) PlannedRun plan = { .n_inputs = 0 };
                TRY(make_values(maker, filling));
                RunRequest request = { .inputs = { maker->values, maker->n }, .mode = RUN_MODE_EAGER };
                TRY(engine_bind(maker->graph, &request, &plan)); // sizes do not change with the filling
                status = run_once(maker, &plan);
                if (is_final(status))
                        return status;
        }
        return status;
}

// The n-th choice of sizes: first all symbols alike, then one base-N_SMALL digit of the rest per
// symbol. False when there are no more.
static bool choose_sizes(Maker *maker, uint32_t n)
{
        enum { N_SMALL = 6 };
        uint32_t n_alike = ARRAY_LENGTH(small_sizes), code = n < n_alike ? 0 : n - n_alike;
        for (uint32_t i = 0; i < maker->n_symbols; i++) {
                Symbol *symbol = &maker->symbols[i];
                int64_t size = n < n_alike ? small_sizes[n] : small_sizes[code % N_SMALL];
                code /= N_SMALL;
                symbol->value = MIN(MAX(size, symbol->min), symbol->max);
        }
        return code == 0;
}

static Status try_all(Maker *maker)
{
        if (maker->use_hints) {
                Status status = try_sizes(maker);
                if (is_final(status) || maker->n_symbols == 0)
                        return status;
                maker->use_hints = false;
        }
        Status status = STATUS_OK;
        for (uint32_t n = 0; n < MAX_TRIES && maker->n_runs < MAX_RUNS && choose_sizes(maker, n); n++) {
                status = try_sizes(maker);
                if (is_final(status))
                        return status;
        }
        return status;
}

// The last try's failure is not the fault of the client that asked for an example.
static Status explain(Status status)
{
        char message[1024], node[FAILURE_PLACE_MAX];
        if (status_class(status) != STATUS_CLASS_CALLER || status == STATUS_CONFLICT ||
            status == STATUS_DEADLINE)
                return status;
        snprintf(message, sizeof(message), "%.1000s", failure_current()->message);
        snprintf(node, sizeof(node), "%s", failure_current()->node);
        return failure_at_node(fail(STATUS_CONFLICT,
                                    "no example was found that runs; the last one tried failed: %s", message),
                               node);
}

// ---- writing ----
// Plain lists where the reader infers the dtype (from the signature or by torch.tensor's rule) and
// no size is 0.
static Status write_tensor(const Tensor *tensor, bool dtype_known, Text *out)
{
        const TensorMeta *meta = &tensor->meta;
        bool real = dtype_info[meta->dtype].kind != DTYPE_KIND_COMPLEX;
        bool guessed_right =
                meta->dtype == DTYPE_F32 || meta->dtype == DTYPE_I64 || meta->dtype == DTYPE_BOOL;
        if (real && meta_numel(meta) > 0 && (dtype_known || guessed_right))
                return tensor_json_write(tensor, TENSOR_JSON_NESTED, NULL, (size_t)limits.max_run_body, out);
        text_addf(out, "{\"dtype\": \"%s\", \"shape\": [", dtype_info[meta->dtype].name);
        for (int d = 0; d < meta->rank; d++)
                text_addf(out, "%s%lld", d == 0 ? "" : ", ", (long long)meta->size[d]);
        text_add(out, real ? "], \"data\": " : "], \"b64\": ");
        TRY(tensor_json_write(tensor, real ? TENSOR_JSON_FLAT : TENSOR_JSON_B64, NULL,
                              (size_t)limits.max_run_body, out));
        text_add_char(out, '}');
        return STATUS_OK;
}

static Status write_leaf(const Maker *maker, uint32_t leaf, Text *out)
{
        Value value = maker->values[leaf];
        if (value.kind == VALUE_TENSOR)
                return write_tensor(value.tensor, maker->inputs[leaf]->spec.dtype != DTYPE_NONE, out);
        if (value.kind == VALUE_ABSENT) {
                text_add(out, "null");
                return STATUS_OK;
        }
        return run_write_plain(value, out);
}

// Bounded: the depth of a signature's tree is capped when it is read.
static Status write_tree(const Maker *maker, const Tree *tree, Text *out)
{
        if (tree->kind == TREE_LEAF)
                return write_leaf(maker, tree->first_leaf, out);
        bool by_key = tree->kind == TREE_DICT;
        text_add_char(out, by_key ? '{' : '[');
        for (uint32_t i = 0; i < tree->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (by_key) {
                        text_add_json(out, tree->keys[i]);
                        text_add(out, ": ");
                }
                TRY(write_tree(maker, tree->children[i], out));
        }
        text_add_char(out, by_key ? '}' : ']');
        return STATUS_OK;
}

static Status write_flat(const Maker *maker, Text *out)
{
        bool first = true;
        text_add_char(out, '{');
        for (uint32_t i = 0; i < maker->n; i++) {
                if (maker->values[i].kind == VALUE_ABSENT)
                        continue;
                text_add(out, first ? "" : ", ");
                first = false;
                text_add_json(out, maker->inputs[i]->placeholder->target);
                text_add(out, ": ");
                TRY(write_leaf(maker, i, out));
        }
        text_add_char(out, '}');
        return STATUS_OK;
}

// Positional arguments as a list, keyword ones by name; by name alone where all have one.
static Status write_arguments(const Maker *maker, const Tree *positional, const Tree *keyword, Text *out)
{
        const Signature *signature = &maker->graph->signature;
        bool named = signature->argument_names != NULL && signature->n_arguments >= positional->n;
        text_add(out, named ? "{" : "{\"$args\": [");
        for (uint32_t i = 0; i < positional->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (named) {
                        text_add_json(out, signature->argument_names[i]);
                        text_add(out, ": ");
                }
                TRY(write_tree(maker, positional->children[i], out));
        }
        text_add(out, named ? "" : "], \"$kwargs\": {");
        for (uint32_t i = 0; i < keyword->n; i++) {
                text_add(out, i == 0 && (!named || positional->n == 0) ? "" : ", ");
                text_add_json(out, keyword->keys[i]);
                text_add(out, ": ");
                TRY(write_tree(maker, keyword->children[i], out));
        }
        text_add(out, named ? "}" : "}}");
        return STATUS_OK;
}

static Status make(Maker *maker, ProfileStats *stats, Text *out)
{
        const Signature *signature = &maker->graph->signature;
        maker->inputs = new_array(signature->n_inputs, sizeof(*maker->inputs));
        maker->specs = new_array(signature->n_inputs, sizeof(*maker->specs));
        maker->values = new_array(signature->n_inputs, sizeof(*maker->values));
        if (maker->inputs == NULL || maker->specs == NULL || maker->values == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        maker->inputs[maker->n++] = &signature->inputs[i];
        for (uint32_t i = 0; i < maker->n; i++)
                maker->values[i].kind = VALUE_ABSENT;
        TRY(find_specs(maker, stats));
        TRY(find_symbols(maker));
        TRY(explain(try_all(maker)));
        text_add(out, "{\"inputs\": ");
        Status status = signature->in_tree == NULL ? write_flat(maker, out)
                                                   : write_arguments(maker, signature->in_tree->children[0],
                                                                     signature->in_tree->children[1], out);
        text_add(out, "}\n");
        TRY(text_status(out));
        if (out->n > (size_t)limits.max_run_body || run_check_lists(out->data, out->n) != STATUS_OK)
                return too_large();
        return status;
}

Status example_write(Graph *graph, ProfileStats *stats, Text *out)
{
        Maker maker = { .graph = graph, .deadline_ns = clock_ns() + limits.run_deadline_ms * 1000000 };
        arena_init(&maker.arena, 0);
        budget_init(&maker.budget, (size_t)limits.max_run_memory);
        Status status = make(&maker, stats, out);
        maker_deinit(&maker);
        return status;
}
