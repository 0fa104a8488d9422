// SPDX-License-Identifier: Apache-2.0
// Changes of names and versions: put, delete, default version, aliases. One change at a time
// (`writing`): first the disk, then the index, so that everything a reader can see is durable.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/batch.h"
#include "core/engine/private.h"
#include "core/ops/choice.h"

static bool is_content_id(const char *name)
{
        return strlen(name) == HASH_HEX_BYTES - 1 && strspn(name, "0123456789abcdef") == HASH_HEX_BYTES - 1;
}

static Status no_version(const EngineGraph *graph, int64_t number)
{
        return fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld; its latest is %lld", graph->head.name,
                    (long long)number, (long long)graph->versions[graph->n_versions - 1]->stored.version);
}

static EngineGraph *graph_of(Engine *engine, const char *name)
{
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        pthread_mutex_unlock(&engine->mutex);
        return graph;
}

// ---- identity ----
StoreRole upload_role(const char *name)
{
        for (int role = 0; role < STORE_ROLES; role++)
                if (strcmp(store_role_names[role], name) == 0)
                        return (StoreRole)role;
        return STORE_GRAPH;
}

Status upload_identify(const UploadPart *parts, uint32_t n_parts, const char *model, const char *format,
                       StoreVersion *out_version)
{
        StoreVersion version = { .created_ms = clock_wall_ms(), .n_parts = n_parts };
        const StorePart *named[2] = { NULL, NULL }; // graph, weights: in the order of their names
        if (n_parts == 0 || n_parts > STORE_MAX_PARTS)
                return fail(STATUS_INTERNAL, "an upload has one to %d parts, not %u", STORE_MAX_PARTS,
                            n_parts);
        if (model != NULL && strlen(model) > STORE_MODEL_MAX)
                return fail(STATUS_VALUE, "the name given as ?model= is longer than %d bytes",
                            STORE_MODEL_MAX);
        snprintf(version.format, sizeof(version.format), "%s", format);
        snprintf(version.model, sizeof(version.model), "%s", model == NULL ? "" : model);
        for (uint32_t i = 0; i < n_parts; i++) {
                StorePart *part = &version.parts[i];
                part->role = upload_role(parts[i].name);
                part->n_bytes = parts[i].bytes->n_bytes;
                part->digest = parts[i].digest.hex[0] != '\0'
                                       ? parts[i].digest
                                       : sha256_of(parts[i].bytes->data, parts[i].bytes->n_bytes);
                if (part->role == STORE_GRAPH || part->role == STORE_WEIGHTS)
                        named[part->role] = part;
        }
        if (named[STORE_GRAPH] == NULL)
                return fail(STATUS_INTERNAL, "an upload without its graph part");
        version.id = named[STORE_GRAPH]->digest;
        if (named[STORE_WEIGHTS] != NULL)
                version.id = sha256_joined(&version.id, named[STORE_WEIGHTS]->digest.hex);
        if (version.model[0] != '\0') // each model of an archive is content of its own
                version.id = sha256_joined(&version.id, version.model);
        *out_version = version;
        return STATUS_OK;
}

// ---- contents ----
// How many versions have a content, so that deleting one need not search all of them.
struct ContentUse {
        char hex[2 * sizeof(RegistryKey) + 1];
        uint32_t n;
};

static void hex_of(const RegistryKey *key, char out[2 * sizeof(RegistryKey) + 1])
{
        for (size_t i = 0; i < sizeof(key->bytes); i++)
                snprintf(out + 2 * i, 3, "%02x", key->bytes[i]);
}

Status engine_use_content(Engine *engine, const RegistryKey *key)
{
        char hex[2 * sizeof(RegistryKey) + 1];
        hex_of(key, hex);
        struct ContentUse *use = string_map_get(&engine->contents, hex);
        if (use == NULL) {
                use = calloc(1, sizeof(*use));
                if (use == NULL)
                        return fail_memory();
                memcpy(use->hex, hex, sizeof(hex));
                Status status = string_map_set(&engine->contents, use->hex, use, NULL);
                if (status != STATUS_OK) {
                        free(use);
                        return status;
                }
        }
        use->n++;
        return STATUS_OK;
}

