// SPDX-License-Identifier: Apache-2.0
// fx_json_storage.c: tensors that share a storage, or lie in one in their own way. The weights file
// may hold the storage itself, under its name. Otherwise it is made of its entries, which come
// dense: each is put in its place, and where they overlap they must agree.
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "core/base/limits.h"

static FxStorage *find_storage(const FxReader *reader, const char *name)
{
        uintptr_t found = (uintptr_t)string_map_get(&reader->storage_by_name, name);
        return found == 0 ? NULL : &reader->storages[found - 1];
}

Status fx_note_storage(FxReader *reader, const char *name)
{
        if (find_storage(reader, name) != NULL)
                return STATUS_OK;
        TRY(array_reserve(&reader->storages, &reader->storages_capacity, reader->n_storages + 1,
                          sizeof(FxStorage)));
        TRY(string_map_set(&reader->storage_by_name, name, (void *)(uintptr_t)(reader->n_storages + 1),
                           NULL));
        reader->storages[reader->n_storages++] = (FxStorage){ .name = name };
        return STATUS_OK;
}

Status fx_take_storage(FxReader *reader, const char *path, Tensor *tensor, bool *out_taken)
{
        FxStorage *storage = find_storage(reader, path);
        *out_taken = storage != NULL;
        if (storage != NULL)
                storage->given = tensor_ref(tensor);
        return STATUS_OK;
}

// ---- one entry ----
static bool is_there(const FxReader *reader, const FxEntry *entry)
{
        return entry->place.storage != NULL &&
               (entry->tensor != NULL || find_storage(reader, entry->place.storage)->given != NULL);
}

// How the entry lies in its storage; all sizes and the span are checked.
static Status meta_of(const FxEntry *entry, TensorMeta *out_meta, size_t *out_end)
{
        int64_t numel, span;
        size_t end = 0;
        TRY(shape_numel(entry->rank, entry->shape, &numel));
        meta_init(out_meta, entry->dtype, entry->rank, entry->shape);
        for (int d = 0; d < entry->place.n_strides; d++)
                out_meta->stride[d] = entry->place.stride[d];
        TRY(meta_span(out_meta, &span));
        if (numel > 0 && (!add_size((size_t)span, (size_t)entry->place.offset, &end) ||
                          !mul_size(end, dtype_info[entry->dtype].bytes, &end)))
                return fail(STATUS_TOO_LARGE, "\"stride\" and \"offset\" reach beyond any memory");
        *out_end = end;
        return STATUS_OK;
}

static Status note_end(FxReader *reader, FxEntry *entry)
{
        TensorMeta meta;
        size_t end;
        if (!is_there(reader, entry))
                return STATUS_OK;
        TRY(meta_of(entry, &meta, &end));
        FxStorage *storage = find_storage(reader, entry->place.storage);
        if (storage->given != NULL && entry->tensor != NULL)
                return fail(STATUS_MALFORMED,
                            "the weights hold this tensor and its storage \"%.60s\"; send one of them",
                            storage->name);
        if (storage->given != NULL && end > storage->given->storage->n_bytes)
                return fail(STATUS_MALFORMED,
                            "the tensor reaches beyond the %zu bytes of its storage \"%.60s\"",
                            storage->given->storage->n_bytes, storage->name);
        storage->n_bytes = MAX(storage->n_bytes, end);
        storage->width = MAX(storage->width, dtype_info[entry->dtype].bytes);
        return STATUS_OK;
}

// ---- storages that are made ----
static Status new_storage(FxReader *reader, const FxStorage *storage, size_t n_bytes, Storage **out_storage)
{
        if (!add_size(reader->made_bytes, n_bytes, &reader->made_bytes) ||
            reader->made_bytes > (size_t)limits.max_upload_in_memory + reader->dense_bytes)
                return fail(STATUS_TOO_LARGE,
                            "the storages of the state, such as \"%.60s\", take over %lld bytes more than "
                            "the tensors sent (--max-upload-in-memory)",
                            storage->name, (long long)limits.max_upload_in_memory);
        return storage_new(n_bytes, true, NULL, out_storage);
}

static Status make_storage(FxReader *reader, FxStorage *storage)
{
        return storage->made != NULL ? STATUS_OK
                                     : new_storage(reader, storage, storage->n_bytes, &storage->made);
}

// In a file a tensor is aligned to its elements. Wider ones need a copy that is aligned for them.
static Status adopt_given(FxReader *reader, FxStorage *storage)
{
        Storage *given = storage->given->storage;
        if (storage->width <= dtype_info[storage->given->meta.dtype].bytes ||
            dtype_info[storage->given->meta.dtype].bytes >= 8) {
                storage->made = storage_ref(given);
                return STATUS_OK;
        }
        TRY(new_storage(reader, storage, given->n_bytes, &storage->made));
        if (given->n_bytes > 0)
                memcpy(storage->made->data, given->data, given->n_bytes);
        return STATUS_OK;
}

