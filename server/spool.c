// SPDX-License-Identifier: Apache-2.0
// A spool has two buffers, filled and written in turn. `n_full` buffers (the oldest first) belong
// to the thread, the rest to the loop. `n_full` and all else that both sides see is guarded by one
// mutex. The thread takes one buffer of one spool at a time, so that uploads share the disk evenly.
// Closing a large file takes the kernel long. So freeing a spool that has one, or that the thread
// is using, makes it an orphan; the thread frees it later, without the mutex.
#include "server/spool.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "core/engine/put.h"

struct Spool {
        Spools *spools;
        void *owner;
        Spool *next;       // in the thread's queue
        Spool *next_awake; // in the list of those to wake
        uint8_t *buffers[2];
        size_t n[2];
        unsigned filling, writing; // indices
        // Guarded by the mutex.
        unsigned n_full;
        bool queued, busy, orphaned;
        bool waiting, awake; // the loop waits; the loop is about to be told
        bool ended, finished;
        Status status;
        Failure *failure; // NULL: none, or out of memory
        // The thread's until finished.
        int fd;
        size_t n_written;
        Sha256 sha;
        HashHex digest;
        Storage *bytes;
};

struct Spools {
        Engine *engine;
        SpoolEvents events;
        uv_async_t async;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        Spool *head, **tail;
        Spool *awake;
        bool stopping;
};

static void destroy(Spool *spool)
{
        for (int i = 0; i < 2; i++)
                free(spool->buffers[i]);
        if (spool->fd >= 0)
                close(spool->fd);
        storage_unref(spool->bytes);
        free(spool->failure);
        free(spool);
}

// ---- the thread ----
static void keep_failure(Spool *spool, Status status)
{
        spool->status = status;
        spool->failure = malloc(sizeof(Failure));
        if (spool->failure != NULL)
                *spool->failure = *failure_current();
}

static Status write_buffer(Spool *spool, const uint8_t *data, size_t n)
{
        if (spool->fd < 0)
                TRY(engine_temporary(spool->spools->engine, &spool->fd));
        TRY(engine_write_temporary(spool->fd, (ByteSpan){ data, n }, spool->n_written));
        sha256_add(&spool->sha, data, n);
        spool->n_written += n;
        return STATUS_OK;
}

static Status finish(Spool *spool)
{
        spool->digest = sha256_finish(&spool->sha);
        Status status = spool->n_written == 0
                                ? STATUS_OK
                                : engine_map_temporary(spool->fd, spool->n_written, &spool->bytes);
        if (spool->fd >= 0)
                close(spool->fd);
        spool->fd = -1;
        return status;
}

// Under the mutex.
static void enqueue(Spool *spool)
{
        Spools *spools = spool->spools;
        if (spool->queued)
                return;
        spool->queued = true;
        spool->next = NULL;
        *spools->tail = spool;
        spools->tail = &spool->next;
        pthread_cond_signal(&spools->filled);
}

// Under the mutex: tells the loop when there is room or the end is written.
static void wake_if_due(Spool *spool)
{
        Spools *spools = spool->spools;
        if (!spool->waiting || spool->awake || (spool->ended ? !spool->finished : spool->n_full == 2))
                return;
        spool->awake = true;
        spool->next_awake = spools->awake;
        spools->awake = spool;
        uv_async_send(&spools->async);
}

// Writes one buffer, or the end. The mutex is released while the disk is written.
static void serve(Spools *spools, Spool *spool)
{
        unsigned index = spool->writing;
        bool has_buffer = spool->n_full > 0, end = !has_buffer && spool->ended && !spool->finished;
        spool->busy = true;
        pthread_mutex_unlock(&spools->mutex);
        Status status = spool->status;
        if (status == STATUS_OK && has_buffer)
                status = write_buffer(spool, spool->buffers[index], spool->n[index]);
        else if (status == STATUS_OK && end)
                status = finish(spool);
        pthread_mutex_lock(&spools->mutex);
        if (status != STATUS_OK && spool->status == STATUS_OK)
                keep_failure(spool, status);
        spool->busy = false;
        if (has_buffer) {
                spool->n[index] = 0;
                spool->writing ^= 1u;
                spool->n_full--;
        }
        spool->finished = spool->finished || end;
        if (spool->orphaned || spool->n_full > 0 || (spool->ended && !spool->finished))
                enqueue(spool);
        if (!spool->orphaned)
                wake_if_due(spool);
}

static void *work(void *argument)
{
        Spools *spools = argument;
        pthread_mutex_lock(&spools->mutex);
        for (;;) {
                while (spools->head == NULL && !spools->stopping)
                        pthread_cond_wait(&spools->filled, &spools->mutex);
                Spool *spool = spools->head;
                if (spool == NULL)
                        break;
                spools->head = spool->next;
                if (spools->head == NULL)
                        spools->tail = &spools->head;
                spool->queued = false;
                if (!spool->orphaned) {
                        serve(spools, spool);
                        continue;
                }
                pthread_mutex_unlock(&spools->mutex);
                destroy(spool);
                pthread_mutex_lock(&spools->mutex);
        }
        pthread_mutex_unlock(&spools->mutex);
        return NULL;
}

// ---- the loop ----
static void wake_all(Spools *spools)
{
        pthread_mutex_lock(&spools->mutex);
        Spool *spool = spools->awake;
        spools->awake = NULL;
        while (spool != NULL) {
                Spool *next = spool->next_awake;
                void *owner = spool->owner;
                spool->awake = spool->waiting = false;
                pthread_mutex_unlock(&spools->mutex);
                spools->events.wake(owner);
                pthread_mutex_lock(&spools->mutex);
                spool = next;
        }
        pthread_mutex_unlock(&spools->mutex);
}

