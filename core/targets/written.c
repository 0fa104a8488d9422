// SPDX-License-Identifier: Apache-2.0
// written.c: which state a graph may write. One pass in node order carries two bits per node: "may
// share bytes with state" and "may be a container of such values". Operators that claim fresh
// results clear them (op_alias), all others pass them on. From each write to a value that shares,
// a walk back over such values finds the entries that are marked; runs see these through
// copy-on-write shells. Writes within child graphs mark the whole state. An unneeded mark costs
// time, a missing one would let programs take what changes for constant: unknown means yes.
#include "core/targets/resolve.h"

#include <string.h>
#include "core/base/limits.h"

enum { SHARES = 1, CONTAINER = 2 };

typedef struct Writes {
        uint8_t *flags;     // per node of the graph
        bool found;         // a node writes to a value that shares
        const Node **nodes; // such values, to be walked back from; each once
        bool *seen;         // per node: it is one of them
        uint32_t n;
        const char *module; // state below this path is written; NULL: none
        bool all;           // more than that
} Writes;

// Whether no overload's result shares bytes with its arguments. `in_containers`: tensors of state
// may stand in lists that are arguments; Python's + and * hand the items of those on.
static bool returns_fresh(const Target *target, bool in_containers)
{
        bool fresh = target->n_overloads > 0;
        for (uint32_t i = 0; i < target->n_overloads && fresh; i++) {
                uint32_t traits = target->overloads[i]->op->traits;
                bool items = (traits & TRAIT_KEEPS_ITEMS) != 0 && (traits & TRAIT_FRESH) != 0;
                fresh = op_alias(target->overloads[i]) == ALIAS_FRESH || (items && !in_containers);
        }
        return fresh;
}

