// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include "core/kernels/pack_cache.h"

typedef struct Maker {
        _Atomic int n_calls;
        bool fails, slow;
        size_t n_bytes;
        _Atomic bool *until; // it goes on when this is set; NULL: at once
} Maker;

static Status make(void *context, Storage **out_storage)
{
        Maker *maker = context;
        atomic_fetch_add(&maker->n_calls, 1);
        for (int i = 0; maker->slow && i < 1000; i++)
                sched_yield();
        while (maker->until != NULL && !atomic_load(maker->until))
                sched_yield();
        if (maker->fails)
                return fail(STATUS_VALUE, "not to be packed");
        return storage_new(maker->n_bytes, true, NULL, out_storage);
}

static const float weight[6] = { 1, 2, 3, 4, 5, 6 };
static PackCache *cache;
static Storage *place; // of the weight

static void start(void)
{
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        cr_assert_eq(storage_new(64, true, NULL, &place), STATUS_OK);
}
static void stop(void)
{
        pack_cache_close(cache);
        storage_unref(place);
}
TestSuite(pack_cache, .init = start, .fini = stop);

static Storage *get(const char *format, const void *data, const TensorMeta *meta, Maker *maker)
{
        PackSource source = { .storage = place, .data = data, .meta = meta };
        Storage *storage = NULL;
        Status status = pack_cache_get(cache, format, &source, 1, (PackMaker){ make, maker, NULL }, &storage);
        cr_assert_eq(status == STATUS_OK, storage != NULL);
        return storage;
}

static TensorMeta matrix(int64_t rows, int64_t columns)
{
        TensorMeta meta;
        int64_t size[2] = { rows, columns };
        meta_init(&meta, DTYPE_F32, 2, size);
        return meta;
}

Test(pack_cache, what_is_packed_once_is_shared_until_its_last_user_lets_go)
{
        Maker maker = { .n_bytes = 100 };
        TensorMeta meta = matrix(2, 3);
        Storage *first = get("tiles", weight, &meta, &maker), *second = get("tiles", weight, &meta, &maker);
        cr_assert_eq(first, second);
        cr_assert_eq(maker.n_calls, 1);
        cr_assert_eq(pack_cache_stats(cache).bytes, 100, "counted once");
        storage_unref(first);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 1);
        storage_unref(second);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 0);
        cr_assert_eq(pack_cache_stats(cache).bytes, 0);
        cr_assert_eq(atomic_load(&place->ref.count), 1, "the constant is let go, too");
        storage_unref(get("tiles", weight, &meta, &maker));
        cr_assert_eq(maker.n_calls, 2);
}

Test(pack_cache, another_layout_view_or_place_is_packed_for_itself)
{
        Maker maker = { .n_bytes = 10 };
        TensorMeta meta = matrix(2, 3), turned = matrix(3, 2);
        Storage *all[4] = { get("tiles", weight, &meta, &maker), get("rows", weight, &meta, &maker),
                            get("tiles", weight, &turned, &maker), get("tiles", weight + 1, &meta, &maker) };
        cr_assert_eq(maker.n_calls, 4);
        for (int i = 0; i < 4; i++)
                storage_unref(all[i]);
}

// Copies come and go; what they were made from says what they are.
Test(pack_cache, a_widened_copy_is_known_by_its_constant)
{
        const float copies[2][3] = { { 1, 2, 3 }, { 1, 2, 3 } };
        const uint16_t *halves = (const uint16_t *)(const void *)weight;
        PackShare share = {
                .cache = cache, .storage = place, .copy = copies[0], .original = halves, .stored = DTYPE_BF16
        };
        PackSource whole = pack_source(&share, copies[0]), part = pack_source(&share, copies[0] + 2);
        cr_assert(whole.data == halves && part.data == halves + 2);
        HashHex key = pack_cache_key("tiles", &whole, 1), other = pack_cache_key("tiles", &part, 1);
        cr_assert_str_neq(key.hex, other.hex);
        share.copy = copies[1];
        whole = pack_source(&share, copies[1]);
        other = pack_cache_key("tiles", &whole, 1);
        cr_assert_str_eq(key.hex, other.hex);
        share.stored = DTYPE_F16;
        whole = pack_source(&share, copies[1]);
        other = pack_cache_key("tiles", &whole, 1);
        cr_assert_str_neq(key.hex, other.hex, "the same bytes as another dtype are another constant");
        share.copy = NULL;
        whole = pack_source(&share, halves);
        other = pack_cache_key("tiles", &whole, 1);
        cr_assert_str_neq(key.hex, other.hex, "the constant itself is not the copy");
}

