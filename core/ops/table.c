// SPDX-License-Identifier: Apache-2.0
// table.c: all rows of all groups (ops.def), their schemas parsed, and the in-place twins that
// OP_INPLACE asks for and PyTorch has (twins.def). Built once before threads start and never freed;
// read-only afterwards. One map: "aten::add.Tensor" -> overload; other spellings are brought to
// that form first.
#include "core/ops/op.h"

#include <stdio.h>
#include <string.h>
#include "core/base/map.h"
#include "core/ops/arguments.h"

#define OP_GROUP(name) &name##_group,
static const OpGroup *const groups[] = {
#include "core/ops/ops.def"
        NULL,
};
#undef OP_GROUP

static const char *const twins[] = {
#define TWIN(name) name,
#include "core/ops/twins.def"
#undef TWIN
};

typedef struct OverloadList {
        const Overload **items;
        uint32_t n, capacity;
} OverloadList;

static struct {
        bool ready;
        Arena arena;
        Overload **overloads;
        uint32_t n, capacity;
        StringMap by_name;                  // "aten::add.Tensor", "aten::relu"
        StringMap by_base;                  // "aten::add" -> OverloadList
        const Overload *by_role[ROLE_CONV]; // of the roles that one row has
} table;

static Status table_add_base(Overload *overload)
{
        const Schema *schema = &overload->schema;
        char *base = arena_format(&table.arena, "%s::%s", schema->ns, schema->name);
        if (base == NULL)
                return fail_memory();
        OverloadList *list = string_map_get(&table.by_base, base);
        if (list == NULL) {
                list = arena_alloc(&table.arena, sizeof(*list));
                if (list == NULL)
                        return fail_memory();
                TRY(string_map_set(&table.by_base, base, list, NULL));
        }
        TRY(array_reserve(&list->items, &list->capacity, list->n + 1, sizeof(*list->items)));
        list->items[list->n++] = overload;
        return STATUS_OK;
}

// A row may also be written as the in-place form it is: `transpose_`, `copy_`. Operators of Python
// have other names for theirs: `__ior__`.
static bool is_inplace(const Schema *schema)
{
        size_t n = strlen(schema->name);
        bool is_named = n > 1 && schema->name[n - 1] == '_' && schema->name[n - 2] != '_';
        return (is_named || strncmp(schema->name, "__i", 3) == 0) && schema->n_args > 0 &&
               schema->args[SELF].is_written;
}

static Status table_add(const OpDef *op, const char *schema_text)
{
        Overload *overload = arena_alloc(&table.arena, sizeof(*overload));
        if (overload == NULL)
                return fail_memory();
        overload->op = op;
        TRY(schema_parse(schema_text, &table.arena, &overload->schema));
        overload->inplace = is_inplace(&overload->schema);
        const Schema *schema = &overload->schema;
        bool is_default = strcmp(schema->overload, "default") == 0;
        overload->name = arena_format(&table.arena, "%s::%s%s%s", schema->ns, schema->name,
                                      is_default ? "" : ".", is_default ? "" : schema->overload);
        overload->target =
                arena_format(&table.arena, "torch.ops.%s.%s.%s", schema->ns, schema->name, schema->overload);
        if (overload->name == NULL || overload->target == NULL)
                return fail_memory();
        void *old = NULL;
        TRY(string_map_set(&table.by_name, overload->name, overload, &old));
        if (old != NULL)
                return fail(STATUS_INTERNAL, "operator %s stands twice in the table", overload->name);
        TRY(array_reserve(&table.overloads, &table.capacity, table.n + 1, sizeof(Overload *)));
        table.overloads[table.n++] = overload;
        return table_add_base(overload);
}

// "aten::add.Tensor(Tensor self, ...) -> Tensor" -> "aten::add_.Tensor(Tensor(a!) self, ...) ->
// Tensor(a!)", "aten::__or__.Tensor" -> "aten::__ior__.Tensor". In-place forms always call it self,
// also where the functional one says input.
static Status twin_schema(const char *text, const char **out_text)
{
        size_t name_end = strcspn(text, ".(");
        const char *open = strchr(text, '(');
        const char *arrow = strstr(text, " -> ");
        if (open == NULL || arrow == NULL || strncmp(open, "(Tensor", 7) != 0)
                return fail(STATUS_INTERNAL,
                            "schema \"%s\" has no in-place twin: its first argument is no Tensor", text);
        const char *rest = open + 7;
        if (*rest == '(')
                rest = strchr(rest, ')') + 1;
        rest += strcspn(rest, ",)");
        static const char of_python[] = "aten::__";
        size_t i_at = strncmp(text, of_python, strlen(of_python)) == 0 ? strlen(of_python) : name_end;
        char *twin = arena_format(&table.arena, "%.*s%s%.*s%.*s(Tensor(a!) self%.*s -> Tensor(a!)", (int)i_at,
                                  text, i_at < name_end ? "i" : "_", (int)(name_end - i_at), text + i_at,
                                  (int)(open - text - (ptrdiff_t)name_end), text + name_end,
                                  (int)(arrow - rest), rest);
        if (twin == NULL)
                return fail_memory();
        *out_text = twin;
        return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(a, *(const char *const *)b);
}

