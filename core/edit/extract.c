// SPDX-License-Identifier: Apache-2.0
// extract.c: a part of the graph as the whole graph. A node that is an input becomes a placeholder
// in place; then all that the results do not need goes.
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/edit/passes.h"

static Status empty_args(Value *out_args, Value *out_kwargs)
{
        Seq *args;
        Dict *kwargs;
        TRY(seq_new(0, &args));
        *out_args = value_seq_take(VALUE_TUPLE, args);
        Status status = dict_new(0, &kwargs);
        if (status != STATUS_OK) {
                value_unref(*out_args);
                return status;
        }
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = kwargs };
        return STATUS_OK;
}

static Status become_input(Edit *edit, Node *node)
{
        Value args, kwargs;
        if (node->op == OP_PLACEHOLDER)
                return STATUS_OK;
        TRY(edit_set_call(edit, node, OP_PLACEHOLDER, node->name));
        TRY(empty_args(&args, &kwargs));
        return edit_set_args(edit, node, args, kwargs);
}

static Status order_inputs(Edit *edit, Node *const *inputs, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                TRY(become_input(edit, inputs[i]));
                if (i == 0)
                        TRY(edit_move_before(edit, inputs[i], edit_first(edit)));
                else
                        TRY(edit_move_after(edit, inputs[i], inputs[i - 1]));
        }
        return STATUS_OK;
}

// ---- results ----

static Status list_of(Node *const *nodes, uint32_t n, Value *out_list)
{
        Seq *items;
        TRY(seq_new(n, &items));
        for (uint32_t i = 0; i < n; i++)
                items->items[i] = (Value){ .kind = VALUE_NODE, .node = nodes[i] };
        *out_list = value_seq_take(VALUE_LIST, items);
        return STATUS_OK;
}

static Status set_results(Edit *edit, Node *const *outputs, uint32_t n)
{
        Node *output = edit_output(edit);
        Seq *args;
        if (output == NULL)
                return fail(STATUS_LINT, "the graph has no output node as its last node");
        if (edit->base->signature.outputs != NULL)
                return edit_set_outputs(edit, outputs, n);
        TRY(seq_new(1, &args));
        Value all = value_seq_take(VALUE_TUPLE, args);
        Status status = list_of(outputs, n, &args->items[0]);
        if (status != STATUS_OK) {
                value_unref(all);
                return status;
        }
        return edit_set_args(edit, output, all, value_ref(output->kwargs));
}

// ---- the rest ----

// node->mark of needed nodes is the walk. Readers stand behind what they read.
static void mark_needed(Edit *edit)
{
        edit->walk++;
        edit->last->mark = edit->walk;
        for (EditNode *node = edit->last; node != NULL; node = node->before) {
                for (uint32_t i = 0; i < node->n_inputs && node->mark == edit->walk; i++)
                        node->inputs[i].input->mark = edit->walk;
        }
}

static bool is_listed(Node *const *nodes, uint32_t n, const Node *node)
{
        for (uint32_t i = 0; i < n; i++) {
                if (nodes[i] == node)
                        return true;
        }
        return false;
}

static Status erase_others(Edit *edit, Node *const *inputs, uint32_t n_inputs)
{
        EditNode *before;
        for (EditNode *node = edit->last; node != NULL; node = before) {
                before = node->before;
                bool lifted = node->input != NULL && node->input->kind == INPUT_STATE;
                bool input = node->node.op == OP_PLACEHOLDER && !lifted;
                if (input && is_listed(inputs, n_inputs, &node->node))
                        continue;
                if (input && node->mark == edit->walk)
                        return failure_at_node(fail(STATUS_LINT,
                                                    "the results need the input %s, which is not among the "
                                                    "inputs named",
                                                    node->node.name),
                                               node->node.name);
                if (node->mark != edit->walk)
                        TRY(edit_erase(edit, &node->node));
        }
        return STATUS_OK;
}

static Status check_nodes(const Edit *edit, Node *const *nodes, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                TRY(edit_check_node(edit, nodes[i]));
                if (nodes[i]->op == OP_OUTPUT || is_listed(nodes, i, nodes[i]))
                        return failure_at_node(fail(STATUS_LINT, "Node %s is %s", nodes[i]->name,
                                                    nodes[i]->op == OP_OUTPUT ? "the output" : "named twice"),
                                               nodes[i]->name);
        }
        return STATUS_OK;
}

Status edit_extract_subgraph(Edit *edit, Node *const *inputs, uint32_t n_inputs, Node *const *outputs,
                             uint32_t n_outputs)
{
        enum { MOST_INPUTS = 1000 }; // they are compared with each other
        if (n_inputs > MOST_INPUTS)
                return fail(STATUS_TOO_LARGE, "%u inputs are named; at most %d are taken", n_inputs,
                            MOST_INPUTS);
        TRY(edit_lint(edit));
        TRY(check_nodes(edit, inputs, n_inputs));
        for (uint32_t i = 0; i < n_outputs; i++)
                TRY(edit_check_node(edit, outputs[i]));
        TRY(order_inputs(edit, inputs, n_inputs));
        TRY(set_results(edit, outputs, n_outputs));
        mark_needed(edit);
        return erase_others(edit, inputs, n_inputs);
}
