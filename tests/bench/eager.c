// SPDX-License-Identifier: Apache-2.0
// Cost of one node in an eager run: chains of pointwise nodes on tensors so small that the kernels
// hardly count. Prints nanoseconds per node with and without the profile's rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/run/run.h"
#include "api/readers/upload.h"
#include "core/eval/eager.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { N_NODES = 200 };

static void check(Status status)
{
        if (status == STATUS_OK)
                return;
        fprintf(stderr, "bench_eager: %s\n", failure_current()->message);
        exit(1);
}

// x → f → f → ... → output, with `call` as the node's middle part.
static Graph *chain(const char *call)
{
        Text text = { 0 };
        Storage *bytes;
        Graph *graph = NULL;
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"n0\", "
                        "\"target\": \"x\"}");
        for (int i = 1; i <= N_NODES; i++) {
                text_addf(&text, ", {\"name\": \"n%d\", ", i);
                text_addf(&text, call, i - 1);
                text_add(&text, "}");
        }
        text_addf(&text,
                  ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": "
                  "[\"%%n%d\"]}]}",
                  N_NODES);
        check(text_status(&text));
        check(storage_new(text.n, false, NULL, &bytes));
        memcpy(bytes->data, text.data, text.n);
        UploadPart part = { .name = "", .bytes = bytes };
        check(upload_decode(&part, 1, NULL, true, &graph));
        storage_unref(bytes);
        text_deinit(&text);
        return graph;
}

static double once(Graph *graph, const Value *input, WalkTrace *trace)
{
        RunContext ctx;
        EagerEmitter *eager = NULL;
        Value out = value_none();
        run_context_init(&ctx);
        int64_t start = clock_ns();
        check(eager_open(graph, &ctx, &eager));
        WalkOptions options = { .inputs = { input, 1 }, .trace = trace };
        if (trace != NULL)
                trace->n_rows = 0;
        check(walk_graph(eager_emitter(eager), graph, &options, &out, NULL));
        int64_t end = clock_ns();
        value_clear(&out);
        eager_close(eager);
        return (double)(end - start) / (double)N_NODES;
}

static double best(Graph *graph, const Value *input, WalkTrace *trace, int n)
{
        double least = 1e30;
        for (int i = 0; i < n; i++) {
                double ns = once(graph, input, trace);
                least = ns < least ? ns : least;
        }
        return least;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name, *call;
        } chains[] = {
                { "torch.relu(x)",
                  "\"op\": \"call_function\", \"target\": \"torch.relu\", \"args\": [\"%%n%d\"]" },
                { "x.neg()", "\"op\": \"call_method\", \"target\": \"neg\", \"args\": [\"%%n%d\"]" },
                { "aten.add.Tensor(x, 1)", "\"op\": \"call_function\", \"target\": "
                                           "\"torch.ops.aten.add.Tensor\", \"args\": [\"%%n%d\", 1]" },
                { "x.view(3, 4)",
                  "\"op\": \"call_method\", \"target\": \"view\", \"args\": [\"%%n%d\", 3, 4]" },
        };
        int n = argc > 1 ? atoi(argv[1]) : 2000;
        int64_t size[2] = { 3, 4 };
        TensorMeta meta;
        Tensor *tensor;
        static NodeTiming rows[N_NODES + 2];
        WalkTrace trace = { .rows = rows, .capacity = N_NODES + 2 };
        check(ops_init());
        check(targets_init());
        meta_init(&meta, DTYPE_F32, 2, size);
        check(tensor_new(&meta, NULL, &tensor));
        memset(tensor_data(tensor), 0, 12 * sizeof(float));
        Value input = value_tensor_take(tensor);
        printf("%-24s %14s %14s\n", "node on 3x4", "ns, profiled", "ns, without");
        for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
                Graph *graph = chain(chains[i].call);
                double with = best(graph, &input, &trace, n), without = best(graph, &input, NULL, n);
                printf("%-24s %14.0f %14.0f\n", chains[i].name, with, without);
                graph_unref(graph);
        }
        value_clear(&input);
        return 0;
}
