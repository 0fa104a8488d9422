// SPDX-License-Identifier: Apache-2.0
// outline.c: some nodes become a child graph and one call of it; edit_inline is the way back.
//
// Between the first and the last of them, other nodes may stand. Those that read a result of the
// set, directly or not, move behind the call; a node of the set that reads one of those shows that
// the set cannot be one call. The call stands where the last of the set stood.
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

typedef struct Outlining {
        Edit *edit;
        const char *path;
        Graph *child;
        EditNode *first, *last; // of the set
        bool *inside;           // by node index
        bool *after;            // by node index: reads a result of the set
        bool *taken;            // by node index: among the arguments
        Node **arguments;       // outside, in order of first use
        Node **results;         // inside, read outside
        uint32_t n_arguments, n_results;
        Node **copies; // by node index: in the child
} Outlining;

// ---- the set ----

static Status mark_set(Outlining *outlining, Node *const *nodes, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                TRY(edit_check_node(outlining->edit, nodes[i]));
                if (!node_is_call(nodes[i]) && nodes[i]->op != OP_GET_ATTR)
                        return failure_at_node(fail(STATUS_LINT,
                                                    "Node %s is a %s, which cannot go into a child graph",
                                                    nodes[i]->name, opcode_names[nodes[i]->op]),
                                               nodes[i]->name);
                outlining->inside[nodes[i]->index] = true;
        }
        return n > 0 ? STATUS_OK : fail(STATUS_LINT, "no node is named that could go into a child graph");
}

static Status mark_readers(Outlining *outlining, EditNode *node)
{
        bool *inside = outlining->inside, *after = outlining->after;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                const Node *input = &node->inputs[i].input->node;
                if (inside[node->node.index] && after[input->index])
                        return failure_at_node(fail(STATUS_LINT,
                                                    "Node %s reads %s, which reads a result of the nodes "
                                                    "that are to be one call",
                                                    node->node.name, input->name),
                                               node->node.name);
                if (!inside[node->node.index] && (inside[input->index] || after[input->index]))
                        after[node->node.index] = true;
        }
        return STATUS_OK;
}

// A write in between may be seen by nodes on both sides.
static Status check_order(const Outlining *outlining)
{
        bool apart = false;
        const EditNode *writes = NULL;
        for (const EditNode *node = outlining->first; node != outlining->last; node = node->after) {
                uint32_t effects =
                        node_is_call(&node->node) ? node_effects(outlining->edit->work, &node->node) : 0;
                apart |= !outlining->inside[node->node.index];
                if ((effects & (NODE_WRITES | NODE_WRITES_FIRST | NODE_MOVES | NODE_DRAWS)) != 0)
                        writes = node;
        }
        if (!apart || writes == NULL)
                return STATUS_OK;
        return failure_at_node(fail(STATUS_UNSUPPORTED,
                                    "Node %s writes or draws random numbers between the nodes that are to be "
                                    "one call; name nodes that follow each other",
                                    writes->node.name),
                               writes->node.name);
}

static Status examine(Outlining *outlining)
{
        for (EditNode *node = outlining->edit->first; node != NULL; node = node->after) {
                if (outlining->inside[node->node.index]) {
                        outlining->first = outlining->first == NULL ? node : outlining->first;
                        outlining->last = node;
                }
                TRY(mark_readers(outlining, node));
        }
        return STATUS_OK;
}

// ---- what the child takes and gives ----

static void note_argument(Outlining *outlining, Node *input)
{
        if (outlining->inside[input->index] || outlining->taken[input->index])
                return;
        outlining->taken[input->index] = true;
        outlining->arguments[outlining->n_arguments++] = input;
}

static void note_result(Outlining *outlining, EditNode *node)
{
        for (const EditUse *use = node->first_use; use != NULL; use = use->after) {
                if (!outlining->inside[use->user->node.index]) {
                        outlining->results[outlining->n_results++] = &node->node;
                        return;
                }
        }
}

