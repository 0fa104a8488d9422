// SPDX-License-Identifier: Apache-2.0
// bind.c: inputs against the signature, in passes: kinds and literals, shapes and symbols, ranges,
// guards. A symbol gets its value where it stands alone or in an expression that can be solved for
// it; everything else is then computed and compared. What cannot be computed is not checked. As in
// PyTorch, a symbol that no size has alone may be a fraction (9 for "8*s0", if nothing else needs
// whole numbers), which only linear expressions take.
#include "core/eval/bind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/eval/guards.h"
#include "core/graph/expr.h"
#include "core/graph/guard_path.h"

enum { FEW = 64 }; // symbols for which no memory is allocated

typedef struct Symbol {
        const char *name;     // NULL: it is not known
        int64_t value, below; // a fraction: value / below, which is not whole; else below is 1
        const Input *input;   // where it was seen first
        int dim;              // -1: the input itself (an int)
} Symbol;

typedef struct Binding {
        const Graph *graph;
        ValueSpan user; // in signature order, literals filled in
        const Guards *guards;
        Work work;
        Symbol *symbols; // by number (guards.h); without a name until they are known
        Symbol few[FEW];
} Binding;

// ---- names ----
static Status at_input(Status status, const Input *input)
{
        return failure_at_argument(status, input_name(input));
}

static void add_dimension(const SymDim *dim, Text *out)
{
        if (dim->expr != NULL)
                text_add(out, dim->expr);
        else
                text_add_int(out, dim->value);
}

static void add_spec(const TensorSpec *spec, Text *out)
{
        text_add_char(out, '[');
        for (int d = 0; d < spec->rank; d++) {
                text_add(out, d > 0 ? ", " : "");
                add_dimension(&spec->size[d], out);
        }
        text_add_char(out, ']');
}

// `input "x" has shape [3], expected [s31, 3]` + tail; `input "n" is 3, expected s31` + tail.
static Status fail_shape(Status status, const Input *input, Value value, const char *tail)
{
        char have[256];
        Text want = { 0 };
        if (value.kind == VALUE_INT) {
                snprintf(have, sizeof(have), "is %" PRId64, value.i);
                add_dimension(&input->spec.size[0], &want);
        } else {
                const TensorMeta *meta = &value.tensor->meta;
                int n = snprintf(have, sizeof(have), "has shape ");
                shape_text(meta->rank, meta->size, have + n, sizeof(have) - (size_t)n);
                add_spec(&input->spec, &want);
        }
        status = fail(status, "input \"%s\" %s, expected %s%s", input_name(input), have,
                      want.data == NULL ? "another" : want.data, tail);
        text_deinit(&want);
        return at_input(status, input);
}

// ---- what the spec says of a value: a tensor's sizes, or a symbolic int, which is kept in size[0]
// of a spec of rank 0 ----
static bool is_symbolic_int(const Input *input, Value value)
{
        return input->value_kind == VALUE_INT && value.kind == VALUE_INT && input->spec.rank == 0;
}

static int n_dimensions(const Input *input, Value value)
{
        return value.kind == VALUE_INT ? 1 : input->spec.rank;
}

static int64_t extent(Value value, int dim)
{
        return value.kind == VALUE_INT ? value.i : value.tensor->meta.size[dim];
}

// ---- symbols ----
static const Symbol *find_symbol(const Binding *binding, const char *name)
{
        uint32_t number = guards_name(binding->guards, name);
        if (number == guards_n_names(binding->guards) || binding->symbols[number].name == NULL)
                return NULL;
        return &binding->symbols[number];
}

static Status set_symbol(Binding *binding, const char *name, int64_t number, const Input *input, int dim,
                         Value value)
{
        uint32_t i = guards_name(binding->guards, name);
        if (i == guards_n_names(binding->guards))
                return fail(STATUS_INTERNAL, "the symbol %.100s has no number", name);
        dim = value.kind == VALUE_INT ? -1 : dim;
        binding->symbols[i] =
                (Symbol){ .name = name, .value = number, .below = 1, .input = input, .dim = dim };
        return STATUS_OK;
}