// An entry that is all of the storage, in order: its bytes serve for it.
static Status adopt_whole(FxReader *reader, FxEntry *entry)
{
        TensorMeta meta;
        size_t end;
        if (!is_there(reader, entry))
                return STATUS_OK;
        FxStorage *storage = find_storage(reader, entry->place.storage);
        TRY(meta_of(entry, &meta, &end));
        if (storage->made == NULL && storage->given != NULL)
                TRY(adopt_given(reader, storage));
        if (storage->made == NULL && entry->place.offset == 0 && meta_is_contiguous(&meta) &&
            end == storage->n_bytes && entry->tensor->storage->n_bytes == end)
                storage->made = storage_ref(entry->tensor->storage);
        return STATUS_OK;
}

static Status count_dense(FxReader *reader, FxEntry *entry)
{
        if (entry->place.storage != NULL && entry->tensor != NULL &&
            !add_size(reader->dense_bytes, entry->tensor->storage->n_bytes, &reader->dense_bytes))
                return fail(STATUS_TOO_LARGE, "the state is larger than any memory");
        return STATUS_OK;
}

static Status view_of(const FxReader *reader, const FxEntry *entry, Tensor **out_view)
{
        TensorMeta meta;
        size_t end;
        TRY(meta_of(entry, &meta, &end));
        int64_t offset = end == 0 ? 0 : entry->place.offset;
        return tensor_new_view(find_storage(reader, entry->place.storage)->made, &meta, offset, out_view);
}

static Status write_entry(FxReader *reader, FxEntry *entry)
{
        if (!is_there(reader, entry) || entry->tensor == NULL ||
            find_storage(reader, entry->place.storage)->made == entry->tensor->storage)
                return STATUS_OK;
        FxStorage *storage = find_storage(reader, entry->place.storage);
        _cleanup_(tensor_unrefp) Tensor *view = NULL;
        TRY(view_of(reader, entry, &view));
        if (!storage->is_adopted)
                tensor_copy_data(entry->tensor, view);
        return STATUS_OK;
}

// Booleans are read as bytes of 0 or 1 everywhere.
static Status check_bools(const Storage *storage)
{
        for (size_t i = 0; i < storage->n_bytes; i++) {
                if (storage->data[i] > 1)
                        return fail(STATUS_MALFORMED, "the tensor is bool and its storage holds a byte %u",
                                    storage->data[i]);
        }
        return STATUS_OK;
}

// What was written by one entry must not have been overwritten by another with other numbers.
static Status settle_entry(FxReader *reader, FxEntry *entry)
{
        if (!is_there(reader, entry))
                return STATUS_OK;
        const FxStorage *storage = find_storage(reader, entry->place.storage);
        _cleanup_(tensor_unrefp) Tensor *view = NULL, *dense = NULL;
        TRY(view_of(reader, entry, &view));
        if (entry->tensor != NULL && entry->tensor->storage != storage->made) {
                TRY(tensor_contiguous(view, NULL, &dense));
                size_t n_bytes = (size_t)meta_numel(&dense->meta) * dtype_info[dense->meta.dtype].bytes;
                if (n_bytes > 0 && memcmp(tensor_data(dense), tensor_data(entry->tensor), n_bytes) != 0)
                        return fail(STATUS_VALUE,
                                    "another tensor of the storage \"%.60s\" holds other numbers at the same "
                                    "place",
                                    storage->name);
        } else if (storage->given != NULL && entry->dtype == DTYPE_BOOL) {
                TRY(check_bools(storage->made));
        }
        tensor_unref(entry->tensor);
        entry->tensor = take_ptr(view);
        return STATUS_OK;
}

static Status each_placed(FxReader *reader, Status (*visit)(FxReader *reader, FxEntry *entry))
{
        for (uint32_t i = 0; i < reader->n_entries; i++) {
                if (reader->entries[i].place.storage == NULL)
                        continue;
                size_t outer = fx_enter(reader, "state \"%.100s\"", reader->entries[i].path);
                TRY(visit(reader, &reader->entries[i]));
                fx_leave(reader, outer);
        }
        return STATUS_OK;
}

Status fx_place_state(FxReader *reader)
{
        TRY(each_placed(reader, note_end));
        TRY(each_placed(reader, count_dense));
        TRY(each_placed(reader, adopt_whole));
        for (uint32_t i = 0; i < reader->n_storages; i++) {
                FxStorage *storage = &reader->storages[i];
                storage->is_adopted = storage->made != NULL;
                TRY(make_storage(reader, storage));
        }
        TRY(each_placed(reader, write_entry));
        for (uint32_t i = 0; i < reader->n_storages; i++)
                reader->storages[i].made->readonly = true;
        return each_placed(reader, settle_entry);
}
