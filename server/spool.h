// SPDX-License-Identifier: Apache-2.0
// Spools: large uploads on their way to disk. The loop thread fills buffers; one thread writes and
// hashes them into a file without a name in the data folder. The loop never waits for the disk.
// With both buffers full, the sender has to be paused until the spool wakes. An unfinished spool
// leaves nothing on disk. Calls are the loop thread's.
#pragma once
#include <uv.h>
#include "core/engine/engine.h"

typedef struct Spools Spools; // the thread, and the spools that wait for it
typedef struct Spool Spool;

enum {
        SPOOL_BUFFER_BYTES = 1 << 20,
        SPOOL_CHUNK_MAX = 128 << 10,
        SPOOL_MEMORY = 2 * (SPOOL_BUFFER_BYTES + SPOOL_CHUNK_MAX)
};

// Called on the loop thread: `wake` for each spool that was waited for, then `turned` once.
typedef struct SpoolEvents {
        void (*wake)(void *owner);
        void (*turned)(void *context);
        void *context;
} SpoolEvents;

Status spools_start(uv_loop_t *loop, Engine *engine, const SpoolEvents *events, Spools **out_spools);
// Wakes all waiting spools, ends the thread and closes its handle. All spools must be freed before
// the loop's last turn.
void spools_stop(Spools *spools);
Spools *spools_free(Spools *spools); // after the loop has ended

Status spool_new(Spools *spools, void *owner, Spool **out_spool);
// Takes all `n` <= SPOOL_CHUNK_MAX bytes. True: pause the sender until the spool wakes, and do not
// call again before.
bool spool_take(Spool *spool, const void *data, size_t n);
// The body is complete. True: wait until the spool wakes, then ask again.
bool spool_end(Spool *spool);
// After spool_end returned false: the bytes as a mapped storage and their SHA-256; or
// STATUS_DISK_FULL, STATUS_IO.
Status spool_result(Spool *spool, Storage **out_bytes, HashHex *out_digest);
// The failure of writing so far; STATUS_OK: none.
Status spool_status(Spool *spool);
Spool *spool_free(Spool *spool); // NULL-safe, returns NULL; at any time
// Drops bytes that may be the last reference to a large file, on the thread, where closing it
// delays nobody. Both may be NULL.
void spools_drop(Spools *spools, Storage *take_bytes);
