// SPDX-License-Identifier: Apache-2.0
// modules.c: the tree of modules of a graph, and where one node belongs in it.
//
// The paths are those of the document's modules, of the state, and of the nodes' stacks. So
// exports, which have no modules of their own, show the tree that was exported.
#include <string.h>
#include "api/routes/answer.h"
#include "core/base/limits.h"
#include "core/graph/print.h"
#include "core/graph/region.h"

// A path with more is not taken apart: its module stands below the root.
enum { MAX_ATOMS = 64, MAX_PATH = 4096, NONE = -1 };

typedef struct Branch {
        const char *path, *type;
        const Module *module; // NULL: known by stacks only
        int parent, first_child, last_child, next;
        int64_t n_parameters;
        const Tensor *counted; // the last tensor that n_parameters includes
        int first_node, last_node;
} Branch;

typedef struct Branches {
        const Graph *graph;
        Arena arena;
        Branch *items;
        uint32_t n, capacity;
        StringMap by_path; // index + 1
        int *next_node;    // by node index: the next node of the same module
} Branches;

static void branches_deinit(Branches *tree)
{
        free(tree->items);
        free(tree->next_node);
        string_map_deinit(&tree->by_path);
        arena_deinit(&tree->arena);
}

// ---- the tree ----

static int find_branch(const Branches *tree, const char *path, size_t n)
{
        return (int)(uintptr_t)string_map_get_n(&tree->by_path, path, n) - 1;
}

static Status add_branch(Branches *tree, const char *path, size_t n, int parent, int *out_index)
{
        int index = (int)tree->n;
        const char *copy = arena_text(&tree->arena, path, n);
        if (copy == NULL)
                return fail_memory();
        TRY(array_reserve(&tree->items, &tree->capacity, tree->n + 1, sizeof(Branch)));
        TRY(string_map_set(&tree->by_path, copy, (void *)(uintptr_t)(index + 1), NULL));
        tree->items[tree->n++] = (Branch){ .path = copy,
                                           .parent = parent,
                                           .first_child = NONE,
                                           .last_child = NONE,
                                           .next = NONE,
                                           .first_node = NONE,
                                           .last_node = NONE };
        if (parent != NONE) {
                Branch *above = &tree->items[parent];
                if (above->last_child == NONE)
                        above->first_child = index;
                else
                        tree->items[above->last_child].next = index;
                above->last_child = index;
        }
        *out_index = index;
        return STATUS_OK;
}

static bool can_split(const char *path)
{
        int atoms = 1;
        for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
                if (++atoms > MAX_ATOMS)
                        return false;
        return strlen(path) <= MAX_PATH;
}

// The branch at `path`, made with those above it where it is not there.
static Status ensure(Branches *tree, const char *path, int *out_index)
{
        *out_index = find_branch(tree, path, strlen(path));
        if (*out_index != NONE)
                return STATUS_OK;
        int parent = 0;
        for (const char *dot = can_split(path) ? strchr(path, '.') : NULL; dot != NULL;
             dot = strchr(dot + 1, '.')) {
                size_t n = (size_t)(dot - path);
                int above = find_branch(tree, path, n);
                if (above == NONE)
                        TRY(add_branch(tree, path, n, parent, &above));
                parent = above;
        }
        return add_branch(tree, path, strlen(path), parent, out_index);
}

static Status add_modules(Branches *tree)
{
        for (uint32_t i = 0; i < tree->graph->n_modules; i++) {
                const Module *module = tree->graph->modules[i];
                int index;
                TRY(ensure(tree, module->path, &index));
                tree->items[index].module = module;
                tree->items[index].type = module->type;
        }
        return STATUS_OK;
}

static Status add_stack(Branches *tree, const StackEntry *innermost)
{
        for (const StackEntry *entry = innermost; entry != NULL; entry = entry->outer) {
                int index;
                TRY(ensure(tree, entry->path, &index));
                if (tree->items[index].type == NULL)
                        tree->items[index].type = entry->type;
        }
        return STATUS_OK;
}

// Calls without a module of their own belong to the root.
static Status add_nodes(Branches *tree)
{
        const StackEntry *before = NULL;
        tree->next_node = new_array(tree->graph->n_nodes, sizeof(int));
        if (tree->next_node == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < tree->graph->n_nodes; i++) {
                const Node *node = tree->graph->nodes[i];
                if (node->module_stack != before)
                        TRY(add_stack(tree, node->module_stack));
                before = node->module_stack;
                const char *path = node_module(node);
                if (path == NULL && !node_is_call(node))
                        continue;
                int index;
                TRY(ensure(tree, path == NULL ? "" : path, &index));
                Branch *branch = &tree->items[index];
                if (branch->last_node == NONE)
                        branch->first_node = (int)i;
                else
                        tree->next_node[branch->last_node] = (int)i;
                branch->last_node = (int)i;
                tree->next_node[i] = NONE;
        }
        return STATUS_OK;
}

