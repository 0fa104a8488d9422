// SPDX-License-Identifier: Apache-2.0
// finish.c: closing a graph: lint, a signature when the reader gave none, users, last uses, bytes
// of the weights, fingerprint. Last uses are found as torch.fx finds them: walking backwards, the
// first reader met is the last one to run; a node that nobody reads frees itself.
#include "core/graph/finish.h"

#include <string.h>

// One node's walk over its inputs. `mark` holds, per node, the last reader that has been counted
// (index + 1).
typedef struct Readers {
        const Node *reader;
        uint32_t *mark;
        Node **list; // values to be freed by the reader
        uint32_t n_list, list_capacity;
} Readers;

static Status count_user(void *context, Node *input)
{
        Readers *readers = context;
        if (readers->mark[input->index] != readers->reader->index + 1) {
                readers->mark[input->index] = readers->reader->index + 1;
                input->n_users++;
        }
        return STATUS_OK;
}

static Status collect_last_use(void *context, Node *input)
{
        Readers *readers = context;
        if (readers->mark[input->index] != 0)
                return STATUS_OK;
        readers->mark[input->index] = 1;
        TRY(array_reserve(&readers->list, &readers->list_capacity, readers->n_list + 1, sizeof(Node *)));
        readers->list[readers->n_list++] = input;
        return STATUS_OK;
}

static Status set_frees(Graph *graph, Node *node, Readers *readers)
{
        readers->n_list = 0;
        readers->reader = node;
        TRY(node_visit_inputs(node, collect_last_use, readers));
        if (node->op == OP_PLACEHOLDER || node->op == OP_OUTPUT)
                return STATUS_OK;
        node->n_frees = readers->n_list + (node->n_users == 0);
        node->frees = arena_array(&graph->arena, node->n_frees, sizeof(Node *));
        if (node->frees == NULL)
                return fail_memory();
        if (readers->n_list > 0)
                memcpy(node->frees, readers->list, readers->n_list * sizeof(Node *));
        if (node->n_users == 0)
                node->frees[readers->n_list] = node;
        return STATUS_OK;
}

static Status set_uses(Graph *graph, Readers *readers)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                readers->reader = graph->nodes[i];
                TRY(node_visit_inputs(graph->nodes[i], count_user, readers));
        }
        memset(readers->mark, 0, graph->n_nodes * sizeof(*readers->mark));
        for (uint32_t i = graph->n_nodes; i-- > 0;)
                TRY(set_frees(graph, graph->nodes[i], readers));
        return STATUS_OK;
}

// Without metadata every placeholder takes anything.
static Status default_signature(Graph *graph)
{
        Signature *signature = &graph->signature;
        uint32_t n = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += graph->nodes[i]->op == OP_PLACEHOLDER;
        if (signature->inputs != NULL || n == 0)
                return STATUS_OK;
        Input *inputs = arena_array(&graph->arena, n, sizeof(*inputs));
        const char **names = arena_array(&graph->arena, n, sizeof(*names));
        if (inputs == NULL || names == NULL)
                return fail_memory();
        uint32_t at = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                Node *node = graph->nodes[i];
                if (node->op != OP_PLACEHOLDER)
                        continue;
                inputs[at] = (Input){ .kind = INPUT_USER,
                                      .placeholder = node,
                                      .spec = { .dtype = DTYPE_NONE, .rank = -1 } };
                if (node->spec != NULL) {
                        inputs[at].spec = *node->spec;
                        inputs[at].value_kind = VALUE_TENSOR;
                }
                names[at++] = node->target + strspn(node->target, "*");
        }
        signature->inputs = inputs;
        signature->n_inputs = signature->n_user_inputs = n;
        signature->argument_names = names;
        signature->n_arguments = n;
        return STATUS_OK;
}

static int compare_storage(const void *a, const void *b)
{
        uintptr_t x = (uintptr_t) * (Storage *const *)a, y = (uintptr_t) * (Storage *const *)b;
        return (x > y) - (x < y);
}

// Tied tensors count once. A child graph counts its own state; weights that it shares with its
// parent count in both.
static Status count_weights(Graph *graph)
{
        _cleanup_(freep) Storage **storages = new_array(graph->n_state, sizeof(Storage *));
        if (storages == NULL)
                return fail_memory();
        size_t n = 0;
        for (uint32_t i = 0; i < graph->n_state; i++) {
                if (graph->state[i].tensor->storage != NULL)
                        storages[n++] = graph->state[i].tensor->storage;
        }
        qsort(storages, n, sizeof(Storage *), compare_storage);
        graph->weights_bytes = 0;
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || storages[i] != storages[i - 1])
                        graph->weights_bytes += storages[i]->n_bytes;
        }
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL)
                        graph->weights_bytes += graph->modules[i]->graph->weights_bytes;
        }
        return STATUS_OK;
}

Status graph_finish(Graph *graph)
{
        if (graph->finished)
                return fail(STATUS_INTERNAL, "graph_finish was called twice");
        TRY(graph_lint(graph));
        TRY(default_signature(graph));
        if (graph->signature.in_tree != NULL)
                TRY(tree_sort_keys(&graph->arena, graph->signature.in_tree));
        _cleanup_(freep) uint32_t *mark = new_array(graph->n_nodes, sizeof(*mark));
        if (mark == NULL)
                return fail_memory();
        Readers readers = { .mark = mark };
        Status status = set_uses(graph, &readers);
        free(readers.list);
        TRY(status);
        TRY(count_weights(graph));
        graph_set_fingerprint(graph);
        string_map_deinit(&graph->traces);
        string_map_deinit(&graph->calls);
        graph->finished = true;
        return STATUS_OK;
}
