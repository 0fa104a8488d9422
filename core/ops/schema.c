// SPDX-License-Identifier: Apache-2.0
// schema.c: one pass over a schema string, left to right, into an arena. Defaults are Values whose
// containers live in the arena too: they start with one reference that nobody drops, so that
// borrowing and counting them is safe and freeing the arena frees them.
#include "core/ops/schema.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

typedef struct SchemaCursor {
        const char *text, *at;
        Arena *arena;
} SchemaCursor;

static Status cursor_fail(const SchemaCursor *cursor, const char *wanted)
{
        return fail(STATUS_INTERNAL, "schema \"%s\": expected %s at byte %d", cursor->text, wanted,
                    (int)(cursor->at - cursor->text));
}

static void skip_space(SchemaCursor *cursor)
{
        while (*cursor->at == ' ')
                cursor->at++;
}

static bool accept(SchemaCursor *cursor, const char *token)
{
        skip_space(cursor);
        size_t n = strlen(token);
        if (strncmp(cursor->at, token, n) != 0)
                return false;
        cursor->at += n;
        return true;
}

static Status expect(SchemaCursor *cursor, const char *token)
{
        return accept(cursor, token) ? STATUS_OK : cursor_fail(cursor, token);
}

static size_t word_length(const char *at)
{
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || at[n] == '_')
                n++;
        return n;
}

static Status take_word(SchemaCursor *cursor, const char **out_word)
{
        skip_space(cursor);
        size_t n = word_length(cursor->at);
        if (n == 0)
                return cursor_fail(cursor, "a name");
        const char *word = arena_text(cursor->arena, cursor->at, n);
        if (word == NULL)
                return fail_memory();
        cursor->at += n;
        *out_word = word;
        return STATUS_OK;
}

// ---- types ----
static const struct {
        const char *name;
        ArgType type;
} type_names[] = {
        { "Tensor", ARG_TENSOR },
        { "Scalar", ARG_SCALAR },
        { "number", ARG_SCALAR },
        { "int", ARG_INT },
        { "SymInt", ARG_INT },
        { "float", ARG_FLOAT },
        { "SymFloat", ARG_FLOAT },
        { "bool", ARG_BOOL },
        { "SymBool", ARG_BOOL },
        { "str", ARG_STR },
        { "ScalarType", ARG_DTYPE },
        { "Layout", ARG_LAYOUT },
        { "Device", ARG_DEVICE },
        { "MemoryFormat", ARG_MEMORY_FORMAT },
        { "Generator", ARG_GENERATOR },
        { "Dimname", ARG_STR },
        { "Any", ARG_ANY },
        { "any", ARG_ANY },
        { "Graph", ARG_GRAPH },
};

static Status take_type(SchemaCursor *cursor, SchemaArg *arg)
{
        skip_space(cursor);
        size_t n = word_length(cursor->at);
        size_t row = 0;
        while (row < ARRAY_LENGTH(type_names) &&
               (strlen(type_names[row].name) != n || memcmp(type_names[row].name, cursor->at, n) != 0))
                row++;
        if (n == 0 || row == ARRAY_LENGTH(type_names))
                return cursor_fail(cursor, "a type");
        arg->type = type_names[row].type;
        cursor->at += n;
        for (;;) {
                if (*cursor->at == '(') { // alias set: (a), (a!), (a -> *)
                        const char *end = strchr(cursor->at, ')');
                        if (end == NULL)
                                return cursor_fail(cursor, ")");
                        arg->is_alias = true;
                        arg->is_written |= memchr(cursor->at, '!', (size_t)(end - cursor->at)) != NULL;
                        cursor->at = end + 1;
                } else if (*cursor->at == '?') {
                        arg->optional = true;
                        cursor->at++;
                } else if (*cursor->at == '[') {
                        char *end;
                        arg->item_optional = arg->optional;
                        arg->optional = false;
                        arg->is_list = true;
                        arg->list_size = (int)strtol(cursor->at + 1, &end, 10);
                        cursor->at = end;
                        TRY(expect(cursor, "]"));
                } else {
                        return STATUS_OK;
                }
        }
}

