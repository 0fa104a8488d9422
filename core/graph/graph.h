// SPDX-License-Identifier: Apache-2.0
// The FX graph as authored: nodes in order, six opcodes, nested arguments, a module tree, state, a
// signature.
//
// Built by a reader (api) through graph_add_node and friends, closed once by graph_finish (lint,
// users, last uses), then immutable, refcounted and shared by all threads. Everything small lives
// in the graph's arena; state tensors and child graphs are counted.
#pragma once
#include "core/base/arena.h"
#include "core/base/map.h"
#include "core/graph/names.h"
#include "core/tensor/value.h"

typedef enum Opcode {
        OP_PLACEHOLDER,
        OP_GET_ATTR,
        OP_CALL_FUNCTION,
        OP_CALL_METHOD,
        OP_CALL_MODULE,
        OP_OUTPUT
} Opcode;
extern const char *const opcode_names[]; // "placeholder" ...

typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Module Module;

// A dimension: a constant, or a symbolic expression in PyTorch's infix spelling ("s31", "2*s39").
typedef struct SymDim {
        int64_t value;    // constant, or the hint (-1: none) when expr is set
        const char *expr; // NULL: constant
} SymDim;

// What is known of a tensor before it exists. Unknown: dtype DTYPE_NONE, rank -1.
typedef struct TensorSpec {
        Dtype dtype;
        int rank;
        SymDim size[MAX_RANK];
} TensorSpec;

// One entry of the nn_module_stack of nodes: a call of a module while the graph was traced. Nodes
// of one call share it.
typedef struct StackEntry StackEntry;
struct StackEntry {
        const StackEntry *outer; // the call around it; NULL: none
        // tells calls apart: "b", and "b@1" for the second call of the same module
        const char *key;
        const char *path, *type; // of the module; type normalised
        uint32_t index;          // among the calls of its graph, from 1
        uint32_t depth;          // entries of the stack up to here
};

struct Node {
        Opcode op;
        uint32_t index;   // position in graph->nodes; set by graph_finish
        const char *name; // unique within the graph
        // qualified name, method name, dotted path, placeholder's argument name, "output"
        const char *target;
        Value args;         // VALUE_TUPLE
        Value kwargs;       // VALUE_DICT (possibly with n == 0)
        const char *type;   // printed annotation ("torch.Tensor") or NULL
        TensorSpec *spec;   // result as recorded by the exporter; NULL if unknown
        const char *symbol; // exports: the expression of a symbolic number ("2*s39"); else NULL
        // other members of its meta, as JSON text: "a": 1, "b": []; NULL if none
        const char *notes;
        const StackEntry *module_stack; // innermost entry of its nn_module_stack; NULL if unknown
        const char *stack_trace;        // where in Python it was made, as PyTorch notes it; NULL if unknown
        // in a derived graph: the authored node that this one stands for; NULL: itself
        const char *origin;
        bool internal;        // an edit inserted it to observe a run: it may call what uploads may not
        const void *resolved; // what targets/ found for `target`; owned there, static
        Graph *graph;         // owner
        // Set by graph_finish:
        uint32_t n_users; // distinct nodes that read this one
        // values whose last reader is this node, in order of first appearance in its arguments
        // (printing and freeing)
        Node **frees;
        // includes the node itself when it has no users (placeholders and outputs never free)
        uint32_t n_frees;
};

// A module in the tree: an nn leaf with configuration, or a child graph. Containers (Sequential
// ...) have only a type.
typedef struct ModuleConfig {
        const char *key;
        Value value;
} ModuleConfig;
struct Module {
        const char *path; // "features.0"; "" = root
        const char *type; // normalised: "torch.nn.Conv2d"; NULL if not given
        bool training;
        ModuleConfig *config;
        uint32_t n_config, config_capacity;
        Graph *graph;         // child graph (counted) or NULL
        const void *resolved; // module class found by targets/; NULL until resolved
        Tensor **state;       // by the class's state list; set when resolved; borrowed from graph->state
};