static bool lookup_symbol(void *context, const char *name, ExprNumber *out)
{
        const Symbol *symbol = find_symbol(context, name);
        if (symbol == NULL || symbol->below != 1)
                return false;
        *out = (ExprNumber){ .i = symbol->value };
        return true;
}

static Status fail_unify(const Symbol *symbol, const Input *input, Value value)
{
        char tail[200];
        snprintf(tail, sizeof(tail), " with %.40s = %" PRId64 " as in input \"%.60s\"", symbol->name,
                 symbol->value, input_name(symbol->input));
        return fail_shape(STATUS_SHAPE, input, value, tail);
}

static Status bind_plain_symbol(Binding *binding, const char *name, const Input *input, int dim, Value value)
{
        const Symbol *symbol = find_symbol(binding, name);
        if (symbol == NULL)
                return set_symbol(binding, name, extent(value, dim), input, dim, value);
        return symbol->value == extent(value, dim) ? STATUS_OK : fail_unify(symbol, input, value);
}

static ExprNumber quotient(__int128 above, int64_t below)
{
        __int128 whole = above / below;
        if (whole * below == above && whole >= INT64_MIN && whole <= INT64_MAX)
                return (ExprNumber){ .i = (int64_t)whole };
        return (ExprNumber){ .is_float = true, .f = (double)above / (double)below };
}

static ExprNumber value_of(const Symbol *symbol)
{
        return quotient(symbol->value, symbol->below);
}

// a·symbol + b where the symbol is a fraction.
static bool evaluate_fraction(const Binding *binding, const Expr *expr, ExprNumber *out_value)
{
        const char *single = expr_single_symbol(expr);
        const Symbol *symbol = single == NULL ? NULL : find_symbol(binding, single);
        int64_t a, b;
        if (symbol == NULL || symbol->below == 1 || !expr_linear(expr, &a, &b))
                return false;
        *out_value = quotient((__int128)a * symbol->value + (__int128)b * symbol->below, symbol->below);
        return true;
}

// A size or the subject of a range that is more than a name.
static Status evaluate(Binding *binding, const char *text, const Expr **out_expr, ExprNumber *out_value,
                       bool *out_known)
{
        const Expr *expr = guards_size(binding->guards, text);
        if (expr == NULL)
                return fail(STATUS_INTERNAL, "the expression %.100s was not parsed", text);
        TRY(work_spend(&binding->work, GUARDS_STEPS * (int64_t)expr_length(expr)));
        *out_expr = expr;
        TRY(expr_eval(expr, lookup_symbol, binding, out_value, out_known));
        *out_known = *out_known || evaluate_fraction(binding, expr, out_value);
        return STATUS_OK;
}

static void add_number(ExprNumber number, char *out, size_t cap)
{
        if (number.is_float)
                snprintf(out, cap, "%g", number.f);
        else
                snprintf(out, cap, "%" PRId64, number.i);
}

// The symbol as the fraction that the size makes of it.
static Status set_fraction(Binding *binding, const Expr *expr, const Input *input, int dim, Value value)
{
        int64_t a, b, rest;
        const char *single = expr_single_symbol(expr);
        if (!expr_linear(expr, &a, &b) || a == 0 || !sub_i64(extent(value, dim), b, &rest))
                return fail_shape(STATUS_SHAPE, input, value, "");
        TRY(set_symbol(binding, single, rest, input, dim, value));
        binding->symbols[guards_name(binding->guards, single)].below = a;
        return STATUS_OK;
}

