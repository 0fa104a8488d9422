// SPDX-License-Identifier: Apache-2.0
// Run profiles and the ring of recent ones. A profile is written by one thread, then shared read-only; the ring is a circular array under a
// mutex, replaced oldest first.
#include "core/profile/profile.h"
#include <pthread.h>
#include <string.h>
#include "core/base/map.h"

Status run_profile_new(Graph *graph, uint32_t n_rows_capacity, RunProfile **out_profile)
{
        _cleanup_(run_profile_unrefp) RunProfile *profile = calloc(1, sizeof(*profile));
        if (profile == NULL)
                return fail_memory();
        refcount_init(&profile->ref);
        profile->rows = new_array(n_rows_capacity, sizeof(*profile->rows));
        if (profile->rows == NULL)
                return fail_memory();
        profile->n_rows_capacity = n_rows_capacity;
        profile->graph = graph_ref(graph);
        profile->weights_bytes = graph->weights_bytes;
        *out_profile = take_ptr(profile);
        return STATUS_OK;
}

Status run_profile_reserve(RunProfile *profile, uint32_t n_rows)
{
        if (n_rows <= profile->n_rows_capacity)
                return STATUS_OK;
        NodeTiming *rows = new_array(n_rows, sizeof(*rows));
        if (rows == NULL)
                return fail_memory();
        free(profile->rows);
        profile->rows = rows;
        profile->n_rows_capacity = n_rows;
        return STATUS_OK;
}

RunProfile *run_profile_ref(RunProfile *profile)
{
        refcount_get(&profile->ref);
        return profile;
}

RunProfile *run_profile_unref(RunProfile *profile)
{
        if (profile == NULL || !refcount_put(&profile->ref))
                return NULL;
        program_unref(profile->program);
        graph_unref(profile->graph);
        free(profile->rows);
        free(profile);
        return NULL;
}

struct ProfileRing {
        pthread_mutex_t mutex;
        uint32_t capacity, next;
        RunProfile **items; // counted; NULL where nothing was recorded yet
        uint64_t
                *hashes; // of their ids: the search touches these only, which lie together, and not some hundred profiles all over the heap
};

Status profile_ring_open(uint32_t capacity, ProfileRing **out_ring)
{
        ProfileRing *ring = calloc(1, sizeof(*ring));
        if (ring == NULL)
                return fail_memory();
        ring->capacity = MAX(capacity, 1u);
        ring->items = new_array(ring->capacity, sizeof(*ring->items));
        ring->hashes = new_array(ring->capacity, sizeof(*ring->hashes));
        if (ring->items == NULL || ring->hashes == NULL) {
                free(ring->items);
                free(ring->hashes);
                free(ring);
                return fail_memory();
        }
        pthread_mutex_init(&ring->mutex, NULL);
        *out_ring = ring;
        return STATUS_OK;
}

ProfileRing *profile_ring_close(ProfileRing *ring)
{
        if (ring == NULL)
                return NULL;
        for (uint32_t i = 0; i < ring->capacity; i++)
                run_profile_unref(ring->items[i]);
        pthread_mutex_destroy(&ring->mutex);
        free(ring->items);
        free(ring->hashes);
        free(ring);
        return NULL;
}

static RunProfile **slot_of(ProfileRing *ring, uint64_t hash, const char *id)
{
        for (uint32_t i = 0; i < ring->capacity; i++)
                if (ring->hashes[i] == hash && ring->items[i] != NULL && strcmp(ring->items[i]->id, id) == 0)
                        return &ring->items[i];
        return NULL;
}

void profile_ring_add(ProfileRing *ring, RunProfile *profile)
{
        uint64_t hash = hash_bytes(profile->id, strlen(profile->id));
        pthread_mutex_lock(&ring->mutex);
        // Ids we make are unique; only a client that repeats its X-Request-Id finds an older one.
        RunProfile **slot = slot_of(ring, hash, profile->id);
        if (slot == NULL) {
                slot = &ring->items[ring->next];
                ring->next = (ring->next + 1) % ring->capacity;
        }
        RunProfile *old = *slot;
        *slot = run_profile_ref(profile);
        ring->hashes[slot - ring->items] = hash;
        pthread_mutex_unlock(&ring->mutex);
        run_profile_unref(old);
}

RunProfile *profile_ring_find(ProfileRing *ring, const char *id)
{
        uint64_t hash = hash_bytes(id, strlen(id));
        pthread_mutex_lock(&ring->mutex);
        RunProfile **slot = slot_of(ring, hash, id);
        RunProfile *profile = slot == NULL ? NULL : run_profile_ref(*slot);
        pthread_mutex_unlock(&ring->mutex);
        return profile;
}

static int by_time_taken(const void *a, const void *b)
{
        const RunProfile *left = *(RunProfile *const *)a, *right = *(RunProfile *const *)b;
        return (left->total_ns < right->total_ns) - (left->total_ns > right->total_ns);
}

uint32_t profile_ring_list(ProfileRing *ring, bool slowest, uint32_t capacity, RunProfile **out)
{
        RunProfile **all = new_array(ring->capacity, sizeof(*all));
        uint32_t n = 0;
        if (all == NULL)
                return 0;
        pthread_mutex_lock(&ring->mutex);
        for (uint32_t i = 0; i < ring->capacity; i++) { // newest first
                RunProfile *profile = ring->items[(ring->next + ring->capacity - 1 - i) % ring->capacity];
                if (profile != NULL && (slowest || n < capacity))
                        all[n++] = run_profile_ref(profile);
        }
        pthread_mutex_unlock(&ring->mutex);
        if (slowest)
                qsort(all, n, sizeof(*all), by_time_taken);
        for (uint32_t i = capacity; i < n; i++)
                run_profile_unref(all[i]);
        n = MIN(n, capacity);
        memcpy(out, all, n * sizeof(*all));
        free(all);
        return n;
}
