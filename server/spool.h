// SPDX-License-Identifier: Apache-2.0
// Spools: large uploads on their way to disk. The loop thread fills buffers, one thread writes and
// hashes them into a file without a name in the data folder; the loop never waits for the disk.
// With both buffers full the sender is to be paused until the spool wakes. What is not finished
// leaves nothing behind. Calls are the loop thread's.
#pragma once
#include <uv.h>
#include "core/engine/engine.h"

typedef struct Spools Spools; // the thread, and who waits for it
typedef struct Spool Spool;

enum {
        SPOOL_BUFFER_BYTES = 1 << 20,
        SPOOL_CHUNK_MAX = 128 << 10,
        SPOOL_MEMORY = 2 * (SPOOL_BUFFER_BYTES + SPOOL_CHUNK_MAX)
};

// Called on the loop thread: wake for each spool that was waited for, then turned once.
typedef struct SpoolEvents {
        void (*wake)(void *owner);
        void (*turned)(void *context);
        void *context;
} SpoolEvents;

Status spools_start(uv_loop_t *loop, Engine *engine, const SpoolEvents *events, Spools **out_spools);
// Wakes all who wait, ends the thread and closes its handle. All spools are to be freed before the
// loop's last turn.
void spools_stop(Spools *spools);
Spools *spools_free(Spools *spools); // after the loop has ended

Status spool_new(Spools *spools, void *owner, Spool **out_spool);
// Takes all `n` <= SPOOL_CHUNK_MAX bytes. True: pause the sender, the spool will wake. Not to be
// called before that.
bool spool_take(Spool *spool, const void *data, size_t n);
// The body is complete. True: wait until the spool wakes, then ask again.
bool spool_end(Spool *spool);
// After spool_end said no: the bytes as a mapped storage and their SHA-256; or STATUS_DISK_FULL,
// STATUS_IO.
Status spool_result(Spool *spool, Storage **out_bytes, HashHex *out_digest);
// The failure that writing met so far; STATUS_OK: none.
Status spool_status(Spool *spool);
Spool *spool_free(Spool *spool); // NULL-safe, returns NULL; at any time
// Lets go of bytes that may be a large file's last, where that keeps nobody waiting. Both may be
// NULL.
void spools_drop(Spools *spools, Storage *take_bytes);