// ---- defaults ----
static const struct {
        const char *name;
        Value value;
} default_words[] = {
        { "None", { .kind = VALUE_NONE } },
        { "True", { .kind = VALUE_BOOL, .b = true } },
        { "False", { .kind = VALUE_BOOL, .b = false } },
        { "Mean", { .kind = VALUE_INT, .i = 1 } },
        { "Sum", { .kind = VALUE_INT, .i = 2 } },
        { "contiguous_format", { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS } },
        { "preserve_format", { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_PRESERVE } },
        { "float", { .kind = VALUE_DTYPE, .dtype = DTYPE_F32 } },
        { "double", { .kind = VALUE_DTYPE, .dtype = DTYPE_F64 } },
        { "long", { .kind = VALUE_DTYPE, .dtype = DTYPE_I64 } },
        { "bool", { .kind = VALUE_DTYPE, .dtype = DTYPE_BOOL } },
        { "inf", { .kind = VALUE_FLOAT, .f = HUGE_VAL } },
};

static Status take_number(SchemaCursor *cursor, Value *out_value)
{
        if (accept(cursor, "-inf")) {
                *out_value = value_float(-HUGE_VAL);
                return STATUS_OK;
        }
        char *end_int, *end_float;
        long long whole = strtoll(cursor->at, &end_int, 10);
        double real = strtod(cursor->at, &end_float);
        if (end_float == cursor->at)
                return cursor_fail(cursor, "a default value");
        *out_value = end_float > end_int ? value_float(real) : value_int(whole);
        cursor->at = end_float;
        return STATUS_OK;
}

static Status take_text(SchemaCursor *cursor, Value *out_value)
{
        char quote = *cursor->at;
        const char *end = strchr(cursor->at + 1, quote);
        if (end == NULL)
                return cursor_fail(cursor, "a closing quote");
        size_t n = (size_t)(end - cursor->at) - 1;
        Str *str = arena_alloc(cursor->arena, sizeof(*str) + n + 1);
        if (str == NULL)
                return fail_memory();
        refcount_init(&str->ref);
        str->n = (uint32_t)n;
        memcpy(str->text, cursor->at + 1, n);
        cursor->at = end + 1;
        *out_value = (Value){ .kind = VALUE_STR, .str = str };
        return STATUS_OK;
}

static Status take_scalar_default(SchemaCursor *cursor, Value *out_value)
{
        skip_space(cursor);
        if (*cursor->at == '\'' || *cursor->at == '"')
                return take_text(cursor, out_value);
        size_t n = word_length(cursor->at);
        for (size_t i = 0; i < ARRAY_LENGTH(default_words); i++) {
                if (strlen(default_words[i].name) == n && memcmp(default_words[i].name, cursor->at, n) == 0) {
                        cursor->at += n;
                        *out_value = default_words[i].value;
                        return STATUS_OK;
                }
        }
        return take_number(cursor, out_value);
}

