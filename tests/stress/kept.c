// SPDX-License-Identifier: Apache-2.0
// Threads keep values under a few ids, as runs of clients that repeat ids do, read them, and write
// into what they read, in a ring that is always full. All elements of a kept tensor are equal, in
// whatever run it was kept: a reader must find them so, and no other reader may see what one wrote.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/base/limits.h"
#include "core/engine/kept.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { N_THREADS = 4, N_IDS = 6, N_RUNS = 4, MOST = 1000 };
static const int64_t KEPT_BYTES = 9000;

static Engine *engine;
static Graph *graph;
static Node *node;
static int64_t end_ns;
static _Atomic long n_kept, n_read, n_missed, n_written;

static void complain(const char *what)
{
        fprintf(stderr, "stress_kept: %s: %s\n", what, failure_current()->message);
        abort();
}

static void fill(Tensor *tensor, float value)
{
        float *data = tensor_data(tensor);
        for (int64_t i = 0; i < tensor->meta.size[0]; i++)
                data[i] = value;
}

static void keep(unsigned *seed)
{
        int64_t size = 1 + rand_r(seed) % MOST;
        const Node *kept = node;
        Value value = { .kind = VALUE_TENSOR };
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, &size);
        RunTask task = { .graph = graph, .kept = &kept, .n_kept = 1, .result = { .fetched = &value } };
        if (tensor_new(&meta, NULL, &value.tensor) != STATUS_OK ||
            run_profile_new(graph, 0, &task.profile) != STATUS_OK)
                complain("memory");
        fill(value.tensor, (float)(rand_r(seed) % 1000));
        snprintf(task.profile->id, sizeof(task.profile->id), "run%d", rand_r(seed) % N_IDS);
        if (engine_keep(engine, "", &task) != STATUS_OK)
                complain("keep");
        fill(value.tensor, -1); // the ring has a copy
        tensor_unref(value.tensor);
        run_profile_unref(task.profile);
        atomic_fetch_add(&n_kept, 1);
}

static void check(const Tensor *tensor)
{
        const float *data = tensor_data(tensor);
        for (int64_t i = 0; i < tensor->meta.size[0]; i++)
                if (data[i] != data[0] || data[i] < 0)
                        complain("a kept value changed");
}

static void read_one(unsigned *seed)
{
        char id[16];
        Tensor *tensor;
        snprintf(id, sizeof(id), "run%d", rand_r(seed) % N_IDS);
        if (engine_kept(engine, "", id, "x", NULL, &tensor) != STATUS_OK) {
                atomic_fetch_add(&n_missed, 1);
                return;
        }
        check(tensor);
        if (rand_r(seed) % 4 == 0 && storage_make_writable(tensor->storage) == STATUS_OK) {
                fill(tensor, -2);
                atomic_fetch_add(&n_written, 1);
        }
        tensor_unref(tensor);
        atomic_fetch_add(&n_read, 1);
}

static void *work(void *argument)
{
        unsigned seed = (unsigned)(uintptr_t)argument;
        while (clock_ns() < end_ns) {
                if (rand_r(&seed) % 3 == 0)
                        keep(&seed);
                else
                        read_one(&seed);
                KeptUse use = engine_stats(engine).kept;
                if (use.n_runs > N_RUNS || use.bytes > (size_t)KEPT_BYTES)
                        complain("the ring holds too much");
        }
        return NULL;
}

static void make_graph(void)
{
        NodeSpec x = { .op = OP_PLACEHOLDER, .name = "x", .target = "x" };
        if (graph_new(GRAPH_FX_JSON, &graph) != STATUS_OK || graph_add_node(graph, &x, &node) != STATUS_OK)
                complain("graph");
}

int main(int argc, char **argv)
{
        pthread_t threads[N_THREADS];
        EngineOptions options = { .loader = upload_loader };
        limits.max_kept_runs = N_RUNS;
        limits.max_kept_bytes = KEPT_BYTES;
        end_ns = clock_ns() + (argc > 1 ? atoll(argv[1]) : 5) * 1000000000;
        if (ops_init() != STATUS_OK || targets_init() != STATUS_OK ||
            engine_open(&options, &engine) != STATUS_OK)
                complain("start");
        make_graph();
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        KeptUse use = engine_stats(engine).kept;
        printf("%ld kept, %ld read, %ld of them written, %ld not there, %llu evicted\n", n_kept, n_read,
               n_written, n_missed, (unsigned long long)use.evictions);
        engine_close(engine);
        graph_unref(graph);
        return n_kept > 0 && n_read > 0 && n_written > 0 && n_missed > 0 && use.evictions > 0 ? 0 : 1;
}
