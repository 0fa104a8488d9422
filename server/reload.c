// SPDX-License-Identifier: Apache-2.0
// Every POLL_MS the files are checked through the names they were given by, so that symbolic links
// are followed anew: Kubernetes replaces a mounted secret by switching a link (`..data`). A change
// is read when it looks the same twice: a file that is still being written, or a certificate whose
// new key is still missing, is left alone. Checking and reading are done by libuv's thread pool,
// because a disk may be slow.
//
//   loop thread: timer → round to the pool → (pool: stat, read) → values taken, logged → timer …
//
// During a round the pool owns `sources`; the loop thread sets `forced` only.
#include "server/reload.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/base/memory.h"
#include "server/log.h"

enum { POLL_MS = 1000 };

// Tells one state of a file from another; all zeros but for `error` if the file does not exist.
typedef struct FileState {
        int error;
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified, changed;
} FileState;

typedef struct Source {
        ReloadSource row;
        FileState seen[RELOAD_MAX_PATHS];  // when last looked at
        FileState taken[RELOAD_MAX_PATHS]; // when it was last read successfully
        // The round's:
        bool read, failed;
        void *value;
        char message[FAILURE_MESSAGE_MAX];
        // The last failure that was logged; "": the last reading succeeded.
        char complaint[FAILURE_MESSAGE_MAX];
} Source;

struct Reload {
        Source sources[RELOAD_MAX_SOURCES];
        int n_sources;
        uv_loop_t *loop;
        uv_timer_t timer;
        uv_work_t work;
        bool forced, round_forced, stopped;
};

// ---- looking and reading, on any thread ----
static FileState state_of(const char *path)
{
        struct stat info;
        FileState state;
        memset(&state, 0, sizeof(state)); // padding is compared, too
        if (stat(path, &info) != 0) {
                state.error = errno;
                return state;
        }
        state.device = info.st_dev;
        state.inode = info.st_ino;
        state.size = info.st_size;
        state.modified = info.st_mtim;
        state.changed = info.st_ctim;
        return state;
}

static void read_source(Source *source)
{
        source->read = true;
        source->failed = source->row.read(source->row.context, &source->value) != STATUS_OK;
        if (source->failed)
                snprintf(source->message, sizeof(source->message), "%s", failure_current()->message);
        else
                memcpy(source->taken, source->seen, sizeof(source->seen));
}

// True: the state is the same as at the last check, and differs from the one that was read.
static bool look(Source *source)
{
        FileState found[RELOAD_MAX_PATHS];
        memset(found, 0, sizeof(found));
        for (int i = 0; i < RELOAD_MAX_PATHS && source->row.paths[i] != NULL; i++)
                found[i] = state_of(source->row.paths[i]);
        bool settled = memcmp(found, source->seen, sizeof(found)) == 0;
        memcpy(source->seen, found, sizeof(found));
        return settled && (source->complaint[0] != '\0' || memcmp(found, source->taken, sizeof(found)) != 0);
}

static void do_round(uv_work_t *work)
{
        Reload *reload = work->data;
        for (int i = 0; i < reload->n_sources; i++)
                if (look(&reload->sources[i]) || reload->round_forced)
                        read_source(&reload->sources[i]);
}

// ---- on the loop thread ----
static void take(Source *source)
{
        if (!source->read)
                return;
        source->read = false;
        if (!source->failed) {
                source->row.take(source->row.context, take_ptr(source->value));
                source->complaint[0] = '\0';
                log_line("reloaded: %s", source->row.what);
        } else if (strcmp(source->complaint, source->message) != 0) {
                memcpy(source->complaint, source->message, sizeof(source->complaint));
                log_error("not reloaded: %s; what was read before stays: %s", source->row.what,
                          source->message);
        }
}

static void begin_round(uv_timer_t *timer);

static void end_round(uv_work_t *work, int status)
{
        Reload *reload = work->data;
        (void)status;
        for (int i = 0; i < reload->n_sources && !reload->stopped; i++)
                take(&reload->sources[i]);
        if (!reload->stopped)
                uv_timer_start(&reload->timer, begin_round, reload->forced ? 0 : POLL_MS, 0);
}

static void begin_round(uv_timer_t *timer)
{
        Reload *reload = timer->data;
        reload->round_forced = reload->forced;
        reload->forced = false;
        for (int i = 0; reload->round_forced && i < reload->n_sources; i++)
                // a reload by signal reports failures again
                reload->sources[i].complaint[0] = '\0';
        uv_queue_work(reload->loop, &reload->work, do_round, end_round);
}

static void name_files(const ReloadSource *row)
{
        if (row->paths[1] == NULL)
                failure_append(" (%s %s)", row->flags[0], row->paths[0]);
        else
                failure_append(" (%s %s, %s %s)", row->flags[0], row->paths[0], row->flags[1], row->paths[1]);
}

Status reload_open(const ReloadSource *sources, int n_sources, Reload **out_reload)
{
        Reload *reload = calloc(1, sizeof(*reload));
        if (reload == NULL)
                return fail_memory();
        reload->n_sources = n_sources;
        for (int i = 0; i < n_sources; i++) {
                Source *source = &reload->sources[i];
                source->row = sources[i];
                look(source);
                Status status = source->row.read(source->row.context, &source->value);
                if (status != STATUS_OK) {
                        name_files(&source->row);
                        free(reload);
                        return status;
                }
                source->row.take(source->row.context, take_ptr(source->value));
                memcpy(source->taken, source->seen, sizeof(source->seen));
        }
        *out_reload = reload;
        return STATUS_OK;
}

void reload_start(Reload *reload, uv_loop_t *loop)
{
        reload->loop = loop;
        uv_timer_init(loop, &reload->timer);
        reload->timer.data = reload->work.data = reload;
        if (reload->n_sources > 0)
                uv_timer_start(&reload->timer, begin_round, POLL_MS, 0);
}

void reload_now(Reload *reload)
{
        reload->forced = true;
        // else a round is under way, and the next one follows it
        if (uv_is_active((uv_handle_t *)&reload->timer))
                uv_timer_start(&reload->timer, begin_round, 0, 0);
}

int reload_count(const Reload *reload)
{
        return reload->n_sources;
}

const char *reload_what(const Reload *reload, int source)
{
        return reload->sources[source].row.what;
}

bool reload_failing(const Reload *reload, int source)
{
        return reload->sources[source].complaint[0] != '\0';
}

void reload_stop(Reload *reload)
{
        if (reload == NULL || reload->loop == NULL)
                return;
        reload->stopped = true;
        uv_close((uv_handle_t *)&reload->timer, NULL);
}

Reload *reload_free(Reload *reload)
{
        if (reload == NULL)
                return NULL;
        for (int i = 0; i < reload->n_sources; i++)
                if (reload->sources[i].value != NULL)
                        reload->sources[i].row.drop(reload->sources[i].value);
        free(reload);
        return NULL;
}
