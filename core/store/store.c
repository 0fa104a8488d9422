// SPDX-License-Identifier: Apache-2.0
// Order of an upload: blobs first (each durable, held in memory against concurrent deletes), the manifest last. Order of a delete: the
// manifest first, then the blobs that nothing refers to. A crash in between leaves blobs without a manifest, removed at the next start,
// never a manifest without its blobs. One mutex serialises everything that writes; reading a blob takes no lock, because a blob's bytes
// never change.
#include "core/store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "core/base/map.h"
#include "core/store/folder.h"
#include "core/store/manifest.h"

enum { STORE_FORMAT = 1, MANIFEST_MAX_BYTES = 64 << 20 };

typedef struct Blob {
        HashHex digest;
        uint32_t n_users; // manifests' parts and holds
} Blob;

struct Store {
        pthread_mutex_t mutex;
        int top, blobs, graphs, quarantine, tmp, lock;
        StoreLog log;
        void *log_context;
        StringMap manifests; // name -> StoreGraph *
        StringMap users;     // digest -> Blob *
};

static void say(Store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(Store *store, const char *format, ...)
{
        char line[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        if (store->log != NULL)
                store->log(store->log_context, line);
}

static void graph_free(StoreGraph *graph)
{
        if (graph == NULL)
                return;
        manifest_deinit(graph);
        free(graph);
}
DEFINE_CLEANUP(StoreGraph, graph_free)

static Status graph_copy(const StoreGraph *graph, StoreGraph **out_copy)
{
        _cleanup_(graph_freep) StoreGraph *copy = calloc(1, sizeof(*copy));
        if (copy == NULL)
                return fail_memory();
        *copy = *graph;
        copy->versions = new_array(graph->n_versions, sizeof(*copy->versions));
        if (copy->versions == NULL)
                return fail_memory();
        memcpy(copy->versions, graph->versions, graph->n_versions * sizeof(*copy->versions));
        *out_copy = take_ptr(copy);
        return STATUS_OK;
}

// ---- users of blobs ----
static Status blob_use(Store *store, const HashHex *digest)
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

static void blob_unuse(Store *store, const HashHex *digest)
{
        Blob *blob = string_map_get(&store->users, digest->hex);
        if (blob == NULL || --blob->n_users > 0)
                return;
        string_map_remove(&store->users, digest->hex);
        folder_remove(store->blobs, digest->hex); // failing leaves an orphan, removed at the next start
        free(blob);
}

static Status graph_use(Store *store, const StoreGraph *graph)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                for (uint32_t part = 0; part < graph->versions[i].n_parts; part++)
                        TRY(blob_use(store, &graph->versions[i].parts[part].digest));
        return STATUS_OK;
}

static void graph_unuse(Store *store, const StoreGraph *graph)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                for (uint32_t part = 0; part < graph->versions[i].n_parts; part++)
                        blob_unuse(store, &graph->versions[i].parts[part].digest);
}

