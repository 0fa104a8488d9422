// SPDX-License-Identifier: Apache-2.0
// written.c: which graphs may write to their state. One pass in node order carries two bits per
// node: "may share bytes with state" and "may be a container of such". Operators that always return
// fresh tensors clear them (a list of names below), all others pass them on; a write to a value
// that shares marks the whole state of the graph, so that runs see it through copy-on-write shells.
// Too many marks cost a little time; one too few would let a run change the model, so unknown means
// yes.
#include "core/targets/resolve.h"

#include <string.h>
#include "core/base/limits.h"

enum { SHARES = 1, CONTAINER = 2 };

typedef struct Writes {
        uint8_t *flags; // per node of the graph
        bool found;     // a node writes to a value that shares
} Writes;

// Operators and functions whose results never share bytes with their arguments.
static bool returns_fresh(const char *name)
{
        static const char *const fresh[] = { "linear",
                                             "conv1d",
                                             "conv2d",
                                             "conv3d",
                                             "convolution",
                                             "conv_transpose1d",
                                             "conv_transpose2d",
                                             "batch_norm",
                                             "matmul",
                                             "mm",
                                             "bmm",
                                             "addmm",
                                             "baddbmm",
                                             "layer_norm",
                                             "group_norm",
                                             "instance_norm",
                                             "softmax",
                                             "log_softmax",
                                             "embedding",
                                             "cat",
                                             "stack",
                                             "max_pool1d",
                                             "max_pool2d",
                                             "max_pool3d",
                                             "avg_pool1d",
                                             "avg_pool2d",
                                             "avg_pool3d",
                                             "adaptive_avg_pool1d",
                                             "adaptive_avg_pool2d",
                                             "adaptive_max_pool2d",
                                             "interpolate",
                                             "clone",
                                             "sum",
                                             "mean",
                                             "_assert" };
        for (size_t i = 0; i < ARRAY_LENGTH(fresh); i++) {
                if (strcmp(fresh[i], name) == 0)
                        return true;
        }
        return false;
}

static bool is_elementwise(const Target *target)
{
        bool all = target->n_overloads > 0;
        for (uint32_t i = 0; i < target->n_overloads; i++)
                all &= (target->overloads[i]->op->flags & OP_ELEMENTWISE) != 0 &&
                       !target->overloads[i]->inplace;
        return all;
}

// Python's operators give fresh tensors too; of lists, + and * give lists of the same tensors.
static bool is_python_operator(const Target *target, uint8_t reads)
{
        static const char *const operators[] = { "sub",  "truediv", "floordiv", "mod",    "pow",    "matmul",
                                                 "and_", "or_",     "xor",      "lshift", "rshift", "eq",
                                                 "ne",   "lt",      "le",       "gt",     "ge",     "neg",
                                                 "abs",  "invert",  "not_",     "truth" };
        const Schema *schema = &target->overloads[0]->schema;
        if (target->n_overloads != 1 || strcmp(schema->ns, "py") != 0)
                return false;
        for (size_t i = 0; i < ARRAY_LENGTH(operators); i++) {
                if (strcmp(operators[i], schema->name) == 0)
                        return true;
        }
        return (strcmp(schema->name, "add") == 0 || strcmp(schema->name, "mul") == 0) &&
               (reads & CONTAINER) == 0;
}

// Whether the result can be nothing but one tensor.
static bool gives_tensor(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const char *arrow = strstr(target->overloads[i]->schema.text, "-> Tensor");
                if (arrow == NULL || target->overloads[i]->schema.returns != RETURN_ONE)
                        return false;
        }
        return true;
}

// ---- what a node reads and writes ----
typedef struct Reads {
        const uint8_t *flags;
        uint8_t found;
} Reads;

static Status note_input(void *context, Node *input)
{
        Reads *reads = context;
        reads->found |= reads->flags[input->index];
        return STATUS_OK;
}

