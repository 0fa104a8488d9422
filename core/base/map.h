// SPDX-License-Identifier: Apache-2.0
// StringMap: text -> pointer, insertion-ordered, seeded hash (no flooding by chosen keys). Keys are
// borrowed: they must outlive the map.
#pragma once
#include "core/base/memory.h"

typedef struct StringMapEntry {
        const char *key;
        void *value;
        uint64_t hash;
} StringMapEntry;
typedef struct StringMap {
        StringMapEntry *entries; // in insertion order; removed ones have key NULL
        uint32_t n, n_live, capacity;
        uint32_t *slots; // open addressing; 0 = free, else entry index + 1
        uint32_t n_slots;
} StringMap;

void string_map_deinit(StringMap *map);
// Adds or replaces. `out_old` may be NULL; it receives the value replaced (NULL if none).
Status string_map_set(StringMap *map, const char *borrow_key, void *value, void **out_old);
// Room for one more: until something else is added, string_map_set cannot fail.
Status string_map_reserve(StringMap *map);
void *string_map_get(const StringMap *map, const char *key); // NULL if absent
void *string_map_get_n(const StringMap *map, const char *key, size_t n);
void *string_map_remove(StringMap *map, const char *key); // the value, NULL if absent
// 64-bit seeded hash of bytes; the same within one process.
uint64_t hash_bytes(const void *bytes, size_t n);
