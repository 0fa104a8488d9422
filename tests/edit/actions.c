// SPDX-License-Identifier: Apache-2.0
// actions.c: what rules make of a node.
#include "core/edit/actions.h"
#include "core/targets/targets.h"
#include "tests/graph/make.h"

// x, y -> add -> clamp(add, 0, max=6) -> neg -> output
static Edit *open_chain(void)
{
        Graph *graph = new_graph();
        Edit *edit = NULL;
        cr_assert_eq(targets_init(), STATUS_OK);
        Node *x = placeholder(graph, "x"), *y = placeholder(graph, "y");
        Node *sum = add(graph, OP_CALL_FUNCTION, NULL, "torch.add",
                        sequence(VALUE_TUPLE, 2, node_value(x), node_value(y)), value_none());
        Node *clamp = add(graph, OP_CALL_FUNCTION, NULL, "torch.clamp",
                          sequence(VALUE_TUPLE, 2, node_value(sum), value_int(0)),
                          dict_of_one("max", value_int(6)));
        output(graph, node_value(call_one(graph, OP_CALL_METHOD, "neg", clamp)));
        finish(graph);
        cr_assert_eq(edit_new(graph, &edit), STATUS_OK);
        graph_unref(graph);
        return edit;
}

// a, b=2 -> (a * b * scale)
static Graph *scaling(void)
{
        Graph *graph = new_graph();
        state(graph, "scale", small_tensor(DTYPE_F32, 1));
        Node *a = placeholder(graph, "a");
        Node *b = add(graph, OP_PLACEHOLDER, NULL, "b", sequence(VALUE_TUPLE, 1, value_int(2)), value_none());
        Node *mul = add(graph, OP_CALL_FUNCTION, NULL, "operator.mul",
                        sequence(VALUE_TUPLE, 2, node_value(a), node_value(b)), value_none());
        Node *scale = add(graph, OP_GET_ATTR, NULL, "scale", value_none(), value_none());
        output(graph,
               node_value(add(graph, OP_CALL_FUNCTION, NULL, "operator.mul",
                              sequence(VALUE_TUPLE, 2, node_value(mul), node_value(scale)), value_none())));
        finish(graph);
        return graph;
}

// The lines of str(graph) that are calls.
static void calls(Edit *take_edit, const char *want)
{
        Graph *graph = NULL;
        cr_assert_eq(edit_finish(take_edit, &graph), STATUS_OK, "%s", failure_current()->message);
        edit_free(take_edit);
        Text text = { 0 };
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i]->op == OP_PLACEHOLDER)
                        continue;
                const Node *node = graph->nodes[i];
                text_addf(&text, "%s=%s", node->name, node->target);
                value_print_repr(node->args, &text);
                if (node->kwargs.dict->n > 0)
                        value_print_repr(node->kwargs, &text);
                text_addf(&text, "<%s ", node_origin(node));
        }
        cr_assert_eq(text_status(&text), STATUS_OK);
        cr_expect_str_eq(text.data, want);
        text_deinit(&text);
        graph_unref(graph);
}

#define SUM    "add=torch.add(x, y)<add "
#define CLAMP  "clamp=torch.clamp(add, 0){'max': 6}<clamp "
#define NEG    "neg=neg(clamp,)<neg "
#define RESULT "output=output(neg,)<output "

Test(edit_actions, a_call_becomes_its_argument)
{
        Edit *edit = open_chain();
        cr_assert_eq(edit_passthrough(edit, edit_node(edit, "clamp"), 0), STATUS_OK);
        calls(edit, SUM "neg=neg(add,)<neg " RESULT);
        edit = open_chain();
        fails_with(edit_passthrough(edit, edit_node(edit, "clamp"), 2), STATUS_LINT, "none is $2", "clamp");
        fails_with(edit_passthrough(edit, edit_node(edit, "x"), 0), STATUS_LINT, "is a placeholder", "x");
        edit_free(edit);
}

