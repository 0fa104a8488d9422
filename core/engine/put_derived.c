// SPDX-License-Identifier: Apache-2.0
// put_derived.c: derived graphs as results of their own: the complete FX JSON, a weights file, the
// derivation. The weights file exists only as a head, small tensors, and holes: large storages are
// the base's, whose blobs are named, not copied. It is laid out in memory that is never touched
// where the holes are. What is kept is first read back, so that what is served is what a restart
// will serve.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/clock.h"
#include "core/edit/content.h"
#include "core/engine/private.h"
#include "core/graph/print.h"
#include "core/graph/storages.h"

enum { PART_GRAPH, PART_WEIGHTS, PART_RECIPE, N_PARTS };

typedef struct Derived {
        Arena arena; // names
        const char **names;
        Tensor **tensors; // counted, dense, each the whole of its storage
        size_t *begins;   // in the weights file
        uint32_t n, capacity;
        StateStorages storages;
        bool *seen;     // of the storages
        size_t n_bytes; // of the weights file
        Pieces pieces[N_PARTS];
        UploadPart parts[N_PARTS + 1]; // samples come last
        uint32_t n_parts;
} Derived;

static void derived_deinit(Derived *derived)
{
        for (uint32_t i = 0; i < derived->n; i++)
                tensor_unref(derived->tensors[i]);
        for (uint32_t i = 0; i < ARRAY_LENGTH(derived->parts); i++)
                storage_unref(derived->parts[i].bytes);
        for (uint32_t i = 0; i < N_PARTS; i++)
                pieces_deinit(&derived->pieces[i]);
        free(derived->names);
        free(derived->tensors);
        free(derived->begins);
        free(derived->seen);
        state_storages_deinit(&derived->storages);
        arena_deinit(&derived->arena);
}

// ---- the tensors of the weights file ----
// A storage as a tensor of the widest integers that fill it, so that its bytes are aligned for
// whatever lies in it.
static Status raw_tensor(Storage *storage, Tensor **out_tensor)
{
        static const Dtype dtypes[] = { DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_U8 };
        TensorMeta meta;
        size_t i = 0;
        while (storage->n_bytes % dtype_info[dtypes[i]].bytes != 0)
                i++;
        int64_t numel = (int64_t)(storage->n_bytes / dtype_info[dtypes[i]].bytes);
        meta_init(&meta, dtypes[i], 1, &numel);
        return tensor_new_view(storage, &meta, 0, out_tensor);
}

static Status add_tensor(void *context, const char *path, const State *state)
{
        Derived *derived = context;
        const StateStorage *storage = state_storages_find(&derived->storages, state->tensor->storage);
        bool *seen = &derived->seen[storage - derived->storages.items];
        char name[STORAGE_NAME_MAX];
        if (*seen)
                return STATUS_OK;
        *seen = true;
        if (storage->is_named)
                state_storage_name(storage, name);
        const char *text = storage->is_named ? name : path;
        const char *kept = arena_text(&derived->arena, text, strlen(text));
        if (kept == NULL)
                return fail_memory();
        derived->names[derived->n] = kept;
        if (storage->is_named)
                TRY(raw_tensor(storage->storage, &derived->tensors[derived->n]));
        else
                derived->tensors[derived->n] = tensor_ref(state->tensor);
        derived->n++;
        return STATUS_OK;
}

static Status collect(Derived *derived, const Graph *graph)
{
        TRY(state_storages_of(graph, &derived->storages));
        uint32_t n = derived->storages.n;
        derived->names = new_array(n, sizeof(char *));
        derived->tensors = new_array(n, sizeof(Tensor *));
        derived->begins = new_array(n, sizeof(size_t));
        derived->seen = new_array(n, sizeof(bool));
        derived->pieces[PART_WEIGHTS].items = new_array(n, sizeof(Piece));
        if (derived->names == NULL || derived->tensors == NULL || derived->begins == NULL ||
            derived->seen == NULL || derived->pieces[PART_WEIGHTS].items == NULL)
                return fail_memory();
        return graph_each_state(graph, &derived->arena, add_tensor, derived);
}

// ---- the parts ----
static void release_text(void *owner, void *data)
{
        (void)owner;
        free(data);
}

