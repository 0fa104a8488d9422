// SPDX-License-Identifier: Apache-2.0
// quantized.c: products of dequantised levels become products of levels where that is right: the
// instructions that are left, and the numbers of an eager run.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(quantized, .init = made_start, .timeout = 60);

#define QUANT(name, op, ...)                                                                                 \
        "{\"name\": \"" name "\", \"op\": \"call_function\", "                                               \
        "\"target\": \"torch.ops.quantized_decomposed." op "\", \"args\": [" __VA_ARGS__ "]},"
#define UINT8       "0, 255, {\"$dtype\": \"uint8\"}"
#define INT8        "-128, 127, {\"$dtype\": \"int8\"}"
#define Q(name, x)  QUANT(name, "quantize_per_tensor.default", "\"%" x "\", 0.01, 120, " UINT8)
#define DQ(name, x) QUANT(name, "dequantize_per_tensor.default", "\"%" x "\", 0.01, 120, " UINT8)
#define WEIGHT(name, of)                                                                                     \
        QUANT(name, "dequantize_per_channel.default", "\"%" of "\", \"%var\", null, 0, " INT8)
#define LINEAR(name, x, w) CALL(name, "linear.default", "\"%" x "\", \"%" w "\", \"%b\"")
#define GETITEM(name, of, index)                                                                             \
        "{\"name\": \"" name "\", \"op\": \"call_function\", \"target\": \"_operator.getitem\", "            \
        "\"args\": [\"%" of "\", " index "]},"
#define STATES "levels:12,20", "var:12", "b:12"
#define BEGIN  Q("q", "x0") DQ("d", "q") WEIGHT("w", "levels")

static void count(const Program *program, uint32_t *out_products, uint32_t *out_floats)
{
        *out_products = *out_floats = 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                const char *name = call == NULL ? "" : call->call.schema->name;
                bool quantized = strstr(name, "quantized_") != NULL;
                *out_products += quantized;
                *out_floats += !quantized && (strstr(name, "linear") != NULL || strstr(name, "mm") != NULL ||
                                              strstr(name, "conv") != NULL);
        }
}

typedef struct Want {
        uint32_t n_code, levels, floats; // instructions (0: any number), products of either kind
} Want;

static void try_graph(const char *what, const char *const *inputs, const char *const *states,
                      const char *nodes, Want want)
{
        Made made = made_graph(inputs, states, nodes);
        ValueSpan span = { made.inputs, made.n_inputs };
        char words[600];
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
                CompileOptions options = { .n_threads = n_threads };
                cr_expect_eq(run_both(made.graph, span, &options, 1e-4, 1e-5, words), BOTH_EQUAL, "%s: %s",
                             what, words);
        }
        Program *program;
        CompileOptions options = { .n_threads = 1 };
        uint32_t products, floats;
        cr_assert_eq(compile_graph(made.graph, span, &options, NULL, &program), STATUS_OK);
        count(program, &products, &floats);
        Text text = { 0 };
        program_print(program, &text);
        cr_expect((want.n_code == 0 || program->n_code == want.n_code) && products == want.levels &&
                          floats == want.floats,
                  "%s: %u instructions, %u and %u products\n%.*s", what, program->n_code, products, floats,
                  (int)text.n, text.data);
        text_deinit(&text);
        program_unref(program);
        made_deinit(&made);
}

