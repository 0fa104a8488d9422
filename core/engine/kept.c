// SPDX-License-Identifier: Apache-2.0
// kept.c: the ring of kept values. A run's tensors are copied, since their bytes belong to the run.
#include "core/engine/kept.h"

#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/private.h"

typedef struct KeptRun {
        RefCount ref;
        char caller[KEPT_CALLER_MAX + 1];
        char id[PROFILE_ID_MAX + 1];
        size_t n_bytes;
        StringMap tensors; // name of the node -> Tensor *, counted; names are owned
} KeptRun;

struct KeptRing {
        pthread_mutex_t mutex;
        KeptRun **runs; // counted; oldest first
        uint32_t n;
        size_t n_bytes;
        uint64_t n_evicted;
};

static KeptRun *kept_run_unref(KeptRun *run)
{
        if (run == NULL || !refcount_put(&run->ref))
                return NULL;
        for (uint32_t i = 0; i < run->tensors.n; i++) {
                tensor_unref(run->tensors.entries[i].value);
                free((char *)(uintptr_t)run->tensors.entries[i].key);
        }
        string_map_deinit(&run->tensors);
        free(run);
        return NULL;
}
DEFINE_CLEANUP(KeptRun, kept_run_unref)

Status kept_ring_open(KeptRing **out_ring)
{
        KeptRing *ring = calloc(1, sizeof(*ring));
        if (ring == NULL)
                return fail_memory();
        ring->runs = new_array((size_t)limits.max_kept_runs + 1, sizeof(*ring->runs));
        if (ring->runs == NULL) {
                free(ring);
                return fail_memory();
        }
        pthread_mutex_init(&ring->mutex, NULL);
        *out_ring = ring;
        return STATUS_OK;
}

KeptRing *kept_ring_close(KeptRing *ring)
{
        if (ring == NULL)
                return NULL;
        for (uint32_t i = 0; i < ring->n; i++)
                kept_run_unref(ring->runs[i]);
        pthread_mutex_destroy(&ring->mutex);
        free(ring->runs);
        free(ring);
        return NULL;
}

// ---- under the mutex ----

// ring->n: there is none.
static uint32_t find_run(const KeptRing *ring, const char *caller, const char *id)
{
        uint32_t i = 0;
        while (i < ring->n &&
               (strcmp(ring->runs[i]->caller, caller) != 0 || strcmp(ring->runs[i]->id, id) != 0))
                i++;
        return i;
}

static KeptRun *take_out(KeptRing *ring, uint32_t at)
{
        KeptRun *run = ring->runs[at];
        ring->n_bytes -= run->n_bytes;
        ring->n--;
        memmove(&ring->runs[at], &ring->runs[at + 1], (ring->n - at) * sizeof(*ring->runs));
        return run;
}

// ---- keeping ----

static Status keep_tensor(KeptRun *run, const char *name, const Tensor *tensor)
{
        _cleanup_(freep) char *key = copy_text(name, strlen(name));
        _cleanup_(tensor_unrefp) Tensor *copy = NULL;
        if (key == NULL)
                return fail_memory();
        TRY(tensor_new(&tensor->meta, NULL, &copy));
        if (copy->storage->n_bytes > 0) // with what lies between the elements of a view
                memcpy(copy->storage->data, tensor_data(tensor), copy->storage->n_bytes);
        tensor_copy_data(tensor, copy);
        TRY(string_map_set(&run->tensors, key, copy, NULL));
        run->n_bytes += copy->storage->n_bytes;
        key = NULL;
        copy = NULL;
        return STATUS_OK;
}

static void add_run(KeptRing *ring, KeptRun *take_run)
{
        pthread_mutex_lock(&ring->mutex);
        uint32_t earlier = find_run(ring, take_run->caller, take_run->id);
        if (earlier < ring->n)
                kept_run_unref(take_out(ring, earlier));
        ring->runs[ring->n++] = take_run;
        ring->n_bytes += take_run->n_bytes;
        while (ring->n > limits.max_kept_runs || ring->n_bytes > (size_t)limits.max_kept_bytes) {
                kept_run_unref(take_out(ring, 0));
                ring->n_evicted++;
        }
        pthread_mutex_unlock(&ring->mutex);
}

KeptUse kept_ring_use(KeptRing *ring)
{
        pthread_mutex_lock(&ring->mutex);
        KeptUse use = { .n_runs = ring->n, .bytes = ring->n_bytes, .evictions = ring->n_evicted };
        pthread_mutex_unlock(&ring->mutex);
        return use;
}

void kept_ring_clear(KeptRing *ring)
{
        pthread_mutex_lock(&ring->mutex);
        for (; ring->n > 0; ring->n_evicted++)
                kept_run_unref(take_out(ring, ring->n - 1));
        pthread_mutex_unlock(&ring->mutex);
}

Status engine_keep(Engine *engine, const char *caller, const RunTask *task)
{
        const Value *values = task->result.fetched + task->n_fetch + task->n_watched;
        _cleanup_(kept_run_unrefp) KeptRun *run = NULL;
        if (task->n_kept == 0)
                return STATUS_OK;
        TRY(run_task_check_kept(task));
        run = calloc(1, sizeof(*run));
        if (run == NULL)
                return fail_memory();
        refcount_init(&run->ref);
        snprintf(run->caller, sizeof(run->caller), "%s", caller);
        memcpy(run->id, task->profile->id, sizeof(run->id));
        for (uint32_t i = 0; i < task->n_kept; i++)
                if (values[i].kind == VALUE_TENSOR)
                        TRY(keep_tensor(run, task->kept[i]->name, values[i].tensor));
        add_run(engine->kept, take_ptr(run));
        return STATUS_OK;
}

// ---- using ----

Status engine_kept(Engine *engine, const char *caller, const char *run, const char *node, Budget *budget,
                   Tensor **out_tensor)
{
        KeptRing *ring = engine->kept;
        pthread_mutex_lock(&ring->mutex);
        uint32_t at = find_run(ring, caller, run);
        _cleanup_(kept_run_unrefp) KeptRun *found = at == ring->n ? NULL : ring->runs[at];
        if (found != NULL)
                refcount_get(&found->ref);
        pthread_mutex_unlock(&ring->mutex);
        if (found == NULL)
                return fail(
                        STATUS_NOT_FOUND,
                        "no values of run \"%.64s\" are kept (any more): send \"keep\": \"all\" with that "
                        "run; its id is the reply's X-Request-Id",
                        run);
        const Tensor *tensor = string_map_get(&found->tensors, node);
        if (tensor == NULL)
                return fail(STATUS_NOT_FOUND, "run \"%.64s\" kept no tensor of node \"%.100s\"", run, node);
        return tensor_new_shell(tensor, budget, out_tensor);
}
