// SPDX-License-Identifier: Apache-2.0
// nodes.c: inserting, erasing, moving and changing single nodes.
#include <string.h>
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/edit/edit_parts.h"

Status edit_keep_text(Edit *edit, const char *text, const char **out_copy)
{
        *out_copy = text == NULL ? NULL : arena_text(&edit->work->arena, text, strlen(text));
        return text != NULL && *out_copy == NULL ? fail_memory() : STATUS_OK;
}

// ---- order ----

void edit_link(Edit *edit, EditNode *node, EditNode *before, EditNode *after)
{
        node->before = before;
        node->after = after;
        *(before == NULL ? &edit->first : &before->after) = node;
        *(after == NULL ? &edit->last : &after->before) = node;
        edit->n_nodes++;
}

static void unlink_node(Edit *edit, EditNode *node)
{
        *(node->before == NULL ? &edit->first : &node->before->after) = node->after;
        *(node->after == NULL ? &edit->last : &node->after->before) = node->before;
        edit->n_nodes--;
}

// ---- making ----

static Status empty_values(Value *out_args, Value *out_kwargs)
{
        Seq *args;
        Dict *kwargs;
        TRY(seq_new(0, &args));
        *out_args = value_seq_take(VALUE_TUPLE, args);
        TRY(dict_new(0, &kwargs));
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = kwargs };
        return STATUS_OK;
}

static Status check_growth(const Edit *edit)
{
        if (edit->n_nodes >= limits.max_nodes)
                return fail(STATUS_TOO_LARGE, "the graph has more than %lld nodes (max_nodes in GET /v1)",
                            (long long)limits.max_nodes);
        if (edit->n_made >= edit->base->n_nodes + limits.max_edit_growth)
                return fail(STATUS_TOO_LARGE,
                            "the edits make more than %lld nodes (max_edit_growth in GET /v1)",
                            (long long)limits.max_edit_growth);
        return STATUS_OK;
}

Status edit_make_node(Edit *edit, Opcode op, const char *borrow_name, const char *target, EditNode **out_node)
{
        Graph *work = edit->work;
        TRY(check_growth(edit));
        EditNode *node = arena_alloc(&work->arena, sizeof(*node));
        if (node == NULL)
                return fail_memory();
        TRY(edit_keep_text(edit, target, &node->node.target));
        node->node.name = borrow_name;
        node->node.op = op;
        node->node.graph = work;
        node->step = -1;
        TRY(string_map_set(&work->node_by_name, node->node.name, &node->node, NULL));
        // From here on the work graph's nodes are freed with the session (edit_free).
        TRY(array_reserve(&work->nodes, &work->nodes_capacity, edit->n_made + 1, sizeof(Node *)));
        work->nodes[edit->n_made++] = &node->node;
        work->n_nodes = edit->n_made;
        TRY(empty_values(&node->node.args, &node->node.kwargs));
        *out_node = node;
        return STATUS_OK;
}

static Status check_new(const EditNew *new)
{
        if ((unsigned)new->op > OP_OUTPUT)
                return fail(STATUS_LINT, "Node had unknown opcode %d!", (int)new->op);
        if (new->target == NULL || new->target[0] == '\0')
                return fail(STATUS_LINT, "a node needs a target");
        if (new->op == OP_OUTPUT && strcmp(new->target, "output") != 0)
                return fail(STATUS_LINT, "the target of an output node is \"output\", not \"%.60s\"",
                            new->target);
        return STATUS_OK;
}

static Status keep_spec(Edit *edit, EditNode *node, const TensorSpec *spec)
{
        node->node.spec = arena_alloc(&edit->work->arena, sizeof(TensorSpec));
        return node->node.spec == NULL ? fail_memory() : edit_copy_spec(edit, spec, node->node.spec);
}

static Status keep_meta(Edit *edit, EditNode *node, const EditNew *new)
{
        TRY(edit_keep_text(edit, new->type, &node->node.type));
        TRY(edit_keep_text(edit, new->notes, &node->node.notes));
        return new->spec == NULL ? STATUS_OK : keep_spec(edit, node, new->spec);
}

Status edit_copy_place(Edit *edit, Node *node, const Node *from)
{
        return graph_copy_place(edit->work, from, node);
}

Status edit_set_spec(Edit *edit, Node *node, const TensorSpec *spec)
{
        TRY(edit_check_node(edit, node));
        TRY(keep_spec(edit, edit_node_of(node), spec));
        edit_node_of(node)->spec_known = true;
        edit_note_step(edit, edit_node_of(node));
        return STATUS_OK;
}