// Whether the result is always a single tensor.
static bool gives_tensor(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Schema *schema = &target->overloads[i]->schema;
                if (schema->returns != RETURN_ONE || schema->return_types[0].type != ARG_TENSOR)
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

static bool is_container(Value value)
{
        return value.kind == VALUE_LIST || value.kind == VALUE_TUPLE || value.kind == VALUE_DICT;
}

// An argument may be given by name, too, where Python itself would refuse that.
static bool takes_container(const Node *node)
{
        for (uint32_t i = 0; i < node->args.seq->n; i++) {
                if (is_container(node->args.seq->items[i]))
                        return true;
        }
        for (uint32_t i = 0; node->kwargs.kind == VALUE_DICT && i < node->kwargs.dict->n; i++) {
                if (is_container(node->kwargs.dict->items[i].value))
                        return true;
        }
        return false;
}

static Status read_flags(const Node *node, const uint8_t *flags, uint8_t *out)
{
        Reads reads = { .flags = flags };
        TRY(node_visit_inputs(node, note_input, &reads));
        if ((reads.found & SHARES) != 0 && takes_container(node))
                reads.found |= CONTAINER;
        *out = reads.found;
        return STATUS_OK;
}

static bool has_argument(const Schema *schema, const char *name)
{
        for (uint32_t i = 0; i < schema->n_args; i++)
                if (strcmp(schema->args[i].name, name) == 0)
                        return true;
        return false;
}

// What the node gives for argument `name`; NULL: nothing.
static const Value *given_for(const Node *node, const Schema *schema, const char *name)
{
        for (uint32_t i = 0; i < schema->n_args && i < node->args.seq->n; i++)
                if (strcmp(schema->args[i].name, name) == 0)
                        return &node->args.seq->items[i];
        return node->kwargs.kind == VALUE_DICT ? dict_get(node->kwargs.dict, name) : NULL;
}

// Whether argument `name` exists and is not a plain False (`if_absent` when it is not given).
static bool asks(const Node *node, const Schema *schema, const char *name, bool if_absent)
{
        if (!has_argument(schema, name))
                return false;
        const Value *given = given_for(node, schema, name);
        return given == NULL ? if_absent : !(given->kind == VALUE_BOOL && !given->b);
}

// NODE_WRITES, NODE_WRITES_FIRST or 0.
static uint32_t overload_writes(const Node *node, const Overload *overload)
{
        const Schema *schema = &overload->schema;
        for (uint32_t k = 1; k < schema->n_args; k++) {
                if (schema->args[k].is_written)
                        return NODE_WRITES;
        }
        if ((overload->op->traits & TRAIT_STATISTICS) != 0 &&
            (asks(node, schema, "training", false) || asks(node, schema, "use_input_stats", true)))
                return NODE_WRITES;
        bool first = overload->inplace || (schema->n_args > 0 && schema->args[SELF].is_written) ||
                     asks(node, schema, "inplace", false);
        return first ? NODE_WRITES_FIRST : 0;
}

static uint32_t target_writes(const Node *node, const Target *target)
{
        uint32_t found = 0;
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                uint32_t writes = overload_writes(node, target->overloads[i]);
                if (writes == NODE_WRITES)
                        return NODE_WRITES;
                found |= writes;
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

// ---- what is written ----
static void note_value(Writes *writes, const Node *node)
{
        if (writes->seen[node->index])
                return;
        writes->seen[node->index] = true;
        writes->nodes[writes->n++] = node;
}

static Status note_shared_input(void *context, Node *input)
{
        Writes *writes = context;
        if ((writes->flags[input->index] & SHARES) != 0)
                note_value(writes, input);
        return STATUS_OK;
}

// A call that writes its first argument only leaves the others as they are.
static void note_write(Writes *writes, const Node *node)
{
        const Target *target = node->resolved;
        const Value *first = node->args.seq->n == 0 ? NULL : &node->args.seq->items[0];
        bool only_first = target != NULL && target_writes(node, target) == NODE_WRITES_FIRST &&
                          first != NULL && first->kind == VALUE_NODE &&
                          (writes->flags[first->node->index] & SHARES) != 0;
        if (only_first)
                note_value(writes, first->node);
        else
                (void)node_visit_inputs(node, note_shared_input, writes);
}

static void visit_module(const Graph *graph, const Node *node, uint8_t reads, Writes *writes)
{
        const Module *module = graph_module(graph, node->target);
        const ResolvedModule *resolved = module == NULL ? NULL : module->resolved;
        bool has_state = resolved != NULL && resolved->n_state > 0;
        bool counts = resolved != NULL && module->training && resolved->entry->class->updates_state;
        bool in_place = resolved != NULL && (reads & SHARES) != 0 && module_in_place(module);
        writes->found |= counts || in_place;
        writes->all |= counts && writes->module != NULL && strcmp(writes->module, node->target) != 0;
        if (counts)
                writes->module = node->target;
        if (in_place)
                note_value(writes, node);
        // A layer with weights computes a new tensor; one without may return its input.
        writes->flags[node->index] = resolved == NULL ? SHARES | CONTAINER : has_state ? 0 : reads;
}

static void visit_call(const Node *node, uint8_t reads, Writes *writes)
{
        const Target *target = node->resolved;
        if (target == NULL || target_writes(node, target) != 0) {
                writes->found |= (reads & SHARES) != 0;
                writes->flags[node->index] = reads;
                if ((reads & SHARES) != 0)
                        note_write(writes, node);
                return;
        }
        if ((reads & SHARES) != 0 && !returns_fresh(target, (reads & CONTAINER) != 0))
                writes->flags[node->index] = gives_tensor(target) ? SHARES : SHARES | CONTAINER;
}

// ---- effects of one node, for callers that run a part of a graph ----
// An expansion may draw random numbers, unless its row says that it does not.
static bool may_draw(const OpDef *op)
{
        return (op->flags & OP_RANDOM) != 0 ||
               (op->expand != NULL && (op->traits & TRAIT_DRAWS_NOTHING) == 0);
}

// Whether the node's dropout_p is anything but a constant 0.
static bool drops(const Node *node, const Overload *overload)
{
        const Value *p = given_for(node, &overload->schema, "dropout_p");
        return p != NULL && !(p->kind == VALUE_FLOAT && p->f == 0) && !(p->kind == VALUE_INT && p->i == 0);
}

// unsqueeze_ and the like: in-place twins of pure view rows.
static bool moves(const Overload *overload)
{
        const OpDef *op = overload->op;
        return overload->inplace && op->run == NULL && op->expand == NULL &&
               (op->traits & TRAIT_SAME_GEOMETRY) == 0;
}

static bool asserts(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Overload *overload = target->overloads[i];
                if ((overload->op->flags & OP_EFFECT) != 0 ||
                    strncmp(overload->schema.name, "_assert", 7) == 0)
                        return true;
        }
        return false;
}

static uint32_t target_effects(const Node *node, const Target *target)
{
        uint32_t effects = target_writes(node, target);
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const OpDef *op = target->overloads[i]->op;
                bool random = (op->flags & OP_DROPS) != 0 ? drops(node, target->overloads[i]) : may_draw(op);
                effects |= random ? NODE_DRAWS : 0;
                effects |= moves(target->overloads[i]) ? NODE_MOVES : 0;
        }
        effects |= target_is_internal(target) && asserts(target) ? NODE_HALTS : 0;
        bool shares = (effects & (NODE_WRITES | NODE_WRITES_FIRST)) != 0 || !returns_fresh(target, true);
        return shares ? effects | NODE_SHARES : effects;
}

