// SPDX-License-Identifier: Apache-2.0
// pt2_weights.c: a config lists tensors by dotted path; each is a strided view of the raw bytes of
// one member, and members may be shared (tied weights, views of one storage). A member that is
// stored and lies at a multiple of 64 bytes in memory is used where it is; any other is copied
// once. Pieces (core/tensor/pieces.h) come first.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "core/base/limits.h"

typedef struct Payload {
        const char *path;   // "layer.weight"
        const char *member; // "weight_3"
        bool is_parameter;
        Pt2TensorMeta meta;
} Payload;

void pt2_weights_deinit(Pt2Weights *weights)
{
        for (uint32_t i = 0; i < weights->storages.n; i++) {
                if (weights->storages.entries[i].key != NULL)
                        storage_unref(weights->storages.entries[i].value);
        }
        string_map_deinit(&weights->storages);
        string_map_deinit(&weights->checked_bools);
}

static void release_archive(void *owner, void *data)
{
        (void)data;
        storage_unref(owner);
}

// Takes over the content of a member: in place when it can be, else as a copy.
static Status storage_of(Pt2Weights *weights, const ZipEntry *entry, const ZipContent *content,
                         Storage **out_storage)
{
        const uint8_t *data = content->span.data;
        size_t n = content->span.n;
        bool shared = weights->archive_storage != NULL && content->owned == NULL && n > 0 &&
                      pieces_usable(weights->pieces, data, entry->offset, n, STORAGE_ALIGN);
        if (shared) {
                _cleanup_(storage_unrefp) Storage *part = NULL;
                Storage *archive = storage_ref(weights->archive_storage);
                Status status =
                        storage_adopt((void *)(uintptr_t)data, n, true, release_archive, archive, &part);
                if (status != STATUS_OK) {
                        storage_unref(archive);
                        return status;
                }
                if (pieces_collect(weights->pieces))
                        TRY(pieces_add(weights->pieces, entry->offset, entry->packed_bytes, part));
                *out_storage = take_ptr(part);
                return STATUS_OK;
        }
        Storage *storage;
        TRY(storage_new(content->span.n, false, NULL, &storage));
        if (content->span.n > 0)
                memcpy(storage->data, data, content->span.n);
        storage->readonly = true;
        *out_storage = storage;
        return STATUS_OK;
}

// A large deflated member, inflated into an unnamed file so that it takes no memory.
static Status inflate_piece(Pt2Weights *weights, const ZipEntry *entry, Storage **out_storage)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(weights->pieces->new_bytes(weights->pieces->context, entry->n_bytes, &storage));
        TRY(zip_read_into(weights->zip, entry, storage->data));
        storage->readonly = true;
        TRY(pieces_add(weights->pieces, entry->offset, entry->packed_bytes, storage));
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

// Deflated weights in memory. Files of this machine may take what memory there is; many small
// members of theirs may not grow beyond the factor that holds for each large one.
static Status count_inflated(Pt2Weights *weights, const ZipEntry *entry)
{
        const bool is_upload = pieces_of_upload(weights->pieces);
        size_t most = (size_t)limits.max_inflated, grown;
        if (!is_upload && weights->archive_storage != NULL &&
            !__builtin_mul_overflow(weights->archive_storage->n_bytes, (size_t)limits.max_inflate_ratio,
                                    &grown))
                most = MAX(most, grown);
        if (!is_upload && limits.max_memory > 0)
                most = MIN(most, (size_t)limits.max_memory);
        if (add_size(weights->n_inflated, entry->n_bytes, &weights->n_inflated) &&
            weights->n_inflated <= most)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "the deflated weights of the archive inflate to more than %zu bytes (%s); save it "
                    "uncompressed",
                    most,
                    is_upload ? "max_inflated in GET /v1" : "max_inflate_ratio in GET /v1, --max-memory");
}

