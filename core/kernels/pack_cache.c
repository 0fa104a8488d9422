// SPDX-License-Identifier: Apache-2.0
// A hash table under one mutex. The table does not count its entries: users hold a storage whose
// release removes the entry. Between the last unref and the release taking the lock, an entry can
// still be found. Its count is then zero and is not raised, and a new entry is made beside it.
// Waiting for a maker blocks the thread: makers wait for nobody and take milliseconds.
#include "core/kernels/pack_cache.h"
#include <pthread.h>
#include <string.h>
#include "core/base/hash.h"

enum { N_BUCKETS = 1024 };

typedef struct PackEntry {
        struct PackEntry *next;
        PackCache *cache; // counted
        HashHex key;
        bool busy;
        Storage *sources[PACK_SOURCES]; // counted
        Storage *made;                  // counted
        Storage *shared;                // the storage that users count; its owner is this entry
} PackEntry;

struct PackCache {
        RefCount ref;
        pthread_mutex_t mutex;
        pthread_cond_t settled; // an entry is not busy any more, or gone
        PackEntry *buckets[N_BUCKETS];
        PackCacheStats stats;
};

Status pack_cache_open(PackCache **out_cache)
{
        PackCache *cache = calloc(1, sizeof(*cache));
        if (cache == NULL)
                return fail_memory();
        refcount_init(&cache->ref);
        pthread_mutex_init(&cache->mutex, NULL);
        pthread_cond_init(&cache->settled, NULL);
        *out_cache = cache;
        return STATUS_OK;
}

PackCache *pack_cache_close(PackCache *cache)
{
        if (cache == NULL || !refcount_put(&cache->ref))
                return NULL;
        pthread_mutex_destroy(&cache->mutex);
        pthread_cond_destroy(&cache->settled);
        free(cache);
        return NULL;
}

// ---- keys ----
HashHex pack_cache_key(const char *format, const PackSource *sources, uint32_t n_sources)
{
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, format, strlen(format) + 1);
        for (uint32_t i = 0; i < n_sources; i++) {
                const TensorMeta *meta = sources[i].meta;
                const StorageSource *from = sources[i].storage->source;
                uintptr_t place = (uintptr_t)sources[i].data;
                if (from != NULL)
                        place -= (uintptr_t)sources[i].storage->data;
                int64_t words[5] = { (int64_t)place, meta == NULL ? -1 : meta->rank,
                                     meta == NULL ? 0 : meta->dtype, from != NULL,
                                     sources[i].widened ? (int64_t)sources[i].stored : -1 };
                sha256_add(&sha, words, sizeof(words));
                if (from != NULL)
                        sha256_add(&sha, from->key.hex, sizeof(from->key.hex));
                if (meta == NULL)
                        continue;
                sha256_add(&sha, meta->size, meta->rank * sizeof(int64_t));
                sha256_add(&sha, meta->stride, meta->rank * sizeof(int64_t));
        }
        return sha256_finish(&sha);
}

static PackEntry **bucket_of(PackCache *cache, const HashHex *key)
{
        uint32_t word;
        memcpy(&word, key->hex, sizeof(word));
        uint32_t mixed = word * 2654435761u; // hex digits: few bits each
        return &cache->buckets[mixed >> 22];
}

// ---- entries ----
static void entry_unlink(PackEntry *entry)
{
        PackEntry **link = bucket_of(entry->cache, &entry->key);
        while (*link != entry)
                link = &(*link)->next;
        *link = entry->next;
}

static void entry_free(PackEntry *entry)
{
        storage_unref(entry->made);
        for (size_t i = 0; i < PACK_SOURCES; i++)
                storage_unref(entry->sources[i]);
        pack_cache_close(entry->cache);
        free(entry);
}

// Release of the storage: the last user has dropped it.
static void release(void *owner, void *data)
{
        PackEntry *entry = owner;
        PackCache *cache = entry->cache;
        (void)data;
        pthread_mutex_lock(&cache->mutex);
        entry_unlink(entry);
        cache->stats.bytes -= entry->made->n_bytes;
        cache->stats.n_entries--;
        pthread_mutex_unlock(&cache->mutex);
        entry_free(entry);
}

