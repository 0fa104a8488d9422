// SPDX-License-Identifier: Apache-2.0
// Many threads acquire, build, cancel and drop the same few keys. Checked: every parked ticket
// comes back exactly once (or was cancelled), objects are never used after they are freed, one
// build at a time of a key that nobody drops.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/registry/registry.h"

// the first N_DROPPED keys are dropped now and then, even while they are built
enum { N_THREADS = 6, N_KEYS = 4, N_DROPPED = 2 };

typedef struct Object {
        RefCount ref;
        int key;
} Object;

typedef struct Waiter {
        Ticket ticket;
        pthread_mutex_t mutex;
        pthread_cond_t woken;
        int n_wakes;
} Waiter;

static Registry *registry;
static _Atomic int building[N_KEYS];
static _Atomic long n_builds, n_waits, n_cancels;
static int64_t end_ns;

static void object_ref(void *object)
{
        refcount_get(&((Object *)object)->ref);
}
static void object_unref(void *object)
{
        if (refcount_put(&((Object *)object)->ref))
                free(object);
}
static size_t object_bytes(const void *object)
{
        (void)object;
        return 100;
}

static void complain(const char *what)
{
        fprintf(stderr, "stress_registry: %s\n", what);
        abort();
}

static void wake_all(Ticket *tickets)
{
        while (tickets != NULL) {
                Waiter *waiter = (Waiter *)tickets;
                tickets = tickets->next;
                pthread_mutex_lock(&waiter->mutex);
                waiter->n_wakes++;
                pthread_cond_signal(&waiter->woken);
                pthread_mutex_unlock(&waiter->mutex);
        }
}

static void build(RegistryEntry *entry, int key, bool fails)
{
        if (atomic_fetch_add(&building[key], 1) != 0 && key >= N_DROPPED)
                complain("two builds of one key at a time");
        Object *object = NULL;
        if (!fails) {
                object = calloc(1, sizeof(*object));
                refcount_init(&object->ref);
                object->key = key;
        } else {
                (void)fail(STATUS_IO, "made to fail");
        }
        atomic_fetch_sub(&building[key], 1);
        atomic_fetch_add(&n_builds, 1);
        wake_all(registry_publish(registry, entry, object));
}

static void take(Waiter *waiter, int key)
{
        pthread_mutex_lock(&waiter->mutex);
        while (waiter->n_wakes == 0)
                pthread_cond_wait(&waiter->woken, &waiter->mutex);
        if (waiter->n_wakes != 1)
                complain("a ticket came back twice");
        waiter->n_wakes = 0;
        pthread_mutex_unlock(&waiter->mutex);
        void *object = NULL;
        Status status = ticket_take(&waiter->ticket, &object);
        if (status != STATUS_OK && status != STATUS_IO)
                complain("a failed build did not say why");
        if (object != NULL && ((Object *)object)->key != key)
                complain("a ticket got another key's object");
        if (object != NULL)
                object_unref(object);
        // as good as new, also when ticket_cancel came too late
        ticket_drop(&waiter->ticket);
}

static void *work(void *argument)
{
        unsigned seed = (unsigned)(uintptr_t)argument;
        Waiter waiter = { .n_wakes = 0 };
        pthread_mutex_init(&waiter.mutex, NULL);
        pthread_cond_init(&waiter.woken, NULL);
        while (clock_ns() < end_ns) {
                int key = rand_r(&seed) % N_KEYS;
                RegistryKey bytes = { { (uint8_t)key } };
                RegistryKey group = { { (uint8_t)(key % 2) } };
                Acquisition got;
                if (key < N_DROPPED && rand_r(&seed) % 16 == 0)
                        registry_drop(registry, &bytes);
                if (registry_acquire(registry, &bytes, &group, &waiter.ticket, &got) != STATUS_OK)
                        complain("acquire failed");
                if (got.how == ACQUIRE_READY) {
                        if (((Object *)got.object)->key != key)
                                complain("another key's object");
                        object_unref(got.object);
                        continue;
                }
                if (got.how == ACQUIRE_START)
                        build(got.build, key, rand_r(&seed) % 3 == 0);
                else if (rand_r(&seed) % 4 == 0 && ticket_cancel(&waiter.ticket)) {
                        atomic_fetch_add(&n_cancels, 1);
                        ticket_drop(&waiter.ticket);
                        continue;
                }
                atomic_fetch_add(&n_waits, 1);
                take(&waiter, key);
        }
        pthread_mutex_destroy(&waiter.mutex);
        pthread_cond_destroy(&waiter.woken);
        return NULL;
}

int main(int argc, char **argv)
{
        static const RegistryType type = {
                .ref = object_ref, .unref = object_unref, .bytes = object_bytes, .max_per_group = 1
        };
        pthread_t threads[N_THREADS];
        end_ns = clock_ns() + (argc > 1 ? atoll(argv[1]) : 2) * 1000000000;
        if (registry_open(&type, 250, &registry) != STATUS_OK)
                return 1;
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        RegistryStats stats = registry_stats(registry);
        printf("%ld builds, %ld waits, %ld cancels, %llu evictions\n", n_builds, n_waits, n_cancels,
               (unsigned long long)stats.evictions);
        registry_close(registry);
        return n_builds > 0 && n_waits > 0 ? 0 : 1;
}
