// SPDX-License-Identifier: Apache-2.0
// Between graphs and the store. Taking in: the loader has decoded the parts where they lie (memory,
// or a spooled file) and noted which storages are made of them (Pieces). Each large one becomes a
// blob and leaves a hole. Then all of them are given the mapped bytes of the stored files, so that
// nothing keeps the upload itself, and equal weights share pages. Loading: the document and the
// blobs are mapped, the blobs are handed to the loader as pieces.
//
// Damaged bytes mark their versions, whichever part finds them: the load, a run that met an
// unreadable page, or the scrubber.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "core/engine/private.h"
#include "core/store/folder.h"

// ---- mapped storages ----
static void release_mapping(void *owner, void *data)
{
        (void)data;
        mapping_unref(owner);
}

static Status adopt_mapping(Mapping *take_mapping, bool readonly, Storage **out_storage)
{
        Status status = storage_adopt(take_mapping->data, take_mapping->n_bytes, readonly, release_mapping,
                                      take_mapping, out_storage);
        if (status != STATUS_OK)
                mapping_unref(take_mapping);
        else
                (*out_storage)->mapped = !take_mapping->is_copy;
        return status;
}

static bool is_zeroed(const Storage *storage)
{
        return storage != NULL && storage->data != NULL && mapping_damaged_at(storage->data);
}

// Whether some bytes that were just read from a part were unreadable and came as zeros.
static bool is_unreadable(const UploadPart *part)
{
        bool zeroed = mapping_faulted() && is_zeroed(part->bytes);
        for (uint32_t i = 0; mapping_faulted() && part->pieces != NULL && i < part->pieces->n && !zeroed; i++)
                zeroed = is_zeroed(part->pieces->items[i].storage);
        return zeroed;
}

bool engine_has_folder(const Engine *engine)
{
        return engine->store != NULL;
}

Status engine_temporary(Engine *engine, int *out_fd)
{
        if (engine->store == NULL)
                return fail(STATUS_NOT_FOUND, "the server runs without a data folder");
        return store_temporary(engine->store, out_fd);
}

Status engine_write_temporary(int fd, ByteSpan bytes, uint64_t offset)
{
        int error = folder_write_range(fd, &(FolderRange){ offset, bytes });
        return error == 0 ? STATUS_OK : folder_fail("the upload", error);
}

Status engine_map_temporary(int fd, size_t n_bytes, Storage **out_storage)
{
        Mapping *mapping;
        TRY(mapping_new(fd, n_bytes, &mapping));
        return adopt_mapping(mapping, true, out_storage);
}

// ---- taking in ----
static Status new_bytes(void *context, size_t n_bytes, Storage **out_storage)
{
        Engine *engine = context;
        Mapping *mapping;
        int fd;
        TRY(store_temporary(engine->store, &fd));
        Status status = mapping_new_writable(fd, n_bytes, &mapping);
        close(fd);
        TRY(status);
        return adopt_mapping(mapping, false, out_storage);
}

void engine_collect(Engine *engine, UploadPart *parts, uint32_t n_parts, Pieces *pieces)
{
        for (uint32_t i = 0; i < n_parts && engine->store != NULL; i++) {
                pieces[i] = (Pieces){ .collect = true, .new_bytes = new_bytes, .context = engine };
                parts[i].pieces = &pieces[i];
        }
}

static bool is_large(const Piece *piece)
{
        return piece->storage->n_bytes >= PIECE_MIN_BYTES;
}

static Status hold_part(Engine *engine, const UploadPart *part, StorePart *stored)
{
        uint32_t n = 0, n_pieces = part->pieces == NULL ? 0 : part->pieces->n;
        _cleanup_(freep) StoreCut *cuts = new_array(n_pieces, sizeof(*cuts));
        if (cuts == NULL)
                return fail_memory();
        if (part->pieces != NULL)
                pieces_sort(part->pieces);
        for (uint32_t i = 0; i < n_pieces; i++) {
                const Piece *piece = &part->pieces->items[i];
                if (is_large(piece))
                        cuts[n++] = (StoreCut){ piece->offset,
                                                piece->n,
                                                { piece->storage->data, piece->storage->n_bytes } };
        }
        TRY(store_hold_part(engine->store, (ByteSpan){ part->bytes->data, part->bytes->n_bytes }, cuts, n,
                            stored));
        if (!is_unreadable(part))
                return STATUS_OK;
        store_release_part(engine->store, stored);
        free(take_ptr(stored->holes));
        return fail(STATUS_IO, "the spooled upload could not be read");
}

