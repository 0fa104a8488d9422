// SPDX-License-Identifier: Apache-2.0
// written.c: which graphs may write to their state. One pass in node order carries a bit per node: "may share bytes with state". Operators that always
// return fresh tensors clear it (a list of names below), all others pass it on; a write to a value that has it marks the whole state of the graph, so
// that runs see it through copy-on-write shells. Too many marks cost a little time; one too few would let a run change the model, so unknown means yes.
#include "core/targets/resolve.h"

#include <string.h>
#include "core/base/limits.h"

typedef struct Writes {
        bool *aliases;       // per node of the graph: may share bytes with state
        bool found;          // a node writes to such a value
} Writes;

// Operators and functions whose results never share bytes with their arguments.
static bool returns_fresh(const char *name)
{
        static const char *const fresh[] = { "linear",  "conv1d",     "conv2d",  "conv3d",      "convolution",       "conv_transpose1d", "conv_transpose2d",  "batch_norm",
                                             "matmul",  "mm",         "bmm",     "addmm",       "baddbmm",           "layer_norm",       "group_norm",        "instance_norm",
                                             "softmax", "log_softmax", "embedding", "cat",      "stack",             "max_pool1d",       "max_pool2d",        "max_pool3d",
                                             "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "interpolate",  "clone",
                                             "sum",     "mean",       "_assert" };
        for (size_t i = 0; i < ARRAY_LENGTH(fresh); i++) {
                if (strcmp(fresh[i], name) == 0)
                        return true;
        }
        return false;
}

static bool is_elementwise(const Target *target)
{
        bool all = target->n_overloads > 0;
        for (uint32_t i = 0; i < target->n_overloads; i++)
                all &= (target->overloads[i]->op->flags & OP_ELEMENTWISE) != 0 && !target->overloads[i]->inplace;
        return all;
}

// ---- what a node reads and writes ----
static Status note_alias(void *context, Node *input)
{
        bool *any = ((void **)context)[0];
        const bool *aliases = ((void **)context)[1];
        *any |= aliases[input->index];
        return STATUS_OK;
}

static Status reads_alias(const Node *node, const bool *aliases, bool *out)
{
        *out = false;
        void *context[] = { out, (void *)(uintptr_t)aliases };
        return node_visit_inputs(node, note_alias, context);
}

// inplace=True, or anything that is not a plain False.
static bool asks_in_place(const Node *node, const Overload *overload)
{
        const Schema *schema = &overload->schema;
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (strcmp(schema->args[i].name, "inplace") != 0)
                        continue;
                const Value *given = i < node->args.seq->n ? &node->args.seq->items[i] : NULL;
                if (given == NULL && node->kwargs.kind == VALUE_DICT)
                        given = dict_get(node->kwargs.dict, "inplace");
                return given != NULL && !(given->kind == VALUE_BOOL && !given->b);
        }
        return false;
}

static bool trains(const Node *node)
{
        for (uint32_t i = 0; i < node->args.seq->n; i++) {
                if (node->args.seq->items[i].kind == VALUE_BOOL && node->args.seq->items[i].b)
                        return true;
        }
        for (uint32_t i = 0; node->kwargs.kind == VALUE_DICT && i < node->kwargs.dict->n; i++) {
                ValueKind kind = node->kwargs.dict->items[i].value.kind;
                if (kind == VALUE_NODE || (kind == VALUE_BOOL && node->kwargs.dict->items[i].value.b))
                        return true;
        }
        return false;
}

static bool target_writes(const Node *node, const Target *target)
{
        static const char *const writers[] = { "setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift" };
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Overload *overload = target->overloads[i];
                const char *name = overload->schema.name;
                if (overload->inplace || (overload->schema.n_args > 0 && overload->schema.args[0].is_written) || asks_in_place(node, overload))
                        return true;
                for (uint32_t k = 1; k < overload->schema.n_args; k++) {
                        if (overload->schema.args[k].is_written)
                                return true;
                }
                // Statistics are updated without the schema saying so.
                if (strstr(name, "batch_norm") != NULL || strstr(name, "instance_norm") != NULL)
                        return trains(node);
                size_t n = strlen(name);
                if (strcmp(overload->schema.ns, "py") != 0 && n > 1 && name[n - 1] == '_' && name[n - 2] != '_')
                        return true;
                for (size_t k = 0; k < ARRAY_LENGTH(writers) && strcmp(overload->schema.ns, "py") == 0; k++) {
                        if (strcmp(writers[k], name) == 0)
                                return true;
                }
        }
        return false;
}