// True: it was the last use.
static bool unuse_content(Engine *engine, const RegistryKey *key)
{
        char hex[2 * sizeof(RegistryKey) + 1];
        hex_of(key, hex);
        struct ContentUse *use = string_map_get(&engine->contents, hex);
        if (use == NULL || --use->n > 0)
                return false;
        string_map_remove(&engine->contents, hex);
        free(use);
        return true;
}

// ---- heads ----
// Readers see the new head from here on; *head receives the old one. Under the mutex, together with
// the versions that the head names.
static void swap_head(EngineGraph *graph, StoreHead *head)
{
        StoreHead old = graph->head;
        graph->head = *head;
        *head = old;
}

static uint32_t alias_place(const StoreHead *head, const char *name)
{
        uint32_t place = 0;
        while (place < head->n_aliases && strcmp(head->aliases[place].name, name) < 0)
                place++;
        return place;
}

static Status set_alias(StoreHead *head, const AliasChange *change)
{
        uint32_t place = alias_place(head, change->name);
        bool known = place < head->n_aliases && strcmp(head->aliases[place].name, change->name) == 0;
        if (change->version == 0 && !known)
                return STATUS_OK;
        if (change->version == 0) {
                memmove(&head->aliases[place], &head->aliases[place + 1],
                        (head->n_aliases - place - 1) * sizeof(*head->aliases));
                head->n_aliases--;
                return STATUS_OK;
        }
        if (!known) {
                StoreAlias *more = realloc(head->aliases, ((size_t)head->n_aliases + 1) * sizeof(*more));
                if (more == NULL)
                        return fail_memory();
                head->aliases = more;
                memmove(&more[place + 1], &more[place], (head->n_aliases - place) * sizeof(*more));
                head->n_aliases++;
                snprintf(more[place].name, sizeof(more[place].name), "%s", change->name);
        }
        head->aliases[place].version = change->version;
        return STATUS_OK;
}

// ---- settings ----
static Status set_settings(const EngineGraph *graph, const HeadChange *change, StoreHead *head)
{
        for (int kind = 0; kind < SETTING_KINDS; kind++) {
                if (change->settings[kind] != NULL)
                        TRY(engine_set_setting(graph, (SettingKind)kind, change->set_version,
                                               change->settings[kind], head));
        }
        return STATUS_OK;
}

static Status change_head(const EngineGraph *graph, const HeadChange *change, StoreHead *head)
{
        if (change->default_version != 0 && engine_version_of(graph, change->default_version) == NULL)
                return no_version(graph, change->default_version);
        if (change->default_version != 0)
                head->default_version = change->default_version;
        for (uint32_t i = 0; i < change->n_aliases; i++) {
                if (change->aliases[i].version != 0 &&
                    engine_version_of(graph, change->aliases[i].version) == NULL)
                        return no_version(graph, change->aliases[i].version);
                TRY(set_alias(head, &change->aliases[i]));
        }
        if (change->set_version != 0 && engine_version_of(graph, change->set_version) == NULL)
                return no_version(graph, change->set_version);
        if (change->set_version != 0)
                TRY(set_settings(graph, change, head));
        if (head->n_aliases > (uint64_t)limits.max_aliases)
                return fail(STATUS_TOO_LARGE,
                            "graph '%s' would have %u aliases; there can be %lld (max_aliases in GET /v1)",
                            head->name, head->n_aliases, (long long)limits.max_aliases);
        return STATUS_OK;
}

// *head receives the old one.
static Status put_head(Engine *engine, EngineGraph *graph, StoreHead *head)
{
        if (engine->store != NULL)
                TRY(store_put_head(engine->store, head));
        pthread_mutex_lock(&engine->mutex);
        swap_head(graph, head);
        engine_read_settings(engine, graph);
        pthread_mutex_unlock(&engine->mutex);
        return STATUS_OK;
}

