// SPDX-License-Identifier: Apache-2.0
// conv_passes.c: what passes make of convolutions, linear layers and attention: the instructions
// that are left, and the numbers of an eager run.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/base/isa.h"
#include "core/base/limits.h"
#include "core/targets/targets.h"
#include "tests/passes/try_graph.h"

TestSuite(conv_passes, .init = made_start, .timeout = 60);

#define NORM(name, in)                                                                                       \
        CALL(name, "batch_norm.default",                                                                     \
             "\"%" in "\", \"%g\", \"%b\", \"%mean\", \"%var\", false, 0.1, 1e-05, true")
#define NORM_STATES "g:6", "b:6", "mean:6", "var:6"

Test(conv_passes, batch_norm_goes_into_the_convolution_before_it)
{
        try_graph("training IR", LIST("2,4,9,9"), LIST("w:6,4,3,3", NORM_STATES),
                  CONV("c", "x0", "w") NORM("n", "c") OUTPUT("\"%n\""), 1);
        try_graph(
                "core IR", LIST("2,4,9,9"), LIST("w:6,4,3,3", "k:6", NORM_STATES),
                CALL("c", "convolution.default",
                     "\"%x0\", \"%w\", \"%k\", [2, 2], [1, 1], [1, 1], false, [0, 0], 1")
                        CALL("n", "_native_batch_norm_legit_no_training.default",
                             "\"%c\", \"%g\", \"%b\", \"%mean\", \"%var\", 0.1, 1e-05") "{\"name\": \"i\", "
                                                                                        "\"op\": "
                                                                                        "\"call_function\", "
                                                                                        "\"target\": "
                                                                                        "\"_operator."
                                                                                        "getitem\", "
                                                                                        "\"args\": "
                                                                                        "[\"%n\", "
                                                                                        "0]}," OUTPUT(
                                                                                                "\"%i\""),
                1);
        try_graph("groups, no affine", LIST("1,4,9,9"), LIST("w:6,2,3,3", NORM_STATES),
                  CALL("c", "conv2d.padding", "\"%x0\", \"%w\", null, [1, 1], \"same\", [1, 1], 2")
                          CALL("n", "batch_norm.default",
                               "\"%c\", null, null, \"%mean\", \"%var\", false, 0.1, 1e-05, true")
                                  OUTPUT("\"%n\""),
                  1);
        try_graph("transposed", LIST("1,4,9,9"), LIST("w:4,6,3,3", NORM_STATES),
                  CALL("c", "conv_transpose2d.input", "\"%x0\", \"%w\"") NORM("n", "c") OUTPUT("\"%n\""), 1);
        try_graph("one dimension", LIST("2,4,9"), LIST("w:6,4,3", NORM_STATES),
                  CALL("c", "conv1d.default", "\"%x0\", \"%w\"") NORM("n", "c") OUTPUT("\"%n\""), 1);
}

// With an eps as large as the variances, results without it differ in the first digit.
Test(conv_passes, folded_batch_norm_adds_eps_to_the_variance)
{
#define WIDE_NORM(name, in, target, rest)                                                                    \
        CALL(name, target, "\"%" in "\", \"%g\", \"%b\", \"%mean\", \"%var\", " rest)
        try_graph("convolution", LIST("2,4,9,9"), LIST("w:6,4,3,3", NORM_STATES),
                  CONV("c", "x0", "w") WIDE_NORM("n", "c", "batch_norm.default", "false, 0.1, 0.75, true")
                          OUTPUT("\"%n\""),
                  1);
        try_graph("linear", LIST("5,4"), LIST("w:6,4", "k:6", NORM_STATES),
                  CALL("c", "linear.default", "\"%x0\", \"%w\", \"%k\"")
                          WIDE_NORM("n", "c", "batch_norm.default", "false, 0.1, 0.75, true")
                                  OUTPUT("\"%n\""),
                  1);
        try_graph("core IR", LIST("2,4,9,9"), LIST("w:6,4,3,3", NORM_STATES),
                  CONV("c", "x0", "w") WIDE_NORM(
                          "n", "c", "_native_batch_norm_legit_no_training.default",
                          "0.1, 0.75") "{\"name\": \"i\", \"op\": \"call_function\", \"target\": "
                                       "\"_operator.getitem\", \"args\": [\"%n\", 0]}," OUTPUT("\"%i\""),
                  1);
#undef WIDE_NORM
}

Test(conv_passes, batch_norm_goes_into_linear_and_addmm)
{
        try_graph("linear", LIST("5,4"), LIST("w:6,4", "k:6", NORM_STATES),
                  CALL("c", "linear.default", "\"%x0\", \"%w\", \"%k\"") NORM("n", "c") OUTPUT("\"%n\""), 1);
        try_graph("addmm", LIST("5,4"), LIST("w:6,4", "k:6", NORM_STATES),
                  CALL("t", "t.default", "\"%w\"") CALL("c", "addmm.default", "\"%k\", \"%x0\", \"%t\"")
                          NORM("n", "c") OUTPUT("\"%n\""),
                  1);
        try_graph("channels are not the features", LIST("5,6,4"), LIST("w:6,4", NORM_STATES),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") NORM("n", "c") OUTPUT("\"%n\""), 2);
}

