// SPDX-License-Identifier: Apache-2.0
// Names and versions. Writers go one at a time (`writing`): first the disk, then the index, so that whatever a reader can see is durable.
// Readers take the index mutex for a look-up only. A GraphVersion never changes once it is in the index; replacing and deleting swap
// pointers.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/compile/check.h"
#include "core/engine_private.h"

const char *const graph_state_names[] = { "ready", "ready", "damaged" };

static bool is_content_id(const char *name)
{
        return strlen(name) == HASH_HEX_BYTES - 1 && strspn(name, "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

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

static Status version_new(Engine *engine, const char *name, const StoreVersion *stored, GraphState state, GraphVersion **out_version)
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
        free(version);
        return NULL;
}

static void graph_free(EngineGraph *graph)
{
        if (graph == NULL)
                return;
        for (uint32_t i = 0; i < graph->n_versions; i++)
                graph_version_unref(graph->versions[i]);
        free(graph->versions);
        free(graph);
}
DEFINE_CLEANUP(EngineGraph, graph_free)

static Status graph_new_named(const char *name, EngineGraph **out_graph)
{
        EngineGraph *graph = calloc(1, sizeof(*graph));
        if (graph == NULL)
                return fail_memory();
        snprintf(graph->name, sizeof(graph->name), "%s", name);
        graph->next_version = 1;
        *out_graph = graph;
        return STATUS_OK;
}

static GraphVersion *version_of(const EngineGraph *graph, int64_t number)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                if (graph->versions[i]->stored.version == number)
                        return graph->versions[i];
        return NULL;
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
        size_t labels_bytes = graph->n_nodes * (sizeof(Node) + NAMES); // Graph.labels, made by the first eager run
        return graph->weights_bytes + graph->arena.total_bytes + labels_bytes;
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

static Status restore(void *context, const StoreGraph *stored)
{
        Engine *engine = context;
        _cleanup_(graph_freep) EngineGraph *graph = NULL;
        TRY(graph_new_named(stored->name, &graph));
        graph->next_version = stored->next_version;
        graph->default_version = stored->default_version;
        for (uint32_t i = 0; i < stored->n_versions; i++) {
                TRY(array_reserve(&graph->versions, &graph->capacity, i + 1, sizeof(GraphVersion *)));
                GraphVersion **version = &graph->versions[i];
                TRY(version_new(engine, stored->name, &stored->versions[i], GRAPH_STATE_UNREAD, version));
                graph->n_versions++;
                if (store_check_version(engine->store, &stored->versions[i]) == STATUS_OK)
                        continue;
                engine_mark(engine, *version, STATUS_DAMAGED);
                engine_say(engine, "graph '%s' version %lld is damaged: %s", stored->name, (long long)stored->versions[i].version,
                           (*version)->reason);
        }
        TRY(string_map_set(&engine->graphs, graph->name, graph, NULL));
        graph = NULL;
        return STATUS_OK;
}

// A change may consist of several calls (engine_begin_change), each of which takes the lock as well.
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

Status engine_open(const EngineOptions *options, Engine **out_engine)
{
        static const RegistryType type = { .ref = graph_ref_object, .unref = graph_unref_object, .bytes = graph_bytes_object };
        _cleanup_(engine_closep) Engine *engine = calloc(1, sizeof(*engine));
        if (engine == NULL)
                return fail_memory();
        init_recursive(&engine->writing);
        pthread_mutex_init(&engine->mutex, NULL);
        engine->loader = options->loader;
        engine->no_warm_up = options->no_warm_up;
        engine->log = options->log;
        engine->log_context = options->log_context;
        TRY(registry_open(&type, (size_t)limits.max_graph_memory, &engine->decoded));
        TRY(programs_open(engine));
        TRY(profile_ring_open((uint32_t)limits.max_profiles, (size_t)limits.max_profile_memory, &engine->profiles));
        TRY(stats_pool_open((size_t)limits.max_profile_memory, &engine->statistics));
        if (options->data_folder != NULL) {
                TRY(store_open(options->data_folder, options->log, options->log_context, &engine->store));
                TRY(store_each(engine->store, restore, engine));
        }
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
                        graph_free(engine->graphs.entries[i].value);
        string_map_deinit(&engine->graphs);
        profile_ring_close(engine->profiles);
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

// ---- put ----
static int by_part_name(const void *a, const void *b)
{
        return strcmp(((const StorePart *)a)->name, ((const StorePart *)b)->name);
}

Status upload_identify(const UploadPart *parts, uint32_t n_parts, const char *model, const char *format, StoreVersion *out_version)
{
        StoreVersion version = { .created_ms = clock_wall_ms(), .n_parts = n_parts };
        if (n_parts == 0 || n_parts > STORE_MAX_PARTS)
                return fail(STATUS_INTERNAL, "an upload has one or two parts, not %u", n_parts);
        if (model != NULL && strlen(model) > STORE_MODEL_MAX)
                return fail(STATUS_VALUE, "the name given as ?model= is longer than %d bytes", STORE_MODEL_MAX);
        snprintf(version.format, sizeof(version.format), "%s", format);
        snprintf(version.model, sizeof(version.model), "%s", model == NULL ? "" : model);
        for (uint32_t i = 0; i < n_parts; i++) {
                snprintf(version.parts[i].name, sizeof(version.parts[i].name), "%s", parts[i].name);
                version.parts[i].n_bytes = parts[i].bytes->n_bytes;
                version.parts[i].digest =
                        parts[i].digest.hex[0] != '\0' ? parts[i].digest : sha256_of(parts[i].bytes->data, parts[i].bytes->n_bytes);
        }
        if (n_parts == 1) {
                version.id = version.parts[0].digest;
        } else {
                StorePart sorted[STORE_MAX_PARTS];
                Sha256 sha;
                memcpy(sorted, version.parts, sizeof(sorted));
                qsort(sorted, n_parts, sizeof(*sorted), by_part_name);
                sha256_start(&sha);
                for (uint32_t i = 0; i < n_parts; i++)
                        sha256_add(&sha, sorted[i].digest.hex, HASH_HEX_BYTES - 1);
                version.id = sha256_finish(&sha);
        }
        *out_version = version;
        return STATUS_OK;
}

Status engine_check(const Graph *graph)
{
        enum { CHECK_MS = 2000 }; // far more than it takes; what it has not seen by then is accepted
        CheckReport report = { .n_rows = 0 };
        RunContext poll;
        if (graph->signature.in_tree == NULL)
                return STATUS_OK;
        run_context_init(&poll);
        poll.deadline_ns = clock_ns() + (int64_t)CHECK_MS * 1000000;
        arena_init(&report.arena, 0);
        Status status = check_graph(graph, &poll, &report);
        if (status == STATUS_OK)
                status = check_report_status(&report, graph);
        check_report_deinit(&report);
        return status;
}

// The manifest of `graph` with one version more (NULL: none) or one fewer (0: none).
static Status manifest_of(const EngineGraph *graph, const StoreVersion *more, int64_t without, StoreGraph *out_manifest)
{
        StoreGraph manifest = { .next_version = graph->next_version, .default_version = graph->default_version };
        snprintf(manifest.name, sizeof(manifest.name), "%s", graph->name);
        manifest.versions = new_array((size_t)graph->n_versions + 1, sizeof(*manifest.versions));
        if (manifest.versions == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_versions; i++)
                if (graph->versions[i]->stored.version != without)
                        manifest.versions[manifest.n_versions++] = graph->versions[i]->stored;
        if (more != NULL) {
                manifest.versions[manifest.n_versions++] = *more;
                manifest.default_version = more->version;
                manifest.next_version = more->version + 1;
        } else if (without == manifest.default_version && manifest.n_versions > 0) {
                manifest.default_version = manifest.versions[manifest.n_versions - 1].version;
        }
        *out_manifest = manifest;
        return STATUS_OK;
}

static Status put_on_disk(Engine *engine, const StoreGraph *manifest)
{
        return engine->store == NULL ? STATUS_OK : store_put_graph(engine->store, manifest);
}

static EngineGraph *graph_of(Engine *engine, const char *name)
{
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        pthread_mutex_unlock(&engine->mutex);
        return graph;
}

// Makes the version visible. Never fails: the room was reserved before the disk was written.
static void publish(Engine *engine, EngineGraph *graph, bool is_new_name, GraphVersion *version)
{
        pthread_mutex_lock(&engine->mutex);
        if (is_new_name)
                (void)string_map_set(&engine->graphs, graph->name, graph, NULL);
        graph->versions[graph->n_versions++] = graph_version_ref(version);
        graph->default_version = version->stored.version;
        graph->next_version = version->stored.version + 1;
        pthread_mutex_unlock(&engine->mutex);
}

static Status reserve_place(Engine *engine, EngineGraph *graph)
{
        pthread_mutex_lock(&engine->mutex); // readers walk `versions`
        Status status = array_reserve(&graph->versions, &graph->capacity, graph->n_versions + 1, sizeof(GraphVersion *));
        if (status == STATUS_OK)
                status = string_map_reserve(&engine->graphs);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

static bool same_content(const GraphVersion *version, const StoreVersion *identified)
{
        return memcmp(version->stored.id.hex, identified->id.hex, HASH_HEX_BYTES) == 0 &&
               strcmp(version->stored.model, identified->model) == 0;
}

// The latest version (counted) if it has this content and its stored bytes are known to be good: there is nothing to do then.
static GraphVersion *same_as_latest(Engine *engine, const char *name, const StoreVersion *identified)
{
        pthread_mutex_lock(&engine->mutex);
        const EngineGraph *graph = string_map_get(&engine->graphs, name);
        GraphVersion *latest = graph == NULL ? NULL : graph->versions[graph->n_versions - 1];
        bool same = latest != NULL && same_content(latest, identified) && atomic_load(&latest->state) == GRAPH_STATE_READY;
        if (same)
                graph_version_ref(latest);
        pthread_mutex_unlock(&engine->mutex);
        return same ? latest : NULL;
}

// Without a store the version keeps what was uploaded.
static void keep_bytes(const Engine *engine, GraphVersion *version, const UploadPart *parts)
{
        for (uint32_t i = 0; engine->store == NULL && i < version->stored.n_parts; i++)
                version->bytes[i] = storage_ref(parts[i].bytes);
}

// In place of one that was decoded before: it may stand on bytes that turned out damaged and were just replaced.
static Status share_decoded(Engine *engine, const GraphVersion *version, Graph *decoded)
{
        engine_set_content(engine, decoded, &version->key);
        registry_drop(engine->decoded, &version->key);
        return registry_put(engine->decoded, &version->key, decoded);
}

static Status not_found(const char *name)
{
        return fail(STATUS_NOT_FOUND, "there is no graph '%s'; GET /v1/graphs lists what is there", name);
}

// ---- the default version ----
static Status set_default_locked(Engine *engine, const char *name, int64_t number)
{
        EngineGraph *graph = graph_of(engine, name);
        if (graph == NULL)
                return not_found(name);
        if (version_of(graph, number) == NULL)
                return fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld; its latest is %lld", name, (long long)number,
                            (long long)graph->versions[graph->n_versions - 1]->stored.version);
        if (graph->default_version == number)
                return STATUS_OK;
        StoreGraph manifest;
        TRY(manifest_of(graph, NULL, 0, &manifest));
        manifest.default_version = number;
        Status status = engine->store == NULL ? STATUS_OK : store_put_graph(engine->store, &manifest);
        free(manifest.versions);
        TRY(status);
        pthread_mutex_lock(&engine->mutex);
        graph->default_version = number;
        pthread_mutex_unlock(&engine->mutex);
        return STATUS_OK;
}

Status engine_set_default(Engine *engine, const char *name, int64_t version)
{
        pthread_mutex_lock(&engine->writing);
        Status status = set_default_locked(engine, name, version);
        pthread_mutex_unlock(&engine->writing);
        return status;
}

// ---- putting ----
// The same content over a version whose stored bytes are damaged, or were not read since the start: it was stored anew, and takes the
// place and the number of the one that was there.
static Status put_again(Engine *engine, EngineGraph *graph, const UploadPart *parts, const StoreVersion *held, Graph *decoded,
                        GraphVersion **out_version)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        GraphVersion *latest = graph->versions[graph->n_versions - 1];
        StoreVersion stored = *held;
        stored.version = latest->stored.version;
        stored.created_ms = latest->stored.created_ms;
        TRY(version_new(engine, graph->name, &stored, GRAPH_STATE_READY, &version));
        keep_bytes(engine, version, parts);
        StoreGraph manifest;
        TRY(manifest_of(graph, &stored, stored.version, &manifest));
        Status status = put_on_disk(engine, &manifest);
        free(manifest.versions);
        TRY(status);
        if (atomic_load(&latest->state) == GRAPH_STATE_DAMAGED) {
                atomic_fetch_add(&engine->n_damaged, 1u);
                registry_drop_group(engine->programs, &version->key);
        }
        engine_recall_tune(engine, version);
        TRY(share_decoded(engine, version, decoded));
        pthread_mutex_lock(&engine->mutex);
        graph->versions[graph->n_versions - 1] = graph_version_ref(version);
        graph->default_version = version->stored.version;
        pthread_mutex_unlock(&engine->mutex);
        graph_version_unref(latest);
        engine_prepare(engine, version);
        *out_version = take_ptr(version);
        return STATUS_OK;
}

static Status put_locked(Engine *engine, const char *name, const UploadPart *parts, const StoreVersion *held, Graph *decoded,
                         GraphVersion **out_version, bool *out_created)
{
        _cleanup_(graph_freep) EngineGraph *fresh = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        *out_created = false;
        version = same_as_latest(engine, name, held); // somebody was faster
        if (version != NULL) {
                TRY(set_default_locked(engine, name, version->stored.version));
                *out_version = take_ptr(version);
                return STATUS_OK;
        }
        EngineGraph *graph = graph_of(engine, name);
        if (graph != NULL && same_content(graph->versions[graph->n_versions - 1], held))
                return put_again(engine, graph, parts, held, decoded, out_version);
        if (graph == NULL) {
                TRY(graph_new_named(name, &fresh));
                graph = fresh;
        }
        StoreVersion stored = *held;
        stored.version = graph->next_version;
        TRY(version_new(engine, name, &stored, GRAPH_STATE_READY, &version));
        keep_bytes(engine, version, parts);
        TRY(reserve_place(engine, graph));
        TRY(share_decoded(engine, version, decoded));
        StoreGraph manifest;
        TRY(manifest_of(graph, &stored, 0, &manifest));
        Status status = put_on_disk(engine, &manifest);
        free(manifest.versions);
        TRY(status);
        engine_recall_tune(engine, version);
        publish(engine, graph, fresh != NULL, version);
        fresh = NULL;
        engine_prepare(engine, version);
        *out_version = take_ptr(version);
        *out_created = true;
        return STATUS_OK;
}

// Whether the condition holds; *out_latest: the latest version, counted, if it is this content already; else NULL. What is uploaded is the
// default version from then on, also if it was there and another one had been made the default.
static Status look_first(Engine *engine, const char *name, const StoreVersion *identified, const PutCondition *only_if,
                         GraphVersion **out_latest)
{
        _cleanup_(graph_version_unrefp) GraphVersion *latest = NULL;
        pthread_mutex_lock(&engine->writing);
        Status status = only_if == NULL ? STATUS_OK : only_if->check(only_if->context);
        if (status == STATUS_OK)
                latest = same_as_latest(engine, name, identified);
        if (latest != NULL)
                status = set_default_locked(engine, name, latest->stored.version);
        pthread_mutex_unlock(&engine->writing);
        TRY(status);
        *out_latest = take_ptr(latest);
        return STATUS_OK;
}

Status engine_put_if(Engine *engine, const char *name, const UploadPart *parts, uint32_t n_parts, const StoreVersion *identified,
                     Graph *graph, const PutCondition *only_if, GraphVersion **out_version, bool *out_created)
{
        if (n_parts != identified->n_parts)
                return fail(STATUS_INTERNAL, "an upload was identified with %u parts and put with %u", identified->n_parts, n_parts);
        if (name == NULL || name[0] == '\0')
                name = identified->id.hex;
        else if (is_content_id(name) && strcmp(name, identified->id.hex) != 0)
                return fail(STATUS_CONFLICT, "a name of 64 hex digits must be the upload's own id, which is %s", identified->id.hex);
        GraphVersion *latest;
        TRY(look_first(engine, name, identified, only_if, &latest));
        if (latest != NULL) {
                *out_version = latest;
                *out_created = false;
                return STATUS_OK;
        }
        // The long part, the weights, is written before the lock is taken: nobody waits for another's disk.
        StoreVersion held = *identified;
        TRY(engine_hold_parts(engine, parts, &held));
        pthread_mutex_lock(&engine->writing);
        Status status = only_if == NULL ? STATUS_OK : only_if->check(only_if->context);
        if (status == STATUS_OK)
                status = put_locked(engine, name, parts, &held, graph, out_version, out_created);
        pthread_mutex_unlock(&engine->writing);
        engine_release_parts(engine, &held);
        return status;
}

Status engine_put(Engine *engine, const char *name, const UploadPart *parts, uint32_t n_parts, const StoreVersion *identified, Graph *graph,
                  GraphVersion **out_version, bool *out_created)
{
        return engine_put_if(engine, name, parts, n_parts, identified, graph, NULL, out_version, out_created);
}

// ---- find, list ----
Status engine_find(Engine *engine, const char *name, int64_t number, GraphVersion **out_version)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        GraphVersion *version = graph == NULL ? NULL : version_of(graph, number == 0 ? graph->default_version : number);
        if (version != NULL)
                *out_version = graph_version_ref(version);
        else if (graph == NULL)
                status = not_found(name);
        else
                status = fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld; its latest is %lld", name, (long long)number,
                              (long long)graph->versions[graph->n_versions - 1]->stored.version);
        pthread_mutex_unlock(&engine->mutex);
        return status;
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

