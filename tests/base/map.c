// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/base/map.h"

static StringMap map;

static void forget(void)
{
        string_map_deinit(&map);
}

TestSuite(map, .fini = forget);

Test(map, an_empty_map_has_nothing)
{
        cr_assert_null(string_map_get(&map, "x"));
        cr_assert_null(string_map_remove(&map, "x"));
}

Test(map, with_room_reserved_set_takes_no_memory)
{
        static char keys[300][8];
        for (int i = 0; i < 300; i++) {
                snprintf(keys[i], sizeof(keys[i]), "%d", i);
                cr_assert_eq(string_map_reserve(&map), STATUS_OK);
                StringMap before = map;
                cr_assert_eq(string_map_set(&map, keys[i], keys[i], NULL), STATUS_OK);
                cr_assert_eq(map.slots, before.slots);
                cr_assert_eq(map.entries, before.entries);
                cr_assert_eq(map.capacity, before.capacity);
                if (i % 3 == 0)
                        string_map_remove(&map, keys[i / 2]);
        }
}

Test(map, set_adds_and_replaces)
{
        int one, two;
        void *old = &two;
        cr_assert_eq(string_map_set(&map, "x", &one, &old), STATUS_OK);
        cr_assert_null(old);
        cr_assert_eq(string_map_set(&map, "x", &two, &old), STATUS_OK);
        cr_assert_eq(old, &one);
        cr_assert_eq(string_map_get(&map, "x"), &two);
        cr_assert_eq(map.n_live, 1);
}

Test(map, get_n_takes_exactly_n_bytes)
{
        int one;
        cr_assert_eq(string_map_set(&map, "add", &one, NULL), STATUS_OK);
        cr_assert_eq(string_map_get_n(&map, "add_1", 3), &one);
        cr_assert_null(string_map_get_n(&map, "add_1", 4));
        cr_assert_null(string_map_get_n(&map, "add", 2));
        cr_assert_null(string_map_get_n(&map, "add\0x", 5));
        cr_assert_null(string_map_get(&map, ""));
        cr_assert_eq(string_map_set(&map, "", &one, NULL), STATUS_OK);
        cr_assert_eq(string_map_get_n(&map, "zzz", 0), &one);
}

enum { MANY = 20000 };

Test(map, many_keys_keep_their_order_through_removals)
{
        static char keys[MANY][16];
        for (size_t i = 0; i < MANY; i++) {
                snprintf(keys[i], sizeof(keys[i]), "node_%zu", i);
                cr_assert_eq(string_map_set(&map, keys[i], keys[i], NULL), STATUS_OK);
        }
        for (size_t i = 0; i < MANY; i += 3) {
                cr_assert_eq(string_map_remove(&map, keys[i]), keys[i]);
                cr_assert_null(string_map_remove(&map, keys[i]));
        }
        for (size_t i = 0; i < MANY; i++)
                cr_assert_eq(string_map_get(&map, keys[i]), i % 3 == 0 ? NULL : keys[i]);
        for (size_t i = 0; i < MANY; i += 3)
                cr_assert_eq(string_map_set(&map, keys[i], keys[i], NULL), STATUS_OK);
        cr_assert_eq(map.n_live, MANY);
        size_t seen = 0;
        const char *previous = NULL;
        for (uint32_t i = 0; i < map.n; i++) {
                const StringMapEntry *entry = &map.entries[i];
                if (entry->key == NULL)
                        continue;
                seen++;
                bool again = (entry->key - keys[0]) / 16 % 3 == 0;
                if (previous != NULL && !again)
                        cr_assert_gt(entry->key, previous);
                if (!again)
                        previous = entry->key;
        }
        cr_assert_eq(seen, MANY);
}

Test(map, setting_and_removing_forever_does_not_grow_the_map)
{
        for (int i = 0; i < 100000; i++) {
                cr_assert_eq(string_map_set(&map, "key", &map, NULL), STATUS_OK);
                cr_assert_eq(string_map_remove(&map, "key"), &map);
        }
        cr_assert_leq(map.n_slots, 64);
        cr_assert_leq(map.capacity, 64);
}

Test(map, hashes_depend_on_every_byte_and_on_the_length)
{
        unsigned char bytes[24] = { 0 };
        for (size_t n = 0; n <= sizeof(bytes); n++) {
                uint64_t hash = hash_bytes(bytes, n);
                cr_assert_eq(hash, hash_bytes(bytes, n));
                if (n > 0)
                        cr_assert_neq(hash, hash_bytes(bytes, n - 1));
                for (size_t i = 0; i < n; i++) {
                        bytes[i] ^= 0x40;
                        cr_assert_neq(hash, hash_bytes(bytes, n));
                        bytes[i] ^= 0x40;
                }
        }
}