static int compare_tensors(const void *a, const void *b)
{
        uintptr_t x = (uintptr_t)(*(const State *const *)a)->tensor;
        uintptr_t y = (uintptr_t)(*(const State *const *)b)->tensor;
        return (x > y) - (x < y);
}

// A tensor that a module has by several paths counts once, as in Module.parameters().
static Status count_parameters(Branches *tree)
{
        const Graph *graph = tree->graph;
        _cleanup_(freep) const State **states = new_array(graph->n_state, sizeof(*states));
        if (states == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_state; i++)
                states[i] = &graph->state[i];
        qsort(states, graph->n_state, sizeof(*states), compare_tensors);
        for (uint32_t i = 0; i < graph->n_state; i++) {
                const char *dot = strrchr(states[i]->path, '.');
                size_t n = dot == NULL ? 0 : (size_t)(dot - states[i]->path);
                int at = states[i]->is_parameter ? find_branch(tree, states[i]->path, n) : NONE;
                for (; at != NONE; at = tree->items[at].parent) {
                        if (tree->items[at].counted != states[i]->tensor)
                                tree->items[at].n_parameters += meta_numel(&states[i]->tensor->meta);
                        tree->items[at].counted = states[i]->tensor;
                }
        }
        return STATUS_OK;
}

static Status make_tree(Branches *tree)
{
        int root;
        TRY(add_branch(tree, "", 0, NONE, &root));
        TRY(add_modules(tree));
        TRY(add_nodes(tree));
        return count_parameters(tree);
}

// ---- writing ----

static void write_type(const Branches *tree, const Branch *branch, Text *out)
{
        const char *type = branch->type != NULL     ? branch->type
                           : branch->parent == NONE ? tree->graph->class_name
                                                    : NULL;
        if (type == NULL)
                text_add(out, "null");
        else
                text_add_json(out, type);
}

static void write_config(const Module *module, Text *out)
{
        text_add_char(out, '{');
        for (uint32_t i = 0; module != NULL && i < module->n_config; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, module->config[i].key);
                text_add(out, ": ");
                value_print_json(module->config[i].value, out);
        }
        text_add_char(out, '}');
}

static void open_branch(const Branches *tree, const Branch *branch, int depth, Text *out)
{
        text_add(out, depth == 0 ? "" : "\n");
        text_repeat(out, ' ', (size_t)depth);
        text_add(out, "{\"path\": ");
        text_add_json(out, branch->path);
        text_add(out, ", \"type\": ");
        write_type(tree, branch, out);
        text_add(out, ", \"config\": ");
        write_config(branch->module, out);
        text_addf(out, ", \"n_parameters\": %lld, \"nodes\": [", (long long)branch->n_parameters);
        for (int i = branch->first_node; i != NONE; i = tree->next_node[i]) {
                text_add(out, i == branch->first_node ? "" : ", ");
                text_add_json(out, tree->graph->nodes[i]->name);
        }
        text_add(out, "], \"children\": [");
}

static void write_tree(const Branches *tree, Text *out)
{
        int at = 0, depth = 0;
        open_branch(tree, &tree->items[0], depth, out);
        while (at != NONE) {
                const Branch *branch = &tree->items[at];
                if (branch->first_child != NONE) {
                        at = branch->first_child;
                        open_branch(tree, &tree->items[at], ++depth, out);
                        continue;
                }
                // closes what ends here
                text_add(out, "]}");
                while (at != NONE && tree->items[at].next == NONE) {
                        at = tree->items[at].parent;
                        depth--;
                        text_add(out, at == NONE ? "" : "]}");
                }
                if (at == NONE)
                        break;
                at = tree->items[at].next;
                text_add_char(out, ',');
                open_branch(tree, &tree->items[at], depth, out);
        }
        text_add_char(out, '\n');
}

// ---- one node ----

static void write_names(const char *key, const Node *const *nodes, uint32_t n, Text *out)
{
        text_addf(out, ", \"%s\": [", key);
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, nodes[i]->name);
        }
        text_add_char(out, ']');
}

static void write_region(const Region *region, Text *out)
{
        text_add(out, "{\"path\": ");
        text_add_json(out, region->path);
        text_add(out, ", \"key\": ");
        if (region->entry == NULL)
                text_add(out, "null");
        else
                text_add_json(out, region->entry->key);
        write_names("nodes", region->nodes, region->n_nodes, out);
        write_names("args", region->inputs, region->n_inputs, out);
        write_names("returns", region->outputs, region->n_outputs, out);
        text_addf(out, ", \"convex\": %s", region->between == NULL ? "true" : "false");
        if (region->between != NULL) {
                text_add(out, ", \"between\": ");
                text_add_json(out, region->between->name);
        }
        text_add_char(out, '}');
}

// The call of the module at `path` that `node` is part of.
static Status write_call(const Graph *graph, const char *path, const Node *node, Text *out)
{
        Region *regions;
        uint32_t n;
        TRY(graph_regions(graph, path, &regions, &n));
        for (uint32_t i = 0; i < n; i++) {
                bool has_node = false;
                for (uint32_t k = 0; k < regions[i].n_nodes && !has_node; k++)
                        has_node = regions[i].nodes[k] == node;
                if (has_node) {
                        write_region(&regions[i], out);
                        break;
                }
        }
        regions_free(regions, n);
        return STATUS_OK;
}

