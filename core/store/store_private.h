// SPDX-License-Identifier: Apache-2.0
// Shared by the store's own files.
#pragma once
#include <pthread.h>
#include "core/base/map.h"
#include "core/store/folder.h"
#include "core/store/record.h"
#include "core/store/store.h"

enum { STORE_FILE_NAME_MAX = STORE_NAME_MAX + 24 }; // "name@123"

typedef struct Blob {
        HashHex digest;
        // versions' documents and holes, holds, and one while quarantine/ may need it
        uint32_t n_users;
        bool is_verified; // its bytes matched once in this process
        uint32_t n_rewrites;
        uint32_t n_writers; // threads that replace the file and have not forgotten its old mapping yet
} Blob;

struct Store {
        // serialises heads, versions and tune records: held while the disk is written
        pthread_mutex_t writing;
        pthread_mutex_t mutex; // guards `users`: held for moments only; after `writing`
        int top, blobs, graphs, versions, quarantine, tmp, tunes, passes, lock;
        StoreLog log;
        void *log_context;
        StringMap heads; // name -> Head * as it is on disk; guarded by `writing`
        StringMap users; // digest -> Blob *
        MappingTable *mappings;
        bool keep_orphans; // something is in quarantine, or what a version names could not be read
        _Atomic uint64_t n_rewrites;
};

void store_say(Store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- graphs.c ----
// A head with a new random incarnation.
Status head_new(const StoreHead *head, Head **out_head);
Status store_write_head(Store *store, const Head *head);
void store_version_file(const char *name, int64_t version, char out[STORE_FILE_NAME_MAX + 1]);
// Not synced: folder_sync(store->versions) once for all.
Status store_write_version(Store *store, const Head *head, const StoreVersion *version);

// ---- load.c ----
// Reads the whole folder, converts entries of an older format, and removes files that no name
// refers to.
Status store_load(Store *store, StoreVisit visit, void *context);

// ---- blobs.c; under the mutex ----
Status blobs_use(Store *store, const StoreVersion *version); // all or nothing
void blobs_unuse(Store *store, const StoreVersion *version);
// For folder_each at start: this blob stays, whether or not anything refers to it.
Status blobs_keep(void *store, const char *name);
