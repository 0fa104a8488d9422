// SPDX-License-Identifier: Apache-2.0
// splice.c: copies one graph's nodes into another: inlined children, called graphs, replacements.
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

typedef struct Splicing {
        Edit *edit;
        const EditSplice *what;
        Value *copies;    // by index of the graph's nodes; what stands for each
        uint32_t n_bound; // inputs that placeholders have taken
} Splicing;

static Status check_spliceable(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->signature.n_outputs; i++) {
                if (graph->signature.outputs[i].kind != OUTPUT_USER)
                        return fail(STATUS_UNSUPPORTED,
                                    "the graph writes \"%.200s\", which a graph called by another cannot do",
                                    graph->signature.outputs[i].target);
        }
        if (graph->signature.n_guards > 0)
                return fail(STATUS_UNSUPPORTED,
                            "the graph checks its inputs (%.200s), which a graph called by another cannot do",
                            graph->signature.guards[0]);
        return STATUS_OK;
}

// ---- modules and state ----

static Status path_below(const Splicing *splicing, const char *path, const char **out_path)
{
        const char *prefix = splicing->what->prefix;
        *out_path = prefix == NULL ? path : arena_format(&splicing->edit->work->arena, "%s.%s", prefix, path);
        return *out_path == NULL ? fail_memory() : STATUS_OK;
}

static bool takes_what_is_there(const Splicing *splicing)
{
        return splicing->what->prefix == NULL || splicing->what->shares;
}

static Status splice_module(Splicing *splicing, const Module *from)
{
        Edit *edit = splicing->edit;
        const char *path;
        TRY(path_below(splicing, from->path, &path));
        const Module *there = graph_module(edit->work, path);
        if (there != NULL && takes_what_is_there(splicing))
                return STATUS_OK;
        EditModule module = { .type = from->type, .training = from->training, .graph = from->graph };
        module.config = new_array(from->n_config, sizeof(ModuleConfig));
        if (module.config == NULL)
                return fail_memory();
        for (; module.n_config < from->n_config; module.n_config++) {
                module.config[module.n_config] = from->config[module.n_config];
                value_ref(module.config[module.n_config].value);
        }
        Status status = edit_add_module(edit, path, &module);
        free(module.config);
        return status;
}

static Status splice_state(Splicing *splicing, const State *from)
{
        Graph *work = splicing->edit->work;
        const char *path;
        TRY(path_below(splicing, from->path, &path));
        if (takes_what_is_there(splicing) && graph_state(work, path) != NULL)
                return STATUS_OK;
        State *state;
        TRY(graph_add_state(work, path, tensor_ref(from->tensor), &state));
        state->is_parameter = from->is_parameter;
        state->persistent = from->persistent;
        return STATUS_OK;
}

static Status splice_tree(Splicing *splicing)
{
        const Graph *graph = splicing->what->graph;
        for (uint32_t i = 1; i < graph->n_modules; i++) // the first is the root
                TRY(splice_module(splicing, graph->modules[i]));
        for (uint32_t i = 0; i < graph->n_state; i++)
                TRY(splice_state(splicing, &graph->state[i]));
        return STATUS_OK;
}

// ---- nodes ----

static Status copy_leaf(void *context, const Value *leaf, Value *out)
{
        const Splicing *splicing = context;
        *out = value_ref(leaf->kind == VALUE_NODE ? splicing->copies[leaf->node->index] : *leaf);
        return STATUS_OK;
}

static Status insert_copy(Splicing *splicing, const Node *node, Opcode op, const char *target)
{
        EditNew new = { .op = op, .name = node->name, .target = target, .type = node->type };
        new.origin = splicing->what->origin;
        if (splicing->what->names_by_path && (op == OP_GET_ATTR || op == OP_CALL_MODULE))
                new.name = NULL;
        if (op != OP_GET_ATTR || node->op == OP_GET_ATTR) {
                TRY(value_map(node->args, copy_leaf, splicing, &new.args));
                Status status = value_map(node->kwargs, copy_leaf, splicing, &new.kwargs);
                if (status != STATUS_OK) {
                        value_unref(new.args);
                        return status;
                }
        }
        Node *copy;
        TRY(edit_insert_before(splicing->edit, splicing->what->before, &new, &copy));
        if (new.origin == NULL && node->stack_trace != NULL) // its module calls are the child's own
                TRY(graph_set_trace(splicing->edit->work, copy, node->stack_trace));
        splicing->copies[node->index] = (Value){ .kind = VALUE_NODE, .node = copy };
        return STATUS_OK;
}

