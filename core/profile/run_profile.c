// SPDX-License-Identifier: Apache-2.0
// Run profiles and the ring of recent ones. A profile is written by one thread, then shared
// read-only; the ring is a circular array under a mutex, replaced oldest first; what repeats an id
// leaves a hole where the older one was.
#include "core/profile/profile.h"
#include "core/program/program.h"
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
        run_labels_unref(profile->labels);
        free(profile->rows);
        free(profile);
        return NULL;
}

struct ProfileRing {
        pthread_mutex_t mutex;
        uint32_t capacity, next;
        RunProfile **items; // counted; NULL where nothing is (any more)
        uint64_t
                // of their ids: the search touches these only, which lie together, and not some
                // hundred profiles all over the heap
                *hashes;
        size_t max_bytes;
        ProfileUse use;
};

Status profile_ring_open(uint32_t capacity, size_t max_bytes, ProfileRing **out_ring)
{
        ProfileRing *ring = calloc(1, sizeof(*ring));
        if (ring == NULL)
                return fail_memory();
        ring->capacity = MAX(capacity, 1u);
        ring->max_bytes = max_bytes;
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

ProfileUse profile_ring_use(ProfileRing *ring)
{
        pthread_mutex_lock(&ring->mutex);
        ProfileUse use = ring->use;
        pthread_mutex_unlock(&ring->mutex);
        return use;
}

// ---- under the mutex ----
static RunProfile **slot_of(ProfileRing *ring, uint64_t hash, const char *id)
{
        for (uint32_t i = 0; i < ring->capacity; i++)
                if (ring->hashes[i] == hash && ring->items[i] != NULL && strcmp(ring->items[i]->id, id) == 0)
                        return &ring->items[i];
        return NULL;
}

static size_t own_bytes(const RunProfile *profile)
{
        return sizeof(*profile) + profile->n_rows_capacity * sizeof(*profile->rows);
}

// Labels count once, however many profiles share them.
static void empty(ProfileRing *ring, RunProfile **slot)
{
        RunProfile *gone = *slot;
        if (gone == NULL)
                return;
        *slot = NULL;
        ring->use.bytes -= own_bytes(gone);
        if (gone->labels != NULL && --gone->labels->n_in_ring == 0)
                ring->use.bytes -= run_labels_bytes(gone->labels);
        run_profile_unref(gone);
}

static void fill(ProfileRing *ring, RunProfile **slot, RunProfile *profile)
{
        *slot = run_profile_ref(profile);
        ring->use.bytes += own_bytes(profile);
        if (profile->labels != NULL && profile->labels->n_in_ring++ == 0)
                ring->use.bytes += run_labels_bytes(profile->labels);
}

void profile_ring_add(ProfileRing *ring, RunProfile *profile)
{
        uint64_t hash = hash_bytes(profile->id, strlen(profile->id));
        pthread_mutex_lock(&ring->mutex);
        // Ids we make are unique; only a client that repeats its X-Request-Id finds an older one.
        RunProfile **older = slot_of(ring, hash, profile->id);
        if (older != NULL)
                empty(ring, older);
        RunProfile **slot = &ring->items[ring->next];
        empty(ring, slot);
        fill(ring, slot, profile);
        ring->hashes[ring->next] = hash;
        ring->next = (ring->next + 1) % ring->capacity;
        for (uint32_t i = 0; i < ring->capacity && ring->use.bytes > ring->max_bytes; i++) { // oldest first
                RunProfile **oldest = &ring->items[(ring->next + i) % ring->capacity];
                ring->use.evictions += *oldest != NULL;
                empty(ring, oldest);
        }
        pthread_mutex_unlock(&ring->mutex);
}

void profile_ring_clear(ProfileRing *ring)
{
        pthread_mutex_lock(&ring->mutex);
        for (uint32_t i = 0; i < ring->capacity; i++) {
                ring->use.evictions += ring->items[i] != NULL;
                empty(ring, &ring->items[i]);
        }
        pthread_mutex_unlock(&ring->mutex);
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
