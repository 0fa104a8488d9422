// SPDX-License-Identifier: Apache-2.0
// edit.c: a session from the working copy to the new graph.
//
// While it is edited, work->nodes holds every node ever made, so that graph_unref frees the values
// of an abandoned session. Closing stores the remaining nodes there, in their order. The exporter's
// record of a node's result is kept only if neither it nor a node it depends on was changed.
#include "core/edit/edit_parts.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/targets/targets.h"

Status edit_new(const Graph *base, Edit **out_edit)
{
        if (!base->finished)
                return fail(STATUS_INTERNAL, "edit_new: the graph is not finished");
        _cleanup_(edit_freep) Edit *edit = calloc(1, sizeof(*edit));
        if (edit == NULL)
                return fail_memory();
        edit->base = graph_ref((Graph *)(uintptr_t)base);
        TRY(graph_new(base->format, &edit->work));
        edit->most_values = INT64_MAX;
        TRY(edit_copy_base(edit));
        edit->most_values = edit->n_values + limits.max_edit_values;
        *out_edit = take_ptr(edit);
        return STATUS_OK;
}

Edit *edit_free(Edit *edit)
{
        if (edit == NULL)
                return NULL;
        graph_unref(edit->work);
        graph_unref(edit->base);
        free(edit->by_base);
        free(edit->outputs);
        free(edit->called);
        free(edit->gone);
        free(edit);
        return NULL;
}

Status edit_step(Edit *edit)
{
        edit->n_gone = 0;
        if (++edit->n_steps > limits.max_edit_steps)
                return fail(STATUS_TOO_LARGE,
                            "the recipe has more than %lld steps (max_edit_steps in GET /v1)",
                            (long long)limits.max_edit_steps);
        TRY(run_poll(edit->poll));
        return edit_visit(edit, (int64_t)edit->n_nodes + 1);
}

enum { VISITS_PER_POLL = 1000 };

Status edit_visit(Edit *edit, int64_t n)
{
        edit->n_visits += n;
        if (edit->n_visits > limits.max_edit_visits)
                return fail(STATUS_TOO_LARGE,
                            "the steps look at more than %lld nodes together (max_edit_visits in GET /v1)",
                            (long long)limits.max_edit_visits);
        if (edit->n_visits < edit->next_poll)
                return STATUS_OK;
        edit->next_poll = edit->n_visits + VISITS_PER_POLL;
        return run_poll(edit->poll);
}

void edit_set_poll(Edit *edit, const RunContext *poll)
{
        edit->poll = poll;
}

const RunContext *edit_poll(const Edit *edit)
{
        return edit->poll;
}

// ---- looking ----

static Node *node_or_null(EditNode *node)
{
        return node == NULL ? NULL : &node->node;
}

const Graph *edit_base(const Edit *edit)
{
        return edit->base;
}

Node *edit_node(const Edit *edit, const char *name)
{
        return graph_node(edit->work, name);
}

Node *edit_copy_of(const Edit *edit, const Node *node)
{
        Node *copy = edit->by_base[node->index];
        return edit_node_of(copy)->erased ? NULL : copy;
}

Node *edit_first(const Edit *edit)
{
        return node_or_null(edit->first);
}

Node *edit_last(const Edit *edit)
{
        return node_or_null(edit->last);
}

Node *edit_next(const Node *node)
{
        return node_or_null(edit_node_of(node)->after);
}

Node *edit_previous(const Node *node)
{
        return node_or_null(edit_node_of(node)->before);
}

Node *edit_output(const Edit *edit)
{
        Node *last = edit_last(edit);
        return last != NULL && last->op == OP_OUTPUT ? last : NULL;
}

uint32_t edit_n_nodes(const Edit *edit)
{
        return edit->n_nodes;
}

const EditUse *edit_first_use(const Node *node)
{
        return edit_node_of(node)->first_use;
}

const EditUse *edit_next_use(const EditUse *use)
{
        return use->after;
}

Node *edit_user(const EditUse *use)
{
        return &use->user->node;
}

bool edit_is_changed(const Node *node)
{
        return edit_node_of(node)->changed;
}

bool edit_node_is_new(const Node *node)
{
        return !edit_node_of(node)->copied;
}

bool edit_is_touched(const Edit *edit, const Node *node)
{
        return edit_node_of(node)->step == edit->n_steps;
}

const Node *edit_erased(const Edit *edit, uint32_t i)
{
        return i < edit->n_gone ? edit->gone[i] : NULL;
}