static Status bind_placeholder(Splicing *splicing, const Node *node, const Input *input)
{
        const char *path;
        if (input != NULL && input->kind == INPUT_STATE) {
                TRY(path_below(splicing, input->path, &path));
                return insert_copy(splicing, node, OP_GET_ATTR, path);
        }
        if (node->target[0] == '*')
                return fail(STATUS_UNSUPPORTED,
                            "a graph with the parameter %.100s cannot be called by another", node->target);
        Value *copy = &splicing->copies[node->index];
        if (splicing->n_bound < splicing->what->n_inputs)
                *copy = value_ref(splicing->what->inputs[splicing->n_bound++]);
        else if (node->args.seq->n > 0)
                *copy = value_ref(node->args.seq->items[0]);
        else
                return fail(STATUS_LINT,
                            "Expected positional argument for parameter %.100s, but one was not passed in!",
                            node->target);
        return STATUS_OK;
}

static Status bind_placeholders(Splicing *splicing)
{
        const Graph *graph = splicing->what->graph;
        uint32_t n_placeholders = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i]->op != OP_PLACEHOLDER)
                        continue;
                const Input *input = n_placeholders < graph->signature.n_inputs
                                             ? &graph->signature.inputs[n_placeholders]
                                             : NULL;
                n_placeholders++;
                TRY(bind_placeholder(splicing, graph->nodes[i], input));
        }
        if (splicing->n_bound < splicing->what->n_inputs)
                return fail(STATUS_LINT, "the graph takes %u arguments, %u are given", splicing->n_bound,
                            splicing->what->n_inputs);
        return STATUS_OK;
}

static Status splice_nodes(Splicing *splicing)
{
        const Graph *graph = splicing->what->graph;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                const char *target = node->target;
                if (node->op == OP_GET_ATTR || node->op == OP_CALL_MODULE)
                        TRY(path_below(splicing, target, &target));
                if (node->op != OP_OUTPUT && node->op != OP_PLACEHOLDER)
                        TRY(insert_copy(splicing, node, node->op, target));
        }
        return STATUS_OK;
}

// ---- the result ----

// `leaves` in the structure of `tree`. Recursion: readers cap trees at limits.max_nested_values.
static Status tree_value(const Tree *tree, const Value *leaves, Value *out_value)
{
        if (tree->kind == TREE_LEAF) {
                *out_value = value_ref(leaves[tree->first_leaf]);
                return STATUS_OK;
        }
        if (tree->kind == TREE_DICT) {
                _cleanup_(dict_unrefp) Dict *dict = NULL;
                TRY(dict_new(tree->n, &dict));
                for (uint32_t i = 0; i < tree->n; i++) {
                        TRY(str_new(tree->keys[i], strlen(tree->keys[i]), &dict->items[i].key));
                        TRY(tree_value(tree->children[i], leaves, &dict->items[i].value));
                }
                *out_value = (Value){ .kind = VALUE_DICT, .dict = take_ptr(dict) };
                return STATUS_OK;
        }
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new(tree->n, &seq));
        for (uint32_t i = 0; i < tree->n; i++)
                TRY(tree_value(tree->children[i], leaves, &seq->items[i]));
        *out_value = value_seq_take(tree->kind == TREE_LIST ? VALUE_LIST : VALUE_TUPLE, take_ptr(seq));
        return STATUS_OK;
}

