// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/make.h"

// A line of the drawing with "" for each quoted string; false if a string does not end.
static bool without_strings(const char **at, char *out, size_t room)
{
        size_t n = 0;
        for (; **at != '\0' && **at != '\n'; (*at)++) {
                cr_assert_lt(n + 3, room);
                out[n++] = **at;
                if (**at != '"')
                        continue;
                for ((*at)++; **at != '"'; (*at)++) {
                        if (**at == '\\')
                                (*at)++;
                        if (**at == '\0' || **at == '\n')
                                return false;
                }
                out[n++] = '"';
        }
        out[n] = '\0';
        *at += **at == '\n';
        return true;
}

// What graphviz accepts, as far as drawings use it.
static void check_drawing(const char *text, int n_nodes, int n_edges)
{
        static const char *const other[] = { "digraph \"\" {",
                                             "    node [shape=box, style=filled, fontname=\"\"];", "}" };
        int nodes = 0, edges = 0, n_other = 0;
        for (const char *at = text; *at != '\0';) {
                char line[4096];
                cr_assert(without_strings(&at, line, sizeof(line)), "a string does not end");
                if (strcmp(line, "    \"\" [label=\"\", tooltip=\"\", fillcolor=\"\"];") == 0)
                        nodes++;
                else if (strcmp(line, "    \"\" -> \"\";") == 0)
                        edges++;
                else
                        cr_assert(n_other < 3 && strcmp(line, other[n_other++]) == 0, "%s", line);
        }
        cr_expect_eq(nodes, n_nodes);
        cr_expect_eq(edges, n_edges);
        cr_expect_eq(n_other, 3);
}

Test(dot, no_text_of_a_graph_ends_a_string_of_its_drawing)
{
        Graph *graph = new_graph();
        Node *x = placeholder(graph, "x");
        Node *odd = call_one(graph, OP_CALL_METHOD, "a\"]; b\\", x);
        Node *relu = call_one(graph, OP_CALL_FUNCTION, "torch.relu", odd);
        const StackEntrySpec spec = { "k", "m\n\"x\\", "T" };
        cr_assert_eq(graph_stack_entry(graph, NULL, &spec, &relu->module_stack), STATUS_OK);
        output(graph, sequence(VALUE_TUPLE, 3, node_value(relu), node_value(relu), node_value(x)));
        cr_assert_eq(graph_finish(graph), STATUS_OK);
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, GRAPH_FORM_DOT, &text), STATUS_OK);
        check_drawing(text.data, 4, 4); // the output reads relu twice: one edge
        cr_expect_not_null(strstr(text.data, "call_method a\\\"]; b\\\\\""));
        cr_expect_not_null(strstr(text.data, "tooltip=\"m \\\"x\\\\\", fillcolor=\"0.618 0.350 1.000\""));
        cr_expect_not_null(strstr(text.data, "tooltip=\"\", fillcolor=\"0.000 0.000 0.930\""));
        text_deinit(&text);
        const double share[4] = { 0, 0.25, 0.5, 0 };
        cr_assert_eq(graph_print_dot(graph, share, &text), STATUS_OK);
        check_drawing(text.data, 4, 4);
        cr_expect_not_null(
                strstr(text.data, "torch.relu\\n50.0%\", tooltip=\"m \\\"x\\\\\", fillcolor=\"0.000 1.000"));
        cr_expect_not_null(strstr(text.data, "\\n25.0%\", tooltip=\"\", fillcolor=\"0.000 0.500 1.000\""));
        text_deinit(&text);
        graph_unref(graph);
}
