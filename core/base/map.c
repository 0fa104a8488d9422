// SPDX-License-Identifier: Apache-2.0
// map.c: entries in insertion order plus a table of slots (linear probing, at most half full). A
// removed entry keeps its slot, with a NULL key, until the next rebuild; the rebuild closes the
// gaps and keeps the order. The hash is SipHash-1-3 (Aumasson and Bernstein 2012) under a key drawn
// once per process, so that nobody outside can choose keys that collide.
#include "core/base/map.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/clock.h"

static uint64_t seed[2];

// Runs before main and before any thread. The clock and the address of a variable are used only
// when the kernel has no random bytes to give.
__attribute__((constructor)) static void seed_init(void)
{
        if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
                return;
        seed[0] = (uint64_t)clock_ns() * 0x9e3779b97f4a7c15u;
        seed[1] = (uint64_t)(uintptr_t)&seed ^ (uint64_t)clock_wall_ms() << 20 ^ (uint64_t)getpid();
}

static inline uint64_t rotate(uint64_t x, int bits)
{
        return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
        const unsigned char *at = bytes;
        uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                          seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u };
        uint64_t word;
        size_t left = n;
        for (; left >= 8; left -= 8, at += 8) {
                memcpy(&word, at, 8);
                v[3] ^= word;
                sip_round(v);
                v[0] ^= word;
        }
        word = (uint64_t)n << 56;
        for (size_t i = 0; i < left; i++)
                word |= (uint64_t)at[i] << (8 * i);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
        v[2] ^= 0xff;
        for (int i = 0; i < 3; i++)
                sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void string_map_deinit(StringMap *map)
{
        if (map == NULL)
                return;
        free(map->entries);
        free(map->slots);
        *map = (StringMap){ 0 };
}

static void place(StringMap *map, uint32_t index)
{
        uint32_t mask = map->n_slots - 1;
        uint32_t slot = (uint32_t)map->entries[index].hash & mask;
        while (map->slots[slot] != 0)
                slot = (slot + 1) & mask;
        map->slots[slot] = index + 1;
}

// Drops removed entries and sizes the table for one more live entry.
static Status rebuild(StringMap *map)
{
        uint64_t wanted = 16;
        while (wanted < ((uint64_t)map->n_live + 1) * 4)
                wanted *= 2;
        if (wanted > UINT32_MAX)
                return fail_memory();
        uint32_t *slots = new_array((size_t)wanted, sizeof(*slots));
        if (slots == NULL)
                return fail_memory();
        uint32_t n = 0;
        for (uint32_t i = 0; i < map->n; i++) {
                if (map->entries[i].key != NULL)
                        map->entries[n++] = map->entries[i];
        }
        free(map->slots);
        map->slots = slots;
        map->n_slots = (uint32_t)wanted;
        map->n = n;
        for (uint32_t i = 0; i < n; i++)
                place(map, i);
        return STATUS_OK;
}

static StringMapEntry *find(const StringMap *map, const char *key, size_t n, uint64_t hash)
{
        if (map->n_slots == 0)
                return NULL;
        uint32_t mask = map->n_slots - 1;
        for (uint32_t slot = (uint32_t)hash & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
                StringMapEntry *entry = &map->entries[map->slots[slot] - 1];
                if (entry->key != NULL && entry->hash == hash && strnlen(entry->key, n + 1) == n &&
                    memcmp(entry->key, key, n) == 0)
                        return entry;
        }
        return NULL;
}

Status string_map_reserve(StringMap *map)
{
        if (map->n >= map->n_slots / 2)
                TRY(rebuild(map));
        return array_reserve(&map->entries, &map->capacity, map->n + 1, sizeof(*map->entries));
}

Status string_map_set(StringMap *map, const char *borrow_key, void *value, void **out_old)
{
        size_t n = strlen(borrow_key);
        uint64_t hash = hash_bytes(borrow_key, n);
        StringMapEntry *entry = find(map, borrow_key, n, hash);
        if (entry != NULL) {
                void *old = entry->value;
                entry->key = borrow_key;
                entry->value = value;
                if (out_old != NULL)
                        *out_old = old;
                return STATUS_OK;
        }
        TRY(string_map_reserve(map));
        map->entries[map->n] = (StringMapEntry){ .key = borrow_key, .value = value, .hash = hash };
        place(map, map->n);
        map->n++;
        map->n_live++;
        if (out_old != NULL)
                *out_old = NULL;
        return STATUS_OK;
}

void *string_map_get_n(const StringMap *map, const char *key, size_t n)
{
        const StringMapEntry *entry = map->n_live == 0 ? NULL : find(map, key, n, hash_bytes(key, n));
        return entry == NULL ? NULL : entry->value;
}

void *string_map_get(const StringMap *map, const char *key)
{
        return string_map_get_n(map, key, strlen(key));
}

void *string_map_remove(StringMap *map, const char *key)
{
        size_t n = strlen(key);
        StringMapEntry *entry = find(map, key, n, hash_bytes(key, n));
        if (entry == NULL)
                return NULL;
        void *value = take_ptr(entry->value);
        entry->key = NULL;
        map->n_live--;
        return value;
}