// From here on the storages of the part have the store's bytes, wherever theirs were before.
static Status rebase_pieces(Engine *engine, const UploadPart *part, const StorePart *stored)
{
        uint32_t n = 0, n_pieces = part->pieces == NULL ? 0 : part->pieces->n;
        _cleanup_(mapping_unrefp) Mapping *document = NULL;
        for (uint32_t i = 0; i < n_pieces; i++) {
                Piece *piece = &part->pieces->items[i];
                Mapping *mapping;
                uint8_t *data;
                if (is_large(piece)) {
                        TRY(store_map_hole(engine->store, &stored->holes->items[n++], &mapping));
                        data = mapping->data;
                } else {
                        if (document == NULL)
                                TRY(store_map_document(engine->store, stored, &document));
                        mapping = mapping_ref(document);
                        data = mapping->data + piece->offset;
                }
                storage_rebase(piece->storage, data, release_mapping, mapping);
                piece->storage->mapped = !mapping->is_copy;
        }
        return STATUS_OK;
}

void engine_release_parts(Engine *engine, const StoreVersion *version)
{
        if (engine->store == NULL)
                return;
        for (uint32_t i = 0; i < version->n_parts; i++)
                store_release_part(engine->store, &version->parts[i]);
        store_version_unref(version);
}

Status engine_hold_parts(Engine *engine, const UploadPart *parts, StoreVersion *version)
{
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (; engine->store != NULL && n < version->n_parts && status == STATUS_OK; n++)
                status = hold_part(engine, &parts[n], &version->parts[n]);
        StoreVersion held = *version;
        held.n_parts = status == STATUS_OK ? n : n - 1;
        for (uint32_t i = 0; i < held.n_parts && status == STATUS_OK; i++)
                if (pieces_collect(parts[i].pieces)) // others are in use already, with bytes of their own
                        status = rebase_pieces(engine, &parts[i], &version->parts[i]);
        if (status != STATUS_OK)
                engine_release_parts(engine, &held);
        return status;
}

// ---- samples and labels ----
// They are no content of a version: those of a later upload take their place.
static bool comes_along(StoreRole role)
{
        return role == STORE_SAMPLES || role == STORE_LABELS;
}

static const StorePart *part_of(const StoreVersion *version, StoreRole role)
{
        for (uint32_t i = 0; i < version->n_parts; i++)
                if (version->parts[i].role == role)
                        return &version->parts[i];
        return NULL;
}

bool engine_brings_others(const StoreVersion *sent, const StoreVersion *latest)
{
        for (uint32_t i = 0; i < sent->n_parts; i++) {
                const StorePart *part = &sent->parts[i], *has = part_of(latest, part->role);
                if (comes_along(part->role) &&
                    (has == NULL || memcmp(has->digest.hex, part->digest.hex, HASH_HEX_BYTES) != 0))
                        return true;
        }
        return false;
}

void engine_keep_along(const GraphVersion *latest, GraphVersion *version)
{
        StoreVersion *stored = &version->stored;
        for (uint32_t i = 0; i < latest->stored.n_parts; i++) {
                const StorePart *part = &latest->stored.parts[i];
                if (!comes_along(part->role) || part_of(stored, part->role) != NULL ||
                    atomic_load(&latest->state) == GRAPH_STATE_DAMAGED)
                        continue;
                if (part->holes != NULL)
                        refcount_get(&part->holes->ref);
                if (latest->bytes[i] != NULL)
                        version->bytes[stored->n_parts] = storage_ref(latest->bytes[i]);
                stored->parts[stored->n_parts++] = *part;
        }
}

