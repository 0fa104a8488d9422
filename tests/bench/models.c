// SPDX-License-Identifier: Apache-2.0
// A network eager and compiled, one thread: bench_models GRAPH [WEIGHTS] SIZE,SIZE,... [list|rows]. Prints microseconds per run (median),
// the largest difference between the two and the memory plan; "list" adds the program, "rows" the least that each instruction took. The
// input is uniform noise in -1 .. 1.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/upload.h"
#include "core/compile/compile.h"
#include "core/eval/eager.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { MAX_RUNS = 2000, MAX_ROWS = 4096 };

static void check(Status status)
{
        if (status == STATUS_OK)
                return;
        fprintf(stderr, "bench_models: %s\n", failure_current()->message);
        exit(1);
}

static Storage *read_file(const char *path)
{
        Storage *bytes;
        FILE *file = fopen(path, "rb");
        if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
                fprintf(stderr, "bench_models: cannot read %s\n", path);
                exit(1);
        }
        long n = ftell(file);
        rewind(file);
        check(storage_new((size_t)n, false, NULL, &bytes));
        if (fread(bytes->data, 1, (size_t)n, file) != (size_t)n)
                exit(1);
        fclose(file);
        return bytes;
}

static Value make_input(const char *shape)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t size[MAX_RANK];
        int rank = 0;
        for (const char *at = shape; at != NULL && rank < MAX_RANK; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1)
                size[rank++] = atol(at);
        meta_init(&meta, DTYPE_F32, rank, size);
        check(tensor_new(&meta, NULL, &tensor));
        uint64_t state = 1;
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                ((float *)tensor_data(tensor))[i] = (float)((double)(state >> 11) / 4503599627370496.0 - 1);
        }
        return value_tensor_take(tensor);
}

static int by_time(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
        return (x > y) - (x < y);
}

static Status run_eager(const Graph *graph, const Value *input, Value *out)
{
        RunContext ctx;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        run_context_init(&ctx);
        TRY(eager_open((Graph *)(uintptr_t)graph, &ctx, &eager));
        WalkOptions options = { .inputs = { input, 1 } };
        return walk_graph(eager_emitter(eager), (Graph *)(uintptr_t)graph, &options, out, NULL);
}

static Status run_program(const Program *program, Frame *frame, const Value *input, WalkTrace *trace, Value *out)
{
        RunContext ctx;
        run_context_init(&ctx);
        return program_run(program, frame, &(ProgramRun){ .inputs = { input, 1 }, .trace = trace }, &ctx, out, NULL);
}

// Both by turns, so that the machine's moods meet both alike. Medians in microseconds.
static void measure(const Graph *graph, const Program *program, Frame *frame, const Value *input, double out_us[3])
{
        static int64_t times[2][MAX_RUNS];
        int64_t start = clock_ns();
        int n = 0;
        while (n < MAX_RUNS && (n < 10 || clock_ns() - start < 3000000000)) {
                Value out = value_none();
                int64_t t0 = clock_ns();
                check(run_eager(graph, input, &out));
                int64_t t1 = clock_ns();
                value_clear(&out);
                int64_t t2 = clock_ns();
                check(run_program(program, frame, input, NULL, &out));
                times[0][n] = t1 - t0;
                times[1][n++] = clock_ns() - t2;
                value_clear(&out);
        }
        for (int k = 0; k < 2; k++) {
                qsort(times[k], (size_t)n, sizeof(int64_t), by_time);
                out_us[k] = (double)times[k][n / 2] / 1000;
        }
        out_us[2] = (double)times[1][0] / 1000;
}

static Tensor *first_tensor(Value value)
{
        while (value_is_sequence(value))
                value = value.seq->items[0];
        return value.tensor;
}

