// SPDX-License-Identifier: Apache-2.0
// Durable file writes. A file appears under its name only after its bytes and its name are on disk:
// write to tmp/, fsync, rename, fsync the folder.
#include "core/store/folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/memory.h"

static void closep(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

static void closedirp(DIR **directory)
{
        if (*directory != NULL)
                closedir(*directory);
}

Status folder_fail(const char *what, int error)
{
        if (error == ENOSPC || error == EDQUOT)
                return fail(STATUS_DISK_FULL,
                            "the data folder's disk is full: %s was not stored; free some space and send it "
                            "again",
                            what);
        if (error == EFBIG)
                return fail(STATUS_DISK_FULL,
                            "%s was not stored: it makes a larger file than the server may write (ulimit -f, "
                            "or the file system's limit)",
                            what);
        if (error == EROFS || error == EACCES || error == EPERM)
                return fail(STATUS_IO, "the data folder cannot be written: %s (%s)", what, strerror(error));
        return fail(STATUS_IO, "%s: %s", what, strerror(error));
}

Status folder_fail_reading(int error)
{
        return fail(STATUS_IO, "a stored file cannot be read: %s", strerror(error));
}

// A signal may interrupt it, on network file systems above all.
static int open_at(int folder, const char *name, int flags, unsigned mode)
{
        int fd;
        do {
                fd = openat(folder, name, flags, mode);
        } while (fd < 0 && errno == EINTR);
        return fd;
}

// Makes the entry of a new folder durable: syncs its parent.
static Status sync_above(int fd)
{
        _cleanup_(closep) int above = open_at(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (above < 0 && errno == EACCES) // may be searched, not read: nothing can be done
                return STATUS_OK;
        return above >= 0 && fsync(above) == 0 ? STATUS_OK : folder_fail("making the data folder", errno);
}

Status folder_open(int parent, const char *name, bool create, int *out_fd)
{
        bool is_new = create && mkdirat(parent, name, 0700) == 0;
        if (create && !is_new && errno != EEXIST)
                return folder_fail("making the data folder", errno);
        int fd = open_at(
                parent, name,
                O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | (parent == AT_FDCWD ? 0 : O_NOFOLLOW), 0);
        if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
                return fail(STATUS_USAGE, "%s is no folder%s; choose another folder with --data",
                            parent == AT_FDCWD ? "what --data names" : name,
                            parent == AT_FDCWD ? "" : " inside the data folder");
        if (fd < 0)
                return folder_fail("opening the data folder", errno);
        Status status = is_new ? sync_above(fd) : STATUS_OK;
        if (status != STATUS_OK)
                close(fd);
        else
                *out_fd = fd;
        return status;
}

int folder_write_range(int fd, const FolderRange *range)
{
        const uint8_t *data = range->bytes.data;
        size_t n = range->bytes.n;
        off_t at = (off_t)range->offset;
        while (n > 0) {
                ssize_t written = pwrite(fd, data, MIN(n, (size_t)1 << 30), at);
                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0)
                        return errno;
                data += written;
                at += written;
                n -= (size_t)written;
        }
        return 0;
}

static void unique_name(char out[48])
{
        static _Atomic unsigned counter;
        snprintf(out, 48, "%ld-%u", (long)getpid(), atomic_fetch_add(&counter, 1u));
}

bool folder_is_unfinished(const char *name)
{
        size_t n_pid = strspn(name, "0123456789");
        const char *count = name + n_pid + 1;
        return n_pid > 0 && name[n_pid] == '-' && *count != '\0' &&
               count[strspn(count, "0123456789")] == '\0';
}

Status folder_write_content(int tmp, int folder, const char *name, const FolderContent *content,
                            unsigned mode)
{
        char unfinished[48];
        unique_name(unfinished);
        _cleanup_(closep) int fd =
                open_at(tmp, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                return folder_fail("a new file", errno);
        int error = ftruncate(fd, (off_t)content->n_bytes) != 0 ? errno : 0;
        for (uint32_t i = 0; i < content->n_ranges && error == 0; i++)
                error = folder_write_range(fd, &content->ranges[i]);
        if (error == 0 && fsync(fd) != 0)
                error = errno;
        if (error == 0 && renameat(tmp, unfinished, folder, name) != 0)
                error = errno;
        if (error == 0)
                return STATUS_OK;
        unlinkat(tmp, unfinished, 0);
        return folder_fail("the upload", error);
}

Status folder_sync(int folder)
{
        return fsync(folder) == 0 ? STATUS_OK : folder_fail("the upload", errno);
}

Status folder_write(int tmp, int folder, const char *name, ByteSpan bytes, unsigned mode)
{
        FolderRange range = { 0, bytes };
        FolderContent content = { &range, 1, bytes.n };
        TRY(folder_write_content(tmp, folder, name, &content, mode));
        return folder_sync(folder);
}

static bool range_equals(int fd, const FolderRange *range)
{
        uint8_t chunk[65536];
        size_t done = 0;
        while (done < range->bytes.n) {
                ssize_t got = pread(fd, chunk, MIN(sizeof(chunk), range->bytes.n - done),
                                    (off_t)(range->offset + done));
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0 || memcmp(chunk, range->bytes.data + done, (size_t)got) != 0)
                        return false;
                done += (size_t)got;
        }
        return true;
}

bool folder_has_content(int folder, const char *name, const FolderContent *content)
{
        struct stat info;
        _cleanup_(closep) int fd = -1;
        bool missing;
        bool same = folder_open_file(folder, name, &fd, &missing) == STATUS_OK && !missing &&
                    fstat(fd, &info) == 0 && (uint64_t)info.st_size == content->n_bytes;
        for (uint32_t i = 0; i < content->n_ranges && same; i++)
                same = range_equals(fd, &content->ranges[i]);
        return same;
}

Status folder_unnamed(int folder, int *out_fd)
{
        char name[48];
        unique_name(name);
        int fd = open_at(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return folder_fail("a new file", errno);
        if (unlinkat(folder, name, 0) != 0) {
                int error = errno;
                close(fd);
                return folder_fail("a new file", error);
        }
        *out_fd = fd;
        return STATUS_OK;
}

static Status irregular(void)
{
        return fail(STATUS_DAMAGED, "it is no regular file");
}

bool folder_is_irregular(int folder, const char *name)
{
        struct stat info;
        return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode);
}

// The type is checked before opening, since opening a device may have effects, and again after,
// since the file may have been replaced.
Status folder_open_file(int folder, const char *name, int *out_fd, bool *out_missing)
{
        struct stat info;
        *out_missing = false;
        if (folder_is_irregular(folder, name))
                return irregular();
        int fd = open_at(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
        if (fd < 0 && errno == ENOENT) {
                *out_missing = true;
                return STATUS_OK;
        }
        if (fd < 0)
                return errno == ELOOP ? irregular() : folder_fail_reading(errno);
        if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
                close(fd);
                return irregular();
        }
        *out_fd = fd;
        return STATUS_OK;
}

Status folder_read(int folder, const char *name, size_t max_bytes, char **out_text, size_t *out_n,
                   bool *out_missing)
{
        struct stat info;
        _cleanup_(closep) int fd = -1;
        TRY(folder_open_file(folder, name, &fd, out_missing));
        if (*out_missing)
                return STATUS_OK;
        if (fstat(fd, &info) != 0)
                return folder_fail_reading(errno);
        if ((uint64_t)info.st_size > max_bytes)
                return fail(STATUS_TOO_LARGE, "it is larger than what was written");
        size_t n = (size_t)info.st_size, done = 0;
        _cleanup_(freep) char *text = malloc(n + 1);
        if (text == NULL)
                return fail_memory();
        while (done < n) {
                ssize_t got = read(fd, text + done, n - done);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return folder_fail_reading(errno);
                if (got == 0)
                        break;
                done += (size_t)got;
        }
        text[done] = '\0';
        *out_n = done;
        *out_text = take_ptr(text);
        return STATUS_OK;
}

Status folder_remove(int folder, const char *name)
{
        if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
                return folder_fail("removing a stored file", errno);
        if (fsync(folder) != 0)
                return folder_fail("removing a stored file", errno);
        return STATUS_OK;
}

Status folder_each(int folder, Status (*visit)(void *context, const char *name), void *context)
{
        // a descriptor of its own: readdir moves it
        int copy = open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        _cleanup_(closedirp) DIR *directory = copy < 0 ? NULL : fdopendir(copy);
        if (directory == NULL)
                return folder_fail("listing the data folder", errno);
        for (;;) {
                errno = 0;
                struct dirent *entry = readdir(directory);
                if (entry == NULL)
                        return errno == 0 ? STATUS_OK : folder_fail("listing the data folder", errno);
                if (entry->d_name[0] != '.')
                        TRY(visit(context, entry->d_name));
        }
}