Test(conv_passes, constants_per_channel_go_into_the_convolution)
{
        try_graph("mul, add", LIST("2,4,9,9"), LIST("w:6,4,3,3", "m:1,6,1,1", "a:6,1,1"),
                  CONV("c", "x0", "w") CALL("p", "mul.Tensor", "\"%m\", \"%c\"")
                          CALL("q", "add.Tensor", "\"%p\", \"%a\"") CALL("r", "mul.Tensor", "\"%q\", 0.5")
                                  OUTPUT("\"%r\""),
                  1);
        try_graph("per column stays", LIST("1,4,9,9"), LIST("w:6,4,3,3", "m:9"),
                  CONV("c", "x0", "w") CALL("p", "mul.Tensor", "\"%c\", \"%m\"") OUTPUT("\"%p\""), 2);
}

Test(conv_passes, statistics_that_overflow_stay_as_they_are)
{
        Made made = made_graph(LIST("1,4,9,9"), LIST("w:6,4,3,3", NORM_STATES),
                               CONV("c", "x0", "w") NORM("n", "c") OUTPUT("\"%n\""));
        Tensor *g = graph_state(made.graph, "g")->tensor;
        ((float *)tensor_data(g))[0] = INFINITY;
        check_made(&made, 2, "infinite weight");
        made_deinit(&made);
}

Test(conv_passes, zeros_around_an_image_become_padding_of_the_convolution)
{
#define PAD(pad, rest) CALL("p", "constant_pad_nd.default", "\"%x0\", [" pad "]" rest)
        const char *const sizes = "1,4,9,9", *const weight = "w:6,4,3,3";
        try_graph("each side its own", LIST(sizes), LIST(weight),
                  PAD("0, 1, 1, 1", "") CONV("c", "p", "w") OUTPUT("\"%c\""), 1);
        try_graph("windows of padding alone", LIST(sizes), LIST(weight),
                  PAD("0, 1, 2, 3", "") CONV("c", "p", "w") OUTPUT("\"%c\""), 2);
        try_graph("strided, activated, added to the convolution's own", LIST(sizes), LIST("w:4,1,3,3"),
                  PAD("0, 1, 0, 1", ", 0.0")
                          CALL("c", "conv2d.default", "\"%p\", \"%w\", null, [2, 2], [1, 1], [1, 1], 4")
                                  CALL("a", "relu.default", "\"%c\"") OUTPUT("\"%a\""),
                  1);
        try_graph("one dimension", LIST("2,4,19"), LIST("w:6,4,3"),
                  PAD("2, 0", "") CALL("c", "conv1d.default", "\"%p\", \"%w\"") OUTPUT("\"%c\""), 1);
        try_graph("channels", LIST(sizes), LIST("w:6,6,3,3"),
                  PAD("0, 0, 0, 0, 1, 1", "") CONV("c", "p", "w") OUTPUT("\"%c\""), 2);
        try_graph("ones", LIST(sizes), LIST(weight), PAD("1, 1", ", 1") CONV("c", "p", "w") OUTPUT("\"%c\""),
                  2);
        try_graph("cut", LIST(sizes), LIST(weight), PAD("-1, 1", "") CONV("c", "p", "w") OUTPUT("\"%c\""), 2);
        try_graph("two readers", LIST(sizes), LIST(weight),
                  PAD("1, 1", "") CONV("c", "p", "w") OUTPUT("[\"%c\", \"%p\"]"), 2);
        Made made =
                made_graph(LIST(sizes), LIST(weight), PAD("1, 1", "") CONV("c", "p", "w") OUTPUT("\"%c\""));
        ((float *)tensor_data(graph_state(made.graph, "w")->tensor))[3] = INFINITY;
        check_made(&made, 2, "infinite weight");
        made_deinit(&made);
#undef PAD
}

Test(conv_passes, activations_become_part_of_the_product)
{
        static const char *const calls[] = {
                "relu.default\", \"args\": [\"%c\"]",
                "relu_.default\", \"args\": [\"%c\"]",
                "silu.default\", \"args\": [\"%c\"]",
                "gelu.default\", \"args\": [\"%c\"]",
                "gelu.default\", \"args\": [\"%c\"], \"kwargs\": {\"approximate\": \"tanh\"}",
                "tanh.default\", \"args\": [\"%c\"]",
                "sigmoid.default\", \"args\": [\"%c\"]",
                "hardswish.default\", \"args\": [\"%c\"]",
                "hardtanh.default\", \"args\": [\"%c\", 0, 6]",
                "clamp.default\", \"args\": [\"%c\", null, 0.25]",
                "relu6.default\", \"args\": [\"%c\"]"
        };
        for (size_t i = 0; i < ARRAY_LENGTH(calls); i++) {
                char nodes[600];
                snprintf(nodes, sizeof(nodes),
                         "%s{\"name\": \"a\", \"op\": \"call_function\", \"target\": \"torch.ops.aten.%s},%s",
                         CONV("c", "x0", "w"), calls[i], OUTPUT("\"%a\""));
                Made made = made_graph(LIST("1,4,9,9"), LIST("w:6,4,3,3"), nodes);
                ((float *)tensor_data(made.inputs[0].tensor))[40] = NAN;
                ((float *)tensor_data(made.inputs[0].tensor))[200] = INFINITY;
                check_made(&made, 1, calls[i]);
                made_deinit(&made);
                snprintf(nodes, sizeof(nodes),
                         "%s{\"name\": \"a\", \"op\": \"call_function\", \"target\": \"torch.ops.aten.%s},%s",
                         CALL("c", "linear.default", "\"%x0\", \"%w\""), calls[i], OUTPUT("\"%a\""));
                try_graph(calls[i], LIST("3,40"), LIST("w:20,40"), nodes, 1);
        }
}

