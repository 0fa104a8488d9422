// SPDX-License-Identifier: Apache-2.0
// guards.c: guards, ranges and sizes are parsed, and the symbols of guards resolved, once per
// graph. Threads that come at once make equal ones, and one of them stays.
#include "core/eval/guards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/graph/guard_path.h"

struct Guards {
        Arena arena;
        Expr **exprs;     // as many as the signature has guards
        StringMap places; // symbol -> GuardPlace
        StringMap sizes;  // text of a size or a range that is no name -> Expr
        StringMap names;  // symbol of a size or a range -> its number + 1
        int64_t ns;
};

static void guards_free(void *object)
{
        Guards *guards = object;
        if (guards == NULL)
                return;
        string_map_deinit(&guards->places);
        string_map_deinit(&guards->sizes);
        string_map_deinit(&guards->names);
        arena_deinit(&guards->arena);
        free(guards);
}

static void guards_freep(Guards **guards)
{
        guards_free(*guards);
}

typedef struct GuardsMaker {
        Guards *guards;
        GuardPaths paths;
        Work work;
        size_t n_bytes; // of sizes and ranges, each once
        int64_t n_ops;  // that a run evaluates
} GuardsMaker;

static Status resolve(void *context, const char *symbol)
{
        GuardsMaker *maker = context;
        Guards *guards = maker->guards;
        if (string_map_get(&guards->places, symbol) != NULL)
                return STATUS_OK;
        GuardPlace *place = arena_alloc(&guards->arena, sizeof(*place));
        if (place == NULL)
                return fail_memory();
        TRY(guard_paths_find(&maker->paths, symbol, place));
        return string_map_set(&guards->places, symbol, place, NULL);
}

static Status fail_guard(const char *guard, const char *why)
{
        char reason[200];
        snprintf(reason, sizeof(reason), "%.180s", why);
        return fail(STATUS_UNSUPPORTED, "the export's guard %.300s cannot be checked: %s", guard, reason);
}

static Status check_bytes(const char *what, size_t n_bytes)
{
        return n_bytes <= (size_t)limits.max_guards
                       ? STATUS_OK
                       : fail(STATUS_TOO_LARGE,
                              "the export's %s have %zu bytes; the limit is %lld (max_guards in GET /v1)",
                              what, n_bytes, (long long)limits.max_guards);
}

static Status spend(GuardsMaker *maker, const char *text)
{
        enum { STEPS_PER_BYTE = 16 };
        return work_spend(&maker->work, STEPS_PER_BYTE * (int64_t)strlen(text));
}

static Status make_guard(GuardsMaker *maker, const char *guard, Expr **out_expr)
{
        Status status = expr_parse(guard, &maker->guards->arena, out_expr);
        if (status == STATUS_MALFORMED)
                return fail_guard(guard, failure_current()->message);
        TRY(status);
        maker->n_ops += expr_length(*out_expr);
        TRY(spend(maker, guard));
        return expr_visit_symbols(*out_expr, resolve, maker);
}

static Status add_name(Guards *guards, const char *name)
{
        if (name == NULL || string_map_get(&guards->names, name) != NULL)
                return STATUS_OK;
        return string_map_set(&guards->names, name, (void *)(uintptr_t)(guards->names.n + 1), NULL);
}

static Status make_size(GuardsMaker *maker, const char *text)
{
        Guards *guards = maker->guards;
        if (expr_is_name(text)) {
                maker->n_ops++;
                return add_name(guards, text);
        }
        Expr *expr = string_map_get(&guards->sizes, text);
        if (expr == NULL) {
                maker->n_bytes += strlen(text) + 1;
                TRY(check_bytes("expressions of sizes", maker->n_bytes));
                TRY(expr_parse(text, &guards->arena, &expr));
                TRY(string_map_set(&guards->sizes, text, expr, NULL));
                TRY(add_name(guards, expr_single_symbol(expr))); // it may be solved for it
        }
        maker->n_ops += expr_length(expr) + 1;
        return spend(maker, text);
}

static Status make_sizes(GuardsMaker *maker, const Signature *signature)
{
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                for (int d = 0; d < input_n_sizes(input); d++)
                        if (input->spec.size[d].expr != NULL)
                                TRY(make_size(maker, input->spec.size[d].expr));
        }
        for (uint32_t i = 0; i < signature->n_ranges; i++)
                TRY(make_size(maker, signature->ranges[i].symbol));
        return STATUS_OK;
}

