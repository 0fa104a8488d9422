// SPDX-License-Identifier: Apache-2.0
// cases.c: edits give the graphs that PyTorch's own edits give (tests/edit/cases.json).
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/steps.h"
#include "core/base/limits.h"
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

// ---- recipes ----

static Edit *chain_of(int n)
{
        char text[4096] = "{\"nodes\": [{\"op\": \"placeholder\", \"name\": \"n0\", \"target\": \"x\"}";
        for (int i = 1; i <= n; i++) {
                size_t at = strlen(text);
                snprintf(text + at, sizeof(text) - at,
                         ", {\"op\": \"call_function\", \"name\": \"n%d\", \"target\": \"torch.relu\", "
                         "\"args\": [\"%%n%d\"]}",
                         i, i - 1);
        }
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at,
                 ", {\"op\": \"output\", \"name\": \"output\", \"args\": [\"%%n%d\"]}]}", n);
        json_t *document = json_loads(text, 0, NULL);
        Graph *graph = recipe_graph(document);
        Edit *edit;
        cr_assert_eq(edit_new(graph, &edit), STATUS_OK);
        graph_unref(graph);
        json_decref(document);
        return edit;
}

static void run_fails(Edit *take_edit, const char *list, Status want, const char *word)
{
        Steps steps = { .edit = take_edit };
        cr_expect_eq(steps_run(&steps, list, strlen(list)), want, "%s", failure_current()->message);
        cr_expect(strstr(failure_current()->message, word) != NULL, "%s", failure_current()->message);
        edit_free(take_edit);
}

Test(edit_cases, steps_look_at_a_bounded_number_of_nodes)
{
        limits.max_edit_visits = 20; // each step: 6 nodes and one more
        Steps steps = { .edit = chain_of(4) };
        cr_expect_eq(steps_run(&steps, "[{\"lint\": true}, {\"lint\": true}]", 32), STATUS_OK);
        edit_free(steps.edit);
        run_fails(chain_of(4), "[{\"lint\": true}, {\"lint\": true}, {\"lint\": true}]", STATUS_TOO_LARGE,
                  "steps[2] (lint): the steps look at more than 20 nodes together (max_edit_visits");
}

static Status find_saved(void *context, const char *name, Text *out)
{
        (void)context;
        if (strcmp(name, "itself") == 0)
                text_add(out, "[{\"pass\": \"itself\"}]");
        else if (strcmp(name, "tidy") == 0)
                text_add(out,
                         "[{\"edit\": \"rename\", \"node\": \"n1\", \"name\": \"first\"}, {\"lint\": true}]");
        else
                return fail(STATUS_NOT_FOUND, "no");
        return text_status(out);
}

Test(edit_cases, saved_lists_are_steps_up_to_a_depth)
{
        const SavedSteps saved = { find_saved, NULL };
        Steps steps = { .edit = chain_of(2), .saved = &saved };
        cr_expect_eq(steps_run(&steps, "[{\"pass\": \"tidy\"}]", 18), STATUS_OK);
        cr_expect_not_null(edit_node(steps.edit, "first"));
        edit_free(steps.edit);
        steps = (Steps){ .edit = chain_of(2), .saved = &saved };
        cr_expect_eq(steps_run(&steps, "[{\"pass\": \"itself\"}]", 20), STATUS_TOO_LARGE);
        edit_free(steps.edit);
        steps = (Steps){ .edit = chain_of(2), .saved = &saved };
        cr_expect_eq(steps_run(&steps, "[{\"pass\": \"other\"}]", 19), STATUS_NOT_FOUND);
        cr_expect(strstr(failure_current()->message, "eliminate_dead_code") != NULL);
        edit_free(steps.edit);
}

static void prints(Edit *take_edit, const char *want)
{
        char *text = printed(take_edit);
        cr_expect_str_eq(text, want, "%s", text);
        free(text);
        edit_free(take_edit);
}

// Two ways from x: n1..n3, and m1..m2, which reads n1.
static Edit *two_ways(void)
{
        static const char document[] =
                "{\"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"},"
                "{\"op\": \"call_function\", \"name\": \"n1\", \"target\": \"torch.relu\", \"args\": "
                "[\"%x\"]},"
                "{\"op\": \"call_function\", \"name\": \"m1\", \"target\": \"torch.neg\", \"args\": "
                "[\"%n1\"]},"
                "{\"op\": \"call_function\", \"name\": \"n2\", \"target\": \"torch.add\", \"args\": "
                "[\"%n1\", \"%x\"]},"
                "{\"op\": \"output\", \"name\": \"output\", \"args\": [[\"%m1\", \"%n2\", \"%n1\"]]}]}";
        json_t *json = json_loads(document, 0, NULL);
        Graph *graph = recipe_graph(json);
        Edit *edit;
        cr_assert_eq(edit_new(graph, &edit), STATUS_OK);
        graph_unref(graph);
        json_decref(json);
        return edit;
}

Test(edit_cases, readers_of_outlined_nodes_move_behind_the_call)
{
        Edit *edit = two_ways();
        Node *nodes[] = { edit_node(edit, "n2"), edit_node(edit, "n1") }, *call;
        cr_assert_eq(edit_outline(edit, nodes, 2, "part", &call), STATUS_OK, "%s",
                     failure_current()->message);
        cr_expect_eq(edit_lint(edit), STATUS_OK, "%s", failure_current()->message);
        prints(edit,
               "graph():\n"
               "    %x : [num_users=1] = placeholder[target=x]\n"
               "    %part : [num_users=2] = call_module[target=part](args = (%x,), kwargs = {})\n"
               "    %getitem : [num_users=2] = call_function[target=operator.getitem](args = (%part, 0), "
               "kwargs = {})\n"
               "    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%part, 1), "
               "kwargs = {})\n"
               "    %m1 : [num_users=1] = call_function[target=torch.neg](args = (%getitem,), kwargs = {})\n"
               "    return [m1, getitem_1, getitem]");
}

Test(edit_cases, nodes_with_a_way_through_others_are_no_call)
{
        Edit *edit = chain_of(3);
        Node *nodes[] = { edit_node(edit, "n1"), edit_node(edit, "n3") }, *call;
        cr_expect_eq(edit_outline(edit, nodes, 2, "part", &call), STATUS_LINT);
        cr_expect_str_eq(failure_current()->message,
                         "Node n3 reads n2, which reads a result of the nodes that are to be one call");
        edit_free(edit);
}
