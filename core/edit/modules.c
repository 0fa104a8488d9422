// SPDX-License-Identifier: Apache-2.0
// modules.c: the module tree and the state of the working copy.
#include <string.h>
#include "core/edit/edit_parts.h"

static void drop_module(const EditModule *module)
{
        for (uint32_t i = 0; i < module->n_config; i++)
                value_unref(module->config[i].value);
}

// The values of `take_module` move into the module one by one; the rest is freed.
static Status fill_module(Edit *edit, Module *module, const EditModule *take_module)
{
        EditModule rest = *take_module;
        Status status = STATUS_OK;
        module->training = take_module->training;
        if (take_module->type != NULL &&
            (module->type = graph_normalise_module_type(edit->work, take_module->type)) == NULL)
                status = fail_memory();
        while (status == STATUS_OK && rest.n_config > 0) {
                const char *key;
                status = edit_keep_text(edit, rest.config[0].key, &key);
                if (status != STATUS_OK)
                        break;
                status = module_add_config(module, key, rest.config[0].value);
                rest.config++;
                rest.n_config--;
        }
        drop_module(&rest);
        if (status == STATUS_OK && take_module->graph != NULL)
                status = edit_copy_graph(take_module->graph, &module->graph);
        return status;
}

Status edit_add_module(Edit *edit, const char *path, const EditModule *take_module)
{
        Module *module = graph_module(edit->work, path);
        Status status = STATUS_OK;
        if (module != NULL && (module->type != NULL || module->graph != NULL || path[0] == '\0'))
                status = fail(STATUS_LINT, "module \"%.200s\" is defined twice", path);
        if (status == STATUS_OK)
                status = graph_add_module(edit->work, path, NULL, &module);
        if (status != STATUS_OK) {
                drop_module(take_module);
                return status;
        }
        return fill_module(edit, module, take_module);
}

Status edit_delete_module(Edit *edit, const char *path)
{
        return graph_remove_module(edit->work, path);
}

Status edit_replace_module(Edit *edit, const char *path, const EditModule *take_module)
{
        Module *module = graph_module(edit->work, path);
        if (module == NULL || path[0] == '\0') {
                drop_module(take_module);
                return fail(STATUS_LINT, "the graph has no module \"%.200s\"", path);
        }
        module_clear(module);
        return fill_module(edit, module, take_module);
}

static bool same_kind(const TensorMeta *a, const TensorMeta *b)
{
        return a->dtype == b->dtype && meta_same_shape(a, b);
}

Status edit_set_state(Edit *edit, const char *path, Tensor *take_tensor)
{
        State *state = graph_state(edit->work, path);
        if (state == NULL)
                return graph_add_state(edit->work, path, take_tensor, &state);
        _cleanup_(tensor_unrefp) Tensor *tensor = take_tensor;
        const TensorMeta *old = &state->tensor->meta, *new = &tensor->meta;
        if (edit->base->format == GRAPH_PT2 && !same_kind(old, new)) {
                char is[160], was[160];
                return fail(STATUS_SHAPE,
                            "the export has \"%.200s\" as %s%s; another tensor in its place must be alike, "
                            "not %s%s",
                            path, dtype_info[old->dtype].name,
                            shape_text(old->rank, old->size, was, sizeof(was)), dtype_info[new->dtype].name,
                            shape_text(new->rank, new->size, is, sizeof(is)));
        }
        tensor_unref(state->tensor);
        state->tensor = take_ptr(tensor);
        return STATUS_OK;
}

// ---- single entries of the state ----

static Status check_entry(const Edit *edit, const char *path)
{
        if (graph_state(edit->work, path) == NULL)
                return fail(STATUS_LINT, "the state has no \"%.200s\"", path);
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                if (node->input != NULL && node->input->kind == INPUT_STATE &&
                    strcmp(node->input->path, path) == 0)
                        return failure_at_node(fail(STATUS_UNSUPPORTED,
                                                    "the export has \"%.200s\" as placeholder %s; set its "
                                                    "tensor, or erase the placeholder first",
                                                    path, node->node.name),
                                               node->node.name);
        }
        for (uint32_t i = 0; i < edit->n_outputs; i++) {
                if (edit->outputs[i].kind == OUTPUT_STATE_MUTATION &&
                    strcmp(edit->outputs[i].target, path) == 0)
                        return fail(STATUS_UNSUPPORTED, "the export writes \"%.200s\"", path);
        }
        return STATUS_OK;
}

Status edit_delete_state(Edit *edit, const char *path)
{
        TRY(check_entry(edit, path));
        return graph_remove_state(edit->work, path);
}

Status edit_rename_state(Edit *edit, const char *path, const char *to)
{
        State *state;
        TRY(check_entry(edit, path));
        const State *old = graph_state(edit->work, path);
        bool is_parameter = old->is_parameter, persistent = old->persistent;
        TRY(graph_add_state(edit->work, to, tensor_ref(old->tensor), &state));
        state->is_parameter = is_parameter;
        state->persistent = persistent;
        TRY(graph_remove_state(edit->work, path));
        for (EditNode *node = edit->first; node != NULL; node = node->after) {
                if (node->node.op == OP_GET_ATTR && strcmp(node->node.target, path) == 0)
                        TRY(edit_set_target(edit, &node->node, to));
        }
        return STATUS_OK;
}