Test(pack_cache, failures_are_the_makers_and_are_not_kept)
{
        Maker maker = { .n_bytes = 10, .fails = true };
        TensorMeta meta = matrix(2, 3);
        cr_assert_null(get("tiles", weight, &meta, &maker));
        cr_assert_eq(failure_current()->status, STATUS_VALUE);
        maker.fails = false;
        storage_unref(get("tiles", weight, &meta, &maker));
        cr_assert_eq(maker.n_calls, 2);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 0);
}

Test(pack_cache, packed_bytes_outlive_the_cache_and_none_is_needed)
{
        Maker maker = { .n_bytes = 10 };
        PackCache *other = NULL;
        Storage *storage = NULL;
        TensorMeta meta = matrix(2, 3);
        PackSource source = { .storage = place, .data = weight, .meta = &meta };
        cr_assert_eq(pack_cache_open(&other), STATUS_OK);
        cr_assert_eq(pack_cache_get(other, "tiles", &source, 1, (PackMaker){ make, &maker, NULL }, &storage),
                     STATUS_OK);
        pack_cache_close(other);
        storage_unref(storage);
        cr_assert_eq(pack_cache_get(NULL, "tiles", &source, 1, (PackMaker){ make, &maker, NULL }, &storage),
                     STATUS_OK);
        storage_unref(storage);
}

static Maker shared = { .n_bytes = 64, .slow = true };

static void *take_and_give(void *argument)
{
        TensorMeta meta = matrix(2, 3);
        for (int i = 0; i < (shared.slow ? 200 : 5000); i++)
                storage_unref(get("tiles", weight, &meta, &shared));
        return argument;
}

Test(pack_cache, threads_that_want_the_same_wait_for_one_maker)
{
        enum { N = 8 };
        pthread_t threads[N];
        TensorMeta meta = matrix(2, 3);
        Storage *held = get("tiles", weight, &meta, &shared);
        for (int i = 0; i < N; i++)
                pthread_create(&threads[i], NULL, take_and_give, NULL);
        for (int i = 0; i < N; i++)
                pthread_join(threads[i], NULL);
        cr_assert_eq(shared.n_calls, 1);
        storage_unref(held);
        shared.slow = false;
        for (int i = 0; i < N; i++) // now the last user leaves all the time
                pthread_create(&threads[i], NULL, take_and_give, NULL);
        for (int i = 0; i < N; i++)
                pthread_join(threads[i], NULL);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 0);
}

static _Atomic bool may_end;
static Maker held = { .n_bytes = 64, .until = &may_end };

static void *make_held(void *argument)
{
        TensorMeta meta = matrix(2, 3);
        storage_unref(get("tiles", weight, &meta, &held));
        return argument;
}

// A run whose deadline has passed, or that nobody wants any more.
static Status get_stopped(int64_t deadline_ns, int cancelled)
{
        TensorMeta meta = matrix(2, 3);
        PackSource source = { .storage = place, .data = weight, .meta = &meta };
        Storage *storage = NULL;
        RunContext poll;
        run_context_init(&poll);
        poll.deadline_ns = deadline_ns;
        atomic_store(&poll.cancelled, cancelled);
        Status status =
                pack_cache_get(cache, "tiles", &source, 1, (PackMaker){ make, &held, &poll }, &storage);
        cr_assert_null(storage);
        return status;
}

Test(pack_cache, who_waits_for_another_thread_leaves_at_its_deadline)
{
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, make_held, NULL), 0);
        while (atomic_load(&held.n_calls) == 0)
                sched_yield();
        cr_assert_eq(get_stopped(1, 0), STATUS_DEADLINE);
        cr_assert_eq(get_stopped(0, 1), STATUS_CANCELLED);
        atomic_store(&may_end, true);
        pthread_join(thread, NULL);
        cr_assert_eq(held.n_calls, 1);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 0);
}

Test(pack_cache, a_lock_that_another_thread_holds_is_given_up_at_the_deadline)
{
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        RunContext ctx;
        run_context_init(&ctx);
        cr_assert_eq(run_lock(&ctx, &mutex), STATUS_OK);
        ctx.deadline_ns = 1;
        cr_assert_eq(run_lock(&ctx, &mutex), STATUS_DEADLINE);
        pthread_mutex_unlock(&mutex);
        cr_assert_eq(run_lock(NULL, &mutex), STATUS_OK);
        pthread_mutex_unlock(&mutex);
}