static Status result_of(const Splicing *splicing, Value *out_result)
{
        const Graph *graph = splicing->what->graph;
        _cleanup_(value_clear) Value flat = value_none();
        TRY(value_map(graph->output->args.seq->items[0], copy_leaf, (void *)(uintptr_t)splicing, &flat));
        if (graph->signature.out_tree == NULL) {
                *out_result = flat;
                flat = value_none();
                return STATUS_OK;
        }
        return tree_value(graph->signature.out_tree, flat.seq->items, out_result);
}

Status edit_splice(Edit *edit, const EditSplice *splice, Value *out_result)
{
        TRY(check_spliceable(splice->graph));
        TRY(edit_check_node(edit, splice->before));
        Splicing splicing = { .edit = edit, .what = splice };
        splicing.copies = new_array(splice->graph->n_nodes, sizeof(Value));
        if (splicing.copies == NULL)
                return fail_memory();
        Status status = splice_tree(&splicing);
        if (status == STATUS_OK)
                status = bind_placeholders(&splicing);
        if (status == STATUS_OK && splice->check_inputs)
                status = edit_check_splice(edit, splice, splicing.copies);
        if (status == STATUS_OK)
                status = splice_nodes(&splicing);
        if (status == STATUS_OK)
                status = result_of(&splicing, out_result);
        for (uint32_t i = 0; i < splice->graph->n_nodes; i++)
                value_unref(splicing.copies[i]);
        free(splicing.copies);
        return status;
}

static const EditCalled *find_called(const Edit *edit, const Graph *graph)
{
        for (uint32_t i = 0; i < edit->n_called; i++) {
                if (edit->called[i].graph == graph)
                        return &edit->called[i];
        }
        return NULL;
}

Status edit_splice_called(Edit *edit, const EditSplice *splice, const char *name, Value *out_result)
{
        EditSplice what = *splice;
        const EditCalled *called = find_called(edit, splice->graph);
        what.check_inputs = true;
        what.shares = called != NULL;
        if (called == NULL) {
                TRY(array_reserve(&edit->called, &edit->called_capacity, edit->n_called + 1,
                                  sizeof(EditCalled)));
                TRY(edit_free_path(edit, name, &what.prefix));
                edit->called[edit->n_called++] = (EditCalled){ splice->graph, what.prefix };
        } else {
                what.prefix = called->prefix;
        }
        return edit_splice(edit, &what, out_result);
}

// ---- putting results in place ----

// The item of `with` that a getitem node takes; NULL: it is no getitem, or takes something else.
static const Value *item_taken(const Node *user, const Node *node, Value with)
{
        if (!node_is_getitem(user) || user->args.seq->n != 2 || user->args.seq->items[0].kind != VALUE_NODE ||
            user->args.seq->items[0].node != node)
                return NULL;
        Value key = user->args.seq->items[1];
        if (with.kind == VALUE_DICT && key.kind == VALUE_STR)
                return dict_get(with.dict, key.str->text);
        if (!value_is_sequence(with) || key.kind != VALUE_INT)
                return NULL;
        int64_t n = with.seq->n, index = key.i < 0 ? key.i + n : key.i;
        return index < 0 || index >= n ? NULL : &with.seq->items[index];
}

// A reader that takes an item becomes that item. The readers are listed first: putting items in
// place changes the list of uses.
static Status substitute_items(Edit *edit, Node *node, Value with)
{
        uint32_t n = 0;
        _cleanup_(freep) Node **users = new_array(node->n_users, sizeof(Node *));
        if (users == NULL)
                return fail_memory();
        for (const EditUse *use = edit_first_use(node); use != NULL; use = use->after)
                users[n++] = edit_user(use);
        for (uint32_t i = 0; i < n; i++) {
                const Value *item = item_taken(users[i], node, with);
                if (item == NULL)
                        continue;
                TRY(edit_replace_all_uses(edit, users[i], *item, NULL));
                TRY(edit_erase(edit, users[i]));
        }
        return STATUS_OK;
}

Status edit_substitute(Edit *edit, Node *node, Value with)
{
        TRY(edit_check_node(edit, node));
        TRY(substitute_items(edit, node, with));
        TRY(edit_replace_all_uses(edit, node, with, NULL));
        return edit_erase(edit, node);
}

