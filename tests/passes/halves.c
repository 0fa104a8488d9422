// SPDX-License-Identifier: Apache-2.0
// product_half.c: programs of float16 and bfloat16 weights give what eager runs give, by the
// kernels of float32 or bfloat16.
#include <criterion/criterion.h>
#include <string.h>
#include "core/compile/compile.h"
#include "core/kernels/isa.h"
#include "core/program/program.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(halves, .init = made_start, .timeout = 60);

typedef struct Case {
        const char *what, *inputs, *nodes;
        const char *states[4]; // ends with NULL
        const char *generic;   // the operator's own kernel, which must not run
} Case;

#define TO(name, from, dtype) CALL(name, "to.dtype", "\"%" from "\", {\"$dtype\": \"" dtype "\"}")
#define BF(...)               TO("h", "x0", "bfloat16") __VA_ARGS__ OUTPUT("\"%c\"")
#define FP(...)               TO("h", "x0", "float16") __VA_ARGS__ OUTPUT("\"%c\"")

static const Case cases[] = {
        { "linear, bfloat16",
          "9,96",
          BF(CALL("c", "linear.default", "\"%h\", \"%bf16_w\", \"%bf16_b\"")),
          { "bf16_w:40,96", "bf16_b:40" },
          "linear" },
        { "linear of a row, float16",
          "1,300",
          FP(CALL("c", "linear.default", "\"%h\", \"%f16_w\"")),
          { "f16_w:33,300" },
          "linear" },
        { "linear of turned tokens: rounded, then the bias",
          "3,9,96",
          BF(CALL("t", "transpose.int", "\"%h\", 0, 1")
                     CALL("c", "linear.default", "\"%t\", \"%bf16_w\", \"%bf16_b\"")),
          { "bf16_w:40,96", "bf16_b:40" },
          NULL },
        { "addmm",
          "9,96",
          FP(CALL("c", "addmm.default", "\"%f16_b\", \"%h\", \"%f16_w\"")),
          { "f16_w:96,40", "f16_b:40" },
          "addmm" },
        { "mm by a turned weight",
          "9,96",
          BF(CALL("t", "t.default", "\"%bf16_w\"") CALL("c", "mm.default", "\"%h\", \"%t\"")),
          { "bf16_w:40,96" },
          "mm" },
        { "conv2d, bfloat16",
          "2,24,20,18",
          BF(CALL("c", "conv2d.default", "\"%h\", \"%bf16_w\", \"%bf16_b\", [2, 2], [1, 1]")),
          { "bf16_w:40,24,3,3", "bf16_b:40" },
          "conv2d" },
        { "depthwise, float16",
          "2,24,20,18",
          FP(CALL("c", "conv2d.default", "\"%h\", \"%f16_w\", null, [1, 1], [1, 1], [1, 1], 24")),
          { "f16_w:24,1,3,3" },
          "conv2d" },
        { "conv1d, bfloat16",
          "2,24,50",
          BF(CALL("c", "conv1d.default", "\"%h\", \"%bf16_w\", \"%bf16_b\", [1], [1]")),
          { "bf16_w:40,24,3", "bf16_b:40" },
          "conv1d" },
        { "conv3d of samples that lie apart, float16", // the last planes of each
          "3,24,5,9,8",
          FP("{\"name\": \"l\", \"op\": \"call_function\", \"target\": \"torch.ops.aten.clone.default\", "
             "\"args\": [\"%h\"], "
             "\"kwargs\": {\"memory_format\": {\"$memory_format\": \"channels_last_3d\"}}}," CALL(
                     "s", "slice.Tensor", "\"%l\", 2, 1, 9")
                     CALL("c", "conv3d.default", "\"%s\", \"%f16_w\", \"%f16_b\", [1, 1, 1], [1, 1, 1]")),
          { "f16_w:40,24,3,3,3", "f16_b:40" },
          "conv3d" },
        { "conv3d by Winograd's tiles, bfloat16",
          "2,16,4,15,14",
          BF(CALL("c", "conv3d.default", "\"%h\", \"%bf16_w\", \"%bf16_b\", [1, 1, 1], [1, 1, 1]")),
          { "bf16_w:32,16,3,3,3", "bf16_b:32" },
          "conv3d" },
        { "a convolution of two widths in one program",
          "2,24,20,18",
          BF(CALL("a", "conv2d.default", "\"%h\", \"%bf16_w\", null, [1, 1], [1, 1]")
                     TO("s", "bf16_w", "float32")
                             CALL("b", "conv2d.default", "\"%x0\", \"%s\", null, [1, 1], [1, 1]")
                                     CALL("c", "add.Tensor", "\"%a\", \"%b\"")),
          { "bf16_w:24,24,3,3" },
          "conv2d" },
        { "attention",
          "2,3,70,48",
          BF(CALL("c", "scaled_dot_product_attention.default", "\"%h\", \"%h\", \"%h\"")),
          { NULL },
          NULL },
        { "an infinite weight",
          "9,96",
          BF(CALL("i", "log.default", "\"%bf16_b\"") CALL("r", "sub.Tensor", "\"%bf16_b\", \"%bf16_b\"")
                     CALL("l", "log.default", "\"%r\"") CALL("w", "add.Tensor", "\"%bf16_w\", \"%l\"")
                             CALL("c", "linear.default", "\"%h\", \"%w\"")),
          { "bf16_w:40,96", "bf16_b:96" },
          NULL },
};

static bool has_kernel(const Program *program, const char *name)
{
        bool found = false;
        for (uint32_t i = 0; i < program->n_code; i++)
                found |= strcmp(program->code[i].name, name) == 0;
        return found;
}

static void try_case(const Case *one, Isa isa, int n_threads)
{
        char words[600];
        CompileOptions options = { .n_threads = n_threads };
        Program *program;
        isa_use(isa);
        Made made = made_graph(LIST(one->inputs), one->states, one->nodes);
        cr_expect_eq(
                run_both(made.graph, (ValueSpan){ made.inputs, made.n_inputs }, &options, 0.02, 0.01, words),
                BOTH_EQUAL, "%s in set %d: %s", one->what, (int)isa, words);
        cr_assert_eq(compile_graph(made.graph, (ValueSpan){ made.inputs, made.n_inputs }, &options, NULL,
                                   &program),
                     STATUS_OK, "%s", failure_current()->message);
        if (isa >= ISA_AVX2 && one->generic != NULL)
                cr_expect_not(has_kernel(program, one->generic), "%s in set %d runs on %s", one->what,
                              (int)isa, one->generic);
        program_unref(program);
        made_deinit(&made);
}

Test(halves, programs_agree_with_eager_runs)
{
        for (Isa isa = ISA_PORTABLE; isa <= isa_machine(); isa++)
                for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
                        for (int n_threads = 1; n_threads <= 2; n_threads++)
                                try_case(&cases[i], isa, n_threads);
}
