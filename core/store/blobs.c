// SPDX-License-Identifier: Apache-2.0
// Blobs: counted by digest, written once, mapped by readers. A count is taken (held) before a blob
// is compared or written. It is dropped under the mutex together with the unlink, so that no file
// disappears while somebody counts on it. Uploaded bytes are compared with the blob on disk: a
// damaged blob is written anew when the same bytes are uploaded again, and the mapping of the old
// file is forgotten.
//
// A document with holes is named by the SHA-256 of its remaining bytes and of the table of its
// holes; any other blob by the SHA-256 of its bytes.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/store/store_private.h"

enum { SCRUB_CHUNK = 1 << 20, SCRUB_PAUSE_MS = 10 };
#define AGAIN   "; upload the model again"
#define MISSING "uploaded bytes are missing from the data folder" AGAIN

void store_version_ref(const StoreVersion *version)
{
        for (uint32_t i = 0; i < version->n_parts; i++)
                if (version->parts[i].holes != NULL)
                        refcount_get(&version->parts[i].holes->ref);
}

void store_version_unref(const StoreVersion *version)
{
        for (uint32_t i = 0; i < version->n_parts; i++)
                if (version->parts[i].holes != NULL && refcount_put(&version->parts[i].holes->ref))
                        free(version->parts[i].holes);
}

// ---- users ----
static Status use(Store *store, const HashHex *digest)
{
        Blob *blob = string_map_get(&store->users, digest->hex);
        if (blob == NULL) {
                blob = calloc(1, sizeof(*blob));
                if (blob == NULL)
                        return fail_memory();
                blob->digest = *digest;
                Status status = string_map_set(&store->users, blob->digest.hex, blob, NULL);
                if (status != STATUS_OK) {
                        free(blob);
                        return status;
                }
        }
        blob->n_users++;
        return STATUS_OK;
}

// The unlink is not synced: after a crash an orphan may reappear, which the next start removes.
static void unuse(Store *store, const HashHex *digest)
{
        Blob *blob = string_map_get(&store->users, digest->hex);
        if (blob == NULL || --blob->n_users > 0)
                return;
        string_map_remove(&store->users, digest->hex);
        unlinkat(store->blobs, digest->hex, 0);
        mapping_table_forget(store->mappings, digest);
        free(blob);
}

static uint32_t n_holes(const StorePart *part)
{
        return part->holes == NULL ? 0 : part->holes->n;
}

static void unuse_part(Store *store, const StorePart *part)
{
        unuse(store, &part->document);
        for (uint32_t i = 0; i < n_holes(part); i++)
                unuse(store, &part->holes->items[i].digest);
}

// The document comes last, so that undoing a failure concerns holes only.
static Status use_part(Store *store, const StorePart *part)
{
        uint32_t i = 0;
        Status status = STATUS_OK;
        for (; i < n_holes(part) && status == STATUS_OK; i++)
                status = use(store, &part->holes->items[i].digest);
        uint32_t n_used = status == STATUS_OK ? i : i - 1;
        if (status == STATUS_OK)
                status = use(store, &part->document);
        while (status != STATUS_OK && n_used > 0)
                unuse(store, &part->holes->items[--n_used].digest);
        return status;
}

Status blobs_keep(void *context, const char *name)
{
        HashHex digest;
        if (strlen(name) != sizeof(digest.hex) - 1)
                return STATUS_OK;
        memcpy(digest.hex, name, sizeof(digest.hex));
        return use(context, &digest);
}

static void unuse_parts(Store *store, const StoreVersion *version, uint32_t n_parts)
{
        for (uint32_t p = 0; p < n_parts; p++)
                unuse_part(store, &version->parts[p]);
}

Status blobs_use(Store *store, const StoreVersion *version)
{
        for (uint32_t p = 0; p < version->n_parts; p++) {
                Status status = use_part(store, &version->parts[p]);
                if (status != STATUS_OK) {
                        unuse_parts(store, version, p);
                        return status;
                }
        }
        return STATUS_OK;
}

void blobs_unuse(Store *store, const StoreVersion *version)
{
        unuse_parts(store, version, version->n_parts);
}

// A file that exists but cannot be read now is not missing: reading it gives the reason.
static bool is_missing(const Store *store, const HashHex *digest)
{
        return faccessat(store->blobs, digest->hex, R_OK, 0) != 0 && errno == ENOENT;
}