static bool is_state_of(const State *state, const char *path, size_t n)
{
        return strncmp(state->path, path, n) == 0 && state->path[n] == '.';
}

// The tensor that `module` has where another has `suffix` ("weight").
static const Tensor *tensor_at(const Graph *graph, const Module *module, const char *suffix)
{
        Text path = { 0 };
        text_addf(&path, "%s.%s", module->path, suffix);
        const State *state = path.failed ? NULL : graph_state(graph, path.data);
        text_deinit(&path);
        return state == NULL ? NULL : state->tensor;
}

// Whether both have the same tensors under the same names.
static bool is_same_module(const Graph *graph, const Module *a, const Module *b)
{
        size_t n = strlen(a->path), m = strlen(b->path);
        uint32_t n_of_a = 0, n_of_b = 0;
        for (uint32_t i = 0; i < graph->n_state; i++) {
                const State *state = &graph->state[i];
                n_of_b += is_state_of(state, b->path, m);
                if (!is_state_of(state, a->path, n))
                        continue;
                if (tensor_at(graph, b, state->path + n + 1) != state->tensor)
                        return false;
                n_of_a++;
        }
        return n_of_a == n_of_b;
}

// Other paths at which the same module is installed, which tied weights show.
static void write_also(const Graph *graph, const Module *module, Text *out)
{
        const State *first = NULL;
        uint32_t n = 0;
        for (uint32_t i = 0; module != NULL && i < graph->n_state && first == NULL; i++)
                if (is_state_of(&graph->state[i], module->path, strlen(module->path)))
                        first = &graph->state[i];
        text_add(out, ", \"also\": [");
        for (uint32_t i = 1; first != NULL && i < graph->n_modules && n < LIST_MAX; i++) {
                const Module *other = graph->modules[i];
                const char *suffix = first->path + strlen(module->path) + 1;
                if (other == module || tensor_at(graph, other, suffix) != first->tensor ||
                    !is_same_module(graph, module, other))
                        continue;
                text_add(out, n++ == 0 ? "" : ", ");
                text_add_json(out, other->path);
        }
        text_add_char(out, ']');
}

// The calls that the node is part of, innermost first; the root's is the whole graph, and left out.
static Status write_calls(const Graph *graph, const Node *node, const char *path, Text *out)
{
        const StackEntry *entry = node->module_stack;
        const char *separator = "";
        if (node->op == OP_CALL_MODULE && (entry == NULL || strcmp(entry->path, path) != 0)) {
                TRY(write_call(graph, path, node, out));
                separator = ",\n";
        }
        for (; entry != NULL; entry = entry->outer) {
                if (entry->path[0] == '\0')
                        continue;
                text_add(out, separator);
                TRY(write_call(graph, entry->path, node, out));
                separator = ",\n";
                if (out->n > (size_t)limits.max_response)
                        return fail(STATUS_TOO_LARGE,
                                    "the calls that node \"%s\" is part of take more than %lld bytes "
                                    "(--max-response)",
                                    node->name, (long long)limits.max_response);
        }
        return STATUS_OK;
}

static Status write_node(const Graph *graph, const char *name, Text *out)
{
        const Node *node = graph_node(graph, name);
        if (node == NULL)
                return fail(STATUS_NOT_FOUND, "the graph has no node \"%.200s\"", name);
        const char *path = node_module(node);
        if (path == NULL)
                return failure_at_node(
                        fail(STATUS_NOT_FOUND,
                             "module is not installed as a submodule: node \"%s\" (%s) belongs "
                             "to no module that is known",
                             node->name, opcode_names[node->op]),
                        node->name);
        text_add(out, "{\"node\": ");
        text_add_json(out, node->name);
        text_add(out, ", \"path\": ");
        text_add_json(out, path);
        const Module *module = graph_module(graph, path);
        const char *type = module != NULL && module->type != NULL ? module->type : node_module_type(node);
        text_add(out, ", \"type\": ");
        text_add_json(out, type == NULL ? "" : type);
        write_also(graph, module, out);
        text_add(out, ",\n\"calls\": [");
        TRY(write_calls(graph, node, path, out));
        text_add(out, "]}\n");
        return STATUS_OK;
}

Status get_modules(const Answer *answer)
{
        const char *node = param_text(answer->call, PARAM_NODE);
        bool unchanged;
        TRY(answer_unchanged(answer, &unchanged));
        if (unchanged)
                return STATUS_OK;
        Text *out = answer_begin(answer, json_type);
        if (node != NULL)
                return write_node(answer->graph, node, out);
        Branches tree = { .graph = answer->graph };
        arena_init(&tree.arena, 0);
        Status status = make_tree(&tree);
        if (status == STATUS_OK)
                write_tree(&tree, out);
        branches_deinit(&tree);
        return status;
}
