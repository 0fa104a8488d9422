// SPDX-License-Identifier: Apache-2.0
// Order of an upload: blobs first (each durable, held in memory against concurrent deletes), the manifest last. Order of a delete: the
// manifest first, then the blobs that nothing refers to. A crash in between leaves blobs without a manifest, removed at the next start,
// never a manifest without its blobs. Manifests are written one at a time; blobs (blobs.c) by any number of threads.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/store/manifest.h"
#include "core/store/store_private.h"

enum { STORE_FORMAT = 2, MANIFEST_MAX_BYTES = 64 << 20 };
#define STORE_FORMAT_TEXT "2\n"
enum { FORMAT_BYTES = sizeof(STORE_FORMAT_TEXT) - 1 };

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
        copy->n_versions = 0; // counts what is to be given back
        copy->versions = new_array(graph->n_versions, sizeof(*copy->versions));
        if (copy->versions == NULL)
                return fail_memory();
        for (; copy->n_versions < graph->n_versions; copy->n_versions++) {
                copy->versions[copy->n_versions] = graph->versions[copy->n_versions];
                store_version_ref(&copy->versions[copy->n_versions]);
        }
        *out_copy = take_ptr(copy);
        return STATUS_OK;
}

// ---- opening ----
static Status take_lock(Store *store)
{
        store->lock = openat(store->top, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (store->lock < 0)
                return folder_fail("the data folder's lock", errno);
        if (flock(store->lock, LOCK_EX | LOCK_NB) != 0) {
                if (errno != EWOULDBLOCK)
                        return folder_fail("locking the data folder", errno);
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

typedef struct Below {
        int fd;
        const char *name;
} Below;

// A FORMAT file of ours that a crash left in tmp/.
static bool is_unfinished_format(const Below *below, const char *name)
{
        struct stat info;
        return strcmp(below->name, "tmp") == 0 && folder_is_unfinished(name) && fstatat(below->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISREG(info.st_mode) && info.st_size <= FORMAT_BYTES;
}

static Status refuse_foreign(void *context, const char *name)
{
        const Below *below = context;
        if (is_unfinished_format(below, name))
                return STATUS_OK;
        return fail(STATUS_USAGE,
                    "the folder given with --data has no FORMAT file but files in %s/: fxserve did not make it; choose a folder that is "
                    "new or empty",
                    below->name);
}

// A folder that is not ours yet must hold nothing where we shall remove what nobody knows.
static Status check_new(const Store *store)
{
        static const char *const names[] = { "blobs", "graphs", "quarantine", "tmp", "tunes" };
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                Below below = { openat(store->top, names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC), names[i] };
                if (below.fd < 0 && errno == ENOENT)
                        continue;
                if (below.fd < 0)
                        return folder_fail("opening the data folder", errno);
                Status status = folder_each(below.fd, refuse_foreign, &below);
                close(below.fd);
                TRY(status);
        }
        return STATUS_OK;
}

// Reads FORMAT before anything is written, so that a newer folder, or another program's, stays as it is.
static Status check_format(Store *store, bool *out_new, bool *out_old)
{
        _cleanup_(freep) char *text = NULL;
        size_t n;
        TRY(folder_read(store->top, "FORMAT", 64, &text, &n, out_new));
        if (*out_new)
                return check_new(store);
        char *end;
        long format = strtol(text, &end, 10);
        if (end == text || strcmp(end, "\n") != 0 || format < 1)
                return fail(STATUS_USAGE, "the data folder's FORMAT file is not understood; choose another folder with --data");
        if (format > STORE_FORMAT)
                return fail(STATUS_USAGE,
                            "the data folder has format %ld; this fxserve knows formats up to %d: use a newer fxserve, or another folder "
                            "with --data",
                            format, STORE_FORMAT);
        *out_old = format < STORE_FORMAT;
        return STATUS_OK;
}

static Status remove_unfinished(void *context, const char *name)
{
        Store *store = context;
        unlinkat(store->tmp, name, 0);
        return STATUS_OK;
}

static Status open_folders(Store *store, const char *folder)
{
        bool is_new, is_old = false;
        TRY(folder_open(AT_FDCWD, folder, true, &store->top));
        TRY(check_format(store, &is_new, &is_old));
        TRY(take_lock(store));
        TRY(check_format(store, &is_new, &is_old)); // again: another server may have been first
        // First of all, so that a crash never leaves a folder that looks like another program's. Nor must an older program meet new
        // manifests: FORMAT is raised before the first of them is written. Old ones are still read, and converted as they are.
        TRY(folder_open(store->top, "tmp", true, &store->tmp));
        TRY(folder_each(store->tmp, remove_unfinished, store)); // their names may come again: in a container the pid is the same each time
        if (is_new || is_old)
                TRY(folder_write(store->tmp, store->top, "FORMAT", (ByteSpan){ (const uint8_t *)STORE_FORMAT_TEXT, FORMAT_BYTES }, 0644));
        TRY(folder_open(store->top, "blobs", true, &store->blobs));
        TRY(folder_open(store->top, "graphs", true, &store->graphs));
        TRY(folder_open(store->top, "quarantine", true, &store->quarantine));
        return folder_open(store->top, "tunes", true, &store->tunes);
}

static Status write_manifest(Store *store, const StoreGraph *graph)
{
        _cleanup_(text_deinit) Text text = { 0 };
        TRY(manifest_write(graph, &text));
        if (text.n > MANIFEST_MAX_BYTES)
                return fail(STATUS_TOO_LARGE, "graph '%s' has more versions than one manifest can list; delete some of them", graph->name);
        return folder_write(store->tmp, store->graphs, graph->name, (ByteSpan){ (const uint8_t *)text.data, text.n }, 0600);
}

static Status load_manifest(Store *store, const char *name, StoreGraph **out_graph)
{
        _cleanup_(freep) char *text = NULL;
        _cleanup_(graph_freep) StoreGraph *graph = calloc(1, sizeof(*graph));
        size_t n;
        bool missing, is_old;
        if (graph == NULL)
                return fail_memory();
        TRY(folder_read(store->graphs, name, MANIFEST_MAX_BYTES, &text, &n, &missing));
        if (missing)
                return fail(STATUS_DAMAGED, "it is gone");
        TRY(manifest_read(text, n, graph, &is_old));
        if (strcmp(graph->name, name) != 0)
                return fail(STATUS_DAMAGED, "it belongs to another name");
        if (is_old && write_manifest(store, graph) != STATUS_OK)
                say(store, "graph '%s' keeps its manifest of format 1: %s", name, failure_current()->message);
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
                store->keep_orphans = true;
                bool moved = renameat(store->graphs, name, store->quarantine, target) == 0;
                say(store, "graph '%s' is damaged and %s moved to quarantine: %s", name, moved ? "was" : "could not be",
                    failure_current()->message);
                return STATUS_OK;
        }
        TRY(status);
        TRY(blobs_use(store, graph));
        TRY(string_map_set(&store->manifests, graph->name, graph, NULL));
        graph = NULL;
        return STATUS_OK;
}

static Status see_quarantined(void *context, const char *name)
{
        (void)name;
        ((Store *)context)->keep_orphans = true;
        return STATUS_OK;
}

static Status remove_orphan(void *context, const char *name)
{
        Store *store = context;
        if (string_map_get(&store->users, name) == NULL && unlinkat(store->blobs, name, 0) == 0)
                say(store, "removed the bytes of an upload that never finished");
        return STATUS_OK;
}

// What a manifest in quarantine names may be wanted again, and nobody can read which it is: all that is here now stays.
static Status remove_orphans(Store *store)
{
        if (store->keep_orphans) {
                say(store, "uploaded bytes that no graph uses are kept as long as quarantine/ holds something");
                return folder_each(store->blobs, blobs_keep, store);
        }
        TRY(folder_each(store->blobs, remove_orphan, store));
        return folder_each(store->tunes, tune_remove_orphan, store);
}

Status store_open(const char *folder, StoreLog log, void *log_context, Store **out_store)
{
        _cleanup_(store_closep) Store *store = calloc(1, sizeof(*store));
        if (store == NULL)
                return fail_memory();
        pthread_mutex_init(&store->mutex, NULL);
        pthread_mutex_init(&store->writing, NULL);
        store->top = store->blobs = store->graphs = store->quarantine = store->tmp = store->tunes = store->lock = -1;
        store->log = log;
        store->log_context = log_context;
        mapping_catch_faults();
        TRY(mapping_table_new(&store->mappings));
        TRY(open_folders(store, folder));
        TRY(folder_each(store->graphs, add_manifest, store));
        TRY(folder_each(store->quarantine, see_quarantined, store));
        TRY(remove_orphans(store));
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
        int *fds[] = { &store->blobs, &store->graphs, &store->quarantine, &store->tmp, &store->tunes, &store->lock, &store->top };
        for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
                if (*fds[i] >= 0)
                        close(*fds[i]);
        mapping_table_unref(store->mappings);
        pthread_mutex_destroy(&store->writing);
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

// ---- manifests ----
// A manifest may stand under its name although syncing the folder failed afterwards. What the answer denies must not be there after the
// next start: the one of before is put back, as far as the disk lets us.
static void undo_manifest(Store *store, const char *name)
{
        Failure failure = *failure_current();
        pthread_mutex_lock(&store->mutex);
        const StoreGraph *before = string_map_get(&store->manifests, name); // stays: whoever changes it holds store->writing
        pthread_mutex_unlock(&store->mutex);
        if (before == NULL)
                unlinkat(store->graphs, name, 0);
        else if (write_manifest(store, before) != STATUS_OK)
                say(store, "graph '%s' could not be put back as it was: %s", name, failure_current()->message);
        *failure_current() = failure;
}

static Status put_graph(Store *store, const StoreGraph *graph)
{
        _cleanup_(graph_freep) StoreGraph *copy = NULL;
        TRY(graph_copy(graph, &copy));
        // All memory before the disk: nothing is refused that the disk has.
        pthread_mutex_lock(&store->mutex);
        Status status = string_map_reserve(&store->manifests);
        if (status == STATUS_OK)
                status = blobs_use(store, copy);
        pthread_mutex_unlock(&store->mutex);
        TRY(status);
        status = write_manifest(store, graph);
        if (status != STATUS_OK)
                undo_manifest(store, graph->name);
        void *old = NULL;
        pthread_mutex_lock(&store->mutex);
        if (status == STATUS_OK)
                (void)string_map_set(&store->manifests, copy->name, copy, &old);
        const StoreGraph *gone = status == STATUS_OK ? old : copy;
        if (gone != NULL)
                blobs_unuse(store, gone);
        pthread_mutex_unlock(&store->mutex);
        if (status != STATUS_OK)
                return status;
        copy = NULL;
        if (old != NULL) {
                tune_remove_unused(store, old);
                graph_free(old);
        }
        return STATUS_OK;
}

static Status remove_graph(Store *store, const char *name)
{
        Status removed = folder_remove(store->graphs, name);
        if (removed != STATUS_OK) {
                undo_manifest(store, name);
                return removed;
        }
        pthread_mutex_lock(&store->mutex);
        _cleanup_(graph_freep) StoreGraph *old = string_map_remove(&store->manifests, name);
        if (old != NULL)
                blobs_unuse(store, old);
        pthread_mutex_unlock(&store->mutex);
        if (old != NULL)
                tune_remove_unused(store, old);
        return STATUS_OK;
}

Status store_put_graph(Store *store, const StoreGraph *graph)
{
        pthread_mutex_lock(&store->writing);
        Status status = graph->n_versions == 0 ? remove_graph(store, graph->name) : put_graph(store, graph);
        pthread_mutex_unlock(&store->writing);
        return status;
}