static Status text_part(const char *name, Text *take_text, UploadPart *out_part)
{
        size_t n = take_text->n;
        char *data = text_take(take_text);
        if (data == NULL)
                return fail_memory();
        Status status = storage_adopt(data, n, true, release_text, NULL, &out_part->bytes);
        if (status != STATUS_OK) {
                free(data);
                return status;
        }
        out_part->name = name;
        out_part->digest = sha256_of(out_part->bytes->data, n);
        return STATUS_OK;
}

static void release_pages(void *owner, void *data)
{
        size_t *n_bytes = owner;
        munmap(data, *n_bytes);
        free(n_bytes);
}

// Zeros that take no memory until they are written.
static Status new_pages(size_t n_bytes, Storage **out_storage)
{
        size_t *kept = malloc(sizeof(*kept));
        if (kept == NULL)
                return fail_memory();
        *kept = n_bytes;
        void *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                           -1, 0);
        if (pages == MAP_FAILED) {
                free(kept);
                return fail_memory();
        }
        Status status = storage_adopt(pages, n_bytes, false, release_pages, kept, out_storage);
        if (status != STATUS_OK)
                release_pages(kept, pages);
        return status;
}

static Status weights_part(const Engine *engine, Derived *derived)
{
        _cleanup_(text_deinit) Text head = { 0 };
        UploadPart *part = &derived->parts[PART_WEIGHTS];
        Pieces *pieces = &derived->pieces[PART_WEIGHTS];
        TRY(engine->loader.weights_head(derived->names, derived->tensors, derived->n, &head,
                                        derived->begins));
        size_t n_bytes = head.n;
        for (uint32_t i = 0; i < derived->n; i++)
                if (!add_size(n_bytes, derived->tensors[i]->storage->n_bytes, &n_bytes))
                        return fail(STATUS_TOO_LARGE, "the state is larger than any memory");
        TRY(new_pages(n_bytes, &part->bytes));
        memcpy(part->bytes->data, head.data, head.n);
        for (uint32_t i = 0; i < derived->n; i++) {
                Storage *storage = derived->tensors[i]->storage;
                if (storage->n_bytes >= PIECE_MIN_BYTES)
                        pieces->items[pieces->n++] =
                                (Piece){ derived->begins[i], storage->n_bytes, storage_ref(storage) };
                else if (storage->n_bytes > 0)
                        memcpy(part->bytes->data + derived->begins[i], storage->data, storage->n_bytes);
        }
        pieces_sort(pieces);
        part->bytes->readonly = true;
        part->name = store_role_names[STORE_WEIGHTS];
        // with holes it names nothing: the document and the holes have digests of their own
        part->digest = pieces->n == 0 ? sha256_of(part->bytes->data, n_bytes) : sha256_of(head.data, head.n);
        return STATUS_OK;
}

static void add_source(const GraphVersion *version, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, version->name);
        text_addf(out, ", \"version\": %lld, \"id\": \"%s\"}", (long long)version->stored.version,
                  version->stored.id.hex);
}

static Status recipe_part(const DerivedPut *put, UploadPart *out_part)
{
        Text text = { 0 };
        text_add(&text, "{\"base\": ");
        if (put->base == NULL)
                text_add(&text, "null");
        else
                add_source(put->base, &text);
        text_add(&text, ", \"calls\": [");
        for (uint32_t i = 0; i < put->n_called; i++) {
                text_add(&text, i == 0 ? "" : ", ");
                add_source(put->called[i], &text);
        }
        text_add(&text, "], \"recipe\": ");
        text_add_n(&text, (const char *)put->recipe.data, put->recipe.n);
        if (put->diff != NULL) {
                text_add(&text, ", \"diff\": ");
                text_add_json(&text, put->diff);
        }
        text_add_char(&text, '}');
        return text_part(store_role_names[STORE_RECIPE], &text, out_part);
}

