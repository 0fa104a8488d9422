// SPDX-License-Identifier: Apache-2.0
// graph.c: building and freeing. Names, paths, nodes and modules live in the graph's arena; what is
// counted elsewhere (values, tensors, child graphs) is dropped one by one when the last reference
// to the graph goes. Child graphs are nested at most limits.max_child_graphs deep, so freeing may
// recurse.
#include "core/graph/graph.h"

#include <string.h>
#include "core/base/limits.h"

enum { MAX_PATH_ATOMS = 64, MAX_PATH_BYTES = 4096 };

const char *const output_kind_names[] = { "user", "state", "input" };
const char *const tree_kind_names[] = { "*", "tuple", "list", "dict", "namedtuple" };
const char *const opcode_names[] = { "placeholder", "get_attr",    "call_function",
                                     "call_method", "call_module", "output" };

Status graph_new(GraphFormat format, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = calloc(1, sizeof(*graph));
        if (graph == NULL)
                return fail_memory();
        refcount_init(&graph->ref);
        arena_init(&graph->arena, 0);
        graph->format = format;
        graph->class_name = "GraphModule";
        Module *root;
        TRY(graph_add_module(graph, "", NULL, &root));
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

Graph *graph_ref(Graph *graph)
{
        refcount_get(&graph->ref);
        return graph;
}

void module_clear(Module *module)
{
        for (uint32_t i = 0; i < module->n_config; i++)
                value_unref(module->config[i].value);
        free(module->config);
        graph_unref(module->graph);
        *module = (Module){ .path = module->path };
}

Graph *graph_unref(Graph *graph)
{
        if (graph == NULL || !refcount_put(&graph->ref))
                return NULL;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                value_unref(graph->nodes[i]->args);
                value_unref(graph->nodes[i]->kwargs);
        }
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                value_unref(graph->signature.inputs[i].literal);
        for (uint32_t i = 0; i < graph->n_modules; i++)
                module_clear(graph->modules[i]);
        for (uint32_t i = 0; i < graph->n_state; i++)
                tensor_unref(graph->state[i].tensor);
        free(graph->nodes);
        free(graph->modules);
        free(graph->state);
        string_map_deinit(&graph->module_by_path);
        string_map_deinit(&graph->node_by_name);
        string_map_deinit(&graph->state_by_path);
        string_map_deinit(&graph->traces);
        string_map_deinit(&graph->calls);
        namespace_deinit(&graph->names);
        if (graph->free_labels != NULL)
                graph->free_labels(atomic_load(&graph->labels));
        free(atomic_load(&graph->state_numbers));
        if (graph->free_guards != NULL)
                graph->free_guards(atomic_load(&graph->guards));
        arena_deinit(&graph->arena);
        free(graph);
        return NULL;
}

static Status copy_into(Graph *graph, const char *text, const char **out_copy)
{
        *out_copy = arena_text(&graph->arena, text, strlen(text));
        return *out_copy == NULL ? fail_memory() : STATUS_OK;
}

// ---- nodes ----

static Status name_node(Graph *graph, Opcode op, const char *name, const char *target, const char **out_name)
{
        if (name == NULL) {
                const char *wish;
                TRY(graph_name_of_target(graph, op, target, &wish));
                return graph_fresh_name(graph, wish, out_name);
        }
        if (!name_is_plain(name)) {
                return failure_at_node(fail(STATUS_LINT,
                                            "node name \"%.200s\" is not a Python identifier; use letters, "
                                            "digits and underscores, or leave \"name\" out",
                                            name),
                                       name);
        }
        if (graph_node(graph, name) != NULL)
                return failure_at_node(fail(STATUS_LINT, "Node redefined name %.200s!", name), name);
        TRY(copy_into(graph, name, out_name));
        return namespace_claim(&graph->names, &graph->arena, *out_name);
}

// An empty container where the caller gave none.
static Status fill_arguments(Value *args, Value *kwargs)
{
        if (args->kind == VALUE_NONE) {
                Seq *empty;
                TRY(seq_new(0, &empty));
                *args = value_seq_take(VALUE_TUPLE, empty);
        }
        if (kwargs->kind == VALUE_NONE) {
                Dict *empty;
                TRY(dict_new(0, &empty));
                *kwargs = (Value){ .kind = VALUE_DICT, .dict = empty };
        }
        if (args->kind != VALUE_TUPLE || kwargs->kind != VALUE_DICT)
                return fail(STATUS_INTERNAL, "a node's args must be a tuple and its kwargs a dict");
        return STATUS_OK;
}

