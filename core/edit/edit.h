// SPDX-License-Identifier: Apache-2.0
// Graphs from graphs: an Edit is a working copy of a finished graph. Its nodes are in a list that
// may be changed; edit_finish closes it into an ordinary, immutable graph. The base is never
// touched.
//
// The functions follow the Graph API of torch.fx, with its order and messages. State tensors are
// shared with the base; everything else is copied, so the base may be freed.
//
// A recipe is all or nothing: after a failure only edit_free may be called. One thread per session.
// Nodes of a session are known by `Node *`, valid until edit_free; after edit_finish they belong to
// the new graph, except erased ones.
#pragma once
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

typedef struct Edit Edit;

// ---- a session ----
// `base` is finished; it is counted until the session ends.
Status edit_new(const Graph *base, Edit **out_edit);
Edit *edit_free(Edit *edit); // NULL-safe, returns NULL
DEFINE_CLEANUP(Edit, edit_free)
// Counts one step of a client's recipe: STATUS_TOO_LARGE after limits.max_edit_steps. To be called
// once per step.
Status edit_step(Edit *edit);
// Counts nodes that are looked at, by the steps (edit_step counts all) and by passes that look at
// all nodes again and again: STATUS_TOO_LARGE after limits.max_edit_visits.
Status edit_visit(Edit *edit, int64_t n);
// The deadline and the cancellation of what the session is for: edit_step and edit_visit fail when
// run_poll does. `poll` may be NULL and must outlive the session, and those that edit_reopen makes.
void edit_set_poll(Edit *edit, const RunContext *poll);
const RunContext *edit_poll(const Edit *edit);
// What torch.fx's Graph.lint refuses, as graph_lint.
Status edit_lint(Edit *edit);
// Resolves the working copy as it is, for functions that read effects (node_is_impure). Calls that
// cannot run are no failure here.
Status edit_resolve(Edit *edit);
// Lints, closes and resolves the graph. A name without an operator, state that is missing and
// unknown configuration fail as they do at upload. The session ends in any case but is still to be
// freed.
Status edit_finish(Edit *edit, Graph **out_graph);

// Finishes the session and begins another on the graph that it made, with the counts of the first,
// which is still to be freed.
Status edit_reopen(Edit *edit, Graph **out_graph, Edit **out_edit);

// ---- looking ----
const Graph *edit_base(const Edit *edit);
Node *edit_node(const Edit *edit, const char *name);    // NULL if absent
Node *edit_copy_of(const Edit *edit, const Node *node); // of a node of the base; NULL: erased
Node *edit_first(const Edit *edit);                     // in order; NULL at the end
Node *edit_last(const Edit *edit);
Node *edit_next(const Node *node);
Node *edit_previous(const Node *node);
Node *edit_output(const Edit *edit); // the last node, if it is an output; else NULL
uint32_t edit_n_nodes(const Edit *edit);
// Distinct users in the order in which they became users, as torch.fx's node.users.
typedef struct EditUse EditUse;
const EditUse *edit_first_use(const Node *node); // NULL: none. node->n_users is their number.
const EditUse *edit_next_use(const EditUse *use);
Node *edit_user(const EditUse *use);
// Whether the node was inserted, retargeted, or given other arguments. A new name does not count.
bool edit_is_changed(const Node *node);
bool edit_node_is_new(const Node *node); // not a copy of a node of the base
// The same since the last edit_step; a new name and another place count, too.
bool edit_is_touched(const Edit *edit, const Node *node);
// Nodes that were erased since then, in order; NULL behind the last.
const Node *edit_erased(const Edit *edit, uint32_t i);
// The working copy, to look up nodes, modules and state by name. It is not finished.
const Graph *edit_work(const Edit *edit);
// The module tree and the state as they are now.
const Module *edit_module(const Edit *edit, const char *path);
const State *edit_state(const Edit *edit, const char *path);

