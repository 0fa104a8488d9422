// SPDX-License-Identifier: Apache-2.0
// storages.c: all entries of the state, sorted by storage, give the groups that share one.
#include "core/graph/storages.h"

#include <stdio.h>
#include <string.h>

typedef struct Entry {
        const Graph *graph;
        const Tensor *tensor;
        uint32_t place; // in the document
} Entry;
typedef struct Entries {
        Entry *items;
        uint32_t n, capacity;
} Entries;

// Child graphs come before the state of the graph around them, as in the document. Recursion:
// limits.max_child_graphs.
static Status collect(const Graph *graph, Entries *entries)
{
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL)
                        TRY(collect(graph->modules[i]->graph, entries));
        }
        TRY(array_reserve(&entries->items, &entries->capacity, entries->n + graph->n_state + 1,
                          sizeof(Entry)));
        for (uint32_t i = 0; i < graph->n_state; i++) {
                if (graph->state[i].tensor->storage == NULL)
                        continue;
                entries->items[entries->n] = (Entry){ graph, graph->state[i].tensor, entries->n };
                entries->n++;
        }
        return STATUS_OK;
}

static int by_storage(const void *a, const void *b)
{
        const Entry *x = a, *y = b;
        uintptr_t p = (uintptr_t)x->tensor->storage, q = (uintptr_t)y->tensor->storage;
        return p != q ? (p > q) - (p < q) : (x->place > y->place) - (x->place < y->place);
}

// Dense in its dimensions' order, and the whole storage.
static bool is_whole(const Tensor *tensor)
{
        TensorMeta dense;
        meta_init(&dense, tensor->meta.dtype, tensor->meta.rank, tensor->meta.size);
        size_t n_bytes = (size_t)meta_numel(&dense) * dtype_info[dense.dtype].bytes;
        return tensor->offset == 0 && tensor->storage->n_bytes == n_bytes &&
               memcmp(dense.stride, tensor->meta.stride, dense.rank * sizeof(dense.stride[0])) == 0;
}

// One storage's entries are items[from] to items[end - 1].
static bool needs_name(const Entry *items, uint32_t from, uint32_t end)
{
        for (uint32_t i = from + 1; i < end; i++) {
                if (items[i].tensor != items[from].tensor || items[i].graph != items[from].graph)
                        return true;
        }
        return !is_whole(items[from].tensor);
}

static int by_place(const void *a, const void *b)
{
        const StateStorage *x = a, *y = b;
        return (x->number > y->number) - (x->number < y->number);
}

static int by_address(const void *a, const void *b)
{
        const StateStorage *x = a, *y = b;
        return ((uintptr_t)x->storage > (uintptr_t)y->storage) -
               ((uintptr_t)x->storage < (uintptr_t)y->storage);
}

static void number_them(StateStorages *storages)
{
        uint32_t n = 0;
        qsort(storages->items, storages->n, sizeof(StateStorage), by_place);
        for (uint32_t i = 0; i < storages->n; i++)
                storages->items[i].number = storages->items[i].is_named ? n++ : 0;
        qsort(storages->items, storages->n, sizeof(StateStorage), by_address);
}

static Status group(const Entries *entries, StateStorages *storages)
{
        storages->items = new_array(entries->n, sizeof(StateStorage));
        if (storages->items == NULL)
                return fail_memory();
        if (entries->n > 0)
                qsort(entries->items, entries->n, sizeof(Entry), by_storage);
        for (uint32_t from = 0, end; from < entries->n; from = end) {
                Storage *storage = entries->items[from].tensor->storage;
                for (end = from + 1; end < entries->n && entries->items[end].tensor->storage == storage;)
                        end++;
                storages->items[storages->n++] =
                        (StateStorage){ .storage = storage,
                                        .number = entries->items[from].place,
                                        .is_named = needs_name(entries->items, from, end) };
        }
        number_them(storages);
        return STATUS_OK;
}

Status state_storages_of(const Graph *graph, StateStorages *out_storages)
{
        Entries entries = { 0 };
        StateStorages storages = { 0 };
        Status status = collect(graph, &entries);
        if (status == STATUS_OK)
                status = group(&entries, &storages);
        free(entries.items);
        TRY(status);
        *out_storages = storages;
        return STATUS_OK;
}

void state_storages_deinit(StateStorages *storages)
{
        free(storages->items);
        *storages = (StateStorages){ 0 };
}

const StateStorage *state_storages_find(const StateStorages *storages, const Storage *storage)
{
        const StateStorage key = { .storage = (Storage *)(uintptr_t)storage };
        return storages->n == 0 ? NULL : bsearch(&key, storages->items, storages->n, sizeof(key), by_address);
}

void state_storage_name(const StateStorage *storage, char out[STORAGE_NAME_MAX])
{
        snprintf(out, STORAGE_NAME_MAX, "storage:%u", storage->number);
}
