// SPDX-License-Identifier: Apache-2.0
// The folder is walked on libuv's pool, when /metrics is read and the last count is old. So the
// value shown is at most as old as the scrape before. The longer a walk takes, the rarer it is.
#include "server/usage.h"
#include <ftw.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/text.h"

enum { REST = 100 }; // a walk takes at most 1/REST of the time
static const int64_t OLD_NS = 5000000000;

struct Usage {
        char *folder;
        uv_loop_t *loop;
        uv_work_t work;
        bool counting;
        _Atomic bool stopped;
        int64_t next_ns; // not before this
        int64_t bytes, free_bytes;
        int64_t found_bytes, found_free_bytes, took_ns; // owned by the walk while it runs
};

// nftw() takes no context. fts_open() would, but glibc's crashes when memory runs out.
static _Thread_local struct Walk {
        const _Atomic bool *stopped;
        int64_t bytes;
} walk;

static int add_file(const char *path, const struct stat *stat, int type, struct FTW *place)
{
        (void)path;
        (void)place;
        if (type == FTW_D || type == FTW_F)
                walk.bytes += (int64_t)stat->st_blocks * 512;
        return atomic_load(walk.stopped);
}

static void count(uv_work_t *work)
{
        enum { MOST_OPEN = 8 };
        Usage *usage = work->data;
        struct statvfs disk;
        int64_t began_ns = clock_ns();
        walk = (struct Walk){ .stopped = &usage->stopped };
        bool walked = nftw(usage->folder, add_file, MOST_OPEN, FTW_PHYS | FTW_MOUNT) >= 0;
        usage->found_bytes = walked ? walk.bytes : -1;
        usage->found_free_bytes =
                statvfs(usage->folder, &disk) == 0 ? (int64_t)(disk.f_bavail * disk.f_frsize) : -1;
        usage->took_ns = clock_ns() - began_ns;
}

static void counted(uv_work_t *work, int status)
{
        Usage *usage = work->data;
        (void)status;
        usage->counting = false;
        usage->bytes = usage->found_bytes;
        usage->free_bytes = usage->found_free_bytes;
        usage->next_ns = clock_ns() + MAX(OLD_NS, REST * usage->took_ns);
}

static void begin(Usage *usage)
{
        if (usage->loop == NULL || usage->folder == NULL || usage->counting || atomic_load(&usage->stopped))
                return;
        usage->work.data = usage;
        usage->counting = uv_queue_work(usage->loop, &usage->work, count, counted) == 0;
}

Status usage_new(const char *folder, Usage **out_usage)
{
        Usage *usage = calloc(1, sizeof(*usage));
        if (usage == NULL ||
            (folder != NULL && (usage->folder = copy_text(folder, strlen(folder))) == NULL)) {
                free(usage);
                return fail_memory();
        }
        usage->bytes = usage->free_bytes = -1;
        *out_usage = usage;
        return STATUS_OK;
}

void usage_start(Usage *usage, uv_loop_t *loop)
{
        usage->loop = loop;
        begin(usage);
}

void usage_read(Usage *usage, int64_t *out_bytes, int64_t *out_free_bytes)
{
        *out_bytes = usage->bytes;
        *out_free_bytes = usage->free_bytes;
        if (clock_ns() >= usage->next_ns)
                begin(usage);
}

void usage_stop(Usage *usage)
{
        if (usage != NULL)
                atomic_store(&usage->stopped, true);
}

Usage *usage_free(Usage *usage)
{
        if (usage == NULL)
                return NULL;
        free(usage->folder);
        free(usage);
        return NULL;
}
