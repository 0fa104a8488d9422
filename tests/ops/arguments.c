// SPDX-License-Identifier: Apache-2.0
// arguments.c: a table of argument positions agrees with every schema of its families, or fails.
#include <criterion/criterion.h>
#include <string.h>
#include "core/ops/arguments_check.h"
#include "core/ops/op.h"

static void open_all(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
}

TestSuite(arguments, .init = open_all);

static const Schema *find(const char *name, uint32_t index)
{
        const Overload *overload = index == 0 ? op_find(name) : NULL;
        return overload == NULL ? NULL : &overload->schema;
}

static Status check(const char *schemas, ArgumentRow row)
{
        const ArgumentRow rows[] = { { .schemas = schemas }, row };
        return arguments_check("table", rows, 2, find);
}

static void fails_with(const char *words, const char *schemas, ArgumentRow row)
{
        cr_assert_eq(check(schemas, row), STATUS_INTERNAL, "%s", words);
        cr_assert_not_null(strstr(failure_current()->message, words), "%s", failure_current()->message);
}

Test(arguments, a_name_that_every_schema_of_the_family_has_there_is_right)
{
        cr_assert_eq(check("aten::dot aten::vdot", (ArgumentRow){ .position = 1, .names = "other|tensor" }),
                     STATUS_OK);
}

Test(arguments, another_name_at_the_position_fails)
{
        fails_with("argument 1 of aten::dot(", "aten::vdot aten::dot",
                   (ArgumentRow){ .position = 1, .names = "other" });
        fails_with("is dim, not di", "aten::cat", (ArgumentRow){ .position = 1, .names = "di" });
}

Test(arguments, a_schema_that_ends_before_the_position_fails_unless_the_row_is_optional)
{
        ArgumentRow row = { .position = 1, .names = "dim" };
        fails_with("aten::vstack(Tensor[] tensors) -> Tensor has no argument 1, dim",
                   "aten::cat aten::vstack", row);
        row.optional = true;
        cr_assert_eq(check("aten::cat aten::vstack", row), STATUS_OK);
}

Test(arguments, an_optional_argument_is_there_sometimes)
{
        ArgumentRow row = { .position = 1, .names = "dim", .optional = true };
        fails_with("every schema has it", "aten::cat aten::stack", row);
        fails_with("no schema has it", "aten::hstack aten::vstack", row);
}

Test(arguments, a_family_of_an_unknown_schema_fails)
{
        fails_with("names aten::nothing, which is no schema", "aten::cat aten::nothing",
                   (ArgumentRow){ .position = 1, .names = "dim" });
}
