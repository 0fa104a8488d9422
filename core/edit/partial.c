// SPDX-License-Identifier: Apache-2.0
// partial.c: given values become hidden inputs; what stands behind the last node goes.
#include "core/edit/partial.h"

#include "core/edit/edit_parts.h"

static Status find(const Edit *edit, const char *member, const char *name, const Node **out_node)
{
        const Node *node = graph_node(edit_base(edit), name);
        if (node == NULL)
                return fail(STATUS_VALUE, "\"%s\" names \"%.64s\", but the graph has no such node", member,
                            name);
        if (node->op == OP_OUTPUT)
                return fail(STATUS_VALUE, "\"%s\" names the output node, which has no value of its own",
                            member);
        *out_node = node;
        return STATUS_OK;
}

static bool is_user_input(const Graph *graph, const Node *node)
{
        if (node->op != OP_PLACEHOLDER)
                return false;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                if (graph->signature.inputs[i].placeholder == node)
                        return graph->signature.inputs[i].kind != INPUT_STATE;
        return true;
}

Status edit_give_value(Edit *edit, const char *name, const TensorSpec *spec)
{
        const Node *authored;
        Node *hidden;
        uint32_t index;
        TRY(find(edit, "initial_env", name, &authored));
        if (is_user_input(edit_base(edit), authored))
                return fail(STATUS_VALUE, "\"%.64s\" is an input; give its value in \"inputs\"", name);
        TRY(edit_hidden_input(edit, name, spec, &hidden, &index));
        Node *node = edit_copy_of(edit, authored);
        if (node != NULL) {
                TRY(edit_replace_all_uses(edit, node, (Value){ .kind = VALUE_NODE, .node = hidden }, NULL));
                TRY(edit_erase(edit, node));
        }
        return edit_keep_text(edit, name, &hidden->origin);
}

// An export's own results go, too: those that it writes were not written yet.
static Status return_nothing(Edit *edit, Node *output)
{
        Seq *args, *nothing;
        TRY(seq_new(1, &args));
        Value all = value_seq_take(VALUE_TUPLE, args);
        Status status = seq_new(0, &nothing);
        if (status != STATUS_OK) {
                value_unref(all);
                return status;
        }
        args->items[0] = value_seq_take(VALUE_TUPLE, nothing);
        edit->n_outputs = 0;
        return edit_set_args(edit, output, all, value_ref(output->kwargs));
}

Status edit_stop_after(Edit *edit, const char *name)
{
        const Node *authored;
        Node *output = edit_output(edit);
        TRY(find(edit, "until", name, &authored));
        const Node *last = edit_copy_of(edit, authored);
        if (output == NULL)
                return fail(STATUS_LINT, "the graph has no output node as its last node");
        TRY(return_nothing(edit, output));
        for (Node *node = edit_previous(output), *before; node != NULL && node != last; node = before) {
                before = edit_previous(node);
                if (node->op != OP_PLACEHOLDER)
                        TRY(edit_erase(edit, node));
        }
        return STATUS_OK;
}