static Status change_locked(Engine *engine, const char *name, const HeadChange *change)
{
        _cleanup_(store_head_deinit) StoreHead head = { .aliases = NULL };
        EngineGraph *graph = graph_of(engine, name);
        if (graph == NULL)
                return engine_not_found(name);
        if (change->n_aliases == 0 && change->set_version == 0 &&
            change->default_version == graph->head.default_version)
                return STATUS_OK;
        TRY(store_head_copy(&graph->head, &head));
        TRY(change_head(graph, change, &head));
        return put_head(engine, graph, &head);
}

Status engine_change(Engine *engine, const char *name, const HeadChange *change)
{
        pthread_mutex_lock(&engine->writing);
        Status status = change_locked(engine, name, change);
        pthread_mutex_unlock(&engine->writing);
        return status;
}

// ---- put ----
static bool same_content(const GraphVersion *version, const StoreVersion *identified)
{
        return memcmp(version->stored.id.hex, identified->id.hex, HASH_HEX_BYTES) == 0 &&
               strcmp(version->stored.model, identified->model) == 0;
}

// The version that an upload may be equal to: the latest, or that of its number. NULL: there is
// none.
static GraphVersion *version_there(const EngineGraph *graph, const PutRequest *put)
{
        if (graph == NULL)
                return NULL;
        return put->number == 0 ? graph->versions[graph->n_versions - 1]
                                : engine_version_of(graph, put->number);
}

// That version (counted) if it has this content, with the samples and labels that came along, and
// its stored bytes are known to be good: then nothing has to be stored.
static GraphVersion *same_as_there(Engine *engine, const PutRequest *put)
{
        pthread_mutex_lock(&engine->mutex);
        GraphVersion *there = version_there(string_map_get(&engine->graphs, put->name), put);
        bool same = there != NULL && same_content(there, put->identified) &&
                    !engine_brings_others(put->identified, &there->stored) &&
                    atomic_load(&there->state) == GRAPH_STATE_READY;
        if (same)
                graph_version_ref(there);
        pthread_mutex_unlock(&engine->mutex);
        return same ? there : NULL;
}

// Whether one more version is allowed, of that number.
static Status check_room(Engine *engine, const PutRequest *put)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&engine->mutex);
        const EngineGraph *graph = string_map_get(&engine->graphs, put->name);
        const GraphVersion *there = version_there(graph, put);
        bool has_place = there != NULL && same_content(there, put->identified);
        if (graph == NULL && engine->graphs.n_live >= (uint64_t)limits.max_graphs)
                status = fail(STATUS_TOO_LARGE,
                              "there are %u graphs, as many as there can be (--max-graphs, "
                              "FXSERVE_MAX_GRAPHS); delete some of them",
                              engine->graphs.n_live);
        else if (there != NULL && put->number != 0 && !has_place)
                status = fail(STATUS_CONFLICT,
                              "version %lld of graph '%s' has other content already; give the new content "
                              "another number, or delete that version",
                              (long long)put->number, put->name);
        else if (graph != NULL && graph->n_versions >= (uint64_t)limits.max_versions && !has_place)
                status = fail(STATUS_TOO_LARGE,
                              "graph '%s' has %u versions, as many as there can be (--max-versions, "
                              "FXSERVE_MAX_VERSIONS); delete some of them",
                              put->name, graph->n_versions);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

// Without a store the version keeps what was uploaded.
static void keep_bytes(const Engine *engine, GraphVersion *version, const PutRequest *put)
{
        for (uint32_t i = 0; engine->store == NULL && i < put->n_parts; i++)
                version->bytes[i] = storage_ref(put->parts[i].bytes);
        if (engine->store == NULL && put->keep_graph)
                version->kept = graph_ref(put->graph);
}

