// SPDX-License-Identifier: Apache-2.0
// Registry: expensive immutable objects by key, built once. An entry goes busy -> ready once; later callers park a ticket and hold no
// thread. Publishing returns all tickets exactly once, with the object or the failure; failures are not cached; a cancelled ticket is
// simply gone. Least recently used ready entries leave when the byte cap is passed; whoever holds a reference keeps using its object.
//
// Holds decoded graphs by content id now; compiled programs use the same rules. Any thread. See README.md for the states.
#pragma once
#include "core/base/memory.h"

typedef struct Registry Registry;
typedef struct RegistryEntry RegistryEntry;

typedef struct RegistryKey {
        uint8_t bytes[32];
} RegistryKey;

// Embedded in whatever waits. `wake` is not called by the registry: registry_publish hands the list to the publisher.
typedef struct Ticket {
        struct Ticket *next;
        RegistryEntry *entry; // NULL when not parked
        void *object;         // after publication: counted reference, or NULL
        Status status;        // why there is none
        Failure *failure;     // heap copy, owned by the ticket's owner; NULL when object is set or memory was out
} Ticket;

typedef enum Acquired {
        ACQUIRE_READY,        // *out_object is a counted reference
        ACQUIRE_PARKED,       // somebody builds it already
        ACQUIRE_PARKED_START, // the caller must see to it that *out_build is built and published; it is parked itself, too
} Acquired;

typedef struct RegistryType {
        void (*ref)(void *object);
        void (*unref)(void *object);
        size_t (*bytes)(const void *object);
} RegistryType;

Status registry_open(const RegistryType *type, size_t max_bytes, Registry **out_registry);
Registry *registry_close(Registry *registry); // no ticket may be parked

Status registry_acquire(Registry *registry, const RegistryKey *key, Ticket *ticket, Acquired *out_how, void **out_object,
                        RegistryEntry **out_build);
// Ends a build: takes `take_object` (NULL: failed with this thread's failure_current()). Returns the tickets to wake, linked by next.
Ticket *registry_publish(Registry *registry, RegistryEntry *build, void *take_object);
// Takes the ticket out of the waiting list. False: it was published already (the wake-up is on its way).
bool registry_cancel(Registry *registry, Ticket *ticket);
// Puts a ready object in (an upload that has just been decoded); replaces nothing that is there.
Status registry_put(Registry *registry, const RegistryKey *key, void *borrow_object);
// Counted reference if ready, else NULL. Never parks.
void *registry_peek(Registry *registry, const RegistryKey *key);
void registry_drop(Registry *registry, const RegistryKey *key); // deleted content; a build under way still serves its waiters

typedef struct RegistryStats {
        uint64_t hits, misses, builds, evictions;
        size_t bytes;
        uint32_t n_entries;
} RegistryStats;
RegistryStats registry_stats(Registry *registry);
