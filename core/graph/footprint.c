// SPDX-License-Identifier: Apache-2.0
// footprint.c: arguments are allocated one by one outside the arena, and a list of a thousand
// numbers takes 24 kB. Nesting is bounded by limits.max_nested_values and limits.max_child_graphs.
#include "core/graph/footprint.h"

enum { ALLOCATION = 16 }; // what malloc takes for itself

static size_t value_footprint(const Value *value)
{
        size_t sum = 0;
        if (value->kind == VALUE_STR)
                return sizeof(Str) + value->str->n + ALLOCATION;
        if (value->kind == VALUE_DICT) {
                for (uint32_t i = 0; i < value->dict->n; i++)
                        sum += sizeof(Str) + value->dict->items[i].key->n + ALLOCATION +
                               sizeof(struct DictItem) + value_footprint(&value->dict->items[i].value);
                return sum + sizeof(Dict) + ALLOCATION;
        }
        if (value->kind < VALUE_SLICE || value->kind > VALUE_SIZE)
                return 0;
        for (uint32_t i = 0; i < value->seq->n; i++)
                sum += sizeof(Value) + value_footprint(&value->seq->items[i]);
        return sum + sizeof(Seq) + ALLOCATION;
}

size_t graph_footprint(const Graph *graph)
{
        size_t sum = graph->arena.total_bytes;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                sum += value_footprint(&graph->nodes[i]->args) + value_footprint(&graph->nodes[i]->kwargs);
        for (uint32_t i = 0; i < graph->n_modules; i++)
                if (graph->modules[i]->graph != NULL)
                        sum += graph_footprint(graph->modules[i]->graph);
        return sum;
}
