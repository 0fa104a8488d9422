// SPDX-License-Identifier: Apache-2.0
// Store: durable uploads in one folder, FORMAT 3.
//
//   FORMAT             "3\n"
//   lock               flock()ed while open; holds the pid
//   blobs/<digest>     weights and documents, content-addressed, 0444, never rewritten
//   graphs/<name>      a name's head: next and default version, aliases, attributes
//   versions/<name>@N  one file per version: its id, its parts and their holes
//   tunes/<id>         tune records (store_tune_id)
//   passes/<name>      saved passes: lists of steps by name
//   quarantine/        damaged heads and everything that is not a regular file, moved there at
//                      start with the reason in the log. While it holds something, the blobs and
//                      records found at start are kept, whether or not a version names them.
//   tmp/               unfinished files; emptied at start
//
// Heads and versions are key-value text that ends in a checksum (record.c). An upload's part is
// stored as its document, the very bytes with holes in it, and one blob for the content of each
// hole: the weights. Equal weights are one blob, on disk and mapped. Every write is tmp, fsync,
// rename, fsync of the folder, so that a crash leaves an entry wholly old or wholly new; graphs.c
// says which write counts. Calls may come from any thread. Failures: STATUS_DISK_FULL, STATUS_IO
// (internal; no path in the message), STATUS_DAMAGED.
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/store/mapping.h"

typedef struct Store Store;

// What a part of an upload is. Graph and weights make the version's id; the others come along.
typedef enum StoreRole {
        STORE_GRAPH,
        STORE_WEIGHTS,
        STORE_SAMPLES,
        STORE_LABELS,
        STORE_RECIPE,
        STORE_ROLES
} StoreRole;
extern const char *const store_role_names[STORE_ROLES]; // "graph", "weights", ...
enum { STORE_MAX_PARTS = STORE_ROLES, STORE_NAME_MAX = 64, STORE_MODEL_MAX = 127 };

// A range of a part that is not in its document: the blob has what it stands for (more bytes when
// the range was deflated).
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
        StoreRole role;    // each at most once
        HashHex digest;    // of the bytes as they were uploaded
        uint64_t n_bytes;  // as uploaded
        HashHex document;  // blob; without holes the same as `digest`
        StoreHoles *holes; // counted; NULL: none
} StorePart;

typedef struct StoreVersion {
        int64_t version;                 // 1, 2, ...
        HashHex id;                      // content id
        int64_t created_ms;              // wall clock
        char format[8];                  // "pt2", "fx"
        char model[STORE_MODEL_MAX + 1]; // ?model= of the upload, or ""
        // 0: the version's file is damaged or missing; only `version` is known
        uint32_t n_parts;
        StorePart parts[STORE_MAX_PARTS];
} StoreVersion;

typedef struct StoreAlias {
        char name[STORE_NAME_MAX + 1];
        int64_t version;
} StoreAlias;

// How a version is served, as text that the store does not read: from this version on, until the
// next entry of the same kind.
typedef enum SettingKind {
        SETTING_IMAGE,
        SETTING_PRECISION,
        SETTING_BATCHING,
        SETTING_OWNER,
        SETTING_WARM_UP,
        SETTING_TOLERANCE,
        SETTING_KINDS
} SettingKind;
extern const char *const setting_names[SETTING_KINDS]; // "image", "precision" ...
enum { STORE_SETTING_MAX = 511 };
typedef struct StoreSetting {
        SettingKind kind;
        int64_t version;
        char text[STORE_SETTING_MAX + 1]; // one line; "": as if there were none
} StoreSetting;

// What a name has besides its versions.
typedef struct StoreHead {
        char name[STORE_NAME_MAX + 1];
        int64_t next_version, default_version;
        uint32_t n_aliases;
        StoreAlias *aliases; // by name
        uint32_t n_settings;
        StoreSetting *settings; // by kind, then by version
} StoreHead;

// What holds for a version; "": nothing was set. Lives as long as the head.
const char *store_head_setting(const StoreHead *head, SettingKind kind, int64_t version);
// A copy of its own, for store_head_deinit. Without memory *out_copy is left as it was.
Status store_head_copy(const StoreHead *head, StoreHead *out_copy);
void store_head_deinit(StoreHead *head);

// Copies of a version share its holes: one reference each.
void store_version_ref(const StoreVersion *version);
void store_version_unref(const StoreVersion *version);

