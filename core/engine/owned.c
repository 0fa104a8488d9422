// SPDX-License-Identifier: Apache-2.0
// owned.c: who uploaded what, by a walk over all graphs: only uploads with a quota ask.
#include <string.h>
#include "core/engine/private.h"

static void add_graph(const EngineGraph *graph, const char *owner, const char *name, OwnedUse *use)
{
        bool latest = false;
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                const StoreVersion *stored = &graph->versions[i]->stored;
                latest = strcmp(store_head_setting(&graph->head, SETTING_OWNER, stored->version), owner) == 0;
                for (uint32_t k = 0; latest && k < stored->n_parts; k++)
                        use->bytes += (int64_t)stored->parts[k].n_bytes;
        }
        use->n_graphs += latest;
        use->has_name |= latest && strcmp(graph->head.name, name) == 0;
}

void engine_owned(Engine *engine, const char *owner, const char *name, OwnedUse *out_use)
{
        *out_use = (OwnedUse){ .n_graphs = 0 };
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n; i++)
                if (engine->graphs.entries[i].key != NULL)
                        add_graph(engine->graphs.entries[i].value, owner, name, out_use);
        pthread_mutex_unlock(&engine->mutex);
}