enum { EFFECTS_MAX_NODES = 4000, NODE_EVERYTHING = NODE_WRITES | NODE_SHARES | NODE_DRAWS | NODE_MOVES };

typedef struct Effects {
        const Graph *graph; // whose nodes are looked at
        uint32_t found;
        int depth;
        // nodes visited so far; bounds the walk when child graphs call each other repeatedly
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

// Also in eval mode.
static bool draws_always(const Module *module)
{
        return module->type != NULL && strstr(module->type, "FractionalMaxPool") != NULL;
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
                bool counts = module->training && resolved->entry->class->updates_state;
                effects->found |= NODE_SHARES | (counts || module_in_place(module) ? NODE_WRITES : 0) |
                                  (module->training || draws_always(module) ? NODE_DRAWS : 0);
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

// Composites not known to draw nothing have NODE_DRAWS; names decide here.
static bool name_draws(const char *name)
{
        static const char *const parts[] = {
                "dropout", "rrelu", "rand", "attention", "fractional", "gumbel"
        };
        for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
                if (strstr(name, parts[i]) != NULL)
                        return true;
        }
        return false;
}

static bool target_draws(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Overload *overload = target->overloads[i];
                if ((overload->op->flags & OP_RANDOM) != 0 || name_draws(overload->schema.name))
                        return true;
        }
        return false;
}

static bool module_draws(const Module *module)
{
        Meaning meaning;
        if (draws_always(module))
                return true;
        if (!module->training || module->type == NULL)
                return false;
        module_meaning(module->type, &meaning);
        for (uint32_t i = 0; i < meaning.n; i++) {
                if ((meaning.items[i]->op->flags & OP_RANDOM) != 0 ||
                    name_draws(meaning.items[i]->schema.name))
                        return true;
        }
        return strstr(module->type, "RReLU") != NULL;
}

bool node_is_impure(const Graph *graph, const Node *node)
{
        if (node->op == OP_PLACEHOLDER || node->op == OP_OUTPUT)
                return true;
        if (node->op == OP_GET_ATTR)
                return false;
        uint32_t effects = node_effects(graph, node);
        if ((effects & (NODE_WRITES | NODE_WRITES_FIRST)) != 0)
                return true;
        if (node->op == OP_CALL_MODULE) {
                const Module *module = graph_module(graph, node->target);
                return module->graph != NULL ? (effects & NODE_DRAWS) != 0 : module_draws(module);
        }
        const Target *target =
                node->op == OP_CALL_FUNCTION ? target_function(node->target) : target_method(node->target);
        return target == NULL || asserts(target) || target_draws(target);
}

static Status visit_node(const Graph *graph, const Node *node, Writes *writes)
{
        uint8_t reads;
        TRY(read_flags(node, writes->flags, &reads));
        switch (node->op) {
        case OP_PLACEHOLDER:
                // of a child graph: its arguments may be state of the graph around it
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

static bool is_below(const char *path, const char *module)
{
        size_t n = strlen(module);
        return strncmp(path, module, n) == 0 && path[n] == '.';
}

static const char *path_of_input(const Graph *graph, const Node *placeholder)
{
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->placeholder == placeholder)
                        return input->kind == INPUT_STATE ? input->path : NULL;
        }
        return NULL;
}