static bool module_in_place(const Module *module)
{
        for (uint32_t i = 0; i < module->n_config; i++) {
                if (strcmp(module->config[i].key, "inplace") == 0)
                        return module->config[i].value.kind != VALUE_BOOL || module->config[i].value.b;
        }
        return false;
}

static void visit_module(const Graph *graph, const Node *node, bool reads, Writes *writes)
{
        const Module *module = graph_module(graph, node->target);
        const ResolvedModule *resolved = module == NULL ? NULL : module->resolved;
        bool has_state = resolved != NULL && resolved->entry->n_state > 0;
        bool counts = resolved != NULL && module->training && resolved->entry->n_state > 2;  // running statistics
        writes->found |= counts || (resolved != NULL && reads && module_in_place(module));
        // A layer with weights computes; one without may hand its input on.
        writes->aliases[node->index] = resolved == NULL || (reads && !has_state);
}

static Status visit_node(const Graph *graph, const Node *node, Writes *writes)
{
        bool reads;
        TRY(reads_alias(node, writes->aliases, &reads));
        bool *aliases = &writes->aliases[node->index];
        const Target *target = node->resolved;
        switch (node->op) {
        case OP_PLACEHOLDER:
        case OP_GET_ATTR:
                *aliases = true;  // of a child graph: its operands may be state of the graph around it
                break;
        case OP_CALL_MODULE:
                visit_module(graph, node, reads, writes);
                break;
        case OP_CALL_FUNCTION:
        case OP_CALL_METHOD: {
                bool in_place = target == NULL || target_writes(node, target);
                bool fresh = target != NULL && !in_place && (is_elementwise(target) || returns_fresh(target->overloads[0]->schema.name));
                writes->found |= reads && in_place;
                *aliases = reads && !fresh;
                break;
        }
        default:
                break;
        }
        return STATUS_OK;
}

// Placeholders that hold the caller's own tensors are not state.
static void clear_user_inputs(const Graph *graph, Writes *writes)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                writes->aliases[i] = graph->nodes[i]->op == OP_PLACEHOLDER;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->kind != INPUT_STATE && input->placeholder != NULL)
                        writes->aliases[input->placeholder->index] = false;
        }
}

static Status graph_writes(const Graph *graph, int depth, bool *out_found)
{
        Writes writes = { .aliases = new_array(graph->n_nodes, sizeof(bool)) };
        if (writes.aliases == NULL)
                return fail_memory();
        Status status = STATUS_OK;
        clear_user_inputs(graph, &writes);
        for (uint32_t i = 0; i < graph->n_nodes && status == STATUS_OK && !writes.found; i++) {
                bool user_input = graph->nodes[i]->op == OP_PLACEHOLDER && depth == 0;
                if (!user_input)
                        status = visit_node(graph, graph->nodes[i], &writes);
        }
        free(writes.aliases);
        *out_found = writes.found;
        for (uint32_t i = 0; i < graph->n_modules && status == STATUS_OK && !*out_found && depth < limits.max_child_graphs; i++) {
                if (graph->modules[i]->graph != NULL)
                        status = graph_writes(graph->modules[i]->graph, depth + 1, out_found);  // depth: limits.max_child_graphs
        }
        return status;
}

static void mark_all(Graph *graph, int depth)
{
        for (uint32_t i = 0; i < graph->n_state; i++)
                graph->state[i].written = true;
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++) {
                if (graph->modules[i]->graph != NULL)
                        mark_all(graph->modules[i]->graph, depth + 1);  // depth: limits.max_child_graphs
        }
}

Status mark_written(Graph *graph)
{
        bool found = false;
        TRY(graph_writes(graph, 0, &found));
        if (found)
                mark_all(graph, 0);
        return STATUS_OK;
}
