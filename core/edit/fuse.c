// SPDX-License-Identifier: Apache-2.0
// fuse.c: batch norms are folded into the layers in front of them.
#include <stdio.h>
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/edit/passes.h"
#include "core/targets/fold_norm.h"

typedef struct Fusing {
        Edit *edit;
        Emitter *emitter;
        EditNode *layer, *norm; // calls
        const Module *layer_module, *norm_module;
} Fusing;

static const Module *called_module(const Edit *edit, const Node *node)
{
        const Module *module = node->op == OP_CALL_MODULE ? graph_module(edit->work, node->target) : NULL;
        return module != NULL && module->type != NULL ? module : NULL;
}

static const Value *config_of(const Module *module, const char *key)
{
        for (uint32_t i = 0; i < module->n_config; i++) {
                if (strcmp(module->config[i].key, key) == 0)
                        return &module->config[i].value;
        }
        return NULL;
}

static Value state_of(const Fusing *fusing, const Module *module, const char *name)
{
        char path[512];
        int n = snprintf(path, sizeof(path), "%s.%s", module->path, name);
        const State *state = n >= (int)sizeof(path) ? NULL : graph_state(fusing->edit->work, path);
        return state == NULL ? value_none() : (Value){ .kind = VALUE_TENSOR, .tensor = state->tensor };
}

// Others that call the layer, or read what is below it, would get the folded weights.
static bool is_called_once(const Fusing *fusing)
{
        const char *path = fusing->layer->node.target;
        size_t n = strlen(path);
        for (const EditNode *node = fusing->edit->first; node != NULL; node = node->after) {
                bool reads = node->node.op == OP_CALL_MODULE || node->node.op == OP_GET_ATTR;
                if (node != fusing->layer && reads && strncmp(node->node.target, path, n) == 0 &&
                    (node->node.target[n] == '\0' || node->node.target[n] == '.'))
                        return false;
        }
        return true;
}

static bool child_has(const Graph *graph, const Storage *storage)
{
        bool found = false;
        for (uint32_t i = 0; i < graph->n_modules && !found; i++) {
                const Graph *child = graph->modules[i]->graph;
                for (uint32_t k = 0; child != NULL && k < child->n_state && !found; k++)
                        found = child->state[k].tensor->storage == storage;
                found = found || (child != NULL && child_has(child, storage)); // depth: as edit_copy_graph
        }
        return found;
}

// Whether a run may write the tensor: then what is folded from it would be out of date.
static bool may_be_written(const Fusing *fusing, const Module *module, const char *name)
{
        char path[512];
        const Graph *work = fusing->edit->work;
        snprintf(path, sizeof(path), "%s.%s", module->path, name);
        const State *state = graph_state(work, path);
        if (state == NULL || !state->written)
                return false;
        const Storage *storage = state->tensor->storage;
        for (const EditNode *node = fusing->edit->first; node != NULL; node = node->after) {
                const State *read =
                        node->node.op == OP_GET_ATTR ? graph_state(work, node->node.target) : NULL;
                if (read != NULL && read->tensor->storage == storage)
                        return true;
        }
        return child_has(work, storage);
}

static bool is_constant(const Fusing *fusing)
{
        static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                if (may_be_written(fusing, fusing->norm_module, names[i]) ||
                    may_be_written(fusing, fusing->layer_module, names[i]))
                        return false;
        }
        return true;
}

// A norm has the channels in dimension 1, a Linear in the last one. Without shapes a graph is taken
// as in torch.fx.
static bool has_other_channels(const Fusing *fusing)
{
        const TensorSpec *spec = fusing->layer->node.spec;
        return strcmp(fusing->layer_module->type, "torch.nn.Linear") == 0 && spec != NULL &&
               spec->rank >= 0 && spec->rank != 2;
}

static bool is_pair(Fusing *fusing, EditNode *norm)
{
        const Seq *args = norm->node.args.seq;
        if (norm->node.op != OP_CALL_MODULE || args->n == 0 || args->items[0].kind != VALUE_NODE)
                return false;
        fusing->norm = norm;
        fusing->layer = edit_node_of(args->items[0].node);
        fusing->layer_module = called_module(fusing->edit, &fusing->layer->node);
        fusing->norm_module = called_module(fusing->edit, &norm->node);
        if (fusing->layer_module == NULL || fusing->norm_module == NULL ||
            !module_takes_norm(fusing->layer_module->type, fusing->norm_module->type) ||
            fusing->layer->node.n_users > 1 || has_other_channels(fusing))
                return false;
        const Value *tracks = config_of(fusing->norm_module, "track_running_stats");
        bool tracked = tracks == NULL || tracks->kind != VALUE_BOOL || tracks->b;
        return tracked && state_of(fusing, fusing->norm_module, "running_mean").kind == VALUE_TENSOR &&
               state_of(fusing, fusing->norm_module, "running_var").kind == VALUE_TENSOR &&
               state_of(fusing, fusing->layer_module, "weight").kind == VALUE_TENSOR;
}

