// SPDX-License-Identifier: Apache-2.0
// signature.c: the signature of the derived graph from its base's.
//
// A graph without its own signature gets the default (graph_finish). Otherwise entries follow their
// placeholders and results (ranges and guards: guards.c). An erased argument leaves the structure.
// A new one is a keyword argument behind all others, so leaves keep the order of the placeholders.
#include <string.h>
#include "core/edit/edit_parts.h"

typedef struct Deriving {
        Edit *edit;
        Arena *arena;
        const Signature *from;
        Signature *to;
        uint32_t *leaf;     // of each entry of the base but the state's, in order
        bool *kept;         // of the base's leaves
        const Input **copy; // of each entry of the base; NULL: it is gone
        const char **added; // argument names of new placeholders
        uint32_t n_added;
} Deriving;

// What graph_finish makes of a graph whose reader gave no signature.
static bool is_default(const Signature *signature)
{
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                if (signature->inputs[i].kind != INPUT_USER)
                        return false;
        }
        return signature->in_tree == NULL && signature->out_tree == NULL && signature->outputs == NULL &&
               signature->n_ranges == 0 && signature->n_guards == 0;
}

// ---- trees ----

// Tuples and lists have no keys at all: whoever finds some takes each for a text.
static Status new_tree(Arena *arena, TreeKind kind, uint32_t n, Tree **out_tree)
{
        bool by_key = kind == TREE_DICT || kind == TREE_NAMEDTUPLE;
        Tree *tree = arena_alloc(arena, sizeof(*tree));
        if (tree == NULL)
                return fail_memory();
        tree->kind = kind;
        tree->children = arena_array(arena, n + 1, sizeof(Tree *));
        tree->keys = by_key ? arena_array(arena, n + 1, sizeof(char *)) : NULL;
        if (tree->children == NULL || (by_key && tree->keys == NULL))
                return fail_memory();
        *out_tree = tree;
        return STATUS_OK;
}

// `tree` has room for one more.
static void add_child(Tree *tree, const char *key, Tree *child)
{
        if (tree->keys != NULL)
                ((const char **)(uintptr_t)tree->keys)[tree->n] = key;
        tree->children[tree->n++] = child;
}

// A copy without the leaves that were not kept; NULL if `from` is such a leaf. Recursion: readers
// cap trees at limits.max_nested_values.
static Status filter_tree(Arena *arena, const Tree *from, const bool *kept, Tree **out_tree)
{
        *out_tree = NULL;
        if (from->kind == TREE_LEAF && !kept[from->first_leaf])
                return STATUS_OK;
        Tree *tree;
        TRY(new_tree(arena, from->kind, from->n + 1, &tree));
        for (uint32_t i = 0; i < from->n; i++) {
                Tree *child;
                TRY(filter_tree(arena, from->children[i], kept, &child));
                if (child == NULL)
                        continue;
                const char *key = from->keys == NULL ? NULL : from->keys[i];
                if (key != NULL && (key = arena_text(arena, key, strlen(key))) == NULL)
                        return fail_memory();
                add_child(tree, key, child);
        }
        *out_tree = tree;
        return STATUS_OK;
}

static Status add_leaf(Arena *arena, Tree *tree, const char *key)
{
        Tree *leaf;
        TRY(new_tree(arena, TREE_LEAF, 0, &leaf));
        add_child(tree, key, leaf);
        return STATUS_OK;
}

static uint32_t number_leaves(Tree *tree, uint32_t first)
{
        tree->first_leaf = first;
        tree->n_leaves = tree->kind == TREE_LEAF;
        for (uint32_t i = 0; i < tree->n; i++)
                tree->n_leaves += number_leaves(tree->children[i], first + tree->n_leaves);
        return tree->n_leaves;
}

// ---- inputs ----

static Status copy_input(Deriving *deriving, const Input *from, const Node *node, Input *out_input)
{
        Edit *edit = deriving->edit;
        *out_input = *from;
        out_input->literal = value_ref(from->literal);
        deriving->to->n_inputs++; // from here on graph_unref drops the literal
        TRY(edit_keep_text(edit, from->path, &out_input->path));
        TRY(edit_keep_text(edit, from->kind_name, &out_input->kind_name));
        bool fixed = edit->fixed && from->kind == INPUT_USER && node->spec != NULL;
        return edit_copy_spec(edit, fixed ? node->spec : &from->spec, &out_input->spec);
}

