// SPDX-License-Identifier: Apache-2.0
// One mutex guards the table; nothing is built, freed or woken under it. An entry is BUSY (someone builds, others are parked on its ticket
// list) or READY (one counted object). Failures remove the entry, so the next caller starts again. Ready entries hang in a list, least
// recently used first. A dropped entry leaves the table at once and dies when its build is published.
#include "core/registry/registry.h"
#include <pthread.h>
#include <string.h>

typedef enum EntryState { ENTRY_NEW, ENTRY_BUSY, ENTRY_READY } EntryState; // NEW never leaves the lock

struct RegistryEntry {
        RegistryKey key;
        EntryState state;
        bool dropped;
        void *object; // READY: counted
        size_t n_bytes;
        Ticket *waiting; // BUSY
        RegistryEntry *next_in_bucket;
        RegistryEntry *newer, *older; // READY: LRU list
};

enum { N_BUCKETS = 1024 };

struct Registry {
        pthread_mutex_t mutex;
        RegistryType type;
        size_t max_bytes;
        RegistryEntry *buckets[N_BUCKETS];
        RegistryEntry *newest, *oldest;
        RegistryStats stats;
};

static RegistryEntry **bucket_of(Registry *registry, const RegistryKey *key)
{
        uint32_t word; // keys are SHA-256: any four bytes will do
        memcpy(&word, key->bytes, sizeof(word));
        return &registry->buckets[word % N_BUCKETS];
}

static RegistryEntry *entry_find(Registry *registry, const RegistryKey *key)
{
        for (RegistryEntry *entry = *bucket_of(registry, key); entry != NULL; entry = entry->next_in_bucket)
                if (memcmp(entry->key.bytes, key->bytes, sizeof(key->bytes)) == 0)
                        return entry;
        return NULL;
}

static void lru_unlink(Registry *registry, RegistryEntry *entry)
{
        *(entry->newer != NULL ? &entry->newer->older : &registry->newest) = entry->older;
        *(entry->older != NULL ? &entry->older->newer : &registry->oldest) = entry->newer;
        entry->newer = entry->older = NULL;
}

static void lru_push(Registry *registry, RegistryEntry *entry)
{
        entry->older = registry->newest;
        entry->newer = NULL;
        *(registry->newest != NULL ? &registry->newest->newer : &registry->oldest) = entry;
        registry->newest = entry;
}

static void table_remove(Registry *registry, RegistryEntry *entry)
{
        RegistryEntry **link = bucket_of(registry, &entry->key);
        while (*link != entry)
                link = &(*link)->next_in_bucket;
        *link = entry->next_in_bucket;
        registry->stats.n_entries--;
}

static RegistryEntry *entry_add(Registry *registry, const RegistryKey *key)
{
        RegistryEntry *entry = calloc(1, sizeof(*entry));
        if (entry == NULL)
                return NULL;
        entry->key = *key;
        RegistryEntry **bucket = bucket_of(registry, key);
        entry->next_in_bucket = *bucket;
        *bucket = entry;
        registry->stats.n_entries++;
        return entry;
}

// Takes entries off the old end until the cap holds; returns them chained through next_in_bucket for freeing outside the lock. `keep`
// stays.
static RegistryEntry *evict(Registry *registry, const RegistryEntry *keep)
{
        RegistryEntry *gone = NULL;
        while (registry->stats.bytes > registry->max_bytes && registry->oldest != NULL && registry->oldest != keep) {
                RegistryEntry *entry = registry->oldest;
                lru_unlink(registry, entry);
                table_remove(registry, entry);
                registry->stats.bytes -= entry->n_bytes;
                registry->stats.evictions++;
                entry->next_in_bucket = gone;
                gone = entry;
        }
        return gone;
}

static void free_chain(Registry *registry, RegistryEntry *entry)
{
        while (entry != NULL) {
                RegistryEntry *next = entry->next_in_bucket;
                registry->type.unref(entry->object);
                free(entry);
                entry = next;
        }
}

static void make_ready(Registry *registry, RegistryEntry *entry, void *take_object)
{
        entry->state = ENTRY_READY;
        entry->object = take_object;
        entry->n_bytes = registry->type.bytes(take_object);
        registry->stats.bytes += entry->n_bytes;
        lru_push(registry, entry);
}

Status registry_open(const RegistryType *type, size_t max_bytes, Registry **out_registry)
{
        Registry *registry = calloc(1, sizeof(*registry));
        if (registry == NULL)
                return fail_memory();
        pthread_mutex_init(&registry->mutex, NULL);
        registry->type = *type;
        registry->max_bytes = max_bytes;
        *out_registry = registry;
        return STATUS_OK;
}

