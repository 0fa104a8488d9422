// SPDX-License-Identifier: Apache-2.0
// match.c: which nodes a rule means, and the identity of what rules make.
#include <criterion/criterion.h>
#include <string.h>
#include "core/edit/content.h"
#include "core/edit/match.h"
#include "tests/edit/recipe.h"

static const char document[] =
        "{'format': 'fx/1', 'nodes': ["
        "{'op': 'placeholder', 'name': 'x', 'target': 'x'},"
        "{'op': 'call_function', 'name': 's1', 'target': 'torch.sigmoid', 'args': ['%x']},"
        "{'op': 'call_method', 'name': 's2', 'target': 'sigmoid', 'args': ['%s1']},"
        "{'op': 'call_function', 'name': 's3', 'target': 'torch.ops.aten.sigmoid.default', 'args': ['%s2']},"
        "{'op': 'call_module', 'name': 's4', 'target': 'enc.0.act', 'args': ['%s3']},"
        "{'op': 'call_function', 'name': 's5', 'target': 'F.sigmoid', 'args': ['%s4']},"
        "{'op': 'call_function', 'name': 'add', 'target': 'operator.add', 'args': ['%s5', '%x']},"
        "{'op': 'call_function', 'name': 'add_1', 'target': 'torch.ops.aten.add.Tensor', 'args': ['%add', "
        "2]},"
        "{'op': 'call_function', 'name': 'add_2', 'target': 'torch.ops.aten.add.Scalar', 'args': ['%add_1', "
        "2]},"
        "{'op': 'call_module', 'name': 'fc', 'target': 'enc.1.fc', 'args': ['%add_2']},"
        "{'op': 'call_function', 'name': 'linear', 'target': 'F.linear', 'args': ['%fc', '%x']},"
        "{'op': 'call_module', 'name': 'norm', 'target': 'norm', 'args': ['%linear']},"
        "{'op': 'call_module', 'name': 'gelu', 'target': 'gelu', 'args': ['%norm']},"
        "{'op': 'call_function', 'name': 'l1_loss', 'target': 'F.l1_loss', 'args': ['%gelu', '%x']},"
        "{'op': 'output', 'name': 'output', 'target': 'output', 'args': ['%l1_loss']}],"
        "'modules': {'enc.0.act': {'type': 'torch.nn.Sigmoid'}, 'gelu': {'type': 'torch.nn.GELU'},"
        "'enc.1.fc': {'type': 'torch.nn.Linear', 'config': {'in_features': 1, 'out_features': 1, 'bias': "
        "false}},"
        "'norm': {'type': 'torch.nn.BatchNorm1d', 'config': {'num_features': 1, 'affine': false}}},"
        "'state': {'enc.1.fc.weight': {'dtype': 'float32', 'shape': [1, 1], 'data': [1]},"
        "'norm.running_mean': {'dtype': 'float32', 'shape': [1], 'data': [0]},"
        "'norm.running_var': {'dtype': 'float32', 'shape': [1], 'data': [1]}}}";

static Edit *open_document(void)
{
        char text[sizeof(document)];
        memcpy(text, document, sizeof(text));
        for (char *at = text; *at != '\0'; at++)
                *at = *at == '\'' ? '"' : *at;
        json_t *json = json_loads(text, 0, NULL);
        cr_assert_not_null(json);
        Graph *graph = recipe_graph(json);
        Edit *edit;
        cr_assert_eq(edit_new(graph, &edit), STATUS_OK);
        graph_unref(graph);
        json_decref(json);
        return edit;
}

// Names of the nodes that match, with a blank behind each.
static void names_of(Edit *edit, const EditMatch *match, char *out, size_t cap)
{
        Node **nodes;
        uint32_t n;
        cr_assert_eq(edit_match(edit, match, &nodes, &n), STATUS_OK, "%s", failure_current()->message);
        out[0] = '\0';
        for (uint32_t i = 0; i < n; i++) {
                strncat(out, nodes[i]->name, cap - strlen(out) - 1);
                strncat(out, " ", cap - strlen(out) - 1);
        }
        free(nodes);
}

Test(edit_match, targets_match_by_what_they_mean)
{
        static const struct {
                const char *target, *names;
        } rows[] = {
                { "torch.sigmoid", "s1 s2 s3 s4 s5 " },
                { "torch.Tensor.sigmoid", "s1 s2 s3 s4 s5 " },
                { "Tensor.sigmoid", "s1 s2 s3 s4 s5 " },
                { "aten.sigmoid.default", "s1 s2 s3 s4 s5 " },
                { "sigmoid", "s1 s2 s3 s4 s5 " },
                { "nn.Sigmoid", "s1 s2 s3 s4 s5 " },
                { "torch.nn.modules.activation.Sigmoid", "s1 s2 s3 s4 s5 " },
                { "torch.nn.functional.sigmoid", "s1 s2 s3 s4 s5 " },
                { "torch.add", "add add_1 add_2 " },
                { "operator.add", "add add_1 add_2 " },
                { "aten.add.Tensor", "add add_1 " },
                { "aten.add.Scalar", "add add_2 " },
                { "aten::linear", "fc linear " },
                { "torch.nn.Linear", "fc linear " },
                { "F.batch_norm", "norm " },
                { "F.gelu", "gelu " },
                { "aten.l1_loss.default", "l1_loss " },
                { "enc.0.act", "s4 " },
                { "x", "x " },
                { "torch.sigmod", "" },
                { "torch.tanh", "" },
        };
        Edit *edit = open_document();
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                char names[200];
                EditMatch match = { .target = rows[i].target, .nth = -1 };
                names_of(edit, &match, names, sizeof(names));
                cr_expect_str_eq(names, rows[i].names, "%s: %s", rows[i].target, names);
        }
        edit_free(edit);
}