Status graph_add_node(Graph *graph, const NodeSpec *take_spec, Node **out_node)
{
        _cleanup_(value_clear) Value args = take_spec->args;
        _cleanup_(value_clear) Value kwargs = take_spec->kwargs;
        const char *target = take_spec->target;
        if (graph->n_nodes >= limits.max_nodes)
                return fail(STATUS_TOO_LARGE, "the graph has more than %lld nodes (max_nodes in GET /v1)",
                            (long long)limits.max_nodes);
        if (take_spec->op == OP_CALL_FUNCTION) {
                target = graph_normalise_target(graph, target);
                if (target == NULL)
                        return fail_memory();
        }
        Node *node = arena_alloc(&graph->arena, sizeof(*node));
        if (node == NULL)
                return fail_memory();
        node->op = take_spec->op;
        node->index = graph->n_nodes;
        node->graph = graph;
        TRY(name_node(graph, take_spec->op, take_spec->name, target, &node->name));
        TRY(copy_into(graph, target, &node->target));
        TRY(fill_arguments(&args, &kwargs));
        TRY(array_reserve(&graph->nodes, &graph->nodes_capacity, graph->n_nodes + 1, sizeof(Node *)));
        TRY(string_map_set(&graph->node_by_name, node->name, node, NULL));
        node->args = args;
        node->kwargs = kwargs;
        args = kwargs = value_none();
        graph->nodes[graph->n_nodes++] = node;
        if (take_spec->op == OP_OUTPUT)
                graph->output = node;
        *out_node = node;
        return STATUS_OK;
}

Node *graph_node(const Graph *graph, const char *name)
{
        return string_map_get(&graph->node_by_name, name);
}

// ---- modules and state ----

static Status check_path(const char *what, const char *path)
{
        size_t n = strnlen(path, MAX_PATH_BYTES + 1);
        if (n > MAX_PATH_BYTES)
                return fail(STATUS_TOO_LARGE, "a %s path is longer than %d bytes", what, MAX_PATH_BYTES);
        int atoms = 1;
        for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
                if (dot == path || dot[1] == '.' || dot[1] == '\0')
                        return fail(STATUS_LINT, "%s path \"%.200s\" has an empty part", what, path);
                if (++atoms > MAX_PATH_ATOMS)
                        return fail(STATUS_TOO_LARGE, "%s path \"%.200s\" has more than %d parts", what, path,
                                    MAX_PATH_ATOMS);
        }
        return STATUS_OK;
}

// The module at `path`, made when it is not there.
static Status ensure_module(Graph *graph, const char *path, size_t n, Module **out_module)
{
        Module *module = string_map_get_n(&graph->module_by_path, path, n);
        if (module == NULL) {
                module = arena_alloc(&graph->arena, sizeof(*module));
                char *copy = arena_text(&graph->arena, path, n);
                if (module == NULL || copy == NULL)
                        return fail_memory();
                if (graph_state(graph, copy) != NULL)
                        return fail(STATUS_LINT, "\"%.200s\" is both a module and a tensor of the state",
                                    copy);
                module->path = copy;
                TRY(array_reserve(&graph->modules, &graph->modules_capacity, graph->n_modules + 1,
                                  sizeof(Module *)));
                TRY(string_map_set(&graph->module_by_path, copy, module, NULL));
                graph->modules[graph->n_modules++] = module;
        }
        *out_module = module;
        return STATUS_OK;
}

static Status ensure_parents(Graph *graph, const char *path)
{
        Module *parent;
        for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
                TRY(ensure_module(graph, path, (size_t)(dot - path), &parent));
        return STATUS_OK;
}

Status graph_add_module(Graph *graph, const char *path, const char *type, Module **out_module)
{
        TRY(check_path("module", path));
        TRY(ensure_parents(graph, path));
        Module *module;
        TRY(ensure_module(graph, path, strlen(path), &module));
        if (type != NULL) {
                if (module->type != NULL)
                        return fail(STATUS_LINT, "module \"%.200s\" is defined twice", path);
                module->type = graph_normalise_module_type(graph, type);
                if (module->type == NULL)
                        return fail_memory();
        }
        *out_module = module;
        return STATUS_OK;
}

Status module_add_config(Module *module, const char *borrow_key, Value take_value)
{
        Status status = array_reserve(&module->config, &module->config_capacity, module->n_config + 1,
                                      sizeof(ModuleConfig));
        if (status != STATUS_OK) {
                value_unref(take_value);
                return status;
        }
        module->config[module->n_config++] = (ModuleConfig){ .key = borrow_key, .value = take_value };
        return STATUS_OK;
}

Status graph_add_state(Graph *graph, const char *path, Tensor *take_tensor, State **out_state)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = take_tensor;
        TRY(check_path("state", path));
        if (graph->n_state >= limits.max_tensors)
                return fail(STATUS_TOO_LARGE, "the state has more than %lld tensors (max_tensors in GET /v1)",
                            (long long)limits.max_tensors);
        if (path[0] == '\0')
                return fail(STATUS_LINT, "a tensor of the state has an empty path");
        if (graph_state(graph, path) != NULL)
                return fail(STATUS_LINT, "the state has \"%.200s\" twice", path);
        if (graph_module(graph, path) != NULL)
                return fail(STATUS_LINT, "\"%.200s\" is both a module and a tensor of the state", path);
        TRY(ensure_parents(graph, path));
        const char *copy;
        TRY(copy_into(graph, path, &copy));
        TRY(array_reserve(&graph->state, &graph->state_capacity, graph->n_state + 1, sizeof(State)));
        TRY(string_map_set(&graph->state_by_path, copy, (void *)(uintptr_t)(graph->n_state + 1), NULL));
        State *state = &graph->state[graph->n_state++];
        *state = (State){ .path = copy, .tensor = take_ptr(tensor), .persistent = true };
        *out_state = state;
        return STATUS_OK;
}