static Status read_flags(const Node *node, const uint8_t *flags, uint8_t *out)
{
        Reads reads = { .flags = flags };
        TRY(node_visit_inputs(node, note_input, &reads));
        for (uint32_t i = 0; i < node->args.seq->n; i++) {
                ValueKind kind = node->args.seq->items[i].kind;
                if ((kind == VALUE_LIST || kind == VALUE_TUPLE || kind == VALUE_DICT) &&
                    (reads.found & SHARES) != 0)
                        reads.found |= CONTAINER;
        }
        *out = reads.found;
        return STATUS_OK;
}

// Whether argument `name` exists and is not a plain False (`if_absent` when it is not given).
static bool asks(const Node *node, const Schema *schema, const char *name, bool if_absent)
{
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (strcmp(schema->args[i].name, name) != 0)
                        continue;
                const Value *given = i < node->args.seq->n ? &node->args.seq->items[i] : NULL;
                if (given == NULL && node->kwargs.kind == VALUE_DICT)
                        given = dict_get(node->kwargs.dict, name);
                return given == NULL ? if_absent : !(given->kind == VALUE_BOOL && !given->b);
        }
        return false;
}

// NODE_WRITES, NODE_WRITES_FIRST or 0.
static uint32_t target_writes(const Node *node, const Target *target)
{
        uint32_t found = 0;
        static const char *const writers[] = { "setitem",   "iadd",    "isub",   "imul", "itruediv",
                                               "ifloordiv", "imod",    "ipow",   "iand", "ior",
                                               "ixor",      "ilshift", "irshift" };
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Overload *overload = target->overloads[i];
                const char *name = overload->schema.name;
                if (overload->inplace ||
                    (overload->schema.n_args > 0 && overload->schema.args[0].is_written) ||
                    asks(node, &overload->schema, "inplace", false))
                        found = NODE_WRITES_FIRST;
                for (uint32_t k = 1; k < overload->schema.n_args; k++) {
                        if (overload->schema.args[k].is_written)
                                return NODE_WRITES;
                }
                // Statistics are updated without the schema saying so.
                if (asks(node, &overload->schema, "training", false) ||
                    asks(node, &overload->schema, "use_input_stats", true))
                        return NODE_WRITES;
                size_t n = strlen(name);
                if (strcmp(overload->schema.ns, "py") != 0 && n > 1 && name[n - 1] == '_' &&
                    name[n - 2] != '_')
                        found = NODE_WRITES_FIRST;
                for (size_t k = 0; k < ARRAY_LENGTH(writers) && strcmp(overload->schema.ns, "py") == 0; k++) {
                        if (strcmp(writers[k], name) == 0)
                                found = NODE_WRITES_FIRST;
                }
        }
        return found;
}

static bool module_in_place(const Module *module)
{
        for (uint32_t i = 0; i < module->n_config; i++) {
                if (strcmp(module->config[i].key, "inplace") == 0)
                        return module->config[i].value.kind != VALUE_BOOL || module->config[i].value.b;
        }
        return false;
}

static void visit_module(const Graph *graph, const Node *node, uint8_t reads, Writes *writes)
{
        const Module *module = graph_module(graph, node->target);
        const ResolvedModule *resolved = module == NULL ? NULL : module->resolved;
        bool has_state = resolved != NULL && resolved->entry->n_state > 0;
        // running statistics
        bool counts = resolved != NULL && module->training && resolved->entry->n_state > 2;
        writes->found |= counts || (resolved != NULL && (reads & SHARES) != 0 && module_in_place(module));
        // A layer with weights computes; one without may hand its input on.
        writes->flags[node->index] = resolved == NULL ? SHARES | CONTAINER : has_state ? 0 : reads;
}

static void visit_call(const Node *node, uint8_t reads, Writes *writes)
{
        const Target *target = node->resolved;
        if (target == NULL || target_writes(node, target) != 0) {
                writes->found |= (reads & SHARES) != 0;
                writes->flags[node->index] = reads;
                return;
        }
        bool fresh = is_elementwise(target) || returns_fresh(target->overloads[0]->schema.name) ||
                     is_python_operator(target, reads);
        if (!fresh && (reads & SHARES) != 0)
                writes->flags[node->index] = gives_tensor(target) ? SHARES : SHARES | CONTAINER;
}

