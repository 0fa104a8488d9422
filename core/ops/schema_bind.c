// SPDX-License-Identifier: Apache-2.0
// schema_bind.c: the binder. One pass lays positional values out, one matches keywords, one checks
// types and fills in defaults; none of them allocates (but for a gathered list) or formats. What
// went wrong comes back as a small fault, and only schema_bind puts it into words.
#include "core/ops/schema.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"

typedef enum FaultKind {
        FAULT_NONE,
        FAULT_TOO_MANY,
        FAULT_TYPE,
        FAULT_ITEM,
        FAULT_UNKNOWN,
        FAULT_TWICE,
        FAULT_MISSING,
        FAULT_MEMORY
} FaultKind;
typedef struct Fault {
        FaultKind kind;
        uint32_t arg; // in the schema
        bool positional;
        uint32_t item; // of a list
        ValueKind found;
        const char *keyword;
} Fault;

// ---- types ----
static bool number_item_fits(ArgType type, Value value, BindMode mode)
{
        // Python's arg parser reads 0-dim tensors as numbers. Overloads are first tried without
        // that.
        if (value.kind == VALUE_TENSOR)
                return mode == BIND_NUMBERS && value.tensor->meta.rank == 0;
        switch (type) {
        case ARG_SCALAR:
                return value_is_number(value);
        case ARG_INT:
                return value.kind == VALUE_INT || (value.kind == VALUE_BOOL && mode == BIND_NUMBERS);
        case ARG_FLOAT:
                return value.kind == VALUE_FLOAT || value.kind == VALUE_INT || value.kind == VALUE_BOOL;
        default:
                return value.kind == VALUE_BOOL;
        }
}

static inline bool item_fits(ArgType type, bool optional, Value value, BindMode mode)
{
        if (type == ARG_TENSOR && value.kind == VALUE_TENSOR)
                return true;
        switch (value.kind) {
        case VALUE_NODE:
        case VALUE_DYNAMIC:
                return true;
        case VALUE_NONE:
                return optional || type == ARG_ANY || type == ARG_GENERATOR;
        default:
                break;
        }
        switch (type) {
        case ARG_TENSOR:
                return value.kind == VALUE_TENSOR || (mode == BIND_NUMBERS && value_is_number(value));
        case ARG_SCALAR:
        case ARG_INT:
        case ARG_FLOAT:
        case ARG_BOOL:
                return number_item_fits(type, value, mode);
        case ARG_STR:
                return value.kind == VALUE_STR;
        case ARG_DTYPE:
                return value.kind == VALUE_DTYPE;
        case ARG_LAYOUT:
                return value.kind == VALUE_LAYOUT;
        case ARG_DEVICE:
                return value.kind == VALUE_DEVICE || value.kind == VALUE_STR;
        case ARG_MEMORY_FORMAT:
                return value.kind == VALUE_MEMORY_FORMAT;
        case ARG_GENERATOR:
                return false;
        case ARG_ANY:
                return true;
        case ARG_GRAPH:
                return value.kind == VALUE_GRAPH;
        }
        return false;
}

static FaultKind list_fits(const SchemaArg *arg, Value value, BindMode mode, uint32_t *out_item)
{
        if (value.kind == VALUE_NODE || value.kind == VALUE_DYNAMIC ||
            (value.kind == VALUE_NONE && arg->optional))
                return FAULT_NONE;
        if (!value_is_sequence(value)) {
                // With BIND_NUMBERS a 1-d integer tensor is a list of ints, as for torch.ops.
                if (value.kind == VALUE_TENSOR && arg->type == ARG_INT && mode == BIND_NUMBERS &&
                    value.tensor->meta.rank == 1 && dtype_is_int(value.tensor->meta.dtype))
                        return FAULT_NONE;
                // int[2] stride: a single number is repeated.
                bool alone = arg->list_size > 0 && arg->type != ARG_TENSOR &&
                             item_fits(arg->type, false, value, mode);
                return alone ? FAULT_NONE : FAULT_TYPE;
        }
        // Numbers never stand in for tensors inside a list.
        BindMode item_mode = arg->type == ARG_TENSOR ? BIND_STRICT : mode;
        for (uint32_t i = 0; i < value.seq->n; i++) {
                if (!item_fits(arg->type, arg->item_optional, value.seq->items[i], item_mode)) {
                        *out_item = i;
                        return FAULT_ITEM;
                }
        }
        return FAULT_NONE;
}