static Status take_default(SchemaCursor *cursor, SchemaArg *arg)
{
        enum { LIST_CAP = 16 };
        arg->has_default = true;
        if (!accept(cursor, "["))
                return take_scalar_default(cursor, &arg->default_value);
        Value items[LIST_CAP];
        uint32_t n = 0;
        while (!accept(cursor, "]")) {
                if (n == LIST_CAP || (n > 0 && !accept(cursor, ",")))
                        return cursor_fail(cursor, "]");
                TRY(take_scalar_default(cursor, &items[n]));
                n++;
        }
        Seq *seq = arena_alloc(cursor->arena, sizeof(*seq) + n * sizeof(Value));
        if (seq == NULL)
                return fail_memory();
        refcount_init(&seq->ref);
        seq->n = n;
        memcpy(seq->items, items, n * sizeof(Value));
        arg->default_value = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

// ---- the whole ----
static Status take_name(SchemaCursor *cursor, Schema *schema)
{
        TRY(take_word(cursor, &schema->ns));
        TRY(expect(cursor, "::"));
        TRY(take_word(cursor, &schema->name));
        schema->overload = "default";
        return accept(cursor, ".") ? take_word(cursor, &schema->overload) : STATUS_OK;
}

static Status take_args(SchemaCursor *cursor, Schema *schema)
{
        SchemaArg args[SCHEMA_MAX_ARGS];
        uint32_t n = 0;
        bool kwarg_only = false;
        TRY(expect(cursor, "("));
        while (!accept(cursor, ")")) {
                if (n == SCHEMA_MAX_ARGS || ((n > 0 || kwarg_only) && !accept(cursor, ",")))
                        return cursor_fail(cursor, ")");
                bool star = accept(cursor, "*");
                skip_space(cursor);
                if (star && (*cursor->at == ',' || *cursor->at == ')')) {
                        kwarg_only = true;
                        continue;
                }
                SchemaArg *arg = &args[n++];
                *arg = (SchemaArg){ .kwarg_only = kwarg_only,
                                    .varargs = star,
                                    .default_value = value_none() };
                TRY(take_type(cursor, arg));
                TRY(take_word(cursor, &arg->name));
                if (accept(cursor, "="))
                        TRY(take_default(cursor, arg));
                schema->n_tensor_args += arg->type == ARG_TENSOR;
        }
        schema->n_args = n;
        for (uint32_t i = 0; i < n && !args[i].kwarg_only; i++)
                schema->n_positional = i + 1;
        schema->args = arena_array(cursor->arena, n == 0 ? 1 : n, sizeof(*args));
        if (schema->args == NULL)
                return fail_memory();
        memcpy(schema->args, args, n * sizeof(*args));
        return STATUS_OK;
}

enum { RETURN_CAP = 16 };

typedef struct Returns {
        SchemaReturn types[RETURN_CAP];
        const char *names[RETURN_CAP];
        uint32_t n, n_named;
} Returns;

static Status take_return(SchemaCursor *cursor, Returns *returns)
{
        SchemaArg type = { 0 };
        TRY(take_type(cursor, &type));
        skip_space(cursor);
        returns->types[returns->n] = (SchemaReturn){ type.type, type.is_list, type.is_alias };
        returns->names[returns->n++] = NULL;
        return STATUS_OK;
}

// "(Tensor values, Tensor indices)"; the bracket is open.
static Status take_return_tuple(SchemaCursor *cursor, Returns *returns)
{
        while (!accept(cursor, ")")) {
                if (returns->n == RETURN_CAP || (returns->n > 0 && !accept(cursor, ",")))
                        return cursor_fail(cursor, ")");
                TRY(take_return(cursor, returns));
                if (word_length(cursor->at) == 0)
                        continue;
                TRY(take_word(cursor, &returns->names[returns->n - 1]));
                returns->n_named++;
        }
        return STATUS_OK;
}

static Status take_returns(SchemaCursor *cursor, Schema *schema)
{
        Returns returns = { .n = 0 };
        TRY(expect(cursor, "->"));
        bool tuple = accept(cursor, "(");
        TRY(tuple ? take_return_tuple(cursor, &returns) : take_return(cursor, &returns));
        uint32_t n = schema->n_returns = returns.n;
        schema->returns = n == 0                               ? RETURN_NOTHING
                          : n > 1                              ? RETURN_TUPLE
                          : !tuple && returns.types[0].is_list ? RETURN_LIST
                                                               : RETURN_ONE;
        SchemaReturn *types = arena_array(cursor->arena, MAX(n, 1u), sizeof(*types));
        const char **names = arena_array(cursor->arena, MAX(n, 1u), sizeof(*names));
        if (types == NULL || names == NULL)
                return fail_memory();
        memcpy(types, returns.types, n * sizeof(*types));
        memcpy(names, returns.names, n * sizeof(*names));
        schema->return_types = types;
        schema->return_names = n > 1 && returns.n_named == n ? names : NULL;
        return STATUS_OK;
}

Status schema_parse(const char *text, Arena *arena, Schema *out_schema)
{
        SchemaCursor cursor = { .text = text, .at = text, .arena = arena };
        Schema schema = { .text = text };
        TRY(take_name(&cursor, &schema));
        TRY(take_args(&cursor, &schema));
        TRY(take_returns(&cursor, &schema));
        skip_space(&cursor);
        if (*cursor.at != '\0')
                return cursor_fail(&cursor, "the end");
        *out_schema = schema;
        return STATUS_OK;
}
