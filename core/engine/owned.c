// SPDX-License-Identifier: Apache-2.0
// owned.c: who uploaded what, by a walk over all graphs: only uploads with a quota ask.
#include <string.h>
#include "core/engine/private.h"

static void add_graph(const EngineGraph *graph, const char *owner, OwnedUse *use, bool *out_latest)
{
        bool latest = false;
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                const StoreVersion *stored = &graph->versions[i]->stored;
                latest = strcmp(store_head_setting(&graph->head, SETTING_OWNER, stored->version), owner) == 0;
                for (uint32_t k = 0; latest && k < stored->n_parts; k++)
                        use->bytes += (int64_t)stored->parts[k].n_bytes;
        }
        use->n_graphs += latest;
        *out_latest = latest;
}

static bool has_content(const EngineGraph *graph, const StoreVersion *content)
{
        const StoreVersion *latest = &graph->versions[graph->n_versions - 1]->stored;
        return content != NULL && memcmp(latest->id.hex, content->id.hex, HASH_HEX_BYTES) == 0 &&
               strcmp(latest->model, content->model) == 0;
}

void engine_owned(Engine *engine, const char *owner, const char *name, const StoreVersion *content,
                  OwnedUse *out_use)
{
        *out_use = (OwnedUse){ .n_graphs = 0 };
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n; i++) {
                const EngineGraph *graph = engine->graphs.entries[i].value;
                bool latest;
                if (engine->graphs.entries[i].key == NULL)
                        continue;
                add_graph(graph, owner, out_use, &latest);
                if (!latest || strcmp(graph->head.name, name) != 0)
                        continue;
                out_use->has_name = true;
                out_use->has_content = has_content(graph, content);
        }
        pthread_mutex_unlock(&engine->mutex);
}