static Status make_guards(GuardsMaker *maker, const Signature *signature)
{
        size_t n_bytes = 0;
        if (signature->n_guards == 0)
                return STATUS_OK;
        for (uint32_t i = 0; i < signature->n_guards; i++)
                n_bytes += strlen(signature->guards[i]) + 1;
        TRY(check_bytes("guards", n_bytes));
        TRY(guard_paths_init(&maker->paths, signature));
        Guards *guards = maker->guards;
        guards->exprs = arena_array(&guards->arena, signature->n_guards, sizeof(Expr *));
        if (guards->exprs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_guards; i++)
                TRY(make_guard(maker, signature->guards[i], &guards->exprs[i]));
        return STATUS_OK;
}

// What a name takes beyond those that people write: it is hashed, compared and printed.
static int64_t long_name(const char *name)
{
        enum { USUAL = 256 };
        size_t n = name == NULL ? 0 : strlen(name);
        return n > USUAL ? (int64_t)n : 0;
}

// Recursion: readers cap trees at limits.max_nested_values.
static int64_t long_keys(const Tree *tree)
{
        int64_t sum = 0;
        for (uint32_t i = 0; tree != NULL && i < tree->n; i++)
                sum += long_keys(tree->children[i]) + long_name(tree->keys == NULL ? NULL : tree->keys[i]);
        return sum;
}

static int64_t long_names(const Graph *graph)
{
        const Signature *signature = &graph->signature;
        int64_t sum = long_keys(signature->in_tree) + long_keys(signature->out_tree);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                sum += long_name(graph->nodes[i]->name) + long_name(graph->nodes[i]->target);
        for (uint32_t i = 0; signature->argument_names != NULL && i < signature->n_arguments; i++)
                sum += long_name(signature->argument_names[i]);
        return sum;
}

// As measured: an operation, what is done per input, a byte of a long name.
static int64_t estimate(const GuardsMaker *maker, const Graph *graph)
{
        enum { OP_NS = 60, INPUT_NS = 100, NAME_NS = 10 };
        return maker->n_ops * OP_NS + (int64_t)graph->signature.n_inputs * INPUT_NS +
               NAME_NS * long_names(graph);
}

static Status make(Guards *guards, const Graph *graph, const RunContext *poll)
{
        const Signature *signature = &graph->signature;
        GuardsMaker maker = { .guards = guards, .work = { .ctx = poll } };
        arena_init(&guards->arena, 0);
        Status status = make_sizes(&maker, signature);
        if (status == STATUS_OK)
                status = make_guards(&maker, signature);
        guards->ns = estimate(&maker, graph);
        guard_paths_deinit(&maker.paths);
        return status;
}

Status guards_of(const Graph *graph, const RunContext *poll, const Guards **out_guards)
{
        Graph *owner = (Graph *)graph;
        void *there = atomic_load(&owner->guards);
        if (there == NULL) {
                _cleanup_(guards_freep) Guards *fresh = calloc(1, sizeof(*fresh));
                if (fresh == NULL)
                        return fail_memory();
                TRY(make(fresh, graph, poll));
                if (atomic_compare_exchange_strong(&owner->guards, &there, fresh)) {
                        owner->free_guards = guards_free;
                        there = take_ptr(fresh);
                }
        }
        *out_guards = there;
        return STATUS_OK;
}

int64_t guards_bind_ns(const Graph *graph)
{
        const Guards *guards = atomic_load(&graph->guards);
        return guards == NULL ? -1 : guards->ns;
}

const Expr *guards_size(const Guards *guards, const char *text)
{
        return string_map_get(&guards->sizes, text);
}

uint32_t guards_n_names(const Guards *guards)
{
        return guards->names.n;
}

uint32_t guards_name(const Guards *guards, const char *name)
{
        uintptr_t number = (uintptr_t)string_map_get(&guards->names, name);
        return number == 0 ? guards->names.n : (uint32_t)number - 1;
}

static size_t expr_footprint(const char *text)
{
        enum { EACH = 64, PER_BYTE = 48 }; // a symbol or an operator of one byte takes about as much
        return expr_is_name(text) ? 0 : EACH + PER_BYTE * strlen(text);
}

size_t guards_footprint(const Signature *signature)
{
        size_t sum = sizeof(Guards);
        for (uint32_t i = 0; i < signature->n_guards; i++)
                sum += expr_footprint(signature->guards[i]);
        for (uint32_t i = 0; i < signature->n_ranges; i++)
                sum += expr_footprint(signature->ranges[i].symbol);
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                for (int d = 0; d < input_n_sizes(input); d++)
                        if (input->spec.size[d].expr != NULL)
                                sum += expr_footprint(input->spec.size[d].expr);
        }
        return sum;
}

// ---- at upload ----
// What symbols are checked against: the inputs, and the words of the shapes.
typedef struct GuardsCheck {
        const Guards *guards;
        SizeWords words;
} GuardsCheck;