// Adds a user, unless the last one has just dropped the storage.
static bool try_ref(Storage *storage)
{
        uint32_t count = atomic_load(&storage->ref.count);
        while (count != 0)
                if (atomic_compare_exchange_weak(&storage->ref.count, &count, count + 1))
                        return true;
        return false;
}

// Called under the lock, which is released while waiting. NULL: absent.
static Status find(PackCache *cache, const HashHex *key, const RunContext *poll, Storage **out_found)
{
        PackEntry *entry = *bucket_of(cache, key);
        *out_found = NULL;
        while (entry != NULL && *out_found == NULL) {
                bool same = memcmp(entry->key.hex, key->hex, sizeof(key->hex)) == 0;
                if (same && entry->busy) {
                        TRY(run_wait(poll, &cache->settled, &cache->mutex));
                        entry = *bucket_of(cache, key); // the table may have changed while waiting
                } else if (same && try_ref(entry->shared)) {
                        *out_found = entry->shared;
                } else {
                        entry = entry->next;
                }
        }
        return STATUS_OK;
}

static Status finish(PackEntry *entry, Status status, Storage *made, Storage **out_storage)
{
        PackCache *cache = entry->cache;
        if (status == STATUS_OK) {
                status = storage_adopt(made->data, made->n_bytes, true, release, entry, &entry->shared);
                if (status != STATUS_OK)
                        storage_unref(made);
                else
                        entry->shared->source = storage_source_ref(made->source);
        }
        pthread_mutex_lock(&cache->mutex);
        entry->busy = false;
        if (status == STATUS_OK) {
                entry->made = made;
                cache->stats.bytes += made->n_bytes;
                cache->stats.n_entries++;
                *out_storage = entry->shared;
        } else {
                entry_unlink(entry);
        }
        pthread_cond_broadcast(&cache->settled);
        pthread_mutex_unlock(&cache->mutex);
        if (status != STATUS_OK)
                entry_free(entry);
        return status;
}

Status pack_cache_get(PackCache *cache, const char *format, const PackSource *sources, uint32_t n_sources,
                      PackMaker maker, Storage **out_storage)
{
        if (cache == NULL)
                return maker.make(maker.context, out_storage);
        HashHex key = pack_cache_key(format, sources, n_sources);
        PackEntry *entry = calloc(1, sizeof(*entry));
        if (entry == NULL)
                return fail_memory();
        pthread_mutex_lock(&cache->mutex);
        Storage *found = NULL;
        Status status = find(cache, &key, maker.poll, &found);
        if (status == STATUS_OK && found == NULL) {
                PackEntry **bucket = bucket_of(cache, &key);
                refcount_get(&cache->ref);
                *entry = (PackEntry){ .next = *bucket, .cache = cache, .key = key, .busy = true };
                *bucket = entry;
                for (uint32_t i = 0; i < n_sources && i < PACK_SOURCES; i++)
                        entry->sources[i] = storage_ref(storage_root(sources[i].storage));
                cache->stats.builds++;
        } else if (status == STATUS_OK) {
                cache->stats.hits++;
        }
        pthread_mutex_unlock(&cache->mutex);
        if (status != STATUS_OK || found != NULL) {
                free(entry);
                if (found != NULL)
                        *out_storage = found;
                return status;
        }
        Storage *made = NULL;
        status = maker.make(maker.context, &made);
        for (uint32_t i = 0; i < n_sources; i++)
                storage_rest(sources[i].storage); // runs read the packed bytes
        return finish(entry, status, made, out_storage);
}

PackCacheStats pack_cache_stats(PackCache *cache)
{
        pthread_mutex_lock(&cache->mutex);
        PackCacheStats stats = cache->stats;
        pthread_mutex_unlock(&cache->mutex);
        return stats;
}
