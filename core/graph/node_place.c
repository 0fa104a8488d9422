// SPDX-License-Identifier: Apache-2.0
// node_place.c: where nodes come from: the calls of modules around them and the lines of Python.
// Most nodes of a graph share both, so equal ones are kept once: a stack is a list from its
// innermost call outwards, and stacks with the same outer calls share these.
#include <string.h>
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/graph/graph.h"

static bool has_key(const StackEntry *call, const char *key)
{
        for (; call != NULL; call = call->outer)
                if (strcmp(call->key, key) == 0)
                        return true;
        return false;
}

static Status check_room(const Graph *graph, const StackEntry *outer)
{
        if (graph->n_calls >= limits.max_module_calls)
                return fail(STATUS_TOO_LARGE,
                            "the nodes are of more than %lld calls of modules (max_module_calls in GET /v1)",
                            (long long)limits.max_module_calls);
        if (outer != NULL && outer->depth >= MAX_MODULE_DEPTH)
                return fail(STATUS_TOO_LARGE, "an nn_module_stack has more than %d entries",
                            MAX_MODULE_DEPTH);
        return STATUS_OK;
}

Status graph_stack_entry(Graph *graph, const StackEntry *outer, const StackEntrySpec *spec,
                         const StackEntry **out_entry)
{
        if (has_key(outer, spec->key)) {
                *out_entry = outer;
                return STATUS_OK;
        }
        Text name = { 0 };
        text_addf(&name, "%u %zu %zu %s%s%s", outer == NULL ? 0 : outer->index, strlen(spec->key),
                  strlen(spec->path), spec->key, spec->path, spec->type);
        _cleanup_(freep) char *known_as = text_take(&name);
        if (known_as == NULL)
                return fail_memory();
        *out_entry = string_map_get(&graph->calls, known_as);
        if (*out_entry != NULL)
                return STATUS_OK;
        TRY(check_room(graph, outer));
        StackEntry *call = arena_alloc(&graph->arena, sizeof(*call));
        const char *map_key = arena_text(&graph->arena, known_as, strlen(known_as));
        if (call == NULL || map_key == NULL)
                return fail_memory();
        *call = (StackEntry){ .outer = outer,
                              .key = arena_text(&graph->arena, spec->key, strlen(spec->key)),
                              .path = arena_text(&graph->arena, spec->path, strlen(spec->path)),
                              .type = graph_normalise_module_type(graph, spec->type),
                              .index = ++graph->n_calls,
                              .depth = outer == NULL ? 1 : outer->depth + 1 };
        if (call->key == NULL || call->path == NULL || call->type == NULL)
                return fail_memory();
        *out_entry = call;
        return string_map_set(&graph->calls, map_key, call, NULL);
}

Status graph_set_trace(Graph *graph, Node *node, const char *trace)
{
        node->stack_trace = string_map_get(&graph->traces, trace);
        if (node->stack_trace != NULL)
                return STATUS_OK;
        char *copy = arena_text(&graph->arena, trace, strlen(trace));
        if (copy == NULL)
                return fail_memory();
        node->stack_trace = copy;
        return string_map_set(&graph->traces, copy, copy, NULL);
}

Status graph_copy_place(Graph *graph, const Node *from, Node *node)
{
        const StackEntry *stack[MAX_MODULE_DEPTH];
        uint32_t n = 0;
        for (const StackEntry *call = from->module_stack; call != NULL && n < MAX_MODULE_DEPTH;
             call = call->outer)
                stack[n++] = call;
        node->module_stack = NULL;
        while (n-- > 0) {
                const StackEntrySpec spec = { stack[n]->key, stack[n]->path, stack[n]->type };
                TRY(graph_stack_entry(graph, node->module_stack, &spec, &node->module_stack));
        }
        return from->stack_trace == NULL ? STATUS_OK : graph_set_trace(graph, node, from->stack_trace);
}