static Status new_input(Deriving *deriving, const Node *node, Input *out_input)
{
        *out_input = (Input){ .kind = INPUT_USER, .spec = { .dtype = DTYPE_NONE, .rank = -1 } };
        deriving->to->n_inputs++;
        if (node->spec != NULL) {
                out_input->value_kind = VALUE_TENSOR;
                TRY(edit_copy_spec(deriving->edit, node->spec, &out_input->spec));
        }
        if (edit_node_of(node)->hidden)
                return STATUS_OK;
        deriving->added[deriving->n_added++] = node->target + strspn(node->target, "*");
        return STATUS_OK;
}

static Status derive_input(Deriving *deriving, EditNode *node)
{
        Input *input = &deriving->to->inputs[deriving->to->n_inputs];
        bool user = node->input == NULL || node->input->kind != INPUT_STATE;
        if (node->input != NULL && user && deriving->n_added > 0 && deriving->from->in_tree != NULL)
                return failure_at_node(fail(STATUS_LINT,
                                            "placeholder %s stands behind a new one; a new input of an "
                                            "export comes last",
                                            node->node.name),
                                       node->node.name);
        if (node->input == NULL) {
                TRY(new_input(deriving, &node->node, input));
        } else {
                size_t i = (size_t)(node->input - deriving->from->inputs);
                TRY(copy_input(deriving, node->input, &node->node, input));
                deriving->copy[i] = input;
                if (user)
                        deriving->kept[deriving->leaf[i]] = true;
        }
        input->placeholder = &node->node;
        deriving->to->n_user_inputs += user && !node->hidden;
        return STATUS_OK;
}

static Status derive_inputs(Deriving *deriving)
{
        uint32_t n = 0;
        for (EditNode *node = deriving->edit->first; node != NULL; node = node->after)
                n += node->node.op == OP_PLACEHOLDER;
        deriving->to->inputs = arena_array(deriving->arena, n + 1, sizeof(Input));
        deriving->added = arena_array(deriving->arena, n + 1, sizeof(char *));
        deriving->kept = arena_array(deriving->arena, deriving->from->n_inputs + 1, sizeof(bool));
        deriving->leaf = arena_array(deriving->arena, deriving->from->n_inputs + 1, sizeof(uint32_t));
        deriving->copy = arena_array(deriving->arena, deriving->from->n_inputs + 1, sizeof(Input *));
        if (deriving->to->inputs == NULL || deriving->added == NULL || deriving->kept == NULL ||
            deriving->leaf == NULL || deriving->copy == NULL)
                return fail_memory();
        for (uint32_t i = 0, leaf = 0; i < deriving->from->n_inputs; i++) {
                deriving->leaf[i] = leaf;
                leaf += deriving->from->inputs[i].kind != INPUT_STATE;
        }
        for (EditNode *node = deriving->edit->first; node != NULL; node = node->after) {
                if (node->node.op == OP_PLACEHOLDER)
                        TRY(derive_input(deriving, node));
        }
        return STATUS_OK;
}

// Names of the top level: of what is left of the base's, then of the new ones.
static Status derive_argument_names(Deriving *deriving)
{
        const Signature *from = deriving->from;
        Signature *to = deriving->to;
        if (from->argument_names == NULL)
                return STATUS_OK;
        to->argument_names =
                arena_array(deriving->arena, from->n_arguments + deriving->n_added + 1, sizeof(char *));
        if (to->argument_names == NULL)
                return fail_memory();
        uint32_t n_args = from->in_tree == NULL ? 0 : from->in_tree->children[0]->n;
        for (uint32_t i = 0; i < from->n_arguments; i++) {
                const Tree *args = from->in_tree == NULL ? NULL : from->in_tree->children[i >= n_args];
                uint32_t at = i < n_args ? i : i - n_args;
                bool leaf = args != NULL && at < args->n && args->children[at]->kind == TREE_LEAF;
                bool gone = leaf ? !deriving->kept[args->children[at]->first_leaf]
                                 : args == NULL && i < from->n_inputs && !deriving->kept[i];
                if (!gone)
                        TRY(edit_keep_text(deriving->edit, from->argument_names[i],
                                           &to->argument_names[to->n_arguments++]));
        }
        for (uint32_t i = 0; i < deriving->n_added; i++)
                to->argument_names[to->n_arguments++] = deriving->added[i];
        return STATUS_OK;
}