// ---- loading ----
static Status load_pieces(Engine *engine, const StorePart *stored, Pieces *pieces)
{
        uint32_t n = stored->holes == NULL ? 0 : stored->holes->n;
        pieces->items = new_array(n, sizeof(*pieces->items));
        if (pieces->items == NULL)
                return fail_memory();
        for (; pieces->n < n; pieces->n++) {
                const StoreHole *hole = &stored->holes->items[pieces->n];
                Piece *piece = &pieces->items[pieces->n];
                Mapping *mapping;
                TRY(store_map_hole(engine->store, hole, &mapping));
                *piece = (Piece){ .offset = (size_t)hole->offset, .n = (size_t)hole->n };
                TRY(adopt_mapping(mapping, true, &piece->storage));
        }
        return STATUS_OK;
}

Status engine_part_bytes(Engine *engine, const GraphVersion *version, uint32_t index, Storage **out_bytes)
{
        Mapping *document;
        if (version->bytes[index] != NULL) {
                *out_bytes = storage_ref(version->bytes[index]);
                return STATUS_OK;
        }
        TRY(store_map_document(engine->store, &version->stored.parts[index], &document));
        return adopt_mapping(document, true, out_bytes);
}

Status engine_read_stored(Engine *engine, const GraphVersion *version, VersionRead read, void *context)
{
        _cleanup_(graph_version_unrefp) GraphVersion *now = NULL;
        for (;;) {
                Status status = read(engine, version, context);
                if (status != STATUS_DAMAGED)
                        return status;
                Failure failure = *failure_current();
                GraphVersion *found = NULL;
                engine_begin_change(engine);
                bool listed =
                        engine_find(engine, version->name, version->stored.version, &found) == STATUS_OK &&
                        memcmp(&found->key, &version->key, sizeof(found->key)) == 0;
                engine_end_change(engine);
                bool same = found == version;
                graph_version_unref(now);
                now = found;
                if (!listed)
                        return fail(STATUS_NOT_FOUND, "graph '%s' version %lld was deleted", version->name,
                                    (long long)version->stored.version);
                *failure_current() = failure;
                if (same)
                        return status;
                version = now;
        }
}

typedef struct PartRead {
        StoreRole role;
        Storage **out_bytes;
} PartRead;

static Status read_part(Engine *engine, const GraphVersion *version, void *context)
{
        const PartRead *part = context;
        for (uint32_t i = 0; i < version->stored.n_parts; i++)
                if (version->stored.parts[i].role == part->role)
                        return engine_part_bytes(engine, version, i, part->out_bytes);
        return fail(STATUS_NOT_FOUND, "graph '%s' version %lld has no %s", version->name,
                    (long long)version->stored.version, store_role_names[part->role]);
}

Status engine_part(Engine *engine, const GraphVersion *version, StoreRole role, Storage **out_bytes)
{
        PartRead part = { role, out_bytes };
        return engine_read_stored(engine, version, read_part, &part);
}

static Status load_part(Engine *engine, const GraphVersion *version, uint32_t index, UploadPart *part)
{
        TRY(engine_part_bytes(engine, version, index, &part->bytes));
        return version->bytes[index] != NULL
                       ? STATUS_OK
                       : load_pieces(engine, &version->stored.parts[index], part->pieces);
}

static Status unreadable(void)
{
        return fail(STATUS_DAMAGED,
                    "uploaded bytes in the data folder can no longer be read; upload the model again");
}

uint64_t engine_generation(Engine *engine)
{
        return atomic_load(&engine->n_damaged) +
               (engine->store == NULL ? 0 : store_n_rewrites(engine->store));
}

// The name that the part had in the upload.
static const char *part_name(const StoreVersion *version, StoreRole role)
{
        bool alone = role == STORE_GRAPH;
        for (uint32_t i = 0; i < version->n_parts && alone; i++)
                alone = version->parts[i].role != STORE_WEIGHTS;
        return alone ? "" : store_role_names[role];
}