// Replaces a graph of this content that was decoded before: it may use damaged bytes that were just
// replaced.
static Status share_decoded(Engine *engine, const GraphVersion *version, Graph *decoded)
{
        engine_set_content(engine, decoded, &version->key);
        return registry_replace(engine->decoded, &version->key, decoded);
}

static Status put_on_disk(Engine *engine, const StoreHead *head, const GraphVersion *version,
                          const GraphVersion *instead)
{
        if (engine->store == NULL)
                return STATUS_OK;
        return store_put_version(engine->store, head, &version->stored,
                                 instead == NULL ? NULL : &instead->stored);
}

static Status set_image(const EngineGraph *graph, const PutRequest *put, int64_t version, StoreHead *head)
{
        if (put->image == NULL)
                return STATUS_OK;
        return put->number != 0 ? engine_set_own_setting(graph, SETTING_IMAGE, version, put->image, head)
                                : engine_set_setting(graph, SETTING_IMAGE, version, put->image, head);
}

// What comes along with an upload, for its version.
static Status set_sent(const EngineGraph *graph, const PutRequest *put, int64_t version, StoreHead *head)
{
        TRY(set_image(graph, put, version, head));
        if (put->owner == NULL || strcmp(store_head_setting(head, SETTING_OWNER, version), put->owner) == 0)
                return STATUS_OK;
        return engine_set_setting(graph, SETTING_OWNER, version, put->owner, head);
}

// The version has the upload's content: it becomes the default, unless the upload has a number, and
// is served as the upload says.
static Status choose_there(Engine *engine, const PutRequest *put, const GraphVersion *version)
{
        _cleanup_(store_head_deinit) StoreHead head = { .aliases = NULL };
        EngineGraph *graph = graph_of(engine, put->name);
        int64_t number = version->stored.version;
        if (put->image == NULL && (put->number != 0 || graph->head.default_version == number))
                return STATUS_OK;
        TRY(store_head_copy(&graph->head, &head));
        if (put->number == 0)
                head.default_version = number;
        TRY(set_image(graph, put, number, &head));
        return put_head(engine, graph, &head);
}

// The same content as `there`, a version whose stored bytes are damaged, or were not read since the
// start, or which has other samples or labels. It was stored anew, and takes its place and number.
static Status put_again(Engine *engine, const PutRequest *put, const StoreVersion *held, GraphVersion *there,
                        GraphVersion **out_version)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(store_head_deinit) StoreHead head = { .aliases = NULL };
        EngineGraph *graph = graph_of(engine, put->name);
        StoreVersion stored = *held;
        uint32_t place = 0;
        while (graph->versions[place] != there)
                place++;
        stored.version = there->stored.version;
        stored.created_ms = there->stored.created_ms;
        TRY(engine_version_new(engine, graph->head.name, &stored, GRAPH_STATE_READY, &version));
        keep_bytes(engine, version, put);
        engine_keep_along(there, version);
        TRY(store_head_copy(&graph->head, &head));
        if (put->number == 0)
                head.default_version = stored.version;
        TRY(set_sent(graph, put, stored.version, &head));
        TRY(put_on_disk(engine, &head, version, there));
        if (atomic_load(&there->state) == GRAPH_STATE_DAMAGED) {
                atomic_fetch_add(&engine->n_damaged, 1u);
                registry_drop_group(engine->programs, &version->key);
        }
        engine_recall_tune(engine, version);
        TRY(share_decoded(engine, version, put->graph));
        pthread_mutex_lock(&engine->mutex);
        swap_head(graph, &head);
        graph->versions[place] = graph_version_ref(version);
        engine_read_settings(engine, graph);
        pthread_mutex_unlock(&engine->mutex);
        graph_version_unref(there);
        engine_prepare(engine, version);
        *out_version = take_ptr(version);
        return STATUS_OK;
}

