// SPDX-License-Identifier: Apache-2.0
// Inside core/edit: the working copy.
//
// Every node of the working graph is the first member of an EditNode in the graph's arena, so a
// Node that belongs to `work` can be cast to one. Order is a doubly linked list. Uses are kept in
// both directions: a node owns one EditUse for each distinct node that it reads, linked into that
// node's list of users.
#pragma once
#include "core/edit/edit.h"

typedef struct EditNode EditNode;

struct EditUse {
        EditNode *input, *user;
        EditUse *before, *after; // among the users of `input`
};

struct EditNode {
        Node node; // n_users is kept up to date
        EditNode *before, *after;
        EditUse *inputs; // in order of first appearance, args first
        uint32_t n_inputs, inputs_capacity;
        int64_t n_values; // of args and kwargs, those within lists each
        EditUse *first_use, *last_use;
        const Input *input;           // of a placeholder of the base
        uint64_t mark;                // the last walk that visited it
        int64_t step;                 // of the recipe, that last made, changed, named or moved it
        bool erased, changed, copied; // copied: of a node of the base
        uint32_t acted_by;            // rules: what acted on it last (rule.c); 0: none did
        bool hidden;                  // a placeholder whose value comes with the rules
        bool spec_known;              // the spec was found after the last change
};

// One result of a graph that tells its outputs apart (exports).
typedef struct EditOutput {
        OutputKind kind;
        const char *target;
        uint32_t leaf; // of the base's out_tree, or NO_LEAF
} EditOutput;
#define NO_LEAF UINT32_MAX

// A graph that calls were put in for, and where its modules and state lie.
typedef struct EditCalled {
        const Graph *graph;
        const char *prefix;
} EditCalled;

struct Edit {
        Graph *base, *work; // counted; work is NULL once it was handed out
        EditNode *first, *last;
        uint32_t n_nodes, n_made; // there; ever made
        Node **by_base;           // node of the base -> its copy
        EditOutput *outputs;      // in work's arena; as many as base->signature.n_outputs, then edited
        uint32_t n_outputs, outputs_capacity;
        uint32_t n_hidden;     // hidden inputs made
        EditNode *last_hidden; // the last of them
        bool fixed;            // edit_fix_inputs
        uint64_t walk;         // number of the last walk that marked nodes
        int64_t n_steps, n_visits;
        int64_t n_values;    // of all arguments, now
        int64_t most_values; // limits.max_edit_values more than the base had
        int64_t next_poll;   // when n_visits is there
        const RunContext *poll;
        EditCalled *called;
        uint32_t n_called, called_capacity;
        Node **gone; // erased since the last edit_step
        uint32_t n_gone, gone_capacity;
};

// A node of the working graph. Undefined for others.
static inline EditNode *edit_node_of(const Node *node)
{
        return (EditNode *)(uintptr_t)node;
}
// The node was named or moved by this step; edit_note_change: it computes something else, too.
static inline void edit_note_step(const Edit *edit, EditNode *node)
{
        node->step = edit->n_steps;
}
static inline void edit_note_change(const Edit *edit, EditNode *node)
{
        node->changed = true;
        node->spec_known = false;
        edit_note_step(edit, node);
}
// STATUS_INTERNAL for a node of another graph, STATUS_LINT for an erased one.
Status edit_check_node(const Edit *edit, const Node *node);

// ---- uses.c ----
// Gives the node its arguments (taken, also on failure) and brings the uses up to date.
Status edit_set_values(Edit *edit, EditNode *node, Value take_args, Value take_kwargs);
void edit_drop_uses(EditNode *node);

// ---- nodes.c ----
// A node outside the list, without arguments. Its name, in work's arena, is taken already.
Status edit_make_node(Edit *edit, Opcode op, const char *borrow_name, const char *target,
                      EditNode **out_node);
void edit_link(Edit *edit, EditNode *node, EditNode *before, EditNode *after);
Status edit_keep_text(Edit *edit, const char *text, const char **out_copy); // NULL stays NULL

// ---- constants.c ----
// The tensor's numbers as `dtype`, in memory of their own.
Status edit_own_tensor(const Tensor *from, Dtype dtype, Tensor **out_tensor);

// ---- passes.c ----
bool edit_any_call_writes(const Edit *edit); // after edit_resolve

// ---- copy.c ----
Status edit_copy_base(Edit *edit);
Status edit_copy_spec(Edit *edit, const TensorSpec *spec, TensorSpec *out_spec);
// A graph of its own with the same content, finished and not resolved.
Status edit_copy_graph(const Graph *graph, Graph **out_graph);

// ---- guards.c ----
// Of the derived signature, whose inputs and structure are done. `copy`: what became of each entry
// of the base's; NULL: it is gone.
Status edit_derive_ranges(Edit *edit);
Status edit_derive_guards(Edit *edit, const Input *const *copy);

// ---- signature.c ----
Status edit_derive_signature(Edit *edit);
// After graph_finish, which may have made the signature.
void edit_mark_hidden(Edit *edit);

// ---- splice.c ----
// The call's arguments in the order of the child's parameters; `values` has room for all of its
// nodes. They are borrowed.
Status edit_bind_call(const Graph *child, const Node *call, Value *values, uint32_t *out_n);

// How a call becomes the nodes of its child.
typedef struct EditInlining {
        const Graph *child;
        const char *prefix; // of the child's modules and state; borrowed
        bool shares;        // as EditSplice's
        bool names_by_path;
} EditInlining;
// *out_result (owned by the caller): what stands in the call's place.
Status edit_inline_as(Edit *edit, Node *node, const EditInlining *how, Value *out_result);

// ---- splice_checks.c ----
// Nodes that check the values which the placeholders of splice->graph get: `values` by index of its
// nodes. They stand in front of splice->before.
Status edit_check_splice(Edit *edit, const EditSplice *splice, const Value *values);