// Whether an input will give the symbol a number.
static bool leads_somewhere(const void *context, const char *symbol)
{
        const GuardsCheck *check = context;
        const GuardPlace *place = string_map_get(&check->guards->places, symbol);
        const Input *input = place->input;
        if (input == NULL)
                return string_map_get(&check->words.map, symbol) != NULL;
        if (place->dim == GUARD_WHOLE)
                return input->value_kind != VALUE_TENSOR;
        return place->dim >= 0 &&
               (input->value_kind == VALUE_NONE || (input->value_kind == VALUE_TENSOR &&
                                                    (input->spec.rank < 0 || place->dim < input->spec.rank)));
}

static Status check_all(GuardsCheck *check, const Signature *signature)
{
        TRY(size_words_init(&check->words, signature));
        for (uint32_t i = 0; i < signature->n_guards; i++) {
                const char *unknown = expr_unknown(check->guards->exprs[i], leads_somewhere, check);
                if (unknown != NULL) {
                        char why[200];
                        snprintf(why, sizeof(why), "nothing that the graph takes is %.150s", unknown);
                        return fail_guard(signature->guards[i], why);
                }
        }
        return STATUS_OK;
}

Status guards_check(const Graph *graph)
{
        GuardsCheck check = { .guards = NULL };
        TRY(guards_of(graph, NULL, &check.guards));
        if (graph->signature.n_guards == 0)
                return STATUS_OK;
        Status status = check_all(&check, &graph->signature);
        size_words_deinit(&check.words);
        return status;
}

// ---- in a run ----
typedef struct GuardInputs {
        const Guards *guards;
        ValueSpan user;
        GuardSymbols symbols;
        bool lacking; // a value has not what a guard speaks of
} GuardInputs;

static bool number_of(Value value, ExprNumber *out)
{
        if (value.kind == VALUE_FLOAT)
                *out = (ExprNumber){ .is_float = true, .f = value.f };
        else
                *out = (ExprNumber){ .i = value.kind == VALUE_INT ? value.i : value.b };
        return value.kind == VALUE_INT || value.kind == VALUE_BOOL || value.kind == VALUE_FLOAT;
}

static bool lookup_guard(void *context, const char *symbol, ExprNumber *out)
{
        GuardInputs *inputs = context;
        const GuardPlace *place = string_map_get(&inputs->guards->places, symbol);
        if (place->input == NULL)
                return inputs->symbols.lookup(inputs->symbols.context, symbol, out);
        Value value = inputs->user.items[place->leaf];
        bool known = place->dim == GUARD_WHOLE ? number_of(value, out)
                                               : value.kind == VALUE_TENSOR && place->dim >= 0 &&
                                                         place->dim < value.tensor->meta.rank;
        if (known && place->dim != GUARD_WHOLE)
                *out = (ExprNumber){ .i = value.tensor->meta.size[place->dim] };
        inputs->lacking = inputs->lacking || (!known && value.kind != VALUE_ABSENT);
        return known;
}

// L['x'].size()[0] <= 64 -> x.size()[0] <= 64, as PyTorch prints it.
static void shown_guard(const char *guard, char *out, size_t cap)
{
        size_t n = 0;
        while (*guard != '\0' && n + 1 < cap) {
                bool local = (guard[0] == 'L' && guard[1] == '[' && (guard[2] == '\'' || guard[2] == '"'));
                const char *end = local ? strchr(guard + 3, guard[2]) : NULL;
                if (end == NULL || end[1] != ']') {
                        out[n++] = *guard++;
                        continue;
                }
                for (guard += 3; guard < end && n + 1 < cap; guard++)
                        out[n++] = *guard;
                guard = end + 2;
        }
        out[n] = '\0';
}

Status guards_hold(const Guards *guards, const Signature *signature, ValueSpan user, GuardSymbols symbols,
                   Work *work)
{
        GuardInputs inputs = { guards, user, symbols, false };
        for (uint32_t i = 0; i < signature->n_guards; i++) {
                ExprNumber value = { 0 };
                bool known = false;
                TRY(work_spend(work, GUARDS_STEPS * (int64_t)expr_length(guards->exprs[i])));
                TRY(expr_eval(guards->exprs[i], lookup_guard, &inputs, &value, &known));
                if (known ? (value.is_float ? value.f != 0 : value.i != 0) : !inputs.lacking)
                        continue;
                char shown[FAILURE_DETAIL_MAX];
                shown_guard(signature->guards[i], shown, sizeof(shown));
                return failure_detail(
                        fail(STATUS_GUARD,
                             "these inputs do not fit what the graph was exported for: it needs %.1000s",
                             shown),
                        "guard", shown);
        }
        return STATUS_OK;
}