// Keeps the first `limit` names while it looks at all of them once: look-ups wait for the lock, the loop thread's too.
Status engine_list(Engine *engine, const char *after, uint32_t limit, GraphVersion **out, uint32_t *out_n, bool *out_more)
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
                out[place] = version_of(graph, graph->default_version);
        }
        for (uint32_t i = 0; i < n; i++)
                graph_version_ref(out[i]);
        pthread_mutex_unlock(&engine->mutex);
        *out_n = n;
        *out_more = more;
        return STATUS_OK;
}

Status engine_versions(Engine *engine, const char *name, GraphVersion ***out, uint32_t *out_n, int64_t *out_default)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        GraphVersion **versions = graph == NULL ? NULL : new_array(graph->n_versions, sizeof(*versions));
        if (graph == NULL) {
                status = not_found(name);
        } else if (versions == NULL) {
                status = fail_memory();
        } else {
                for (uint32_t i = 0; i < graph->n_versions; i++)
                        versions[i] = graph_version_ref(graph->versions[i]);
                *out = versions;
                *out_n = graph->n_versions;
                *out_default = graph->default_version;
        }
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

// ---- delete ----
// Takes the version (NULL: all) out of the index; what was taken out is dropped by the caller, outside the lock.
static void unpublish(Engine *engine, EngineGraph *graph, GraphVersion *version, int64_t default_version)
{
        pthread_mutex_lock(&engine->mutex);
        if (version == NULL || graph->n_versions == 1) {
                string_map_remove(&engine->graphs, graph->name);
        } else {
                uint32_t place = 0;
                while (graph->versions[place] != version)
                        place++;
                memmove(&graph->versions[place], &graph->versions[place + 1], (graph->n_versions - place - 1) * sizeof(GraphVersion *));
                graph->n_versions--;
                graph->default_version = default_version;
        }
        pthread_mutex_unlock(&engine->mutex);
}

