// SPDX-License-Identifier: Apache-2.0
// Same program id, same bits: a graph is run again and again on one thread and then on two, with
// neighbours that keep the machine and the packed constants busy. Every answer of one program must
// be the first one's, bit for bit. Runs as the first argument.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/run/run.h"
#include "api/readers/upload.h"
#include "core/engine/plan.h"
#include "core/interp/interp.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { N_SIZES = 3, MAX_PROGRAMS = 64 };

static Engine *engine;
static Graph *graph;
static _Atomic long n_left, n_compiled;
static _Atomic bool quiet;

typedef struct Answer {
        char program[65];
        int size;
        HashHex bits;
} Answer;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Answer answers[MAX_PROGRAMS];
static int n_answers;

static void complain(const char *what)
{
        fprintf(stderr, "stress_bits: %s: %s\n", what, failure_current()->message);
        abort();
}

// Products, a reduction, transcendental functions: what would show another order of sums.
static void make_graph(void)
{
        static const char text[] =
                "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": "
                "\"x\"},"
                "{\"op\": \"call_method\", \"name\": \"w\", \"target\": \"mul\", \"args\": [\"%x\", 0.37]},"
                "{\"op\": \"call_function\", \"name\": \"t\", \"target\": \"torch.tanh\", \"args\": "
                "[\"%w\"]},"
                "{\"op\": \"call_function\", \"name\": \"m\", \"target\": \"torch.matmul\", \"args\": "
                "[\"%t\", \"%x\"]},"
                "{\"op\": \"call_function\", \"name\": \"e\", \"target\": \"torch.sigmoid\", \"args\": "
                "[\"%m\"]},"
                "{\"op\": \"call_function\", \"name\": \"s\", \"target\": \"torch.softmax\", \"args\": "
                "[\"%e\", 1]},"
                "{\"op\": \"call_method\", \"name\": \"r\", \"target\": \"sum\", \"args\": [\"%s\", 0]},"
                "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%r\"]}]}";
        Storage *bytes = NULL;
        if (storage_new(sizeof(text) - 1, false, NULL, &bytes) != STATUS_OK)
                complain("memory");
        memcpy(bytes->data, text, sizeof(text) - 1);
        UploadPart part = { .name = "", .bytes = bytes };
        if (upload_decode(&part, 1, NULL, true, &graph) != STATUS_OK)
                complain("upload");
        RegistryKey key = { { 1 } };
        if (engine_cache_graph(engine, &key, graph) != STATUS_OK)
                complain("cache");
        storage_unref(bytes);
}

static Value make_input(int size)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[2] = { size, size };
        meta_init(&meta, DTYPE_F32, 2, sizes);
        if (tensor_new(&meta, NULL, &tensor) != STATUS_OK)
                complain("memory");
        float *data = tensor_data(tensor);
        for (int i = 0; i < size * size; i++)
                data[i] = (float)(((unsigned)i * 2654435761u) >> 8) / 16777216.0f - 0.5f;
        return value_tensor_take(tensor);
}

static void compare(const char *program, int size, const Tensor *tensor)
{
        HashHex bits = sha256_of(tensor_data(tensor), (size_t)meta_numel(&tensor->meta) * sizeof(float));
        pthread_mutex_lock(&mutex);
        int i = 0;
        while (i < n_answers && (strcmp(answers[i].program, program) != 0 || answers[i].size != size))
                i++;
        if (i == n_answers && n_answers < MAX_PROGRAMS) {
                answers[n_answers].size = size;
                answers[n_answers].bits = bits;
                snprintf(answers[n_answers++].program, sizeof(answers[i].program), "%s", program);
        } else if (i < n_answers && memcmp(bits.hex, answers[i].bits.hex, sizeof(bits.hex)) != 0) {
                complain("one program, two answers");
        }
        pthread_mutex_unlock(&mutex);
}

static void run_once(Frame *frame, int size, int n_threads)
{
        Value input = make_input(size);
        RunRequest request = { .inputs = { &input, 1 }, .mode = RUN_MODE_COMPILED };
        PlannedRun plan = { .n_threads = n_threads };
        RunContext ctx;
        RunProfile *profile = NULL;
        RunResult result = { .n_fetched = 0 };
        run_context_init(&ctx);
        ctx.n_threads = n_threads;
        if (run_profile_new(graph, graph->n_nodes, &profile) != STATUS_OK ||
            engine_bind(graph, &request, &plan) != STATUS_OK ||
            engine_plan_here(engine, &plan) != STATUS_OK ||
            engine_execute(&plan, &ctx, frame, profile, &result) != STATUS_OK)
                complain("run");
        if (profile->program != NULL) {
                compare(profile->program->id.hex, size, result.value.tensor);
                atomic_fetch_add(&n_compiled, 1);
        }
        run_result_deinit(&result);
        run_profile_unref(profile);
        planned_run_deinit(&plan);
        value_clear(&input);
}

static void *work(void *argument)
{
        Frame frame;
        int n_threads = (int)(intptr_t)argument;
        frame_init(&frame);
        for (long left; (left = atomic_fetch_sub(&n_left, 1)) > 0;)
                run_once(&frame, 64 + 32 * (int)(left % N_SIZES), n_threads);
        frame_deinit(&frame);
        return NULL;
}

// Evicts and rebuilds: another program comes and goes.
static void *disturb(void *argument)
{
        Frame frame;
        frame_init(&frame);
        for (int size = 8; !atomic_load(&quiet); size = 8 + (size + 1) % 50)
                run_once(&frame, size, 1);
        frame_deinit(&frame);
        return argument;
}

static void round_of(int n_workers, long n_runs, int n_threads)
{
        enum { MAX_WORKERS = 2 };
        pthread_t workers[MAX_WORKERS], neighbour;
        atomic_store(&n_left, n_runs);
        atomic_store(&quiet, false);
        pthread_create(&neighbour, NULL, disturb, NULL);
        for (int i = 0; i < n_workers; i++)
                pthread_create(&workers[i], NULL, work, (void *)(intptr_t)n_threads);
        for (int i = 0; i < n_workers; i++)
                pthread_join(workers[i], NULL);
        atomic_store(&quiet, true);
        pthread_join(neighbour, NULL);
}

int main(int argc, char **argv)
{
        EngineOptions options = { .loader = upload_loader };
        long n_runs = argc > 1 ? atol(argv[1]) * 50 : 500; // the argument is seconds for the other programs
        if (ops_init() != STATUS_OK || targets_init() != STATUS_OK ||
            engine_open(&options, &engine) != STATUS_OK)
                complain("start");
        make_graph();
        round_of(1, n_runs, 1);
        round_of(2, n_runs, 1);
        round_of(1, n_runs, 2);
        printf("%ld runs of %d programs, each with one answer\n", n_compiled, n_answers);
        graph_unref(graph);
        engine_close(engine);
        return n_compiled > n_runs ? 0 : 1;
}