// ---- layout ----
static bool gathers(const Schema *schema, const CallArgs *call, uint32_t n_positional)
{
        if (n_positional == 0)
                return false;
        uint32_t last = n_positional - 1;
        const SchemaArg *arg = &schema->args[last];
        if (arg->varargs)
                return call->n_args != n_positional || !value_is_sequence(call->args[last]);
        if (!arg->is_list || arg->type != ARG_INT || call->n_args <= last)
                return false;
        // As Python's arg parser: only a list that is the one argument besides the tensor.
        if (last > 1 || (last == 1 && (schema->args[SELF].type != ARG_TENSOR || schema->args[SELF].is_list)))
                return false;
        ValueKind kind = call->args[last].kind;
        bool number = kind == VALUE_INT || kind == VALUE_NODE || kind == VALUE_DYNAMIC ||
                      (kind == VALUE_TENSOR && call->args[last].tensor->meta.rank == 0);
        return number && (call->n_args > n_positional || (kind == VALUE_INT && arg->list_size == 0));
}

// Borrows when checking and choosing. Makes a list only when the caller keeps the arguments.
static Fault gather(const Schema *schema, const CallArgs *call, uint32_t at, BindMode mode, bool keep,
                    Value *out_args)
{
        Fault fault = { .arg = at, .positional = true };
        const SchemaArg *arg = &schema->args[at];
        uint32_t n = call->n_args > at ? call->n_args - at : 0;
        BindMode item_mode = arg->type == ARG_TENSOR ? BIND_STRICT : mode;
        for (uint32_t i = 0; i < n; i++) {
                if (!item_fits(arg->type, arg->item_optional, call->args[at + i], item_mode)) {
                        fault.kind = FAULT_ITEM;
                        fault.item = i;
                        fault.found = call->args[at + i].kind;
                        return fault;
                }
        }
        out_args[at] = value_none();
        if (!keep)
                return fault;
        Seq *seq;
        if (seq_new(n, &seq) != STATUS_OK) {
                fault.kind = FAULT_MEMORY;
                return fault;
        }
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(call->args[at + i]);
        out_args[at] = value_seq_take(VALUE_LIST, seq);
        return fault;
}

static bool keyword_names(const char *keyword, const char *name)
{
        static const char *const spellings[][2] = { { "input", "self" },       { "axis", "dim" },
                                                    { "keepdims", "keepdim" }, { "x", "self" },
                                                    { "a", "self" },           { "x1", "self" },
                                                    { "x2", "other" } };
        if (strcmp(keyword, name) == 0)
                return true;
        for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++) {
                if (strcmp(keyword, spellings[i][0]) == 0 && strcmp(name, spellings[i][1]) == 0)
                        return true;
        }
        return false;
}

static uint32_t find_keyword(const Schema *schema, const char *keyword)
{
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (strcmp(schema->args[i].name, keyword) == 0)
                        return i;
        }
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (keyword_names(keyword, schema->args[i].name))
                        return i;
        }
        return schema->n_args;
}

// Python-side keywords that no schema has and that do not affect the result.
static bool keyword_is_idle(const Schema *schema, const char *keyword, Value value)
{
        if (strcmp(keyword, "out") == 0 || strcmp(keyword, "names") == 0)
                return value.kind == VALUE_NONE;
        return strcmp(keyword, "requires_grad") == 0 && value.kind == VALUE_BOOL &&
               find_keyword(schema, "pin_memory") < schema->n_args;
}

static Fault place_keywords(const Schema *schema, const CallArgs *call, Value *out_args)
{
        Fault fault = { .kind = FAULT_NONE };
        for (uint32_t k = 0; k < call->n_kwargs; k++) {
                const char *keyword = call->kwargs[k].key->text;
                uint32_t at = find_keyword(schema, keyword);
                if (at == schema->n_args) {
                        if (fault.kind == FAULT_NONE &&
                            !keyword_is_idle(schema, keyword, call->kwargs[k].value))
                                fault = (Fault){ .kind = FAULT_UNKNOWN, .keyword = keyword };
                } else if (out_args[at].kind != VALUE_ABSENT) {
                        if (fault.kind == FAULT_NONE)
                                fault = (Fault){ .kind = FAULT_TWICE, .arg = at };
                } else {
                        out_args[at] = call->kwargs[k].value;
                }
        }
        return fault;
}