Status store_check_version(Store *store, const StoreVersion *version)
{
        bool missing = false;
        if (version->n_parts == 0)
                return fail(STATUS_DAMAGED, "its entry in the data folder is damaged or missing" AGAIN);
        for (uint32_t p = 0; p < version->n_parts; p++) {
                const StorePart *part = &version->parts[p];
                missing = missing || is_missing(store, &part->document);
                for (uint32_t i = 0; i < n_holes(part) && !missing; i++)
                        missing = is_missing(store, &part->holes->items[i].digest);
        }
        return missing ? fail(STATUS_DAMAGED, MISSING) : STATUS_OK;
}

static Status hold(Store *store, const HashHex *digest, bool *out_known)
{
        pthread_mutex_lock(&store->mutex);
        *out_known = string_map_get(&store->users, digest->hex) != NULL;
        Status status = use(store, digest);
        pthread_mutex_unlock(&store->mutex);
        return status;
}

static void release(Store *store, const HashHex *digest)
{
        pthread_mutex_lock(&store->mutex);
        unuse(store, digest);
        pthread_mutex_unlock(&store->mutex);
}

// A copy of the entry; n_users 0: the digest is unknown.
static Blob look(Store *store, const HashHex *digest)
{
        pthread_mutex_lock(&store->mutex);
        const Blob *blob = string_map_get(&store->users, digest->hex);
        Blob seen = blob == NULL ? (Blob){ .n_users = 0 } : *blob;
        pthread_mutex_unlock(&store->mutex);
        return seen;
}

// Marks the bytes that `seen` describes as verified. False: they were rewritten since then.
// `shared`, when not NULL, is a mapping of them; it is shared by all from here on
// (mapping_table_add).
static bool set_verified(Store *store, const HashHex *digest, const Blob *seen, Mapping **shared)
{
        pthread_mutex_lock(&store->mutex);
        Blob *blob = string_map_get(&store->users, digest->hex);
        bool same = blob == NULL || blob->n_rewrites == seen->n_rewrites;
        if (blob != NULL && same) {
                blob->is_verified = true;
                if (shared != NULL)
                        *shared = mapping_table_add(store->mappings, digest, *shared);
        }
        pthread_mutex_unlock(&store->mutex);
        return same;
}

// The file replaced an older one: later readers map it again. `seen`: the entry before that. Bytes
// that were never verified were never used.
static void set_rewritten(Store *store, const HashHex *digest, const Blob *seen)
{
        pthread_mutex_lock(&store->mutex);
        Blob *blob = string_map_get(&store->users, digest->hex);
        if (blob != NULL)
                blob->n_rewrites++;
        mapping_table_forget(store->mappings, digest);
        if (seen->is_verified) // last: a thread that reads the new count gets the new bytes
                atomic_fetch_add(&store->n_rewrites, 1u);
        pthread_mutex_unlock(&store->mutex);
}

uint64_t store_n_rewrites(Store *store)
{
        return atomic_load(&store->n_rewrites);
}

// ---- writing ----
// The blob is held.
static void count_writer(Store *store, const HashHex *digest, int change)
{
        pthread_mutex_lock(&store->mutex);
        Blob *blob = string_map_get(&store->users, digest->hex);
        blob->n_writers += (uint32_t)change;
        pthread_mutex_unlock(&store->mutex);
}

// Held when it returns OK.
static Status put_blob(Store *store, const HashHex *digest, const FolderContent *content)
{
        bool known;
        TRY(hold(store, digest, &known));
        Blob seen = look(store, digest);
        bool is_there = known && folder_has_content(store->blobs, digest->hex, content);
        // The file may be new while the old one is still mapped: its writer is about to forget that
        // mapping.
        if (is_there && look(store, digest).n_writers > 0)
                set_rewritten(store, digest, &seen);
        if (!is_there) {
                count_writer(store, digest, 1);
                Status status = folder_write_content(store->tmp, store->blobs, digest->hex, content, 0444);
                if (known && status == STATUS_OK)
                        set_rewritten(store, digest, &seen);
                count_writer(store, digest, -1);
                if (status != STATUS_OK) {
                        release(store, digest);
                        return status;
                }
                seen = look(store, digest); // just written bytes are good, whoever wrote them
        }
        (void)set_verified(store, digest, &seen, NULL);
        return STATUS_OK;
}

// The part without its holes, as ranges.
static uint32_t ranges_of(const StoreHole *holes, uint32_t n, ByteSpan bytes, FolderRange *out)
{
        uint32_t n_ranges = 0;
        uint64_t at = 0;
        for (uint32_t i = 0; i <= n; i++) {
                uint64_t end = i < n ? holes[i].offset : bytes.n;
                if (end > at)
                        out[n_ranges++] = (FolderRange){ at, { bytes.data + at, (size_t)(end - at) } };
                at = i < n ? end + holes[i].n : end;
        }
        return n_ranges;
}