static Status make_parts(const Engine *engine, const DerivedPut *put, Derived *derived)
{
        Text json = { 0 };
        Status status = graph_print_json(put->graph, NULL, NULL, &json);
        if (status != STATUS_OK) {
                text_deinit(&json);
                return status;
        }
        TRY(text_part(store_role_names[STORE_GRAPH], &json, &derived->parts[PART_GRAPH]));
        TRY(collect(derived, put->graph));
        TRY(weights_part(engine, derived));
        TRY(recipe_part(put, &derived->parts[PART_RECIPE]));
        for (int i = 0; i < N_PARTS; i++)
                derived->parts[i].pieces = &derived->pieces[i];
        derived->n_parts = N_PARTS;
        if (put->samples != NULL)
                derived->parts[derived->n_parts++] =
                        (UploadPart){ .name = store_role_names[STORE_SAMPLES],
                                      .bytes = storage_ref(put->samples),
                                      .digest = sha256_of(put->samples->data, put->samples->n_bytes) };
        return STATUS_OK;
}

// ---- the version ----
static void content_of(const GraphVersion *version, uint64_t out_content[4])
{
        memcpy(out_content, version->key.bytes, sizeof(version->key.bytes));
}

static Status derived_content(const DerivedPut *put, uint64_t out_content[4])
{
        uint64_t base[4];
        _cleanup_(freep) uint64_t(*called)[4] = new_array(put->n_called, sizeof(*called));
        if (called == NULL)
                return fail_memory();
        if (put->base == NULL) {
                memcpy(out_content, put->content, sizeof(base));
                return STATUS_OK;
        }
        content_of(put->base, base);
        for (uint32_t i = 0; i < put->n_called; i++)
                content_of(put->called[i], called[i]);
        edit_content(base, (const char *)put->recipe.data, put->recipe.n, (const uint64_t(*)[4])called,
                     put->n_called, out_content);
        return STATUS_OK;
}

static Status identify(const DerivedPut *put, const Derived *derived, StoreVersion *out_version)
{
        uint64_t content[4];
        TRY(derived_content(put, content));
        StoreVersion version = { .id = content_hex(content),
                                 .created_ms = clock_wall_ms(),
                                 .n_parts = derived->n_parts,
                                 .format = "fx" };
        for (uint32_t i = 0; i < derived->n_parts; i++) {
                version.parts[i].role = upload_role(derived->parts[i].name);
                version.parts[i].digest = derived->parts[i].digest;
                version.parts[i].n_bytes = derived->parts[i].bytes->n_bytes;
        }
        *out_version = version;
        return STATUS_OK;
}

// What observes a run is no part of what a graph computes.
static Status check_authored(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i]->internal)
                        return fail(STATUS_VALUE, "\"observe\" and \"halt_on\" are for the rules of a run; "
                                                  "what is stored has actions only");
        }
        return STATUS_OK;
}

static Status put_derived(Engine *engine, const DerivedPut *put, Derived *derived, GraphVersion **out_version,
                          bool *out_created)
{
        StoreVersion identified;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(check_authored(put->graph));
        TRY(make_parts(engine, put, derived));
        TRY(identify(put, derived, &identified));
        TRY(engine->loader.load(engine->loader.context, derived->parts, N_PARTS, NULL, &graph));
        const PutRequest request = { .name = put->name,
                                     .parts = derived->parts,
                                     .n_parts = derived->n_parts,
                                     .identified = &identified,
                                     .graph = graph,
                                     .only_if = put->only_if,
                                     .owner = put->owner,
                                     .keep_graph = true };
        return engine_put(engine, &request, out_version, out_created);
}

Status engine_put_derived(Engine *engine, const DerivedPut *put, GraphVersion **out_version,
                          bool *out_created)
{
        Derived derived = { .n = 0 };
        arena_init(&derived.arena, 0);
        Status status = put_derived(engine, put, &derived, out_version, out_created);
        derived_deinit(&derived);
        return status;
}

Status engine_derivation(Engine *engine, const GraphVersion *version, Text *out)
{
        for (uint32_t i = 0; i < version->stored.n_parts; i++) {
                if (version->stored.parts[i].role != STORE_RECIPE)
                        continue;
                _cleanup_(storage_unrefp) Storage *bytes = NULL;
                TRY(engine_part(engine, version, STORE_RECIPE, &bytes));
                text_add_n(out, (const char *)bytes->data, bytes->n_bytes);
        }
        return text_status(out);
}