// One entry of the state: a parameter, buffer or constant by dotted path.
typedef struct State {
        const char *path;
        Tensor *tensor; // counted; tied entries share the storage
        bool is_parameter, persistent;
        bool written; // some node may write it: seen through copy-on-write shells
} State;

// ---- signature ----
typedef enum InputKind { INPUT_USER, INPUT_STATE, INPUT_LITERAL } InputKind;
typedef struct Input {
        InputKind kind;
        Node *placeholder;
        const char *path; // INPUT_STATE: dotted path in the state
        Value literal;    // INPUT_LITERAL: the caller's value must equal it (as flattened user input)
        TensorSpec spec;  // INPUT_USER: tensors; a symbolic int is size[0] of a spec of rank 0
        // INPUT_USER: VALUE_TENSOR, VALUE_INT (symbolic int), VALUE_NONE = anything (no signature
        // known)
        ValueKind value_kind;
        const char *kind_name; // INPUT_STATE: "PARAMETER", "BUFFER", "CONSTANT_TENSOR"
        bool written;          // of an export: some node may write it in place
        // In a derived graph: its value comes with the request's rules. Hidden inputs stand behind
        // all others; no tree, argument name, info or text shows them.
        bool hidden;
} Input;

typedef enum OutputKind { OUTPUT_USER, OUTPUT_STATE_MUTATION, OUTPUT_INPUT_MUTATION } OutputKind;
extern const char *const output_kind_names[]; // in FX JSON: "user", "state", "input"
typedef struct Output {
        OutputKind kind;
        const char *target; // mutation: state path or input name; NULL otherwise
        Value arg;          // node or literal (borrowed from the output node's args)
} Output;

// Structure of arguments or results (pytree). Leaves are numbered in order.
typedef enum TreeKind { TREE_LEAF, TREE_TUPLE, TREE_LIST, TREE_DICT, TREE_NAMEDTUPLE } TreeKind;
extern const char *const tree_kind_names[]; // in FX JSON: "*", "tuple", "list", "dict", "namedtuple"
typedef struct Tree Tree;
struct Tree {
        TreeKind kind;
        uint32_t n;
        const char *const *keys; // DICT, NAMEDTUPLE
        Tree **children;
        uint32_t first_leaf, n_leaves;
        const uint32_t *by_key; // numbers of the children in the order of their keys; may be NULL
};
// Sets `by_key` wherever there are many keys, also in the children. Once.
Status tree_sort_keys(Arena *arena, Tree *tree);
// The number of the child with that key, the first of several; tree->n: there is none. It may have
// no keys at all.
uint32_t tree_find(const Tree *tree, const char *key, size_t n);

typedef struct SymbolRange {
        const char *symbol; // "s31" or an expression ("2*s39")
        int64_t min, max;   // INT64_MAX: unbounded. A min <= 2 is not enforced and shows as 0.
} SymbolRange;

typedef struct Signature {
        Input *inputs; // one per placeholder, in order
        uint32_t n_inputs, n_user_inputs;
        Output *outputs; // flat outputs in order (mutations first, as the archive has them); NULL for FX JSON
        uint32_t n_outputs;
        Tree *in_tree;  // tuple(tuple(args), dict(kwargs)); NULL: one entry per placeholder
        Tree *out_tree; // NULL: the output node's own structure
        // forward's argument names in flatten order of in_tree's top level; NULL if unknown
        const char **argument_names;
        uint32_t n_arguments;
        SymbolRange *ranges;
        uint32_t n_ranges;
        const char **guards; // guards_code, as PyTorch 2.13 writes it
        uint32_t n_guards;
        const char *ir; // "TRAINING", "ATEN" or NULL
} Signature;

