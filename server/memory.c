// SPDX-License-Identifier: Apache-2.0
// A timer reads /proc/self/statm, which does not wait, and takes the rung from it. On any rung but
// the lowest a worker drops once a second what can be made again and was not used lately, and
// gives freed pages back to the system; so what some client left in caches does not keep the server
// there. Requests that were accepted go on.
#include "server/memory.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api/run/reply_cache.h"
#include "core/base/limits.h"
#include "core/engine/shrink.h"
#include "server/log.h"

enum { LOOK_MS = 100, LOOKS_PER_SWEEP = 10 };

struct Memory {
        int fd; // /proc/self/statm; -1: there is none
        MemoryRung rung;
        MemoryOwners owners;
        uv_timer_t timer;
        bool started;
        uint32_t n_looks;
        Task task;
        _Atomic bool sweeping; // the task is queued or runs
};

// ---- rungs ----
static const struct {
        int enter, leave; // percent of the limit
        const char *says;
} rungs[] = { [MEMORY_FREE] = { 0, 0, "everything is served" },
              [MEMORY_NO_CACHES] = { 85, 83, "caches are dropped" },
              [MEMORY_NO_UPLOADS] = { 90, 88, "uploads are refused" },
              [MEMORY_NO_RUNS] = { 95, 93, "runs are refused" } };

static int64_t share(int64_t limit, int percent)
{
        return limit / 100 * percent + limit % 100 * percent / 100;
}

MemoryRung memory_rung(int64_t used, int64_t limit, MemoryRung rung)
{
        if (limit <= 0)
                return MEMORY_FREE;
        while (rung < MEMORY_NO_RUNS && used >= share(limit, rungs[rung + 1].enter))
                rung++;
        while (rung > MEMORY_FREE && used < share(limit, rungs[rung].leave))
                rung--;
        return rung;
}

static int64_t held_bytes(const Memory *memory)
{
        char text[256];
        long long size, resident, shared;
        ssize_t n = memory->fd < 0 ? -1 : pread(memory->fd, text, sizeof(text) - 1, 0);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        if (sscanf(text, "%lld %lld %lld", &size, &resident, &shared) != 3)
                return 0;
        return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static void look(Memory *memory)
{
        int64_t used = held_bytes(memory);
        MemoryRung rung = memory_rung(used, limits.max_memory, memory->rung);
        if (rung == memory->rung)
                return;
        memory->rung = rung;
        log_line("memory: %lld of %lld bytes (--max-memory): %s", (long long)used,
                 (long long)limits.max_memory, rungs[rung].says);
}

// ---- sweeping, on a worker ----
static Memory *memory_of_task(Task *task)
{
        return (Memory *)(void *)((char *)task - offsetof(Memory, task));
}

static void sweep(Task *task, Worker *worker)
{
        Memory *memory = memory_of_task(task);
        const MemoryOwners *owners = &memory->owners;
        (void)worker;
        if (owners->replies != NULL)
                reply_cache_clear(owners->replies);
        engine_shrink(owners->engine);
        workers_shrink(owners->workers);
        workers_give_back(owners->workers);
        atomic_store(&memory->sweeping, false);
}

static void drop_sweep(Task *task)
{
        atomic_store(&memory_of_task(task)->sweeping, false);
}

static void on_timer(uv_timer_t *timer)
{
        Memory *memory = timer->data;
        MemoryRung before = memory->rung;
        look(memory);
        bool due = ++memory->n_looks % LOOKS_PER_SWEEP == 0;
        if (due)
                engine_age(memory->owners.engine);
        if ((due || before == MEMORY_FREE) && memory->rung != MEMORY_FREE &&
            !atomic_exchange(&memory->sweeping, true))
                workers_resubmit(memory->owners.workers, &memory->task);
}

// ---- start and stop ----
Status memory_new(Memory **out_memory)
{
        Memory *memory = calloc(1, sizeof(*memory));
        if (memory == NULL)
                return fail_memory();
        memory->task = (Task){ .run = sweep, .drop = drop_sweep };
        memory->fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        look(memory);
        *out_memory = memory;
        return STATUS_OK;
}

Memory *memory_free(Memory *memory)
{
        if (memory == NULL)
                return NULL;
        if (memory->fd >= 0)
                close(memory->fd);
        free(memory);
        return NULL;
}

void memory_start(Memory *memory, uv_loop_t *loop, const MemoryOwners *owners)
{
        memory->owners = *owners;
        if (limits.max_memory <= 0)
                return;
        memory->started = true;
        uv_timer_init(loop, &memory->timer);
        memory->timer.data = memory;
        uv_timer_start(&memory->timer, on_timer, LOOK_MS, LOOK_MS);
}

void memory_stop(Memory *memory)
{
        if (memory != NULL && memory->started)
                uv_close((uv_handle_t *)&memory->timer, NULL);
}

// ---- asking ----
// Whether requests of the route run a graph, or make another.
static bool runs(const Route *route)
{
        bool posts = strcmp(route->method, "POST") == 0 || strcmp(route->method, "PUT") == 0;
        return route_is(route, KIND_RUN) ||
               (posts && (route->scope == SCOPE_RUN || route_has(route, NEEDS_GRAPH)));
}

Status memory_admit(const Memory *memory, const Route *route)
{
        bool keeps = route_has(route, KEEPS_GRAPH);
        MemoryRung refusing = keeps ? MEMORY_NO_UPLOADS : MEMORY_NO_RUNS;
        if (memory->rung < refusing || !(keeps || runs(route)))
                return STATUS_OK;
        return fail(STATUS_BUSY,
                    "the server's memory is nearly used up (--max-memory, %lld bytes), and %s until some is "
                    "free; try again",
                    (long long)limits.max_memory, rungs[refusing].says);
}

void memory_read(const Memory *memory, int64_t *out_bytes, int *out_rung)
{
        *out_bytes = held_bytes(memory);
        *out_rung = (int)memory->rung;
}
