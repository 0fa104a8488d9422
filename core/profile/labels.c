// SPDX-License-Identifier: Apache-2.0
// Copies of the few texts that rows print. Nodes are copied as nodes, so that whoever reads a row
// need not know whose it is.
#include <string.h>
#include "core/profile/profile.h"
#include "core/program/program.h"

RunLabels *run_labels_ref(RunLabels *labels)
{
        refcount_get(&labels->ref);
        return labels;
}

RunLabels *run_labels_unref(RunLabels *labels)
{
        if (labels == NULL || !refcount_put(&labels->ref))
                return NULL;
        choice_unref(labels->choice);
        arena_deinit(&labels->arena);
        free(labels);
        return NULL;
}

static Status copy(RunLabels *labels, const char *text, const char **out_copy)
{
        *out_copy = text == NULL ? NULL : arena_text(&labels->arena, text, strlen(text));
        return text != NULL && *out_copy == NULL ? fail_memory() : STATUS_OK;
}

static Status copy_entry(RunLabels *labels, const StackEntry *from, const StackEntry **out_entry)
{
        StackEntry *call = arena_alloc(&labels->arena, sizeof(*call));
        if (call == NULL)
                return fail_memory();
        *out_entry = call;
        return copy(labels, from->path, &call->path);
}

static Status copy_nodes(RunLabels *labels, const Graph *graph)
{
        Node *nodes = arena_array(&labels->arena, graph->n_nodes, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                nodes[i].op = node->op;
                nodes[i].index = i;
                TRY(copy(labels, node_origin(node), &nodes[i].name));
                TRY(copy(labels, node->target, &nodes[i].target));
                // neighbours mostly are of one module
                const Node *before = i == 0 ? NULL : graph->nodes[i - 1];
                if (before != NULL && before->module_stack == node->module_stack)
                        nodes[i].module_stack = nodes[i - 1].module_stack;
                else if (node->module_stack != NULL)
                        TRY(copy_entry(labels, node->module_stack, &nodes[i].module_stack));
        }
        labels->nodes = nodes;
        labels->n_nodes = graph->n_nodes;
        return STATUS_OK;
}

static Status copy_row(RunLabels *labels, const ProgramRow *row, RowLabel *out_row)
{
        const Node **nodes = arena_array(&labels->arena, row->n_nodes, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < row->n_nodes; i++)
                nodes[i] = &labels->nodes[row->nodes[i]->index];
        *out_row = (RowLabel){ .nodes = row->nodes == NULL ? NULL : nodes, .n_nodes = row->n_nodes };
        TRY(copy(labels, row->kernel, &out_row->kernel));
        return copy(labels, row->why, &out_row->why);
}

static Status copy_program(RunLabels *labels, const Program *program)
{
        labels->choice = choice_ref(program->choice);
        memcpy(labels->program_id, program->id.hex, sizeof(labels->program_id));
        labels->rows = arena_array(&labels->arena, program->n_rows, sizeof(*labels->rows));
        labels->inputs = arena_array(&labels->arena, program->n_signature, sizeof(*labels->inputs));
        if (labels->rows == NULL || labels->inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < program->n_rows; i++)
                if (program->rows[i].instruction != ROW_OF_TAIL)
                        TRY(copy_row(labels, &program->rows[i], &labels->rows[labels->n_rows++]));
        for (; labels->n_inputs < program->n_signature; labels->n_inputs++) {
                const Value *value = &program->signature[labels->n_inputs];
                InputLabel *input = &labels->inputs[labels->n_inputs];
                input->is_tensor = value->kind == VALUE_TENSOR;
                if (input->is_tensor)
                        input->meta = value->tensor->meta;
        }
        return STATUS_OK;
}

Status run_labels_new(const Graph *graph, const Program *program, RunLabels **out_labels)
{
        _cleanup_(run_labels_unrefp) RunLabels *labels = calloc(1, sizeof(*labels));
        if (labels == NULL)
                return fail_memory();
        refcount_init(&labels->ref);
        arena_init(&labels->arena, 0);
        TRY(copy_nodes(labels, graph));
        if (program != NULL)
                TRY(copy_program(labels, program));
        *out_labels = take_ptr(labels);
        return STATUS_OK;
}

size_t run_labels_bytes(const RunLabels *labels)
{
        return labels == NULL ? 0 : sizeof(*labels) + labels->arena.total_bytes;
}

static void free_labels(void *labels)
{
        run_labels_unref(labels);
}

// Of runs without a program: made by the first one, kept by the graph.
static RunLabels *labels_of_graph(Graph *graph)
{
        void *labels = atomic_load(&graph->labels);
        if (labels == NULL) {
                RunLabels *fresh;
                if (run_labels_new(graph, NULL, &fresh) != STATUS_OK)
                        return NULL;
                if (atomic_compare_exchange_strong(&graph->labels, &labels, fresh)) {
                        graph->free_labels = free_labels;
                        labels = fresh;
                } else {
                        run_labels_unref(fresh);
                }
        }
        return run_labels_ref(labels);
}

bool run_profile_detach(RunProfile *profile)
{
        if (profile->graph == NULL)
                return profile->labels != NULL;
        if (profile->labels == NULL)
                profile->labels = labels_of_graph(profile->graph);
        const RunLabels *labels = profile->labels;
        if (labels == NULL)
                return false;
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                NodeTiming *row = &profile->rows[i];
                if (i < labels->n_rows) {
                        const RowLabel *label = &labels->rows[i];
                        row->nodes = label->nodes;
                        row->node = label->n_nodes > 0 ? label->nodes[0] : NULL;
                        row->kernel = label->kernel;
                        row->why = label->why;
                } else if (row->node != NULL) {
                        row->node = &labels->nodes[row->node->index];
                }
        }
        profile->program = program_unref(profile->program);
        profile->graph = graph_unref(profile->graph);
        return true;
}
