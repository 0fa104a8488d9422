// SPDX-License-Identifier: Apache-2.0
// A library to preload (LD_PRELOAD) that makes the n-th fallible call of a process fail. Two
// classes of calls are counted, files (open, write, sync, rename, ... on regular files and folders,
// not on sockets, and not what the C library opens for itself) and memory (malloc and its
// relatives). What is to fail, and what has been counted, stands in a page shared with the test:
// the file named by FAULT_PAGE, which the test has made; memory that a library named by FAULT_SPARE
// (a word of its path) asks for is given. Layout: struct Page; tests/fault/page.py is its twin.
// Live heap blocks are counted all the time, so that the test can see a leak.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef enum How { HOW_ENOSPC, HOW_EIO, HOW_EMFILE, HOW_EINTR, HOW_SHORT, HOW_ENOMEM } How;

typedef struct Class {
        _Atomic uint64_t armed;   // 0: nothing is counted
        _Atomic uint64_t calls;   // since the test set it to 0
        _Atomic uint64_t fail_at; // 1 is the first; 0: none fails
        _Atomic uint64_t always;  // the later ones fail, too
        _Atomic uint64_t how;     // How
        _Atomic uint64_t failed;  // calls that failed
} Class;

typedef struct Page {
        Class files, memory;
        _Atomic int64_t live_blocks, live_bytes;
        char last[64]; // name of the call that failed last
} Page;

static Page nowhere, *page = &nowhere;
static bool tracing; // FAULT_TRACE: prints which call fails, and from where

enum { MAX_SPARED = 4 };
static struct Range {
        uintptr_t start, end;
} spared[MAX_SPARED];
static int n_spared;

// Notes where a library's code lies.
static int note_library(struct dl_phdr_info *info, size_t n, void *context)
{
        const char *word = context;
        (void)n;
        if (strstr(info->dlpi_name, word) == NULL)
                return 0;
        for (int i = 0; i < info->dlpi_phnum && n_spared < MAX_SPARED; i++)
                if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
                        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                        spared[n_spared++] = (struct Range){ start, start + info->dlpi_phdr[i].p_memsz };
                }
        return 0;
}

static bool is_spared(const void *from)
{
        for (int i = 0; i < n_spared; i++)
                if ((uintptr_t)from >= spared[i].start && (uintptr_t)from < spared[i].end)
                        return true;
        return false;
}

