// SPDX-License-Identifier: Apache-2.0
// resnet.c: what a planned program costs in memory, on ResNet-18. RESNET18_WEIGHTS names the seeded
// weights (tools/generate/seeded_weights.py).
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/compile/model_file.h"

#ifndef __SANITIZE_ADDRESS__
// Counts calls into the heap; sanitizers bring their own malloc. oneDNN builds a small map of
// arguments in every dnnl_primitive_execute (through operator new, which ends in malloc), and its
// GEMM takes room to pack plain weights: the library's own, left out.
static _Atomic long n_calls;
static _Atomic bool counting;
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size),
        *__libc_realloc(void *old, size_t n), *__libc_memalign(size_t align, size_t n);

static void count(void)
{
        void *frames[6];
        Dl_info info;
        bool library = false;
        if (!atomic_exchange(&counting, false)) // off, or called by what follows
                return;
        int n = backtrace(frames, 6);
        for (int i = 0; i < n; i++)
                library |= dladdr(frames[i], &info) != 0 && info.dli_fname != NULL &&
                           strstr(info.dli_fname, "libdnnl") != NULL;
        n_calls += !library;
        counting = true;
}
void *malloc(size_t n)
{
        count();
        return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
        count();
        return __libc_calloc(n, size);
}
void *realloc(void *old, size_t n)
{
        count();
        return __libc_realloc(old, n);
}
void *aligned_alloc(size_t align, size_t n)
{
        count();
        return __libc_memalign(align, n);
}
int posix_memalign(void **out, size_t align, size_t n)
{
        count();
        *out = __libc_memalign(align, n);
        return *out == NULL ? ENOMEM : 0;
}
#define COUNTS_CALLS 1
#else
static long n_calls;
static bool counting;
#define COUNTS_CALLS 0
#endif

static Graph *graph;
static Value input;

static void start(void)
{
        const char *weights = getenv("RESNET18_WEIGHTS");
        cr_assert_not_null(weights, "RESNET18_WEIGHTS is not set");
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(model_read("resnet18.fx.json", weights, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        TensorMeta meta;
        Tensor *tensor;
        int64_t size[4] = { 1, 3, 224, 224 };
        meta_init(&meta, DTYPE_F32, 4, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        float *data = tensor_data(tensor);
        uint32_t seed = 1;
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                seed = seed * 1664525u + 1013904223u;
                data[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
        }
        input = value_tensor_take(tensor);
}

static void stop(void)
{
        value_clear(&input);
        graph = graph_unref(graph);
}

TestSuite(resnet18, .init = start, .fini = stop, .timeout = 200);

static Program *compiled(bool no_passes)
{
        Program *program = NULL;
        CompileOptions options = { .n_threads = 1, .no_passes = no_passes };
        cr_assert_eq(compile_graph(graph, (ValueSpan){ &input, 1 }, &options, NULL, &program), STATUS_OK,
                     "%s", failure_current()->message);
        return program;
}

Test(resnet18, gives_compiled_what_it_gives_eagerly)
{
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        cr_assert_eq(run_both(graph, (ValueSpan){ &input, 1 }, &options, 1e-4, 1e-4, words), BOTH_EQUAL, "%s",
                     words);
}

static void check_heap(bool no_passes)
{
        Program *program = compiled(no_passes);
        Frame frame;
        RunContext ctx;
        NodeTiming *rows = new_array(program->n_rows, sizeof(*rows));
        long before = 0, during = 0;
        void *frames[2];
        (void)backtrace(frames, 2); // the first time loads what it needs
        frame_init(&frame);
        run_context_init(&ctx);
        for (int i = 0; i < 3; i++) {
                WalkTrace trace = { .rows = rows, .capacity = program->n_rows };
                Value out = value_none();
                before = n_calls;
                counting = true;
                Status status = program_run(program, &frame,
                                            &(ProgramRun){ .inputs = { &input, 1 }, .trace = &trace }, &ctx,
                                            &out, NULL);
                counting = false;
                cr_assert_eq(status, STATUS_OK);
                during = n_calls - before;
                value_clear(&out);
                cr_assert_eq(trace.n_rows, program->n_rows);
        }
        // The reply's tensor: its storage and itself.
        if (COUNTS_CALLS)
                cr_expect_eq(during, 2, "%ld calls into the heap", during);
        frame_deinit(&frame);
        free(rows);
        program_unref(program);
}

Test(resnet18, runs_the_third_time_without_touching_the_heap_but_for_its_reply)
{
        check_heap(false);
}

Test(resnet18, runs_as_recorded_without_touching_the_heap_but_for_its_reply)
{
        check_heap(true);
}

Test(resnet18, needs_an_arena_close_to_the_lower_bound)
{
        Program *program = compiled(false);
        Text text = { 0 };
        const PlanFigures *figures = &program->figures;
        program_print(program, &text);
        cr_assert_eq(text_status(&text), STATUS_OK);
        if (getenv("SHOW_PROGRAM") != NULL)
                fprintf(stderr, "%s\n", text.data);
        fprintf(stderr,
                "resnet18: %u instructions of %u nodes; arena %zu, lower bound %zu, without reuse %zu\n",
                program->n_code, graph->n_nodes, figures->arena_bytes, figures->lower_bound_bytes,
                figures->naive_bytes);
        cr_assert_leq((double)figures->arena_bytes, 1.15 * (double)figures->lower_bound_bytes);
        cr_assert_gt(figures->naive_bytes, 2 * figures->arena_bytes);
        text_deinit(&text);
        program_unref(program);
}
