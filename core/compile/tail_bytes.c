// SPDX-License-Identifier: Apache-2.0
// tail_bytes.c: a hash table over storages, and bit sets over its indices.
#include "core/compile/tail_bytes.h"

#include <string.h>

enum { MAX_SET_WORDS = 1 << 20 }; // all sets together: 8 MiB

void tail_bytes_init(TailBytes *bytes)
{
        *bytes = (TailBytes){ 0 };
        arena_init(&bytes->arena, 0);
}

void tail_bytes_clear(TailBytes *bytes)
{
        bytes->n = 0;
        bytes->set_words = 0;
        if (bytes->n_slots > 0)
                memset(bytes->slots, 0, bytes->n_slots * sizeof(*bytes->slots));
        arena_deinit(&bytes->arena);
        arena_init(&bytes->arena, 0);
}

void tail_bytes_deinit(TailBytes *bytes)
{
        free(bytes->items);
        free(bytes->slots);
        arena_deinit(&bytes->arena);
}

// ---- the table ----
const Storage *tail_bytes_key(const Tensor *tensor)
{
        const Buffer *buffer = buffer_of(tensor->storage);
        return buffer != NULL && buffer->kind == BUFFER_STATE ? NULL : tensor->storage;
}

static uint32_t slot_of(const TailBytes *bytes, const Storage *key)
{
        uint32_t at = (uint32_t)(((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 32) & (bytes->n_slots - 1);
        while (bytes->slots[at] != 0 && bytes->items[bytes->slots[at] - 1].storage != key)
                at = (at + 1) & (bytes->n_slots - 1);
        return at;
}

static Status grow_slots(TailBytes *bytes)
{
        uint32_t n = bytes->n_slots == 0 ? 64 : 2 * bytes->n_slots;
        uint32_t *slots = new_array(n, sizeof(*slots));
        if (slots == NULL)
                return fail_memory();
        free(bytes->slots);
        bytes->slots = slots;
        bytes->n_slots = n;
        for (uint32_t i = 0; i < bytes->n; i++)
                bytes->slots[slot_of(bytes, bytes->items[i].storage)] = i + 1;
        return STATUS_OK;
}

Status tail_bytes_index(TailBytes *bytes, const Storage *key, uint32_t *out_index)
{
        if (2 * (bytes->n + 1) > bytes->n_slots)
                TRY(grow_slots(bytes));
        uint32_t slot = slot_of(bytes, key);
        if (bytes->slots[slot] == 0) {
                TRY(array_reserve(&bytes->items, &bytes->capacity, bytes->n + 1, sizeof(*bytes->items)));
                bytes->items[bytes->n++] = (Bytes){ .storage = key, .touched = NEVER, .written = NEVER };
                bytes->slots[slot] = bytes->n;
        }
        *out_index = bytes->slots[slot] - 1;
        return STATUS_OK;
}

const Bytes *tail_bytes_find(const TailBytes *bytes, const Storage *key)
{
        uint32_t slot = bytes->n == 0 ? 0 : bytes->slots[slot_of(bytes, key)];
        return slot == 0 ? NULL : &bytes->items[slot - 1];
}

// ---- sets ----
static Status set_room(TailBytes *bytes, BytesSet *set, uint32_t n_words)
{
        if (n_words <= set->n_words)
                return STATUS_OK;
        bytes->set_words += n_words;
        uint64_t *words =
                bytes->set_words > MAX_SET_WORDS ? NULL : arena_array(&bytes->arena, n_words, sizeof(*words));
        if (words == NULL)
                return fail(STATUS_DYNAMIC, "too much of the graph depends on numbers that only a run knows");
        if (set->n_words > 0)
                memcpy(words, set->words, set->n_words * sizeof(*words));
        *set = (BytesSet){ words, n_words };
        return STATUS_OK;
}

Status bytes_set_add(TailBytes *bytes, BytesSet *set, uint32_t index)
{
        TRY(set_room(bytes, set, MAX(index / 64 + 1, (bytes->n + 63) / 64)));
        set->words[index / 64] |= (uint64_t)1 << (index % 64);
        return STATUS_OK;
}

Status bytes_set_merge(TailBytes *bytes, BytesSet *set, const BytesSet *from)
{
        TRY(set_room(bytes, set, from->n_words));
        for (uint32_t i = 0; i < from->n_words; i++)
                set->words[i] |= from->words[i];
        return STATUS_OK;
}