// `log` receives one line, without paths, for each entry that was quarantined or removed. May be
// NULL.
typedef void (*StoreLog)(void *context, const char *message);

// Opens or creates the folder; FORMAT 1 and 2 become FORMAT 3, graph by graph. STATUS_CONFLICT:
// `data folder in use by pid N`. STATUS_USAGE: a newer FORMAT, files but no FORMAT (nothing is
// touched), or a FORMAT, lock or subfolder of the wrong file type. `visit` (may be
// NULL) gets the content name by name, `versions` ascending (borrowed; store_version_ref).
typedef Status (*StoreVisit)(void *context, Store *store, const StoreHead *head, const StoreVersion *versions,
                             uint32_t n_versions);
Status store_open(const char *folder, StoreLog log, void *log_context, StoreVisit visit, void *visit_context,
                  Store **out_store);
Store *store_close(Store *store);
DEFINE_CLEANUP(Store, store_close)
// STATUS_DAMAGED when a file that the version needs is not there. Nothing is read.
Status store_check_version(Store *store, const StoreVersion *version);

// ---- names and versions: durable when it returns OK, otherwise unchanged; the cost does not
// depend on the number of versions ---- Adds `version`, or replaces `instead` (NULL: none), which
// has the same number. `head` is the name's head from then on. The version's parts are held
// (store_hold_part).
Status store_put_version(Store *store, const StoreHead *head, const StoreVersion *version,
                         const StoreVersion *instead);
Status store_put_head(Store *store, const StoreHead *head);
// Removes one version, or the name with all its versions. Blobs that no version refers to any more
// are unlinked afterwards.
Status store_remove_version(Store *store, const StoreHead *head, const StoreVersion *version);
Status store_remove_name(Store *store, const char *name, const StoreVersion *const *versions,
                         uint32_t n_versions);

// ---- parts ----
// What is to become a blob of its own: the range of the part, and its content.
typedef struct StoreCut {
        uint64_t offset, n;
        ByteSpan content;
} StoreCut;

// Writes a part's document and blobs (intact ones that exist are not written again) and holds them,
// so that no delete removes them before a version names them. `part` has its role, digest and
// n_bytes; document and holes are filled in, the holes in the order of the cuts, which must be
// ascending and disjoint. Durable when it returns OK. Always call store_release_part after
// store_put_version; the reference to the holes is the caller's (store_version_unref).
Status store_hold_part(Store *store, ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts, StorePart *part);
void store_release_part(Store *store, const StorePart *part);
// Maps a document or the blob of a hole; verified (its digest) once per process, before the first
// use. STATUS_DAMAGED when it is missing, has another size or does not match.
Status store_map_document(Store *store, const StorePart *part, Mapping **out_mapping);
Status store_map_hole(Store *store, const StoreHole *hole, Mapping **out_mapping);
// How often bytes in use turned out damaged when they were uploaded again, and were rewritten.
// Holders of the older mapping keep it.
uint64_t store_n_rewrites(Store *store);
// Verifies what has not been verified yet, at low speed, without keeping it mapped; `stop` ends it
// early with STATUS_CANCELLED.
Status store_scrub_part(Store *store, const StorePart *part, const _Atomic bool *stop);

// ---- temporary files ----
// A file without a name on the data folder's disk, open to read and
// write: gone when the last descriptor and mapping are.
Status store_temporary(Store *store, int *out_fd);

// ---- saved passes: one small text per name ----
// Durable when it returns OK; replaces an earlier one. Names are those of graphs.
Status store_put_pass(Store *store, const char *name, ByteSpan text);
Status store_remove_pass(Store *store, const char *name); // a missing one is fine
typedef Status (*StorePassVisit)(void *context, const char *name, ByteSpan text);
Status store_each_pass(Store *store, StorePassVisit visit, void *context);

// ---- tune records: one small text per content ----
// The name of a content's tune record: in one archive, each model has its own.
HashHex store_tune_id(const StoreVersion *version);
// Durable when it returns OK; replaces an earlier one. Not while another thread removes the
// content's last version.
Status store_put_tune(Store *store, const HashHex *id, ByteSpan text);
// Adds the record to *out; nothing when there is none or it is damaged.
Status store_get_tune(Store *store, const HashHex *id, Text *out);
// For when no version has the content any more. What is not removed now, the next start removes.
void store_remove_tune(Store *store, const HashHex *id);
