// SPDX-License-Identifier: Apache-2.0
// Opening a data folder: its lock, its format, its subfolders; then what is in it (load.c). Order
// of an upload: blobs first (each durable, held in memory against concurrent deletes), then the
// version that names them (graphs.c); of a delete: the version first, then the blobs that nothing
// refers to. A crash in between leaves blobs without a version, removed at the next start, never a
// version without its blobs. Heads and versions are written one at a time; blobs (blobs.c) by any
// number of threads.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/store/store_private.h"

#define STORE_FORMAT_TEXT "3\n"
enum { FORMAT_BYTES = sizeof(STORE_FORMAT_TEXT) - 1 };

void store_say(Store *store, const char *format, ...)
{
        char line[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        if (store->log != NULL)
                store->log(store->log_context, line);
}

// ---- opening ----
static Status take_lock(Store *store)
{
        if (folder_is_irregular(store->top, "lock"))
                return fail(STATUS_USAGE,
                            "the data folder's lock is no regular file; choose another folder with --data");
        store->lock =
                openat(store->top, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (store->lock < 0)
                return folder_fail("the data folder's lock", errno);
        if (flock(store->lock, LOCK_EX | LOCK_NB) != 0) {
                if (errno != EWOULDBLOCK)
                        return folder_fail("locking the data folder", errno);
                char pid[24] = "";
                ssize_t n = pread(store->lock, pid, sizeof(pid) - 1, 0);
                pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
                return fail(
                        STATUS_CONFLICT,
                        "data folder in use by pid %s; stop that server or choose another folder with --data",
                        pid[0] == '\0' ? "?" : pid);
        }
        char pid[24];
        int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
        FolderRange range = { 0, { (const uint8_t *)pid, (size_t)n } };
        int error = ftruncate(store->lock, 0) != 0 ? errno : folder_write_range(store->lock, &range);
        return error == 0 ? STATUS_OK : folder_fail("the data folder's lock", error);
}

typedef struct Below {
        int fd;
        const char *name;
} Below;

// A FORMAT file of ours that a crash left in tmp/.
static bool is_unfinished_format(const Below *below, const char *name)
{
        struct stat info;
        return strcmp(below->name, "tmp") == 0 && folder_is_unfinished(name) &&
               fstatat(below->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
               info.st_size <= FORMAT_BYTES;
}

static Status refuse_foreign(void *context, const char *name)
{
        const Below *below = context;
        if (is_unfinished_format(below, name))
                return STATUS_OK;
        return fail(STATUS_USAGE,
                    "the folder given with --data has no FORMAT file but files in %s/: fxserve did not make "
                    "it; choose a folder that is "
                    "new or empty",
                    below->name);
}

static const char *const subfolders[] = { "blobs", "graphs", "passes",  "quarantine",
                                          "tmp",   "tunes",  "versions" };

static Status refuse_stranger(void *context, const char *name)
{
        (void)context;
        bool known = strcmp(name, "lock") == 0 || strcmp(name, "lost+found") == 0; // of a new volume
        for (size_t i = 0; i < ARRAY_LENGTH(subfolders); i++)
                known |= strcmp(name, subfolders[i]) == 0;
        if (known)
                return STATUS_OK;
        return fail(STATUS_USAGE,
                    "the folder given with --data has no FORMAT file but holds \"%.100s\": fxserve did not "
                    "make it; choose a folder that is new or empty (--models serves models of a folder)",
                    name);
}

// A new folder must hold nothing of others: it may be a mistake, and in the subfolders unknown
// files would be removed.
static Status check_new(const Store *store)
{
        for (size_t i = 0; i < ARRAY_LENGTH(subfolders); i++) {
                Below below = { -1, subfolders[i] };
                if (faccessat(store->top, subfolders[i], F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
                        continue;
                TRY(folder_open(store->top, subfolders[i], false, &below.fd));
                Status status = folder_each(below.fd, refuse_foreign, &below);
                close(below.fd);
                TRY(status);
        }
        return folder_each(store->top, refuse_stranger, NULL);
}

// Reads FORMAT before anything is written, so that a folder of a newer release or of another
// program stays unchanged.
static Status check_format(Store *store, bool *out_new, bool *out_old)
{
        _cleanup_(freep) char *text = NULL;
        size_t n;
        Status status = folder_read(store->top, "FORMAT", 64, &text, &n, out_new);
        if (status == STATUS_DAMAGED)
                return fail(STATUS_USAGE,
                            "the data folder's FORMAT is no regular file; choose another folder with --data");
        if (status != STATUS_TOO_LARGE)
                TRY(status);
        if (status == STATUS_OK && *out_new)
                return check_new(store);
        char *end;
        long format = status == STATUS_OK ? strtol(text, &end, 10) : 0;
        if (status != STATUS_OK || end == text || strcmp(end, "\n") != 0 || format < 1)
                return fail(
                        STATUS_USAGE,
                        "the data folder's FORMAT file is not understood; choose another folder with --data");
        if (format > STORE_FORMAT)
                return fail(STATUS_USAGE,
                            "the data folder has format %ld; this fxserve knows formats up to %d: use a "
                            "newer fxserve, or another folder "
                            "with --data",
                            format, STORE_FORMAT);
        *out_old = format < STORE_FORMAT;
        return STATUS_OK;
}

static Status remove_unfinished(void *context, const char *name)
{
        Store *store = context;
        if (unlinkat(store->tmp, name, 0) != 0 && errno == EISDIR)
                unlinkat(store->tmp, name, AT_REMOVEDIR);
        return STATUS_OK;
}

static Status open_folders(Store *store, const char *folder)
{
        bool is_new, is_old = false;
        TRY(folder_open(AT_FDCWD, folder, true, &store->top));
        TRY(check_format(store, &is_new, &is_old));
        TRY(take_lock(store));
        TRY(check_format(store, &is_new, &is_old)); // again: another server may have been first
        // FORMAT is written first, so that a crash never leaves a folder that looks like another
        // program's. It is also raised before the first new entry is written, so that an older
        // program never meets one. Old entries are still read, and converted.
        TRY(folder_open(store->top, "tmp", true, &store->tmp));
        // their names may repeat: in a container the pid is always the same
        TRY(folder_each(store->tmp, remove_unfinished, store));
        if (is_new || is_old)
                TRY(folder_write(store->tmp, store->top, "FORMAT",
                                 (ByteSpan){ (const uint8_t *)STORE_FORMAT_TEXT, FORMAT_BYTES }, 0644));
        TRY(folder_open(store->top, "blobs", true, &store->blobs));
        TRY(folder_open(store->top, "graphs", true, &store->graphs));
        TRY(folder_open(store->top, "versions", true, &store->versions));
        TRY(folder_open(store->top, "quarantine", true, &store->quarantine));
        TRY(folder_open(store->top, "passes", true, &store->passes));
        return folder_open(store->top, "tunes", true, &store->tunes);
}

Status store_open(const char *folder, StoreLog log, void *log_context, StoreVisit visit, void *visit_context,
                  Store **out_store)
{
        _cleanup_(store_closep) Store *store = calloc(1, sizeof(*store));
        if (store == NULL)
                return fail_memory();
        pthread_mutex_init(&store->mutex, NULL);
        pthread_mutex_init(&store->writing, NULL);
        store->top = store->blobs = store->graphs = store->versions = store->quarantine = store->tmp =
                store->tunes = store->passes = store->lock = -1;
        store->log = log;
        store->log_context = log_context;
        mapping_catch_faults();
        TRY(mapping_table_new(&store->mappings));
        TRY(open_folders(store, folder));
        TRY(store_load(store, visit, visit_context));
        *out_store = take_ptr(store);
        return STATUS_OK;
}

Store *store_close(Store *store)
{
        if (store == NULL)
                return NULL;
        for (uint32_t i = 0; i < store->heads.n; i++)
                if (store->heads.entries[i].key != NULL)
                        head_free(store->heads.entries[i].value);
        for (uint32_t i = 0; i < store->users.n; i++)
                if (store->users.entries[i].key != NULL)
                        free(store->users.entries[i].value);
        string_map_deinit(&store->heads);
        string_map_deinit(&store->users);
        int *fds[] = { &store->blobs, &store->graphs, &store->versions, &store->quarantine, &store->tmp,
                       &store->tunes, &store->passes, &store->lock,     &store->top };
        for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
                if (*fds[i] >= 0)
                        close(*fds[i]);
        mapping_table_unref(store->mappings);
        pthread_mutex_destroy(&store->writing);
        pthread_mutex_destroy(&store->mutex);
        free(store);
        return NULL;
}