static Fault type_fault(const CallArgs *call, const SchemaArg *arg, uint32_t i, Value value, FaultKind kind,
                        uint32_t item)
{
        return (Fault){ .kind = kind,
                        .arg = i,
                        .positional = i < call->n_args && !arg->kwarg_only,
                        .item = item,
                        .found = kind == FAULT_ITEM ? value.seq->items[item].kind : value.kind };
}

// What is declared as float arrives as one: in expressions an int would promote otherwise. The tag
// of a runtime scalar stays.
static Value as_float(Value value)
{
        if (value.kind != VALUE_INT && value.kind != VALUE_BOOL)
                return value;
        Value number = value_float(value.kind == VALUE_INT ? (double)value.i : value.b);
        number.tag = value.tag;
        return number;
}

// Types and defaults, in the order of the schema, so that the first wrong argument is the one
// named.
static Fault check_args(const Schema *schema, const CallArgs *call, BindMode mode, Value *out_args,
                        uint64_t *out_given, uint32_t gathered)
{
        uint64_t given = 0;
        for (uint32_t i = 0; i < schema->n_args; i++) {
                const SchemaArg *arg = &schema->args[i];
                if (i == gathered) {
                        given |= (uint64_t)1 << i;
                        continue;
                }
                if (out_args[i].kind == VALUE_ABSENT) {
                        if (!arg->has_default)
                                return (Fault){ .kind = FAULT_MISSING, .arg = i };
                        out_args[i] = arg->default_value;
                        continue;
                }
                given |= (uint64_t)1 << i;
                FaultKind kind = FAULT_NONE;
                uint32_t item = 0;
                if (arg->is_list)
                        kind = list_fits(arg, out_args[i], mode, &item);
                else if (!item_fits(arg->type, arg->optional, out_args[i], mode))
                        kind = FAULT_TYPE;
                if (__builtin_expect(kind != FAULT_NONE, 0))
                        return type_fault(call, arg, i, out_args[i], kind, item);
                if (arg->type == ARG_FLOAT && !arg->is_list)
                        out_args[i] = as_float(out_args[i]);
        }
        *out_given = given;
        return (Fault){ .kind = FAULT_NONE };
}

static Fault bind(const Schema *schema, const CallArgs *call, BindMode mode, bool keep, Value *out_args,
                  uint64_t *out_given)
{
        uint32_t n_positional = schema->n_positional;
        uint32_t gathered = gathers(schema, call, n_positional) ? n_positional - 1 : UINT32_MAX;
        if (call->n_args > n_positional && gathered == UINT32_MAX)
                return (Fault){ .kind = FAULT_TOO_MANY };

        uint32_t n_placed = MIN(MIN(call->n_args, n_positional), gathered);
        for (uint32_t i = 0; i < n_placed; i++)
                out_args[i] = call->args[i];
        for (uint32_t i = n_placed; i < schema->n_args; i++)
                out_args[i].kind = VALUE_ABSENT;
        if (gathered != UINT32_MAX && call->n_args <= gathered) {
                // A starred argument may come by keyword, or not at all.
                uint32_t k = 0;
                while (k < call->n_kwargs &&
                       strcmp(call->kwargs[k].key->text, schema->args[gathered].name) != 0)
                        k++;
                if (k < call->n_kwargs)
                        gathered = UINT32_MAX;
        }
        if (gathered != UINT32_MAX)
                out_args[gathered] = value_none();
        Fault keyword_fault = place_keywords(schema, call, out_args);
        Fault fault = check_args(schema, call, mode, out_args, out_given, gathered);
        if (fault.kind != FAULT_NONE)
                return fault;
        if (keyword_fault.kind != FAULT_NONE)
                return keyword_fault;
        if (gathered == UINT32_MAX)
                return fault;
        fault = gather(schema, call, gathered, mode, keep, out_args);
        if (fault.kind == FAULT_NONE && keep)
                *out_given |= SCHEMA_GATHERED;
        return fault;
}

bool schema_fits(const Schema *schema, const CallArgs *call, BindMode mode)
{
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        return bind(schema, call, mode, false, args, &given).kind == FAULT_NONE;
}

bool schema_try_bind(const Schema *schema, const CallArgs *call, BindMode mode, Value *out_args,
                     uint64_t *out_given)
{
        return bind(schema, call, mode, true, out_args, out_given).kind == FAULT_NONE;
}