Test(edit_actions, a_call_gets_another_name)
{
        Edit *edit = open_chain();
        cr_assert_eq(edit_retarget(edit, edit_node(edit, "neg"), "abs"), STATUS_OK);
        cr_assert_eq(edit_retarget(edit, edit_node(edit, "add"), "operator.sub"), STATUS_OK);
        calls(edit, "add=_operator.sub(x, y)<add " CLAMP "neg=abs(clamp,)<neg " RESULT);
        edit = open_chain();
        cr_assert_eq(edit_retarget(edit, edit_node(edit, "neg"), "torch.abs"), STATUS_OK);
        calls(edit, SUM CLAMP "neg=torch.abs(clamp,)<neg " RESULT);
}

Test(edit_actions, a_call_is_written_anew_with_its_arguments)
{
        Edit *edit = open_chain();
        Node *made;
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = "torch.clamp",
                        .args = sequence(VALUE_TUPLE, 1, text_value("$args")),
                        .kwargs = dict_of_one("max", text_value("$kw:max")) };
        cr_assert_eq(edit_retarget_call(edit, edit_node(edit, "clamp"), &new, &made), STATUS_OK);
        EditNew swapped = { .op = OP_CALL_FUNCTION,
                            .target = "torch.sub",
                            .args = sequence(VALUE_TUPLE, 2, text_value("$1"), text_value("$0")) };
        cr_assert_eq(edit_retarget_call(edit, edit_node(edit, "add"), &swapped, &made), STATUS_OK);
        calls(edit, "sub=torch.sub(y, x)<add clamp_1=torch.clamp(sub, 0){'max': 6}<clamp "
                    "neg=neg(clamp_1,)<neg " RESULT);
}

Test(edit_actions, arguments_that_are_not_there_are_refused)
{
        static const struct {
                const char *text, *message;
                Status status;
        } rows[] = { { "$2", "none is $2", STATUS_LINT },
                     { "$kw:min", "no keyword argument min", STATUS_LINT },
                     { "$what", "write $args", STATUS_VALUE },
                     { "$9999999", "write $args", STATUS_VALUE } };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Edit *edit = open_chain();
                Node *made;
                EditNew new = { .op = OP_CALL_FUNCTION,
                                .target = "torch.neg",
                                .args = sequence(VALUE_TUPLE, 1, text_value(rows[i].text)) };
                fails_with(edit_retarget_call(edit, edit_node(edit, "clamp"), &new, &made), rows[i].status,
                           rows[i].message, "clamp");
                edit_free(edit);
        }
}

Test(edit_actions, a_call_becomes_another_graph)
{
        Graph *graph = scaling();
        Edit *edit = open_chain();
        cr_assert_eq(edit_call_graph(edit, edit_node(edit, "add"), graph, "scaled", NULL), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(edit_call_graph(edit, edit_node(edit, "neg"), graph, "scaled", NULL), STATUS_OK, "%s",
                     failure_current()->message);
        calls(edit,
              "mul=_operator.mul(x, y)<add scale=scaled.scale()<add mul_1=_operator.mul(mul, scale)<add "
              "clamp=torch.clamp(mul_1, 0){'max': 6}<clamp mul_2=_operator.mul(clamp, 2)<neg "
              "scale_1=scaled.scale()<neg mul_3=_operator.mul(mul_2, scale_1)<neg "
              "output=output(mul_3,)<output ");
        edit = open_chain();
        fails_with(edit_call_graph(edit, edit_node(edit, "clamp"), graph, "scaled", NULL), STATUS_LINT,
                   "the call has others", "clamp");
        edit_free(edit);
        graph_unref(graph);
}

Test(edit_actions, a_call_is_wrapped_by_graphs)
{
        Graph *graph = scaling();
        Edit *edit = open_chain();
        EditWrap wrap = { .before = graph, .after = graph, .before_name = "w", .after_name = "w" };
        cr_assert_eq(edit_wrap(edit, edit_node(edit, "neg"), &wrap, NULL), STATUS_OK, "%s",
                     failure_current()->message);
        calls(edit, SUM CLAMP "mul=_operator.mul(clamp, 2)<neg scale=w.scale()<neg "
                              "mul_1=_operator.mul(mul, scale)<neg neg=neg(mul_1,)<neg "
                              "mul_2=_operator.mul(neg, 2)<neg scale_1=w.scale()<neg "
                              "mul_3=_operator.mul(mul_2, scale_1)<neg output=output(mul_3,)<output ");
        graph_unref(graph);
}