// `schema` begins "aten::abs_(" or "aten::add_.Tensor(".
static Status pytorch_has(const char *schema, bool *out_has)
{
        const char *name = arena_format(&table.arena, "%.*s", (int)strcspn(schema, "("), schema);
        if (name == NULL)
                return fail_memory();
        *out_has = bsearch(name, twins, ARRAY_LENGTH(twins), sizeof(twins[0]), compare_names) != NULL;
        return STATUS_OK;
}

// The row itself was added last.
static Status table_add_twin(const OpDef *op)
{
        const char *twin = NULL;
        bool exists = false;
        TRY(twin_schema(op->schema, &twin));
        TRY(pytorch_has(twin, &exists));
        if (!exists)
                return STATUS_OK;
        const Overload *functional = table.overloads[table.n - 1];
        TRY(table_add(op, twin));
        table.overloads[table.n - 1]->twin_of = functional;
        return STATUS_OK;
}

// Roles that one row has: each exactly once.
static Status table_add_roles(void)
{
        for (uint32_t i = 0; i < table.n; i++) {
                const Overload *overload = table.overloads[i];
                OpRole role = overload->op->role;
                if (role == ROLE_NONE || role >= ROLE_CONV || overload->schema.text != overload->op->schema)
                        continue;
                if (table.by_role[role] != NULL)
                        return fail(STATUS_INTERNAL, "operators %s and %s have the same role",
                                    table.by_role[role]->name, overload->name);
                table.by_role[role] = overload;
        }
        for (OpRole role = ROLE_NONE + 1; role < ROLE_CONV; role++) {
                if (table.by_role[role] == NULL)
                        return fail(STATUS_INTERNAL, "no operator has role %d", (int)role);
        }
        return STATUS_OK;
}

// A row of its own, because the overloads of the two have different names.
static Status link_transpose(void)
{
        Overload *twin = string_map_get(&table.by_name, "aten::transpose_");
        const Overload *view = string_map_get(&table.by_name, "aten::transpose.int");
        if (twin == NULL || view == NULL)
                return fail(STATUS_INTERNAL, "transpose and transpose_ are missing");
        twin->twin_of = view;
        return STATUS_OK;
}

Status ops_init(void)
{
        if (table.ready)
                return STATUS_OK;
        arena_init(&table.arena, 0);
        for (const OpGroup *const *group = groups; *group != NULL; group++) {
                for (uint32_t i = 0; i < (*group)->n; i++) {
                        const OpDef *op = &(*group)->ops[i];
                        TRY(table_add(op, op->schema));
                        if ((op->flags & OP_INPLACE) != 0)
                                TRY(table_add_twin(op));
                }
        }
        TRY(link_transpose());
        TRY(table_add_roles());
        TRY(op_arguments_check());
        table.ready = true;
        return STATUS_OK;
}

const Overload *op_find(const char *name)
{
        char key[160];
        if (strncmp(name, "torch.ops.", 10) == 0)
                name += 10;
        size_t n = strlen(name);
        if (n > 8 && memcmp(name + n - 8, ".default", 8) == 0)
                n -= 8;
        if (n + 2 > sizeof(key))
                return NULL;
        const char *colons = strstr(name, "::");
        const char *dot = memchr(name, '.', n);
        if (colons != NULL || dot == NULL)
                return string_map_get_n(&table.by_name, name, n);
        int length = snprintf(key, sizeof(key), "%.*s::%.*s", (int)(dot - name), name,
                              (int)(n - (size_t)(dot - name) - 1), dot + 1);
        return string_map_get_n(&table.by_name, key, (size_t)length);
}

const Overload *const *op_overloads(const char *base_name, uint32_t *out_n)
{
        const OverloadList *list = string_map_get(&table.by_base, base_name);
        *out_n = list == NULL ? 0 : list->n;
        return list == NULL ? NULL : list->items;
}

const Overload *op_for(OpRole role)
{
        return role > ROLE_NONE && role < ROLE_CONV ? table.by_role[role] : NULL;
}

OpAlias op_alias(const Overload *overload)
{
        const Schema *schema = &overload->schema;
        bool gives_tensors = false;
        for (uint32_t i = 0; i < schema->n_returns; i++) {
                if (schema->return_types[i].is_alias)
                        return ALIAS_SCHEMA;
                gives_tensors |=
                        schema->return_types[i].type == ARG_TENSOR || schema->return_types[i].type == ARG_ANY;
        }
        bool fresh = (overload->op->traits & (TRAIT_FRESH | TRAIT_KEEPS_ITEMS)) == TRAIT_FRESH;
        return fresh || !gives_tensors ? ALIAS_FRESH : ALIAS_MAY_SHARE;
}

bool op_takes_runtime_scalars(const Overload *overload)
{
        return strcmp(overload->schema.ns, "aten") == 0 ||
               (overload->op->traits & TRAIT_RUNTIME_SCALARS) != 0;
}

const Overload *op_at(uint32_t index)
{
        return index < table.n ? table.overloads[index] : NULL;
}

uint32_t n_ops(void)
{
        return table.n;
}
