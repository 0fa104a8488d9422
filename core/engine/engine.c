// SPDX-License-Identifier: Apache-2.0
// Names and versions: opening, closing, looking up. Readers take the index mutex for a look-up
// only. A GraphVersion never changes once it is in the index; replacing and deleting
// (engine_change.c) swap pointers.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/base/isa.h"
#include "core/base/limits.h"
#include "core/compile/check.h"
#include "core/engine/kept.h"
#include "core/engine/private.h"
#include "core/eval/guards.h"
#include "core/graph/footprint.h"
#include "core/targets/targets.h"

const char *const graph_state_names[] = { "ready", "ready", "damaged" };

// ---- versions ----
static RegistryKey key_of(const StoreVersion *stored)
{
        RegistryKey key;
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, stored->id.hex, sizeof(stored->id.hex));
        sha256_add(&sha, stored->model, strlen(stored->model));
        HashHex hex = sha256_finish(&sha);
        for (size_t i = 0; i < sizeof(key.bytes); i++) {
                unsigned byte = 0;
                sscanf(hex.hex + 2 * i, "%2x", &byte);
                key.bytes[i] = (uint8_t)byte;
        }
        return key;
}

Status engine_version_new(Engine *engine, const char *name, const StoreVersion *stored, GraphState state,
                          GraphVersion **out_version)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = calloc(1, sizeof(*version));
        if (version == NULL)
                return fail_memory();
        refcount_init(&version->ref);
        snprintf(version->name, sizeof(version->name), "%s", name);
        version->stored = *stored;
        store_version_ref(&version->stored);
        version->key = key_of(stored);
        atomic_init(&version->state, (int)state);
        TRY(profile_stats_new(engine->statistics, &version->stats));
        *out_version = take_ptr(version);
        return STATUS_OK;
}

GraphVersion *graph_version_ref(GraphVersion *version)
{
        refcount_get(&version->ref);
        return version;
}

GraphVersion *graph_version_unref(GraphVersion *version)
{
        if (version == NULL || !refcount_put(&version->ref))
                return NULL;
        profile_stats_free(version->stats);
        store_version_unref(&version->stored);
        for (size_t i = 0; i < ARRAY_LENGTH(version->bytes); i++)
                storage_unref(version->bytes[i]);
        graph_unref(version->kept);
        free(version->reason);
        free(version->declared);
        free(version);
        return NULL;
}

const char *graph_version_reason(const GraphVersion *version)
{
        return version->reason == NULL ? "no memory was left to say why" : version->reason;
}

void engine_graph_free(EngineGraph *graph)
{
        if (graph == NULL)
                return;
        for (uint32_t i = 0; i < graph->n_versions; i++)
                graph_version_unref(graph->versions[i]);
        free(graph->versions);
        store_head_deinit(&graph->head);
        free(graph);
}

Status engine_graph_new(const char *name, EngineGraph **out_graph)
{
        EngineGraph *graph = calloc(1, sizeof(*graph));
        if (graph == NULL)
                return fail_memory();
        snprintf(graph->head.name, sizeof(graph->head.name), "%s", name);
        graph->head.next_version = 1;
        *out_graph = graph;
        return STATUS_OK;
}