static void digest_holes(Sha256 *sha, const StoreHole *holes, uint32_t n)
{
        char line[160];
        for (uint32_t i = 0; i < n; i++) {
                int length = snprintf(line, sizeof(line), "%llu %llu %s %llu\n",
                                      (unsigned long long)holes[i].offset, (unsigned long long)holes[i].n,
                                      holes[i].digest.hex, (unsigned long long)holes[i].n_bytes);
                sha256_add(sha, line, (size_t)length);
        }
}

static Status put_document(Store *store, ByteSpan bytes, StorePart *part)
{
        if (part->holes == NULL) {
                FolderRange whole = { 0, bytes };
                FolderContent content = { &whole, 1, bytes.n };
                part->document = part->digest;
                return put_blob(store, &part->document, &content);
        }
        uint32_t n = part->holes->n;
        _cleanup_(freep) FolderRange *ranges = new_array((size_t)n + 1, sizeof(*ranges));
        if (ranges == NULL)
                return fail_memory();
        FolderContent content = { ranges, ranges_of(part->holes->items, n, bytes, ranges), bytes.n };
        Sha256 sha;
        sha256_start(&sha);
        for (uint32_t i = 0; i < content.n_ranges; i++)
                sha256_add(&sha, ranges[i].bytes.data, ranges[i].bytes.n);
        digest_holes(&sha, part->holes->items, n);
        part->document = sha256_finish(&sha);
        return put_blob(store, &part->document, &content);
}

// ---- many blobs at once: their fsyncs overlap ----
enum { PUT_THREADS = 8, PUT_FROM = 4, PUT_STACK_BYTES = 1 << 20 };

typedef struct Puts {
        Store *store;
        const StoreCut *cuts;
        StoreHole *holes;
        bool *held;
        uint32_t n;
        _Atomic uint32_t next;
        _Atomic bool failed;
        pthread_mutex_t mutex; // guards what follows: the first failure
        Status status;
        Failure failure;
} Puts;

static Status put_hole(Puts *puts, uint32_t index)
{
        const StoreCut *cut = &puts->cuts[index];
        FolderRange whole = { 0, cut->content };
        FolderContent content = { &whole, 1, cut->content.n };
        HashHex digest = sha256_of(cut->content.data, cut->content.n);
        puts->holes[index] = (StoreHole){ cut->offset, cut->n, digest, cut->content.n };
        return put_blob(puts->store, &digest, &content);
}

static void *put_some(void *argument)
{
        Puts *puts = argument;
        uint32_t index;
        while (!atomic_load(&puts->failed) && (index = atomic_fetch_add(&puts->next, 1u)) < puts->n) {
                Status status = put_hole(puts, index);
                puts->held[index] = status == STATUS_OK;
                if (status == STATUS_OK)
                        continue;
                pthread_mutex_lock(&puts->mutex);
                if (!atomic_exchange(&puts->failed, true)) {
                        puts->status = status;
                        puts->failure = *failure_current();
                }
                pthread_mutex_unlock(&puts->mutex);
        }
        return NULL;
}

// The caller takes part, so it works without any extra thread, too.
static void put_all(Puts *puts)
{
        pthread_t threads[PUT_THREADS - 1];
        pthread_attr_t attributes;
        uint32_t n = 0, wanted = puts->n < PUT_FROM ? 0 : MIN(puts->n, (uint32_t)PUT_THREADS) - 1;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, PUT_STACK_BYTES);
        while (n < wanted && pthread_create(&threads[n], &attributes, put_some, puts) == 0)
                n++;
        pthread_attr_destroy(&attributes);
        put_some(puts);
        while (n > 0)
                pthread_join(threads[--n], NULL);
}

static Status check_cuts(ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts)
{
        uint64_t at = 0;
        for (uint32_t i = 0; i < n_cuts; i++) {
                const StoreCut *cut = &cuts[i];
                if (cut->offset < at || cut->n == 0 || cut->offset > bytes.n ||
                    cut->n > bytes.n - cut->offset)
                        return fail(STATUS_INTERNAL, "weights of an upload that overlap or reach beyond it");
                at = cut->offset + cut->n;
        }
        return STATUS_OK;
}

