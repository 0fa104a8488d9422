// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include "core/base/arena.h"
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

Test(memory, checked_arithmetic_refuses_overflow)
{
        size_t size;
        int64_t whole;
        cr_assert(mul_size(SIZE_MAX / 2, 2, &size));
        cr_assert_not(mul_size(SIZE_MAX / 2 + 1, 2, &size));
        cr_assert(add_size(SIZE_MAX - 1, 1, &size));
        cr_assert_not(add_size(SIZE_MAX, 1, &size));
        cr_assert_not(mul_i64(INT64_MIN, -1, &whole));
        cr_assert_not(add_i64(INT64_MAX, 1, &whole));
        cr_assert_not(sub_i64(INT64_MIN, 1, &whole));
        cr_assert(sub_i64(5, 7, &whole));
        cr_assert_eq(whole, -2);
}

Test(memory, array_reserve_doubles_and_keeps_what_was_there)
{
        int *items = NULL;
        uint32_t capacity = 0;
        for (uint32_t i = 0; i < 1000; i++) {
                uint32_t before = capacity;
                cr_assert_eq(array_reserve(&items, &capacity, i + 1, sizeof(*items)), STATUS_OK);
                cr_assert(capacity == before || capacity >= 2 * before);
                items[i] = (int)i;
        }
        for (int i = 0; i < 1000; i++)
                cr_assert_eq(items[i], i);
        free(items);
}

Test(memory, array_reserve_refuses_what_cannot_be_and_leaves_the_array)
{
        char *items = NULL;
        uint32_t capacity = 0;
        cr_assert_eq(array_reserve(&items, &capacity, 4, 1), STATUS_OK);
        char *before = items;
        uint32_t capacity_before = capacity;
        cr_assert_eq(array_reserve(&items, &capacity, UINT32_MAX, SIZE_MAX / 8), STATUS_NO_MEMORY);
        cr_assert_eq(items, before);
        cr_assert_eq(capacity, capacity_before);
        free(items);
}

Test(memory, copy_text_stops_at_n_or_at_the_end)
{
        char raw[3] = { 'a', 'b', 'c' };
        _cleanup_(freep) char *cut = copy_text(raw, 3);
        _cleanup_(freep) char *whole = copy_text("hi", 100);
        _cleanup_(freep) char *empty = copy_text(NULL, 0);
        cr_assert_str_eq(cut, "abc");
        cr_assert_str_eq(whole, "hi");
        cr_assert_str_eq(empty, "");
}

Test(memory, new_array_is_zeroed_and_refuses_overflow)
{
        cr_assert_null(new_array(SIZE_MAX / 2, 4));
        _cleanup_(freep) int *items = new_array(10, sizeof(int));
        for (int i = 0; i < 10; i++)
                cr_assert_eq(items[i], 0);
        int *taken = take_ptr(items);
        cr_assert_null(items);
        free(taken);
}

Test(memory, only_the_last_reference_reports_itself)
{
        RefCount ref;
        refcount_init(&ref);
        refcount_get(&ref);
        cr_assert_not(refcount_put(&ref));
        cr_assert(refcount_put(&ref));
}

Test(arena, objects_are_zeroed_aligned_and_apart)
{
        Arena arena;
        arena_init(&arena, 0);
        unsigned char *previous = NULL;
        for (size_t i = 0; i < 5000; i++) {
                unsigned char *object = arena_alloc(&arena, i % 97);
                cr_assert_eq((uintptr_t)object % 16, 0);
                cr_assert_neq(object, previous);
                for (size_t j = 0; j < i % 97; j++)
                        cr_assert_eq(object[j], 0);
                memset(object, 0xee, i % 97);
                previous = object;
        }
        cr_assert_gt(arena.total_bytes, 5000 * 48);
        arena_deinit(&arena);
        cr_assert_null(arena.block);
        arena_deinit(&arena);
}

