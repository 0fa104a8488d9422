// SPDX-License-Identifier: Apache-2.0
// observe.c: nodes that observe others, and parts of a run.
#include "core/edit/observe.h"
#include "core/edit/partial.h"
#include "core/edit/rule.h"
#include "core/targets/targets.h"
#include "tests/graph/make.h"

// x, y -> add -> add_(add, 1) -> neg -> output
static Edit *open_chain(void)
{
        Graph *graph = new_graph();
        Edit *edit = NULL;
        cr_assert_eq(targets_init(), STATUS_OK);
        Node *x = placeholder(graph, "x"), *y = placeholder(graph, "y");
        Node *sum = add(graph, OP_CALL_FUNCTION, NULL, "torch.add",
                        sequence(VALUE_TUPLE, 2, node_value(x), node_value(y)), value_none());
        Node *more = add(graph, OP_CALL_METHOD, NULL, "add_",
                         sequence(VALUE_TUPLE, 2, node_value(sum), value_int(1)), value_none());
        output(graph, node_value(call_one(graph, OP_CALL_METHOD, "neg", more)));
        finish(graph);
        cr_assert_eq(edit_new(graph, &edit), STATUS_OK);
        graph_unref(graph);
        return edit;
}

static void expect_nodes(Edit *take_edit, const char *want)
{
        Graph *graph = NULL;
        Text text = { 0 };
        cr_assert_eq(edit_finish(take_edit, &graph), STATUS_OK, "%s", failure_current()->message);
        edit_free(take_edit);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                text_addf(&text, "%s=%s", graph->nodes[i]->name, graph->nodes[i]->target);
                value_print_repr(graph->nodes[i]->args, &text);
                text_add(&text, " ");
        }
        cr_assert_eq(text_status(&text), STATUS_OK);
        cr_expect_str_eq(text.data, want);
        text_deinit(&text);
        graph_unref(graph);
}

static void observe(Edit *edit, const char *node, uint8_t what, uint8_t halt, RuleHit *out_hit)
{
        cr_assert_eq(edit_observe(edit, edit_node(edit, node), what, halt, out_hit), STATUS_OK, "%s",
                     failure_current()->message);
}

#define INPUTS "x=x() y=y() "
#define REST   "add_=add_(add, 1) neg=neg(add_,) output=output(neg,) "

Test(edit_observe, stands_around_the_node)
{
        RuleHit hit;
        Edit *edit = open_chain();
        observe(edit, "add", OBSERVE_CALL | OBSERVE_STATS | OBSERVE_TENSOR, HALT_NAN, &hit);
        cr_expect_str_eq(hit.stats->name, "add_stats");
        cr_expect(hit.call != NULL && hit.tensor != NULL && hit.call->internal);
        expect_nodes(edit,
                     INPUTS "add_call=fxserve.describe(((x, y), {}),) add=torch.add(x, y) "
                            "add_finite=fxserve.assert_finite(add, {'x': x, 'y': y}, 'add', True, False) "
                            "add_stats=fxserve.stats(add,) add_tensor=fxserve.copy(add,) " REST);
}

Test(edit_observe, inputs_stand_behind_all_inputs)
{
        RuleHit hit;
        Edit *edit = open_chain();
        observe(edit, "x", OBSERVE_CALL | OBSERVE_STATS, 0, &hit);
        cr_expect_null(hit.call);
        expect_nodes(edit, INPUTS "x_stats=fxserve.stats(x,) add=torch.add(x, y) " REST);
}

Test(edit_observe, an_output_is_observed_in_front_of_it)
{
        RuleHit hit;
        Edit *edit = open_chain();
        observe(edit, "output", OBSERVE_STATS, HALT_INF, &hit);
        expect_nodes(edit, INPUTS "add=torch.add(x, y) add_=add_(add, 1) neg=neg(add_,) "
                                  "output_stats=fxserve.stats(neg,) "
                                  "output_finite=fxserve.assert_finite(neg, {}, 'output', False, True) "
                                  "output=output(neg,) ");
}

Test(edit_observe, what_a_node_writes_is_no_input_any_more)
{
        RuleHit hit;
        Edit *edit = open_chain();
        observe(edit, "add_", 0, HALT_NAN, &hit);
        cr_expect(hit.call == NULL && hit.stats == NULL && hit.tensor == NULL);
        expect_nodes(edit, INPUTS "add=torch.add(x, y) add_=add_(add, 1) "
                                  "add__finite=fxserve.assert_finite(add_, {}, 'add_', True, False) "
                                  "neg=neg(add_,) output=output(neg,) ");
}

// The node's readers get another value; so do those that observe it.
Test(edit_observe, values_are_those_that_readers_get)
{
        EditRule rules[] = { { .match = { .name = "neg", .nth = -1 },
                               .action = EDIT_RETARGET,
                               .target = "torch.abs",
                               .observe = OBSERVE_STATS },
                             { .match = { .name = "add", .nth = -1 },
                               .action = EDIT_PASSTHROUGH,
                               .argument = 1,
                               .observe = OBSERVE_STATS } };
        Edit *edit = open_chain();
        cr_assert_eq(edit_apply_rules(edit, rules, 2), STATUS_OK, "%s", failure_current()->message);
        expect_nodes(edit, INPUTS "add_stats=fxserve.stats(y,) add_=add_(y, 1) neg=torch.abs(add_,) "
                                  "neg_stats=fxserve.stats(neg,) output=output(neg,) ");
}

// ---- parts of a run ----

static const TensorSpec vector = { .dtype = DTYPE_F32, .rank = 1, .size = { { .value = 3 } } };

Test(edit_partial, a_given_node_is_not_run_and_all_others_are)
{
        Edit *edit = open_chain();
        cr_assert_eq(edit_give_value(edit, "add_", &vector), STATUS_OK, "%s", failure_current()->message);
        expect_nodes(edit,
                     INPUTS "add__1=add__1() add=torch.add(x, y) neg=neg(add__1,) output=output(neg,) ");
        edit = open_chain();
        fails_with(edit_give_value(edit, "x", &vector), STATUS_VALUE, "is an input", NULL);
        fails_with(edit_give_value(edit, "z", &vector), STATUS_VALUE, "no such node", NULL);
        fails_with(edit_give_value(edit, "output", &vector), STATUS_VALUE, "output node", NULL);
        edit_free(edit);
}

Test(edit_partial, a_run_ends_at_a_node)
{
        Edit *edit = open_chain();
        cr_assert_eq(edit_stop_after(edit, "add"), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(edit_give_value(edit, "neg", &vector), STATUS_OK, "%s", failure_current()->message);
        expect_nodes(edit, INPUTS "neg_1=neg_1() add=torch.add(x, y) output=output((),) ");
        edit = open_chain();
        fails_with(edit_stop_after(edit, "output"), STATUS_VALUE, "output node", NULL);
        fails_with(edit_stop_after(edit, "z"), STATUS_VALUE, "no such node", NULL);
        edit_free(edit);
}