static Status read_member(Pt2Weights *weights, const ZipEntry *entry, Storage **out_storage)
{
        Storage *piece = pieces_find(weights->pieces, entry->offset, entry->packed_bytes);
        if (piece != NULL && piece->n_bytes == entry->n_bytes) {
                *out_storage = storage_ref(piece);
                return STATUS_OK;
        }
        if (entry->deflated && entry->n_bytes >= PIECE_MIN_BYTES && entry->packed_bytes > 0 &&
            pieces_collect(weights->pieces))
                return inflate_piece(weights, entry, out_storage);
        if (entry->deflated)
                TRY(count_inflated(weights, entry));
        _cleanup_(zip_content_deinit) ZipContent content = { 0 };
        TRY(zip_read(weights->zip, entry, SIZE_MAX, &content));
        return storage_of(weights, entry, &content, out_storage);
}

static Status find_storage(Pt2Weights *weights, const char *member, const char *path, Storage **out_storage)
{
        Storage *known = string_map_get(&weights->storages, member);
        if (known != NULL) {
                *out_storage = known;
                return STATUS_OK;
        }
        const ZipEntry *entry = zip_find(weights->zip, member);
        if (entry == NULL)
                return fail(STATUS_MALFORMED, "the archive has no member \"%s\", which holds \"%s\"", member,
                            path);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(read_member(weights, entry, &storage));
        TRY(string_map_set(&weights->storages, entry->name, storage, NULL));
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

static Status read_payload(Pt2Weights *weights, const char *path, JsonText text, Payload *out_payload)
{
        static const char *const names[] = { "path_name", "is_param", "use_pickle", "tensor_meta" };
        JsonText fields[4];
        bool pickled;
        Payload payload = { .path = path };
        TRY(json_text_fields(text, "an entry of the weights config", weights->scratch, names, 4, fields));
        TRY(json_text_string(fields[0], weights->scratch, &payload.member));
        TRY(json_text_bool(fields[1], weights->scratch, false, &payload.is_parameter));
        TRY(json_text_bool(fields[2], weights->scratch, false, &pickled));
        if (payload.member == NULL)
                return fail(STATUS_MALFORMED, "\"%s\" has no \"path_name\" in the weights config", path);
        if (strncmp(payload.member, "custom_obj_", 11) == 0 ||
            strncmp(payload.member, "opaque_obj_", 11) == 0)
                return fail(
                        STATUS_UNSUPPORTED,
                        "\"%s\" is a pickled Python object; such objects are code and are never loaded here",
                        path);
        if (pickled)
                return fail(STATUS_UNSUPPORTED,
                            "\"%s\" is saved as a pickle (a tensor subclass), which is code and is never "
                            "loaded here; make it a plain "
                            "tensor and export again",
                            path);
        if (fields[3].n == 0)
                return fail(STATUS_MALFORMED, "\"%s\" has no \"tensor_meta\" in the weights config", path);
        TRY(pt2_read_tensor_meta(NULL, weights->scratch, fields[3], &payload.meta));
        *out_payload = payload;
        return STATUS_OK;
}

// The description as a meta whose sizes and strides are proven.
static Status tensor_meta_of(const Payload *payload, TensorMeta *out_meta)
{
        const Pt2TensorMeta *from = &payload->meta;
        const char *name = pt2_dtype_name(from->dtype_code);
        if (from->dtype == DTYPE_NONE && name != NULL)
                return fail(STATUS_UNSUPPORTED, "\"%s\" has dtype torch.%s, which is not supported",
                            payload->path, name);
        if (from->dtype == DTYPE_NONE)
                return fail(STATUS_MALFORMED,
                            "\"%s\" has scalar type %lld, which is not one of torch.export's", payload->path,
                            (long long)from->dtype_code);
        if (from->layout != 7)
                return fail(STATUS_UNSUPPORTED, "\"%s\" is not a strided (dense) tensor", payload->path);
        if (from->rank < 0)
                return fail(STATUS_UNSUPPORTED, "\"%s\" has more than %d dimensions", payload->path,
                            MAX_RANK);
        TensorMeta meta = { .dtype = from->dtype, .rank = (uint8_t)from->rank };
        for (int i = 0; i < from->rank; i++) {
                meta.size[i] = from->size[i].value;
                meta.stride[i] = from->stride[i].value;
                if (meta.size[i] < 0 || meta.stride[i] < 0)
                        return fail(STATUS_MALFORMED, "\"%s\" has a negative size or stride", payload->path);
        }
        int64_t numel;
        TRY(shape_numel(from->rank, meta.size, &numel));
        *out_meta = meta;
        return STATUS_OK;
}

// Booleans are read as bytes of 0 or 1 everywhere; anything else would be undefined. Once per
// member, however many tensors view it.
static Status check_bools(Pt2Weights *weights, const char *member, const Storage *storage, const char *path)
{
        if (string_map_get(&weights->checked_bools, member) != NULL)
                return STATUS_OK;
        TRY(string_map_set(&weights->checked_bools, member, (void *)(uintptr_t)member, NULL));
        for (size_t i = 0; i < storage->n_bytes; i++) {
                if (storage->data[i] > 1)
                        return fail(STATUS_MALFORMED, "\"%s\" is bool and holds a byte %u", path,
                                    storage->data[i]);
        }
        return STATUS_OK;
}

static Status add_tensor(Pt2Weights *weights, const Payload *payload, const char *folder, bool persistent,
                         Graph *graph)
{
        TensorMeta meta;
        Storage *storage = NULL;
        Tensor *tensor;
        State *state;
        TRY(tensor_meta_of(payload, &meta));
        const char *member = arena_format(weights->scratch, "%s%s", folder, payload->member);
        if (member == NULL)
                return fail_memory();
        TRY(find_storage(weights, member, payload->path, &storage));
        if (storage->n_bytes == 0 && meta_numel(&meta) > 0)
                return fail(
                        STATUS_MISSING_STATE,
                        "\"%s\" was saved without data (a fake tensor); export the model with real weights",
                        payload->path);
        if (payload->meta.storage_offset < 0)
                return fail(STATUS_MALFORMED, "\"%s\" has a negative storage offset", payload->path);
        if (meta_numel(&meta) > 0 &&
            tensor_check_bounds(&meta, payload->meta.storage_offset, storage->n_bytes) != STATUS_OK)
                return fail(STATUS_MALFORMED, "\"%s\" reaches beyond the %zu bytes of its member \"%s\"",
                            payload->path, storage->n_bytes, payload->member);
        if (meta.dtype == DTYPE_BOOL)
                TRY(check_bools(weights, member, storage, payload->path));
        int64_t offset = meta_numel(&meta) > 0 ? payload->meta.storage_offset : 0;
        TRY(tensor_new_view(storage, &meta, offset, &tensor));
        if (graph_state(graph, payload->path) != NULL) {
                tensor_unref(tensor);
                return fail(STATUS_MALFORMED, "\"%s\" stands among the weights and among the constants",
                            payload->path);
        }
        TRY(graph_add_state(graph, payload->path, tensor, &state));
        state->is_parameter = payload->is_parameter;
        state->persistent = persistent;
        return STATUS_OK;
}

Status pt2_weights_read(Pt2Weights *weights, JsonText config, const char *folder, bool persistent,
                        Graph *graph)
{
        static const char *const names[] = { "config" };
        JsonText entries;
        TRY(json_text_fields(config, "the weights config", weights->scratch, names, 1, &entries));
        if (entries.n == 0)
                return fail(STATUS_MALFORMED, "the weights config has no \"config\"");
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(entries, weights->scratch, &reader));
        TRY(json_enter_object(reader));
        for (;;) {
                const char *path;
                bool more;
                JsonText raw;
                Payload payload = { 0 };
                TRY(json_next_key(reader, &path, &more));
                if (!more)
                        return STATUS_OK;
                TRY(json_read_raw(reader, &raw.text, &raw.n));
                TRY(failure_at_argument(read_payload(weights, path, raw, &payload), path));
                TRY(failure_at_argument(add_tensor(weights, &payload, folder, persistent, graph), path));
        }
}