static Status derive_in_tree(Deriving *deriving)
{
        const Tree *from = deriving->from->in_tree;
        if (from == NULL)
                return STATUS_OK;
        Tree *tree, *kwargs;
        TRY(filter_tree(deriving->arena, from, deriving->kept, &tree));
        TRY(new_tree(deriving->arena, TREE_DICT, from->children[1]->n + deriving->n_added, &kwargs));
        const Tree *old = tree->children[1];
        for (uint32_t i = 0; i < old->n; i++)
                add_child(kwargs, old->keys[i], old->children[i]);
        for (uint32_t i = 0; i < deriving->n_added; i++)
                TRY(add_leaf(deriving->arena, kwargs, deriving->added[i]));
        tree->children[1] = kwargs;
        number_leaves(tree, 0);
        deriving->to->in_tree = tree;
        return STATUS_OK;
}

// ---- results ----

static Status check_outputs(const Edit *edit, const Value **out_values)
{
        const Node *output = edit_output(edit);
        Value all = output->args.seq->items[0];
        if (!value_is_sequence(all) || all.seq->n != edit->n_outputs)
                return failure_at_node(fail(STATUS_LINT,
                                            "the export gives %u results, the output node another number; "
                                            "add and remove single outputs instead",
                                            edit->n_outputs),
                                       output->name);
        *out_values = all.seq->items;
        return STATUS_OK;
}

static Status derive_outputs(Deriving *deriving)
{
        Edit *edit = deriving->edit;
        if (deriving->from->outputs == NULL)
                return STATUS_OK;
        const Value *values = NULL;
        TRY(check_outputs(edit, &values));
        Output *outputs = arena_array(deriving->arena, edit->n_outputs + 1, sizeof(*outputs));
        if (outputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < edit->n_outputs; i++) {
                outputs[i] = (Output){ .kind = edit->outputs[i].kind, .arg = values[i] };
                TRY(edit_keep_text(edit, edit->outputs[i].target, &outputs[i].target));
        }
        deriving->to->outputs = outputs;
        deriving->to->n_outputs = edit->n_outputs;
        return STATUS_OK;
}

// New results stand behind the old ones: in their tuple or list, else in a new tuple with them.
static Status derive_out_tree(Deriving *deriving)
{
        const Edit *edit = deriving->edit;
        const Tree *from = deriving->from->out_tree;
        if (from == NULL)
                return STATUS_OK;
        uint32_t n_new = 0;
        Tree *tree, *wider;
        bool *kept = arena_array(deriving->arena, from->n_leaves + 1, sizeof(bool));
        if (kept == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < edit->n_outputs; i++) {
                bool old = edit->outputs[i].leaf != NO_LEAF;
                if (old)
                        kept[edit->outputs[i].leaf] = true;
                n_new += !old && edit->outputs[i].kind == OUTPUT_USER;
        }
        TRY(filter_tree(deriving->arena, from, kept, &tree));
        if (n_new > 0) {
                bool row = tree != NULL && (tree->kind == TREE_TUPLE || tree->kind == TREE_LIST);
                uint32_t n_old = row ? tree->n : tree != NULL;
                TRY(new_tree(deriving->arena, row ? tree->kind : TREE_TUPLE, n_old + n_new, &wider));
                for (; wider->n < n_old; wider->n++)
                        wider->children[wider->n] = row ? tree->children[wider->n] : tree;
                for (uint32_t i = 0; i < n_new; i++)
                        TRY(add_leaf(deriving->arena, wider, NULL));
                tree = wider;
        } else if (tree == NULL) {
                TRY(new_tree(deriving->arena, TREE_TUPLE, 0, &tree));
        }
        number_leaves(tree, 0);
        deriving->to->out_tree = tree;
        return STATUS_OK;
}

Status edit_derive_signature(Edit *edit)
{
        Deriving deriving = { .edit = edit,
                              .arena = &edit->work->arena,
                              .from = &edit->base->signature,
                              .to = &edit->work->signature };
        if (is_default(deriving.from))
                return STATUS_OK;
        TRY(derive_inputs(&deriving));
        TRY(derive_argument_names(&deriving));
        TRY(derive_in_tree(&deriving));
        TRY(derive_outputs(&deriving));
        TRY(derive_out_tree(&deriving));
        if (!edit->fixed) {
                TRY(edit_derive_ranges(edit));
                TRY(edit_derive_guards(edit, deriving.copy));
        }
        return edit_keep_text(edit, deriving.from->ir, &deriving.to->ir);
}

void edit_fix_inputs(Edit *edit)
{
        edit->fixed = true;
}

void edit_mark_hidden(Edit *edit)
{
        Signature *signature = &edit->work->signature;
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                signature->inputs[i].hidden = edit_node_of(signature->inputs[i].placeholder)->hidden;
        if (!is_default(&edit->base->signature))
                return;
        signature->n_arguments -= edit->n_hidden;
        signature->n_user_inputs -= edit->n_hidden;
}
