// SPDX-License-Identifier: Apache-2.0
// PackCache: constants in the layout their kernel wants, made once and shared by all programs that
// need them, whichever graph or version they belong to. The key of an entry is the constant's
// address (or the key of its source, if it has one), its view and the name of the layout. An entry
// goes busy -> ready once and dies with its last user.
//
// An entry keeps the storages of its constants (or the roots of their sources), so that their
// addresses are not reused while it lives.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef struct PackCache PackCache;

enum { PACK_SOURCES = 4 };
typedef struct PackSource {
        Storage *storage; // its root is counted by the entry
        const void *data;
        const TensorMeta *meta; // NULL: the address says it all
        bool widened;           // what is packed is a float32 copy of it
        Dtype stored;           // then: its own dtype
} PackSource;
// How a kernel's constant may be shared: `storage` holds it. `cache` NULL: not shared. The kernel
// may be handed a float32 copy of it instead, which need not live longer than the call that packs
// it.
typedef struct PackShare {
        PackCache *cache;
        Storage *storage;
        const RunContext *poll; // of the packing thread: can stop it; may be NULL
        const float *copy;      // where the copy begins; NULL: there is none
        const void *original;   // and where the constant itself does,
        Dtype stored;           // of this dtype
} PackShare;

// The source of an entry made from the constant, or part of it, that the kernel sees at `data`.
static inline PackSource pack_source(const PackShare *share, const void *data)
{
        if (share->copy == NULL)
                return (PackSource){ .storage = share->storage, .data = data };
        int64_t at = (const float *)data - share->copy;
        return (PackSource){ .storage = share->storage,
                             .data = (const char *)share->original + at * dtype_info[share->stored].bytes,
                             .widened = true,
                             .stored = share->stored };
}

Status pack_cache_open(PackCache **out_cache);
PackCache *pack_cache_close(PackCache *cache); // NULL-safe; entries still in use live on

typedef struct PackMaker {
        Status (*make)(void *context, Storage **out_storage);
        void *context;
        const RunContext *poll; // can stop the wait for another thread's making; may be NULL
} PackMaker;

// The key of pack_cache_get for such bytes; also of the source of constants computed from them.
HashHex pack_cache_key(const char *format, const PackSource *sources, uint32_t n_sources);
// The packed bytes of 1 to PACK_SOURCES constants, counted: drop with storage_unref. `format`
// names everything the bytes depend on besides the sources: layout, implementation, threads.
// Missing bytes are made on this thread; other threads that need them wait, and poll. `cache` NULL:
// makes them for this caller alone. Failures are the maker's and are not kept. Any thread.
Status pack_cache_get(PackCache *cache, const char *format, const PackSource *sources, uint32_t n_sources,
                      PackMaker maker, Storage **out_storage);

typedef struct PackCacheStats {
        size_t bytes;
        uint32_t n_entries;
        uint64_t hits, builds;
} PackCacheStats;
PackCacheStats pack_cache_stats(PackCache *cache);