// Makes the version visible. Never fails: the room was reserved before the disk was written.
static void publish(Engine *engine, EngineGraph *graph, bool is_new_name, StoreHead *head,
                    GraphVersion *version)
{
        pthread_mutex_lock(&engine->mutex);
        swap_head(graph, head);
        if (is_new_name)
                (void)string_map_set(&engine->graphs, graph->head.name, graph, NULL);
        uint32_t place = graph->n_versions++;
        for (; place > 0 && graph->versions[place - 1]->stored.version > version->stored.version; place--)
                graph->versions[place] = graph->versions[place - 1];
        graph->versions[place] = graph_version_ref(version);
        engine_read_settings(engine, graph);
        pthread_mutex_unlock(&engine->mutex);
}

static Status reserve_place(Engine *engine, EngineGraph *graph)
{
        pthread_mutex_lock(&engine->mutex); // readers walk `versions`
        Status status = array_reserve(&graph->versions, &graph->capacity, graph->n_versions + 1,
                                      sizeof(GraphVersion *));
        if (status == STATUS_OK)
                status = string_map_reserve(&engine->graphs);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

static Status put_next(Engine *engine, EngineGraph *graph, const PutRequest *put, const StoreVersion *held,
                       GraphVersion **out_version)
{
        bool is_new_name = graph->n_versions == 0;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(store_head_deinit) StoreHead head = { .aliases = NULL };
        StoreVersion stored = *held;
        stored.version = put->number != 0 ? put->number : graph->head.next_version;
        TRY(engine_version_new(engine, graph->head.name, &stored, GRAPH_STATE_READY, &version));
        keep_bytes(engine, version, put);
        TRY(reserve_place(engine, graph));
        TRY(store_head_copy(&graph->head, &head));
        if (put->number != 0 && put->image == NULL)
                TRY(engine_set_own_setting(graph, SETTING_IMAGE, stored.version, "", &head));
        TRY(set_sent(graph, put, stored.version, &head));
        TRY(share_decoded(engine, version, put->graph));
        TRY(engine_use_content(engine, &version->key));
        if (is_new_name || graph->versions[graph->n_versions - 1]->stored.version < stored.version)
                head.default_version = stored.version;
        head.next_version = MAX(head.next_version, stored.version + 1);
        Status status = put_on_disk(engine, &head, version, NULL);
        if (status != STATUS_OK) {
                unuse_content(engine, &version->key);
                return status;
        }
        engine_recall_tune(engine, version);
        publish(engine, graph, is_new_name, &head, version);
        engine_prepare(engine, version);
        *out_version = take_ptr(version);
        return STATUS_OK;
}

// Older versions of this content may have been damaged, and their bytes may be back: they are read
// again when they are used.
static void retry_damaged(Engine *engine, EngineGraph *graph, const StoreVersion *held)
{
        for (uint32_t i = 0; engine->store != NULL && i < graph->n_versions; i++) {
                GraphVersion *old = graph->versions[i], *fresh;
                if (atomic_load(&old->state) != GRAPH_STATE_DAMAGED || !same_content(old, held) ||
                    store_check_version(engine->store, &old->stored) != STATUS_OK ||
                    engine_version_new(engine, graph->head.name, &old->stored, GRAPH_STATE_UNREAD, &fresh) !=
                            STATUS_OK)
                        continue;
                pthread_mutex_lock(&engine->mutex);
                graph->versions[i] = fresh;
                engine_read_settings(engine, graph);
                pthread_mutex_unlock(&engine->mutex);
                graph_version_unref(old);
        }
}

static Status put_locked(Engine *engine, const PutRequest *put, const StoreVersion *held,
                         GraphVersion **out_version, bool *out_created)
{
        _cleanup_(engine_graph_freep) EngineGraph *fresh = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        *out_created = false;
        version = same_as_there(engine, put); // somebody was faster
        if (version != NULL) {
                TRY(choose_there(engine, put, version));
                *out_version = take_ptr(version);
                return STATUS_OK;
        }
        EngineGraph *graph = graph_of(engine, put->name);
        GraphVersion *there = version_there(graph, put);
        if (there != NULL && same_content(there, held)) {
                TRY(put_again(engine, put, held, there, out_version));
                retry_damaged(engine, graph, held);
                return STATUS_OK;
        }
        TRY(check_room(engine, put));
        if (graph == NULL)
                TRY(engine_graph_new(put->name, &fresh));
        TRY(put_next(engine, graph == NULL ? fresh : graph, put, held, out_version));
        fresh = NULL;
        *out_created = true;
        if (graph != NULL)
                retry_damaged(engine, graph, held);
        return STATUS_OK;
}

static Status check_condition(const PutRequest *put)
{
        return put->only_if == NULL ? STATUS_OK : put->only_if->check(put->only_if->context);
}

// Whether the condition holds and there is room. *out_there: the version that has this content
// already, counted; else NULL. An upload without a number becomes the default version, even if its
// content was there already and another version was the default.
static Status look_first(Engine *engine, const PutRequest *put, GraphVersion **out_there)
{
        _cleanup_(graph_version_unrefp) GraphVersion *there = NULL;
        pthread_mutex_lock(&engine->writing);
        Status status = check_condition(put);
        if (status == STATUS_OK)
                there = same_as_there(engine, put);
        if (there != NULL)
                status = choose_there(engine, put, there);
        else if (status == STATUS_OK)
                status = check_room(engine, put);
        pthread_mutex_unlock(&engine->writing);
        TRY(status);
        *out_there = take_ptr(there);
        return STATUS_OK;
}

Status engine_put(Engine *engine, const PutRequest *asked, GraphVersion **out_version, bool *out_created)
{
        PutRequest put = *asked;
        if (put.n_parts != put.identified->n_parts)
                return fail(STATUS_INTERNAL, "an upload was identified with %u parts and put with %u",
                            put.identified->n_parts, put.n_parts);
        if (put.name == NULL || put.name[0] == '\0')
                put.name = put.identified->id.hex;
        else if (is_content_id(put.name) && strcmp(put.name, put.identified->id.hex) != 0)
                return fail(STATUS_CONFLICT,
                            "a name of 64 hex digits must be the upload's own id, which is %s",
                            put.identified->id.hex);
        GraphVersion *there;
        TRY(look_first(engine, &put, &there));
        if (there != NULL) {
                *out_version = there;
                *out_created = false;
                return STATUS_OK;
        }
        // The weights, which take long, are written before the lock is taken: nobody waits for
        // another client's disk.
        StoreVersion held = *put.identified;
        TRY(engine_hold_parts(engine, put.parts, &held));
        pthread_mutex_lock(&engine->writing);
        Status status = check_condition(&put);
        if (status == STATUS_OK)
                status = put_locked(engine, &put, &held, out_version, out_created);
        pthread_mutex_unlock(&engine->writing);
        engine_release_parts(engine, &held);
        return status;
}

// ---- delete ----
// Decoded graphs are shared by content. Only content that no version uses any more is dropped.
// Under `writing`.
static void drop_unused(Engine *engine, const GraphVersion *version)
{
        if (!unuse_content(engine, &version->key))
                return;
        registry_drop(engine->decoded, &version->key);
        registry_drop_group(engine->programs, &version->key);
        engine_forget_tune(engine, &version->key);
        if (engine->store != NULL) {
                HashHex id = store_tune_id(&version->stored);
                store_remove_tune(engine->store, &id);
        }
}

Status engine_set_loaded(Engine *engine, const char *name, bool loaded)
{
        _cleanup_(version_list_deinit) VersionList list = { .n = 0 };
        TRY(engine_versions(engine, name, &list));
        for (uint32_t i = 0; i < list.n; i++) {
                atomic_store(&list.versions[i]->unloaded, !loaded);
                if (loaded)
                        continue;
                registry_drop(engine->decoded, &list.versions[i]->key);
                registry_drop_group(engine->programs, &list.versions[i]->key);
        }
        if (loaded)
                engine_declare_again(engine, name);
        return STATUS_OK;
}

static Status remove_from_disk(Engine *engine, const EngineGraph *graph)
{
        if (engine->store == NULL)
                return STATUS_OK;
        _cleanup_(freep) const StoreVersion **versions = new_array(graph->n_versions, sizeof(*versions));
        if (versions == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_versions; i++)
                versions[i] = &graph->versions[i]->stored;
        return store_remove_name(engine->store, graph->head.name, versions, graph->n_versions);
}

static Status delete_name(Engine *engine, EngineGraph *graph)
{
        TRY(remove_from_disk(engine, graph));
        pthread_mutex_lock(&engine->mutex);
        string_map_remove(&engine->graphs, graph->head.name);
        pthread_mutex_unlock(&engine->mutex);
        for (uint32_t i = 0; i < graph->n_versions; i++)
                drop_unused(engine, graph->versions[i]);
        engine_graph_free(graph);
        return STATUS_OK;
}

static Status check_not_aliased(const EngineGraph *graph, int64_t number)
{
        for (uint32_t i = 0; i < graph->head.n_aliases; i++)
                if (graph->head.aliases[i].version == number)
                        return fail(STATUS_CONFLICT,
                                    "version %lld of graph '%s' is its alias '%s'; PATCH {\"aliases\": "
                                    "{\"%s\": null}}, or another "
                                    "version, first",
                                    (long long)number, graph->head.name, graph->head.aliases[i].name,
                                    graph->head.aliases[i].name);
        return STATUS_OK;
}

// An older version is the default because somebody went back to it: the latest one would serve.
static Status check_not_gone_back_to(const EngineGraph *graph, int64_t number)
{
        int64_t latest = graph->versions[graph->n_versions - 1]->stored.version;
        if (graph->head.default_version != number || number == latest)
                return STATUS_OK;
        return fail(STATUS_CONFLICT,
                    "version %lld of graph '%s' is its default, and not the latest; PATCH "
                    "{\"default_version\": %lld}, or another version, first",
                    (long long)number, graph->head.name, (long long)latest);
}

static Status delete_version(Engine *engine, EngineGraph *graph, GraphVersion *version)
{
        _cleanup_(store_head_deinit) StoreHead head = { .aliases = NULL };
        uint32_t place = 0, last = graph->n_versions - 1;
        TRY(check_not_aliased(graph, version->stored.version));
        TRY(check_not_gone_back_to(graph, version->stored.version));
        TRY(store_head_copy(&graph->head, &head));
        while (graph->versions[place] != version)
                place++;
        if (head.default_version == version->stored.version)
                head.default_version = graph->versions[last - 1]->stored.version;
        if (engine->store != NULL)
                TRY(store_remove_version(engine->store, &head, &version->stored));
        pthread_mutex_lock(&engine->mutex);
        swap_head(graph, &head);
        memmove(&graph->versions[place], &graph->versions[place + 1],
                (last - place) * sizeof(GraphVersion *));
        graph->n_versions--;
        pthread_mutex_unlock(&engine->mutex);
        drop_unused(engine, version);
        graph_version_unref(version);
        return STATUS_OK;
}

static Status delete_locked(Engine *engine, const char *name, int64_t number)
{
        EngineGraph *graph = graph_of(engine, name);
        if (graph == NULL)
                return engine_not_found(name);
        GraphVersion *version = number == 0 ? NULL : engine_version_of(graph, number);
        if (number != 0 && version == NULL)
                return fail(STATUS_NOT_FOUND, "graph '%s' has no version %lld", name, (long long)number);
        if (version != NULL && graph->n_versions > 1)
                return delete_version(engine, graph, version);
        if (version != NULL)
                TRY(check_not_aliased(graph, number));
        return delete_name(engine, graph);
}

Status engine_delete(Engine *engine, const char *name, int64_t version)
{
        pthread_mutex_lock(&engine->writing);
        Status status = delete_locked(engine, name, version);
        pthread_mutex_unlock(&engine->writing);
        return status;
}