// ---- nodes ----
// Values are taken, also on failure; args is a tuple and kwargs a dict, or VALUE_NONE. A VALUE_NODE
// in them is a node of this session that is not erased.
typedef struct EditNew {
        Opcode op;
        const char *name;   // FX's rule makes a free name from it; NULL: from the target
        const char *target; // functions are spelled as PyTorch prints them
        Value args, kwargs;
        const char *type;       // annotation, or NULL
        const Node *origin;     // the node that it stands for; NULL: only itself
        const TensorSpec *spec; // of its result, copied; NULL: not known
        const char *notes;      // other members of its meta, as Node's; or NULL
} EditNew;
// `at` NULL: insert_before puts the node in front of the whole graph, insert_after at its end.
Status edit_insert_before(Edit *edit, Node *at, const EditNew *take_new, Node **out_node);
Status edit_insert_after(Edit *edit, Node *at, const EditNew *take_new, Node **out_node);
// Inserts another node in the place of `node`, which is erased. Its users read the new one, which
// stands for it.
Status edit_replace(Edit *edit, Node *node, const EditNew *take_new, Node **out_node);
// STATUS_LINT while it has users: `Tried to erase Node a but it still had 1 users in the graph:
// {b: None}!`
Status edit_erase(Edit *edit, Node *node);
Status edit_move_before(Edit *edit, Node *node, Node *at); // at->prepend(node)
Status edit_move_after(Edit *edit, Node *node, Node *at);
// FX's rule makes a free name from `name`.
Status edit_rename(Edit *edit, Node *node, const char *name);
// Names for nodes as if they were made now, one after the other, by torch.fx's rule from their
// targets; overloads of torch.ops by their packet ("add"). All other nodes keep their names.
Status edit_name_anew(Edit *edit, Node *const *nodes, uint32_t n);
// Function, method or path; the opcode stays. Of placeholders the argument's name; not of outputs.
Status edit_set_target(Edit *edit, Node *node, const char *target);
Status edit_set_call(Edit *edit, Node *node, Opcode op, const char *target); // calls only
Status edit_set_args(Edit *edit, Node *node, Value take_args, Value take_kwargs);
// All places where `node` reads `from` get `with` (borrowed).
Status edit_replace_input(Edit *edit, Node *node, const Node *from, Value with);
// All readers of `node` but `except` (may be NULL) get `with` (borrowed) in its place.
Status edit_replace_all_uses(Edit *edit, Node *node, Value with, const Node *except);

// A placeholder behind all others, for a value that comes with the request and not from the user
// (Input.hidden). Signatures and texts do not show it. *out_index counts the session's hidden
// inputs from 0: values are bound in this order, behind the user's inputs.
Status edit_hidden_input(Edit *edit, const char *name, const TensorSpec *spec, Node **out_node,
                         uint32_t *out_index);

// ---- whole graphs ----
// The nodes of another graph, copied to the front of `before`: its placeholders are `inputs`
// (borrowed), in order, then their defaults; lifted state is read by get_attr.
typedef struct EditSplice {
        const Graph *graph;
        // Modules and state of the graph go below this path, which must be free, unless it `shares`
        // what an earlier copy put there. NULL: they keep their paths, and what the working copy
        // has there already is taken instead.
        const char *prefix;
        bool shares;
        Node *before;
        const Value *inputs;
        uint32_t n_inputs;
        const Node *origin; // that the copies stand for; NULL: themselves
        // Calls of modules and get_attr are named by their new path, as in a trace of the whole.
        bool names_by_path;
        // Puts checks in front of the copies: ranks, sizes, symbols and ranges of the graph's
        // signature. What such nodes cannot check is STATUS_UNSUPPORTED.
        bool check_inputs;
} EditSplice;
// *out_result (owned by the caller): the graph's result in its own structure, made of nodes of the
// session. STATUS_UNSUPPORTED for graphs that write their state or an input, or check inputs by
// guards: a copy does neither.
Status edit_splice(Edit *edit, const EditSplice *splice, Value *out_result);
// `with` (borrowed, may be a container) in the place of `node`, which is erased. getitem nodes that
// take an item of a container become that item.
Status edit_substitute(Edit *edit, Node *node, Value with);
// A call of a child graph becomes its nodes. Modules and state keep their full paths; where another
// node calls the child too, they are shared by a second path.
Status edit_inline(Edit *edit, Node *node);
// The opposite: the `n` nodes (calls and get_attr, in any order) become a child graph at `path`,
// which must be free, and one call of it. Its arguments are the outside nodes that they read, in
// order of first use; its results are those of them that others read. Nodes between them that read
// their results move behind the call. Modules and state that nobody else reads move along; others
// are shared. STATUS_LINT if a way between two of them leads through other nodes.
// STATUS_UNSUPPORTED if another order could change what a call in between writes.
Status edit_outline(Edit *edit, Node *const *nodes, uint32_t n, const char *path, Node **out_call);
// The child graph that edit_outline would make, without making it.
typedef struct EditChild {
        Graph *graph;   // finished; counted
        Node **results; // of the working copy, in the order of the child's results
        uint32_t n_results;
} EditChild;
void edit_child_deinit(EditChild *child);
Status edit_child(Edit *edit, Node *const *nodes, uint32_t n, EditChild *out_child);
// Takes away the module or the entry of the state at `path`, unless some node reads it.
Status edit_drop_unread(Edit *edit, const char *path);
// edit_splice with checks of the inputs, below a path made from `name`. Copies of one graph share
// their modules and state, as calls of one module do.
Status edit_splice_called(Edit *edit, const EditSplice *splice, const char *name, Value *out_result);
// A path of its own for a module: `wish`, or with _1, _2 ... behind it. In the session's memory.
Status edit_free_path(Edit *edit, const char *wish, const char **out_path);

