// SPDX-License-Identifier: Apache-2.0
// region.c: calls of modules in a finished graph. Each node is given the number of its region by a
// walk over its stack; what goes in and out follows from one more walk over all arguments.
#include "core/graph/region.h"

#include <string.h>
#include "core/base/limits.h"

typedef struct Finder {
        const Graph *graph;
        const char *path;
        size_t n_path;
        Region *regions;
        uint32_t n, capacity;
        uint32_t *of_node;  // by index; region + 1
        uint32_t *of_entry; // by StackEntry.index; region + 1
        uint32_t stackless; // region + 1 of nodes below `path` without a stack
        uint32_t *seen;     // by index: the last `mark` whose walk met it
        bool *is_output;    // by index
        uint32_t *after;    // by index: the last region + 1 whose results reach it
        bool *is_state;     // by index: a placeholder of lifted state, or get_attr
        // While one node's arguments are visited:
        const Node *node;
        uint32_t region; // + 1
        uint32_t mark;   // of the walk over a region's inputs
        int64_t n_steps;
} Finder;

const char *node_module(const Node *node)
{
        return node->op == OP_CALL_MODULE ? node->target : node_module_path(node);
}

void region_deinit(Region *region)
{
        free(region->nodes);
        free(region->inputs);
        free(region->outputs);
}

void regions_free(Region *regions, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                region_deinit(&regions[i]);
        free(regions);
}

// ---- which nodes ----

static Status add_region(Finder *finder, const StackEntry *entry, uint32_t *out_number)
{
        TRY(array_reserve(&finder->regions, &finder->capacity, finder->n + 1, sizeof(Region)));
        finder->regions[finder->n++] = (Region){ .path = finder->path, .entry = entry };
        *out_number = finder->n;
        return STATUS_OK;
}

// The outermost call of the module that the node stands in.
static const StackEntry *entry_of(const Finder *finder, const Node *node)
{
        const StackEntry *found = NULL;
        for (const StackEntry *entry = node->module_stack; entry != NULL; entry = entry->outer)
                if (strcmp(entry->path, finder->path) == 0)
                        found = entry;
        return found;
}

static bool is_below(const Finder *finder, const char *target)
{
        return finder->n_path == 0 ||
               (strncmp(target, finder->path, finder->n_path) == 0 && target[finder->n_path] == '.');
}

static Status number_node(Finder *finder, const Node *node)
{
        uint32_t *number = &finder->of_node[node->index];
        const StackEntry *entry = entry_of(finder, node);
        if (entry != NULL) {
                if (finder->of_entry[entry->index] == 0)
                        TRY(add_region(finder, entry, &finder->of_entry[entry->index]));
                *number = finder->of_entry[entry->index];
        } else if (node->op == OP_CALL_MODULE && strcmp(node->target, finder->path) == 0) {
                TRY(add_region(finder, NULL, number));
        } else if (node->op == OP_CALL_MODULE && node->module_stack == NULL &&
                   is_below(finder, node->target)) {
                if (finder->stackless == 0)
                        TRY(add_region(finder, NULL, &finder->stackless));
                *number = finder->stackless;
        }
        if (*number > 0)
                finder->regions[*number - 1].n_nodes++;
        return STATUS_OK;
}

static Status list_nodes(Finder *finder)
{
        for (uint32_t i = 0; i < finder->n; i++) {
                Region *region = &finder->regions[i];
                region->nodes = new_array(region->n_nodes, sizeof(Node *));
                if (region->nodes == NULL)
                        return fail_memory();
                region->n_nodes = 0;
        }
        for (uint32_t i = 0; i < finder->graph->n_nodes; i++) {
                if (finder->of_node[i] > 0) {
                        Region *region = &finder->regions[finder->of_node[i] - 1];
                        region->nodes[region->n_nodes++] = finder->graph->nodes[i];
                }
        }
        return STATUS_OK;
}

// ---- what goes in and out ----

static Status visit_edge(void *context, Node *input)
{
        Finder *finder = context;
        uint32_t from = finder->of_node[input->index], to = finder->of_node[finder->node->index];
        if (from != 0 && from != to && !finder->is_output[input->index]) {
                finder->is_output[input->index] = true;
                finder->regions[from - 1].n_outputs++;
        }
        return STATUS_OK;
}

static Status count_input(void *context, Node *input)
{
        Finder *finder = context;
        if (finder->of_node[input->index] == finder->region || finder->is_state[input->index] ||
            finder->seen[input->index] == finder->mark)
                return STATUS_OK;
        finder->seen[input->index] = finder->mark;
        Region *region = &finder->regions[finder->region - 1];
        if (region->inputs != NULL)
                region->inputs[region->n_inputs] = input;
        region->n_inputs++;
        return STATUS_OK;
}