// ---- messages ----
static const char *shown_name(const SchemaArg *arg)
{
        return strcmp(arg->name, "self") == 0 ? "input" : arg->name;
}

static const char *type_words(const SchemaArg *arg)
{
        static const char *const single[] = { "Tensor",
                                              "Number",
                                              "int",
                                              "float",
                                              "bool",
                                              "str",
                                              "torch.dtype",
                                              "torch.layout",
                                              "torch.device",
                                              "torch.memory_format",
                                              "torch.Generator",
                                              "object",
                                              "GraphModule" };
        static const char *const many[] = { "tuple of Tensors", "tuple of Scalars", "tuple of ints",
                                            "tuple of floats",  "tuple of bools",   "tuple of strs" };
        return arg->is_list && arg->type < ARRAY_LENGTH(many) ? many[arg->type] : single[arg->type];
}

static Status fail_missing(const Schema *schema, uint32_t from, const Value *args)
{
        char names[512] = "";
        size_t used = 0;
        int n = 0;
        for (uint32_t i = from; i < schema->n_args; i++) {
                if (args[i].kind != VALUE_ABSENT || schema->args[i].has_default || used + 80 > sizeof(names))
                        continue;
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s\"%.60s\"",
                                         n == 0 ? "" : ", ", shown_name(&schema->args[i]));
                n++;
        }
        // "arguments" for one is PyTorch's own slip; kept, since people search for the sentence.
        return fail(STATUS_VALUE, "%s() missing %d required positional argument%s: %s", schema->name, n,
                    n == 1 ? "s" : "", names);
}

static Status fail_too_many(const Schema *schema, const CallArgs *call)
{
        uint32_t n_max = 0, n_min = 0;
        for (uint32_t i = 0; i < schema->n_args && !schema->args[i].kwarg_only; i++) {
                n_max++;
                n_min += !schema->args[i].has_default;
        }
        if (n_min < n_max)
                return fail(STATUS_VALUE, "%s() takes from %u to %u positional arguments but %u were given",
                            schema->name, n_min, n_max, call->n_args);
        return fail(STATUS_VALUE, "%s() takes %u positional argument%s but %u %s given", schema->name, n_max,
                    n_max == 1 ? "" : "s", call->n_args, call->n_args == 1 ? "was" : "were");
}

static Status fail_fault(const Schema *schema, const CallArgs *call, const Fault *fault, const Value *args)
{
        if (fault->kind == FAULT_MEMORY)
                return fail_memory();
        if (fault->kind == FAULT_TOO_MANY)
                return fail_too_many(schema, call);
        if (fault->kind == FAULT_UNKNOWN)
                return failure_at_argument(fail(STATUS_VALUE, "%s() got an unexpected keyword argument '%s'",
                                                schema->name, fault->keyword),
                                           fault->keyword);
        if (fault->kind == FAULT_MISSING)
                return fail_missing(schema, fault->arg, args);
        const SchemaArg *arg = &schema->args[fault->arg];
        const char *name = shown_name(arg);
        char position[32] = "";
        if (fault->positional)
                snprintf(position, sizeof(position), " (position %u)", fault->arg + 1);
        Status status;
        if (fault->kind == FAULT_TWICE)
                status = fail(STATUS_VALUE, "%s() got multiple values for argument '%s'", schema->name, name);
        else if (fault->kind == FAULT_TYPE)
                status = fail(STATUS_VALUE, "%s(): argument '%s'%s must be %s, not %s", schema->name, name,
                              position, type_words(arg), value_kind_name(fault->found));
        else
                status = fail(STATUS_VALUE,
                              "%s(): argument '%s'%s must be %s, but found element of type %s at pos %u",
                              schema->name, name, position, type_words(arg), value_kind_name(fault->found),
                              fault->item);
        return failure_at_argument(status, arg->name);
}

Status schema_bind(const Schema *schema, const CallArgs *call, BindMode mode, Value *out_args,
                   uint64_t *out_given)
{
        Fault fault = bind(schema, call, mode, true, out_args, out_given);
        if (__builtin_expect(fault.kind != FAULT_NONE, 0))
                return fail_fault(schema, call, &fault, out_args);
        return STATUS_OK;
}

void schema_release(const Schema *schema, Value *args, uint64_t given)
{
        if ((given & SCHEMA_GATHERED) == 0)
                return;
        value_clear(&args[schema->n_positional - 1]);
}
