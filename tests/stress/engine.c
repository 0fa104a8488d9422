// SPDX-License-Identifier: Apache-2.0
// Threads upload, replace, delete, list and run graphs under the same names. Version k of a graph computes x * k: every answer must be a
// whole multiple of x by some k that was uploaded, whatever happens beside it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/run.h"
#include "api/upload.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { N_NAMES = 2, N_FACTORS = 5 };

static Engine *engine;
static int64_t end_ns;
static _Atomic long n_runs, n_puts, n_deletes, n_missed;

static void complain(const char *what)
{
        fprintf(stderr, "stress_engine: %s: %s\n", what, failure_current()->message);
        abort();
}

static const char *name_at(unsigned number)
{
        static const char *const names[N_NAMES] = { "first", "second" };
        return names[number % N_NAMES];
}

static void put(unsigned *seed)
{
        char text[512];
        int factor = 1 + rand_r(seed) % N_FACTORS;
        int n = snprintf(text, sizeof(text),
                         "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"}, {\"op\": "
                         "\"call_function\", \"name\": \"y\", "
                         "\"target\": \"torch.mul\", \"args\": [\"%%x\", %d]}, {\"op\": \"output\", \"name\": \"output\", \"target\": "
                         "\"output\", \"args\": [\"%%y\"]}]}",
                         factor);
        Storage *bytes = NULL;
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        if (storage_new((size_t)n, false, NULL, &bytes) != STATUS_OK)
                complain("memory");
        memcpy(bytes->data, text, (size_t)n);
        UploadPart part = { .name = "", .bytes = bytes };
        if (upload_identify(&part, 1, NULL, "fx", &identified) != STATUS_OK || upload_decode(&part, 1, NULL, true, &graph) != STATUS_OK ||
            engine_put(engine, name_at((unsigned)rand_r(seed)), &part, 1, &identified, graph, &version, &created) != STATUS_OK)
                complain("upload");
        graph_version_unref(version);
        graph_unref(graph);
        storage_unref(bytes);
        atomic_fetch_add(&n_puts, 1);
}

static bool is_known(const float *data)
{
        for (int factor = 1; factor <= N_FACTORS; factor++)
                if (data[0] == 3.0f * (float)factor && data[1] == -4.0f * (float)factor)
                        return true;
        return false;
}

static void run(GraphVersion *version, Graph *graph)
{
        static const char body[] = "{\"inputs\": {\"x\": [3.0, -4.0]}}";
        RunCall run_call;
        ApiCall call = { .route = ROUTE_RUN };
        run_call_init(&run_call);
        run_call.graph = graph;
        if (storage_new(sizeof(body) - 1, false, NULL, &call.body) != STATUS_OK)
                complain("memory");
        memcpy(call.body->data, body, sizeof(body) - 1);
        if (run_decode(&call, &run_call) != STATUS_OK || run_execute(&run_call) != STATUS_OK)
                complain("run");
        if (run_call.result.value.kind != VALUE_TENSOR || !is_known(tensor_data(run_call.result.value.tensor)))
                complain("an answer that no version gives");
        snprintf(run_call.profile->id, sizeof(run_call.profile->id), "%ld", atomic_fetch_add(&n_runs, 1));
        engine_record(engine, version, run_call.profile);
        api_call_deinit(&call);
        run_call_deinit(&run_call);
}

static void find_and_run(unsigned *seed)
{
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        if (engine_find(engine, name_at((unsigned)rand_r(seed)), 0, &version) != STATUS_OK ||
            engine_graph(engine, version, &graph) != STATUS_OK) {
                if (failure_current()->status != STATUS_NOT_FOUND)
                        complain("find");
                atomic_fetch_add(&n_missed, 1);
        } else {
                run(version, graph);
        }
        graph_version_unref(version);
}

static void list(void)
{
        GraphVersion *rows[N_NAMES];
        uint32_t n;
        bool more;
        if (engine_list(engine, NULL, N_NAMES, rows, &n, &more) != STATUS_OK)
                complain("list");
        for (uint32_t i = 0; i < n; i++)
                graph_version_unref(rows[i]);
}

static void *work(void *argument)
{
        unsigned seed = (unsigned)(uintptr_t)argument;
        while (clock_ns() < end_ns) {
                int dice = rand_r(&seed) % 20;
                if (dice < 4) {
                        put(&seed);
                } else if (dice == 4) {
                        if (engine_delete(engine, name_at((unsigned)rand_r(&seed)), 0) == STATUS_OK)
                                atomic_fetch_add(&n_deletes, 1);
                } else if (dice == 5) {
                        list();
                } else {
                        find_and_run(&seed);
                }
        }
        return NULL;
}

int main(int argc, char **argv)
{
        enum { N_THREADS = 4 };
        pthread_t threads[N_THREADS];
        EngineOptions options = { .loader = upload_loader };
        end_ns = clock_ns() + (argc > 1 ? atoll(argv[1]) : 5) * 1000000000;
        if (ops_init() != STATUS_OK || targets_init() != STATUS_OK || engine_open(&options, &engine) != STATUS_OK)
                complain("start");
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        printf("%ld runs, %ld uploads, %ld deletes, %ld not found\n", n_runs, n_puts, n_deletes, n_missed);
        engine_close(engine);
        return n_runs > 0 && n_puts > 0 && n_deletes > 0 ? 0 : 1;
}