Test(conv_passes, residuals_are_added_by_the_product_and_activated)
{
        try_graph("block", LIST("1,6,9,9"), LIST("w:6,6,3,3", "v:6,6,3,3"),
                  CONV("c", "x0", "w") CALL("r", "relu.default", "\"%c\"") CONV("d", "r", "v")
                          CALL("s", "add.Tensor", "\"%d\", \"%x0\"") CALL("t", "relu.default", "\"%s\"")
                                  OUTPUT("\"%t\""),
                  4);
        try_graph("in place", LIST("1,6,9,9"), LIST("w:6,6,3,3", "v:6,6,3,3"),
                  CONV("c", "x0", "w") CALL("r", "relu_.default", "\"%c\"") CONV("d", "r", "v")
                          CALL("s", "add_.Tensor", "\"%d\", \"%x0\"") CALL("t", "relu_.default", "\"%s\"")
                                  OUTPUT("\"%t\""),
                  4);
        try_graph("two products", LIST("1,6,9,9"), LIST("w:6,6,3,3", "v:6,6,3,3"),
                  CONV("c", "x0", "w") CONV("d", "x0", "v") CALL("s", "add.Tensor", "\"%c\", \"%d\"")
                          OUTPUT("\"%s\""),
                  4);
        try_graph("scaled residual stays", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default",
                       "\"%x0\", \"%w\"") "{\"name\": \"s\", \"op\": \"call_function\", \"target\": "
                                          "\"torch.ops.aten.add.Tensor\", \"args\": [\"%c\", "
                                          "\"%x0\"], \"kwargs\": {\"alpha\": 2}}," OUTPUT("\"%s\""),
                  2);
        try_graph("broadcast stays", LIST("4,6", "6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("s", "add.Tensor", "\"%c\", \"%x1\"")
                          OUTPUT("\"%s\""),
                  2);
        try_graph("linear", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("s", "add.Tensor", "\"%x0\", \"%c\"")
                          OUTPUT("\"%s\""),
                  1);
}

Test(conv_passes, products_that_somebody_else_reads_stay)
{
        try_graph("result", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("r", "relu.default", "\"%c\"")
                          OUTPUT("[\"%c\", \"%r\"]"),
                  2);
        try_graph("two readers", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("r", "relu.default", "\"%c\"")
                          CALL("s", "sigmoid.default", "\"%c\"") OUTPUT("[\"%s\", \"%r\"]"),
                  3);
        try_graph("view", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("v", "t.default", "\"%c\"")
                          CALL("r", "relu.default", "\"%c\"") OUTPUT("[\"%v\", \"%r\"]"),
                  2);
        // relu_ is seen through a view that was made before it.
        try_graph("view of what is written", LIST("4,6"), LIST("w:6,6"),
                  CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("v", "t.default", "\"%c\"")
                          CALL("r", "relu_.default", "\"%c\"") OUTPUT("[\"%v\", \"%r\"]"),
                  2);
}

Test(conv_passes, a_product_does_not_move_behind_a_write_to_its_input)
{
        Made made = made_graph(
                LIST("4,6"), LIST("w:6,6"),
                CALL("c", "linear.default", "\"%x0\", \"%w\"") CALL("z", "zero_.default", "\"%x0\"")
                        CALL("r", "relu.default", "\"%c\"") OUTPUT("[\"%r\", \"%z\"]"));
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        cr_expect_eq(run_both(made.graph, (ValueSpan){ made.inputs, 1 }, &options, 1e-5, 1e-5, words),
                     BOTH_EQUAL, "%s", words);
        made_deinit(&made);
}

Test(conv_passes, a_kernel_that_covers_its_input_is_a_product)
{
        // as it comes, behind a convolution that left channels_last, with a residual and a clamp
        try_graph("alone", LIST("3,40,7,5"), LIST("w:24,40,7,5", "b:24"),
                  CALL("c", "conv2d.default", "\"%x0\", \"%w\", \"%b\"") OUTPUT("\"%c\""), 1);
        try_graph("after a convolution", LIST("3,16,7,7"), LIST("v:32,16,3,3", "w:24,32,7,7"),
                  CONV("c", "x0", "v") CALL("d", "conv2d.default", "\"%c\", \"%w\"") OUTPUT("\"%d\""), 3);
        try_graph("residual and relu", LIST("2,40,7,7", "2,24,1,1"), LIST("w:24,40,7,7"),
                  CALL("c", "conv2d.default", "\"%x0\", \"%w\"") CALL("s", "add.Tensor", "\"%c\", \"%x1\"")
                          CALL("r", "relu.default", "\"%s\"") OUTPUT("\"%r\""),
                  1);
}

