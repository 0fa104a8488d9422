// SPDX-License-Identifier: Apache-2.0
// The signal handler may touch atomics only. It finds the mapping in a fixed table of slots. A
// slot's `start` is 0 while it is free; it is set last and cleared first, and no thread reads a
// mapping that is being removed. Slots are given out under a mutex; `n_slots_used` is the
// high-water mark. The handler replaces the faulting page by an anonymous one (mmap is a plain
// system call here) and the read is repeated.
//
// The table of open mappings does not count its entries: the last reference is dropped under the
// table's mutex, so nobody can find a mapping that is being freed.
#include "core/store/mapping.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/map.h"
#include "core/store/folder.h"

enum { SLOTS = 1 << 15 }; // half of what Linux lets a process map (vm.max_map_count)
typedef struct Slot {
        _Atomic uintptr_t start;
        _Atomic size_t n_bytes;
        _Atomic(Mapping *) mapping;
} Slot;

static Slot slots[SLOTS];
static uint32_t free_slots[SLOTS], n_free_slots;
// slots of damaged mappings lie in [from, to)
static _Atomic uint32_t n_slots_used, damaged_from = SLOTS, damaged_to;
static pthread_mutex_t slots_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool any_fault;
static struct sigaction earlier;
static size_t page_bytes;

struct MappingTable {
        RefCount ref;
        pthread_mutex_t mutex;
        StringMap open; // digest -> Mapping *
};

// ---- faults ----
// The slot among [from, to) whose mapping holds the address; SLOTS: none.
static uint32_t slot_of(uintptr_t address, uint32_t from, uint32_t to)
{
        for (uint32_t i = from; i < to; i++) {
                uintptr_t start = atomic_load(&slots[i].start);
                if (start != 0 && address >= start && address - start < atomic_load(&slots[i].n_bytes))
                        return i;
        }
        return SLOTS;
}

static void note_damage(uint32_t slot)
{
        uint32_t from = atomic_load(&damaged_from), to = atomic_load(&damaged_to);
        while (slot < from && !atomic_compare_exchange_weak(&damaged_from, &from, slot))
                ;
        while (slot >= to && !atomic_compare_exchange_weak(&damaged_to, &to, slot + 1))
                ;
        atomic_store(&atomic_load(&slots[slot].mapping)->damaged, true);
        atomic_store(&any_fault, true);
}

// The damage is noted before the page of zeros is in place, so whoever reads the zeros finds it
// noted.
static bool replace_page(uintptr_t address)
{
        uint32_t slot = slot_of(address, 0, atomic_load(&n_slots_used));
        if (slot == SLOTS)
                return false;
        int before = errno;
        note_damage(slot);
        void *page = (void *)(address & ~(uintptr_t)(page_bytes - 1));
        bool replaced = mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
        errno = before;
        return replaced;
}

bool mapping_damaged_at(const void *address)
{
        uint32_t slot = slot_of((uintptr_t)address, atomic_load(&damaged_from), atomic_load(&damaged_to));
        return slot != SLOTS && atomic_load(&atomic_load(&slots[slot].mapping)->damaged);
}

// Faults elsewhere behave as without this handler: it restores the default action and returns,
// which repeats the access and the fault.
static void on_fault(int number, siginfo_t *info, void *context)
{
        if (replace_page((uintptr_t)info->si_addr))
                return;
        if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != NULL)
                earlier.sa_sigaction(number, info, context);
        else
                signal(number, SIG_DFL);
}

static void install(void)
{
        struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
        page_bytes = (size_t)sysconf(_SC_PAGESIZE);
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &earlier);
}

void mapping_catch_faults(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, install);
}

bool mapping_faulted(void)
{
        return atomic_load_explicit(&any_fault, memory_order_relaxed);
}

static bool take_slot(Mapping *mapping)
{
        pthread_mutex_lock(&slots_mutex);
        uint32_t used = atomic_load(&n_slots_used);
        bool found = n_free_slots > 0 || used < SLOTS;
        if (found) {
                mapping->slot = n_free_slots > 0 ? free_slots[--n_free_slots] : used;
                Slot *slot = &slots[mapping->slot];
                atomic_store(&slot->mapping, mapping);
                atomic_store(&slot->n_bytes, mapping->n_bytes);
                atomic_store(&slot->start, (uintptr_t)mapping->data);
                if (mapping->slot == used)
                        atomic_store(&n_slots_used, used + 1);
        }
        pthread_mutex_unlock(&slots_mutex);
        return found;
}

static void give_slot(const Mapping *mapping)
{
        pthread_mutex_lock(&slots_mutex);
        atomic_store(&slots[mapping->slot].start, 0);
        free_slots[n_free_slots++] = mapping->slot;
        pthread_mutex_unlock(&slots_mutex);
}

// ---- mappings ----
static void unmap(Mapping *mapping)
{
        if (!mapping->is_copy)
                give_slot(mapping);
        munmap(mapping->data, mapping->n_bytes);
        free(mapping);
}

