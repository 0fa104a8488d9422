// SPDX-License-Identifier: Apache-2.0
// derive.c: keys of derived graphs. The generations of the base and of the called graphs are part
// of the key: after damaged bytes were replaced, graphs are derived from those that have the new
// ones.
#include "core/engine/derive.h"

#include "core/edit/content.h"
#include "core/engine/private.h"

// Of the decoded graph, or the one that it would get if it were decoded now.
static uint64_t generation_of(Engine *engine, const DerivedFrom *from, uint32_t i)
{
        if (from->called_graphs != NULL && from->called_graphs[i] != NULL)
                return from->called_graphs[i]->generation;
        Graph *decoded = engine_cached_graph(engine, &from->called[i]->key);
        uint64_t generation = decoded == NULL ? engine_generation(engine) : decoded->generation;
        graph_unref(decoded);
        return generation;
}

Status engine_derived_key(Engine *engine, const DerivedFrom *from, RegistryKey *out_key)
{
        typedef uint64_t Content[4];
        Content content;
        uint32_t n = 1;
        _cleanup_(freep) Content *parts = new_array(2 * from->n_called + 1, sizeof(Content));
        if (parts == NULL)
                return fail_memory();
        parts[0][0] = from->base->generation;
        for (uint32_t i = 0; i < from->n_called; i++) {
                memcpy(parts[n++], from->called[i]->key.bytes, sizeof(Content));
                parts[n++][0] = generation_of(engine, from, i);
        }
        edit_content(from->base->content, from->recipe->data, from->recipe->n, parts, n, content);
        memcpy(out_key->bytes, content, sizeof(out_key->bytes));
        return STATUS_OK;
}

Graph *engine_find_derived(Engine *engine, const RegistryKey *key)
{
        Graph *graph = engine_cached_graph(engine, key);
        if (graph != NULL)
                atomic_fetch_add(&engine->n_derived_found, 1u);
        return graph;
}

Status engine_keep_derived(Engine *engine, const DerivedFrom *from, const RegistryKey *key, Graph *graph)
{
        TRY(engine_check(graph));
        graph->generation = from->base->generation;
        memcpy(graph->tuned_by, from->base->content, sizeof(graph->tuned_by));
        graph->derived = true;
        atomic_fetch_add(&engine->n_derived, 1u);
        return engine_cache_graph(engine, key, graph);
}