Status engine_read_graph(Engine *engine, const GraphVersion *version, Graph **out_graph)
{
        UploadPart parts[STORE_MAX_PARTS] = { { .name = NULL } };
        Pieces pieces[STORE_MAX_PARTS] = { { .items = NULL } };
        const char *model = version->stored.model[0] == '\0' ? NULL : version->stored.model;
        if (version->kept != NULL) {
                *out_graph = graph_ref(version->kept);
                return STATUS_OK;
        }
        // taken before the bytes: old bytes under a newer generation would be trusted for good
        uint64_t generation = engine_generation(engine);
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (uint32_t i = 0; i < version->stored.n_parts && status == STATUS_OK; i++) {
                StoreRole role = version->stored.parts[i].role;
                if (role != STORE_GRAPH && role != STORE_WEIGHTS)
                        continue;
                parts[n].name = part_name(&version->stored, role);
                parts[n].pieces = &pieces[n];
                status = load_part(engine, version, i, &parts[n++]);
        }
        if (status == STATUS_OK)
                status = engine->loader.load(engine->loader.context, parts, n, model, out_graph);
        if (status == STATUS_OK) {
                graph_set_content(*out_graph, &version->key);
                (*out_graph)->generation = generation;
        }
        for (uint32_t i = 0; i < STORE_MAX_PARTS; i++) {
                if (is_unreadable(&parts[i])) {
                        if (status == STATUS_OK)
                                *out_graph = graph_unref(*out_graph);
                        status = unreadable();
                }
                storage_unref(parts[i].bytes);
                pieces_deinit(&pieces[i]);
        }
        return status;
}

// ---- damage ----
void engine_mark(Engine *engine, GraphVersion *version, Status status)
{
        if (status == STATUS_OK) {
                int unread = GRAPH_STATE_UNREAD;
                atomic_compare_exchange_strong(&version->state, &unread, GRAPH_STATE_READY);
                return;
        }
        // other failures, such as a lower limit, say nothing about the bytes
        if (status != STATUS_DAMAGED && status != STATUS_MALFORMED)
                return;
        pthread_mutex_lock(&engine->mutex);
        if (atomic_load(&version->state) != GRAPH_STATE_DAMAGED) { // the reason is written once
                const char *reason = failure_current()->message;
                version->reason = copy_text(reason, strlen(reason));
                atomic_store(&version->state, GRAPH_STATE_DAMAGED);
        }
        pthread_mutex_unlock(&engine->mutex);
}

void engine_set_content(Engine *engine, Graph *graph, const RegistryKey *key)
{
        graph_set_content(graph, key);
        graph->generation = engine_generation(engine);
}

static bool is_damaged(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_state; i++) {
                const Storage *storage = graph->state[i].tensor->storage;
                if (storage->data != NULL && mapping_damaged_at(storage->data))
                        return true;
        }
        return false;
}

// Child graphs are few and at most limits.max_child_graphs deep.
static bool is_damaged_anywhere(const Graph *graph, int64_t depth)
{
        if (is_damaged(graph))
                return true;
        for (uint32_t i = 0; i < graph->n_modules && depth > 0; i++)
                if (graph->modules[i]->graph != NULL &&
                    is_damaged_anywhere(graph->modules[i]->graph, depth - 1))
                        return true;
        return false;
}

// Marks every version whose decoded graph is this one.
static void mark_versions_of(Engine *engine, const Graph *graph)
{
        for (;;) {
                GraphVersion *found = NULL;
                pthread_mutex_lock(&engine->mutex);
                for (uint32_t i = 0; i < engine->graphs.n && found == NULL; i++) {
                        const EngineGraph *named = engine->graphs.entries[i].key == NULL
                                                           ? NULL
                                                           : engine->graphs.entries[i].value;
                        for (uint32_t v = 0; named != NULL && v < named->n_versions && found == NULL; v++) {
                                GraphVersion *version = named->versions[v];
                                if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                                        continue;
                                Graph *decoded = registry_peek(engine->decoded, &version->key);
                                if (decoded == graph)
                                        found = graph_version_ref(version);
                                graph_unref(decoded);
                        }
                }
                pthread_mutex_unlock(&engine->mutex);
                if (found == NULL)
                        return;
                engine_mark(engine, found, STATUS_DAMAGED);
                engine_say(engine, "graph '%s' version %lld is damaged: %s", found->name,
                           (long long)found->stored.version, graph_version_reason(found));
                graph_version_unref(found);
        }
}

