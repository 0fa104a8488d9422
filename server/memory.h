// SPDX-License-Identifier: Apache-2.0
// What the server gives up when its memory nears --max-memory: first caches, then uploads, then
// runs. Memory is what the process itself holds (anonymous pages); mapped weights do not count,
// since the kernel takes their pages back. All on the loop thread.
#pragma once
#include <uv.h>
#include "server/job.h"
#include "server/workers.h"

typedef enum MemoryRung { MEMORY_FREE, MEMORY_NO_CACHES, MEMORY_NO_UPLOADS, MEMORY_NO_RUNS } MemoryRung;

typedef struct Memory Memory;
// Looks for the first time. Without a limit nothing is ever given up.
Status memory_new(Memory **out_memory);
Memory *memory_free(Memory *memory); // NULL-safe, returns NULL; the workers have ended
// Looks again and again. `replies` may be NULL.
typedef struct MemoryOwners {
        Engine *engine;
        struct ReplyCache *replies;
        Workers *workers;
} MemoryOwners;
void memory_start(Memory *memory, uv_loop_t *loop, const MemoryOwners *owners);
void memory_stop(Memory *memory); // NULL-safe
// STATUS_BUSY: requests of this route have to wait until memory is free again.
Status memory_admit(const Memory *memory, const Route *route);
// For GET /metrics: what is held now, and the rung that follows from the last look.
void memory_read(const Memory *memory, int64_t *out_bytes, int *out_rung);

// The rung with `used` of `limit` bytes, after `rung`: each is left a little below where it begins.
MemoryRung memory_rung(int64_t used, int64_t limit, MemoryRung rung);
