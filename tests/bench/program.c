// SPDX-License-Identifier: Apache-2.0
// Cost of compiled runs on tensors so small that kernels hardly count: a whole run of relu-neg-abs
// on 3x4, and nanoseconds per node of long chains, with and without the profile's rows. `as
// recorded`: without passes, one instruction per node.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/run/run.h"
#include "api/readers/upload.h"
#include "core/compile/compile.h"
#include "core/targets/targets.h"

static void check(Status status)
{
        if (status == STATUS_OK)
                return;
        fprintf(stderr, "bench_program: %s\n", failure_current()->message);
        exit(1);
}

// x -> calls[0] -> calls[1] ... n_nodes of them, over and over -> output
static Graph *chain(const char *const *calls, int n_calls, int n_nodes)
{
        Text text = { 0 };
        Storage *bytes;
        Graph *graph = NULL;
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"n0\", "
                        "\"target\": \"x\"}");
        for (int i = 1; i <= n_nodes; i++)
                text_addf(&text,
                          ", {\"name\": \"n%d\", \"op\": \"call_method\", \"target\": \"%s\", \"args\": "
                          "[\"%%n%d\"]}",
                          i, calls[(i - 1) % n_calls], i - 1);
        text_addf(&text,
                  ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": "
                  "[\"%%n%d\"]}]}",
                  n_nodes);
        check(text_status(&text));
        check(storage_new(text.n, false, NULL, &bytes));
        memcpy(bytes->data, text.data, text.n);
        UploadPart part = { .name = "", .bytes = bytes };
        check(upload_decode(&part, 1, NULL, true, &graph));
        storage_unref(bytes);
        text_deinit(&text);
        return graph;
}

static double best(const Program *program, const Value *input, WalkTrace *trace, int n)
{
        Frame frame;
        double least = 1e30;
        frame_init(&frame);
        for (int i = 0; i < n; i++) {
                RunContext ctx;
                Value out = value_none();
                run_context_init(&ctx);
                if (trace != NULL)
                        trace->n_rows = 0;
                int64_t start = clock_ns();
                check(program_run(program, &frame, &(ProgramRun){ .inputs = { input, 1 }, .trace = trace },
                                  &ctx, &out, NULL));
                double ns = (double)(clock_ns() - start);
                least = ns < least ? ns : least;
                value_clear(&out);
        }
        frame_deinit(&frame);
        return least;
}

static void measure(const char *name, const char *const *calls, int n_calls, int n_nodes, bool no_passes,
                    int n)
{
        int64_t size[2] = { 3, 4 };
        TensorMeta meta;
        Tensor *tensor;
        Program *program;
        CompileOptions options = { .n_threads = 1, .no_passes = no_passes };
        Graph *graph = chain(calls, n_calls, n_nodes);
        meta_init(&meta, DTYPE_F32, 2, size);
        check(tensor_new(&meta, NULL, &tensor));
        for (int i = 0; i < 12; i++)
                ((float *)tensor_data(tensor))[i] = (float)i - 6;
        Value input = value_tensor_take(tensor);
        int64_t start = clock_ns();
        check(compile_graph(graph, (ValueSpan){ &input, 1 }, &options, NULL, &program));
        double compile_us = (double)(clock_ns() - start) / 1000;
        WalkTrace trace = { .rows = calloc(program->n_rows, sizeof(NodeTiming)),
                            .capacity = program->n_rows };
        double with = best(program, &input, &trace, n), without = best(program, &input, NULL, n);
        printf("%-28s %-12s %6d nodes %6u instructions: run %8.0f ns, profiled %8.0f ns; per node %6.1f / "
               "%6.1f ns; compile %.0f us\n",
               name, no_passes ? "as recorded" : "optimised", n_nodes, program->n_code, without, with,
               without / n_nodes, with / n_nodes, compile_us);
        free(trace.rows);
        value_clear(&input);
        program_unref(program);
        graph_unref(graph);
}

int main(int argc, char **argv)
{
        static const char *const relu_neg_abs[] = { "relu", "neg", "abs" }, *const neg[] = { "neg" },
                                 *const views[] = { "t" };
        int n = argc > 1 ? atoi(argv[1]) : 5000;
        check(ops_init());
        check(targets_init());
        for (int no_passes = 0; no_passes < 2; no_passes++) {
                measure("relu-neg-abs 3x4", relu_neg_abs, 3, 3, no_passes != 0, n);
                measure("neg, a chain", neg, 1, 200, no_passes != 0, n);
                measure("relu-neg-abs, a chain", relu_neg_abs, 3, 300, no_passes != 0, n);
                measure("relu-neg-abs, a long chain", relu_neg_abs, 3, 30000, no_passes != 0, 5);
                measure("t, a chain", views, 1, 200, no_passes != 0, n);
        }
        return 0;
}
