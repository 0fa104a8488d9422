// SPDX-License-Identifier: Apache-2.0
// multiply_first.c: linear layers on rows that an index picks, and convolutions of one tap on
// resized images: the numbers of an eager run, and what is multiplied.
#include <criterion/criterion.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(multiply_first, .init = made_start, .timeout = 60);

// Positions -5 .. 5 from noise.
#define POSITIONS(name, from)                                                                                \
        CALL(name "5", "mul.Tensor", "\"%" from "\", 5.99")                                                  \
        CALL(name, "to.dtype", "\"%" name "5\", {\"$dtype\": \"int64\"}")
#define INDICES           POSITIONS("i", "x1") POSITIONS("j", "x2") CALL("k", "abs.default", "\"%i\"")
#define PICK(name, index) CALL(name, "index.Tensor", "\"%x0\", [\"%" index "\"]")

// Rows or pixels times channels that layers of the program read.
static int64_t n_multiplied(const Made *made)
{
        CompileOptions options = { .n_threads = 1 };
        Program *program;
        int64_t n = 0;
        cr_assert_eq(compile_graph(made->graph, (ValueSpan){ made->inputs, made->n_inputs }, &options, NULL,
                                   &program),
                     STATUS_OK, "%s", failure_current()->message);
        for (uint32_t i = 0; i < program->recording->n_calls; i++) {
                const OpCall *call = &program->recording->calls[i]->call;
                const TensorMeta *out = &call->outs[0].meta;
                if (op_role(call) == ROLE_LINEAR || op_role(call) == ROLE_FUSED_LINEAR ||
                    op_role(call) == ROLE_CONV || op_role(call) == ROLE_FUSED_CONV)
                        n += meta_numel(out) / out->size[1] * call->args[1].tensor->meta.size[1];
        }
        program_unref(program);
        return n;
}

static void try_made(const char *what, Made made, int64_t want)
{
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        cr_expect_eq(
                run_both(made.graph, (ValueSpan){ made.inputs, made.n_inputs }, &options, 1e-5, 1e-5, words),
                BOTH_EQUAL, "%s: %s", what, words);
        int64_t n = n_multiplied(&made);
        cr_expect_eq(n, want, "%s: %ld numbers are multiplied", what, (long)n);
        made_deinit(&made);
}

static void try_graph(const char *what, const char *nodes, int64_t want)
{
        try_made(what,
                 made_graph(LIST("6,8", "40", "40", "40,5"),
                            LIST("w:7,16", "b:7", "v:7,21", "u:7,8", "table:6,8", "m:7,13"), nodes),
                 want);
}

// %x0 has 2·12·12 pixels, %x1 2·6·6, %x2 2·3·3, %x3 2·3·12.
static void try_images(const char *what, const char *nodes, int64_t want)
{
        try_made(what,
                 made_graph(LIST("2,4,12,12", "2,5,6,6", "2,6,3,3", "2,6,3,12"),
                            LIST("w:5,15,1,1", "b:5", "v:5,6,1,1", "u:3,15,3,3", "g:15,1,1,1", "inf_b:5",
                                 "inf_v:5,6,1,1"),
                            nodes),
                 want);
}

#define BILINEAR(name, from) CALL(name, "upsample_bilinear2d.vec", "\"%" from "\", [12, 12], false, null")
#define NEAREST(name, from)  CALL(name, "upsample_nearest2d.vec", "\"%" from "\", [12, 12], null")
#define HEAD                                                                                                 \
        BILINEAR("p", "x1")                                                                                  \
        NEAREST("q", "x2") CALL("c", "cat.default", "[\"%p\", \"%x0\", \"%q\"], 1")

Test(multiply_first, images_are_multiplied_before_they_are_resized)
{
        try_images("three sizes",
                   HEAD CALL("l", "conv2d.default", "\"%c\", \"%w\", \"%b\"")
                           CALL("r", "relu.default", "\"%l\"") OUTPUT("\"%r\""),
                   1620);
        try_images("one size",
                   BILINEAR("p", "x2") CALL("l", "conv2d.default", "\"%p\", \"%v\", \"%b\"")
                           OUTPUT("[\"%l\", \"%p\"]"),
                   108);
        try_images("bicubic, corners aligned, without a bias",
                   CALL("p", "upsample_bicubic2d.vec", "\"%x2\", [12, 12], true, null")
                           CALL("l", "conv2d.default", "\"%p\", \"%v\"") OUTPUT("\"%l\""),
                   108);
        try_images("only one side grows",
                   NEAREST("p", "x3") CALL("l", "conv2d.default", "\"%p\", \"%v\", \"%b\"") OUTPUT("\"%l\""),
                   432);
}

