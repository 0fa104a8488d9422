// SPDX-License-Identifier: Apache-2.0
// constants.c: calls whose inputs are all constant become state.
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/edit/passes.h"
#include "core/targets/targets.h"

static const char folded_path[] = "_FX_CONST_FOLDED_ATTRS";

Status edit_own_tensor(const Tensor *from, Dtype dtype, Tensor **out_tensor)
{
        TensorMeta meta = from->meta;
        if (dtype != meta.dtype || !meta_is_non_overlapping_and_dense(&meta))
                meta_init(&meta, dtype, from->meta.rank, from->meta.size);
        TRY(tensor_new(&meta, NULL, out_tensor));
        tensor_copy_data(from, *out_tensor);
        return STATUS_OK;
}

// ---- which calls ----

static bool is_lifted(const EditNode *node)
{
        return node->input != NULL && node->input->kind == INPUT_STATE;
}

// node->mark of constant nodes is the walk.
static bool is_constant(const Edit *edit, const EditNode *node)
{
        if (node->node.op == OP_GET_ATTR)
                return graph_state(edit->work, node->node.target) != NULL;
        if (!node_is_call(&node->node) || node_is_impure(edit->work, &node->node))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i].input->mark != edit->walk)
                        return false;
        }
        return true;
}

static void list_constants(Edit *edit, Node **nodes, uint32_t *out_n, bool *out_any)
{
        edit->walk++;
        for (EditNode *node = edit->first; node != NULL; node = node->after) {
                node->mark = !is_lifted(node) && is_constant(edit, node) ? edit->walk : 0;
                if (node->mark == 0)
                        continue;
                nodes[(*out_n)++] = &node->node;
                *out_any |= node->node.op != OP_GET_ATTR;
        }
}

Status edit_constants(Edit *edit, EditChild *out_child)
{
        uint32_t n = 0;
        bool any = false;
        TRY(edit_lint(edit));
        TRY(edit_resolve(edit));
        if (edit_any_call_writes(edit))
                return STATUS_OK;
        _cleanup_(freep) Node **nodes = new_array(edit->n_nodes, sizeof(Node *));
        if (nodes == NULL)
                return fail_memory();
        list_constants(edit, nodes, &n, &any);
        return any ? edit_child(edit, nodes, n, out_child) : STATUS_OK;
}

// ---- their place ----

static bool becomes_state(const EditChild *child, const Value *values, uint32_t i)
{
        return child->results[i]->op != OP_GET_ATTR && values[i].kind == VALUE_TENSOR;
}

// Behind the placeholders, which stand in front.
static Node *place_for_state(const Edit *edit)
{
        Node *at = edit_first(edit);
        while (at->op == OP_PLACEHOLDER)
                at = edit_next(at);
        return at;
}

static Status put_constant(Edit *edit, Node *node, const Tensor *value, const char *path, Node *at,
                           Node **out_made)
{
        Tensor *own;
        Node *made;
        TRY(edit_own_tensor(value, value->meta.dtype, &own));
        TRY(edit_set_state(edit, path, own));
        EditNew new = { .op = OP_GET_ATTR, .target = path, .origin = node };
        TRY(edit_insert_before(edit, at, &new, &made));
        if (*out_made == NULL)
                *out_made = made;
        return edit_replace_all_uses(edit, node, (Value){ .kind = VALUE_NODE, .node = made }, NULL);
}

// From the end to the front: what only folded calls read goes with them.
static Status erase_unread(Edit *edit, Node *const *nodes, uint32_t n, uint32_t *out_n)
{
        while (n-- > 0) {
                Node *node = nodes[n];
                if (node->n_users > 0)
                        continue;
                const char *path =
                        node->op == OP_GET_ATTR || node->op == OP_CALL_MODULE ? node->target : NULL;
                TRY(edit_erase(edit, node));
                (*out_n)++;
                if (path != NULL)
                        TRY(edit_drop_unread(edit, path));
        }
        return STATUS_OK;
}

// *out_first: the first new node.
static Status put_all(Edit *edit, const EditChild *child, const Value *values, Node **out_first)
{
        uint32_t n = 0, at = 0;
        const char *first, *path;
        Node *place = place_for_state(edit);
        for (uint32_t i = 0; i < child->n_results; i++)
                n += becomes_state(child, values, i);
        TRY(edit_free_path(edit, folded_path, &first));
        for (uint32_t i = 0; i < child->n_results; i++) {
                if (!becomes_state(child, values, i))
                        continue;
                path = n == 1 ? first : arena_format(&edit->work->arena, "%s.%u", first, at++);
                if (path == NULL)
                        return fail_memory();
                TRY(put_constant(edit, child->results[i], values[i].tensor, path, place, out_first));
        }
        return STATUS_OK;
}

// The tensors of the state that other nodes read are fetched in front of the constants, as in
// torch.fx, whose split fetches them for all parts at once.
static Status fetch_first(Edit *edit, Node *first)
{
        Node *next;
        for (Node *node = first; node != NULL; node = next) {
                next = edit_next(node);
                bool state = node->op == OP_GET_ATTR && graph_state(edit->work, node->target) != NULL;
                if (state && edit_node_of(node)->copied)
                        TRY(edit_move_before(edit, node, first));
        }
        return STATUS_OK;
}

Status edit_put_constants(Edit *edit, const EditChild *child, const Value *values, uint32_t *out_n)
{
        uint32_t n = 0;
        bool any = false;
        _cleanup_(freep) Node **nodes = new_array(edit->n_nodes, sizeof(Node *));
        *out_n = 0;
        if (nodes == NULL)
                return fail_memory();
        Node *first = NULL;
        list_constants(edit, nodes, &n, &any);
        TRY(put_all(edit, child, values, &first));
        TRY(erase_unread(edit, nodes, n, out_n));
        return fetch_first(edit, first);
}