Test(edit_match, all_conditions_must_hold)
{
        static const struct {
                EditMatch match;
                const char *names;
        } rows[] = {
                { { .name = "s*", .nth = -1 }, "s1 s2 s3 s4 s5 " },
                { { .name = "*d*_*", .nth = -1 }, "add_1 add_2 " },
                { { .name = "s", .nth = -1 }, "" },
                { { .module = "enc.*", .nth = -1 }, "s4 fc " },
                { { .module = "*.act", .nth = -1 }, "s4 " },
                { { .module_type = "nn.Linear", .nth = -1 }, "fc " },
                { { .has_op = true, .op = OP_CALL_METHOD, .nth = -1 }, "s2 " },
                { { .has_op = true, .op = OP_CALL_FUNCTION, .target = "torch.sigmoid", .nth = -1 },
                  "s1 s3 s5 " },
                { { .has_op = true, .op = OP_CALL_FUNCTION, .target = "torch.sigmoid", .nth = 1 }, "s3 " },
                { { .target = "torch.sigmoid", .nth = 5 }, "" },
                { { .target = "torch.sigmoid", .name = "*", .module = "*", .nth = 0 }, "s4 " },
        };
        Edit *edit = open_document();
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                char names[200];
                names_of(edit, &rows[i].match, names, sizeof(names));
                cr_expect_str_eq(names, rows[i].names, "row %zu: %s", i, names);
        }
        edit_free(edit);
}

Test(edit_match, no_hit_says_what_the_graph_calls)
{
        Edit *edit = open_document();
        Node *made;
        EditNew new = { .op = OP_CALL_FUNCTION, .target = "torch.sigmoid" };
        cr_assert_eq(edit_insert_after(edit, edit_node(edit, "s1"), &new, &made), STATUS_OK);
        EditMatch match = { .target = "torch.sigmod", .name = "q*", .nth = 3 };
        cr_expect_eq(edit_no_match(edit, &match), STATUS_VALUE);
        cr_expect_str_eq(failure_current()->message,
                         "no node has target torch.sigmod and name q* and nth 3; this graph calls: "
                         "torch.sigmoid \xC3\x97"
                         "2, sigmoid, aten.sigmoid.default, enc.0.act, "
                         "torch.nn.functional.sigmoid, _operator.add, aten.add.Tensor, aten.add.Scalar, "
                         "enc.1.fc, torch._C._nn.linear, norm, gelu, torch.nn.functional.l1_loss");
        edit_free(edit);
}

Test(edit_match, a_star_crosses_dots)
{
        cr_expect(glob_matches("*", ""));
        cr_expect(glob_matches("a*c", "a.b.c"));
        cr_expect(glob_matches("*ab*ab", "abxabab"));
        cr_expect_not(glob_matches("*ab*ab", "abxaba"));
        cr_expect_not(glob_matches("a?c", "abc"));
        cr_expect_not(glob_matches("", "a"));
        char pattern[801], text[4001];
        memset(pattern, 0, sizeof(pattern));
        for (int i = 0; i < 800; i += 2)
                memcpy(pattern + i, "*a", 2);
        pattern[799] = 'b';
        memset(text, 'a', 4000);
        text[4000] = '\0';
        cr_expect_not(glob_matches(pattern, text), "and comes to an end");
}

Test(edit_match, contents_differ_with_each_of_their_parts)
{
        const uint64_t base[2][4] = { { 1, 2, 3, 4 }, { 1, 2, 3, 5 } };
        uint64_t ids[6][4];
        edit_content(base[0], "ab", 2, NULL, 0, ids[0]);
        edit_content(base[1], "ab", 2, NULL, 0, ids[1]);
        edit_content(base[0], "abc", 3, NULL, 0, ids[2]);
        edit_content(base[0], "ab", 2, base, 1, ids[3]);
        edit_content(base[0], "ab", 2, base, 2, ids[4]);
        edit_content(base[0], "ab", 2, base + 1, 1, ids[5]);
        for (int i = 0; i < 6; i++) {
                for (int k = 0; k < i; k++)
                        cr_expect_neq(memcmp(ids[i], ids[k], sizeof(ids[i])), 0, "%d and %d", i, k);
        }
        uint64_t again[4];
        edit_content(base[0], "ab", 2, base, 2, again);
        cr_expect_eq(memcmp(again, ids[4], sizeof(again)), 0);
}
