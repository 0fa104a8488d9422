// SPDX-License-Identifier: Apache-2.0
// Registry: expensive immutable objects by key, built once. An entry goes busy -> ready once; later
// callers park a ticket and hold no thread. Publishing returns all tickets exactly once, with the
// object or the failure; failures are not cached; a cancelled ticket is simply gone, and a build
// whose last ticket was cancelled is told to stop. Least recently used ready entries leave when the
// byte cap or the cap of their group is passed; whoever holds a reference keeps using its object.
//
// Holds decoded graphs by content id, and programs by program key in groups by graph. Any thread.
// See README.md for the states.
#pragma once
#include "core/base/ticket.h"

typedef struct Registry Registry;
typedef struct RegistryEntry RegistryEntry;

typedef struct RegistryKey {
        uint8_t bytes[32];
} RegistryKey;

typedef enum Acquired {
        ACQUIRE_READY,  // `object` is a counted reference
        ACQUIRE_PARKED, // somebody builds it already: the ticket will come back
        // the caller must see to it that `build` is built and published; with a ticket it is parked
        // itself, too
        ACQUIRE_START,
} Acquired;

typedef struct Acquisition {
        Acquired how;
        void *object;
        RegistryEntry *build;
} Acquisition;

typedef struct RegistryType {
        void (*ref)(void *object);
        void (*unref)(void *object);
        size_t (*bytes)(const void *object);
        uint32_t max_per_group; // ready entries; 0: no cap
        // what objects hold together, counted once; may be NULL. Called under the registry's lock
        size_t (*shared_bytes)(void *context);
        void *context;
} RegistryType;

Status registry_open(const RegistryType *type, size_t max_bytes, Registry **out_registry);
Registry *registry_close(Registry *registry); // no ticket may be parked

// `group` NULL: none. STATUS_CANCELLED: the ticket was cancelled before it was parked. `ticket`
// NULL: asks for a build without waiting for it; such a build goes on even when all its waiters
// have left.
Status registry_acquire(Registry *registry, const RegistryKey *key, const RegistryKey *group, Ticket *ticket,
                        Acquisition *out);
// For the builder: until the build is published, *stop becomes 1 when nobody wants it any more (at
// once, if so already).
void registry_watch(Registry *registry, RegistryEntry *build, _Atomic int *stop);
// Ends a build: takes `take_object` (NULL: failed with this thread's failure_current()). Returns
// the tickets to wake, linked by next. Each has a reference to the object, or the failure.
Ticket *registry_publish(Registry *registry, RegistryEntry *build, void *take_object);
// Puts a ready object in (an upload that has just been decoded); replaces nothing that is there.
Status registry_put(Registry *registry, const RegistryKey *key, void *borrow_object);
Status registry_put_in(Registry *registry, const RegistryKey *key, const RegistryKey *group,
                       void *borrow_object);
// The same in the place of whatever is there: nobody finds the key without an object in between. A
// build under way serves its waiters.
Status registry_replace(Registry *registry, const RegistryKey *key, void *borrow_object);
// Counted reference if ready, else NULL. Never parks.
void *registry_peek(Registry *registry, const RegistryKey *key);
// Whether registry_peek would find it; does not count as a use.
bool registry_is_ready(Registry *registry, const RegistryKey *key);
// Ready or being built.
bool registry_has(Registry *registry, const RegistryKey *key);
// Counted references to the group's ready objects, the most recently used first; returns how many.
// Does not count as a use.
uint32_t registry_group(Registry *registry, const RegistryKey *group, uint32_t capacity, void **out_objects);
// For deleted content. A build under way still serves its waiters, and stops when it has none.
void registry_drop(Registry *registry, const RegistryKey *key);
void registry_drop_group(Registry *registry, const RegistryKey *group);

// Entries that nobody has used since the call of registry_age before the last one leave.
void registry_age(Registry *registry);
void registry_drop_unused(Registry *registry);

typedef struct RegistryStats {
        uint64_t hits, misses, builds, evictions;
        size_t bytes;
        uint32_t n_entries;
} RegistryStats;
RegistryStats registry_stats(Registry *registry);