// The bytes as anonymous memory, for when the process has as many maps as the system allows.
static Status copy_file(int fd, Mapping *mapping)
{
        void *data = mmap(NULL, mapping->n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
                return fail_memory();
        size_t done = 0;
        ssize_t got = 1;
        while (done < mapping->n_bytes && (got > 0 || errno == EINTR)) {
                got = pread(fd, (char *)data + done, mapping->n_bytes - done, (off_t)done);
                done += (size_t)MAX(got, 0);
                if (got == 0)
                        break;
        }
        if (done < mapping->n_bytes) {
                Status status =
                        got < 0 ? folder_fail_reading(errno) : fail(STATUS_DAMAGED, "a stored file was cut");
                munmap(data, mapping->n_bytes);
                return status;
        }
        mapping->data = data;
        mapping->is_copy = true;
        return STATUS_OK;
}

Status mapping_new(int fd, size_t n_bytes, Mapping **out_mapping)
{
        _cleanup_(freep) Mapping *mapping = calloc(1, sizeof(*mapping));
        if (mapping == NULL)
                return fail_memory();
        refcount_init(&mapping->ref);
        mapping->n_bytes = n_bytes;
        void *data = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
        mapping->data = data;
        if (data != MAP_FAILED && !take_slot(mapping)) {
                munmap(data, n_bytes);
                data = MAP_FAILED;
        }
        if (data == MAP_FAILED)
                TRY(copy_file(fd, mapping));
        *out_mapping = take_ptr(mapping);
        return STATUS_OK;
}

Status mapping_new_writable(int fd, size_t n_bytes, Mapping **out_mapping)
{
        _cleanup_(freep) Mapping *mapping = calloc(1, sizeof(*mapping));
        if (mapping == NULL)
                return fail_memory();
        refcount_init(&mapping->ref);
        mapping->n_bytes = n_bytes;
        int error = posix_fallocate(fd, 0, (off_t)n_bytes);
        if (error != 0)
                return folder_fail("the upload", error);
        mapping->data = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapping->data == MAP_FAILED)
                return fail_memory();
        if (!take_slot(mapping)) {
                munmap(mapping->data, n_bytes);
                return fail_memory();
        }
        *out_mapping = take_ptr(mapping);
        return STATUS_OK;
}

Mapping *mapping_ref(Mapping *mapping)
{
        refcount_get(&mapping->ref);
        return mapping;
}

Mapping *mapping_unref(Mapping *mapping)
{
        if (mapping == NULL)
                return NULL;
        MappingTable *table = mapping->table;
        if (table == NULL) {
                if (refcount_put(&mapping->ref))
                        unmap(mapping);
                return NULL;
        }
        pthread_mutex_lock(&table->mutex);
        bool last = refcount_put(&mapping->ref);
        if (last && string_map_get(&table->open, mapping->digest.hex) == mapping)
                string_map_remove(&table->open, mapping->digest.hex);
        pthread_mutex_unlock(&table->mutex);
        if (last) {
                unmap(mapping);
                mapping_table_unref(table);
        }
        return NULL;
}

// ---- the table ----
Status mapping_table_new(MappingTable **out_table)
{
        MappingTable *table = calloc(1, sizeof(*table));
        if (table == NULL)
                return fail_memory();
        refcount_init(&table->ref);
        pthread_mutex_init(&table->mutex, NULL);
        *out_table = table;
        return STATUS_OK;
}

MappingTable *mapping_table_unref(MappingTable *table)
{
        if (table == NULL || !refcount_put(&table->ref))
                return NULL;
        string_map_deinit(&table->open);
        pthread_mutex_destroy(&table->mutex);
        free(table);
        return NULL;
}

static Mapping *find_sound(MappingTable *table, const HashHex *digest)
{
        Mapping *mapping = string_map_get(&table->open, digest->hex);
        return mapping == NULL || atomic_load(&mapping->damaged) ? NULL : mapping_ref(mapping);
}

Mapping *mapping_table_get(MappingTable *table, const HashHex *digest)
{
        pthread_mutex_lock(&table->mutex);
        Mapping *mapping = find_sound(table, digest);
        pthread_mutex_unlock(&table->mutex);
        return mapping;
}

Mapping *mapping_table_add(MappingTable *table, const HashHex *digest, Mapping *take_mapping)
{
        pthread_mutex_lock(&table->mutex);
        Mapping *first = find_sound(table, digest);
        if (first == NULL) {
                string_map_remove(&table->open, digest->hex); // a damaged one; its users keep it
                take_mapping->digest = *digest;
                if (string_map_set(&table->open, take_mapping->digest.hex, take_mapping, NULL) == STATUS_OK) {
                        take_mapping->table = table;
                        refcount_get(&table->ref);
                }
        }
        pthread_mutex_unlock(&table->mutex);
        if (first == NULL)
                return take_mapping;
        mapping_unref(take_mapping);
        return first;
}

void mapping_table_forget(MappingTable *table, const HashHex *digest)
{
        pthread_mutex_lock(&table->mutex);
        string_map_remove(&table->open, digest->hex);
        pthread_mutex_unlock(&table->mutex);
}