__attribute__((constructor)) static void find_page(void)
{
        const char *spare = getenv("FAULT_SPARE");
        if (spare != NULL && spare[0] != '\0')
                dl_iterate_phdr(note_library, (void *)(uintptr_t)spare);
        const char *path = getenv("FAULT_PAGE");
        int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return;
        void *data = mmap(NULL, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (data != MAP_FAILED)
                page = data;
        tracing = getenv("FAULT_TRACE") != NULL;
}

// Whether this call fails. Only reads and writes can be short; other calls are counted then, but go
// on.
static bool fails(Class *class, const char *name, bool can_be_short, const void *from)
{
        if (atomic_load_explicit(&class->armed, memory_order_relaxed) == 0 ||
            (class == &page->memory && is_spared(from)))
                return false;
        uint64_t number = atomic_fetch_add(&class->calls, 1) + 1, at = atomic_load(&class->fail_at);
        if (at == 0 || number < at || (number > at && atomic_load(&class->always) == 0))
                return false;
        if (!can_be_short && atomic_load(&class->how) == HOW_SHORT)
                return false;
        atomic_fetch_add(&class->failed, 1);
        size_t n = strlen(name) < sizeof(page->last) - 1 ? strlen(name) : sizeof(page->last) - 1;
        memcpy(page->last, name, n);
        page->last[n] = '\0';
        if (tracing) {
                Dl_info info = { .dli_fname = "" };
                char text[256];
                dladdr(from, &info);
                const char *file = info.dli_fname == NULL ? "" : info.dli_fname;
                int length = snprintf(text, sizeof(text), "fault: %s number %llu from %s+0x%llx\n", name,
                                      (unsigned long long)number,
                                      strrchr(file, '/') == NULL ? file : strrchr(file, '/') + 1,
                                      (unsigned long long)((uintptr_t)from - (uintptr_t)info.dli_fbase));
                if (length > 0)
                        (void)!write(2, text, (size_t)length);
        }
        return true;
}

#define FAILS(class, name, short) fails(&page->class, (name), (short), __builtin_return_address(0))

static int error_of(const Class *class)
{
        static const int errors[] = {
                [HOW_ENOSPC] = ENOSPC, [HOW_EIO] = EIO,      [HOW_EMFILE] = EMFILE,
                [HOW_EINTR] = EINTR,   [HOW_SHORT] = ENOSPC, [HOW_ENOMEM] = ENOMEM,
        };
        return errors[atomic_load(&class->how) % (sizeof(errors) / sizeof(errors[0]))];
}

// ---- files ----
// The next definition of a function; found at its first use.
#define NEXT(function)                                                                                       \
        static __typeof__(function) *next;                                                                   \
        if (next == NULL)                                                                                    \
        next = (__typeof__(function) *)(uintptr_t)dlsym(RTLD_NEXT, #function)

static bool is_file(int fd)
{
        struct stat status;
        if (fd <= 2 || page->files.armed == 0)
                return false;
        return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static bool is_ours(const char *path)
{
        static const char *const others[] = { "/proc/", "/sys/", "/dev/", "/usr/", "/lib", "/etc/" };
        if (page->files.armed == 0)
                return false;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (strncmp(path, others[i], strlen(others[i])) == 0)
                        return false;
        return true;
}

#define FAIL_IF(condition, name)                                                                             \
        if ((condition) && FAILS(files, name, false)) {                                                      \
                errno = error_of(&page->files);                                                              \
                return -1;                                                                                   \
        }

static mode_t mode_of(int flags, va_list *arguments)
{
        return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
        NEXT(open);
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = mode_of(flags, &arguments);
        va_end(arguments);
        FAIL_IF(is_ours(path), "open")
        return next(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
        NEXT(openat);
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = mode_of(flags, &arguments);
        va_end(arguments);
        FAIL_IF(is_ours(path), "openat")
        return next(folder, path, flags, mode);
}

// A short count: half of what was asked for, at least one byte.
static size_t shortened(size_t n)
{
        return n > 1 ? n / 2 : n;
}
#define SHORT_OR_FAIL(name)                                                                                  \
        if (is_file(fd) && FAILS(files, name, true)) {                                                       \
                if (atomic_load(&page->files.how) != HOW_SHORT) {                                            \
                        errno = error_of(&page->files);                                                      \
                        return -1;                                                                           \
                }                                                                                            \
                n = shortened(n);                                                                            \
        }

ssize_t write(int fd, const void *data, size_t n)
{
        NEXT(write);
        SHORT_OR_FAIL("write")
        return next(fd, data, n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
        NEXT(pwrite);
        SHORT_OR_FAIL("pwrite")
        return next(fd, data, n, offset);
}

ssize_t read(int fd, void *data, size_t n)
{
        NEXT(read);
        SHORT_OR_FAIL("read")
        return next(fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
        NEXT(pread);
        SHORT_OR_FAIL("pread")
        return next(fd, data, n, offset);
}

int fsync(int fd)
{
        NEXT(fsync);
        FAIL_IF(is_file(fd), "fsync")
        return next(fd);
}

int fdatasync(int fd)
{
        NEXT(fdatasync);
        FAIL_IF(is_file(fd), "fdatasync")
        return next(fd);
}

int ftruncate(int fd, off_t n)
{
        NEXT(ftruncate);
        FAIL_IF(is_file(fd), "ftruncate")
        return next(fd, n);
}

int fallocate(int fd, int mode, off_t offset, off_t n)
{
        NEXT(fallocate);
        FAIL_IF(is_file(fd), "fallocate")
        return next(fd, mode, offset, n);
}

int posix_fallocate(int fd, off_t offset, off_t n)
{
        NEXT(posix_fallocate);
        if (is_file(fd) && FAILS(files, "posix_fallocate", false))
                return error_of(&page->files);
        return next(fd, offset, n);
}

int rename(const char *from, const char *to)
{
        NEXT(rename);
        FAIL_IF(is_ours(from), "rename")
        return next(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
        NEXT(renameat);
        FAIL_IF(is_ours(from), "renameat")
        return next(from_folder, from, to_folder, to);
}

int unlinkat(int folder, const char *path, int flags)
{
        NEXT(unlinkat);
        FAIL_IF(is_ours(path), "unlinkat")
        return next(folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
        NEXT(mkdirat);
        FAIL_IF(is_ours(path), "mkdirat")
        return next(folder, path, mode);
}

void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
        NEXT(mmap);
        if (fd >= 0 && is_file(fd) && FAILS(files, "mmap", false)) {
                errno = error_of(&page->files);
                return MAP_FAILED;
        }
        return next(address, n, protection, flags, fd, offset);
}

// Programs built for large files call these, and fortified ones those that check for a forgotten
// mode.
#define ALIAS(name, of) __typeof__(of) name __attribute__((alias(#of)))
ALIAS(open64, open);
ALIAS(openat64, openat);
ALIAS(pread64, pread);
ALIAS(pwrite64, pwrite);
ALIAS(ftruncate64, ftruncate);
ALIAS(fallocate64, fallocate);
ALIAS(posix_fallocate64, posix_fallocate);
ALIAS(mmap64, mmap);

int __open_2(const char *path, int flags)
{
        return open(path, flags);
}
int __open64_2(const char *path, int flags)
{
        return open(path, flags);
}
int __openat_2(int folder, const char *path, int flags)
{
        return openat(folder, path, flags);
}
int __openat64_2(int folder, const char *path, int flags)
{
        return openat(folder, path, flags);
}

// ---- memory ----
// glibc's own entry points; looking them up with dlsym would need memory first.
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t each);
extern void *__libc_realloc(void *data, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void __libc_free(void *data);

static void *made(void *data)
{
        if (data != NULL) {
                atomic_fetch_add_explicit(&page->live_blocks, 1, memory_order_relaxed);
                atomic_fetch_add_explicit(&page->live_bytes, (int64_t)malloc_usable_size(data),
                                          memory_order_relaxed);
        }
        return data;
}

static void gone(void *data)
{
        if (data != NULL) {
                atomic_fetch_sub_explicit(&page->live_blocks, 1, memory_order_relaxed);
                atomic_fetch_sub_explicit(&page->live_bytes, (int64_t)malloc_usable_size(data),
                                          memory_order_relaxed);
        }
}

#define NONE_IF_FAILS(name)                                                                                  \
        if (FAILS(memory, name, false)) {                                                                    \
                errno = ENOMEM;                                                                              \
                return NULL;                                                                                 \
        }

void *malloc(size_t n)
{
        NONE_IF_FAILS("malloc")
        return made(__libc_malloc(n));
}

void *calloc(size_t n, size_t each)
{
        NONE_IF_FAILS("calloc")
        return made(__libc_calloc(n, each));
}

void *realloc(void *data, size_t n)
{
        NONE_IF_FAILS("realloc")
        size_t before = data == NULL ? 0 : malloc_usable_size(data);
        void *moved = __libc_realloc(data, n);
        if (moved != NULL) {
                atomic_fetch_add_explicit(&page->live_blocks, data == NULL, memory_order_relaxed);
                atomic_fetch_add_explicit(&page->live_bytes,
                                          (int64_t)malloc_usable_size(moved) - (int64_t)before,
                                          memory_order_relaxed);
        } else if (n == 0 && data != NULL) {
                atomic_fetch_sub_explicit(&page->live_blocks, 1, memory_order_relaxed);
                atomic_fetch_sub_explicit(&page->live_bytes, (int64_t)before, memory_order_relaxed);
        }
        return moved;
}

void *memalign(size_t alignment, size_t n)
{
        NONE_IF_FAILS("memalign")
        return made(__libc_memalign(alignment, n));
}

void *aligned_alloc(size_t alignment, size_t n)
{
        NONE_IF_FAILS("aligned_alloc")
        return made(__libc_memalign(alignment, n));
}

int posix_memalign(void **out_data, size_t alignment, size_t n)
{
        if (FAILS(memory, "posix_memalign", false))
                return ENOMEM;
        void *data = made(__libc_memalign(alignment, n));
        if (data == NULL)
                return ENOMEM;
        *out_data = data;
        return 0;
}

void free(void *data)
{
        gone(data);
        __libc_free(data);
}
