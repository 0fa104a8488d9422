// SPDX-License-Identifier: Apache-2.0
// One mutex guards the table; nothing is built, freed or woken under it. An entry is BUSY (someone
// builds, others are parked on its ticket list) or READY (one counted object). Failures remove the
// entry, so the next caller starts again. Ready entries hang in a list, least recently used first.
// A dropped entry leaves the table at once and dies when its build is published; so does a build
// that nobody wants any more, so that the next caller does not wait for something that is stopping.
#include "core/registry/registry.h"
#include <pthread.h>
#include <string.h>

typedef enum EntryState { ENTRY_NEW, ENTRY_BUSY, ENTRY_READY } EntryState; // NEW never leaves the lock

struct RegistryEntry {
        RegistryKey key, group;
        bool has_group;
        EntryState state;
        bool dropped; // no longer in the table
        bool pinned;  // BUSY: goes on without waiters
        void *object; // READY: counted
        size_t n_bytes;
        uint64_t used;     // READY: the registry's tick at its last use
        Ticket *waiting;   // BUSY
        _Atomic int *stop; // BUSY: the builder's; may be NULL
        // the latter: of the group's bucket, which other groups share
        RegistryEntry *next_in_bucket, *next_in_group;
        RegistryEntry *newer, *older; // READY: LRU list
};

enum { N_BUCKETS = 1024 };

struct Registry {
        TicketDesk desk; // first: cancel_at finds the registry by it
        pthread_mutex_t mutex;
        RegistryType type;
        size_t max_bytes;
        RegistryEntry *buckets[N_BUCKETS], *groups[N_BUCKETS];
        RegistryEntry *newest, *oldest;
        uint64_t tick, aged[2]; // the tick at the last call of registry_age, and at the one before
        RegistryStats stats;
};

// ---- the table, under the mutex ----
static size_t slot_of(const RegistryKey *key)
{
        uint32_t word; // keys are SHA-256: any four bytes will do
        memcpy(&word, key->bytes, sizeof(word));
        return word % N_BUCKETS;
}

