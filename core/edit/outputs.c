// SPDX-License-Identifier: Apache-2.0
// outputs.c: adds and removes results of the graph. An export's output node holds a flat tuple
// whose first items are the values that the graph writes; `outputs` gives the kind of each.
#include <string.h>
#include "core/edit/edit_parts.h"

static Status output_of(const Edit *edit, Node **out_node)
{
        *out_node = edit_output(edit);
        if (*out_node == NULL || (*out_node)->args.seq->n != 1)
                return fail(STATUS_LINT, "the graph has no output node as its last node");
        return STATUS_OK;
}

// args of an output node: (value,)
static Status set_result(Edit *edit, Node *output, Value take_value)
{
        Seq *args;
        Status status = seq_new(1, &args);
        if (status != STATUS_OK) {
                value_unref(take_value);
                return status;
        }
        args->items[0] = take_value;
        return edit_set_args(edit, output, value_seq_take(VALUE_TUPLE, args), value_ref(output->kwargs));
}

Status edit_add_output(Edit *edit, Value take_value)
{
        _cleanup_(value_clear) Value added = take_value;
        Node *output;
        TRY(output_of(edit, &output));
        Value old = output->args.seq->items[0];
        bool row = old.kind == VALUE_TUPLE || old.kind == VALUE_LIST;
        uint32_t n = row ? old.seq->n : 1;
        Seq *items;
        TRY(array_reserve(&edit->outputs, &edit->outputs_capacity, edit->n_outputs + 1,
                          sizeof(*edit->outputs)));
        TRY(seq_new(n + 1, &items));
        for (uint32_t i = 0; i < n; i++)
                items->items[i] = value_ref(row ? old.seq->items[i] : old);
        items->items[n] = added;
        added = value_none();
        if (edit->base->signature.outputs != NULL)
                edit->outputs[edit->n_outputs++] = (EditOutput){ .kind = OUTPUT_USER, .leaf = NO_LEAF };
        return set_result(edit, output, value_seq_take(row ? old.kind : VALUE_TUPLE, items));
}

static uint32_t count_written(const Edit *edit)
{
        uint32_t n_written = 0;
        while (n_written < edit->n_outputs && edit->outputs[n_written].kind != OUTPUT_USER)
                n_written++;
        return n_written;
}

Status edit_add_written(Edit *edit, OutputKind kind, const char *target, Node *value)
{
        Node *output;
        TRY(output_of(edit, &output));
        uint32_t at = count_written(edit);
        Value old = output->args.seq->items[0];
        if (edit->base->signature.outputs == NULL || !value_is_sequence(old))
                return fail(STATUS_INTERNAL, "the graph does not tell its results apart");
        TRY(array_reserve(&edit->outputs, &edit->outputs_capacity, edit->n_outputs + 1,
                          sizeof(*edit->outputs)));
        EditOutput *outputs = edit->outputs;
        memmove(&outputs[at + 1], &outputs[at], (edit->n_outputs++ - at) * sizeof(*outputs));
        outputs[at] = (EditOutput){ .kind = kind, .leaf = NO_LEAF };
        TRY(edit_keep_text(edit, target, &outputs[at].target));
        Seq *items;
        TRY(seq_new(old.seq->n + 1, &items));
        for (uint32_t i = 0; i < old.seq->n; i++)
                items->items[i + (i >= at)] = value_ref(old.seq->items[i]);
        items->items[at] = (Value){ .kind = VALUE_NODE, .node = value };
        return set_result(edit, output, value_seq_take(old.kind, items));
}

// An export tells its results apart: what it writes stays, in front.
Status edit_set_outputs(Edit *edit, Node *const *nodes, uint32_t n)
{
        Node *output;
        TRY(output_of(edit, &output));
        uint32_t n_written = count_written(edit);
        Value old = output->args.seq->items[0];
        if (edit->base->signature.outputs == NULL || !value_is_sequence(old) || old.seq->n != edit->n_outputs)
                return failure_at_node(
                        fail(STATUS_LINT, "the results of the graph are not those of the export"),
                        output->name);
        TRY(array_reserve(&edit->outputs, &edit->outputs_capacity, n_written + n, sizeof(*edit->outputs)));
        Seq *items;
        TRY(seq_new(n_written + n, &items));
        for (uint32_t i = 0; i < n_written; i++)
                items->items[i] = value_ref(old.seq->items[i]);
        for (uint32_t i = n_written; i < items->n; i++) {
                items->items[i] = (Value){ .kind = VALUE_NODE, .node = nodes[i - n_written] };
                edit->outputs[i] = (EditOutput){ .kind = OUTPUT_USER, .leaf = NO_LEAF };
        }
        edit->n_outputs = items->n;
        return set_result(edit, output, value_seq_take(old.kind, items));
}

Status edit_remove_output(Edit *edit, uint32_t index)
{
        Node *output;
        TRY(output_of(edit, &output));
        uint32_t n_written = count_written(edit);
        Value old = output->args.seq->items[0];
        if ((old.kind != VALUE_TUPLE && old.kind != VALUE_LIST) || index >= old.seq->n - n_written)
                return failure_at_node(
                        fail(STATUS_LINT, "the graph has no output %u that can be removed", index),
                        output->name);
        index += n_written;
        Seq *items;
        TRY(seq_new(old.seq->n - 1, &items));
        for (uint32_t i = 0; i < items->n; i++)
                items->items[i] = value_ref(old.seq->items[i + (i >= index)]);
        if (edit->base->signature.outputs != NULL) {
                edit->n_outputs--;
                memmove(&edit->outputs[index], &edit->outputs[index + 1],
                        (edit->n_outputs - index) * sizeof(*edit->outputs));
        }
        return set_result(edit, output, value_seq_take(old.kind, items));
}