Test(arena, an_object_larger_than_any_block_gets_its_own)
{
        Arena arena;
        arena_init(&arena, 0);
        char *large = arena_alloc(&arena, 5 << 20);
        cr_assert_not_null(large);
        memset(large, 1, 5 << 20);
        cr_assert_not_null(arena_alloc(&arena, 16));
        arena_deinit(&arena);
}

Test(arena, the_cap_holds_for_everything_taken_from_the_heap)
{
        Arena arena;
        arena_init(&arena, 20000);
        size_t n = 0;
        while (arena_alloc(&arena, 100) != NULL)
                n++;
        cr_assert_geq(n, 100);
        cr_assert_leq(arena.total_bytes, 20000);
        cr_assert_null(arena_alloc(&arena, 100));
        cr_assert_null(arena_alloc(&arena, SIZE_MAX));
        cr_assert_null(arena_array(&arena, SIZE_MAX / 2, 4));
        arena_deinit(&arena);
}

Test(arena, what_goes_beyond_the_cap_is_charged_and_given_back)
{
        Arena arena;
        Budget budget;
        budget_init(&budget, 40000);
        arena_init_charged(&arena, 20000, &budget);
        cr_assert_not_null(arena_alloc(&arena, 3000));
        cr_assert_eq(atomic_load(&budget.used), 0);
        int n = 0;
        while (arena_alloc(&arena, 100) != NULL)
                n++;
        cr_assert_gt(n, 400);
        cr_assert_eq(atomic_load(&budget.used), arena.n_charged);
        cr_assert_leq(arena.total_bytes, 60000);
        cr_assert_null(arena_alloc(&arena, 50000));
        arena_deinit(&arena);
        cr_assert_eq(atomic_load(&budget.used), 0);
}

Test(arena, text_and_format_are_terminated_copies)
{
        Arena arena;
        arena_init(&arena, 0);
        cr_assert_str_eq(arena_text(&arena, "hello world", 5), "hello");
        cr_assert_str_eq(arena_text(&arena, NULL, 0), "");
        cr_assert_str_eq(arena_format(&arena, "%s_%d", "add", 7), "add_7");
        int *numbers = arena_array(&arena, 3, sizeof(int));
        cr_assert_eq(numbers[2], 0);
        arena_deinit(&arena);
}

Test(budget, takes_up_to_the_limit_and_remembers_the_peak)
{
        Budget budget;
        budget_init(&budget, 100);
        cr_assert(budget_take(&budget, 60));
        cr_assert_not(budget_take(&budget, 41));
        cr_assert(budget_take(&budget, 40));
        cr_assert_not(budget_take(&budget, SIZE_MAX));
        budget_give(&budget, 90);
        cr_assert(budget_take(&budget, 5));
        cr_assert_eq(atomic_load(&budget.used), 15);
        cr_assert_eq(atomic_load(&budget.peak), 100);
        cr_assert(budget_take(NULL, SIZE_MAX));
        budget_give(NULL, 1);
}

static void *take_and_give(void *budget)
{
        for (int i = 0; i < 20000; i++) {
                if (budget_take(budget, 3))
                        budget_give(budget, 3);
        }
        return NULL;
}

Test(budget, threads_together_never_exceed_the_limit)
{
        Budget budget;
        budget_init(&budget, 7);
        pthread_t threads[4];
        for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, take_and_give, &budget), 0);
        for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
                pthread_join(threads[i], NULL);
        cr_assert_eq(atomic_load(&budget.used), 0);
        cr_assert_leq(atomic_load(&budget.peak), 7);
}

Test(hash, sha256_matches_the_standards_examples)
{
        cr_assert_str_eq(sha256_of("", 0).hex,
                         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        cr_assert_str_eq(sha256_of("abc", 3).hex,
                         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, "a", 1);
        sha256_add(&sha, NULL, 0);
        sha256_add(&sha, "bc", 2);
        cr_assert_str_eq(sha256_finish(&sha).hex, sha256_of("abc", 3).hex);
}

Test(clock, runs_forward)
{
        int64_t before = clock_ns();
        cr_assert_geq(clock_ns(), before);
        cr_assert_gt(clock_wall_ms(), 1600000000000);
}