Registry *registry_close(Registry *registry)
{
        if (registry == NULL)
                return NULL;
        for (size_t i = 0; i < N_BUCKETS; i++)
                for (RegistryEntry *entry = registry->buckets[i]; entry != NULL;) {
                        RegistryEntry *next = entry->next_in_bucket;
                        if (entry->object != NULL)
                                registry->type.unref(entry->object);
                        free(entry);
                        entry = next;
                }
        pthread_mutex_destroy(&registry->mutex);
        free(registry);
        return NULL;
}

static void *touch(Registry *registry, RegistryEntry *entry)
{
        lru_unlink(registry, entry);
        lru_push(registry, entry);
        registry->stats.hits++;
        registry->type.ref(entry->object);
        return entry->object;
}

static void park(RegistryEntry *entry, Ticket *ticket)
{
        memset(ticket, 0, sizeof(*ticket));
        ticket->entry = entry;
        ticket->next = entry->waiting;
        entry->waiting = ticket;
}

Status registry_acquire(Registry *registry, const RegistryKey *key, Ticket *ticket, Acquired *out_how, void **out_object,
                        RegistryEntry **out_build)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        if (entry != NULL && entry->state == ENTRY_READY) {
                *out_object = touch(registry, entry);
                *out_how = ACQUIRE_READY;
        } else if (entry != NULL) {
                park(entry, ticket);
                *out_how = ACQUIRE_PARKED;
        } else if ((entry = entry_add(registry, key)) != NULL) {
                registry->stats.misses++;
                registry->stats.builds++;
                entry->state = ENTRY_BUSY;
                park(entry, ticket);
                *out_build = entry;
                *out_how = ACQUIRE_PARKED_START;
        } else {
                status = fail_memory();
        }
        pthread_mutex_unlock(&registry->mutex);
        return status;
}

// Gives every ticket its share of the outcome. Failures are copied per ticket: the thread that wakes is not the one that failed.
static void settle(Registry *registry, Ticket *tickets, void *object, const Failure *failure)
{
        for (Ticket *ticket = tickets; ticket != NULL; ticket = ticket->next) {
                ticket->entry = NULL;
                if (object != NULL) {
                        registry->type.ref(object);
                        ticket->object = object;
                        continue;
                }
                ticket->status = failure->status == STATUS_OK ? STATUS_INTERNAL : failure->status;
                ticket->failure = malloc(sizeof(*ticket->failure));
                if (ticket->failure != NULL)
                        *ticket->failure = *failure;
        }
}

Ticket *registry_publish(Registry *registry, RegistryEntry *build, void *take_object)
{
        RegistryEntry *gone = NULL, *dead = NULL;
        pthread_mutex_lock(&registry->mutex);
        Ticket *tickets = build->waiting;
        build->waiting = NULL;
        settle(registry, tickets, take_object, failure_current());
        if (take_object != NULL && !build->dropped) {
                make_ready(registry, build, take_object);
                take_object = NULL;
                gone = evict(registry, build);
        } else {
                if (!build->dropped)
                        table_remove(registry, build);
                dead = build;
        }
        pthread_mutex_unlock(&registry->mutex);
        if (take_object != NULL)
                registry->type.unref(take_object);
        free(dead);
        free_chain(registry, gone);
        return tickets;
}

bool registry_cancel(Registry *registry, Ticket *ticket)
{
        bool found = false;
        pthread_mutex_lock(&registry->mutex);
        if (ticket->entry != NULL) {
                Ticket **link = &ticket->entry->waiting;
                while (*link != NULL && *link != ticket)
                        link = &(*link)->next;
                found = *link == ticket;
                if (found) {
                        *link = ticket->next;
                        ticket->next = NULL;
                        ticket->entry = NULL;
                }
        }
        pthread_mutex_unlock(&registry->mutex);
        return found;
}

Status registry_put(Registry *registry, const RegistryKey *key, void *borrow_object)
{
        Status status = STATUS_OK;
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        if (entry == NULL && (entry = entry_add(registry, key)) == NULL) {
                status = fail_memory();
        } else if (entry->state == ENTRY_NEW) {
                registry->type.ref(borrow_object);
                make_ready(registry, entry, borrow_object);
                gone = evict(registry, entry);
        }
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
        return status;
}

void *registry_peek(Registry *registry, const RegistryKey *key)
{
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        void *object = entry != NULL && entry->state == ENTRY_READY ? touch(registry, entry) : NULL;
        pthread_mutex_unlock(&registry->mutex);
        return object;
}

void registry_drop(Registry *registry, const RegistryKey *key)
{
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        if (entry != NULL) {
                table_remove(registry, entry);
                if (entry->state == ENTRY_READY) {
                        lru_unlink(registry, entry);
                        registry->stats.bytes -= entry->n_bytes;
                        entry->next_in_bucket = NULL;
                        gone = entry;
                } else {
                        entry->dropped = true;
                }
        }
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
}

RegistryStats registry_stats(Registry *registry)
{
        pthread_mutex_lock(&registry->mutex);
        RegistryStats stats = registry->stats;
        pthread_mutex_unlock(&registry->mutex);
        return stats;
}
