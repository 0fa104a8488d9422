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
