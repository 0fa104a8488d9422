// SPDX-License-Identifier: Apache-2.0
// splice_checks.c: what a signature demands of a graph's inputs, as nodes in front of a copy of the
// graph.
//
// One _assert_tensor_metadata for each tensor whose rank is known checks rank and sizes. A symbol
// is the size of the dimension where it stands first; where it stands again, this size is demanded.
// Ranges become _assert_scalar. A program decides all of them when it is built. As at binding, a
// minimum up to 2 is not demanded. Sizes that are expressions cannot be checked this way.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/base/text.h"
#include "core/edit/edit_parts.h"
#include "core/graph/print.h"

typedef struct Symbol {
        const char *name;
        Value value; // a node, or an int that a call passes
} Symbol;

typedef struct Checks {
        Edit *edit;
        const EditSplice *splice;
        Symbol *symbols;
        uint32_t n_symbols, capacity;
} Checks;

static const Symbol *find_symbol(const Checks *checks, const char *name)
{
        for (uint32_t i = 0; i < checks->n_symbols; i++) {
                if (strcmp(checks->symbols[i].name, name) == 0)
                        return &checks->symbols[i];
        }
        return NULL;
}

static Status add_symbol(Checks *checks, const char *name, Value value)
{
        TRY(array_reserve(&checks->symbols, &checks->capacity, checks->n_symbols + 1, sizeof(Symbol)));
        checks->symbols[checks->n_symbols++] = (Symbol){ name, value };
        return STATUS_OK;
}

// A call in front of the copies; takes the arguments.
static Status insert_call(const Checks *checks, const char *target, Value first, Value take_second,
                          Node **out_node)
{
        EditNew new = { .op = OP_CALL_FUNCTION, .target = target, .origin = checks->splice->origin };
        Seq *args;
        Status status = seq_new(2, &args);
        if (status != STATUS_OK) {
                value_unref(take_second);
                return status;
        }
        args->items[0] = value_ref(first);
        args->items[1] = take_second;
        new.args = value_seq_take(VALUE_TUPLE, args);
        return edit_insert_before(checks->edit, checks->splice->before, &new, out_node);
}

static bool is_symbol(const char *expr)
{
        return strspn(expr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
               strlen(expr);
}

static Status fail_expression(const char *expr)
{
        return fail(STATUS_UNSUPPORTED,
                    "the graph's inputs are bound by %.200s, which a graph called by another cannot check",
                    expr);
}

static Status size_of(Checks *checks, const SymDim *dim, int at, Value tensor, Value *out_size)
{
        Node *size;
        if (dim->expr == NULL) {
                *out_size = value_int(dim->value);
                return STATUS_OK;
        }
        if (!is_symbol(dim->expr))
                return fail_expression(dim->expr);
        const Symbol *symbol = find_symbol(checks, dim->expr);
        if (symbol != NULL) {
                *out_size = symbol->value;
                return STATUS_OK;
        }
        TRY(insert_call(checks, "torch.ops.aten.sym_size.int", tensor, value_int(at), &size));
        *out_size = (Value){ .kind = VALUE_NODE, .node = size };
        return add_symbol(checks, dim->expr, *out_size);
}

static Status check_tensor(Checks *checks, const TensorSpec *spec, Value tensor)
{
        Seq *sizes;
        Node *check;
        TRY(seq_new((uint32_t)spec->rank, &sizes));
        _cleanup_(value_clear) Value list = value_seq_take(VALUE_LIST, sizes);
        for (int d = 0; d < spec->rank; d++)
                TRY(size_of(checks, &spec->size[d], d, tensor, &sizes->items[d]));
        Value kept = list;
        list = value_none();
        return insert_call(checks, "torch.ops.aten._assert_tensor_metadata.default", tensor, kept, &check);
}

// An int that a graph takes: a symbol of its own, or one that a size has already.
static Status check_int(Checks *checks, const TensorSpec *spec, Value number)
{
        const SymDim *dim = &spec->size[0];
        if (spec->rank != 0 || dim->expr == NULL)
                return STATUS_OK;
        if (!is_symbol(dim->expr) || find_symbol(checks, dim->expr) != NULL)
                return fail_expression(dim->expr);
        return add_symbol(checks, dim->expr, number);
}

static Status check_bound(const Checks *checks, const SymbolRange *range, const char *compare, int64_t bound)
{
        const Symbol *symbol = find_symbol(checks, range->symbol);
        Node *holds, *check;
        Value message;
        char text[200];
        if (symbol == NULL)
                return is_symbol(range->symbol) ? STATUS_OK : fail_expression(range->symbol);
        snprintf(text, sizeof(text), "the called graph was exported for %.80s %s %" PRId64, range->symbol,
                 strcmp(compare, "_operator.ge") == 0 ? ">=" : "<=", bound);
        TRY(insert_call(checks, compare, symbol->value, value_int(bound), &holds));
        TRY(value_str_new(text, strlen(text), &message));
        return insert_call(checks, "torch.ops.aten._assert_scalar.default",
                           (Value){ .kind = VALUE_NODE, .node = holds }, message, &check);
}

static Status check_ranges(const Checks *checks)
{
        const Signature *signature = &checks->splice->graph->signature;
        for (uint32_t i = 0; i < signature->n_ranges; i++) {
                const SymbolRange *range = &signature->ranges[i];
                if (range->min > 2)
                        TRY(check_bound(checks, range, "_operator.ge", range->min));
                if (range->max < INT64_MAX)
                        TRY(check_bound(checks, range, "_operator.le", range->max));
        }
        return STATUS_OK;
}

static Status check_literal(const Input *input, Value value)
{
        _cleanup_(text_deinit) Text want = { 0 }, have = { 0 };
        value_print_repr(input->literal, &want);
        value_print_repr(value, &have);
        TRY(text_status(&want));
        TRY(text_status(&have));
        if (value.kind != VALUE_NODE && strcmp(want.data, have.data) == 0)
                return STATUS_OK;
        return fail(STATUS_UNSUPPORTED, "the graph was exported for %.100s = %.200s, the call gives %.200s",
                    input->placeholder->target, want.data, have.data);
}

static Status check_inputs(Checks *checks, const Value *values)
{
        const Signature *signature = &checks->splice->graph->signature;
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                Value value = values[input->placeholder->index];
                if (input->kind == INPUT_LITERAL)
                        TRY(check_literal(input, value));
                else if (input->kind == INPUT_USER && input->value_kind == VALUE_INT)
                        TRY(check_int(checks, &input->spec, value));
                else if (input->kind == INPUT_USER && input->spec.rank >= 0)
                        TRY(check_tensor(checks, &input->spec, value));
        }
        return check_ranges(checks);
}

Status edit_check_splice(Edit *edit, const EditSplice *splice, const Value *values)
{
        Checks checks = { .edit = edit, .splice = splice };
        Status status = check_inputs(&checks, values);
        free(checks.symbols);
        return status;
}
