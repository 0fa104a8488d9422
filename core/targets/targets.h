// SPDX-License-Identifier: Apache-2.0
// Names people use -> operators: torch.*, torch.nn.functional.*, torch._C._nn.*, Tensor methods,
// operator.*, builtins, module classes. Most names derive from the schemas (torch.relu, Tensor.relu
// -> every overload of aten::relu); only exceptions are written: rows with a Python signature and
// an expand body, in the same OpDef form (namespace "py").
#pragma once
#include "core/ops/emitter.h"

typedef struct Target {
        const char *name;                 // as found
        const Overload *const *overloads; // tried in order: strict first, then with numbers in Tensor slots
        uint32_t n_overloads;
        bool gives_lists; // torch.ops.*: a Tensor[] result is a list; the names of Python give a tuple
} Target;

typedef struct ModuleClass ModuleClass; // module_class.h

Status targets_init(void); // with ops_init; once, before threads
// Qualified function name ("torch.relu", "_operator.add", "torch.ops.aten.relu.default"); NULL if
// unknown.
const Target *target_function(const char *qualified_name);
// Tensor (and torch.Size, tuple, dict) method name; NULL if unknown.
const Target *target_method(const char *name);
// Whether only nodes that core inserts may call it (Node.internal).
static inline bool target_is_internal(const Target *target)
{
        return (target->overloads[0]->op->flags & OP_INTERNAL) != 0;
}
const ModuleClass *module_class(const char *type);
// Names for listings, in table order; NULL at the end. TARGET_FUNCTIONS: first qualified names with
// rows of their own, then the bare names X that derive as torch.X from aten::X.
typedef enum TargetKind { TARGET_FUNCTIONS, TARGET_METHODS, TARGET_MODULES } TargetKind;
const char *target_name_at(TargetKind kind, uint32_t index);
// "kernel", "expansion" or "view".
const char *op_kind(const OpDef *op);

// Calls with overload choice, as Python would. Failures name the operator and the arguments that
// fit, in PyTorch's words where it has them.
Status target_call(Emitter *emitter, const Target *target, const CallArgs *call, Value *out);
// Whether some overload takes these arguments; VALUE_NODE fits anything. The failure lists
// arguments that fit.
Status target_check(const Target *target, const CallArgs *call);
// The overload that a call with these arguments gets, as far as it is decided: VALUE_NODE fits
// anything. NULL: none.
const Overload *target_choose(const Target *target, const CallArgs *call);
// The operators that a name stands for if it is one call, never rows of Python names. Empty if the
// name is more than one call or unknown. More than MEANING_MAX overloads are cut.
enum { MEANING_MAX = 64 };
typedef struct Meaning {
        const Overload *items[MEANING_MAX];
        uint32_t n;
} Meaning;
void target_meaning(const Target *target, Meaning *out_meaning);
void overload_meaning(const Overload *overload, Meaning *out_meaning);
void module_meaning(const char *type, Meaning *out_meaning); // "torch.nn.Sigmoid"
bool node_is_getitem(const Node *node);                      // operator.getitem
bool module_is_dropout(const char *type);                    // torch.nn.Dropout itself, not its relatives
bool meaning_meets(const Meaning *a, const Meaning *b);      // they share an overload
// module.forward(*args): config and state come from `module` (resolved by graph_resolve).
Status module_call(Emitter *emitter, const Module *module, const CallArgs *call, Value *out);

// Possible effects of a node's call besides its result, judged by the rows of its operator before
// it runs. Too many may be named, never too few.
enum NodeEffect {
        NODE_WRITES = 1 << 0, // to bytes or geometry of tensors it reads
        NODE_SHARES = 1 << 1, // its result may share bytes with tensors it reads
        // as NODE_WRITES, but of its first argument only; so does its result share
        NODE_WRITES_FIRST = 1 << 4,
        NODE_DRAWS = 1 << 2, // random numbers
        NODE_MOVES = 1 << 3, // unsqueeze_ and the like: a tensor it reads gets another geometry
        NODE_HALTS = 1 << 5, // it may end the run, and the first one in order is to do so
};
// Child graphs that it calls or is given count with all their nodes. Placeholders, get_attr and
// output share.
uint32_t node_effects(const Graph *graph, const Node *node);

// Whether a call must stay though nobody reads its result: it writes, draws random numbers or
// refuses values (asserts). Stricter than torch.fx's is_impure, which takes Tensor.add_ for pure.
// Placeholders and outputs are impure, as in torch.fx. The graph is resolved.
bool node_is_impure(const Graph *graph, const Node *node);

// ---- at upload ----
typedef struct UnsupportedRow {
        const char *what;   // "aten.foo.default", "torch.nn.Foo", or "aten.add.Tensor: float8 tensors"
        const char *reason; // NULL for an unknown name; else one sentence
        const Node **nodes; // the nodes that need it
        uint32_t n_nodes;
} UnsupportedRow;
typedef struct CheckReport {
        Arena arena;
        UnsupportedRow *rows;
        uint32_t n_rows, rows_capacity, n_nodes; // n_nodes: distinct nodes concerned
        const char **missing_state;              // dotted paths that modules or get_attr need
        uint32_t n_missing_state, missing_capacity;
        // "linear: in_feature (torch.nn.Linear knows in_features, out_features, bias)"
        const char **unknown_config;
        uint32_t n_unknown_config, unknown_capacity;
} CheckReport;
void check_report_deinit(CheckReport *report);
// Adds `node` to the row of `what` and `reason` (may be NULL); texts are copied.
Status report_unsupported(CheckReport *report, const char *what, const char *reason, const Node *node);
// How rows name what a node calls: "aten.foo.default", "Tensor.foo".
void report_name(const Node *node, char out_name[200]);
// Resolves every node (node->resolved), module class, configuration and state of a graph that is
// not yet shared, child graphs included, and lists everything that cannot run: unknown names,
// schemas that do not bind, dtypes that recorded metas show. OK even when rows were added.
Status graph_resolve(Graph *graph, CheckReport *out_report);
// The report as one failure: STATUS_UNSUPPORTED / MISSING_STATE / UNKNOWN_CONFIG with the full
// list, or OK when empty. "2 of 214 nodes use operators fxserve 0.2 lacks: aten.foo.default (foo,
// foo_1), ..."
Status check_report_status(const CheckReport *report, const Graph *graph);
