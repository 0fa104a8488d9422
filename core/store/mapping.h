// SPDX-License-Identifier: Apache-2.0
// Mapping: a file's bytes in memory, read only and counted. A page that cannot be read (the file
// was truncated, the disk fails) does not end the process: it reads as zeros, and the mapping
// counts as damaged from then on. Any thread.
#pragma once
#include "core/base/hash.h"

typedef struct MappingTable MappingTable;
typedef struct Mapping {
        RefCount ref;
        uint8_t *data; // page-aligned
        size_t n_bytes;
        _Atomic bool damaged;
        bool is_copy;        // anonymous memory, because no more maps could be made
        uint32_t slot;       // for the signal handler
        HashHex digest;      // key in the table
        MappingTable *table; // NULL: in none
} Mapping;

// From here on SIGBUS within a mapping is handled; elsewhere it keeps its meaning. Calling it again
// has no effect.
void mapping_catch_faults(void);
// Whether any page of any mapping could not be read since the process started. Cheap enough to ask
// after every run.
bool mapping_faulted(void);
// Whether the mapping that holds this byte is damaged; false outside of mappings. It searches only
// the slots between the first and the last damaged mapping.
bool mapping_damaged_at(const void *address);
// Maps the whole of `fd` (n_bytes > 0; the descriptor may be closed afterwards).
Status mapping_new(int fd, size_t n_bytes, Mapping **out_mapping);
// Pages of an empty, unlinked file behind `fd` that can be written; the room on disk is taken first
// (STATUS_DISK_FULL).
Status mapping_new_writable(int fd, size_t n_bytes, Mapping **out_mapping);
Mapping *mapping_ref(Mapping *mapping);
Mapping *mapping_unref(Mapping *mapping); // NULL-safe, returns NULL
DEFINE_CLEANUP(Mapping, mapping_unref)

// ---- open mappings by digest, so that all who use the same bytes share one ----
Status mapping_table_new(MappingTable **out_table);
MappingTable *mapping_table_unref(MappingTable *table); // mappings keep it alive
// counted; NULL when not open or damaged
Mapping *mapping_table_get(MappingTable *table, const HashHex *digest);
// Adds `mapping`, or drops it in favour of one that was added first. Returns the one to use
// (counted).
Mapping *mapping_table_add(MappingTable *table, const HashHex *digest, Mapping *take_mapping);
// The file was rewritten: later users map it again.
void mapping_table_forget(MappingTable *table, const HashHex *digest);