static bool same_key(const RegistryKey *a, const RegistryKey *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool in_group(const RegistryEntry *entry, const RegistryKey *group)
{
        return same_key(&entry->group, group);
}

static RegistryEntry *entry_find(Registry *registry, const RegistryKey *key)
{
        for (RegistryEntry *entry = registry->buckets[slot_of(key)]; entry != NULL;
             entry = entry->next_in_bucket)
                if (same_key(&entry->key, key))
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
        entry->used = ++registry->tick;
        entry->older = registry->newest;
        entry->newer = NULL;
        *(registry->newest != NULL ? &registry->newest->newer : &registry->oldest) = entry;
        registry->newest = entry;
}

static void table_remove(Registry *registry, RegistryEntry *entry)
{
        RegistryEntry **link = &registry->buckets[slot_of(&entry->key)];
        while (*link != entry)
                link = &(*link)->next_in_bucket;
        *link = entry->next_in_bucket;
        for (link = &registry->groups[slot_of(&entry->group)]; entry->has_group;
             link = &(*link)->next_in_group)
                if (*link == entry) {
                        *link = entry->next_in_group;
                        break;
                }
        registry->stats.n_entries--;
}

static RegistryEntry *entry_add(Registry *registry, const RegistryKey *key, const RegistryKey *group)
{
        RegistryEntry *entry = calloc(1, sizeof(*entry));
        if (entry == NULL)
                return NULL;
        entry->key = *key;
        RegistryEntry **bucket = &registry->buckets[slot_of(key)];
        entry->next_in_bucket = *bucket;
        *bucket = entry;
        if (group != NULL) {
                entry->group = *group;
                entry->has_group = true;
                bucket = &registry->groups[slot_of(group)];
                entry->next_in_group = *bucket;
                *bucket = entry;
        }
        registry->stats.n_entries++;
        return entry;
}

// Takes an entry out of the table. Ready ones join the chain (through next_in_bucket) to be freed
// outside the lock. Busy ones die when they are published, and are stopped if no ticket is parked.
static RegistryEntry *take_out(Registry *registry, RegistryEntry *entry, RegistryEntry *gone)
{
        table_remove(registry, entry);
        if (entry->state == ENTRY_READY) {
                lru_unlink(registry, entry);
                registry->stats.bytes -= entry->n_bytes;
                entry->next_in_bucket = gone;
                return entry;
        }
        entry->dropped = true;
        if (entry->waiting == NULL && entry->stop != NULL)
                atomic_store(entry->stop, 1);
        return gone;
}

static RegistryEntry *oldest_of_crowd(Registry *registry, const RegistryKey *group)
{
        RegistryEntry *oldest = NULL;
        uint32_t n = 0;
        for (RegistryEntry *entry = registry->groups[slot_of(group)]; entry != NULL;
             entry = entry->next_in_group) {
                if (entry->state != ENTRY_READY || !in_group(entry, group))
                        continue;
                n++;
                if (oldest == NULL || entry->used < oldest->used)
                        oldest = entry;
        }
        return n > registry->type.max_per_group ? oldest : NULL;
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

static size_t shared_bytes(const Registry *registry)
{
        return registry->type.shared_bytes == NULL ? 0 : registry->type.shared_bytes(registry->type.context);
}

static bool is_full(const Registry *registry)
{
        return registry->stats.bytes + shared_bytes(registry) > registry->max_bytes;
}

// Makes room after `keep` was added: evicts the oldest entries by bytes, and by number within its
// group. One at a time, freed outside the lock: the bytes that are freed are known only then.
static void evict(Registry *registry, const RegistryKey *keep, const RegistryKey *group)
{
        RegistryEntry *gone;
        do {
                pthread_mutex_lock(&registry->mutex);
                RegistryEntry *oldest = registry->oldest;
                if (oldest != NULL && (same_key(&oldest->key, keep) || !is_full(registry)))
                        oldest = NULL;
                if (oldest == NULL && group != NULL && registry->type.max_per_group > 0)
                        oldest = oldest_of_crowd(registry, group);
                gone = oldest == NULL ? NULL : take_out(registry, oldest, NULL);
                registry->stats.evictions += gone != NULL;
                pthread_mutex_unlock(&registry->mutex);
                free_chain(registry, gone);
        } while (gone != NULL);
}

static void make_ready(Registry *registry, RegistryEntry *entry, void *take_object)
{
        entry->state = ENTRY_READY;
        entry->object = take_object;
        entry->n_bytes = registry->type.bytes(take_object);
        registry->stats.bytes += entry->n_bytes;
        lru_push(registry, entry);
}

// ---- tickets taken back ----
// Under the mutex: the ticket's owner gave up.
static void unpark(Registry *registry, Ticket *ticket)
{
        RegistryEntry *entry = ticket->place;
        Ticket **link = &entry->waiting;
        while (*link != ticket)
                link = &(*link)->next;
        *link = ticket->next;
        ticket_leave(ticket);
        if (entry->waiting != NULL)
                return;
        if (entry->dropped && entry->stop != NULL)
                atomic_store(entry->stop, 1);
        else if (!entry->dropped && !entry->pinned)
                take_out(registry, entry, NULL);
}

static bool cancel_at(TicketDesk *desk, Ticket *ticket)
{
        Registry *registry = (Registry *)desk;
        pthread_mutex_lock(&registry->mutex);
        bool is_parked = ticket_is_at(ticket, desk);
        if (is_parked)
                unpark(registry, ticket);
        pthread_mutex_unlock(&registry->mutex);
        return is_parked;
}

// ---- open and close ----
Status registry_open(const RegistryType *type, size_t max_bytes, Registry **out_registry)
{
        Registry *registry = calloc(1, sizeof(*registry));
        if (registry == NULL)
                return fail_memory();
        pthread_mutex_init(&registry->mutex, NULL);
        registry->type = *type;
        registry->desk = (TicketDesk){ .cancel = cancel_at, .unref = type->unref };
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

// ---- acquire, build, publish ----
static void *touch(Registry *registry, RegistryEntry *entry)
{
        lru_unlink(registry, entry);
        lru_push(registry, entry);
        registry->stats.hits++;
        registry->type.ref(entry->object);
        return entry->object;
}

static Status park(Registry *registry, RegistryEntry *entry, Ticket *ticket)
{
        if (ticket == NULL) {
                entry->pinned = true;
                return STATUS_OK;
        }
        TRY(ticket_park(ticket, &registry->desk, entry));
        ticket->next = entry->waiting;
        entry->waiting = ticket;
        return STATUS_OK;
}

// Makes a BUSY entry for an object that nobody builds yet.
static Status start(Registry *registry, const RegistryKey *key, const RegistryKey *group, Ticket *ticket,
                    RegistryEntry **out_build)
{
        RegistryEntry *entry = entry_add(registry, key, group);
        if (entry == NULL)
                return fail_memory();
        entry->state = ENTRY_BUSY;
        Status status = park(registry, entry, ticket);
        if (status != STATUS_OK) {
                table_remove(registry, entry);
                free(entry);
                return status;
        }
        registry->stats.misses++;
        registry->stats.builds++;
        *out_build = entry;
        return STATUS_OK;
}

Status registry_acquire(Registry *registry, const RegistryKey *key, const RegistryKey *group, Ticket *ticket,
                        Acquisition *out)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        if (entry != NULL && entry->state == ENTRY_READY) {
                *out = (Acquisition){ .how = ACQUIRE_READY, .object = touch(registry, entry) };
        } else if (entry != NULL) {
                status = park(registry, entry, ticket);
                *out = (Acquisition){ .how = ACQUIRE_PARKED };
        } else {
                *out = (Acquisition){ .how = ACQUIRE_START };
                status = start(registry, key, group, ticket, &out->build);
        }
        pthread_mutex_unlock(&registry->mutex);
        return status;
}

void registry_watch(Registry *registry, RegistryEntry *build, _Atomic int *stop)
{
        pthread_mutex_lock(&registry->mutex);
        build->stop = stop;
        if (build->dropped && build->waiting == NULL)
                atomic_store(stop, 1);
        pthread_mutex_unlock(&registry->mutex);
}

// Gives every ticket its reference to the object, or the failure.
static void settle(Registry *registry, Ticket *tickets, void *object, const Failure *failure)
{
        for (Ticket *ticket = tickets; ticket != NULL; ticket = ticket->next) {
                if (object != NULL)
                        registry->type.ref(object);
                ticket_settle(ticket, object, failure);
        }
}

Ticket *registry_publish(Registry *registry, RegistryEntry *build, void *take_object)
{
        RegistryKey key = build->key, group = build->group;
        bool has_group = build->has_group, kept = false;
        pthread_mutex_lock(&registry->mutex);
        Ticket *tickets = build->waiting;
        build->waiting = NULL;
        build->stop = NULL;
        settle(registry, tickets, take_object, failure_current());
        if (take_object != NULL && !build->dropped) {
                make_ready(registry, build, take_object);
                kept = true;
        } else if (!build->dropped) {
                table_remove(registry, build);
        }
        pthread_mutex_unlock(&registry->mutex);
        if (kept) {
                evict(registry, &key, has_group ? &group : NULL);
                return tickets;
        }
        if (take_object != NULL)
                registry->type.unref(take_object);
        free(build);
        return tickets;
}

// ---- without building ----
Status registry_put_in(Registry *registry, const RegistryKey *key, const RegistryKey *group,
                       void *borrow_object)
{
        bool added = false;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        Status status = STATUS_OK;
        if (entry == NULL && (entry = entry_add(registry, key, group)) == NULL) {
                status = fail_memory();
        } else if (entry->state == ENTRY_NEW) {
                registry->type.ref(borrow_object);
                make_ready(registry, entry, borrow_object);
                added = true;
        }
        pthread_mutex_unlock(&registry->mutex);
        if (added)
                evict(registry, key, group);
        return status;
}

Status registry_put(Registry *registry, const RegistryKey *key, void *borrow_object)
{
        return registry_put_in(registry, key, NULL, borrow_object);
}

Status registry_replace(Registry *registry, const RegistryKey *key, void *borrow_object)
{
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *old = entry_find(registry, key), *entry = entry_add(registry, key, NULL);
        if (entry != NULL) {
                if (old != NULL)
                        gone = take_out(registry, old, NULL);
                registry->type.ref(borrow_object);
                make_ready(registry, entry, borrow_object);
        }
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
        if (entry == NULL)
                return fail_memory();
        evict(registry, key, NULL);
        return STATUS_OK;
}

void *registry_peek(Registry *registry, const RegistryKey *key)
{
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        void *object = entry != NULL && entry->state == ENTRY_READY ? touch(registry, entry) : NULL;
        pthread_mutex_unlock(&registry->mutex);
        return object;
}

bool registry_is_ready(Registry *registry, const RegistryKey *key)
{
        pthread_mutex_lock(&registry->mutex);
        const RegistryEntry *entry = entry_find(registry, key);
        bool ready = entry != NULL && entry->state == ENTRY_READY;
        pthread_mutex_unlock(&registry->mutex);
        return ready;
}

bool registry_has(Registry *registry, const RegistryKey *key)
{
        pthread_mutex_lock(&registry->mutex);
        bool has = entry_find(registry, key) != NULL;
        pthread_mutex_unlock(&registry->mutex);
        return has;
}

uint32_t registry_group(Registry *registry, const RegistryKey *group, uint32_t capacity, void **out_objects)
{
        uint32_t n = 0;
        pthread_mutex_lock(&registry->mutex);
        for (RegistryEntry *last = NULL; n < capacity;) {
                RegistryEntry *newest = NULL; // of those older than the last one: groups are small
                for (RegistryEntry *entry = registry->groups[slot_of(group)]; entry != NULL;
                     entry = entry->next_in_group)
                        if (entry->state == ENTRY_READY && in_group(entry, group) &&
                            (last == NULL || entry->used < last->used) &&
                            (newest == NULL || entry->used > newest->used))
                                newest = entry;
                if (newest == NULL)
                        break;
                registry->type.ref(newest->object);
                out_objects[n++] = newest->object;
                last = newest;
        }
        pthread_mutex_unlock(&registry->mutex);
        return n;
}

void registry_drop(Registry *registry, const RegistryKey *key)
{
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        RegistryEntry *entry = entry_find(registry, key);
        if (entry != NULL)
                gone = take_out(registry, entry, NULL);
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
}

void registry_drop_group(Registry *registry, const RegistryKey *group)
{
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        for (RegistryEntry *entry = registry->groups[slot_of(group)], *next; entry != NULL; entry = next) {
                next = entry->next_in_group;
                if (in_group(entry, group))
                        gone = take_out(registry, entry, gone);
        }
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
}

void registry_age(Registry *registry)
{
        pthread_mutex_lock(&registry->mutex);
        registry->aged[1] = registry->aged[0];
        registry->aged[0] = registry->tick;
        pthread_mutex_unlock(&registry->mutex);
}

void registry_drop_unused(Registry *registry)
{
        RegistryEntry *gone = NULL;
        pthread_mutex_lock(&registry->mutex);
        while (registry->oldest != NULL && registry->oldest->used <= registry->aged[1]) {
                gone = take_out(registry, registry->oldest, gone);
                registry->stats.evictions++;
        }
        pthread_mutex_unlock(&registry->mutex);
        free_chain(registry, gone);
}

RegistryStats registry_stats(Registry *registry)
{
        pthread_mutex_lock(&registry->mutex);
        RegistryStats stats = registry->stats;
        stats.bytes += shared_bytes(registry);
        pthread_mutex_unlock(&registry->mutex);
        return stats;
}
