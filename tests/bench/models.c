// SPDX-License-Identifier: Apache-2.0
// A network eager and compiled, one thread: bench_models GRAPH [WEIGHTS] SIZE,SIZE,...
// [list|rows|tune|turns|eager]. Prints microseconds per run (median), the largest difference
// between the two and the memory plan; "list" adds the program, "rows" the least that each
// instruction took, "tune" compiles with a learning record and prints it. The input is uniform
// noise in -1 .. 1.
// Behind "rows" or "turns": ":bf16" or ":int8", the precision. The environment's THREADS: how many
// a compiled run may use.
//
// "turns", for engines.py: the input's float32 are read from standard input and the first result's
// bytes written to standard output after a line with their number; then, for each line "N", N runs
// are made and a line with the median of their nanoseconds is written; for "cpu N" the mean of
// their processor time. "eager" does the same with eager runs.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "api/readers/upload.h"
#include "core/compile/compile.h"
#include "core/eval/bind.h"
#include "core/eval/eager.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { MAX_RUNS = 4000, MAX_ROWS = 4096 };

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

// What the graph's first input holds; float32 where nothing says so.
static Dtype input_dtype(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->kind == INPUT_USER && input->spec.dtype != DTYPE_NONE)
                        return input->spec.dtype;
        }
        return DTYPE_F32;
}

static Value make_input(const char *shape, Dtype dtype)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t size[MAX_RANK];
        int rank = 0;
        for (const char *at = shape; at != NULL && rank < MAX_RANK;
             at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1)
                size[rank++] = atol(at);
        meta_init(&meta, dtype, rank, size);
        check(tensor_new(&meta, NULL, &tensor));
        uint64_t state = 1;
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                element_from_f64(dtype, (char *)tensor_data(tensor) + i * dtype_info[dtype].bytes,
                                 (double)(state >> 11) / 4503599627370496.0 - 1);
        }
        return value_tensor_take(tensor);
}

static int n_threads(void)
{
        const char *text = getenv("THREADS");
        return text == NULL ? 1 : MAX(1, atoi(text));
}

static int by_time(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
        return (x > y) - (x < y);
}

static Status run_eager(const Graph *graph, ValueSpan inputs, Value *out)
{
        RunContext ctx;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        run_context_init(&ctx);
        TRY(eager_open((Graph *)(uintptr_t)graph, &ctx, &eager));
        WalkOptions options = { .inputs = inputs };
        return walk_graph(eager_emitter(eager), (Graph *)(uintptr_t)graph, &options, out, NULL);
}

static Status run_program(const Program *program, Frame *frame, ValueSpan inputs, WalkTrace *trace,
                          Value *out)
{
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = n_threads();
        return program_run(program, frame, &(ProgramRun){ .inputs = inputs, .trace = trace }, &ctx, out,
                           NULL);
}

