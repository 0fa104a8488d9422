// SPDX-License-Identifier: Apache-2.0
// One program, many threads: every run gives the bits of the first, whoever runs beside it. A plain
// program, for ThreadSanitizer too.
//     stress_program [runs per thread]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/compile/compile.h"
#include "core/targets/targets.h"

enum { N_THREADS = 4 };

typedef struct Shared {
        const Program *program;
        const Tensor *want;
        int n_runs;
} Shared;

static void check(Status status)
{
        if (status == STATUS_OK)
                return;
        fprintf(stderr, "stress_program: %s\n", failure_current()->message);
        exit(1);
}

// Chains with a write into a copy, a reduction, a view and a product with a weight that is written
// as well; then, perhaps, an eager tail that writes another weight.
static Graph *make_graph(bool rest)
{
        static const char calls[] =
                "{\"format\": \"fx/1\", \"state\": {\"w\": {\"dtype\": \"float32\", \"shape\": [4], "
                "\"data\": [1, 2, 3, 4]}, "
                "\"k\": {\"dtype\": \"float32\", \"shape\": [3], \"data\": [0.5, 1, 2]}}, \"nodes\": ["
                "{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"},"
                "{\"op\": \"get_attr\", \"name\": \"w\", \"target\": \"w\"},"
                "{\"op\": \"call_method\", \"name\": \"a\", \"target\": \"tanh\", \"args\": [\"%x\"]},"
                "{\"op\": \"call_method\", \"name\": \"b\", \"target\": \"clone\", \"args\": [\"%a\"]},"
                "{\"op\": \"call_method\", \"name\": \"c\", \"target\": \"relu_\", \"args\": [\"%b\"]},"
                "{\"op\": \"call_method\", \"name\": \"d\", \"target\": \"add_\", \"args\": [\"%w\", 1]},"
                "{\"op\": \"call_function\", \"name\": \"e\", \"target\": \"torch.mul\", \"args\": [\"%b\", "
                "\"%w\"]},"
                "{\"op\": \"call_method\", \"name\": \"f\", \"target\": \"t\", \"args\": [\"%e\"]},"
                "{\"op\": \"call_function\", \"name\": \"g\", \"target\": \"torch.matmul\", \"args\": "
                "[\"%a\", \"%f\"]},"
                "{\"op\": \"call_method\", \"name\": \"h\", \"target\": \"sigmoid\", \"args\": [\"%g\"]},";
        static const char more[] =
                "{\"op\": \"call_method\", \"name\": \"m\", \"target\": \"gt\", \"args\": [\"%h\", 0.5]},"
                "{\"op\": \"call_method\", \"name\": \"s\", \"target\": \"sum\", \"args\": [\"%m\"]},"
                "{\"op\": \"call_method\", \"name\": \"n\", \"target\": \"item\", \"args\": [\"%s\"]},"
                "{\"op\": \"get_attr\", \"name\": \"k\", \"target\": \"k\"},"
                "{\"op\": \"call_method\", \"name\": \"p\", \"target\": \"mul_\", \"args\": [\"%k\", "
                "\"%n\"]},"
                "{\"op\": \"call_method\", \"name\": \"q\", \"target\": \"add\", \"args\": [\"%h\", "
                "\"%k\"]},";
        static const char output[] =
                "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%%%c\"]}]}";
        Storage *bytes;
        Graph *graph;
        char text[4096];
        int n = snprintf(text, sizeof(text), "%s%s", calls, rest ? more : "");
        n += snprintf(text + n, sizeof(text) - (size_t)n, output, rest ? 'q' : 'h');
        check(storage_new((size_t)n, false, NULL, &bytes));
        memcpy(bytes->data, text, (size_t)n);
        UploadPart part = { .name = "", .bytes = bytes };
        check(upload_decode(&part, 1, NULL, true, &graph));
        storage_unref(bytes);
        return graph;
}

static Tensor *make_input(void)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 3, 4 });
        check(tensor_new(&meta, NULL, &tensor));
        for (int i = 0; i < 12; i++)
                ((float *)tensor_data(tensor))[i] = 0.25f * (float)(i - 5);
        return tensor;
}

static void run_once(const Program *program, Frame *frame, Value *out)
{
        RunContext ctx;
        Value input = value_tensor_take(make_input());
        run_context_init(&ctx);
        check(program_run(program, frame, &(ProgramRun){ .inputs = { &input, 1 } }, &ctx, out, NULL));
        value_clear(&input);
}

static void *work(void *argument)
{
        const Shared *shared = argument;
        Program *program = program_ref(shared->program);
        Frame frame;
        long n_wrong = 0;
        frame_init(&frame);
        for (int i = 0; i < shared->n_runs; i++) {
                Value out;
                run_once(program, &frame, &out);
                n_wrong += memcmp(tensor_data(out.tensor), tensor_data(shared->want), 9 * sizeof(float)) != 0;
                value_clear(&out);
        }
        frame_deinit(&frame);
        program_unref(program);
        return (void *)n_wrong;
}

static long run_threads(bool rest, int n_runs)
{
        Frame frame;
        Program *program;
        Value want;
        pthread_t threads[N_THREADS];
        long n_wrong = 0;
        Graph *graph = make_graph(rest);
        Value input = value_tensor_take(make_input());
        CompileOptions options = { .n_threads = 1 };
        check(compile_graph(graph, (ValueSpan){ &input, 1 }, &options, NULL, &program));
        if ((program->recording->tail != NULL) != rest)
                check(fail(STATUS_INTERNAL, "the graph was to have %s eager tail", rest ? "an" : "no"));
        frame_init(&frame);
        run_once(program, &frame, &want);
        frame_deinit(&frame);
        Shared shared = { .program = program, .want = want.tensor, .n_runs = n_runs };
        for (int i = 0; i < N_THREADS; i++) {
                if (pthread_create(&threads[i], NULL, work, &shared) != 0)
                        exit(1);
        }
        for (int i = 0; i < N_THREADS; i++) {
                void *result;
                pthread_join(threads[i], &result);
                n_wrong += (long)result;
        }
        printf("%d runs on %d threads, %s eager tail, %ld with other bits\n", N_THREADS * n_runs, N_THREADS,
               rest ? "an" : "no", n_wrong);
        value_clear(&want);
        value_clear(&input);
        program_unref(program);
        graph_unref(graph);
        return n_wrong;
}

int main(int argc, char **argv)
{
        int n_runs = argc > 1 ? atoi(argv[1]) : 1000;
        check(ops_init());
        check(targets_init());
        return run_threads(false, n_runs) + run_threads(true, n_runs) != 0;
}