static double largest_difference(const Graph *graph, const Program *program, Frame *frame, const Value *input, double *out_largest)
{
        Value want = value_none(), have = value_none();
        check(run_eager(graph, input, &want));
        check(run_program(program, frame, input, NULL, &have));
        const Tensor *a = first_tensor(want), *b = first_tensor(have);
        double worst = 0;
        *out_largest = 0;
        for (int64_t i = 0; i < meta_numel(&a->meta); i++) {
                double x = (double)((float *)tensor_data(a))[i], y = (double)((float *)tensor_data(b))[i];
                worst = isnan(x) != isnan(y) ? INFINITY : fmax(worst, fabs(x - y));
                *out_largest = fmax(*out_largest, fabs(x));
        }
        value_clear(&want);
        value_clear(&have);
        return worst;
}

static void print_rows(const Program *program, Frame *frame, const Value *input)
{
        static NodeTiming rows[MAX_ROWS];
        static int64_t least[MAX_ROWS];
        WalkTrace trace = { .rows = rows, .capacity = MAX_ROWS };
        for (int run = 0; run < 20; run++) {
                Value out = value_none();
                trace.n_rows = 0;
                check(run_program(program, frame, input, &trace, &out));
                value_clear(&out);
                for (uint32_t i = 0; i < trace.n_rows; i++)
                        least[i] = run == 0 ? rows[i].end_ns - rows[i].start_ns : MIN(least[i], rows[i].end_ns - rows[i].start_ns);
        }
        for (uint32_t i = 0; i < trace.n_rows; i++) {
                double us = (double)least[i] / 1000;
                if (us > 0)
                        printf("%10.1f us %8.1f GFLOP/s  %-28s %s\n", us, (double)rows[i].flops / us / 1000, rows[i].kernel,
                               rows[i].node == NULL ? "" : rows[i].node->name);
        }
}

int main(int argc, char **argv)
{
        const char *what = argc > 3 && strchr("lr", argv[argc - 1][0]) != NULL ? argv[--argc] : "";
        if (argc != 3 && argc != 4) {
                fprintf(stderr, "usage: bench_models GRAPH [WEIGHTS] SIZE,SIZE,... [list|rows]\n");
                return 2;
        }
        Graph *graph;
        Program *program;
        Frame frame;
        UploadPart parts[2] = { { .name = argc == 4 ? "graph" : "", .bytes = read_file(argv[1]) }, { .name = "weights" } };
        if (argc == 4)
                parts[1].bytes = read_file(argv[2]);
        check(ops_init());
        check(targets_init());
        check(upload_decode(parts, (uint32_t)argc - 2, NULL, true, &graph));
        Value input = make_input(argv[argc - 1]);
        CompileOptions options = { .n_threads = 1 };
        int64_t start = clock_ns();
        check(compile_graph(graph, (ValueSpan){ &input, 1 }, &options, NULL, &program));
        double compile_us = (double)(clock_ns() - start) / 1000, us[3], largest;
        frame_init(&frame);
        double worst = largest_difference(graph, program, &frame, &input, &largest);
        measure(graph, program, &frame, &input, us);
        printf("eager_us %.1f compiled_us %.1f least_us %.1f compile_us %.0f instructions %u nodes %u difference %.3g of %.3g arena %zu "
               "bound %zu\n",
               us[0], us[1], us[2], compile_us, program->n_code, graph->n_nodes, worst, largest, program->figures.arena_bytes,
               program->figures.lower_bound_bytes);
        if (what[0] == 'l') {
                Text text = { 0 };
                program_print(program, &text);
                fwrite(text.data, 1, text.n, stdout);
                text_deinit(&text);
        } else if (what[0] == 'r') {
                print_rows(program, &frame, &input);
        }
        frame_deinit(&frame);
        value_clear(&input);
        program_unref(program);
        graph_unref(graph);
        for (int i = 0; i < argc - 2; i++)
                storage_unref(parts[i].bytes);
        return worst <= 1e-4 * fmax(1, largest) ? 0 : 1;
}