Test(quantized, layers_between_levels_hand_on_levels)
{
        try_graph("two layers", LIST("5,20"), LIST(STATES, "levels2:9,12", "var2:9"),
                  BEGIN LINEAR("y", "d", "w") CALL("r", "relu.default", "\"%y\"") Q("q2", "r") DQ("d2", "q2")
                          QUANT("w2", "dequantize_per_channel.default",
                                "\"%levels2\", \"%var2\", null, 0, " INT8)
                                  CALL("z", "linear.default", "\"%d2\", \"%w2\"") OUTPUT("\"%z\""),
                  (Want){ 3, 2, 0 });
        try_graph("a clamp, levels as result", LIST("5,20"), LIST(STATES),
                  BEGIN LINEAR("y", "d", "w") CALL("c", "hardtanh.default", "\"%y\", -0.5, 0.7") Q("q2", "c")
                          OUTPUT("\"%q2\""),
                  (Want){ 2, 1, 0 });
        try_graph("a residual", LIST("5,20", "5,12"), LIST(STATES),
                  BEGIN LINEAR("y", "d", "w") CALL("s", "add.Tensor", "\"%x1\", \"%y\"")
                          CALL("r", "relu.default", "\"%s\"") OUTPUT("\"%r\""),
                  (Want){ 2, 1, 0 });
}

Test(quantized, products_of_every_spelling_are_found)
{
        try_graph("a view of the input", LIST("2,3,20"), LIST(STATES),
                  BEGIN CALL("v", "view.default", "\"%d\", [6, 20]") LINEAR("y", "v", "w") OUTPUT("\"%y\""),
                  (Want){ 2, 1, 0 });
        try_graph("addmm of a transpose", LIST("4,20"), LIST(STATES),
                  BEGIN CALL("t", "t.default", "\"%w\"") CALL("y", "addmm.default", "\"%b\", \"%d\", \"%t\"")
                          OUTPUT("\"%y\""),
                  (Want){ 2, 1, 0 });
        try_graph("mm, a scale for each column", LIST("4,12"), LIST(STATES, "var20:20"),
                  Q("q", "x0") DQ("d", "q") QUANT("w", "dequantize_per_channel.default",
                                                  "\"%levels\", \"%var20\", null, 1, " INT8)
                          CALL("y", "mm.default", "\"%d\", \"%w\"") OUTPUT("\"%y\""),
                  (Want){ 2, 1, 0 });
        try_graph("one scale, a zero point", LIST("4,20"), LIST("levels:12,20", "b:12"),
                  Q("q", "x0") DQ("d", "q")
                          QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 0.02, 0, " INT8)
                                  LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 2, 1, 0 });
        try_graph("a scale of the run", LIST("4,20"), LIST(STATES),
                  QUANT("c", "choose_qparams.tensor", "\"%x0\", 0, 255, 0.0001, {\"$dtype\": \"uint8\"}")
                          GETITEM("s", "c", "0") GETITEM("z", "c", "1") QUANT(
                                  "q", "quantize_per_tensor.tensor", "\"%x0\", \"%s\", \"%z\", " UINT8)
                                  QUANT("d", "dequantize_per_tensor.tensor", "\"%q\", \"%s\", \"%z\", " UINT8)
                                          WEIGHT("w", "levels") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 1, 0 });
}

Test(quantized, dequantised_tensors_that_others_read_stay)
{
        try_graph("the input and the layer", LIST("5,20"), LIST(STATES),
                  BEGIN LINEAR("y", "d", "w") OUTPUT("[\"%y\", \"%d\", \"%w\"]"), (Want){ 0, 1, 0 });
        try_graph("the layer before relu", LIST("5,20"), LIST(STATES),
                  BEGIN LINEAR("y", "d", "w") CALL("r", "relu.default", "\"%y\"") Q("q2", "r")
                          OUTPUT("[\"%y\", \"%q2\"]"),
                  (Want){ 0, 1, 0 });
        try_graph("the levels", LIST("5,20"), LIST(STATES),
                  BEGIN LINEAR("y", "d", "w") OUTPUT("[\"%y\", \"%q\"]"), (Want){ 2, 1, 0 });
}

#define OTHER_DQ(scale, zero)                                                                                \
        QUANT("d", "dequantize_per_tensor.default", "\"%q\", " scale ", " zero ", " UINT8)
