// SPDX-License-Identifier: Apache-2.0
// Store: durable uploads in one folder, FORMAT 1.
//
//   FORMAT            "1\n"
//   lock              flock()ed while open; holds the pid
//   blobs/<sha256>    uploaded bytes, content-addressed, 0444, never rewritten
//   graphs/<name>     manifest: key-value text with a checksum line; one per graph name, all versions in it
//   quarantine/       damaged manifests, moved there at start with the reason in the log
//   tmp/              unfinished files; emptied at start
//
// Every write is tmp, fsync, rename, fsync of the folder, so that a crash leaves an entry wholly old or wholly new. Calls may come from any
// thread; calls that write are serialised inside. Failures: STATUS_DISK_FULL, STATUS_IO (internal; no path in the message), STATUS_DAMAGED.
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"

typedef struct Store Store;
enum { STORE_MAX_PARTS = 2, STORE_NAME_MAX = 64, STORE_PART_NAME_MAX = 15, STORE_MODEL_MAX = 127 };

typedef struct StorePart {
        char name[STORE_PART_NAME_MAX + 1]; // "" for a single body; "graph", "weights" for multipart
        HashHex digest;
        uint64_t n_bytes;
} StorePart;

typedef struct StoreVersion {
        int64_t version;                 // 1, 2, ...
        HashHex id;                      // content id
        int64_t created_ms;              // wall clock
        char format[8];                  // "pt2", "fx"
        char model[STORE_MODEL_MAX + 1]; // ?model= of the upload, or ""
        uint32_t n_parts;
        StorePart parts[STORE_MAX_PARTS];
} StoreVersion;

typedef struct StoreGraph {
        char name[STORE_NAME_MAX + 1];
        int64_t next_version, default_version;
        uint32_t n_versions;
        StoreVersion *versions; // ascending
} StoreGraph;

// `log` is told of what was quarantined or cleaned up; message is one line without paths. May be NULL.
typedef void (*StoreLog)(void *context, const char *message);

// Opens or creates the folder. STATUS_CONFLICT: `data folder in use by pid N`; STATUS_USAGE: a newer FORMAT (nothing is touched).
Status store_open(const char *folder, StoreLog log, void *log_context, Store **out_store);
Store *store_close(Store *store);
DEFINE_CLEANUP(Store, store_close)
// All manifests read at open; the callback gets each once (borrowed).
Status store_each(Store *store, Status (*visit)(void *context, const StoreGraph *graph), void *context);
// Writes a blob if it is not there yet and holds it, so that no delete removes it before a manifest names it. Release after
// store_put_graph, always.
Status store_hold_blob(Store *store, ByteSpan bytes, const HashHex *digest);
void store_release_blob(Store *store, const HashHex *digest);
// Reads a blob into `out` (part->n_bytes bytes) and verifies its digest. STATUS_DAMAGED when size or digest differ or it is missing.
Status store_read_blob(Store *store, const StorePart *part, void *out);
// Replaces the manifest of graph->name; n_versions == 0 removes it. Blobs no manifest refers to any more are unlinked afterwards.
Status store_put_graph(Store *store, const StoreGraph *graph);