Test(conv_passes, a_kernel_of_one_tap_over_rows_is_a_product)
{
        const char *const weights[] = { "w:24,40,1", "b:24", NULL };
        const char *turned = CALL("t", "transpose.int", "\"%x0\", 1, 2")
                CALL("c", "conv1d.default", "\"%t\", \"%w\", \"%b\"");
        static const struct {
                const char *what, *nodes;
                uint32_t n_code;
        } cases[] = {
                { "alone", OUTPUT("\"%c\""), 2 },
                { "residual and relu",
                  CALL("s", "add.Tensor", "\"%c\", \"%x1\"") CALL("r", "relu.default", "\"%s\"")
                          OUTPUT("\"%r\""),
                  2 },
                { "silu", CALL("r", "silu.default", "\"%c\"") OUTPUT("\"%r\""), 2 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text nodes = { 0 };
                text_add(&nodes, turned);
                text_add(&nodes, cases[i].nodes);
                try_graph(cases[i].what, LIST("3,37,40", "3,24,37"), weights, nodes.data, cases[i].n_code);
                text_deinit(&nodes);
        }
        try_graph("rows apart", LIST("2,9,48"), LIST("w:24,40,1"),
                  CALL("s", "slice.Tensor", "\"%x0\", 1, 2, 9") CALL("u", "slice.Tensor", "\"%s\", 2, 8, 48")
                          CALL("t", "transpose.int", "\"%u\", 1, 2")
                                  CALL("c", "conv1d.default", "\"%t\", \"%w\"") OUTPUT("\"%c\""),
                  2);
        try_graph("one sample", LIST("37,40"), LIST("w:24,40,1"),
                  CALL("t", "transpose.int", "\"%x0\", 0, 1") CALL("c", "conv1d.default", "\"%t\", \"%w\"")
                          OUTPUT("\"%c\""),
                  1);
        try_graph("a volume", LIST("2,3,4,5,40"), LIST("w:24,40,1,1,1"),
                  CALL("t", "permute.default", "\"%x0\", [0, 4, 1, 2, 3]")
                          CALL("c", "conv3d.default", "\"%t\", \"%w\"") OUTPUT("\"%c\""),
                  1);
}

// Weights of 351 KiB: more than direct convolutions take.
Test(conv_passes, kernels_of_one_tap_with_many_weights_are_products)
{
        const char *const weights[] = { "w:300,300,1,1", "b:300", NULL };
        const char *twice = CALL("c", "conv2d.default", "\"%x0\", \"%w\", \"%b\"")
                CALL("d", "conv2d.default", "\"%c\", \"%w\", \"%b\"");
        static const struct {
                const char *what, *nodes;
        } cases[] = {
                { "alone", OUTPUT("\"%d\"") },
                { "residual and relu", CALL("s", "add.Tensor", "\"%d\", \"%c\"")
                                               CALL("r", "relu.default", "\"%s\"") OUTPUT("\"%r\"") },
                { "silu", CALL("r", "silu.default", "\"%d\"") OUTPUT("\"%r\"") },
        };
        static const char *const inputs[] = { "2,300,5,7", "1,300,1,2" };
        for (size_t i = 0; i < ARRAY_LENGTH(cases) * ARRAY_LENGTH(inputs); i++) {
                Text nodes = { 0 };
                text_add(&nodes, twice);
                text_add(&nodes, cases[i / ARRAY_LENGTH(inputs)].nodes);
                try_graph(cases[i / ARRAY_LENGTH(inputs)].what, LIST(inputs[i % ARRAY_LENGTH(inputs)]),
                          weights, nodes.data, 4);
                text_deinit(&nodes);
        }
}

// Instructions whose kernel begins with `kernel`.
static uint32_t count_kernels(const Made *made, const char *kernel)
{
        CompileOptions options = { .n_threads = 1 };
        Program *program;
        uint32_t n = 0;
        cr_assert_eq(compile_graph(made->graph, (ValueSpan){ made->inputs, made->n_inputs }, &options, NULL,
                                   &program),
                     STATUS_OK);
        for (uint32_t i = 0; i < program->n_code; i++)
                n += strncmp(program->code[i].name, kernel, strlen(kernel)) == 0;
        program_unref(program);
        return n;
}

Test(conv_passes, kernels_of_one_tap_with_a_stride_are_products_of_the_pixels_they_read)
{
        const char *const weights[] = { "w:520,520,1,1", "b:520", NULL };
        static const char *const strides[] = { "[2, 2]", "[1, 2]", "[3, 1]" };
        for (size_t i = 0; i < ARRAY_LENGTH(strides); i++) {
                Text nodes = { 0 };
                text_add(&nodes, CALL("c", "conv2d.default", "\"%x0\", \"%w\", \"%b\""));
                text_addf(&nodes, CALL("d", "conv2d.default", "\"%%c\", \"%%w\", \"%%b\", %s"), strides[i]);
                text_add(&nodes, CALL("r", "silu.default", "\"%d\"") OUTPUT("\"%r\""));
                Made made = made_graph(LIST("2,520,5,8"), weights, nodes.data);
                check_made(&made, 4, strides[i]);
                if (isa_machine() >= ISA_AVX2)
                        cr_expect_eq(count_kernels(&made, "packed"), 2, "%s", strides[i]);
                made_deinit(&made);
                text_deinit(&nodes);
        }
}

// What is packed is shared between constants at one address, but not with those that are larger.
Test(conv_passes, parts_of_a_weight_that_begin_where_it_does_are_weights_of_their_own)
{
        const char *const weights[] = { "w:64,40,3,3", "v:30,40,1,1", NULL };
        try_graph("3x3 taps", LIST("1,40,16,16"), weights,
                  CALL("s", "slice.Tensor", "\"%w\", 0, 0, 50") CONV("c", "x0", "s") CONV("d", "x0", "w")
                          OUTPUT("[\"%c\", \"%d\"]"),
                  5);
        try_graph("groups", LIST("1,120,16,16"), LIST("w:84,40,3,3"),
                  CALL("s", "slice.Tensor", "\"%w\", 0, 0, 81") CALL(
                          "c", "conv2d.default", "\"%x0\", \"%s\", null, [1, 1], [1, 1], [1, 1], 3")
                          CALL("d", "conv2d.default", "\"%x0\", \"%w\", null, [1, 1], [1, 1], [1, 1], 3")
                                  OUTPUT("[\"%c\", \"%d\"]"),
                  5);
        try_graph("1x1 taps", LIST("1,40,12,12"), weights,
                  CALL("s", "slice.Tensor", "\"%v\", 0, 0, 17") CALL("c", "conv2d.default", "\"%x0\", \"%s\"")
                          CALL("d", "conv2d.default", "\"%x0\", \"%v\"") OUTPUT("[\"%c\", \"%d\"]"),
                  5);
}

// ---- ResNet-18 ----
static Storage *read_file(const char *path)
{
        FILE *file = fopen(path, "rb");
        Storage *bytes;
        cr_assert_not_null(file, "%s", path);
        fseek(file, 0, SEEK_END);
        long n = ftell(file);
        rewind(file);
        cr_assert_eq(storage_new((size_t)n, false, NULL, &bytes), STATUS_OK);
        cr_assert_eq(fread(bytes->data, 1, (size_t)n, file), (size_t)n);
        fclose(file);
        return bytes;
}

static bool is_norm_node(const Node *node)
{
        return node->op == OP_CALL_MODULE &&
               (strstr(node->target, "bn") != NULL || strstr(node->target, "downsample.1") != NULL);
}

Test(conv_passes, all_twenty_batch_norms_of_resnet18_are_folded)
{
        const char *weights = getenv("RESNET18_WEIGHTS");
        if (weights == NULL)
                cr_skip_test("RESNET18_WEIGHTS names the weights (the build makes them)");
        UploadPart parts[] = { { .name = "graph", .bytes = read_file(RESNET18) },
                               { .name = "weights", .bytes = read_file(weights) } };
        Made made = { .n_inputs = 1 };
        TensorMeta meta;
        Tensor *tensor;
        Program *program;
        cr_assert_eq(upload_decode(parts, 2, NULL, true, &made.graph), STATUS_OK, "%s",
                     failure_current()->message);
        meta_init(&meta, DTYPE_F32, 4, (int64_t[]){ 1, 3, 224, 224 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        made.inputs[0] = value_tensor_take(tensor);
        CompileOptions options = { .n_threads = 1 };
        cr_assert_eq(compile_graph(made.graph, (ValueSpan){ made.inputs, 1 }, &options, NULL, &program),
                     STATUS_OK);
        int n_folded = 0, n_winograd = 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                for (uint32_t k = 0; call != NULL && k < call->n_nodes; k++)
                        n_folded +=
                                is_norm_node(call->nodes[k]) && strstr(call->overload->name, "conv") != NULL;
                n_winograd += strncmp(program->code[i].name, "winograd", 8) == 0;
        }
        cr_expect_eq(n_folded, 20);
        cr_expect_eq(n_winograd, 13,
                     "which convolutions take Winograd's way is a rule, not a matter of time: %d",
                     n_winograd);
        program_unref(program);
        storage_unref(parts[0].bytes);
        storage_unref(parts[1].bytes);
        made_deinit(&made);
}

// ---- cat made in place ----
#define POOL(name, kind, in) CALL(name, kind "_pool2d.default", "\"%" in "\", [3, 3], [1, 1], [1, 1]")

static void check_arena(const char *what, const char *input, const char *nodes, size_t arena_bytes)
{
        char words[600];
        Made made = made_graph(LIST(input), LIST("unused:1"), nodes);
        CompileOptions options = { .n_threads = 1 };
        ValueSpan inputs = { made.inputs, made.n_inputs };
        Program *program;
        cr_expect_eq(run_both(made.graph, inputs, &options, 0, 0, words), BOTH_EQUAL, "%s: %s", what, words);
        cr_assert_eq(compile_graph(made.graph, inputs, &options, NULL, &program), STATUS_OK);
        cr_expect_eq(program->figures.arena_bytes, arena_bytes, "%s: %zu bytes instead of %zu", what,
                     program->figures.arena_bytes, arena_bytes);
        program_unref(program);
        made_deinit(&made);
}

Test(conv_passes, what_is_made_for_a_cat_is_made_inside_it)
{
        enum { ONE = 4 * 8 * 8 * 4 };
        check_arena("both in the result", "1,4,8,8",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            OUTPUT("\"%c\""),
                    0);
        check_arena("both in a buffer", "1,4,8,8",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            POOL("d", "max", "c") OUTPUT("\"%d\""),
                    2 * ONE);
        check_arena("a cat of cats", "1,4,8,8",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            POOL("d", "max", "x0") CAT("e", "\"%d\", \"%c\", \"%x0\"", "1")
                                    POOL("f", "max", "e") OUTPUT("\"%f\""),
                    4 * ONE);
        check_arena("rows of the slices are apart", "2,4,8,8",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            OUTPUT("\"%c\""),
                    4 * ONE);
        check_arena("one twice", "1,4,8,8",
                    POOL("a", "max", "x0") CAT("c", "\"%a\", \"%a\"", "1") OUTPUT("\"%c\""), 0);
        check_arena("read afterwards", "1,4,8,8",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            POOL("d", "max", "a") OUTPUT("[\"%c\", \"%d\"]"),
                    ONE);
        check_arena("written in place before and after", "1,4,8,8",
                    POOL("a", "max", "x0") CALL("w", "relu_.default", "\"%a\"") POOL("b", "avg", "x0")
                            CAT("c", "\"%a\", \"%b\"", "1") CALL("v", "neg_.default", "\"%c\"")
                                    OUTPUT("\"%c\""),
                    0);
        check_arena("slices that do not begin at a multiple of 64 bytes", "1,1,3,3",
                    POOL("a", "max", "x0") POOL("b", "avg", "x0") CAT("c", "\"%a\", \"%b\"", "1")
                            OUTPUT("\"%c\""),
                    64);
}

Test(conv_passes, weights_that_are_made_from_weights_are_made_once)
{
        try_graph("standardised, more than 4 MB", LIST("2,1050"), LIST("w:1,1040,1050"),
                  CALL("n", "_native_batch_norm_legit.no_stats", "\"%w\", null, null, true, 0.0, 1e-05")
                          ITEM("i", "n", "0") CALL("v", "view.default", "\"%i\", [1040, 1050]")
                                  CALL("l", "linear.default", "\"%x0\", \"%v\"") OUTPUT("\"%l\""),
                  1);
}

// ---- groups that end in an operator on rows ----
Test(conv_passes, pointwise_groups_take_in_what_is_done_to_their_rows)
{
        static const struct {
                const char *name, *call;
        } tails[] = { { "softmax", CALL("t", "softmax.int", "\"%b\", -1") },
                      { "log_softmax", CALL("t", "_log_softmax.default", "\"%b\", 2, false") },
                      { "sum", CALL("t", "sum.dim_IntList", "\"%b\", [-1]") },
                      { "mean, kept", CALL("t", "mean.dim", "\"%b\", [1, 2], true") },
                      { "amax", CALL("t", "amax.default", "\"%b\", [-1], true") },
                      { "amin", CALL("t", "amin.default", "\"%b\", [2]") },
                      { "layer_norm", CALL("t", "layer_norm.default", "\"%b\", [40], \"%g\", \"%k\"") },
                      { "layer_norm over two", CALL("t", "layer_norm.default", "\"%b\", [7, 40]") },
                      { "rms_norm", CALL("t", "rms_norm.default", "\"%b\", [40], \"%g\"") } };
        for (size_t i = 0; i < ARRAY_LENGTH(tails); i++) {
                char nodes[1000];
                snprintf(nodes, sizeof(nodes), "%s%s%s",
                         CALL("a", "mul.Tensor", "\"%x0\", \"%x1\"") CALL("b", "tanh.default", "\"%a\""),
                         tails[i].call, OUTPUT("\"%t\""));
                try_graph(tails[i].name, LIST("30,7,40", "40"), LIST("g:40", "k:40"), nodes, 1);
        }
        try_graph("long rows, one operator", LIST("3,30000"), LIST("g:1"),
                  CALL("a", "sigmoid.default", "\"%x0\"") CALL("t", "sum.dim_IntList", "\"%a\", [1]")
                          OUTPUT("\"%t\""),
                  1);
        try_graph("the norm's weight is an operand of the group, too", LIST("30,40", "40"), LIST("g:1"),
                  CALL("a", "add.Tensor", "\"%x0\", \"%x1\"")
                          CALL("t", "layer_norm.default", "\"%a\", [40], \"%x1\"") OUTPUT("\"%t\""),
                  1);
}

Test(conv_passes, rows_that_others_read_or_that_lie_otherwise_stay_outside)
{
        try_graph("read again", LIST("30,40"), LIST("g:1"),
                  CALL("a", "tanh.default", "\"%x0\"") CALL("b", "neg.default", "\"%a\"")
                          CALL("t", "softmax.int", "\"%b\", -1") CALL("c", "mul.Tensor", "\"%t\", \"%b\"")
                                  OUTPUT("\"%c\""),
                  3);
        try_graph("an earlier member is read", LIST("30,40"), LIST("g:1"),
                  CALL("a", "tanh.default", "\"%x0\"") CALL("b", "neg.default", "\"%a\"")
                          CALL("t", "softmax.int", "\"%b\", -1") OUTPUT("[\"%t\", \"%a\"]"),
                  2);
        try_graph("another dimension", LIST("30,40"), LIST("g:1"),
                  CALL("a", "tanh.default", "\"%x0\"") CALL("t", "softmax.int", "\"%a\", 0") OUTPUT("\"%t\""),
                  2);
        try_graph("everything", LIST("30,40"), LIST("g:1"),
                  CALL("a", "tanh.default", "\"%x0\"") CALL("t", "sum.dim_IntList", "\"%a\", [0, 1]")
                          OUTPUT("\"%t\""),
                  2);
}

// ---- attention ----
#define SCORES  CALL("t", "transpose.int", "\"%x1\", -2, -1") CALL("s", "matmul.default", "\"%x0\", \"%t\"")
#define WEIGHED CALL("p", "softmax.int", "\"%m\", -1") CALL("o", "matmul.default", "\"%p\", \"%x1\"")

Test(conv_passes, attention_written_out_becomes_one_call)
{
        const char *const size = "2,3,9,8";
        try_graph("no scale, no mask", LIST(size, size), LIST(),
                  SCORES CALL("p", "softmax.int", "\"%s\", 3") CALL("o", "matmul.default", "\"%p\", \"%x1\"")
                          OUTPUT("\"%o\""),
                  1);
        try_graph("divided", LIST(size, "2,3,11,8"), LIST(),
                  SCORES CALL("m", "div.Tensor", "\"%s\", 2.5") WEIGHED OUTPUT("\"%o\""), 1);
        try_graph("a factor in front, core IR", LIST("6,9,8", "6,20,8"), LIST(),
                  CALL("t", "permute.default", "\"%x1\", [0, 2, 1]")
                          CALL("s", "bmm.default", "\"%x0\", \"%t\"") CALL("f", "mul.Scalar", "\"%s\", 0.3")
                                  CALL("p", "_softmax.default", "\"%f\", -1, false")
                                          CALL("o", "bmm.default", "\"%p\", \"%x1\"") OUTPUT("\"%o\""),
                  1);
        try_graph("a mask on either side, after the factor", LIST(size, size, "9,9"), LIST("w:3,1,9"),
                  SCORES CALL("f", "mul.Tensor", "\"%s\", 0.5") CALL("m", "add.Tensor", "\"%x2\", \"%f\"")
                          WEIGHED OUTPUT("\"%o\""),
                  1);
        try_graph("a mask of rows", LIST(size, size), LIST("w:3,1,9"),
                  SCORES CALL("m", "add.Tensor", "\"%s\", \"%w\"") WEIGHED OUTPUT("\"%o\""), 1);
        try_graph("other values, a shared key", LIST(size, "1,1,9,8", "2,3,9,5"), LIST(),
                  SCORES CALL("p", "softmax.int", "\"%s\", -1") CALL("o", "matmul.default", "\"%p\", \"%x2\"")
                          OUTPUT("\"%o\""),
                  1);
}

#define WINDOWS(shape, bias, mask)                                                                           \
        CALL("b", "add.Tensor", "\"%s\", \"%" bias "\"")                                                     \
        CALL("w", "view.default", "\"%b\", [" shape "]")                                                     \
        CALL("k", "add.Tensor", "\"%w\", \"%" mask "\"") CALL("m", "view.default", "\"%k\", [6, 3, 9, 9]")

// Masks are added up, once where they are constant; a factor of each head goes into the query.
Test(conv_passes, attention_with_two_masks_and_windows)
{
        const char *const size = "6,3,9,8", *const *inputs = LIST(size, size, "9,9");
        const char *const *states =
                LIST("bias:3,9,9", "mask:1,2,1,9,9", "rows:1,2,1,1,9", "all:6,3,9,9", "scale:3,1,1");
        try_graph("two masks", inputs, states,
                  SCORES CALL("b", "add.Tensor", "\"%s\", \"%bias\"")
                          CALL("m", "add.Tensor", "\"%b\", \"%x2\"") WEIGHED OUTPUT("\"%o\""),
                  2);
        try_graph("windows of three samples", inputs, states,
                  SCORES WINDOWS("3, 2, 3, 9, 9", "bias", "mask") WEIGHED OUTPUT("\"%o\""), 1);
        try_graph("a mask of rows", inputs, states,
                  SCORES WINDOWS("3, 2, 3, 9, 9", "bias", "rows") WEIGHED OUTPUT("\"%o\""), 1);
        try_graph("windows of one sample", LIST("2,3,9,8", "2,3,9,8"), states,
                  SCORES CALL("w", "view.default", "\"%s\", [1, 2, 3, 9, 9]")
                          CALL("k", "add.Tensor", "\"%mask\", \"%w\"")
                                  CALL("m", "view.default", "\"%k\", [2, 3, 9, 9]") WEIGHED OUTPUT("\"%o\""),
                  1);
        try_graph("one window", LIST("1,3,9,8", "1,3,9,8"), LIST("mask:1,1,1,9,9"),
                  SCORES CALL("w", "view.default", "\"%s\", [1, 1, 3, 9, 9]")
                          CALL("k", "add.Tensor", "\"%w\", \"%mask\"")
                                  CALL("m", "view.default", "\"%k\", [1, 3, 9, 9]") WEIGHED OUTPUT("\"%o\""),
                  1);
        try_graph("values of more dimensions", LIST(size, size, "2,6,3,9,5"), states,
                  SCORES WINDOWS("3, 2, 3, 9, 9", "bias", "mask") CALL("p", "softmax.int", "\"%m\", -1")
                          CALL("o", "matmul.default", "\"%p\", \"%x2\"") OUTPUT("\"%o\""),
                  5);
        try_graph("a query that windows share", LIST("3,9,8", size), states,
                  SCORES WINDOWS("3, 2, 3, 9, 9", "bias", "mask") WEIGHED OUTPUT("\"%o\""), 1);
        try_graph("a factor of each head", inputs, states,
                  SCORES CALL("f", "mul.Tensor", "\"%scale\", \"%s\"")
                          CALL("m", "add.Tensor", "\"%f\", \"%bias\"") WEIGHED OUTPUT("\"%o\""),
                  2);
        try_graph("a mask for all windows of all samples", inputs, states,
                  SCORES WINDOWS("3, 2, 3, 9, 9", "all", "mask") WEIGHED OUTPUT("\"%o\""), 5);
        try_graph("split elsewhere", inputs, LIST("bias:3,9,9", "other:3,1,9,9"),
                  SCORES WINDOWS("6, 3, 1, 9, 9", "bias", "other") WEIGHED OUTPUT("\"%o\""), 5);
        try_graph("few queries", LIST("6,3,4,8", size), LIST("mask:1,2,1,4,9"),
                  SCORES CALL("w", "view.default", "\"%s\", [3, 2, 3, 4, 9]")
                          CALL("k", "add.Tensor", "\"%w\", \"%mask\"")
                                  CALL("m", "view.default", "\"%k\", [6, 3, 4, 9]") WEIGHED OUTPUT("\"%o\""),
                  4);
}

// What a conversion of dtype leaves behind reads nothing.
Test(conv_passes, attention_whose_weights_have_a_dtype_asserted)
{
        try_graph("asserted", LIST("2,3,9,8", "2,3,9,8"), LIST(),
                  SCORES CALL("p", "softmax.int", "\"%s\", 3")
                          CALL("a", "_assert_tensor_metadata.default",
                               "\"%p\", null, null, {\"$dtype\": \"float32\"}")
                                  CALL("o", "matmul.default", "\"%p\", \"%x1\"") OUTPUT("\"%o\""),
                  1);
}

Test(conv_passes, attention_that_is_something_else_stays)
{
        const char *const size = "2,3,9,8";
        try_graph("weights are read", LIST(size, size), LIST(),
                  SCORES CALL("m", "div.Tensor", "\"%s\", 2.5") WEIGHED OUTPUT("[\"%o\", \"%p\"]"), 3);
        try_graph("another dimension", LIST(size, size), LIST(),
                  SCORES CALL("p", "softmax.int", "\"%s\", 2") CALL("o", "matmul.default", "\"%p\", \"%x1\"")
                          OUTPUT("\"%o\""),
                  3);
        try_graph("the mask widens the scores", LIST("9,8", "9,8", "4,9,9"), LIST(),
                  SCORES CALL("m", "add.Tensor", "\"%s\", \"%x2\"") WEIGHED OUTPUT("\"%o\""), 3);
        try_graph("a multiple of the mask", LIST(size, size, "9,9"), LIST(),
                  SCORES "{\"name\": \"m\", \"op\": \"call_function\", \"target\": "
                         "\"torch.ops.aten.add.Tensor\", "
                         "\"args\": [\"%s\", \"%x2\"], \"kwargs\": {\"alpha\": 2}}," WEIGHED OUTPUT("\"%o\""),
                  3);
        try_graph("few queries", LIST("2,3,4,8", size), LIST(),
                  SCORES CALL("p", "softmax.int", "\"%s\", 3") CALL("o", "matmul.default", "\"%p\", \"%x1\"")
                          OUTPUT("\"%o\""),
                  3);
        try_graph("nothing to divide by", LIST(size, size), LIST(),
                  SCORES CALL("m", "div.Tensor", "\"%s\", 0.0") WEIGHED OUTPUT("\"%o\""), 3);
}

// softmax over a row of -inf is NaN, which scaled_dot_product_attention makes zeros of.
Test(conv_passes, attention_written_out_keeps_rows_without_keys)
{
        Made made = made_graph(LIST("2,9,8", "2,9,8", "9,9"), LIST(),
                               SCORES CALL("m", "add.Tensor", "\"%s\", \"%x2\"") WEIGHED OUTPUT("\"%o\""));
        float *mask = tensor_data(made.inputs[2].tensor);
        for (int j = 0; j < 9; j++) {
                mask[9 + j] = -INFINITY;
                mask[27 + j] = j < 3 ? -INFINITY : mask[27 + j];
        }
        mask[45] = INFINITY;
        mask[63] = NAN;
        check_made(&made, 1, "rows without keys");
        made_deinit(&made);
}