static Status set_weight(const Fusing *fusing, const char *name, Value value, Dtype dtype)
{
        Tensor *own;
        const char *path =
                arena_format(&fusing->edit->work->arena, "%s.%s", fusing->layer_module->path, name);
        if (path == NULL)
                return fail_memory();
        TRY(edit_own_tensor(value.tensor, dtype, &own));
        TRY(edit_set_state(fusing->edit, path, own));
        graph_state(fusing->edit->work, path)->is_parameter = true;
        return STATUS_OK;
}

// A layer made without a bias has one now.
static Status configure_bias(const Fusing *fusing)
{
        const Module *from = fusing->layer_module;
        EditModule module = { .type = from->type, .training = from->training };
        if (config_of(from, "bias") == NULL)
                return STATUS_OK;
        _cleanup_(freep) ModuleConfig *config = new_array(from->n_config, sizeof(*config));
        if (config == NULL)
                return fail_memory();
        module.config = config;
        for (uint32_t i = 0; i < from->n_config; i++) {
                if (strcmp(from->config[i].key, "bias") == 0)
                        continue;
                config[module.n_config] = from->config[i];
                value_ref(config[module.n_config++].value);
        }
        return edit_replace_module(fusing->edit, from->path, &module);
}

static Status check_training(const Fusing *fusing)
{
        if (fusing->layer_module->training || fusing->norm_module->training)
                return failure_at_node(fail(STATUS_LINT, "Fusion only for eval!"), fusing->norm->node.name);
        return STATUS_OK;
}

static Status fold(const Fusing *fusing)
{
        const Module *layer = fusing->layer_module, *norm = fusing->norm_module;
        const Value *eps = config_of(norm, "eps");
        NormFold values = { .layer = layer->type,
                            .norm = norm->type,
                            .weight = state_of(fusing, layer, "weight"),
                            .bias = state_of(fusing, layer, "bias"),
                            .mean = state_of(fusing, norm, "running_mean"),
                            .var = state_of(fusing, norm, "running_var"),
                            .gamma = state_of(fusing, norm, "weight"),
                            .beta = state_of(fusing, norm, "bias"),
                            .eps = eps == NULL              ? 1e-5
                                   : eps->kind == VALUE_INT ? (double)eps->i
                                                            : eps->f };
        Dtype weight_dtype = values.weight.tensor->meta.dtype;
        Dtype bias_dtype = values.bias.kind == VALUE_TENSOR ? values.bias.tensor->meta.dtype : weight_dtype;
        _cleanup_(value_clear) Value weight = value_none();
        _cleanup_(value_clear) Value bias = value_none();
        TRY(norm_fold(fusing->emitter, &values, &weight, &bias));
        TRY(set_weight(fusing, "weight", weight, weight_dtype));
        TRY(set_weight(fusing, "bias", bias, bias_dtype));
        return configure_bias(fusing);
}

static Status fuse_pair(const Fusing *fusing)
{
        const char *path = fusing->norm->node.target;
        TRY(check_training(fusing));
        TRY(failure_at_node(fold(fusing), fusing->norm->node.name));
        TRY(edit_replace_all_uses(fusing->edit, &fusing->norm->node,
                                  (Value){ .kind = VALUE_NODE, .node = &fusing->layer->node }, NULL));
        TRY(edit_erase(fusing->edit, &fusing->norm->node));
        edit_note_change(fusing->edit, fusing->layer);
        return edit_drop_unread(fusing->edit, path);
}

Status edit_fuse(Edit *edit, Emitter *emitter, uint32_t *out_n)
{
        Fusing fusing = { .edit = edit, .emitter = emitter };
        EditNode *next;
        TRY(edit_lint(edit));
        TRY(edit_resolve(edit));
        *out_n = 0;
        for (EditNode *node = edit->first; node != NULL; node = next) {
                next = node->after;
                if (!is_pair(&fusing, node))
                        continue;
                TRY(edit_visit(edit, edit->n_nodes));
                if (!is_called_once(&fusing) || !is_constant(&fusing))
                        continue;
                TRY(fuse_pair(&fusing));
                (*out_n)++;
        }
        return STATUS_OK;
}
