// SPDX-License-Identifier: Apache-2.0
// uses.c: which node reads which. As in torch.fx a node leaves the users of all its inputs before
// it joins those of its new ones, so users are in the order of their latest assignment.
#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit_parts.h"

Status edit_check_node(const Edit *edit, const Node *node)
{
        if (node == NULL || node->graph != edit->work)
                return fail(STATUS_INTERNAL, "the node is not of this working copy");
        if (edit_node_of(node)->erased)
                return failure_at_node(fail(STATUS_LINT, "Node %s was erased", node->name), node->name);
        return STATUS_OK;
}

void edit_drop_uses(EditNode *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                EditUse *use = &node->inputs[i];
                *(use->before == NULL ? &use->input->first_use : &use->before->after) = use->after;
                *(use->after == NULL ? &use->input->last_use : &use->after->before) = use->before;
                use->input->node.n_users--;
        }
        node->n_inputs = 0;
}

static void join_users(EditUse *use)
{
        EditNode *input = use->input;
        use->before = input->last_use;
        use->after = NULL;
        *(input->last_use == NULL ? &input->first_use : &input->last_use->after) = use;
        input->last_use = use;
        input->node.n_users++;
}

// The distinct nodes among some values. Two walks: the first counts and checks, the second fills.
typedef struct Collect {
        Edit *edit;
        EditNode *user;
        uint32_t n;
        int64_t n_leaves;
        bool fill;
} Collect;

static Status collect_leaf(void *context, const Value *leaf)
{
        Collect *collect = context;
        collect->n_leaves++;
        if (leaf->kind != VALUE_NODE)
                return STATUS_OK;
        if (leaf->node->graph != collect->edit->work || edit_node_of(leaf->node)->erased)
                return fail(STATUS_LINT,
                            "Argument '%s' of Node '%s' does not belong to this Graph, but was used as an "
                            "argument!",
                            leaf->node->name, collect->user->node.name);
        EditNode *input = edit_node_of(leaf->node);
        if (input->mark == collect->edit->walk)
                return STATUS_OK;
        input->mark = collect->edit->walk;
        if (collect->fill)
                collect->user->inputs[collect->n] = (EditUse){ .input = input, .user = collect->user };
        collect->n++;
        return STATUS_OK;
}

static Status collect_inputs(Collect *collect, Value args, Value kwargs)
{
        collect->edit->walk++;
        collect->n = 0;
        collect->n_leaves = 0;
        TRY(value_walk(args, collect_leaf, collect));
        return value_walk(kwargs, collect_leaf, collect);
}

static Status reserve_inputs(Edit *edit, EditNode *node, uint32_t n)
{
        if (n <= node->inputs_capacity)
                return STATUS_OK;
        EditUse *inputs = arena_array(&edit->work->arena, n, sizeof(*inputs));
        if (inputs == NULL)
                return fail_memory();
        node->inputs = inputs;
        node->inputs_capacity = n;
        return STATUS_OK;
}

static Status check_values(const Edit *edit, const EditNode *node, int64_t n)
{
        if (edit->n_values - node->n_values + n <= edit->most_values)
                return STATUS_OK;
        return fail(
                STATUS_TOO_LARGE,
                "the edits add more than %lld values to the arguments of nodes (max_edit_values in GET /v1)",
                (long long)limits.max_edit_values);
}

Status edit_set_values(Edit *edit, EditNode *node, Value take_args, Value take_kwargs)
{
        _cleanup_(value_clear) Value args = take_args;
        _cleanup_(value_clear) Value kwargs = take_kwargs;
        if (args.kind != VALUE_TUPLE || kwargs.kind != VALUE_DICT)
                return fail(STATUS_INTERNAL, "a node's args must be a tuple and its kwargs a dict");
        TRY(value_check_nesting(args));
        TRY(value_check_nesting(kwargs));
        Collect collect = { .edit = edit, .user = node };
        TRY(failure_at_node(collect_inputs(&collect, args, kwargs), node->node.name));
        TRY(check_values(edit, node, collect.n_leaves));
        edit_drop_uses(node);
        TRY(reserve_inputs(edit, node, collect.n));
        collect.fill = true;
        TRY(collect_inputs(&collect, args, kwargs));
        node->n_inputs = collect.n;
        edit->n_values += collect.n_leaves - node->n_values;
        node->n_values = collect.n_leaves;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                join_users(&node->inputs[i]);
        value_unref(node->node.args);
        value_unref(node->node.kwargs);
        node->node.args = args;
        node->node.kwargs = kwargs;
        args = kwargs = value_none();
        return STATUS_OK;
}

// ---- substitution ----

typedef struct Substitution {
        const Node *from;
        Value with;
} Substitution;

static Status substitute_leaf(void *context, const Value *leaf, Value *out)
{
        const Substitution *substitution = context;
        bool hit = leaf->kind == VALUE_NODE && leaf->node == substitution->from;
        *out = value_ref(hit ? substitution->with : *leaf);
        return STATUS_OK;
}

enum { INPUTS_PER_VISIT = 4 };

Status edit_replace_input(Edit *edit, Node *node, const Node *from, Value with)
{
        TRY(edit_check_node(edit, node));
        TRY(edit_check_node(edit, from));
        TRY(edit_visit(edit, 1 + edit_node_of(node)->n_inputs / INPUTS_PER_VISIT));
        Substitution substitution = { from, with };
        _cleanup_(value_clear) Value args = value_none();
        _cleanup_(value_clear) Value kwargs = value_none();
        TRY(value_map(node->args, substitute_leaf, &substitution, &args));
        TRY(value_map(node->kwargs, substitute_leaf, &substitution, &kwargs));
        Value new_args = args, new_kwargs = kwargs;
        args = kwargs = value_none();
        edit_note_change(edit, edit_node_of(node));
        return edit_set_values(edit, edit_node_of(node), new_args, new_kwargs);
}

// The users are listed first: users of `with` that appear meanwhile are not visited.
Status edit_replace_all_uses(Edit *edit, Node *node, Value with, const Node *except)
{
        TRY(edit_check_node(edit, node));
        uint32_t n = node->n_users, n_listed = 0;
        _cleanup_(freep) Node **users = new_array(n, sizeof(Node *));
        if (users == NULL)
                return fail_memory();
        for (const EditUse *use = edit_first_use(node); use != NULL; use = use->after)
                users[n_listed++] = &use->user->node;
        for (uint32_t i = 0; i < n; i++) {
                if (users[i] != except)
                        TRY(edit_replace_input(edit, users[i], node, with));
        }
        return STATUS_OK;
}
