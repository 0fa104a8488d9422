// SPDX-License-Identifier: Apache-2.0
// cases.c: edits give the graphs that PyTorch's own edits give (tests/edit/cases.json).
#include <criterion/criterion.h>
#include <string.h>
#include "core/graph/print.h"
#include "tests/edit/recipe.h"

// str(graph) of the working copy, which need not be one that can run.
static char *printed(Edit *edit)
{
        Text text = { 0 };
        text_add(&text, "graph():");
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node)) {
                text_add(&text, "\n    ");
                node_print(node, &text);
        }
        char *all = text_take(&text);
        cr_assert_not_null(all);
        return all;
}

static void check_case(const json_t *entry)
{
        const char *name = json_string_value(json_object_get(entry, "name"));
        const char *want = json_string_value(json_object_get(entry, "want"));
        const char *error = json_string_value(json_object_get(entry, "error"));
        const json_t *steps = json_object_get(entry, "steps");
        Graph *base = recipe_graph(json_object_get(entry, "graph"));
        Edit *edit;
        cr_assert_eq(edit_new(base, &edit), STATUS_OK, "%s: %s", name, failure_current()->message);
        Status status = STATUS_OK;
        for (size_t i = 0; i < json_array_size(steps) && status == STATUS_OK; i++)
                status = recipe_step(edit, json_array_get(steps, i));
        if (error != NULL) {
                cr_expect_eq(status, STATUS_LINT, "%s", name);
                cr_expect_str_eq(failure_current()->message, error, "%s", name);
        } else {
                cr_assert_eq(status, STATUS_OK, "%s: %s", name, failure_current()->message);
                char *text = printed(edit);
                cr_expect_str_eq(text, want, "%s:\n%s\nnot\n%s", name, text, want);
                free(text);
        }
        edit_free(edit);
        graph_unref(base);
}

Test(edit_cases, edits_give_the_graphs_that_pytorch_gives)
{
        json_error_t failure;
        json_t *cases = json_load_file(CASES_FILE, 0, &failure), *entry;
        cr_assert_not_null(cases, "%s", failure.text);
        cr_assert_gt(json_array_size(cases), 20);
        size_t i;
        json_array_foreach(cases, i, entry)
        {
                check_case(entry);
        }
        json_decref(cases);
}
