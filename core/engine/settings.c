// SPDX-License-Identifier: Apache-2.0
// How versions are served, as the head of their graph says: an entry holds from its version on,
// until the next one of its kind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine/batch.h"
#include "core/engine/private.h"
#include "core/ops/choice.h"

static bool has_version_in(const EngineGraph *graph, int64_t from, int64_t to)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                if (graph->versions[i]->stored.version >= from && graph->versions[i]->stored.version < to)
                        return true;
        return false;
}

// Leaves out entries that hold for no version any more; the last one of a kind holds for those to
// come. `coming`: a version that is about to be there.
static void drop_settings(const EngineGraph *graph, int64_t coming, StoreHead *head)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < head->n_settings; i++) {
                const StoreSetting *setting = &head->settings[i], *next = setting + 1;
                if (i + 1 == head->n_settings || next->kind != setting->kind ||
                    (setting->version <= coming && coming < next->version) ||
                    has_version_in(graph, setting->version, next->version))
                        head->settings[n++] = *setting;
        }
        head->n_settings = n;
}

Status engine_set_setting(const EngineGraph *graph, SettingKind kind, int64_t version, const char *text,
                          StoreHead *head)
{
        uint32_t place = 0;
        while (place < head->n_settings &&
               (head->settings[place].kind < kind ||
                (head->settings[place].kind == kind && head->settings[place].version < version)))
                place++;
        if (place == head->n_settings || head->settings[place].kind != kind ||
            head->settings[place].version != version) {
                StoreSetting *more = realloc(head->settings, ((size_t)head->n_settings + 1) * sizeof(*more));
                if (more == NULL)
                        return fail_memory();
                head->settings = more;
                memmove(&more[place + 1], &more[place], (head->n_settings - place) * sizeof(*more));
                head->n_settings++;
        }
        head->settings[place] = (StoreSetting){ .kind = kind, .version = version };
        snprintf(head->settings[place].text, sizeof(head->settings[place].text), "%s", text);
        drop_settings(graph, version, head);
        return STATUS_OK;
}

Status engine_set_own_setting(const EngineGraph *graph, SettingKind kind, int64_t version, const char *text,
                              StoreHead *head)
{
        char kept[STORE_SETTING_MAX + 1];
        uint32_t place = 0;
        if (strcmp(store_head_setting(head, kind, version), text) == 0)
                return STATUS_OK;
        while (place < graph->n_versions && graph->versions[place]->stored.version <= version)
                place++;
        if (place < graph->n_versions) {
                int64_t next = graph->versions[place]->stored.version;
                snprintf(kept, sizeof(kept), "%s", store_head_setting(head, kind, next));
                TRY(engine_set_setting(graph, kind, next, kept, head));
        }
        return engine_set_setting(graph, kind, version, text, head);
}

Status engine_setting(Engine *engine, const GraphVersion *version, SettingKind kind, Text *out)
{
        pthread_mutex_lock(&engine->mutex);
        const EngineGraph *graph = string_map_get(&engine->graphs, version->name);
        if (graph != NULL)
                text_add(out, store_head_setting(&graph->head, kind, version->stored.version));
        pthread_mutex_unlock(&engine->mutex);
        return text_status(out);
}

void engine_read_settings(Engine *engine, EngineGraph *graph)
{
        // never reset: a version that is deleted and uploaded again begins with other settings
        static _Atomic uint64_t n_read;
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                GraphVersion *version = graph->versions[i];
                const char *text =
                        store_head_setting(&graph->head, SETTING_PRECISION, version->stored.version);
                atomic_store(&version->precision, (int)precision_named(text));
                text = store_head_setting(&graph->head, SETTING_TOLERANCE, version->stored.version);
                atomic_store(&version->bucket, tolerance_bucket(strtod(text, NULL)));
                atomic_store(&version->settings_read, atomic_fetch_add(&n_read, 1u) + 1);
                batch_policy_take(
                        version, store_head_setting(&graph->head, SETTING_BATCHING, version->stored.version));
        }
        engine_declare(engine, graph, false);
}
