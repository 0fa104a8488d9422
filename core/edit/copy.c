// SPDX-License-Identifier: Apache-2.0
// copy.c: copies the base into the working copy. Texts, nodes and child graphs are copied; tensors
// are shared and counted.
#include <string.h>
#include "core/edit/edit_parts.h"

Status edit_copy_spec(Edit *edit, const TensorSpec *spec, TensorSpec *out_spec)
{
        *out_spec = *spec;
        for (int i = 0; i < MAX(spec->rank, 1); i++) // a symbolic int has its size at rank 0
                TRY(edit_keep_text(edit, spec->size[i].expr, &out_spec->size[i].expr));
        return STATUS_OK;
}

static Status map_leaf(void *context, const Value *leaf, Value *out)
{
        const Edit *edit = context;
        if (leaf->kind == VALUE_NODE)
                *out = (Value){ .kind = VALUE_NODE, .node = edit->by_base[leaf->node->index] };
        else
                *out = value_ref(*leaf);
        return STATUS_OK;
}

static Status copy_values(Edit *edit, EditNode *node, const Node *from)
{
        Value args, kwargs;
        TRY(value_map(from->args, map_leaf, edit, &args));
        Status status = value_map(from->kwargs, map_leaf, edit, &kwargs);
        if (status != STATUS_OK) {
                value_unref(args);
                return status;
        }
        return edit_set_values(edit, node, args, kwargs);
}

static Status copy_node(Edit *edit, const Node *from)
{
        EditNode *node;
        const char *name;
        TRY(edit_keep_text(edit, from->name, &name));
        TRY(namespace_claim(&edit->work->names, &edit->work->arena, name));
        TRY(edit_make_node(edit, from->op, name, from->target, &node));
        edit->by_base[from->index] = &node->node;
        node->copied = true;
        edit_link(edit, node, edit->last, NULL);
        TRY(edit_keep_text(edit, from->type, &node->node.type));
        TRY(edit_keep_text(edit, from->notes, &node->node.notes));
        TRY(edit_keep_text(edit, from->symbol, &node->node.symbol));
        TRY(graph_copy_place(edit->work, from, &node->node));
        TRY(edit_keep_text(edit, node_origin(from), &node->node.origin));
        if (from->spec != NULL) {
                node->node.spec = arena_alloc(&edit->work->arena, sizeof(TensorSpec));
                if (node->node.spec == NULL)
                        return fail_memory();
                TRY(edit_copy_spec(edit, from->spec, node->node.spec));
        }
        return copy_values(edit, node, from);
}

static Status copy_module(Edit *edit, const Module *from)
{
        Module *module;
        TRY(graph_add_module(edit->work, from->path, from->type, &module));
        module->training = from->training;
        for (uint32_t i = 0; i < from->n_config; i++) {
                const char *key;
                TRY(edit_keep_text(edit, from->config[i].key, &key));
                TRY(module_add_config(module, key, value_ref(from->config[i].value)));
        }
        return from->graph == NULL ? STATUS_OK : edit_copy_graph(from->graph, &module->graph);
}

static Status copy_state(Edit *edit, const State *from)
{
        State *state;
        TRY(graph_add_state(edit->work, from->path, tensor_ref(from->tensor), &state));
        state->is_parameter = from->is_parameter;
        state->persistent = from->persistent;
        return STATUS_OK;
}

// The signature's entries stay with the base until the end; nodes remember theirs.
static Status note_signature(Edit *edit)
{
        const Signature *signature = &edit->base->signature;
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                edit_node_of(edit->by_base[input->placeholder->index])->input = input;
        }
        TRY(array_reserve(&edit->outputs, &edit->outputs_capacity, signature->n_outputs + 1,
                          sizeof(*edit->outputs)));
        uint32_t leaf = 0;
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                const Output *output = &signature->outputs[i];
                bool user = output->kind == OUTPUT_USER;
                edit->outputs[i] = (EditOutput){ .kind = output->kind,
                                                 .target = output->target,
                                                 .leaf = user ? leaf++ : NO_LEAF };
        }
        edit->n_outputs = signature->n_outputs;
        return STATUS_OK;
}

Status edit_copy_base(Edit *edit)
{
        const Graph *base = edit->base;
        TRY(edit_keep_text(edit, base->class_name, &edit->work->class_name));
        edit->work->pytree = base->pytree;
        edit->by_base = new_array(base->n_nodes, sizeof(Node *));
        if (edit->by_base == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < base->n_modules; i++)
                TRY(copy_module(edit, base->modules[i]));
        for (uint32_t i = 0; i < base->n_state; i++)
                TRY(copy_state(edit, &base->state[i]));
        for (uint32_t i = 0; i < base->n_nodes; i++)
                TRY(copy_node(edit, base->nodes[i]));
        return note_signature(edit);
}