// An expression such as 2*s39: computed when its symbols are known, else solved for its only one.
static Status bind_expression(Binding *binding, const char *text, const Input *input, int dim, Value value)
{
        const Expr *expr;
        ExprNumber wanted = { 0 };
        bool known = false;
        TRY(evaluate(binding, text, &expr, &wanted, &known));
        int64_t size = extent(value, dim), solved = 0;
        if (known) {
                bool equal = wanted.is_float ? wanted.f == (double)size : wanted.i == size;
                if (equal)
                        return STATUS_OK;
                char tail[100], shown[32];
                add_number(wanted, shown, sizeof(shown));
                snprintf(tail, sizeof(tail), ", where %.40s is %s", text, shown);
                return fail_shape(STATUS_SHAPE, input, value, tail);
        }
        const char *single = expr_single_symbol(expr);
        if (single == NULL)
                return STATUS_OK;
        switch (expr_solve(expr, size, &solved)) {
        case EXPR_SOLVED:
                return set_symbol(binding, single, solved, input, dim, value);
        case EXPR_IMPOSSIBLE:
                return set_fraction(binding, expr, input, dim, value);
        case EXPR_UNSOLVED:
                break;
        }
        return STATUS_OK;
}

// ---- kinds, literals ----
static bool is_real(Value value)
{
        return value.kind == VALUE_BOOL || value.kind == VALUE_INT || value.kind == VALUE_FLOAT;
}

static double real_of(Value value)
{
        return value.kind == VALUE_BOOL  ? (double)value.b
               : value.kind == VALUE_INT ? (double)value.i
                                         : value.f;
}

// As Python's == has it: 1 is 1.0 and True.
static bool same_literal(Value a, Value b)
{
        if (a.kind == VALUE_INT && b.kind == VALUE_INT)
                return a.i == b.i;
        if (is_real(a) && is_real(b)) // PyTorch's guard of a NaN is math.isnan
                return real_of(a) == real_of(b) || (isnan(real_of(a)) && isnan(real_of(b)));
        if (a.kind != b.kind)
                return false;
        switch (a.kind) {
        case VALUE_NONE:
                return true;
        case VALUE_STR:
                return a.str->n == b.str->n && memcmp(a.str->text, b.str->text, a.str->n) == 0;
        default:
                return false;
        }
}

enum { LITERAL_SHOWN = 80 }; // bytes of a string

static Status check_literal(const Input *input, Value value)
{
        if (same_literal(input->literal, value))
                return STATUS_OK;
        Text want = { 0 }, have = { 0 };
        value_add_literal(input->literal, LITERAL_SHOWN, &want);
        value_add_literal(value, LITERAL_SHOWN, &have);
        Status status =
                fail(STATUS_INPUT, "input \"%s\" was fixed to %s when the graph was exported, but got %s",
                     input_name(input), want.data == NULL ? "another value" : want.data,
                     have.data == NULL ? "another value" : have.data);
        text_deinit(&want);
        text_deinit(&have);
        return at_input(status, input);
}

static Status fail_missing(const Graph *graph, const Input *missing)
{
        Text names = { 0 };
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->kind == INPUT_USER && !input->hidden && names.n < 1000)
                        text_addf(&names, "%s%s", names.n == 0 ? "" : ", ", input_name(input));
        }
        Status status = fail(STATUS_INPUT, "input \"%s\" is missing; the graph takes: %s",
                             input_name(missing), names.data == NULL ? "" : names.data);
        text_deinit(&names);
        return at_input(status, missing);
}

static Status check_kind(const Graph *graph, const Input *input, Value value)
{
        if (input->kind == INPUT_LITERAL)
                return value.kind == VALUE_ABSENT ? STATUS_OK : check_literal(input, value);
        if (value.kind == VALUE_ABSENT) {
                const Node *placeholder = input->placeholder;
                bool has_default = placeholder != NULL &&
                                   (placeholder->target[0] == '*' || placeholder->args.seq->n > 0);
                return has_default ? STATUS_OK : fail_missing(graph, input);
        }
        if (input->value_kind == VALUE_TENSOR && value.kind != VALUE_TENSOR)
                return at_input(fail(STATUS_INPUT, "input \"%s\" must be a tensor, not %s", input_name(input),
                                     value_kind_name(value.kind)),
                                input);
        if (input->value_kind != VALUE_NONE && input->value_kind != VALUE_TENSOR &&
            value.kind != input->value_kind)
                return at_input(fail(STATUS_INPUT, "input \"%s\" must be %s, not %s", input_name(input),
                                     value_kind_name(input->value_kind), value_kind_name(value.kind)),
                                input);
        return STATUS_OK;
}