static void drop_graph(Engine *engine, const Graph *graph)
{
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n; i++) {
                const EngineGraph *named =
                        engine->graphs.entries[i].key == NULL ? NULL : engine->graphs.entries[i].value;
                for (uint32_t v = 0; named != NULL && v < named->n_versions; v++) {
                        Graph *decoded = registry_peek(engine->decoded, &named->versions[v]->key);
                        if (decoded == graph)
                                registry_drop(engine->decoded, &named->versions[v]->key);
                        graph_unref(decoded);
                }
        }
        pthread_mutex_unlock(&engine->mutex);
        RegistryKey group;
        memcpy(group.bytes, graph->content, sizeof(group.bytes));
        if (graph->derived)
                registry_drop(engine->decoded, &group);
        registry_drop_group(engine->programs, &group);
}

Status engine_check_pages(Engine *engine, const Graph *graph)
{
        if (!mapping_faulted() || !is_damaged_anywhere(graph, limits.max_child_graphs))
                return STATUS_OK;
        atomic_fetch_add(&engine->n_damaged, 1u);
        Status status = unreadable();
        mark_versions_of(engine, graph);
        drop_graph(engine, graph);
        return status;
}

Status engine_check_program(Engine *engine, const PlannedRun *plan)
{
        const Graph *graph = plan->program == NULL ? NULL : plan->program->program->recording->graph;
        return graph == NULL || graph == plan->graph ? STATUS_OK : engine_check_pages(engine, graph);
}

// ---- scrubbing ----
// All versions (counted) that have not been used yet; *out_n of them. NULL: none, or out of memory.
static GraphVersion **unread_versions(Engine *engine, uint32_t *out_n)
{
        GraphVersion **found = NULL;
        uint32_t n = 0, capacity = 0;
        pthread_mutex_lock(&engine->mutex);
        for (uint32_t i = 0; i < engine->graphs.n; i++) {
                const EngineGraph *graph =
                        engine->graphs.entries[i].key == NULL ? NULL : engine->graphs.entries[i].value;
                if (graph == NULL ||
                    array_reserve(&found, &capacity, n + graph->n_versions, sizeof(*found)) != STATUS_OK)
                        continue;
                for (uint32_t v = 0; v < graph->n_versions; v++)
                        if (atomic_load(&graph->versions[v]->state) == GRAPH_STATE_UNREAD)
                                found[n++] = graph_version_ref(graph->versions[v]);
        }
        pthread_mutex_unlock(&engine->mutex);
        *out_n = n;
        return found;
}

static void scrub_version(Engine *engine, GraphVersion *version)
{
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < version->stored.n_parts && status == STATUS_OK; i++)
                status = store_scrub_part(engine->store, &version->stored.parts[i], &engine->stopping);
        if (status != STATUS_DAMAGED)
                return;
        engine_mark(engine, version, status);
        engine_say(engine, "graph '%s' version %lld is damaged: %s", version->name,
                   (long long)version->stored.version, graph_version_reason(version));
}

static void *scrub(void *argument)
{
        Engine *engine = argument;
        uint32_t n;
        const struct sched_param idle = { .sched_priority = 0 };
        pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);
        GraphVersion **versions = unread_versions(engine, &n);
        for (uint32_t i = 0; i < n; i++) {
                if (!atomic_load(&engine->stopping) && atomic_load(&versions[i]->state) == GRAPH_STATE_UNREAD)
                        scrub_version(engine, versions[i]);
                graph_version_unref(versions[i]);
        }
        free(versions);
        return NULL;
}

void engine_start_scrub(Engine *engine)
{
        engine->scrubbing =
                engine->store != NULL && pthread_create(&engine->scrubber, NULL, scrub, engine) == 0;
}

void engine_stop_scrub(Engine *engine)
{
        const struct sched_param normal = { .sched_priority = 0 };
        atomic_store(&engine->stopping, true);
        if (engine->scrubbing) {
                // back to normal priority: on a busy machine an idle thread would take long to end
                pthread_setschedparam(engine->scrubber, SCHED_OTHER, &normal);
                pthread_join(engine->scrubber, NULL);
        }
        engine->scrubbing = false;
}