GraphVersion *engine_version_of(const EngineGraph *graph, int64_t number)
{
        uint32_t low = 0, high = graph->n_versions;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int64_t found = graph->versions[middle]->stored.version;
                if (found == number)
                        return graph->versions[middle];
                if (found < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

Status engine_not_found(const char *name)
{
        return fail(STATUS_NOT_FOUND, "there is no graph '%s'; GET /v1/graphs lists what is there", name);
}

// ---- open and close ----
static void graph_ref_object(void *object)
{
        graph_ref(object);
}
static void graph_unref_object(void *object)
{
        graph_unref(object);
}
static size_t graph_bytes_object(const void *object)
{
        enum { NAMES = 64 }; // of a node: about as long as its name, target and module path are
        const Graph *graph = object;
        // Graph.labels, made by the first eager run
        size_t labels_bytes = graph->n_nodes * (sizeof(Node) + NAMES);
        return (graph->derived ? 0 : graph->weights_bytes) + graph_footprint(graph) + labels_bytes +
               guards_footprint(&graph->signature);
}

void engine_say(Engine *engine, const char *format, ...)
{
        char line[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        if (engine->log != NULL)
                engine->log(engine->log_context, line);
}

static Status restore(void *context, Store *store, const StoreHead *head, const StoreVersion *versions,
                      uint32_t n_versions)
{
        Engine *engine = context;
        _cleanup_(engine_graph_freep) EngineGraph *graph = calloc(1, sizeof(*graph));
        if (graph == NULL)
                return fail_memory();
        TRY(store_head_copy(head, &graph->head));
        TRY(array_reserve(&graph->versions, &graph->capacity, n_versions, sizeof(GraphVersion *)));
        for (uint32_t i = 0; i < n_versions; i++) {
                GraphVersion **version = &graph->versions[i];
                TRY(engine_version_new(engine, head->name, &versions[i], GRAPH_STATE_UNREAD, version));
                graph->n_versions++;
                TRY(engine_use_content(engine, &(*version)->key));
                if (store_check_version(store, &versions[i]) == STATUS_OK)
                        continue;
                engine_mark(engine, *version, STATUS_DAMAGED);
                engine_say(engine, "graph '%s' version %lld is damaged: %s", head->name,
                           (long long)versions[i].version, graph_version_reason(*version));
        }
        pthread_mutex_lock(&engine->mutex);
        engine_read_settings(engine, graph);
        pthread_mutex_unlock(&engine->mutex);
        TRY(string_map_set(&engine->graphs, graph->head.name, graph, NULL));
        graph = NULL;
        return STATUS_OK;
}

// A change may consist of several calls (engine_begin_change), each of which takes the lock, too.
static void init_recursive(pthread_mutex_t *mutex)
{
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
}

void engine_begin_change(Engine *engine)
{
        pthread_mutex_lock(&engine->writing);
}

void engine_end_change(Engine *engine)
{
        pthread_mutex_unlock(&engine->writing);
}

Status engine_init(void)
{
        TRY(isa_check());
        return targets_init();
}

Status engine_open(const EngineOptions *options, Engine **out_engine)
{
        static const RegistryType type = { .ref = graph_ref_object,
                                           .unref = graph_unref_object,
                                           .bytes = graph_bytes_object };
        _cleanup_(engine_closep) Engine *engine = calloc(1, sizeof(*engine));
        if (engine == NULL)
                return fail_memory();
        init_recursive(&engine->writing);
        pthread_mutex_init(&engine->mutex, NULL);
        engine->loader = options->loader;
        engine->samples = options->samples;
        engine->no_warm_up = options->no_warm_up;
        engine->log = options->log;
        engine->log_context = options->log_context;
        engine->built = options->built;
        engine->built_context = options->built_context;
        TRY(registry_open(&type, (size_t)limits.max_graph_memory, &engine->decoded));
        TRY(programs_open(engine));
        TRY(kept_ring_open(&engine->kept));
        TRY(sessions_open(&engine->sessions));
        TRY(profile_ring_open((uint32_t)limits.max_profiles, (size_t)limits.max_profile_memory,
                              &engine->profiles));
        TRY(stats_pool_open((size_t)limits.max_profile_memory, &engine->statistics));
        if (options->data_folder != NULL)
                TRY(store_open(options->data_folder, options->log, options->log_context, restore, engine,
                               &engine->store));
        TRY(engine_load_passes(engine));
        if (options->scrub)
                engine_start_scrub(engine);
        *out_engine = take_ptr(engine);
        return STATUS_OK;
}

Engine *engine_close(Engine *engine)
{
        if (engine == NULL)
                return NULL;
        engine_stop_scrub(engine);
        for (uint32_t i = 0; i < engine->graphs.n; i++)
                if (engine->graphs.entries[i].key != NULL)
                        engine_graph_free(engine->graphs.entries[i].value);
        for (uint32_t i = 0; i < engine->contents.n; i++)
                if (engine->contents.entries[i].key != NULL)
                        free(engine->contents.entries[i].value);
        string_map_deinit(&engine->graphs);
        string_map_deinit(&engine->contents);
        profile_ring_close(engine->profiles);
        kept_ring_close(engine->kept);
        sessions_close(engine->sessions);
        engine_free_passes(engine);
        engine_close_idle(engine);
        programs_close(engine);
        registry_close(engine->decoded);
        store_close(engine->store);
        stats_pool_close(engine->statistics);
        pthread_mutex_destroy(&engine->mutex);
        pthread_mutex_destroy(&engine->writing);
        free(engine);
        return NULL;
}

Status engine_check(const Graph *graph)
{
        // far more than it takes; a graph whose nodes are not all looked at by then is accepted
        enum { CHECK_MS = 2000 };
        CheckReport report = { .n_rows = 0 };
        RunContext poll;
        run_context_init(&poll);
        poll.deadline_ns = clock_ns() + (int64_t)CHECK_MS * 1000000;
        TRY(guards_check(graph));
        if (graph->signature.in_tree == NULL)
                return STATUS_OK;
        arena_init(&report.arena, 0);
        Status status = check_graph(graph, &poll, &report);
        if (status == STATUS_OK)
                status = check_report_status(&report, graph);
        check_report_deinit(&report);
        return status;
}

// ---- find, list ----
Status engine_find(Engine *engine, const char *name, int64_t number, GraphVersion **out_version)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        GraphVersion *version =
                graph == NULL ? NULL
                              : engine_version_of(graph, number == 0 ? graph->head.default_version : number);
        if (version != NULL)
                *out_version = graph_version_ref(version);
        else if (graph == NULL)
                status = engine_not_found(name);
        else
                status = fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld; its latest is %lld", name,
                              (long long)number,
                              (long long)graph->versions[graph->n_versions - 1]->stored.version);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

static const StoreAlias *alias_of(const StoreHead *head, const char *name)
{
        for (uint32_t i = 0; i < head->n_aliases; i++)
                if (strcmp(head->aliases[i].name, name) == 0)
                        return &head->aliases[i];
        return NULL;
}

Status engine_find_alias(Engine *engine, const char *name, const char *alias, GraphVersion **out_version)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        const StoreAlias *found = graph == NULL ? NULL : alias_of(&graph->head, alias);
        GraphVersion *version = found == NULL ? NULL : engine_version_of(graph, found->version);
        if (version != NULL)
                *out_version = graph_version_ref(version);
        else if (graph == NULL)
                status = engine_not_found(name);
        else
                status =
                        fail(STATUS_NOT_FOUND,
                             "graph '%s' has no alias '%s'; PATCH {\"aliases\": {\"%s\": %lld}} makes it one",
                             name, alias, alias, (long long)graph->head.default_version);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

Status engine_find_named(Engine *engine, const char *text, GraphVersion **out_version)
{
        enum { MOST_DIGITS = 15 };
        char name[STORE_NAME_MAX + 1];
        const char *at = strchr(text, '@');
        size_t n = at == NULL ? strlen(text) : (size_t)(at - text);
        if (at == NULL || n > STORE_NAME_MAX)
                return engine_find(engine, text, 0, out_version);
        memcpy(name, text, n);
        name[n] = '\0';
        size_t digits = strspn(at + 1, "0123456789");
        if (digits == 0 && at[1] != '\0')
                return engine_find_alias(engine, name, at + 1, out_version);
        if (at[1 + digits] != '\0' || digits > MOST_DIGITS || strtoll(at + 1, NULL, 10) == 0)
                return fail(STATUS_VALUE,
                            "\"%.100s\" names no version; a number from 1 on, or an alias, stands "
                            "behind the @",
                            text);
        return engine_find(engine, name, strtoll(at + 1, NULL, 10), out_version);
}

// Where `name` belongs among `n` versions sorted by name.
static uint32_t place_of(GraphVersion *const *sorted, uint32_t n, const char *name)
{
        uint32_t low = 0;
        while (low < n) {
                uint32_t middle = low + (n - low) / 2;
                if (strcmp(sorted[middle]->name, name) < 0)
                        low = middle + 1;
                else
                        n = middle;
        }
        return low;
}

// Keeps the first `limit` names in one walk over all of them: look-ups, also the loop thread's,
// wait for the lock.
Status engine_list(Engine *engine, const char *after, uint32_t limit, GraphVersion **out, uint32_t *out_n,
                   bool *out_more)
{
        uint32_t n = 0;
        bool more = false;
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n; i++) {
                const char *name = engine->graphs.entries[i].key;
                if (name == NULL || (after != NULL && strcmp(name, after) <= 0))
                        continue;
                const EngineGraph *graph = engine->graphs.entries[i].value;
                uint32_t place = n == 0 || strcmp(out[n - 1]->name, name) < 0 ? n : place_of(out, n, name);
                more = more || n == limit;
                if (place == limit)
                        continue;
                n = MIN(n + 1, limit);
                memmove(&out[place + 1], &out[place], (n - 1 - place) * sizeof(*out));
                out[place] = engine_version_of(graph, graph->head.default_version);
        }
        for (uint32_t i = 0; i < n; i++)
                graph_version_ref(out[i]);
        pthread_mutex_unlock(&engine->mutex);
        *out_n = n;
        *out_more = more;
        return STATUS_OK;
}

Status engine_versions(Engine *engine, const char *name, VersionList *out)
{
        Status status = STATUS_OK;
        VersionList list = { .n = 0 };
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        if (graph == NULL)
                status = engine_not_found(name);
        else
                status = store_head_copy(&graph->head, &list.head);
        if (status == STATUS_OK) {
                list.versions = new_array(graph->n_versions, sizeof(GraphVersion *));
                status = list.versions == NULL ? fail_memory() : STATUS_OK;
        }
        for (; status == STATUS_OK && list.n < graph->n_versions; list.n++)
                list.versions[list.n] = graph_version_ref(graph->versions[list.n]);
        pthread_mutex_unlock(&engine->mutex);
        if (status != STATUS_OK)
                version_list_deinit(&list);
        else
                *out = list;
        return status;
}

void version_list_deinit(VersionList *list)
{
        for (uint32_t i = 0; i < list->n; i++)
                graph_version_unref(list->versions[i]);
        free(list->versions);
        store_head_deinit(&list->head);
        *list = (VersionList){ .n = 0 };
}

EngineStats engine_stats(Engine *engine)
{
        EngineStats stats = { .runs = atomic_load(&engine->n_runs),
                              .compiles = atomic_load(&engine->n_compiles),
                              .searches = atomic_load(&engine->n_searches),
                              .derived = atomic_load(&engine->n_derived),
                              .derived_found = atomic_load(&engine->n_derived_found),
                              .batches = atomic_load(&engine->n_batches),
                              .batched_runs = atomic_load(&engine->n_batched_runs),
                              .kept = kept_ring_use(engine->kept),
                              .sessions = sessions_use(engine->sessions),
                              .graphs = registry_stats(engine->decoded),
                              .programs = registry_stats(engine->programs) };
        ProfileUse ring = profile_ring_use(engine->profiles), statistics = stats_pool_use(engine->statistics);
        stats.profiles = (ProfileUse){ ring.bytes + statistics.bytes, ring.evictions + statistics.evictions };
        pthread_mutex_lock(&engine->mutex);
        stats.n_graphs = engine->graphs.n_live;
        for (uint32_t i = 0; i < engine->graphs.n; i++)
                if (engine->graphs.entries[i].key != NULL)
                        stats.n_versions += ((EngineGraph *)engine->graphs.entries[i].value)->n_versions;
        pthread_mutex_unlock(&engine->mutex);
        return stats;
}

Sessions *engine_sessions(Engine *engine)
{
        return engine->sessions;
}