static void on_async(uv_async_t *async)
{
        Spools *spools = async->data;
        wake_all(spools);
        spools->events.turned(spools->events.context);
}

Status spools_start(uv_loop_t *loop, Engine *engine, const SpoolEvents *events, Spools **out_spools)
{
        Spools *spools = calloc(1, sizeof(*spools));
        if (spools == NULL)
                return fail_memory();
        spools->engine = engine;
        spools->events = *events;
        spools->tail = &spools->head;
        pthread_mutex_init(&spools->mutex, NULL);
        pthread_cond_init(&spools->filled, NULL);
        if (pthread_create(&spools->thread, NULL, work, spools) != 0) {
                spools_free(spools);
                return fail(STATUS_INTERNAL, "the thread that writes uploads could not be started");
        }
        uv_async_init(loop, &spools->async, on_async);
        spools->async.data = spools;
        *out_spools = spools;
        return STATUS_OK;
}

void spools_stop(Spools *spools)
{
        if (spools == NULL)
                return;
        pthread_mutex_lock(&spools->mutex);
        spools->stopping = true;
        pthread_cond_signal(&spools->filled);
        pthread_mutex_unlock(&spools->mutex);
        // after all its buffers are written: no spool is waiting then
        pthread_join(spools->thread, NULL);
        wake_all(spools);
        uv_close((uv_handle_t *)&spools->async, NULL);
}

Spools *spools_free(Spools *spools)
{
        if (spools == NULL)
                return NULL;
        pthread_cond_destroy(&spools->filled);
        pthread_mutex_destroy(&spools->mutex);
        free(spools);
        return NULL;
}

Status spool_new(Spools *spools, void *owner, Spool **out_spool)
{
        Spool *spool = calloc(1, sizeof(*spool));
        if (spool == NULL)
                return fail_memory();
        spool->spools = spools;
        spool->owner = owner;
        spool->fd = -1;
        sha256_start(&spool->sha);
        for (int i = 0; i < 2; i++)
                spool->buffers[i] = malloc(SPOOL_BUFFER_BYTES + SPOOL_CHUNK_MAX);
        if (spool->buffers[0] == NULL || spool->buffers[1] == NULL) {
                destroy(spool);
                return fail_memory();
        }
        *out_spool = spool;
        return STATUS_OK;
}

// Under the mutex.
static void hand_over(Spool *spool)
{
        spool->filling ^= 1u;
        spool->n_full++;
        enqueue(spool);
}

bool spool_take(Spool *spool, const void *data, size_t n)
{
        size_t *filled = &spool->n[spool->filling];
        memcpy(spool->buffers[spool->filling] + *filled, data, n);
        *filled += n;
        if (*filled < SPOOL_BUFFER_BYTES)
                return false;
        pthread_mutex_lock(&spool->spools->mutex);
        hand_over(spool);
        spool->waiting = spool->n_full == 2;
        bool waiting = spool->waiting;
        pthread_mutex_unlock(&spool->spools->mutex);
        return waiting;
}

bool spool_end(Spool *spool)
{
        pthread_mutex_lock(&spool->spools->mutex);
        if (!spool->ended) {
                spool->ended = true;
                if (spool->n_full < 2 && spool->n[spool->filling] > 0)
                        hand_over(spool);
                enqueue(spool);
        }
        spool->waiting = !spool->finished;
        bool waiting = spool->waiting;
        pthread_mutex_unlock(&spool->spools->mutex);
        return waiting;
}

Status spool_status(Spool *spool)
{
        pthread_mutex_lock(&spool->spools->mutex);
        Status status = spool->status;
        if (spool->failure != NULL)
                *failure_current() = *spool->failure;
        else if (status != STATUS_OK)
                status = fail_memory();
        pthread_mutex_unlock(&spool->spools->mutex);
        return status;
}

Status spool_result(Spool *spool, Storage **out_bytes, HashHex *out_digest)
{
        TRY(spool_status(spool));
        *out_bytes = take_ptr(spool->bytes);
        *out_digest = spool->digest;
        return STATUS_OK;
}

// Under the mutex, which it releases. Once `stopping` is set there is no thread any more.
static void give_up(Spool *spool)
{
        Spools *spools = spool->spools;
        bool theirs =
                !spools->stopping && (spool->busy || spool->queued || spool->fd >= 0 || spool->bytes != NULL);
        spool->orphaned = theirs;
        if (theirs && !spool->busy)
                enqueue(spool);
        pthread_mutex_unlock(&spools->mutex);
        if (!theirs)
                destroy(spool);
}

Spool *spool_free(Spool *spool)
{
        if (spool == NULL)
                return NULL;
        Spools *spools = spool->spools;
        pthread_mutex_lock(&spools->mutex);
        for (Spool **at = &spools->awake; *at != NULL; at = &(*at)->next_awake) {
                if (*at == spool) {
                        *at = spool->next_awake;
                        break;
                }
        }
        give_up(spool);
        return NULL;
}

void spools_drop(Spools *spools, Storage *take_bytes)
{
        Spool *spool = spools == NULL || take_bytes == NULL || !storage_is_mapped(take_bytes)
                               ? NULL
                               : calloc(1, sizeof(*spool));
        if (spool == NULL) {
                storage_unref(take_bytes);
                return;
        }
        *spool = (Spool){ .spools = spools, .fd = -1, .bytes = take_bytes };
        pthread_mutex_lock(&spools->mutex);
        give_up(spool);
}