// ---- results ----
// One more result behind those there are; a single result becomes a tuple of two.
Status edit_add_output(Edit *edit, Value take_value);
// One more value that an export's graph writes, behind those there are: `target` is the path in the
// state or the name of the input.
Status edit_add_written(Edit *edit, OutputKind kind, const char *target, Node *value);
// `index` counts the results as the output node holds them, without the written buffers and inputs
// of an export.
Status edit_remove_output(Edit *edit, uint32_t index);
// The results of an export are these nodes. What it writes to state and inputs stays.
Status edit_set_outputs(Edit *edit, Node *const *nodes, uint32_t n);

// ---- shapes ----
// What is known of the node's result, copied. It is dropped when the node, or one that it reads,
// changes later.
Status edit_set_spec(Edit *edit, Node *node, const TensorSpec *spec);
// The module calls and the stack trace of `from`, which may be a node of any graph.
Status edit_copy_place(Edit *edit, Node *node, const Node *from);
// The user's tensors have the sizes that their placeholders' specs say: symbols, ranges and guards
// go. For passes whose result serves these sizes only.
void edit_fix_inputs(Edit *edit);
// What an input is, for passes that follow sizes through the graph.
typedef struct EditShape {
        const Node *placeholder;
        Dtype dtype; // DTYPE_NONE: as declared, else float32
        int rank;
        int64_t size[MAX_RANK];
} EditShape;
enum { EDIT_MAX_SHAPES = 64 };
// From "x:1,3,224,224;y:2": at most EDIT_MAX_SHAPES, of inputs of the graph that are tensors, each
// once. NULL and "": none.
Status edit_read_shapes(const Graph *graph, const char *text, EditShape *out_shapes, uint32_t *out_n);

// ---- modules and state ----
// A class with its configuration: keys borrowed, values taken by edit_add_module, also on failure.
typedef struct EditModule {
        const char *type;
        bool training;
        ModuleConfig *config;
        uint32_t n_config;
        Graph *graph; // borrowed; a finished child graph, which is copied, or NULL
} EditModule;
Status edit_add_module(Edit *edit, const char *path, const EditModule *take_module);
// With everything below it, state included. STATUS_LINT if there is no such module.
Status edit_delete_module(Edit *edit, const char *path);
// Class, configuration and child graph go; state and modules below it stay where their paths are.
Status edit_replace_module(Edit *edit, const char *path, const EditModule *take_module);
// A new entry, or another tensor for one that is there (taken). In a graph from an export the dtype
// and shape must stay.
Status edit_set_state(Edit *edit, const char *path, Tensor *take_tensor);
// STATUS_LINT if there is no such entry. Nodes that read it are left alone: linting finds them.
Status edit_delete_state(Edit *edit, const char *path);
// get_attr nodes that read the entry follow. STATUS_LINT if `to` is taken. STATUS_UNSUPPORTED for
// state that an export lifted to a placeholder or writes.
Status edit_rename_state(Edit *edit, const char *path, const char *to);
