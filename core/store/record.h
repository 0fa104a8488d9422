// SPDX-License-Identifier: Apache-2.0
// The files of graphs/ and versions/ as text, and the manifests of FORMAT 1 and 2, which are only
// read.
#pragma once
#include "core/store/store.h"

enum { STORE_FORMAT = 3, INCARNATION_MAX = 16 };

// A head as it is on disk.
typedef struct Head {
        StoreHead head;
        // Random, made with the name; its versions repeat it. So versions of a removed name are
        // never taken for those of a later one.
        char incarnation[INCARNATION_MAX + 1];
        uint32_t n_gone, gone_capacity;
        int64_t *gone;    // removed versions whose files may still be there
        char *attributes; // lines that a newer program may have written; kept as they are. NULL: none
} Head;
Head *head_free(Head *head);
DEFINE_CLEANUP(Head, head_free)

Status record_write_head(const Head *head, Text *out);
// STATUS_DAMAGED says what is wrong with it.
Status record_read_head(const char *text, size_t n, Head **out_head);

Status record_write_version(const Head *head, const StoreVersion *version, Text *out);
// *out_foreign: it belongs to another incarnation of the name (STATUS_OK; nothing else is read).
// The holes' references are the caller's.
Status record_read_version(const char *text, size_t n, const Head *head, int64_t number,
                           StoreVersion *out_version, bool *out_foreign);

// ---- FORMAT 1 and 2: one manifest for a name and all its versions ----
typedef struct Manifest {
        StoreHead head;
        uint32_t n_versions, capacity;
        StoreVersion *versions; // ascending
} Manifest;
void manifest_deinit(Manifest *manifest);
Status manifest_read(const char *text, size_t n, Manifest *out_manifest);
// Whether it is no manifest but a head of FORMAT 3.
bool record_is_head(const char *text, size_t n);
