// SPDX-License-Identifier: Apache-2.0
// arguments.c: the positions of arguments.def against the schemas.
#include <string.h>
#include "core/ops/op.h"

typedef struct ArgumentRow {
        const char *overloads; // of a family; NULL: an argument of the family before
        int position;
        const char *names;
} ArgumentRow;

static const ArgumentRow rows[] = {
#define FAMILY(overloads)             { overloads, 0, NULL },
#define ARG(constant, position, name) { NULL, position, name },
#include "core/ops/arguments.def"
#undef FAMILY
#undef ARG
};

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

static Status check_overload(const char *name, const ArgumentRow *row, bool *inout_found)
{
        const Overload *overload = op_find(name);
        if (overload == NULL)
                return fail(STATUS_INTERNAL, "arguments.def names %s, which is no overload", name);
        if ((uint32_t)row->position >= overload->schema.n_args)
                return STATUS_OK;
        *inout_found = true;
        const char *argument = overload->schema.args[row->position].name;
        return is_among(argument, row->names)
                       ? STATUS_OK
                       : fail(STATUS_INTERNAL, "argument %d of %s is %s, not %s as arguments.def says",
                              row->position, name, argument, row->names);
}

static Status check_row(const char *overloads, const ArgumentRow *row)
{
        bool found = false;
        for (const char *at = overloads; *at != '\0'; at += strspn(at, " ")) {
                char name[96];
                size_t n = strcspn(at, " ");
                if (n >= sizeof(name))
                        return fail(STATUS_INTERNAL, "arguments.def: a name is too long");
                memcpy(name, at, n);
                name[n] = '\0';
                TRY(check_overload(name, row, &found));
                at += n;
        }
        return found ? STATUS_OK
                     : fail(STATUS_INTERNAL, "arguments.def: no overload has an argument %s", row->names);
}

Status op_arguments_check(void)
{
        const char *overloads = "";
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                if (rows[i].overloads != NULL)
                        overloads = rows[i].overloads;
                else
                        TRY(check_row(overloads, &rows[i]));
        }
        return STATUS_OK;
}