static Status add_argument(Outlining *outlining, const Node *outside)
{
        return graph_add_node(
                outlining->child,
                &(NodeSpec){ .op = OP_PLACEHOLDER, .name = outside->name, .target = outside->name },
                &outlining->copies[outside->index]);
}

static Status map_leaf(void *context, const Value *leaf, Value *out)
{
        const Outlining *outlining = context;
        if (leaf->kind == VALUE_NODE)
                *out = (Value){ .kind = VALUE_NODE, .node = outlining->copies[leaf->node->index] };
        else
                *out = value_ref(*leaf);
        return STATUS_OK;
}

static Status copy_node(Outlining *outlining, const Node *node)
{
        NodeSpec spec = { .op = node->op, .name = node->name, .target = node->target };
        Node *copy;
        TRY(value_map(node->args, map_leaf, outlining, &spec.args));
        Status status = value_map(node->kwargs, map_leaf, outlining, &spec.kwargs);
        if (status != STATUS_OK) {
                value_unref(spec.args);
                return status;
        }
        TRY(graph_add_node(outlining->child, &spec, &copy));
        outlining->copies[node->index] = copy;
        return STATUS_OK;
}

static Status add_result(Outlining *outlining)
{
        Seq *args, *items;
        Node *output;
        TRY(seq_new(1, &args));
        NodeSpec spec = { .op = OP_OUTPUT, .name = "output", .target = "output" };
        spec.args = value_seq_take(VALUE_TUPLE, args);
        Status status = outlining->n_results == 1 ? STATUS_OK : seq_new(outlining->n_results, &items);
        if (status != STATUS_OK) {
                value_unref(spec.args);
                return status;
        }
        if (outlining->n_results != 1)
                args->items[0] = value_seq_take(VALUE_TUPLE, items);
        for (uint32_t i = 0; i < outlining->n_results; i++) {
                Value result = { .kind = VALUE_NODE,
                                 .node = outlining->copies[outlining->results[i]->index] };
                *(outlining->n_results == 1 ? &args->items[0] : &items->items[i]) = result;
        }
        return graph_add_node(outlining->child, &spec, &output);
}

// ---- modules and state ----

// "linear.weight" is below "linear", and the other way round: whoever calls a module reads what is
// below, whoever reads a tensor needs what is above.
static bool is_related(const char *a, const char *b)
{
        size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;
        return strncmp(a, b, least) == 0 && (n == m || (n < m ? b : a)[least] == '.');
}

static bool is_below(const char *path, const char *parent)
{
        return strlen(path) >= strlen(parent) && is_related(path, parent);
}

static bool names_path(const Node *node)
{
        return node->op == OP_CALL_MODULE || node->op == OP_GET_ATTR;
}

static Status copy_module(Graph *child, const Module *from)
{
        Module *module = graph_module(child, from->path);
        if (module != NULL && module->type != NULL)
                return STATUS_OK;
        TRY(graph_add_module(child, from->path, from->type, &module));
        module->training = from->training;
        for (uint32_t i = 0; i < from->n_config; i++) {
                char *key = arena_text(&child->arena, from->config[i].key, strlen(from->config[i].key));
                if (key == NULL)
                        return fail_memory();
                TRY(module_add_config(module, key, value_ref(from->config[i].value)));
        }
        return from->graph == NULL ? STATUS_OK : edit_copy_graph(from->graph, &module->graph);
}

static Status copy_tree(Outlining *outlining, const char *path)
{
        const Graph *work = outlining->edit->work;
        TRY(edit_visit(outlining->edit, (int64_t)work->n_modules + work->n_state));
        for (uint32_t i = 1; i < work->n_modules; i++) {
                if (is_below(work->modules[i]->path, path))
                        TRY(copy_module(outlining->child, work->modules[i]));
        }
        for (uint32_t i = 0; i < work->n_state; i++) {
                const State *from = &work->state[i];
                State *state;
                if (!is_below(from->path, path) || graph_state(outlining->child, from->path) != NULL)
                        continue;
                TRY(graph_add_state(outlining->child, from->path, tensor_ref(from->tensor), &state));
                state->is_parameter = from->is_parameter;
                state->persistent = from->persistent;
        }
        return STATUS_OK;
}