const Graph *edit_work(const Edit *edit)
{
        return edit->work;
}

const Module *edit_module(const Edit *edit, const char *path)
{
        return graph_module(edit->work, path);
}

const State *edit_state(const Edit *edit, const char *path)
{
        return graph_state(edit->work, path);
}

// ---- closing ----

// Puts the list into work->nodes. Its capacity suffices: at least as many nodes were made.
static void order_nodes(Edit *edit)
{
        Graph *work = edit->work;
        uint32_t n = 0;
        for (EditNode *node = edit->first; node != NULL; node = node->after) {
                node->node.index = n;
                work->nodes[n++] = &node->node;
        }
        work->n_nodes = n;
        work->output = edit_output(edit);
}

// For each node made, whether it stands in the list or not.
static Status list_all(const Edit *edit, Node ***out_nodes)
{
        *out_nodes = new_array(edit->n_made, sizeof(Node *));
        if (*out_nodes == NULL)
                return fail_memory();
        memcpy(*out_nodes, edit->work->nodes, edit->n_made * sizeof(Node *));
        return STATUS_OK;
}

static void restore_nodes(Edit *edit, Node **all)
{
        memcpy(edit->work->nodes, all, edit->n_made * sizeof(Node *));
        edit->work->n_nodes = edit->n_made;
        free(all);
}

Status edit_lint(Edit *edit)
{
        Graph *work = edit->work;
        Node **all;
        TRY(list_all(edit, &all));
        order_nodes(edit);
        Status status = graph_lint(work);
        restore_nodes(edit, all);
        return status;
}

Status edit_resolve(Edit *edit)
{
        Node **all;
        CheckReport report;
        TRY(list_all(edit, &all));
        order_nodes(edit);
        Status status = graph_resolve(edit->work, &report);
        if (status == STATUS_OK)
                check_report_deinit(&report);
        restore_nodes(edit, all);
        return status;
}

// Results of an earlier edit_resolve may be out of date.
static void forget_writes(Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_state; i++)
                graph->state[i].written = false;
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL)
                        forget_writes(graph->modules[i]->graph); // depth: as edit_copy_graph
        }
}

static void drop_stale_specs(Edit *edit)
{
        uint64_t stale = ++edit->walk;
        for (EditNode *node = edit->first; node != NULL; node = node->after) {
                bool changed = node->changed && !node->spec_known && node->node.op != OP_PLACEHOLDER;
                for (uint32_t i = 0; i < node->n_inputs && !changed; i++)
                        changed = node->inputs[i].input->mark == stale;
                node->mark = changed ? stale : 0;
                if (changed)
                        node->node.spec = NULL;
        }
}

static Status close_work(Edit *edit)
{
        TRY(edit_lint(edit));
        drop_stale_specs(edit);
        order_nodes(edit);
        TRY(edit_derive_signature(edit));
        for (EditNode *node = edit->first; node != NULL; node = node->after)
                node->node.n_users = 0;
        TRY(graph_finish(edit->work));
        edit_mark_hidden(edit);
        return STATUS_OK;
}

Status edit_copy_graph(const Graph *graph, Graph **out_graph)
{
        _cleanup_(edit_freep) Edit *edit = NULL;
        TRY(edit_new(graph, &edit)); // depth: limits.max_child_graphs, plus one level that resolving refuses
        TRY(close_work(edit));
        *out_graph = take_ptr(edit->work);
        return STATUS_OK;
}

Status edit_finish(Edit *edit, Graph **out_graph)
{
        if (edit->work == NULL)
                return fail(STATUS_INTERNAL, "edit_finish was called twice");
        _cleanup_(graph_unrefp) Graph *work = NULL;
        TRY(close_work(edit));
        work = take_ptr(edit->work);
        CheckReport report;
        forget_writes(work);
        TRY(graph_resolve(work, &report));
        Status status = check_report_status(&report, work);
        check_report_deinit(&report);
        TRY(status);
        *out_graph = take_ptr(work);
        return STATUS_OK;
}

Status edit_reopen(Edit *edit, Graph **out_graph, Edit **out_edit)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(edit_finish(edit, &graph));
        TRY(edit_new(graph, out_edit));
        (*out_edit)->n_steps = edit->n_steps;
        (*out_edit)->n_visits = edit->n_visits;
        (*out_edit)->most_values = edit->most_values;
        (*out_edit)->poll = edit->poll;
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}