// Both by turns, so that the machine's moods meet both alike. Medians in microseconds.
static void measure(const Graph *graph, const Program *program, Frame *frame, ValueSpan inputs,
                    double out_us[3])
{
        static int64_t times[2][MAX_RUNS];
        int64_t start = clock_ns();
        int n = 0;
        while (n < MAX_RUNS && (n < 10 || clock_ns() - start < 3000000000)) {
                Value out = value_none();
                int64_t t0 = clock_ns();
                check(run_eager(graph, inputs, &out));
                int64_t t1 = clock_ns();
                value_clear(&out);
                int64_t t2 = clock_ns();
                check(run_program(program, frame, inputs, NULL, &out));
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

// Element `i` in the order of memory; of complex numbers the real part.
static double element(const Tensor *tensor, int64_t i)
{
        const char *data = tensor_data(tensor);
        return element_as_f64(tensor->meta.dtype, data + i * dtype_info[tensor->meta.dtype].bytes);
}

static double largest_difference(const Graph *graph, const Program *program, Frame *frame, ValueSpan inputs,
                                 double *out_largest)
{
        Value want = value_none(), have = value_none();
        check(run_eager(graph, inputs, &want));
        check(run_program(program, frame, inputs, NULL, &have));
        const Tensor *a = first_tensor(want), *b = first_tensor(have);
        double worst = 0;
        *out_largest = 0;
        for (int64_t i = 0; i < meta_numel(&a->meta); i++) {
                double x = element(a, i), y = element(b, i);
                worst = isnan(x) != isnan(y) ? INFINITY : x == y ? worst : fmax(worst, fabs(x - y));
                *out_largest = fmax(*out_largest, fabs(x));
        }
        value_clear(&want);
        value_clear(&have);
        return worst;
}

// ---- turns ----
static int64_t cpu_ns(void)
{
        struct timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Without a program the runs are eager.
static void run_once(const Graph *graph, const Program *program, Frame *frame, ValueSpan inputs, Value *out)
{
        check(program == NULL ? run_eager(graph, inputs, out)
                              : run_program(program, frame, inputs, NULL, out));
}

static void take_turns(const Graph *graph, const Program *program, Frame *frame, const Tensor *input,
                       ValueSpan inputs)
{
        static int64_t times[MAX_RUNS];
        Value out = value_none();
        char line[32];
        size_t n = (size_t)meta_numel(&input->meta) * dtype_info[input->meta.dtype].bytes;
        if (fread(tensor_data(input), 1, n, stdin) != n)
                exit(1);
        run_once(graph, program, frame, inputs, &out);
        const Tensor *first = first_tensor(out);
        size_t bytes = (size_t)meta_numel(&first->meta) * dtype_info[first->meta.dtype].bytes;
        printf("%zu\n", bytes);
        fwrite(tensor_data(first), 1, bytes, stdout);
        fflush(stdout);
        value_clear(&out);
        while (fgets(line, sizeof(line), stdin) != NULL) {
                bool cpu = strncmp(line, "cpu ", 4) == 0;
                int runs = MAX(1, MIN(atoi(line + (cpu ? 4 : 0)), MAX_RUNS));
                int64_t begin = cpu_ns();
                for (int i = 0; i < runs; i++) {
                        int64_t start = clock_ns();
                        run_once(graph, program, frame, inputs, &out);
                        value_clear(&out);
                        times[i] = clock_ns() - start;
                }
                qsort(times, (size_t)runs, sizeof(int64_t), by_time);
                printf("%" PRId64 "\n", cpu ? (cpu_ns() - begin) / runs : times[runs / 2]);
                fflush(stdout);
        }
}

static void print_rows(const Program *program, Frame *frame, ValueSpan inputs)
{
        static NodeTiming rows[MAX_ROWS];
        static int64_t least[MAX_ROWS];
        WalkTrace trace = { .rows = rows, .capacity = MAX_ROWS };
        for (int run = 0; run < 20; run++) {
                Value out = value_none();
                trace.n_rows = 0;
                check(run_program(program, frame, inputs, &trace, &out));
                value_clear(&out);
                for (uint32_t i = 0; i < trace.n_rows; i++)
                        least[i] = run == 0 ? rows[i].end_ns - rows[i].start_ns
                                            : MIN(least[i], rows[i].end_ns - rows[i].start_ns);
        }
        for (uint32_t i = 0; i < trace.n_rows; i++) {
                double us = (double)least[i] / 1000;
                if (us > 0)
                        printf("%10.1f us %8.1f GFLOP/s  %-28s %s\n", us, (double)rows[i].flops / us / 1000,
                               rows[i].kernel, rows[i].node == NULL ? "" : rows[i].node->name);
        }
}

static Precision precision_of(const char *what)
{
        const char *name = strchr(what, ':');
        return name == NULL ? PRECISION_F32 : precision_named(name + 1);
}

int main(int argc, char **argv)
{
        const char *what = argc > 3 && strchr("lrte", argv[argc - 1][0]) != NULL ? argv[--argc] : "";
        if (argc != 3 && argc != 4) {
                fprintf(stderr, "usage: bench_models GRAPH [WEIGHTS] SIZE,SIZE,... "
                                "[list|rows|tune|turns|eager]\n");
                return 2;
        }
        Graph *graph;
        Program *program = NULL;
        Frame frame;
        memory_keep_heap(); // as the server does
        UploadPart parts[2] = { { .name = argc == 4 ? "graph" : "", .bytes = read_file(argv[1]) },
                                { .name = "weights" } };
        if (argc == 4)
                parts[1].bytes = read_file(argv[2]);
        check(ops_init());
        check(targets_init());
        check(upload_decode(parts, (uint32_t)argc - 2, NULL, true, &graph));
        Value input = make_input(argv[argc - 1], input_dtype(graph));
        Value *bound = new_array(graph->signature.n_inputs, sizeof(Value));
        check(bound == NULL ? STATUS_NO_MEMORY : bind_inputs(graph, (ValueSpan){ &input, 1 }, NULL, bound));
        ValueSpan inputs = { bound, graph->signature.n_inputs };
        CompileOptions options = { .n_threads = n_threads(), .precision = precision_of(what) };
        if (strcmp(what, "tune") == 0)
                check(tune_new(true, &options.tune));
        frame_init(&frame);
        if (what[0] == 'e') {
                take_turns(graph, NULL, &frame, input.tensor, inputs);
                return 0;
        }
        int64_t start = clock_ns();
        check(compile_graph(graph, inputs, &options, NULL, &program));
        double compile_us = (double)(clock_ns() - start) / 1000, us[3], largest;
        if (what[0] == 't' && what[1] == 'u' && what[2] == 'r') {
                take_turns(graph, program, &frame, input.tensor, inputs);
                return 0;
        }
        double worst = largest_difference(graph, program, &frame, inputs, &largest);
        measure(graph, program, &frame, inputs, us);
        printf("eager_us %.1f compiled_us %.1f least_us %.1f compile_us %.0f instructions %u nodes %u "
               "difference %.3g of %.3g arena %zu "
               "bound %zu\n",
               us[0], us[1], us[2], compile_us, program->n_code, graph->n_nodes, worst, largest,
               program->figures.arena_bytes, program->figures.lower_bound_bytes);
        if (what[0] == 'l' || what[0] == 't') {
                Text text = { 0 };
                if (what[0] == 'l')
                        program_print(program, &text);
                else
                        tune_print(options.tune, &text);
                fwrite(text.data, 1, text.n, stdout);
                text_deinit(&text);
        } else if (what[0] == 'r') {
                print_rows(program, &frame, inputs);
        }
        frame_deinit(&frame);
        for (uint32_t i = 0; i < inputs.n; i++)
                value_clear(&bound[i]);
        free(bound);
        value_clear(&input);
        tune_free(options.tune);
        program_unref(program);
        graph_unref(graph);
        for (int i = 0; i < argc - 2; i++)
                storage_unref(parts[i].bytes);
        return worst <= 1e-4 * fmax(1, largest) ? 0 : 1;
}