// Walks back from what is written to where it comes from, and marks these entries.
static void mark_sources(const Graph *graph, Writes *writes)
{
        for (uint32_t at = 0; at < writes->n && !writes->all; at++) {
                const Node *node = writes->nodes[at];
                const char *path = node->op == OP_GET_ATTR      ? node->target
                                   : node->op == OP_PLACEHOLDER ? path_of_input(graph, node)
                                                                : NULL;
                State *state = path == NULL ? NULL : (State *)(uintptr_t)graph_state(graph, path);
                if (state != NULL)
                        state->written = true;
                else if (!node_is_call(node)) // a child graph, or an argument that nobody describes
                        writes->all = true;
                else
                        (void)node_visit_inputs(node, note_shared_input, writes);
        }
        for (uint32_t i = 0; i < graph->n_state && writes->module != NULL; i++)
                graph->state[i].written |= is_below(graph->state[i].path, writes->module);
}

static Status look_at_nodes(const Graph *graph, int depth, Writes *writes)
{
        start_inputs(graph, writes);
        for (uint32_t i = 0; i < graph->n_nodes && !(depth > 0 && writes->found); i++) {
                bool user_input = graph->nodes[i]->op == OP_PLACEHOLDER && depth == 0;
                if (!user_input)
                        TRY(visit_node(graph, graph->nodes[i], writes));
        }
        if (depth == 0)
                mark_sources(graph, writes);
        return STATUS_OK;
}

// *out_all: some child graph writes, or it is not known what this one writes.
static Status graph_writes(const Graph *graph, int depth, bool *out_all)
{
        Writes writes = { .flags = new_array(graph->n_nodes, 1),
                          .nodes = new_array(graph->n_nodes, sizeof(*writes.nodes)),
                          .seen = new_array(graph->n_nodes, sizeof(*writes.seen)) };
        Status status = writes.flags == NULL || writes.nodes == NULL || writes.seen == NULL
                                ? fail_memory()
                                : look_at_nodes(graph, depth, &writes);
        free(writes.flags);
        free(writes.nodes);
        free(writes.seen);
        *out_all = writes.all || (writes.found && depth > 0);
        for (uint32_t i = 0;
             i < graph->n_modules && status == STATUS_OK && !*out_all && depth < limits.max_child_graphs;
             i++) {
                if (graph->modules[i]->graph != NULL)
                        // depth: limits.max_child_graphs
                        status = graph_writes(graph->modules[i]->graph, depth + 1, out_all);
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

// ---- entries on one storage ----
static int by_address(const void *a, const void *b)
{
        uintptr_t left = (uintptr_t) * (Storage *const *)a, right = (uintptr_t) * (Storage *const *)b;
        return (left > right) - (left < right);
}

static void mark_tied(Graph *graph, Storage *const *written, size_t n, int depth)
{
        for (uint32_t i = 0; i < graph->n_state; i++) {
                State *state = &graph->state[i];
                state->written = state->written || bsearch(&state->tensor->storage, written, n,
                                                           sizeof(*written), by_address) != NULL;
        }
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++) {
                if (graph->modules[i]->graph != NULL) // depth: limits.max_child_graphs
                        mark_tied(graph->modules[i]->graph, written, n, depth + 1);
        }
}

Status mark_written(Graph *graph)
{
        bool all = false;
        size_t n = 0;
        TRY(graph_writes(graph, 0, &all));
        if (all) {
                mark_all(graph, 0);
                return STATUS_OK;
        }
        _cleanup_(freep) Storage **written = new_array(graph->n_state, sizeof(*written));
        if (written == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_state; i++)
                if (graph->state[i].written)
                        written[n++] = graph->state[i].tensor->storage;
        qsort(written, n, sizeof(*written), by_address);
        if (n > 0)
                mark_tied(graph, written, n, 0);
        return STATUS_OK;
}
