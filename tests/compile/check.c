// SPDX-License-Identifier: Apache-2.0
// check.c: the walk at upload: it collects what is not supported from all nodes, also behind those
// that fail, and nothing else.
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "core/base/limits.h"
#include "core/compile/check.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(check, .init = start);

#define META(dtype, shape) "'meta': {'dtype': '" dtype "', 'shape': " shape "}"
#define INPUT(name, shape)                                                                                   \
        "{'op': 'placeholder', 'name': '" name "', 'target': '" name "', " META("float32", shape) "}, "
#define OUTPUT(name) "{'op': 'output', 'name': 'output', 'target': 'output', 'args': ['%" name "']}"
#define NODE(name, target, args, meta)                                                                       \
        "{'op': 'call_function', 'name': '" name "', 'target': '" target "', 'args': " args ", " meta "}, "
// Nine different dimensions: one more than an einsum here may have.
#define WIDE(name, of)                                                                                       \
        NODE(name, "torch.ops.aten.einsum.default", "['abcde,efghi->ai', ['%" of "', '%" of "']]",           \
             META("float32", "[1, 1]"))
#define CUBE "[1, 1, 1, 1, 1]"

static void check(const char *nodes, CheckReport *out_report)
{
        Graph *graph = NULL;
        Text text = { 0 };
        text_addf(&text, "{'format': 'fx/1', 'nodes': [%s]}", nodes);
        for (size_t i = 0; i < text.n; i++)
                text.data[i] = text.data[i] == '\'' ? '"' : text.data[i];
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        text_deinit(&text);
        cr_assert_eq(graph_resolve(graph, out_report), STATUS_OK);
        cr_assert_eq(out_report->n_rows, 0u, "refused before the walk");
        cr_assert_eq(check_graph(graph, NULL, out_report), STATUS_OK, "%s", failure_current()->message);
        graph_unref(graph);
}

static uint32_t nodes_refused(const char *nodes)
{
        CheckReport report;
        check(nodes, &report);
        uint32_t n = report.n_nodes;
        check_report_deinit(&report);
        return n;
}

Test(check, lists_what_is_not_supported_also_behind_a_node_that_fails)
{
        CheckReport report;
        check(INPUT("x", CUBE) WIDE("first", "x") NODE("back", "torch.ops.aten.reshape.default",
                                                       "['%first', " CUBE "]", META("float32", CUBE))
                      WIDE("second", "back") OUTPUT("second"),
              &report);
        cr_assert_eq(report.n_rows, 1u);
        cr_expect_eq(report.n_nodes, 2u);
        cr_expect_str_eq(report.rows[0].what, "aten.einsum.default");
        cr_expect_not_null(strstr(report.rows[0].reason, "einsum() over 9"));
        check_report_deinit(&report);
}

Test(check, sizes_that_do_not_fit_are_no_reason)
{
        cr_expect_eq(nodes_refused(INPUT("x", "[2, 3]") INPUT("y", "[4, 5]")
                                           NODE("sum", "torch.ops.aten.add.Tensor", "['%x', '%y']",
                                                META("float32", "[2, 3]")) OUTPUT("sum")),
                     0u);
}

Test(check, what_depends_on_data_is_passed_over)
{
        cr_expect_eq(nodes_refused(INPUT("x", "[2, 3]") NODE("at", "torch.ops.aten.nonzero.default", "['%x']",
                                                             META("int64", "['u0', 2]"))
                                           NODE("sum", "torch.ops.aten.sum.default", "['%at']",
                                                META("int64", "[]")) OUTPUT("sum")),
                     0u);
}

Test(check, a_result_of_unknown_shape_stops_only_its_readers)
{
        cr_expect_eq(nodes_refused(INPUT("x", CUBE) NODE("at", "torch.ops.aten.nonzero.default", "['%x']",
                                                         META("int64", "['u0', 5]"))
                                           NODE("more", "torch.ops.aten.add.Tensor", "['%at', '%at']",
                                                META("int64", "['u0', 5]")) WIDE("wide", "x") OUTPUT("wide")),
                     1u);
}

Test(check, inputs_of_unknown_shape_are_passed_over)
{
        cr_expect_eq(nodes_refused("{'op': 'placeholder', 'name': 'x', 'target': 'x'}, " WIDE("wide", "x")
                                           OUTPUT("wide")),
                     0u);
}

// 300 nodes of 65,536 results each would be 20 million values.
Test(check, hostile_sizes_are_given_up_on)
{
        Text text = { 0 };
        limits.max_run_memory = INT64_MAX;
        text_add(&text, INPUT("x", "[65536, 4096]"));
        for (int i = 0; i < 300; i++)
                text_addf(&text,
                          "{'op': 'call_function', 'name': 'n%d', 'target': 'torch.ops.aten.split.Tensor', "
                          "'args': ['%%x', 1]}, ",
                          i);
        text_add(&text, WIDE("wide", "x") OUTPUT("n0"));
        cr_expect_eq(nodes_refused(text.data), 0u);
        text_deinit(&text);
}