// ---- shapes ----
static Status check_rank(Binding *binding, const Input *input, Value value)
{
        (void)binding;
        bool fits = value.kind == VALUE_INT || input->spec.rank < 0 ||
                    input->spec.rank == value.tensor->meta.rank;
        return fits ? STATUS_OK : fail_shape(STATUS_SHAPE, input, value, "");
}

static Status check_static(Binding *binding, const Input *input, Value value)
{
        (void)binding;
        for (int d = 0; d < n_dimensions(input, value); d++) {
                const SymDim *dim = &input->spec.size[d];
                if (dim->expr != NULL || dim->value == extent(value, d))
                        continue;
                char guard[160], place[32] = "";
                if (value.kind != VALUE_INT)
                        snprintf(place, sizeof(place), ".size()[%d]", d);
                snprintf(guard, sizeof(guard), "%.80s%s == %" PRId64, input_name(input), place, dim->value);
                return failure_detail(fail_shape(STATUS_SHAPE, input, value, ""), "guard", guard);
        }
        return STATUS_OK;
}

static Status bind_symbols(Binding *binding, const Input *input, Value value, bool plain)
{
        for (int d = 0; d < n_dimensions(input, value); d++) {
                const char *expr = input->spec.size[d].expr;
                if (expr == NULL || expr_is_name(expr) != plain)
                        continue;
                TRY(plain ? bind_plain_symbol(binding, expr, input, d, value)
                          : bind_expression(binding, expr, input, d, value));
        }
        return STATUS_OK;
}

static Status bind_plain_symbols(Binding *binding, const Input *input, Value value)
{
        return bind_symbols(binding, input, value, true);
}

static Status bind_expressions(Binding *binding, const Input *input, Value value)
{
        return bind_symbols(binding, input, value, false);
}

static Status check_shapes(Binding *binding)
{
        static Status (*const passes[])(Binding *, const Input *, Value) = { check_rank, check_static,
                                                                             bind_plain_symbols,
                                                                             bind_expressions };
        const Signature *signature = &binding->graph->signature;
        for (size_t pass = 0; pass < ARRAY_LENGTH(passes); pass++) {
                for (uint32_t i = 0, at = 0; i < signature->n_inputs; i++) {
                        const Input *input = &signature->inputs[i];
                        if (input->kind == INPUT_STATE)
                                continue;
                        Value value = binding->user.items[at++];
                        if (input->kind == INPUT_USER &&
                            (value.kind == VALUE_TENSOR || is_symbolic_int(input, value)))
                                TRY(passes[pass](binding, input, value));
                }
        }
        return STATUS_OK;
}

// ---- ranges ----
// Whether the size itself is the symbol, which else was solved for.
static bool is_plain(const Symbol *symbol)
{
        return strcmp(symbol->input->spec.size[MAX(symbol->dim, 0)].expr, symbol->name) == 0;
}

static bool is_below(ExprNumber a, int64_t b)
{
        return a.is_float ? a.f < (double)b : a.i < b;
}

static bool is_above(ExprNumber a, int64_t b)
{
        return a.is_float ? a.f > (double)b : a.i > b;
}