// What one rule did to a derived graph (core/edit/rule.h). Arrays are in the graph's arena.
typedef struct RuleHit {
        const char *authored; // name of the node, or of the module's call ("b@1"), that the rule matched
        const char *node;     // name of the authored node that gave its value
        const Node *value;    // what stands for it in this graph; NULL: no single node does
        // what observes it (core/edit/observe.h); NULL: not wanted
        const Node *call, *stats, *tensor;
        // if it is observed, the call before any rule; of a module's call in an export a
        // call_module of the module's path
        Opcode op;
        const char *target;
        // path and class of the called module, or of the export's innermost module; NULL: unknown
        const char *module, *module_type;
        const char *const *parts; // of a module's call in an export: names of the authored nodes
        uint32_t n_parts;         // 0: a node was matched
} RuleHit;
typedef struct RuleTrace {
        RuleHit *hits;
        uint32_t n_hits;
        uint8_t observe, halt_on; // EditObserve, EditHalt
        bool as_text;
} RuleTrace;

// A call of a child graph in whose place stand the child's nodes (core/edit/leaf.h).
typedef struct InlinedCall {
        const char *authored; // name of the call
        const char *node;     // name of the node that gave its result when it was inlined
} InlinedCall;

typedef enum GraphFormat { GRAPH_FX_JSON, GRAPH_PT2 } GraphFormat;

struct Graph {
        RefCount ref;
        Arena arena;
        GraphFormat format;
        const char *class_name; // "GraphModule"
        Node **nodes;
        uint32_t n_nodes, nodes_capacity;
        Node *output;     // the last node
        Module **modules; // by insertion; modules[0] is the root (path "")
        uint32_t n_modules, modules_capacity;
        StringMap module_by_path, node_by_name;
        StringMap state_by_path; // path -> index + 1: the array moves as it grows
        Namespace names;         // of nodes
        // Of nodes, until graph_finish: equal ones are kept once.
        StringMap traces, calls;
        uint32_t n_calls;
        State *state;
        uint32_t n_state, state_capacity;
        Signature signature; // in the arena; values are counted
        // .code uses fx_pytree (in_tree given and not flat): set by readers that know
        bool pytree;
        // SHA-256 of the canonical form, without the weights' bytes; set by graph_finish
        uint64_t fingerprint[4];
        // hash of what it was read from, weights included; set by the engine before the graph is
        // shared, else 0
        uint64_t content[4];
        // grows when damaged bytes on disk are replaced: programs made before do not serve graphs
        // read after
        uint64_t generation;
        // RunLabels of eager runs (profile/labels.c), made by the first one; freed with the graph
        _Atomic(void *) labels;
        void (*free_labels)(void *labels);
        // numbers of its state by storage (core/eval/state.c), made when they are first asked for;
        // one block, freed with the graph
        _Atomic(void *) state_numbers;
        // parsed guards (core/eval/guards.c), made by the check at upload or the first
        // run; freed with the graph
        _Atomic(void *) guards;
        void (*free_guards)(void *guards);
        RuleTrace *rules; // of a graph that was derived by rules, one entry per rule
        uint32_t n_rules;
        InlinedCall *inlined; // of a graph that was derived with "leaf"; in the arena
        uint32_t n_inlined;
        uint64_t tuned_by[4]; // derived: content of the graph whose tune record its programs take
        bool derived;         // its state belongs to the graph it was made from
        bool finished;
        size_t weights_bytes; // bytes of distinct state storages
};

// ---- building ----
Status graph_new(GraphFormat format, Graph **out_graph);
Graph *graph_ref(Graph *graph);
Graph *graph_unref(Graph *graph);
DEFINE_CLEANUP(Graph, graph_unref)

// What a new node is made of. `name` NULL: FX's naming rule derives it from the target. Text is
// copied; args and kwargs (each may be VALUE_NONE, as in a zeroed one) are taken, also on failure.
typedef struct NodeSpec {
        Opcode op;
        const char *name;
        const char *target;
        Value args;
        Value kwargs;
} NodeSpec;