Status edit_drop_unread(Edit *edit, const char *path)
{
        TRY(edit_visit(edit, (int64_t)edit->n_nodes + edit->work->n_modules + edit->work->n_state));
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                bool lifted = node->input != NULL && node->input->kind == INPUT_STATE &&
                              is_related(node->input->path, path);
                if (lifted || (names_path(&node->node) && is_related(node->node.target, path)))
                        return STATUS_OK;
        }
        if (graph_module(edit->work, path) != NULL)
                return graph_remove_module(edit->work, path);
        return graph_state(edit->work, path) != NULL ? graph_remove_state(edit->work, path) : STATUS_OK;
}

// ---- the call ----

static Status move_readers(const Outlining *outlining, const Node *call, Node *at)
{
        EditNode *next;
        for (EditNode *node = outlining->first; &node->node != call; node = next) {
                next = node->after;
                if (!outlining->after[node->node.index])
                        continue;
                TRY(edit_move_after(outlining->edit, &node->node, at));
                at = &node->node;
        }
        return STATUS_OK;
}

static Status insert_call(const Outlining *outlining, Node **out_call)
{
        Seq *args;
        TRY(seq_new(outlining->n_arguments, &args));
        for (uint32_t i = 0; i < args->n; i++)
                args->items[i] = (Value){ .kind = VALUE_NODE, .node = outlining->arguments[i] };
        EditNew new = { .op = OP_CALL_MODULE,
                        .target = outlining->path,
                        .args = value_seq_take(VALUE_TUPLE, args),
                        .origin = &outlining->last->node };
        return edit_insert_after(outlining->edit, &outlining->last->node, &new, out_call);
}

static Status insert_item(Edit *edit, Node *at, Node *call, uint32_t index, Node **out_item)
{
        Seq *args;
        TRY(seq_new(2, &args));
        args->items[0] = (Value){ .kind = VALUE_NODE, .node = call };
        args->items[1] = value_int(index);
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = "_operator.getitem",
                        .args = value_seq_take(VALUE_TUPLE, args),
                        .origin = call };
        return edit_insert_after(edit, at, &new, out_item);
}

// *out_last: the call, or the last getitem.
static Status put_results(const Outlining *outlining, Node *call, Node **out_last)
{
        Node *at = call, *item = call;
        for (uint32_t i = 0; i < outlining->n_results; i++) {
                if (outlining->n_results > 1) {
                        TRY(insert_item(outlining->edit, at, call, i, &item));
                        at = item;
                }
                Value with = { .kind = VALUE_NODE, .node = item };
                TRY(edit_replace_all_uses(outlining->edit, outlining->results[i], with, NULL));
        }
        *out_last = at;
        return STATUS_OK;
}

// From the end to the front, so that no erased node is read. The base of paths stays in the arena.
static Status erase_set(const Outlining *outlining)
{
        EditNode *before, *stop = outlining->first->before;
        for (EditNode *node = outlining->last; node != stop; node = before) {
                before = node->before;
                if (!outlining->inside[node->node.index])
                        continue;
                const char *path = names_path(&node->node) ? node->node.target : NULL;
                TRY(edit_erase(outlining->edit, &node->node));
                if (path != NULL)
                        TRY(edit_drop_unread(outlining->edit, path));
        }
        return STATUS_OK;
}

