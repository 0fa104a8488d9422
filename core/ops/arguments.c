// SPDX-License-Identifier: Apache-2.0
// arguments.c: the positions of arguments.def against the schemas.
#include "core/ops/arguments_check.h"

#include <string.h>
#include "core/ops/op.h"

static const ArgumentRow rows[] = {
#define FAMILY(schemas_)                 { .schemas = schemas_ },
#define ARG(constant, position_, names_) { .position = position_, .names = names_ },
#define OPTIONAL_ARG(constant, position_, names_)                                                            \
        { .position = position_, .names = names_, .optional = true },
#include "core/ops/arguments.def"
#undef FAMILY
#undef ARG
#undef OPTIONAL_ARG
};

typedef struct Check {
        const char *table;
        FindSchema find;
} Check;

static bool is_among(const char *name, const char *names)
{
        size_t n = strlen(name);
        for (const char *at = names; *at != '\0'; at += strspn(at, "|")) {
                size_t length = strcspn(at, "|");
                if (length == n && memcmp(at, name, n) == 0)
                        return true;
                at += length;
        }
        return false;
}

typedef struct Found {
        uint32_t n, n_lacking; // schemas; of them, without the argument
} Found;

static Status check_schema(const Check *check, const Schema *schema, const ArgumentRow *row, Found *found)
{
        found->n++;
        if ((uint32_t)row->position >= schema->n_args) {
                found->n_lacking++;
                return row->optional ? STATUS_OK
                                     : fail(STATUS_INTERNAL, "%s: %s has no argument %d, %s", check->table,
                                            schema->text, row->position, row->names);
        }
        const char *argument = schema->args[row->position].name;
        return is_among(argument, row->names)
                       ? STATUS_OK
                       : fail(STATUS_INTERNAL, "%s: argument %d of %s is %s, not %s", check->table,
                              row->position, schema->text, argument, row->names);
}

static Status check_name(const Check *check, const char *name, const ArgumentRow *row, Found *found)
{
        const Schema *schema = check->find(name, 0);
        if (schema == NULL)
                return fail(STATUS_INTERNAL, "%s names %s, which is no schema", check->table, name);
        for (uint32_t i = 1; schema != NULL; i++) {
                TRY(check_schema(check, schema, row, found));
                schema = check->find(name, i);
        }
        return STATUS_OK;
}

static Status check_row(const Check *check, const char *schemas, const ArgumentRow *row)
{
        Found found = { 0 };
        for (const char *at = schemas; *at != '\0'; at += strspn(at, " ")) {
                char name[96];
                size_t n = strcspn(at, " ");
                if (n >= sizeof(name))
                        return fail(STATUS_INTERNAL, "%s: a name is too long", check->table);
                memcpy(name, at, n);
                name[n] = '\0';
                TRY(check_name(check, name, row, &found));
                at += n;
        }
        if (row->optional && (found.n_lacking == 0 || found.n_lacking == found.n))
                return fail(STATUS_INTERNAL, "%s: argument %d, %s, of %s is not optional: %s", check->table,
                            row->position, row->names, schemas,
                            found.n_lacking == 0 ? "every schema has it" : "no schema has it");
        return STATUS_OK;
}

Status arguments_check(const char *table, const ArgumentRow *given, size_t n_rows, FindSchema find)
{
        const Check check = { .table = table, .find = find };
        const char *schemas = "";
        for (size_t i = 0; i < n_rows; i++) {
                if (given[i].schemas != NULL)
                        schemas = given[i].schemas;
                else
                        TRY(check_row(&check, schemas, &given[i]));
        }
        return STATUS_OK;
}

static const Schema *find_overload(const char *name, uint32_t index)
{
        const Overload *overload = index == 0 ? op_find(name) : NULL;
        return overload == NULL ? NULL : &overload->schema;
}

Status op_arguments_check(void)
{
        return arguments_check("core/ops/arguments.def", rows, ARRAY_LENGTH(rows), find_overload);
}
