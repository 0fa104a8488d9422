// SPDX-License-Identifier: Apache-2.0
// storage.c: refcounted bytes. Own bytes are allocated here and charged to a budget; adopted bytes
// belong to whoever handed them over until the last reference goes; a shell borrows its origin's
// bytes until the first write, when it gets own ones.
#include "core/tensor/tensor.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static Status charge(size_t n_bytes, Budget *budget)
{
        if (budget_take(budget, n_bytes))
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "the tensors of this run need more than %zu bytes, which is over --max-run-memory",
                    budget->limit);
}

static Status take_bytes(size_t n_bytes, Budget *budget, uint8_t **out_data)
{
        size_t rounded;
        if (!add_size(n_bytes, STORAGE_ALIGN - 1, &rounded))
                return fail(STATUS_TOO_LARGE, "a tensor of %zu bytes is over --max-run-memory", n_bytes);
        rounded &= ~(size_t)(STORAGE_ALIGN - 1);
        TRY(charge(n_bytes, budget));
        uint8_t *data = n_bytes == 0 ? NULL : aligned_alloc(STORAGE_ALIGN, rounded);
        if (data == NULL && n_bytes > 0) {
                budget_give(budget, n_bytes);
                return fail_memory();
        }
        memory_prefer_huge(data, rounded);
        *out_data = data;
        return STATUS_OK;
}

// Header and bytes in one block: an eager run makes one storage per node, and a second, aligned
// allocation costs more than many kernels.
Status storage_new(size_t n_bytes, bool zeroed, Budget *budget, Storage **out_storage)
{
        size_t block;
        if (!add_size(n_bytes, sizeof(Storage) + STORAGE_ALIGN - 1, &block))
                return fail(STATUS_TOO_LARGE, "a tensor of %zu bytes is over --max-run-memory", n_bytes);
        TRY(charge(n_bytes, budget));
        Storage *storage = zeroed ? calloc(1, block) : malloc(block);
        if (storage == NULL) {
                budget_give(budget, n_bytes);
                return fail_memory();
        }
        memory_prefer_huge(storage, block);
        uintptr_t after = (uintptr_t)(storage + 1);
        uint8_t *data = (uint8_t *)(storage + 1) + (-after & (STORAGE_ALIGN - 1));
        *storage = (Storage){
                .data = n_bytes == 0 ? NULL : data, .n_bytes = n_bytes, .in_block = true, .budget = budget
        };
        refcount_init(&storage->ref);
        *out_storage = storage;
        return STATUS_OK;
}

Status storage_adopt(void *take_data, size_t n_bytes, bool readonly, void (*release)(void *owner, void *data),
                     void *owner, Storage **out_storage)
{
        Storage *storage = calloc(1, sizeof(*storage));
        if (storage == NULL)
                return fail_memory();
        refcount_init(&storage->ref);
        storage->data = take_data;
        storage->n_bytes = n_bytes;
        storage->readonly = readonly;
        storage->release = release;
        storage->owner = owner;
        *out_storage = storage;
        return STATUS_OK;
}

static void release_bytes(Storage *storage)
{
        if (storage->release != NULL) {
                storage->release(storage->owner, storage->data);
        } else {
                if (!storage->in_block)
                        free(storage->data);
                budget_give(storage->budget, storage->n_bytes);
        }
}

void storage_rebase(Storage *storage, void *take_data, void (*release)(void *owner, void *data), void *owner)
{
        // Own bytes in the header's block go with the storage; their budget, if any, is given back
        // now.
        release_bytes(storage);
        storage->data = take_data;
        storage->readonly = true;
        storage->in_block = false;
        storage->budget = NULL;
        storage->release = release;
        storage->owner = owner;
}

void storage_rest(const Storage *storage)
{
        while (!storage->mapped && storage->origin != NULL)
                storage = storage->origin;
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uintptr_t from = (uintptr_t)storage->data, to = (from + storage->n_bytes) & ~(page - 1);
        from = (from + page - 1) & ~(page - 1);
        if (storage->mapped && from < to)
                (void)madvise((void *)from, to - from, MADV_DONTNEED); // else they stay
}

Status storage_shell(Storage *origin, Budget *budget, Storage **out_storage)
{
        Storage *storage = calloc(1, sizeof(*storage));
        if (storage == NULL)
                return fail_memory();
        refcount_init(&storage->ref);
        storage->data = origin->data;
        storage->n_bytes = origin->n_bytes;
        storage->readonly = true;
        storage->origin = storage_ref(origin);
        storage->budget = budget;
        *out_storage = storage;
        return STATUS_OK;
}

bool storage_charge(Storage *storage, Budget *budget)
{
        if (!budget_take(budget, storage->n_bytes))
                return false;
        budget_give(storage->budget, storage->n_bytes);
        storage->budget = budget;
        return true;
}

Status storage_make_writable(Storage *storage)
{
        if (!storage->readonly)
                return STATUS_OK;
        // Adopted read-only bytes may be shared by threads: only a shell, which belongs to one run,
        // may be given bytes of its own.
        if (storage->origin == NULL)
                return fail(STATUS_INTERNAL, "a write to a shared read-only storage");
        uint8_t *data = NULL;
        TRY(take_bytes(storage->n_bytes, storage->budget, &data));
        if (storage->n_bytes > 0)
                memcpy(data, storage->data, storage->n_bytes);
        storage->data = data;
        storage->readonly = false;
        storage->origin = storage_unref(storage->origin);
        return STATUS_OK;
}

Status storage_source_new(const HashHex *key, Storage *root,
                          Status (*make)(const StorageSource *source, Storage **out_storage),
                          void *take_recipe, StorageSource **out_source)
{
        StorageSource *source = calloc(1, sizeof(*source));
        if (source == NULL) {
                free(take_recipe);
                return fail_memory();
        }
        refcount_init(&source->ref);
        source->key = *key;
        source->root = storage_ref(root);
        source->make = make;
        source->recipe = take_recipe;
        *out_source = source;
        return STATUS_OK;
}

StorageSource *storage_source_ref(StorageSource *source)
{
        if (source != NULL)
                refcount_get(&source->ref);
        return source;
}

StorageSource *storage_source_unref(StorageSource *source)
{
        if (source == NULL || !refcount_put(&source->ref))
                return NULL;
        storage_unref(source->root); // has no source, so this goes one level deep
        free(source->recipe);
        free(source);
        return NULL;
}

Status storage_without_bytes(Storage *storage, Storage **out_storage)
{
        if (storage->source == NULL) {
                *out_storage = storage_ref(storage);
                return STATUS_OK;
        }
        TRY(storage_new(0, false, NULL, out_storage));
        (*out_storage)->source = storage_source_ref(storage->source);
        return STATUS_OK;
}

Status storage_with_bytes(Storage *storage, Storage **out_storage)
{
        if (storage->source == NULL || storage->data != NULL) {
                *out_storage = storage_ref(storage);
                return STATUS_OK;
        }
        TRY(storage->source->make(storage->source, out_storage));
        (*out_storage)->source = storage_source_ref(storage->source);
        return STATUS_OK;
}

Storage *storage_ref(Storage *storage)
{
        refcount_get(&storage->ref);
        return storage;
}

Storage *storage_unref(Storage *storage)
{
        // A shell of a shell of ...: freed in a loop, not by recursion.
        while (storage != NULL && refcount_put(&storage->ref)) {
                Storage *origin = storage->origin;
                if (origin == NULL)
                        release_bytes(storage);
                storage_source_unref(storage->source);
                free(storage);
                storage = origin;
        }
        return NULL;
}