static Status insert(Edit *edit, EditNode *before, EditNode *after, const EditNew *take_new, Node **out_node)
{
        _cleanup_(value_clear) Value args = take_new->args;
        _cleanup_(value_clear) Value kwargs = take_new->kwargs;
        TRY(check_new(take_new));
        EditNode *node;
        const char *name = take_new->name, *target = take_new->target;
        if (take_new->op == OP_CALL_FUNCTION && (target = graph_normalise_target(edit->work, target)) == NULL)
                return fail_memory();
        if (name == NULL)
                TRY(graph_name_of_target(edit->work, take_new->op, target, &name));
        TRY(graph_fresh_name(edit->work, name, &name));
        TRY(edit_make_node(edit, take_new->op, name, target, &node));
        edit_note_change(edit, node);
        TRY(keep_meta(edit, node, take_new));
        if (take_new->origin != NULL)
                TRY(edit_keep_text(edit, node_origin(take_new->origin), &node->node.origin));
        edit_link(edit, node, before, after);
        Value new_args = args.kind == VALUE_NONE ? value_ref(node->node.args) : args;
        Value new_kwargs = kwargs.kind == VALUE_NONE ? value_ref(node->node.kwargs) : kwargs;
        args = kwargs = value_none();
        TRY(edit_set_values(edit, node, new_args, new_kwargs));
        *out_node = &node->node;
        return STATUS_OK;
}

static void drop_new(const EditNew *new)
{
        value_unref(new->args);
        value_unref(new->kwargs);
}

Status edit_insert_before(Edit *edit, Node *at, const EditNew *take_new, Node **out_node)
{
        Status status = at == NULL ? STATUS_OK : edit_check_node(edit, at);
        if (status != STATUS_OK) {
                drop_new(take_new);
                return status;
        }
        EditNode *after = at == NULL ? edit->first : edit_node_of(at);
        return insert(edit, after == NULL ? NULL : after->before, after, take_new, out_node);
}

Status edit_insert_after(Edit *edit, Node *at, const EditNew *take_new, Node **out_node)
{
        Status status = at == NULL ? STATUS_OK : edit_check_node(edit, at);
        if (status != STATUS_OK) {
                drop_new(take_new);
                return status;
        }
        EditNode *before = at == NULL ? edit->last : edit_node_of(at);
        return insert(edit, before, before == NULL ? NULL : before->after, take_new, out_node);
}

static Node *last_placeholder(const Edit *edit)
{
        Node *last = NULL;
        const EditNode *hidden = edit->last_hidden; // no search for each of many
        if (hidden != NULL && !hidden->erased &&
            (hidden->after == NULL || hidden->after->node.op != OP_PLACEHOLDER))
                return &edit->last_hidden->node;
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node))
                last = node->op == OP_PLACEHOLDER ? node : last;
        return last;
}

Status edit_hidden_input(Edit *edit, const char *name, const TensorSpec *spec, Node **out_node,
                         uint32_t *out_index)
{
        Node *behind = last_placeholder(edit), *node = NULL;
        EditNew new = { .op = OP_PLACEHOLDER, .name = name, .target = name };
        TRY(behind == NULL ? edit_insert_before(edit, NULL, &new, &node)
                           : edit_insert_after(edit, behind, &new, &node));
        TRY(edit_keep_text(edit, node->name, &node->target));
        node->spec = arena_alloc(&edit->work->arena, sizeof(TensorSpec));
        if (node->spec == NULL)
                return fail_memory();
        TRY(edit_copy_spec(edit, spec, node->spec));
        edit->last_hidden = edit_node_of(node);
        edit->last_hidden->hidden = true;
        *out_node = node;
        *out_index = edit->n_hidden++;
        return STATUS_OK;
}

Status edit_replace(Edit *edit, Node *node, const EditNew *take_new, Node **out_node)
{
        EditNew new = *take_new;
        Node *made;
        if (new.origin == NULL)
                new.origin = node;
        TRY(edit_insert_before(edit, node, &new, &made));
        TRY(edit_replace_all_uses(edit, node, (Value){ .kind = VALUE_NODE, .node = made }, NULL));
        TRY(edit_erase(edit, node));
        *out_node = made;
        return STATUS_OK;
}

// ---- erasing and moving ----

static Status refuse_erase(const Node *node)
{
        _cleanup_(text_deinit) Text users = { 0 };
        for (const EditUse *use = edit_first_use(node); use != NULL; use = use->after)
                text_addf(&users, "%s%s: None", use->before == NULL ? "" : ", ", use->user->node.name);
        TRY(text_status(&users));
        return failure_at_node(fail(STATUS_LINT,
                                    "Tried to erase Node %s but it still had %u users in the graph: "
                                    "{%.4000s}!",
                                    node->name, node->n_users, users.data),
                               node->name);
}