static Status fill_child(Outlining *outlining)
{
        for (EditNode *node = outlining->first; node != outlining->last->after; node = node->after) {
                if (!outlining->inside[node->node.index])
                        continue;
                for (uint32_t i = 0; i < node->n_inputs; i++)
                        note_argument(outlining, &node->inputs[i].input->node);
                note_result(outlining, node);
        }
        for (uint32_t i = 0; i < outlining->n_arguments; i++)
                TRY(add_argument(outlining, outlining->arguments[i]));
        for (EditNode *node = outlining->first; node != outlining->last->after; node = node->after) {
                if (!outlining->inside[node->node.index])
                        continue;
                if (names_path(&node->node))
                        TRY(copy_tree(outlining, node->node.target));
                TRY(copy_node(outlining, &node->node));
        }
        TRY(add_result(outlining));
        return graph_finish(outlining->child);
}

static Status outline(Outlining *outlining, Node **out_call)
{
        Node *call, *last;
        EditModule module = { .type = "torch.fx.GraphModule", .graph = outlining->child };
        TRY(check_order(outlining));
        TRY(edit_add_module(outlining->edit, outlining->path, &module));
        TRY(insert_call(outlining, &call));
        TRY(put_results(outlining, call, &last));
        TRY(move_readers(outlining, call, last));
        TRY(erase_set(outlining));
        *out_call = call;
        return STATUS_OK;
}

static Status check_path(const Edit *edit, const char *path)
{
        if (path[0] == '\0' || graph_module(edit->work, path) != NULL ||
            graph_state(edit->work, path) != NULL)
                return fail(STATUS_LINT, "\"%.200s\" is no free path for a child graph", path);
        return STATUS_OK;
}

static void outlining_deinit(Outlining *outlining)
{
        graph_unref(outlining->child);
        free(outlining->inside);
        free(outlining->after);
        free(outlining->taken);
        free(outlining->arguments);
        free(outlining->results);
        free(outlining->copies);
}

static Status make_arrays(Outlining *outlining)
{
        size_t n = 0;
        for (EditNode *node = outlining->edit->first; node != NULL; node = node->after)
                node->node.index = (uint32_t)n++;
        outlining->inside = new_array(n, sizeof(bool));
        outlining->after = new_array(n, sizeof(bool));
        outlining->taken = new_array(n, sizeof(bool));
        outlining->arguments = new_array(n, sizeof(Node *));
        outlining->results = new_array(n, sizeof(Node *));
        outlining->copies = new_array(n, sizeof(Node *));
        bool made = outlining->inside != NULL && outlining->after != NULL && outlining->taken != NULL &&
                    outlining->arguments != NULL && outlining->results != NULL && outlining->copies != NULL;
        return made ? STATUS_OK : fail_memory();
}

// Fills in all of it, the child included, and changes nothing.
static Status prepare(Outlining *outlining, Node *const *nodes, uint32_t n)
{
        TRY(edit_lint(outlining->edit));
        TRY(edit_resolve(outlining->edit));
        TRY(make_arrays(outlining));
        TRY(graph_new(GRAPH_FX_JSON, &outlining->child));
        TRY(mark_set(outlining, nodes, n));
        TRY(examine(outlining));
        return fill_child(outlining);
}

Status edit_outline(Edit *edit, Node *const *nodes, uint32_t n, const char *path, Node **out_call)
{
        TRY(check_path(edit, path));
        Outlining outlining = { .edit = edit, .path = path };
        Status status = prepare(&outlining, nodes, n);
        if (status == STATUS_OK)
                status = outline(&outlining, out_call);
        outlining_deinit(&outlining);
        return status;
}

void edit_child_deinit(EditChild *child)
{
        graph_unref(child->graph);
        free(child->results);
}

Status edit_child(Edit *edit, Node *const *nodes, uint32_t n, EditChild *out_child)
{
        Outlining outlining = { .edit = edit };
        Status status = prepare(&outlining, nodes, n);
        if (status == STATUS_OK) {
                *out_child = (EditChild){ .graph = take_ptr(outlining.child),
                                          .results = take_ptr(outlining.results),
                                          .n_results = outlining.n_results };
        }
        outlining_deinit(&outlining);
        return status;
}
