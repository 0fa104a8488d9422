// SPDX-License-Identifier: Apache-2.0
// A library to preload (LD_PRELOAD) that records what a process does to the files below
// RECORD_ROOT, in order, to the file RECORD_FILE, for tests/fault/crashes.py. One record per call
// that succeeded:
//
//   NAME\tPATH\tOTHER\tA\tB\n     and B bytes of payload for a write
//
// PATH and OTHER are relative to the root. Calls and their records are serialised, so that the
// order is that of the file system. Writes through shared mappings are not seen.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;
static char root[PATH_MAX];

#define NEXT(name)                                                                                           \
        static __typeof__(name) *next;                                                                       \
        if (next == NULL)                                                                                    \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void)
{
        const char *file = getenv("RECORD_FILE"), *below = getenv("RECORD_ROOT");
        if (file == NULL || below == NULL || realpath(below, root) == NULL)
                return;
        out = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

// The path of what `fd` is, below the root. False: it is elsewhere, or has no name any more.
static bool path_of(int fd, char path[PATH_MAX])
{
        char link[64], whole[PATH_MAX];
        size_t n = strlen(root);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = out < 0 ? -1 : readlink(link, whole, sizeof(whole) - 1);
        if (length < 0)
                return false;
        whole[length] = '\0';
        if (strncmp(whole, root, n) != 0 || (whole[n] != '/' && whole[n] != '\0') ||
            strstr(whole, " (deleted)") != NULL)
                return false;
        snprintf(path, PATH_MAX, "%s", whole[n] == '\0' ? "" : whole + n + 1);
        return true;
}

static bool path_at(int folder, const char *name, char path[PATH_MAX])
{
        char above[PATH_MAX];
        if (folder == AT_FDCWD) {
                size_t n = strlen(root);
                if (out < 0 || strncmp(name, root, n) != 0 || name[n] != '/')
                        return false;
                snprintf(path, PATH_MAX, "%s", name + n + 1);
                return true;
        }
        if (!path_of(folder, above))
                return false;
        return snprintf(path, PATH_MAX, "%s%s%s", above, above[0] == '\0' ? "" : "/", name) < PATH_MAX;
}

static void record(const char *name, const char *path, const char *other, long long a, size_t n,
                   const void *data)
{
        char head[3 * PATH_MAX];
        NEXT(write);
        int length = snprintf(head, sizeof(head), "%s\t%s\t%s\t%lld\t%zu\n", name, path, other, a, n);
        if (next(out, head, (size_t)length) != length || (n > 0 && next(out, data, n) != (ssize_t)n))
                abort();
}

#define LOCKED(call)                                                                                         \
        pthread_mutex_lock(&mutex);                                                                          \
        call;                                                                                                \
        int error = errno
#define UNLOCKED                                                                                             \
        pthread_mutex_unlock(&mutex);                                                                        \
        errno = error

int openat(int folder, const char *name, int flags, ...)
{
        NEXT(openat);
        char path[PATH_MAX];
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
        va_end(arguments);
        if ((flags & (O_CREAT | O_TRUNC)) == 0 || !path_at(folder, name, path))
                return next(folder, name, flags, mode);
        struct stat info;
        LOCKED(bool was = fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
               int fd = next(folder, name, flags, mode));
        if (fd >= 0 && !was)
                record("create", path, "", mode, 0, NULL);
        UNLOCKED;
        return fd;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
        NEXT(pwrite);
        char path[PATH_MAX];
        if (!path_of(fd, path))
                return next(fd, data, n, offset);
        LOCKED(ssize_t written = next(fd, data, n, offset));
        if (written > 0)
                record("write", path, "", offset, (size_t)written, data);
        UNLOCKED;
        return written;
}

int ftruncate(int fd, off_t n)
{
        NEXT(ftruncate);
        char path[PATH_MAX];
        if (!path_of(fd, path))
                return next(fd, n);
        LOCKED(int result = next(fd, n));
        if (result == 0)
                record("truncate", path, "", n, 0, NULL);
        UNLOCKED;
        return result;
}

int fsync(int fd)
{
        NEXT(fsync);
        char path[PATH_MAX];
        if (!path_of(fd, path))
                return next(fd);
        LOCKED(int result = next(fd));
        if (result == 0)
                record("sync", path, "", 0, 0, NULL);
        UNLOCKED;
        return result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
        NEXT(renameat);
        char path[PATH_MAX], other[PATH_MAX];
        if (!path_at(from_folder, from, path) || !path_at(to_folder, to, other))
                return next(from_folder, from, to_folder, to);
        LOCKED(int result = next(from_folder, from, to_folder, to));
        if (result == 0)
                record("rename", path, other, 0, 0, NULL);
        UNLOCKED;
        return result;
}

int unlinkat(int folder, const char *name, int flags)
{
        NEXT(unlinkat);
        char path[PATH_MAX];
        if (!path_at(folder, name, path))
                return next(folder, name, flags);
        LOCKED(int result = next(folder, name, flags));
        if (result == 0)
                record("unlink", path, "", 0, 0, NULL);
        UNLOCKED;
        return result;
}

int mkdirat(int folder, const char *name, mode_t mode)
{
        NEXT(mkdirat);
        char path[PATH_MAX];
        if (!path_at(folder, name, path))
                return next(folder, name, mode);
        LOCKED(int result = next(folder, name, mode));
        if (result == 0)
                record("mkdir", path, "", mode, 0, NULL);
        UNLOCKED;
        return result;
}

// Programs built for large files call these, and fortified ones those that check for a forgotten
// mode.
#define ALIAS(name, of) __typeof__(of) name __attribute__((alias(#of)))
ALIAS(openat64, openat);
ALIAS(pwrite64, pwrite);
ALIAS(ftruncate64, ftruncate);

int __openat_2(int folder, const char *path, int flags)
{
        return openat(folder, path, flags);
}
int __openat64_2(int folder, const char *path, int flags)
{
        return openat(folder, path, flags);
}
