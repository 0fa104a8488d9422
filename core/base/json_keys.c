// SPDX-License-Identifier: Apache-2.0
// json_keys.c: duplicate keys. The keys of all open objects are one stack with one hash table over
// it; a key is looked up under (depth, text), which names its object since only one object is open
// per depth. Objects close in the opposite order of opening, so keys leave the table newest first;
// that keeps linear probing intact by just freeing their slots.
#include "core/base/json_reader.h"

#include <string.h>
#include "core/base/map.h"

static void place(JsonReader *reader, uint32_t index)
{
        uint32_t mask = reader->n_key_slots - 1;
        uint32_t slot = reader->keys[index].hash & mask;
        while (reader->key_slots[slot] != 0)
                slot = (slot + 1) & mask;
        reader->key_slots[slot] = index + 1;
        reader->keys[index].slot = slot;
}

static Status grow(JsonReader *reader)
{
        uint64_t wanted = reader->n_key_slots == 0 ? 64 : (uint64_t)reader->n_key_slots * 2;
        if (wanted > UINT32_MAX)
                return fail_memory();
        uint32_t *slots = new_array((size_t)wanted, sizeof(*slots));
        if (slots == NULL)
                return fail_memory();
        free(reader->key_slots);
        reader->key_slots = slots;
        reader->n_key_slots = (uint32_t)wanted;
        for (uint32_t i = 0; i < reader->n_keys; i++)
                place(reader, i);
        return STATUS_OK;
}

Status json_keys_add(JsonReader *reader, const char *text, size_t n, const char *at)
{
        if (n > UINT32_MAX)
                return json_fail(reader, at, STATUS_TOO_LARGE, "a key is too long");
        if (reader->n_keys >= reader->n_key_slots / 2)
                TRY(grow(reader));
        TRY(array_reserve(&reader->keys, &reader->key_capacity, reader->n_keys + 1, sizeof(*reader->keys)));
        uint32_t depth = (uint32_t)reader->depth;
        uint32_t hash = (uint32_t)hash_bytes(text, n) + depth * 0x9e3779b9u;
        uint32_t mask = reader->n_key_slots - 1;
        for (uint32_t slot = hash & mask; reader->key_slots[slot] != 0; slot = (slot + 1) & mask) {
                const JsonKey *key = &reader->keys[reader->key_slots[slot] - 1];
                if (key->hash == hash && key->depth == depth && key->n == n &&
                    (n == 0 || memcmp(key->text, text, n) == 0))
                        return json_fail(reader, at, STATUS_MALFORMED,
                                         "duplicate key \"%.*s\"; each key may stand once in an object",
                                         (int)MIN(n, (size_t)200), text);
        }
        reader->keys[reader->n_keys] =
                (JsonKey){ .text = text, .n = (uint32_t)n, .hash = hash, .depth = depth };
        place(reader, reader->n_keys);
        reader->n_keys++;
        return STATUS_OK;
}

void json_keys_close(JsonReader *reader, uint32_t first_key)
{
        while (reader->n_keys > first_key)
                reader->key_slots[reader->keys[--reader->n_keys].slot] = 0;
}
