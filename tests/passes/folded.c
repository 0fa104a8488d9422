// SPDX-License-Identifier: Apache-2.0
// folded.c: how long the bytes of weights live that passes have computed.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/compile/compile.h"
#include "core/kernels/conv/direct.h"
#include "core/kernels/pack_cache.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(folded, .init = made_start, .timeout = 60);

// The folded bytes that the program still holds; NULL: it had some, and has dropped them.
static const Storage *folded_of(const Program *program)
{
        const Storage *kept = NULL;
        uint32_t n_folded = 0, n_kept = 0;
        for (uint32_t i = 0; i < program->recording->n_values; i++) {
                const Recorded *value = program->recording->values[i];
                if (!recorded_is_constant(value) || value->tensor.storage->source == NULL)
                        continue;
                n_folded++;
                if (value->tensor.storage->data == NULL)
                        continue;
                n_kept++;
                kept = value->tensor.storage;
        }
        cr_assert_gt(n_folded, 0);
        cr_expect_leq(n_kept, 1);
        return kept;
}

// Two programs of one graph with one cache; true: folded bytes are kept, once for both.
static bool keeps_folded(const char *const *states, const char *nodes)
{
        Made made = made_graph(LIST("2,4,9,9"), states, nodes);
        PackCache *cache;
        Program *programs[2];
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        CompileOptions options = { .n_threads = 1, .cache = cache };
        for (int i = 0; i < 2; i++)
                cr_assert_eq(compile_graph(made.graph, (ValueSpan){ made.inputs, 1 }, &options, NULL,
                                           &programs[i]),
                             STATUS_OK);
        const Storage *kept = folded_of(programs[0]);
        cr_expect_eq(folded_of(programs[1]), kept);
        cr_expect_eq(pack_cache_stats(cache).n_entries, 1);
        cr_expect_geq(pack_cache_stats(cache).hits, 1);
        program_unref(programs[0]);
        cr_expect_eq(pack_cache_stats(cache).n_entries, 1, "the other program needs it");
        program_unref(programs[1]);
        cr_expect_eq(pack_cache_stats(cache).n_entries, 0);
        cr_expect_eq(pack_cache_stats(cache).bytes, 0);
        pack_cache_close(cache);
        made_deinit(&made);
        return kept != NULL;
}

#define CONV CALL("c", "conv2d.default", "\"%x0\", \"%w\", null, [1, 1], [1, 1]")
#define NORM                                                                                                 \
        CALL("n", "batch_norm.default",                                                                      \
             "\"%c\", \"%g\", \"%b\", \"%mean\", \"%var\", false, 0.1, 1e-05, true")
#define NORM_STATES "g:6", "b:6", "mean:6", "var:6"

Test(folded, weights_are_dropped_once_they_are_packed)
{
        cr_expect(!keeps_folded(LIST("w:6,4,3,3", NORM_STATES), CONV NORM OUTPUT("\"%n\"")));
        cr_expect(keeps_folded(LIST("w:4,6,3,3", NORM_STATES),
                               CALL("c", "conv_transpose2d.input", "\"%x0\", \"%w\"") NORM OUTPUT("\"%n\"")),
                  "read as it is");
}

Test(folded, what_was_folded_again_is_dropped_at_once)
{
        Made made = made_graph(LIST("2,4,9,9"), LIST("w:6,4,3,3", "m:1,6,1,1", NORM_STATES),
                               CONV NORM CALL("p", "mul.Tensor", "\"%m\", \"%n\"") OUTPUT("\"%p\""));
        Program *program;
        CompileOptions options = { .n_threads = 1 };
        cr_assert_eq(compile_graph(made.graph, (ValueSpan){ made.inputs, 1 }, &options, NULL, &program),
                     STATUS_OK);
        cr_expect_eq(program->n_code, 1);
        cr_expect_null(folded_of(program));
        program_unref(program);
        made_deinit(&made);
}

// Winograd's convolution takes images of uneven range to the direct one, whose weights are packed
// then: they are computed again.
Test(folded, weights_are_computed_again_for_inputs_that_need_them)
{
        enum { N = 32, DIRECT_BYTES = 9 * N * N * sizeof(float), PLANES_BYTES = 4 * DIRECT_BYTES };
        Made made = made_graph(LIST("2,32,12,12"), LIST("w:32,32,3,3", "g:32", "b:32", "mean:32", "var:32"),
                               CONV NORM OUTPUT("\"%n\""));
        ValueSpan inputs = { made.inputs, 1 };
        PackCache *cache;
        Program *program;
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        CompileOptions options = { .n_threads = 1, .cache = cache };
        cr_assert_eq(compile_graph(made.graph, inputs, &options, NULL, &program), STATUS_OK);
        bool transforms = false;
        for (uint32_t i = 0; i < program->n_code; i++)
                transforms |= strstr(program->code[i].name, "winograd") != NULL;
        cr_assert_eq(transforms, direct_isa() != NULL);
        if (transforms)
                cr_expect_lt(pack_cache_stats(cache).bytes, PLANES_BYTES + DIRECT_BYTES);
        program_unref(program);
        pack_cache_close(cache);
        options.cache = NULL;
        static const float markers[] = { 1, 1e6f, INFINITY, NAN };
        float *input = tensor_data(made.inputs[0].tensor);
        for (size_t i = 0; i < ARRAY_LENGTH(markers); i++) {
                char words[600];
                for (int channel = 0; channel < N; channel++)
                        input[channel * 144 + 70] = markers[i];
                cr_expect_eq(run_both(made.graph, inputs, &options, 1e-4, 1e-4, words), BOTH_EQUAL, "%g: %s",
                             (double)markers[i], words);
        }
        made_deinit(&made);
}

// A small graph can read one weight many times: each scaled copy has its size.
Test(folded, one_weight_is_not_scaled_without_bound)
{
#define SCALED(n, of)                                                                                        \
        CALL("i" n, of ".default", "\"%x0\"")                                                                \
        CALL("l" n, "linear.default", "\"%i" n "\", \"%w\"")                                                 \
        CALL("p" n, "mul.Tensor", "\"%l" n "\", \"%m" n "\"")
        Made made = made_graph(
                LIST("1,4096"), LIST("w:4096,4096", "m1:4096", "m2:4096", "m3:4096", "m4:4096", "m5:4096"),
                SCALED("1", "neg") SCALED("2", "abs") SCALED("3", "relu") SCALED("4", "sin")
                        SCALED("5", "cos") OUTPUT("[\"%p1\", \"%p2\", \"%p3\", \"%p4\", \"%p5\"]"));
        Program *program;
        PackCache *cache;
        uint32_t n_scaled = 0;
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        CompileOptions options = { .n_threads = 1, .cache = cache };
        cr_assert_eq(compile_graph(made.graph, (ValueSpan){ made.inputs, 1 }, &options, NULL, &program),
                     STATUS_OK);
        for (uint32_t i = 0; i < program->recording->n_values; i++) {
                const Recorded *value = program->recording->values[i];
                n_scaled += recorded_is_constant(value) && value->tensor.storage->source != NULL;
        }
        cr_expect_eq(n_scaled, 4, "%u copies of 64 MiB instead of four", n_scaled);
        program_unref(program);
        pack_cache_close(cache);
        made_deinit(&made);
}