// ---- effects of one node, for those who run a part of a graph ----
// An operator whose results are
// computed, or no tensors at all: nothing in its schema says that they alias an argument.
static bool computes_fresh(const Overload *overload)
{
        const char *arrow = strstr(overload->schema.text, "->");
        bool computed = overload->op->infer != NULL && overload->op->expand == NULL;
        return computed && arrow != NULL && strstr(arrow, "Tensor(") == NULL &&
               (overload->op->run != NULL || strstr(arrow, "Tensor") == NULL);
}

static bool gives_numbers(const Schema *schema)
{
        static const char *const names[] = { "int_", "float_", "len", "index", "floor", "ceil",  "trunc",
                                             "sqrt", "prod",   "exp", "log",   "isnan", "isinf", "_assert" };
        for (size_t i = 0; i < ARRAY_LENGTH(names) && strcmp(schema->ns, "py") == 0; i++) {
                if (strcmp(names[i], schema->name) == 0)
                        return true;
        }
        return false;
}

static uint32_t target_effects(const Node *node, const Target *target)
{
        uint32_t effects = target_writes(node, target);
        bool fresh = is_elementwise(target) || is_python_operator(target, CONTAINER);
        for (uint32_t i = 0; i < target->n_overloads && !fresh; i++) {
                const Overload *overload = target->overloads[i];
                if ((overload->op->flags & OP_RANDOM) != 0)
                        effects |= NODE_DRAWS;
                if (computes_fresh(overload) || gives_numbers(&overload->schema))
                        continue;
                effects |= NODE_SHARES;
                if (overload->op->expand != NULL && !is_python_operator(target, 0))
                        effects |= NODE_DRAWS;
        }
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const OpDef *op = target->overloads[i]->op;
                effects |= (op->flags & OP_RANDOM) != 0 ? NODE_DRAWS : 0;
                bool view_twin = target->overloads[i]->inplace && op->run == NULL && op->expand == NULL;
                effects |= view_twin && strcmp(target->overloads[i]->schema.name, "detach_") != 0 ? NODE_MOVES
                                                                                                  : 0;
        }
        return (effects & (NODE_WRITES | NODE_WRITES_FIRST)) != 0 ? effects | NODE_SHARES : effects;
}

enum { EFFECTS_MAX_NODES = 4000, NODE_EVERYTHING = NODE_WRITES | NODE_SHARES | NODE_DRAWS | NODE_MOVES };

typedef struct Effects {
        const Graph *graph; // whose nodes are looked at
        uint32_t found;
        int depth;
        // looked at so far: child graphs that call each other again and again are not followed for
        // ever
        uint32_t n_nodes;
} Effects;

static void add_node_effects(Effects *effects, const Node *node);

static void add_graph_effects(Effects *effects, const Graph *child)
{
        const Graph *outer = effects->graph;
        effects->graph = child;
        effects->depth++;
        for (uint32_t i = 0; i < child->n_nodes; i++) {
                if (effects->depth > limits.max_child_graphs || effects->n_nodes++ > EFFECTS_MAX_NODES) {
                        effects->found = NODE_EVERYTHING;
                        break;
                }
                add_node_effects(effects, child->nodes[i]); // depth: limits.max_child_graphs
        }
        if ((effects->found & NODE_WRITES_FIRST) != 0) // of the child's node, not of ours
                effects->found |= NODE_WRITES;
        effects->depth--;
        effects->graph = outer;
}

static Status add_child_effects(void *context, const Value *leaf)
{
        Effects *effects = context;
        const Graph *child = leaf->kind == VALUE_GRAPH ? leaf->graph : NULL;
        if (leaf->kind == VALUE_NODE && leaf->node->op == OP_GET_ATTR) {
                const Module *module = graph_module(effects->graph, leaf->node->target);
                child = module == NULL ? NULL : module->graph;
        }
        if (child != NULL)
                add_graph_effects(effects, child);
        return STATUS_OK;
}