// ---- child graphs ----

Status edit_free_path(Edit *edit, const char *wish, const char **out_path)
{
        const Graph *work = edit->work;
        TRY(edit_keep_text(edit, wish, out_path));
        for (int i = 1; graph_module(work, *out_path) != NULL || graph_state(work, *out_path) != NULL; i++) {
                *out_path = arena_format(&edit->work->arena, "%s_%d", wish, i);
                if (*out_path == NULL)
                        return fail_memory();
        }
        return STATUS_OK;
}

static bool is_state(const Graph *graph, const Node *placeholder)
{
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                if (graph->signature.inputs[i].placeholder == placeholder)
                        return graph->signature.inputs[i].kind == INPUT_STATE;
        }
        return false;
}

Status edit_bind_call(const Graph *child, const Node *call, Value *values, uint32_t *out_n)
{
        uint32_t n_args = call->args.seq->n, n = 0, n_used = 0;
        for (uint32_t i = 0; i < child->n_nodes; i++) {
                const Node *node = child->nodes[i];
                if (node->op != OP_PLACEHOLDER || is_state(child, node))
                        continue;
                const Value *given =
                        n < n_args ? &call->args.seq->items[n] : dict_get(call->kwargs.dict, node->target);
                n_used += n >= n_args && given != NULL;
                if (given == NULL && node->args.seq->n > 0)
                        given = &node->args.seq->items[0];
                if (given == NULL)
                        return fail(STATUS_LINT, "forward() missing 1 required positional argument: '%.100s'",
                                    node->target);
                values[n++] = *given;
        }
        if (n_args > n || n_used < call->kwargs.dict->n)
                return fail(STATUS_LINT, "forward() takes %u arguments; the call has others", n);
        *out_n = n;
        return STATUS_OK;
}

static bool is_called_elsewhere(const Edit *edit, const Node *call)
{
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                bool names_module = node->node.op == OP_CALL_MODULE || node->node.op == OP_GET_ATTR;
                if (&node->node != call && names_module && strcmp(node->node.target, call->target) == 0)
                        return true;
        }
        return false;
}

Status edit_inline_as(Edit *edit, Node *node, const EditInlining *how, Value *out_result)
{
        _cleanup_(freep) Value *inputs = new_array(how->child->n_nodes, sizeof(Value));
        _cleanup_(value_clear) Value result = value_none();
        if (inputs == NULL)
                return fail_memory();
        EditSplice splice = { .graph = how->child,
                              .prefix = how->prefix,
                              .shares = how->shares,
                              .before = node,
                              .inputs = inputs,
                              .names_by_path = how->names_by_path };
        TRY(edit_bind_call(how->child, node, inputs, &splice.n_inputs));
        TRY(edit_splice(edit, &splice, &result));
        TRY(edit_substitute(edit, node, result));
        *out_result = result;
        result = value_none();
        return STATUS_OK;
}

static Status inline_graph(Edit *edit, Node *node, const Graph *child)
{
        _cleanup_(value_clear) Value result = value_none();
        EditInlining how = { .child = child };
        if (is_called_elsewhere(edit, node)) {
                TRY(edit_free_path(edit, node->target, &how.prefix));
        } else {
                TRY(edit_keep_text(edit, node->target, &how.prefix));
                TRY(graph_remove_module(edit->work, node->target));
        }
        return edit_inline_as(edit, node, &how, &result);
}

Status edit_inline(Edit *edit, Node *node)
{
        TRY(edit_check_node(edit, node));
        const Module *module = node->op == OP_CALL_MODULE ? graph_module(edit->work, node->target) : NULL;
        if (module == NULL || module->graph == NULL)
                return failure_at_node(fail(STATUS_LINT, "Node %s calls no child graph", node->name),
                                       node->name);
        Graph *child = graph_ref(module->graph);
        Status status = failure_at_node(inline_graph(edit, node, child), node->name);
        graph_unref(child);
        return status;
}