static Status put_holes(Store *store, ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts,
                        StoreHoles *holes)
{
        TRY(check_cuts(bytes, cuts, n_cuts));
        _cleanup_(freep) bool *held = new_array(n_cuts, sizeof(*held));
        _cleanup_(freep) Puts *puts = calloc(1, sizeof(*puts));
        if (held == NULL || puts == NULL)
                return fail_memory();
        *puts = (Puts){ .store = store, .cuts = cuts, .holes = holes->items, .held = held, .n = n_cuts };
        pthread_mutex_init(&puts->mutex, NULL);
        put_all(puts);
        pthread_mutex_destroy(&puts->mutex);
        if (!atomic_load(&puts->failed)) {
                holes->n = n_cuts;
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < n_cuts; i++)
                if (held[i])
                        release(store, &holes->items[i].digest);
        *failure_current() = puts->failure;
        return puts->status;
}

static Status put_part(Store *store, ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts, StorePart *part)
{
        if (n_cuts > 0)
                TRY(put_holes(store, bytes, cuts, n_cuts, part->holes));
        TRY(put_document(store, bytes, part));
        Status status = folder_sync(store->blobs);
        if (status != STATUS_OK)
                release(store, &part->document);
        return status;
}

Status store_hold_part(Store *store, ByteSpan bytes, const StoreCut *cuts, uint32_t n_cuts, StorePart *part)
{
        part->holes = NULL;
        if (n_cuts > 0) {
                part->holes = calloc(1, sizeof(*part->holes) + n_cuts * sizeof(StoreHole));
                if (part->holes == NULL)
                        return fail_memory();
                refcount_init(&part->holes->ref);
        }
        Status status = put_part(store, bytes, cuts, n_cuts, part);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < n_holes(part); i++)
                        release(store, &part->holes->items[i].digest);
                free(part->holes);
                part->holes = NULL;
        }
        return status;
}

void store_release_part(Store *store, const StorePart *part)
{
        pthread_mutex_lock(&store->mutex);
        unuse_part(store, part);
        pthread_mutex_unlock(&store->mutex);
}

// ---- reading ----
static Status open_blob(Store *store, const HashHex *digest, uint64_t n_bytes, int *out_fd)
{
        struct stat info;
        int fd;
        bool missing;
        Status status = folder_open_file(store->blobs, digest->hex, &fd, &missing);
        if (status == STATUS_OK && missing)
                return fail(STATUS_DAMAGED, MISSING);
        if (status == STATUS_DAMAGED) // not a regular file; fxserve never makes such a one
                return fail(STATUS_DAMAGED, "uploaded bytes in the data folder are no regular file" AGAIN);
        TRY(status);
        if (fstat(fd, &info) != 0 || (uint64_t)info.st_size != n_bytes || n_bytes == 0) {
                close(fd);
                return fail(STATUS_DAMAGED, "uploaded bytes in the data folder have the wrong size" AGAIN);
        }
        *out_fd = fd;
        return STATUS_OK;
}

static Status mismatch(void)
{
        return fail(STATUS_DAMAGED, "uploaded bytes in the data folder do not match their checksum" AGAIN);
}

static bool same_digest(const HashHex *a, const HashHex *b)
{
        return memcmp(a->hex, b->hex, sizeof(a->hex)) == 0;
}

static HashHex digest_mapped(const Mapping *mapping, const StoreHoles *holes)
{
        Sha256 sha;
        uint64_t at = 0;
        uint32_t n = holes == NULL ? 0 : holes->n;
        sha256_start(&sha);
        for (uint32_t i = 0; i <= n; i++) {
                uint64_t end = i < n ? holes->items[i].offset : mapping->n_bytes;
                sha256_add(&sha, mapping->data + at, (size_t)(end - at));
                at = i < n ? end + holes->items[i].n : end;
        }
        if (n > 0)
                digest_holes(&sha, holes->items, n);
        return sha256_finish(&sha);
}

static Status map_file(Store *store, const HashHex *digest, uint64_t n_bytes, Mapping **out_mapping)
{
        int fd;
        TRY(open_blob(store, digest, n_bytes, &fd));
        Status status = mapping_new(fd, (size_t)n_bytes, out_mapping);
        close(fd);
        return status;
}

static Status verify(const Mapping *mapping, const HashHex *digest, const StoreHoles *holes)
{
        HashHex found = digest_mapped(mapping, holes);
        return same_digest(&found, digest) && !atomic_load(&mapping->damaged) ? STATUS_OK : mismatch();
}