bool state_looks_like_parameter(const char *path, Dtype dtype)
{
        const char *dot = strrchr(path, '.'), *name = dot == NULL ? path : dot + 1;
        return dtype_info[dtype].kind == DTYPE_KIND_FLOAT && strncmp(name, "running_", 8) != 0 &&
               strncmp(name, "_tensor_constant", 16) != 0;
}

Module *graph_module(const Graph *graph, const char *path)
{
        return string_map_get(&graph->module_by_path, path);
}

State *graph_state(const Graph *graph, const char *path)
{
        uintptr_t stored = (uintptr_t)string_map_get(&graph->state_by_path, path);
        return stored == 0 ? NULL : &graph->state[stored - 1];
}

// ---- the state of a graph and of its child graphs ----

typedef struct StateWalk {
        Arena *names;
        Status (*visit)(void *context, const char *path, const State *state);
        void *context;
} StateWalk;

static const char *full_path(const StateWalk *walk, const char *prefix, const char *path)
{
        return prefix[0] == '\0' ? path : arena_format(walk->names, "%s.%s", prefix, path);
}

// Recursion: graphs are nested at most limits.max_child_graphs deep.
static Status walk_state(const StateWalk *walk, const char *prefix, const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_state; i++) {
                const char *path = full_path(walk, prefix, graph->state[i].path);
                if (path == NULL)
                        return fail_memory();
                TRY(walk->visit(walk->context, path, &graph->state[i]));
        }
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                const Module *module = graph->modules[i];
                if (module->graph == NULL)
                        continue;
                const char *path = full_path(walk, prefix, module->path);
                if (path == NULL)
                        return fail_memory();
                TRY(walk_state(walk, path, module->graph));
        }
        return STATUS_OK;
}

Status graph_each_state(const Graph *graph, Arena *names,
                        Status (*visit)(void *context, const char *path, const State *state), void *context)
{
        return walk_state(&(StateWalk){ names, visit, context }, "", graph);
}

// Recursion: graphs are nested at most limits.max_child_graphs deep.
bool graph_writes_state(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_state; i++) {
                if (graph->state[i].written)
                        return true;
        }
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL && graph_writes_state(graph->modules[i]->graph))
                        return true;
        }
        return false;
}

// ---- taking away ----

static bool is_below(const char *path, const char *parent, size_t n)
{
        return strncmp(path, parent, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

// Drops the entries at and below `path`; the map holds places in the array, so it is made anew.
static Status remove_state(Graph *graph, const char *path, size_t n)
{
        StringMap by_path = { 0 };
        uint32_t kept = 0;
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < graph->n_state; i++) {
                State state = graph->state[i];
                if (is_below(state.path, path, n)) {
                        tensor_unref(state.tensor);
                        continue;
                }
                graph->state[kept++] = state;
                if (status == STATUS_OK)
                        status = string_map_set(&by_path, state.path, (void *)(uintptr_t)kept, NULL);
        }
        graph->n_state = kept;
        string_map_deinit(&graph->state_by_path);
        graph->state_by_path = by_path;
        return status;
}

Status graph_remove_state(Graph *graph, const char *path)
{
        if (graph_state(graph, path) == NULL)
                return fail(STATUS_LINT, "the state has no \"%.200s\"", path);
        return remove_state(graph, path, strlen(path));
}

Status graph_remove_module(Graph *graph, const char *path)
{
        if (path[0] == '\0' || graph_module(graph, path) == NULL)
                return fail(STATUS_LINT, "the graph has no module \"%.200s\"", path);
        size_t n = strlen(path);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                Module *module = graph->modules[i];
                if (is_below(module->path, path, n)) {
                        string_map_remove(&graph->module_by_path, module->path);
                        module_clear(module);
                } else {
                        graph->modules[kept++] = module;
                }
        }
        graph->n_modules = kept;
        return remove_state(graph, path, n);
}

// ---- inputs of a node ----

static Status visit_value(const Value *value, Status (*visit)(void *context, Node *input), void *context)
{
        switch (value->kind) {
        case VALUE_NODE:
                return visit(context, value->node);
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
                for (uint32_t i = 0; i < value->seq->n; i++)
                        TRY(visit_value(&value->seq->items[i], visit, context));
                return STATUS_OK;
        case VALUE_DICT:
                for (uint32_t i = 0; i < value->dict->n; i++)
                        TRY(visit_value(&value->dict->items[i].value, visit, context));
                return STATUS_OK;
        default:
                return STATUS_OK;
        }
}

Status node_visit_inputs(const Node *node, Status (*visit)(void *context, Node *input), void *context)
{
        TRY(visit_value(&node->args, visit, context));
        return visit_value(&node->kwargs, visit, context);
}
