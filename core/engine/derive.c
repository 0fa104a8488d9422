// SPDX-License-Identifier: Apache-2.0
// derive.c: keys of derived graphs. The base's generation is part of the key: after damaged bytes
// were replaced, graphs are derived from the base that has the new ones.
#include "core/engine/derive.h"

#include "core/edit/content.h"
#include "core/engine/private.h"

Status engine_derived_key(const DerivedFrom *from, RegistryKey *out_key)
{
        typedef uint64_t Content[4];
        Content content;
        _cleanup_(freep) Content *called = new_array(from->n_called + 1, sizeof(Content));
        if (called == NULL)
                return fail_memory();
        called[0][0] = from->base->generation;
        for (uint32_t i = 0; i < from->n_called; i++)
                memcpy(called[1 + i], from->called[i]->key.bytes, sizeof(Content));
        edit_content(from->base->content, from->recipe->data, from->recipe->n, called, from->n_called + 1,
                     content);
        memcpy(out_key->bytes, content, sizeof(out_key->bytes));
        return STATUS_OK;
}

Status engine_keep_derived(Engine *engine, const DerivedFrom *from, const RegistryKey *key, Graph *graph)
{
        TRY(engine_check(graph));
        graph->generation = from->base->generation;
        memcpy(graph->tuned_by, from->base->content, sizeof(graph->tuned_by));
        graph->derived = true;
        return engine_cache_graph(engine, key, graph);
}