// Decoded graphs are shared by content: only content that no version uses any more is dropped.
static void drop_unused(Engine *engine, const GraphVersion *version)
{
        bool used = false;
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n && !used; i++) {
                const EngineGraph *graph = engine->graphs.entries[i].key == NULL ? NULL : engine->graphs.entries[i].value;
                for (uint32_t v = 0; graph != NULL && v < graph->n_versions && !used; v++)
                        used = memcmp(graph->versions[v]->key.bytes, version->key.bytes, sizeof(version->key.bytes)) == 0;
        }
        pthread_mutex_unlock(&engine->mutex);
        if (!used) {
                registry_drop(engine->decoded, &version->key);
                registry_drop_group(engine->programs, &version->key);
                engine_forget_tune(engine, &version->key);
        }
}

static Status delete_locked(Engine *engine, const char *name, int64_t number)
{
        EngineGraph *graph = graph_of(engine, name);
        if (graph == NULL)
                return not_found(name);
        GraphVersion *version = number == 0 ? NULL : version_of(graph, number);
        if (number != 0 && version == NULL)
                return fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld", name, (long long)number);
        StoreGraph manifest = { .default_version = 0 };
        TRY(manifest_of(graph, NULL, number, &manifest));
        if (version == NULL)
                manifest.n_versions = 0;
        Status status = engine->store == NULL ? STATUS_OK : store_put_graph(engine->store, &manifest);
        free(manifest.versions);
        TRY(status);
        bool whole = version == NULL || graph->n_versions == 1;
        unpublish(engine, graph, version, manifest.default_version);
        if (whole) {
                for (uint32_t i = 0; i < graph->n_versions; i++)
                        drop_unused(engine, graph->versions[i]);
                graph_free(graph);
        } else {
                drop_unused(engine, version);
                graph_version_unref(version);
        }
        return STATUS_OK;
}

Status engine_delete(Engine *engine, const char *name, int64_t version)
{
        pthread_mutex_lock(&engine->writing);
        Status status = delete_locked(engine, name, version);
        pthread_mutex_unlock(&engine->writing);
        return status;
}

EngineStats engine_stats(Engine *engine)
{
        EngineStats stats = { .runs = atomic_load(&engine->n_runs),
                              .compiles = atomic_load(&engine->n_compiles),
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