// Appends a node. A given name that is taken or illegal fails with STATUS_LINT. Over
// limits.max_nodes: STATUS_TOO_LARGE.
Status graph_add_node(Graph *graph, const NodeSpec *take_spec, Node **out_node);
// Parents are created as plain containers. A path that has a type already, or names a tensor of the
// state: STATUS_LINT.
Status graph_add_module(Graph *graph, const char *path, const char *type, Module **out_module);
// The tensor is taken (also on failure). *out_state is valid until the next graph_add_state. A path
// that is taken: STATUS_LINT.
Status graph_add_state(Graph *graph, const char *path, Tensor *take_tensor, State **out_state);
// Whether a tensor of this name and dtype is a parameter where nobody says so.
bool state_looks_like_parameter(const char *path, Dtype dtype);
// With everything below it: modules, child graphs and state. STATUS_LINT for the root and for a
// path that is no module.
Status graph_remove_module(Graph *graph, const char *path);
Status graph_remove_state(Graph *graph, const char *path); // STATUS_LINT if absent
void module_clear(Module *module);                         // without type, configuration and child graph
Status module_add_config(Module *module, const char *borrow_key,
                         // key in the graph's arena; value taken, also on failure
                         Value take_value);
// The call of a module within `outer` (of this graph, or NULL): the one that is there, or a new
// one. A key that `outer` has already gives `outer`. Over limits.max_module_calls, or more than
// MAX_MODULE_DEPTH around each other: STATUS_TOO_LARGE.
enum { MAX_MODULE_DEPTH = 256 };
typedef struct StackEntrySpec {
        const char *key, *path, *type;
} StackEntrySpec;
Status graph_stack_entry(Graph *graph, const StackEntry *outer, const StackEntrySpec *spec,
                         const StackEntry **out_entry);
// A node's module calls and stack trace, of any graph, for a node of this one.
Status graph_copy_place(Graph *graph, const Node *from, Node *node);
// `trace` is copied.
Status graph_set_trace(Graph *graph, Node *node, const char *trace);
static inline const char *node_module_path(const Node *node) // NULL if unknown
{
        return node->module_stack == NULL ? NULL : node->module_stack->path;
}
static inline const char *node_module_type(const Node *node) // NULL if unknown
{
        return node->module_stack == NULL ? NULL : node->module_stack->type;
}
Node *graph_node(const Graph *graph, const char *name); // NULL if absent
// The name people know the node by.
static inline const char *node_origin(const Node *node)
{
        return node->origin != NULL ? node->origin : node->name;
}
Module *graph_module(const Graph *graph, const char *path);
State *graph_state(const Graph *graph, const char *path);
// Calls visit on the state of the graph and of its child graphs, in order, with the full path, of
// which `names` keeps the text. Stops at the first failure.
Status graph_each_state(const Graph *graph, Arena *names,
                        Status (*visit)(void *context, const char *path, const State *state), void *context);
bool graph_writes_state(const Graph *graph); // the graph or one of its child graphs
// FX's rule for a free node name derived from `candidate`, a target or the name asked for. Text
// lives in the graph's arena.
Status graph_fresh_name(Graph *graph, const char *candidate, const char **out_name);
// The base name FX derives from an opcode and target ("torch.nn.functional.relu" -> "relu",
// "features.0" -> "features_0").
Status graph_name_of_target(Graph *graph, Opcode op, const char *target, const char **out_name);
// Spells a function target as PyTorch's qualified name: "F.linear" -> "torch._C._nn.linear",
// "operator.add" -> "_operator.add". Table-driven.
const char *graph_normalise_target(Graph *graph, const char *target);
// Spells a module type: "torch.nn.modules.linear.Linear" -> "torch.nn.Linear".
const char *graph_normalise_module_type(Graph *graph, const char *type);

// Lint (exactly one output, last; topological order; names; get_attr and call_module paths
// resolve), users, frees, fingerprint. Then immutable.
Status graph_finish(Graph *graph);
// First violation in PyTorch's words, with the node's name in the failure.
Status graph_lint(const Graph *graph);

// Calls visit on each node read by `node` (args first, then kwargs; in order, with repeats).
Status node_visit_inputs(const Node *node, Status (*visit)(void *context, Node *input), void *context);
static inline bool node_is_call(const Node *node)
{
        return node->op == OP_CALL_FUNCTION || node->op == OP_CALL_METHOD || node->op == OP_CALL_MODULE;
}