Status edit_erase(Edit *edit, Node *node)
{
        TRY(edit_check_node(edit, node));
        if (node->n_users > 0)
                return refuse_erase(node);
        EditNode *erased = edit_node_of(node);
        TRY(array_reserve(&edit->gone, &edit->gone_capacity, edit->n_gone + 1, sizeof(Node *)));
        edit->gone[edit->n_gone++] = node;
        edit_drop_uses(erased);
        edit->n_values -= erased->n_values;
        unlink_node(edit, erased);
        string_map_remove(&edit->work->node_by_name, node->name);
        value_clear(&node->args);
        value_clear(&node->kwargs);
        erased->erased = true;
        return STATUS_OK;
}

Status edit_move_before(Edit *edit, Node *node, Node *at)
{
        TRY(edit_check_node(edit, node));
        TRY(edit_check_node(edit, at));
        if (node == at)
                return STATUS_OK;
        unlink_node(edit, edit_node_of(node));
        edit_link(edit, edit_node_of(node), edit_node_of(at)->before, edit_node_of(at));
        edit_note_step(edit, edit_node_of(node));
        return STATUS_OK;
}

Status edit_move_after(Edit *edit, Node *node, Node *at)
{
        TRY(edit_check_node(edit, node));
        TRY(edit_check_node(edit, at));
        if (node == at)
                return STATUS_OK;
        unlink_node(edit, edit_node_of(node));
        edit_link(edit, edit_node_of(node), edit_node_of(at), edit_node_of(at)->after);
        edit_note_step(edit, edit_node_of(node));
        return STATUS_OK;
}

// ---- changing ----

Status edit_rename(Edit *edit, Node *node, const char *name)
{
        TRY(edit_check_node(edit, node));
        if (strcmp(node->name, name) == 0)
                return STATUS_OK;
        Graph *work = edit->work;
        const char *fresh;
        TRY(graph_fresh_name(work, name, &fresh));
        TRY(string_map_set(&work->node_by_name, fresh, node, NULL));
        string_map_remove(&work->node_by_name, node->name);
        node->name = fresh;
        edit_note_step(edit, edit_node_of(node));
        return STATUS_OK;
}

// "add" for torch.ops.aten.add.Tensor.
static Status base_name(Graph *work, const Node *node, const char **out_name)
{
        if (node->op != OP_CALL_FUNCTION || strncmp(node->target, "torch.ops.", 10) != 0)
                return graph_name_of_target(work, node->op, node->target, out_name);
        const char *name = strchr(node->target + 10, '.');
        name = name == NULL ? node->target + 10 : name + 1;
        *out_name = arena_text(&work->arena, name, strcspn(name, "."));
        return *out_name == NULL ? fail_memory() : STATUS_OK;
}

Status edit_name_anew(Edit *edit, Node *const *nodes, uint32_t n)
{
        Graph *work = edit->work;
        edit->walk++;
        for (uint32_t i = 0; i < n; i++) {
                TRY(edit_check_node(edit, nodes[i]));
                edit_node_of(nodes[i])->mark = edit->walk;
                string_map_remove(&work->node_by_name, nodes[i]->name);
        }
        namespace_deinit(&work->names);
        work->names = (Namespace){ 0 };
        for (EditNode *node = edit->first; node != NULL; node = node->after) {
                if (node->mark != edit->walk)
                        TRY(namespace_claim(&work->names, &work->arena, node->node.name));
        }
        for (uint32_t i = 0; i < n; i++) {
                const char *name, *old = nodes[i]->name;
                TRY(base_name(work, nodes[i], &name));
                TRY(graph_fresh_name(work, name, &nodes[i]->name));
                TRY(string_map_set(&work->node_by_name, nodes[i]->name, nodes[i], NULL));
                if (strcmp(old, nodes[i]->name) != 0)
                        edit_note_step(edit, edit_node_of(nodes[i]));
        }
        return STATUS_OK;
}

Status edit_set_call(Edit *edit, Node *node, Opcode op, const char *target)
{
        TRY(edit_check_node(edit, node));
        if (target == NULL || target[0] == '\0' || node->op == OP_OUTPUT || (unsigned)op >= OP_OUTPUT)
                return failure_at_node(fail(STATUS_LINT, "Node %s cannot get this target", node->name),
                                       node->name);
        if (op == OP_CALL_FUNCTION && (target = graph_normalise_target(edit->work, target)) == NULL)
                return fail_memory();
        TRY(edit_keep_text(edit, target, &node->target));
        node->op = op;
        node->resolved = NULL;
        edit_note_change(edit, edit_node_of(node));
        return STATUS_OK;
}

Status edit_set_target(Edit *edit, Node *node, const char *target)
{
        TRY(edit_check_node(edit, node));
        return edit_set_call(edit, node, node->op, target);
}

Status edit_set_args(Edit *edit, Node *node, Value take_args, Value take_kwargs)
{
        Status status = edit_check_node(edit, node);
        if (status != STATUS_OK) {
                value_unref(take_args);
                value_unref(take_kwargs);
                return status;
        }
        edit_note_change(edit, edit_node_of(node));
        return edit_set_values(edit, edit_node_of(node), take_args, take_kwargs);
}