// Zero times infinity is NaN; so is the difference of infinities that bicubic takes.
Test(multiply_first, images_are_resized_first_where_constants_are_infinite)
{
        try_images("an infinite bias",
                   BILINEAR("p", "x2") CALL("l", "conv2d.default", "\"%p\", \"%v\", \"%inf_b\"")
                           OUTPUT("\"%l\""),
                   1728);
        try_images("an infinite weight",
                   CALL("z", "relu.default", "\"%x2\"") BILINEAR("p", "z")
                           CALL("l", "conv2d.default", "\"%p\", \"%inf_v\", \"%b\"") OUTPUT("\"%l\""),
                   1728);
        try_images("an infinite bias of a part that is not resized",
                   HEAD CALL("l", "conv2d.default", "\"%c\", \"%w\", \"%inf_b\"") OUTPUT("\"%l\""), 1620);
}

Test(multiply_first, images_are_resized_first_where_that_is_less_or_necessary)
{
        try_images("most multiplications are left",
                   BILINEAR("p", "x3") CALL("s", "slice.Tensor", "\"%p\", 1, 0, 5")
                           CALL("c", "cat.default", "[\"%s\", \"%x0\", \"%p\"], 1")
                                   CALL("l", "conv2d.default", "\"%c\", \"%w\", \"%b\"") OUTPUT("\"%l\""),
                   4320);
        try_images("more taps",
                   HEAD CALL("l", "conv2d.default", "\"%c\", \"%u\", null, [1, 1], [1, 1]") OUTPUT("\"%l\""),
                   4320);
        try_images("groups",
                   HEAD CALL("l", "conv2d.default", "\"%c\", \"%g\", null, [1, 1], [0, 0], [1, 1], 15")
                           OUTPUT("\"%l\""),
                   288);
        try_images("strides",
                   HEAD CALL("l", "conv2d.default", "\"%c\", \"%w\", null, [2, 2]") OUTPUT("\"%l\""), 1080);
        try_images("pixels around it",
                   BILINEAR("p", "x2") CALL("l", "conv2d.default", "\"%p\", \"%v\", \"%b\", [1, 1], [1, 1]")
                           OUTPUT("\"%l\""),
                   2352);
        try_images("a smaller image",
                   CALL("p", "upsample_nearest2d.vec", "\"%x2\", [2, 2], null")
                           CALL("l", "conv2d.default", "\"%p\", \"%v\", \"%b\"") OUTPUT("\"%l\""),
                   48);
}

Test(multiply_first, rows_are_multiplied_before_they_are_picked)
{
        try_graph("both ends of edges",
                  INDICES PICK("p", "i") PICK("q", "j") CALL("c", "cat.default", "[\"%p\", \"%q\"], -1")
                          CALL("l", "linear.default", "\"%c\", \"%w\", \"%b\"")
                                  CALL("r", "relu.default", "\"%l\"") OUTPUT("\"%r\""),
                  96);
        try_graph("and results that a view reads",
                  INDICES PICK("p", "i") CALL("q", "index_select.default", "\"%x0\", 0, \"%k\"")
                          CALL("c", "cat.default", "[\"%p\", \"%q\"], 1")
                                  CALL("l", "linear.default", "\"%c\", \"%w\"")
                                          CALL("r", "reshape.default", "\"%l\", [-1]")
                                                  OUTPUT("[\"%r\", \"%l\", \"%p\"]"),
                  96);
        try_graph("one end",
                  INDICES PICK("p", "i") CALL("l", "linear.default", "\"%p\", \"%u\"") OUTPUT("\"%l\""), 48);
        try_graph("rows of edges between them",
                  INDICES PICK("p", "i") PICK("q", "j")
                          CALL("c", "cat.default", "[\"%p\", \"%x3\", \"%q\"], 1")
                                  CALL("l", "linear.default", "\"%c\", \"%v\", \"%b\"") OUTPUT("\"%l\""),
                  296);
        // others read the concatenation; rows are picked along another dimension
        try_graph("others read it",
                  INDICES PICK("p", "i") PICK("q", "j") CALL("c", "cat.default", "[\"%p\", \"%q\"], 1")
                          CALL("l", "linear.default", "\"%c\", \"%w\", \"%b\"") OUTPUT("[\"%l\", \"%c\"]"),
                  640);
        try_graph("a column for each row",
                  INDICES CALL("t", "index_select.default", "\"%x0\", 1, \"%k\"")
                          CALL("s", "slice.Tensor", "\"%t\", 1, 0, 8")
                                  CALL("l", "linear.default", "\"%s\", \"%u\"") OUTPUT("\"%l\""),
                  48);
        // a row would have other bits beside many others than alone
        try_graph("rows of a constant",
                  INDICES CALL("p", "index.Tensor", "\"%table\", [\"%i\"]")
                          CALL("c", "cat.default", "[\"%p\", \"%x3\"], 1")
                                  CALL("l", "linear.default", "\"%c\", \"%m\", \"%b\"") OUTPUT("\"%l\""),
                  520);
}