static Status visit_inputs(Finder *finder, uint32_t number)
{
        const Region *region = &finder->regions[number - 1];
        finder->region = number;
        finder->mark++;
        for (uint32_t i = 0; i < region->n_nodes; i++)
                TRY(node_visit_inputs(region->nodes[i], count_input, finder));
        return STATUS_OK;
}

// Counts, takes memory, then fills it in.
static Status list_inputs(Finder *finder, uint32_t number)
{
        Region *region = &finder->regions[number - 1];
        TRY(visit_inputs(finder, number));
        region->inputs = new_array(region->n_inputs, sizeof(Node *));
        if (region->inputs == NULL)
                return fail_memory();
        region->n_inputs = 0;
        return visit_inputs(finder, number);
}

static Status list_outputs(Finder *finder)
{
        const Graph *graph = finder->graph;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                finder->node = graph->nodes[i];
                TRY(node_visit_inputs(finder->node, visit_edge, finder));
        }
        for (uint32_t i = 0; i < finder->n; i++) {
                Region *region = &finder->regions[i];
                region->outputs = new_array(region->n_outputs, sizeof(Node *));
                if (region->outputs == NULL)
                        return fail_memory();
                region->n_outputs = 0;
                for (uint32_t k = 0; k < region->n_nodes; k++)
                        if (finder->is_output[region->nodes[k]->index])
                                region->outputs[region->n_outputs++] = region->nodes[k];
        }
        return STATUS_OK;
}

static Status follow(void *context, Node *input)
{
        Finder *finder = context;
        bool inside = finder->of_node[input->index] == finder->region;
        bool reached = finder->after[input->index] == finder->region;
        Region *region = &finder->regions[finder->region - 1];
        if (finder->of_node[finder->node->index] != finder->region) {
                if (inside || reached)
                        finder->after[finder->node->index] = finder->region;
        } else if (reached && region->between == NULL) {
                region->between = input;
        }
        return STATUS_OK;
}

static Status check_convex(Finder *finder, uint32_t number)
{
        const Region *region = &finder->regions[number - 1];
        uint32_t first = region->nodes[0]->index, last = region->nodes[region->n_nodes - 1]->index;
        finder->region = number;
        finder->n_steps += last - first + 1;
        if (finder->n_steps > limits.max_match_steps)
                return fail(STATUS_TOO_LARGE,
                            "the calls of module \"%.200s\" take more than %lld comparisons (max_match_steps "
                            "in GET /v1)",
                            finder->path, (long long)limits.max_match_steps);
        for (uint32_t i = first; i <= last; i++) {
                finder->node = finder->graph->nodes[i];
                TRY(node_visit_inputs(finder->node, follow, finder));
        }
        return STATUS_OK;
}

// ---- all ----

static Status find(Finder *finder)
{
        const Graph *graph = finder->graph;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                finder->is_state[i] = graph->nodes[i]->op == OP_GET_ATTR;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                if (graph->signature.inputs[i].kind == INPUT_STATE)
                        finder->is_state[graph->signature.inputs[i].placeholder->index] = true;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                TRY(number_node(finder, graph->nodes[i]));
        TRY(list_nodes(finder));
        TRY(list_outputs(finder));
        for (uint32_t number = 1; number <= finder->n; number++) {
                TRY(check_convex(finder, number));
                TRY(list_inputs(finder, number));
        }
        return STATUS_OK;
}

Status graph_regions(const Graph *graph, const char *path, Region **out_regions, uint32_t *out_n)
{
        size_t n = graph->n_nodes;
        _cleanup_(freep) uint32_t *numbers = new_array(3 * n + graph->n_calls + 1, sizeof(uint32_t));
        _cleanup_(freep) bool *flags = new_array(2 * n, sizeof(bool));
        if (numbers == NULL || flags == NULL)
                return fail_memory();
        Finder finder = { .graph = graph, .path = path, .n_path = strlen(path) };
        finder.of_node = numbers;
        finder.seen = numbers + n;
        finder.after = numbers + 2 * n;
        finder.of_entry = numbers + 3 * n;
        finder.is_output = flags;
        finder.is_state = flags + n;
        Status status = find(&finder);
        if (status != STATUS_OK) {
                regions_free(finder.regions, finder.n);
                return status;
        }
        *out_regions = finder.regions;
        *out_n = finder.n;
        return STATUS_OK;
}
