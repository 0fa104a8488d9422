// SPDX-License-Identifier: Apache-2.0
// Shared by the store's own files.
#pragma once
#include <pthread.h>
#include "core/base/map.h"
#include "core/store/folder.h"
#include "core/store/store.h"

typedef struct Blob {
        HashHex digest;
        uint32_t n_users; // manifests' documents and holes, holds, and one for what is kept for quarantine/
        bool is_verified; // its bytes matched once in this process
        uint32_t n_rewrites;
        uint32_t n_writers; // threads that replace the file and have not forgotten its old mapping yet
} Blob;

struct Store {
        pthread_mutex_t writing; // serialises manifests and tune records: held while the disk is written
        pthread_mutex_t mutex;   // guards `manifests` and `users`: held for moments only; after `writing`
        int top, blobs, graphs, quarantine, tmp, tunes, lock;
        StoreLog log;
        void *log_context;
        StringMap manifests; // name -> StoreGraph *
        StringMap users;     // digest -> Blob *
        MappingTable *mappings;
        bool keep_orphans; // something is in quarantine
        _Atomic uint64_t n_rewrites;
};

// ---- blobs.c; under the mutex ----
Status blobs_use(Store *store, const StoreGraph *graph); // all or nothing
void blobs_unuse(Store *store, const StoreGraph *graph);
// For folder_each at start: this blob stays, whoever else uses it or no longer does.
Status blobs_keep(void *store, const char *name);

// ---- tune.c ----
// Removes the records of versions that `gone` had and no manifest has any more (nothing while orphans are kept). While writing.
void tune_remove_unused(Store *store, const StoreGraph *gone);
// For folder_each at start.
Status tune_remove_orphan(void *store, const char *name);