Test(quantized, what_sums_of_levels_do_not_mean_stays_in_floats)
{
        try_graph("a zero point that is no level", LIST("5,20"), LIST(STATES),
                  Q("q", "x0") OTHER_DQ("0.01", "300") WEIGHT("w", "levels") LINEAR("y", "d", "w")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a scale that is not finite", LIST("5,20"), LIST(STATES),
                  Q("q", "x0") OTHER_DQ("1e39", "0") WEIGHT("w", "levels") LINEAR("y", "d", "w")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a scale for each term", LIST("5,20"), LIST(STATES, "var20:20"),
                  Q("q", "x0") DQ("d", "q") QUANT("w", "dequantize_per_channel.default",
                                                  "\"%levels\", \"%var20\", null, 1, " INT8)
                          LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("zero points that int8 does not hold", LIST("5,20"), LIST("levels:12,20", "b:12"),
                  Q("q", "x0") DQ("d", "q")
                          QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 0.02, 100, " INT8)
                                  LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("levels of 16 bits", LIST("5,20"), LIST(STATES),
                  QUANT("q", "quantize_per_tensor.default",
                        "\"%x0\", 0.01, 0, -30000, 30000, "
                        "{\"$dtype\": \"int16\"}") QUANT("d", "dequantize_per_tensor.default",
                                                         "\"%q\", 0.01, 0, -30000, 30000, "
                                                         "{\"$dtype\": \"int16\"}") WEIGHT("w", "levels")
                          LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
}

#define CAST(name, of, dtype) CALL(name, "to.dtype", "\"%" of "\", {\"$dtype\": \"" dtype "\"}")

Test(quantized, casts_and_narrow_differences_keep_their_numbers)
{
        try_graph("a difference that wraps in 8 bits", LIST("5,20"), LIST(STATES),
                  Q("q", "x0") CALL("e", "sub.Tensor", "\"%q\", 120") CALL("d", "mul.Tensor", "\"%e\", 0.01")
                          WEIGHT("w", "levels") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 1, 0 });
        try_graph("a scale that bfloat16 rounds", LIST("5,20"), LIST(STATES, "var1:12,1"),
                  Q("q", "x0") DQ("d", "q") CAST("s", "var1", "bfloat16") CAST("f", "levels", "float32")
                          CALL("w", "mul.Tensor", "\"%f\", \"%s\"") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a scale cast to an integer", LIST("5,20"), LIST(STATES, "var1:12,1"),
                  Q("q", "x0") DQ("d", "q") CAST("s", "var1", "int64") CAST("f", "levels", "float32")
                          CALL("w", "mul.Tensor", "\"%f\", \"%s\"") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
}

#define CHOSEN                                                                                               \
        QUANT("c", "choose_qparams.tensor", "\"%x0\", 0, 255, 0.0001, {\"$dtype\": \"uint8\"}")              \
        GETITEM("s", "c", "0")                                                                               \
        GETITEM("z", "c", "1")                                                                               \
        QUANT("q", "quantize_per_tensor.tensor", "\"%x0\", \"%s\", \"%z\", " UINT8)
#define SCALED(factor)                                                                                       \
        CHOSEN CALL("u", "mul.Tensor", "\"%s\", " factor)                                                    \
                QUANT("d", "dequantize_per_tensor.tensor", "\"%q\", \"%u\", \"%z\", " UINT8)

Test(quantized, extreme_scales_give_what_floats_give)
{
        try_graph("sums times a large scale", LIST("5,20"), LIST("levels:12,20", "b:12"),
                  Q("q", "x0") OTHER_DQ("1e34", "0")
                          QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 1e-34, 0, " INT8)
                                  LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("weights that are infinite", LIST("5,20"), LIST("levels:12,20", "b:12"),
                  Q("q", "x0") OTHER_DQ("0.01", "0")
                          QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 1e37, 0, " INT8)
                                  LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        static const char *const by_run[] = {
                SCALED("1e34") WEIGHT("w", "levels") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
                SCALED("1e39") WEIGHT("w", "levels") LINEAR("y", "d", "w") OUTPUT("\"%y\""),
        };
        for (size_t i = 0; i < ARRAY_LENGTH(by_run); i++) {
                try_graph("a large scale of the run", LIST("5,20"), LIST(STATES), by_run[i],
                          (Want){ 0, 1, 0 });
                try_graph("one term", LIST("5,1"), LIST("levels:12,1", "var:12", "b:12"), by_run[i],
                          (Want){ 0, 1, 0 });
        }
}

// Levels of int8 whose zero point, -5 or so, is cast to `dtype`.
#define CAST_ZERO(dtype)                                                                                     \
        QUANT("q", "quantize_per_tensor.default", "\"%x0\", 0.01, 0, " INT8)                                 \
        CALL("m", "mean.default", "\"%x0\"")                                                                 \
        CALL("a", "add.Tensor", "\"%m\", -5")                                                                \
        CAST("i", "a", "int64")                                                                              \
        CALL("c", "clamp.default", "\"%i\", -128, 127")                                                      \
        CAST("z", "c", dtype)                                                                                \
        CAST("f", "q", "float32")                                                                            \
        CALL("e", "sub.Tensor", "\"%f\", \"%z\"")                                                            \
        CALL("d", "mul.Tensor", "\"%e\", 0.01")                                                              \
        WEIGHT("w", "levels") LINEAR("y", "d", "w") OUTPUT("\"%y\"")

Test(quantized, zero_points_of_a_run_that_casts_wrap_are_no_levels)
{
        static const char *const wraps[] = { CAST_ZERO("uint8"), CAST_ZERO("uint16"), CAST_ZERO("uint32") };
        for (size_t i = 0; i < ARRAY_LENGTH(wraps); i++)
                try_graph("a zero point that wraps", LIST("5,20"), LIST(STATES), wraps[i], (Want){ 0, 0, 1 });
        static const char *const keeps[] = { CAST_ZERO("int8"), CAST_ZERO("int16"), CAST_ZERO("int32"),
                                             CAST_ZERO("int64") };
        for (size_t i = 0; i < ARRAY_LENGTH(keeps); i++)
                try_graph("a zero point that stays", LIST("5,20"), LIST(STATES), keeps[i], (Want){ 0, 1, 0 });
}

// Half of -5.
Test(quantized, zero_points_of_a_run_that_are_views_of_other_numbers_are_no_levels)
{
        try_graph("the low half", LIST("5,20"), LIST(STATES),
                  QUANT("q", "quantize_per_tensor.default", "\"%x0\", 0.01, 0, " INT8)
                          CALL("m", "mean.default", "\"%x0\"") CALL("a", "add.Tensor", "\"%m\", -5")
                                  CAST("i", "a", "int64") CALL("o", "unsqueeze.default", "\"%i\", 0") CALL(
                                          "c", "clamp.default", "\"%o\", -128, 127")
                                          CALL("h", "view.dtype", "\"%c\", {\"$dtype\": \"uint32\"}") CALL(
                                                  "z", "select.int", "\"%h\", 0, 0") CAST("f", "q", "float32")
                                                  CALL("e", "sub.Tensor", "\"%f\", \"%z\"")
                                                          CALL("d", "mul.Tensor", "\"%e\", 0.01")
                                                                  WEIGHT("w", "levels") LINEAR("y", "d", "w")
                                                                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
}

// Casting to integers cuts fractions off.
Test(quantized, zero_points_between_levels_are_cut_off)
{
        try_graph("uint8", LIST("5,20"), LIST("z:1"),
                  CALL("a", "abs.default", "\"%z\"") CALL("h", "sum.default", "\"%a\"")
                          CALL("t", "add.Tensor", "\"%h\", 2.6") CALL("s", "mul.Tensor", "\"%h\", 0.1")
                                  QUANT("q", "quantize_per_tensor.tensor", "\"%x0\", \"%s\", \"%t\", " UINT8)
                                          OUTPUT("\"%q\""),
                  (Want){ 0, 0, 0 });
}

// A weight with a zero point is made again, once for all products that read it.
Test(quantized, products_share_what_is_made_of_a_weight)
{
        const char *nodes = Q("q", "x0") DQ("d", "q")
                QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 0.001, 1, " INT8)
                        LINEAR("y", "d", "w") LINEAR("v", "d", "w") CALL("r", "relu.default", "\"%v\"")
                                OUTPUT("[\"%y\", \"%r\"]");
        Made made = made_graph(LIST("5,200"), LIST("levels:120,200", "b:120"), nodes);
        ValueSpan span = { made.inputs, made.n_inputs };
        CompileOptions options = { .n_threads = 1 };
        Program *program;
        cr_assert_eq(compile_graph(made.graph, span, &options, NULL, &program), STATUS_OK);
        const Recorded *weights[2] = { 0 };
        uint32_t n = 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                if (call != NULL && strstr(call->call.schema->name, "quantized_linear") != NULL) {
                        cr_assert_lt(n, 2);
                        weights[n++] = recorded_of(call->call.args[LEVELS_WEIGHT].tensor);
                }
        }
        cr_expect(n == 2 && weights[0] == weights[1]);
        program_unref(program);
        made_deinit(&made);
}

// ---- convolutions ----
#define CONV(name, x, more)  CALL(name, "conv2d.default", "\"%" x "\", \"%w\", \"%b\"" more)
#define KERNELS              "levels:6,4,3,3", "var:6", "b:6"
#define LEVELS_POOL(name, x) CALL(name, "max_pool2d.default", "\"%" x "\", [3, 3], [2, 2], [1, 1]")

static uint32_t count_named(const char *const *inputs, const char *const *states, const char *nodes,
                            const char *name)
{
        Made made = made_graph(inputs, states, nodes);
        ValueSpan span = { made.inputs, made.n_inputs };
        CompileOptions options = { .n_threads = 1 };
        Program *program;
        uint32_t n = 0;
        cr_assert_eq(compile_graph(made.graph, span, &options, NULL, &program), STATUS_OK);
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                n += call != NULL && strcmp(call->call.schema->name, name) == 0;
        }
        program_unref(program);
        made_deinit(&made);
        return n;
}

Test(quantized, convolutions_between_levels_hand_on_levels)
{
        try_graph("two convolutions", LIST("2,4,9,8"), LIST(KERNELS, "levels2:5,6,1,1", "var2:5", "b2:5"),
                  BEGIN CONV("y", "d", ", [2, 1], [1, 2]") CALL("r", "relu.default", "\"%y\"") Q("q2", "r")
                          DQ("d2", "q2") QUANT("w2", "dequantize_per_channel.default",
                                               "\"%levels2\", \"%var2\", null, 0, " INT8)
                                  CALL("z", "conv2d.default", "\"%d2\", \"%w2\", \"%b2\"") OUTPUT("\"%z\""),
                  (Want){ 0, 2, 0 });
        try_graph("a residual of floats, a clamp", LIST("2,4,9,8", "2,6,9,8"), LIST(KERNELS),
                  BEGIN CONV("y", "d", ", [1, 1], [1, 1]") CALL("s", "add.Tensor", "\"%x1\", \"%y\"")
                          CALL("c", "hardtanh.default", "\"%s\", -0.5, 0.7") OUTPUT("\"%c\""),
                  (Want){ 0, 1, 0 });
        try_graph("a residual of levels", LIST("2,4,9,8", "2,6,9,8"), LIST(KERNELS),
                  BEGIN Q("p", "x1") DQ("e", "p") CONV("y", "d", ", [1, 1], [1, 1]")
                          CALL("s", "add.Tensor", "\"%y\", \"%e\"") CALL("r", "relu.default", "\"%s\"")
                                  Q("q2", "r") OUTPUT("\"%q2\""),
                  (Want){ 0, 1, 0 });
        try_graph("a kernel for each channel", LIST("2,6,9,8"), LIST("levels:6,1,3,3", "var:6", "b:6"),
                  BEGIN CONV("y", "d", ", [2, 1], [1, 1], [1, 2], 6")
                          CALL("c", "hardtanh.default", "\"%y\", 0.0, 6.0") Q("q2", "c") OUTPUT("\"%q2\""),
                  (Want){ 0, 1, 0 });
        try_graph("one scale, padding named", LIST("1,4,5,8"), LIST("levels:6,4,3,3", "b:6"),
                  Q("q", "x0") DQ("d", "q")
                          QUANT("w", "dequantize_per_tensor.default", "\"%levels\", 0.02, 0, " INT8)
                                  CALL("y", "conv2d.padding", "\"%d\", \"%w\", \"%b\", [1, 1], \"same\"")
                                          OUTPUT("\"%y\""),
                  (Want){ 0, 1, 0 });
}

Test(quantized, levels_are_pooled_as_levels)
{
        const char *nodes = BEGIN CONV("y", "d", "") CALL("r", "relu.default", "\"%y\"") Q("q2", "r")
                DQ("d2", "q2") LEVELS_POOL("m", "d2") Q("q3", "m") OUTPUT("\"%q3\"");
        try_graph("a pool between levels", LIST("2,4,9,8"), LIST(KERNELS), nodes, (Want){ 0, 1, 0 });
        cr_expect_eq(count_named(LIST("2,4,9,8"), LIST(KERNELS), nodes, "max_pool2d"), 1);
        // the input, and nothing behind the pool
        cr_expect_eq(count_named(LIST("2,4,9,8"), LIST(KERNELS), nodes, "quantize"), 1);
        // other levels come out
        try_graph("a pool to other levels", LIST("2,4,9,8"), LIST(KERNELS),
                  BEGIN LEVELS_POOL("m", "d") QUANT("q3", "quantize_per_tensor.default",
                                                    "\"%m\", 0.013, 100, " UINT8) OUTPUT("\"%q3\""),
                  (Want){ 0, 0, 0 });
        try_graph("a pool of a negative scale", LIST("2,4,9,8"), LIST(KERNELS),
                  Q("q", "x0") QUANT("d", "dequantize_per_tensor.default", "\"%q\", -0.01, 120, " UINT8)
                          LEVELS_POOL("m", "d") QUANT("q3", "quantize_per_tensor.default",
                                                      "\"%m\", -0.01, 120, " UINT8) OUTPUT("\"%q3\""),
                  (Want){ 0, 0, 0 });
}

Test(quantized, convolutions_that_sums_of_levels_do_not_mean_stay_in_floats)
{
        try_graph("groups", LIST("1,8,5,8"), LIST(KERNELS),
                  BEGIN CONV("y", "d", ", [1, 1], [1, 1], [1, 1], 2") OUTPUT("\"%y\""), (Want){ 0, 0, 1 });
        try_graph("a scale for each input channel", LIST("1,4,5,8"), LIST(KERNELS, "var4:4"),
                  Q("q", "x0") DQ("d", "q") QUANT("w", "dequantize_per_channel.default",
                                                  "\"%levels\", \"%var4\", null, 1, " INT8) CONV("y", "d", "")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a scale that is not finite", LIST("1,4,5,8"), LIST(KERNELS),
                  Q("q", "x0") OTHER_DQ("1e39", "0") WEIGHT("w", "levels") CONV("y", "d", "")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a scale whose terms round to nothing", LIST("1,4,5,8"), LIST(KERNELS),
                  Q("q", "x0") OTHER_DQ("1e-39", "0") WEIGHT("w", "levels") CONV("y", "d", "")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
        try_graph("a zero point that is no level", LIST("1,4,5,8"), LIST(KERNELS),
                  Q("q", "x0") OTHER_DQ("0.01", "300") WEIGHT("w", "levels") CONV("y", "d", "")
                          OUTPUT("\"%y\""),
                  (Want){ 0, 0, 1 });
}
