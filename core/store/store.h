// SPDX-License-Identifier: Apache-2.0
// Store: durable uploads in one folder, FORMAT 2.
//
//   FORMAT            "2\n"
//   lock              flock()ed while open; holds the pid
//   blobs/<digest>    weights and documents, content-addressed, 0444, never rewritten
//   graphs/<name>     manifest: key-value text with a checksum line; one per graph name, all versions in it
//   tunes/<id>        tune records (store_tune_id)
//   quarantine/       damaged manifests, moved there at start with the reason in the log; as long as one is there, the blobs and records
//                     that were there at start are kept, whether a manifest names them or not
//   tmp/              unfinished files; emptied at start
//
// An upload's part is stored as its document, the very bytes with holes in it, and one blob for the content of each hole: the weights.
// Equal weights are one blob, on disk and mapped. Every write is tmp, fsync, rename, fsync of the folder, so that a crash leaves an entry
// wholly old or wholly new. Calls may come from any thread. Failures: STATUS_DISK_FULL, STATUS_IO (internal; no path in the message),
// STATUS_DAMAGED.
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/store/mapping.h"

typedef struct Store Store;
enum { STORE_MAX_PARTS = 2, STORE_NAME_MAX = 64, STORE_PART_NAME_MAX = 15, STORE_MODEL_MAX = 127 };

// A range of a part that is not in its document: the blob has what it stands for (more bytes when the range was deflated).
typedef struct StoreHole {
        uint64_t offset, n; // within the part
        HashHex digest;
        uint64_t n_bytes; // of the blob
} StoreHole;

typedef struct StoreHoles {
        RefCount ref;
        uint32_t n;
        StoreHole items[]; // ascending, apart from each other
} StoreHoles;

typedef struct StorePart {
        char name[STORE_PART_NAME_MAX + 1]; // "" for a single body; "graph", "weights" for multipart
        HashHex digest;                     // of the bytes as they were uploaded
        uint64_t n_bytes;                   // as uploaded
        HashHex document;                   // blob; without holes the same as `digest`
        StoreHoles *holes;                  // counted; NULL: none
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

// Copies of a version share its holes: one reference each.
void store_version_ref(const StoreVersion *version);
void store_version_unref(const StoreVersion *version);

// `log` is told of what was quarantined or cleaned up; message is one line without paths. May be NULL.
typedef void (*StoreLog)(void *context, const char *message);

// Opens or creates the folder; FORMAT 1 becomes FORMAT 2, graph by graph. STATUS_CONFLICT: `data folder in use by pid N`; STATUS_USAGE: a
// newer FORMAT, or a folder without one whose subfolders hold files (nothing is touched).
Status store_open(const char *folder, StoreLog log, void *log_context, Store **out_store);
Store *store_close(Store *store);
DEFINE_CLEANUP(Store, store_close)
// All manifests read at open; the callback gets each once (borrowed).
Status store_each(Store *store, Status (*visit)(void *context, const StoreGraph *graph), void *context);
// STATUS_DAMAGED when a file that the version needs is not there. Nothing is read.
Status store_check_version(Store *store, const StoreVersion *version);
// Replaces the manifest of graph->name; n_versions == 0 removes it. Blobs no manifest refers to any more are unlinked afterwards.
Status store_put_graph(Store *store, const StoreGraph *graph);

// ---- parts ----
// What is to become a blob of its own: the range of the part, and the content it stands for.
typedef struct StoreCut {
        uint64_t offset, n;
        ByteSpan content;
} StoreCut;

// Writes a part's document and blobs (what is there and sound is not written again) and holds them, so that no delete removes them before a
// manifest names them. `part` has its name, digest and n_bytes; document and holes are filled in, the holes in the order of the cuts, which
// must be ascending and apart. Durable when it returns OK. After store_put_graph, always: store_release_part; the holes' reference is the
// caller's (store_version_unref).
Status store_hold_part(Store *store, ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts, StorePart *part);
void store_release_part(Store *store, const StorePart *part);
// Maps a document or the blob of a hole; verified (its digest) once per process, before the first use. STATUS_DAMAGED when it is missing,
// has another size or does not match.
Status store_map_document(Store *store, const StorePart *part, Mapping **out_mapping);
Status store_map_hole(Store *store, const StoreHole *hole, Mapping **out_mapping);
// How often bytes that had been in use turned out bad when they were uploaded again, and were written anew: who has the older mapping keeps
// it.
uint64_t store_n_rewrites(Store *store);
// Reads what no one has verified yet, at low speed, without keeping it mapped; `stop` ends it early with STATUS_CANCELLED.
Status store_scrub_part(Store *store, const StorePart *part, const _Atomic bool *stop);

// ---- temporary files ----
// A file without a name on the data folder's disk, open to read and write: gone when the last descriptor and mapping are.
Status store_temporary(Store *store, int *out_fd);

// ---- tune records: one small text per content, removed with its last version ----
// A content's name among them: of one archive, each model is a content of its own.
HashHex store_tune_id(const StoreVersion *version);
// Durable when it returns OK; replaces an earlier one. Nothing is written when no version has this content.
Status store_put_tune(Store *store, const HashHex *id, ByteSpan text);
// Adds the record to *out; nothing when there is none or it is damaged.
Status store_get_tune(Store *store, const HashHex *id, Text *out);