static Status fail_range(const SymbolRange *range, ExprNumber value, const Symbol *symbol)
{
        char guard[160], place[120] = "", shown[32];
        bool below = is_below(value, range->min), plain = symbol != NULL && is_plain(symbol);
        int64_t bound = below ? range->min : range->max;
        const char *name = plain ? input_name(symbol->input) : range->symbol;
        if (plain && symbol->dim >= 0)
                snprintf(place, sizeof(place), ".size()[%d]", symbol->dim);
        snprintf(guard, sizeof(guard), "%.80s%s %s %" PRId64, name, place, below ? ">=" : "<=", bound);
        add_number(value, shown, sizeof(shown));
        Status status = !plain || symbol->dim < 0
                                ? fail(STATUS_GUARD, "%.80s is %s; the graph was exported for %s %s %" PRId64,
                                       name, shown, range->symbol, below ? ">=" : "<=", bound)
                                : fail(STATUS_GUARD,
                                       "input \"%.80s\" has size %s in dimension %d (%s); the graph was "
                                       "exported for %s %s %" PRId64,
                                       name, shown, symbol->dim, range->symbol, range->symbol,
                                       below ? ">=" : "<=", bound);
        failure_detail(status, "guard", guard);
        return symbol == NULL ? status : at_input(status, symbol->input);
}

static Status check_ranges(Binding *binding)
{
        const Signature *signature = &binding->graph->signature;
        for (uint32_t i = 0; i < signature->n_ranges; i++) {
                const SymbolRange *range = &signature->ranges[i];
                const Symbol *symbol = find_symbol(binding, range->symbol);
                ExprNumber value = { 0 };
                bool known = symbol != NULL;
                if (known) {
                        value = value_of(symbol);
                } else if (!expr_is_name(range->symbol)) {
                        const Expr *expr;
                        TRY(evaluate(binding, range->symbol, &expr, &value, &known));
                }
                // As in PyTorch, a lower bound that only says "0 and 1 are special" is not
                // enforced.
                if (known && ((range->min > 2 && is_below(value, range->min)) || is_above(value, range->max)))
                        return fail_range(range, value, symbol);
        }
        return STATUS_OK;
}

// ---- the whole ----
static Status make_symbols(Binding *binding)
{
        uint32_t n = guards_n_names(binding->guards);
        binding->symbols = n <= FEW ? binding->few : new_array(n, sizeof(Symbol));
        if (binding->symbols == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                binding->symbols[i].name = NULL;
        return STATUS_OK;
}

static Status bind_all(Binding *binding)
{
        const Graph *graph = binding->graph;
        uint32_t at = 0;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->kind != INPUT_STATE)
                        TRY(check_kind(graph, input, binding->user.items[at++]));
        }
        TRY(guards_of(graph, binding->work.ctx, &binding->guards));
        TRY(make_symbols(binding));
        TRY(check_shapes(binding));
        TRY(check_ranges(binding));
        return guards_hold(binding->guards, &graph->signature, binding->user,
                           (GuardSymbols){ lookup_symbol, binding }, &binding->work);
}

Status bind_inputs(const Graph *graph, ValueSpan user, const RunContext *poll, Value *out_inputs)
{
        const Signature *signature = &graph->signature;
        uint32_t n_user = 0;
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                n_user += signature->inputs[i].kind != INPUT_STATE;
        if (user.n != n_user)
                return fail(STATUS_INPUT, "the graph takes %u input%s, but %u %s given", n_user,
                            n_user == 1 ? "" : "s", user.n, user.n == 1 ? "was" : "were");
        Binding binding; // what is in `few` stays as it is until set
        binding.graph = graph;
        binding.user = user;
        binding.symbols = NULL;
        binding.work = (Work){ .ctx = poll };
        Status status = bind_all(&binding);
        if (binding.symbols != binding.few)
                free(binding.symbols);
        TRY(status);
        for (uint32_t i = 0, at = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                Value value = { .kind = VALUE_ABSENT };
                if (input->kind != INPUT_STATE)
                        value = user.items[at++];
                if (input->kind == INPUT_LITERAL && value.kind == VALUE_ABSENT)
                        value = input->literal;
                out_inputs[i] = value_ref(value);
        }
        return STATUS_OK;
}