// ---- opening ----
static Status take_lock(Store *store)
{
        store->lock = openat(store->top, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (store->lock < 0)
                return folder_fail("the data folder's lock", errno);
        if (flock(store->lock, LOCK_EX | LOCK_NB) != 0) {
                char pid[24] = "";
                ssize_t n = pread(store->lock, pid, sizeof(pid) - 1, 0);
                pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
                return fail(STATUS_CONFLICT, "data folder in use by pid %s; stop that server or choose another folder with --data",
                            pid[0] == '\0' ? "?" : pid);
        }
        char pid[24];
        int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
        if (ftruncate(store->lock, 0) != 0 || pwrite(store->lock, pid, (size_t)n, 0) != n)
                return folder_fail("the data folder's lock", errno);
        return STATUS_OK;
}

// Reads FORMAT before anything is written, so that a newer folder stays as it is.
static Status check_format(Store *store, bool *out_new)
{
        _cleanup_(freep) char *text = NULL;
        size_t n;
        TRY(folder_read(store->top, "FORMAT", 64, &text, &n, out_new));
        if (*out_new)
                return STATUS_OK;
        char *end;
        long format = strtol(text, &end, 10);
        if (end == text || strcmp(end, "\n") != 0 || format < 1)
                return fail(STATUS_USAGE, "the data folder's FORMAT file is not understood; choose another folder with --data");
        if (format > STORE_FORMAT)
                return fail(STATUS_USAGE,
                            "the data folder has format %ld; this fxserve knows formats up to %d: use a newer fxserve, or another folder "
                            "with --data",
                            format, STORE_FORMAT);
        return STATUS_OK;
}

static Status open_folders(Store *store, const char *folder)
{
        bool is_new;
        TRY(folder_open(AT_FDCWD, folder, true, &store->top));
        TRY(check_format(store, &is_new));
        TRY(take_lock(store));
        TRY(check_format(store, &is_new)); // again: another server may have been first
        TRY(folder_open(store->top, "blobs", true, &store->blobs));
        TRY(folder_open(store->top, "graphs", true, &store->graphs));
        TRY(folder_open(store->top, "quarantine", true, &store->quarantine));
        TRY(folder_open(store->top, "tmp", true, &store->tmp));
        if (!is_new)
                return STATUS_OK;
        return folder_write(store->tmp, store->top, "FORMAT", (ByteSpan){ (const uint8_t *)"1\n", 2 }, 0644);
}

static Status remove_unfinished(void *context, const char *name)
{
        Store *store = context;
        unlinkat(store->tmp, name, 0);
        return STATUS_OK;
}

static Status blob_exists(Store *store, const StoreGraph *graph)
{
        for (uint32_t i = 0; i < graph->n_versions; i++)
                for (uint32_t part = 0; part < graph->versions[i].n_parts; part++)
                        if (faccessat(store->blobs, graph->versions[i].parts[part].digest.hex, R_OK, 0) != 0)
                                return fail(STATUS_DAMAGED, "uploaded bytes of version %lld are missing",
                                            (long long)graph->versions[i].version);
        return STATUS_OK;
}

static Status load_manifest(Store *store, const char *name, StoreGraph **out_graph)
{
        _cleanup_(freep) char *text = NULL;
        _cleanup_(graph_freep) StoreGraph *graph = calloc(1, sizeof(*graph));
        size_t n;
        bool missing;
        if (graph == NULL)
                return fail_memory();
        TRY(folder_read(store->graphs, name, MANIFEST_MAX_BYTES, &text, &n, &missing));
        if (missing)
                return fail(STATUS_DAMAGED, "it is gone");
        TRY(manifest_read(text, n, graph));
        if (strcmp(graph->name, name) != 0)
                return fail(STATUS_DAMAGED, "it belongs to another name");
        TRY(blob_exists(store, graph));
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

static Status add_manifest(void *context, const char *name)
{
        Store *store = context;
        _cleanup_(graph_freep) StoreGraph *graph = NULL;
        Status status = load_manifest(store, name, &graph);
        if (status == STATUS_DAMAGED || status == STATUS_TOO_LARGE) {
                char target[320];
                snprintf(target, sizeof(target), "%.255s.%lld", name, (long long)time(NULL));
                renameat(store->graphs, name, store->quarantine, target);
                say(store, "graph '%s' is damaged and was moved to quarantine: %s", name, failure_current()->message);
                return STATUS_OK;
        }
        TRY(status);
        TRY(graph_use(store, graph));
        TRY(string_map_set(&store->manifests, graph->name, graph, NULL));
        graph = NULL;
        return STATUS_OK;
}

static Status remove_orphan(void *context, const char *name)
{
        Store *store = context;
        if (string_map_get(&store->users, name) == NULL && unlinkat(store->blobs, name, 0) == 0)
                say(store, "removed the bytes of an upload that never finished");
        return STATUS_OK;
}

Status store_open(const char *folder, StoreLog log, void *log_context, Store **out_store)
{
        _cleanup_(store_closep) Store *store = calloc(1, sizeof(*store));
        if (store == NULL)
                return fail_memory();
        pthread_mutex_init(&store->mutex, NULL);
        store->top = store->blobs = store->graphs = store->quarantine = store->tmp = store->lock = -1;
        store->log = log;
        store->log_context = log_context;
        TRY(open_folders(store, folder));
        TRY(folder_each(store->tmp, remove_unfinished, store));
        TRY(folder_each(store->graphs, add_manifest, store));
        TRY(folder_each(store->blobs, remove_orphan, store));
        *out_store = take_ptr(store);
        return STATUS_OK;
}

Store *store_close(Store *store)
{
        if (store == NULL)
                return NULL;
        for (uint32_t i = 0; i < store->manifests.n; i++)
                if (store->manifests.entries[i].key != NULL)
                        graph_free(store->manifests.entries[i].value);
        for (uint32_t i = 0; i < store->users.n; i++)
                if (store->users.entries[i].key != NULL)
                        free(store->users.entries[i].value);
        string_map_deinit(&store->manifests);
        string_map_deinit(&store->users);
        int *fds[] = { &store->blobs, &store->graphs, &store->quarantine, &store->tmp, &store->lock, &store->top };
        for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
                if (*fds[i] >= 0)
                        close(*fds[i]);
        pthread_mutex_destroy(&store->mutex);
        free(store);
        return NULL;
}

Status store_each(Store *store, Status (*visit)(void *context, const StoreGraph *graph), void *context)
{
        for (uint32_t i = 0; i < store->manifests.n; i++)
                if (store->manifests.entries[i].key != NULL)
                        TRY(visit(context, store->manifests.entries[i].value));
        return STATUS_OK;
}

// ---- blobs ----
static bool blob_equals(const Store *store, ByteSpan bytes, const HashHex *digest)
{
        uint8_t chunk[65536];
        size_t done = 0;
        ssize_t got = 1;
        int fd = openat(store->blobs, digest->hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (got > 0) {
                got = read(fd, chunk, sizeof(chunk));
                if (got < 0 && errno == EINTR)
                        got = 1; // nothing was read: again
                else if (got > 0 && ((size_t)got > bytes.n - done || memcmp(chunk, bytes.data + done, (size_t)got) != 0))
                        got = -1;
                else
                        done += (size_t)MAX(got, 0);
        }
        close(fd);
        return got == 0 && done == bytes.n;
}

// Bytes that are known are compared: what was damaged on disk is written anew when somebody uploads it again.
static Status hold(Store *store, ByteSpan bytes, const HashHex *digest)
{
        bool known = string_map_get(&store->users, digest->hex) != NULL;
        TRY(blob_use(store, digest));
        if (known && blob_equals(store, bytes, digest))
                return STATUS_OK;
        Status status = folder_write(store->tmp, store->blobs, digest->hex, bytes, 0444);
        if (status != STATUS_OK)
                blob_unuse(store, digest);
        return status;
}

Status store_hold_blob(Store *store, ByteSpan bytes, const HashHex *digest)
{
        pthread_mutex_lock(&store->mutex);
        Status status = hold(store, bytes, digest);
        pthread_mutex_unlock(&store->mutex);
        return status;
}

void store_release_blob(Store *store, const HashHex *digest)
{
        pthread_mutex_lock(&store->mutex);
        blob_unuse(store, digest);
        pthread_mutex_unlock(&store->mutex);
}

Status store_read_blob(Store *store, const StorePart *part, void *out)
{
        int fd = openat(store->blobs, part->digest.hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return fail(STATUS_DAMAGED, "the uploaded bytes are missing from the data folder; upload the model again");
        size_t done = 0;
        ssize_t got = 1;
        while (done < part->n_bytes && got > 0) {
                got = read(fd, (char *)out + done, part->n_bytes - done);
                if (got < 0 && errno == EINTR)
                        got = 1;
                else if (got > 0)
                        done += (size_t)got;
        }
        char beyond;
        bool exact = done == part->n_bytes && read(fd, &beyond, 1) == 0;
        close(fd);
        if (!exact)
                return fail(STATUS_DAMAGED, "the uploaded bytes in the data folder have the wrong size; upload the model again");
        HashHex digest = sha256_of(out, part->n_bytes);
        if (memcmp(digest.hex, part->digest.hex, sizeof(digest.hex)) != 0)
                return fail(STATUS_DAMAGED, "the uploaded bytes in the data folder do not match their checksum; upload the model again");
        return STATUS_OK;
}

// ---- manifests ----
static Status put_graph(Store *store, const StoreGraph *graph)
{
        _cleanup_(graph_freep) StoreGraph *copy = NULL;
        Text text = { 0 };
        TRY(graph_copy(graph, &copy));
        Status status = manifest_write(graph, &text);
        if (status == STATUS_OK)
                status = folder_write(store->tmp, store->graphs, graph->name, (ByteSpan){ (const uint8_t *)text.data, text.n }, 0600);
        text_deinit(&text);
        TRY(status);
        // The disk has it. What follows only keeps the counts; out of memory here costs an orphan blob at worst.
        void *old = NULL;
        TRY(graph_use(store, copy));
        TRY(string_map_set(&store->manifests, copy->name, copy, &old));
        copy = NULL;
        if (old != NULL) {
                graph_unuse(store, old);
                graph_free(old);
        }
        return STATUS_OK;
}

static Status remove_graph(Store *store, const char *name)
{
        TRY(folder_remove(store->graphs, name));
        _cleanup_(graph_freep) StoreGraph *old = string_map_remove(&store->manifests, name);
        if (old != NULL)
                graph_unuse(store, old);
        return STATUS_OK;
}

Status store_put_graph(Store *store, const StoreGraph *graph)
{
        pthread_mutex_lock(&store->mutex);
        Status status = graph->n_versions == 0 ? remove_graph(store, graph->name) : put_graph(store, graph);
        pthread_mutex_unlock(&store->mutex);
        return status;
}