// The table holds only verified mappings, so that nobody gets an unverified one from another
// thread.
static Status map_blob(Store *store, const HashHex *digest, uint64_t n_bytes, const StoreHoles *holes,
                       Mapping **out_mapping)
{
        for (;;) {
                _cleanup_(mapping_unrefp) Mapping *mapping = mapping_table_get(store->mappings, digest);
                if (mapping != NULL && mapping->n_bytes != n_bytes)
                        return fail(STATUS_DAMAGED, "an entry gives two sizes for the same bytes" AGAIN);
                if (mapping == NULL) {
                        // before the file is opened: it may be replaced at any time
                        Blob seen = look(store, digest);
                        TRY(map_file(store, digest, n_bytes, &mapping));
                        if (!seen.is_verified || mapping_faulted())
                                TRY(verify(mapping, digest, holes));
                        if (!set_verified(store, digest, &seen, &mapping))
                                continue;
                }
                *out_mapping = take_ptr(mapping);
                return STATUS_OK;
        }
}

static bool holes_fit(const StorePart *part)
{
        uint64_t at = 0;
        for (uint32_t i = 0; i < n_holes(part); i++) {
                const StoreHole *hole = &part->holes->items[i];
                if (hole->offset < at || hole->offset > part->n_bytes ||
                    hole->n > part->n_bytes - hole->offset)
                        return false;
                at = hole->offset + hole->n;
        }
        return true;
}

Status store_map_document(Store *store, const StorePart *part, Mapping **out_mapping)
{
        if (!holes_fit(part))
                return fail(STATUS_DAMAGED, "the entry does not fit the uploaded bytes" AGAIN);
        return map_blob(store, &part->document, part->n_bytes, part->holes, out_mapping);
}

Status store_map_hole(Store *store, const StoreHole *hole, Mapping **out_mapping)
{
        return map_blob(store, &hole->digest, hole->n_bytes, NULL, out_mapping);
}

Status store_temporary(Store *store, int *out_fd)
{
        return folder_unnamed(store->tmp, out_fd);
}

// ---- scrubbing ----
// Reads [from, to) in steps with pauses, so that requests get the disk first.
static Status scrub_range(int fd, uint64_t from, uint64_t to, uint8_t *chunk, Sha256 *sha,
                          const _Atomic bool *stop)
{
        while (from < to) {
                const struct timespec pause = { .tv_nsec = SCRUB_PAUSE_MS * 1000000 };
                if (atomic_load(stop))
                        return fail(STATUS_CANCELLED, "stopped");
                ssize_t got = pread(fd, chunk, (size_t)MIN(to - from, (uint64_t)SCRUB_CHUNK), (off_t)from);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return got == 0 || errno == EIO ? mismatch() : folder_fail_reading(errno);
                sha256_add(sha, chunk, (size_t)got);
                from += (uint64_t)got;
                nanosleep(&pause, NULL);
        }
        return STATUS_OK;
}

static Status scrub_blob(Store *store, const HashHex *digest, uint64_t n_bytes, const StoreHoles *holes,
                         const _Atomic bool *stop)
{
        Blob seen = look(store, digest);
        if (seen.is_verified)
                return STATUS_OK;
        int fd;
        uint64_t at = 0;
        uint32_t n = holes == NULL ? 0 : holes->n;
        Sha256 sha;
        Status status = STATUS_OK;
        _cleanup_(freep) uint8_t *chunk = malloc(SCRUB_CHUNK);
        if (chunk == NULL)
                return fail_memory();
        TRY(open_blob(store, digest, n_bytes, &fd));
        sha256_start(&sha);
        for (uint32_t i = 0; i <= n && status == STATUS_OK; i++) {
                uint64_t end = i < n ? holes->items[i].offset : n_bytes;
                status = scrub_range(fd, at, end, chunk, &sha, stop);
                at = i < n ? end + holes->items[i].n : end;
        }
        close(fd);
        TRY(status);
        if (n > 0)
                digest_holes(&sha, holes->items, n);
        HashHex found = sha256_finish(&sha);
        if (!same_digest(&found, digest))
                return mismatch();
        (void)set_verified(store, digest, &seen, NULL);
        return STATUS_OK;
}

Status store_scrub_part(Store *store, const StorePart *part, const _Atomic bool *stop)
{
        if (!holes_fit(part))
                return mismatch();
        TRY(scrub_blob(store, &part->document, part->n_bytes, part->holes, stop));
        for (uint32_t i = 0; i < n_holes(part); i++)
                TRY(scrub_blob(store, &part->holes->items[i].digest, part->holes->items[i].n_bytes, NULL,
                               stop));
        return STATUS_OK;
}