static void add_module_effects(Effects *effects, const Node *node)
{
        const Module *module = graph_module(effects->graph, node->target);
        const ResolvedModule *resolved = module == NULL ? NULL : module->resolved;
        if (module != NULL && module->graph != NULL) {
                add_graph_effects(effects, module->graph);
        } else if (resolved == NULL) {
                effects->found = NODE_EVERYTHING;
        } else {
                bool counts = module->training && resolved->entry->n_state > 2; // running statistics
                effects->found |= NODE_SHARES | (counts || module_in_place(module) ? NODE_WRITES : 0) |
                                  (module->training ? NODE_DRAWS : 0);
        }
}

static void add_node_effects(Effects *effects, const Node *node)
{
        effects->found |= node_is_call(node) ? 0 : NODE_SHARES;
        if (!node_is_call(node))
                return;
        (void)value_walk(node->args, add_child_effects, effects);
        (void)value_walk(node->kwargs, add_child_effects, effects);
        if (node->op == OP_CALL_MODULE) {
                add_module_effects(effects, node);
                return;
        }
        const Target *target = node->resolved;
        if (target == NULL)
                target = node->op == OP_CALL_METHOD ? target_method(node->target)
                                                    : target_function(node->target);
        effects->found |= target == NULL ? (uint32_t)NODE_EVERYTHING : target_effects(node, target);
}

uint32_t node_effects(const Graph *graph, const Node *node)
{
        Effects effects = { .graph = graph };
        add_node_effects(&effects, node);
        return effects.found;
}

static Status visit_node(const Graph *graph, const Node *node, Writes *writes)
{
        uint8_t reads;
        TRY(read_flags(node, writes->flags, &reads));
        switch (node->op) {
        case OP_PLACEHOLDER:
                // of a child graph: its operands may be state of the graph around it
                writes->flags[node->index] = SHARES | CONTAINER;
                break;
        case OP_GET_ATTR:
                writes->flags[node->index] = SHARES;
                break;
        case OP_CALL_MODULE:
                visit_module(graph, node, reads, writes);
                break;
        case OP_CALL_FUNCTION:
        case OP_CALL_METHOD:
                visit_call(node, reads, writes);
                break;
        default:
                break;
        }
        return STATUS_OK;
}

// Placeholders of the outermost graph: state, or the caller's own values.
static void start_inputs(const Graph *graph, Writes *writes)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                writes->flags[i] = graph->nodes[i]->op == OP_PLACEHOLDER ? SHARES | CONTAINER : 0;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->placeholder != NULL)
                        writes->flags[input->placeholder->index] = input->kind == INPUT_STATE ? SHARES : 0;
        }
}

static Status graph_writes(const Graph *graph, int depth, bool *out_found)
{
        Writes writes = { .flags = new_array(graph->n_nodes, 1) };
        if (writes.flags == NULL)
                return fail_memory();
        Status status = STATUS_OK;
        start_inputs(graph, &writes);
        for (uint32_t i = 0; i < graph->n_nodes && status == STATUS_OK && !writes.found; i++) {
                bool user_input = graph->nodes[i]->op == OP_PLACEHOLDER && depth == 0;
                if (!user_input)
                        status = visit_node(graph, graph->nodes[i], &writes);
        }
        free(writes.flags);
        *out_found = writes.found;
        for (uint32_t i = 0;
             i < graph->n_modules && status == STATUS_OK && !*out_found && depth < limits.max_child_graphs;
             i++) {
                if (graph->modules[i]->graph != NULL)
                        // depth: limits.max_child_graphs
                        status = graph_writes(graph->modules[i]->graph, depth + 1, out_found);
        }
        return status;
}

static void mark_all(Graph *graph, int depth)
{
        for (uint32_t i = 0; i < graph->n_state; i++)
                graph->state[i].written = true;
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++) {
                if (graph->modules[i]->graph != NULL)
                        mark_all(graph->modules[i]->graph, depth + 1); // depth: limits.max_child_graphs
        }
}

Status mark_written(Graph *graph)
{
        bool found = false;
        TRY(graph_writes(graph, 0, &found));
        if (found)
                mark_all(graph, 0);
        return STATUS_OK;
}
