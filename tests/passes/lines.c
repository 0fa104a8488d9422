// SPDX-License-Identifier: Apache-2.0
// lines.c: 1-d convolutions that run on images, 3-d ones that stay channels_last, linear layers
// made of products, and in-place calls through views.
#include "tests/passes/try_graph.h"

TestSuite(lines, .init = made_start, .timeout = 120);

typedef struct Case {
        const char *what, *nodes;
        uint32_t n_code;
} Case;

static void try_cases(const Case *cases, size_t n, const char *const *inputs, const char *const *states)
{
        for (size_t i = 0; i < n; i++)
                try_graph(cases[i].what, inputs, states, cases[i].nodes, cases[i].n_code);
}

#define CONV1D(name, in, weight) CALL(name, "conv1d.default", "\"%" in "\", \"%" weight "\", null, [1], [1]")

Test(lines, convolutions_and_what_lies_between_them)
{
        static const Case cases[] = {
                { "activation and residual",
                  CONV1D("c", "x0", "w") CALL("r", "relu.default", "\"%c\"")
                          CALL("s", "add.Tensor", "\"%r\", \"%x0\"") CONV1D("d", "s", "w") OUTPUT("\"%d\""),
                  5 },
                { "strided, dilated, in groups",
                  CALL("c", "conv1d.default", "\"%x0\", \"%g\", \"%half\", [2], [3], [2], 4")
                          CALL("t", "gelu.default", "\"%c\"") OUTPUT("\"%t\""),
                  1 },
                { "depthwise",
                  CALL("c", "conv1d.default", "\"%x0\", \"%each\", null, [1], [1], [1], 32")
                          CONV1D("e", "c", "w") OUTPUT("\"%e\""),
                  4 },
                { "one tap",
                  CALL("c", "conv1d.default", "\"%x0\", \"%o\"") CALL("t", "tanh.default", "\"%c\"")
                          OUTPUT("[\"%t\", \"%c\"]"),
                  2 },
                { "as wide at both ends",
                  CALL("c", "conv1d.padding", "\"%x0\", \"%even\", \"%b\", [1], \"same\"")
                          CALL("t", "relu.default", "\"%c\"") OUTPUT("\"%t\""),
                  3 },
                { "padded before it",
                  CALL("p", "constant_pad_nd.default", "\"%x0\", [2, 1], 0.0")
                          CALL("c", "conv1d.default", "\"%p\", \"%w\", \"%b\"") OUTPUT("\"%c\""),
                  3 },
                { "padded with ones behind another",
                  CONV1D("c", "x0", "w") CALL("p", "constant_pad_nd.default", "\"%c\", [2, 1], 1.0")
                          CALL("e", "conv1d.default", "\"%p\", \"%w\"") OUTPUT("\"%e\""),
                  5 },
                { "transposed",
                  CONV1D("c", "x0", "w") CALL("t", "conv_transpose1d.default",
                                              "\"%c\", \"%even\", null, [2], [1], [1], 1, [1]")
                          CALL("l", "leaky_relu.default", "\"%t\"") OUTPUT("\"%l\""),
                  5 },
                { "gates",
                  CALL("c", "conv1d.default", "\"%x0\", \"%o\"") CALL("t", "glu.default", "\"%c\", 1")
                          CALL("e", "conv1d.default", "\"%t\", \"%h\"") OUTPUT("\"%e\""),
                  5 },
                { "gates along the places",
                  CONV1D("c", "x0", "w") CALL("t", "glu.default", "\"%c\"") CONV1D("e", "t", "w")
                          OUTPUT("\"%e\""),
                  5 },
                { "channels behind each other",
                  CONV1D("c", "x0", "w") CONV1D("f", "x0", "v")
                          CALL("t", "cat.default", "[\"%c\", \"%f\"], -2")
                                  CALL("e", "conv1d.default", "\"%t\", \"%two\"") OUTPUT("\"%e\""),
                  6 },
                { "places behind each other",
                  CONV1D("c", "x0", "w") CONV1D("f", "x0", "v") CALL(
                          "t", "cat.default", "[\"%c\", \"%f\"], 2") CONV1D("e", "t", "w") OUTPUT("\"%e\""),
                  6 },
                { "scaled by channels",
                  CONV1D("c", "x0", "w") CALL("t", "sigmoid.default", "\"%c\"") CALL(
                          "m", "mul.Tensor", "\"%t\", \"%columns\"") CONV1D("e", "m", "w") OUTPUT("\"%e\""),
                  5 },
                { "largest of two, padded",
                  CONV1D("c", "x0", "w") CALL("p", "max_pool1d.default", "\"%c\", [3], [2], [1]")
                          CONV1D("e", "p", "w") OUTPUT("\"%e\""),
                  5 },
                { "mean of two",
                  CONV1D("c", "x0", "w") CALL("p", "avg_pool1d.default", "\"%c\", [2]") CONV1D("e", "p", "w")
                          OUTPUT("\"%e\""),
                  5 },
                { "means of parts",
                  CONV1D("c", "x0", "w") CALL("p", "adaptive_avg_pool1d.default", "\"%c\", [7]")
                          CONV1D("e", "p", "w") OUTPUT("\"%e\""),
                  5 },
                { "twice as long",
                  CONV1D("c", "x0", "w") CALL("p", "upsample_nearest1d.vec", "\"%c\", null, [2.0]")
                          CONV1D("e", "p", "w") OUTPUT("\"%e\""),
                  5 },
                { "mirrored",
                  CONV1D("c", "x0", "w") CALL("p", "reflection_pad1d.default", "\"%c\", [3, 1]")
                          CONV1D("e", "p", "w") OUTPUT("\"%e\""),
                  5 },
                { "ends repeated",
                  CONV1D("c", "x0", "w") CALL("p", "replication_pad1d.default", "\"%c\", [1, 2]")
                          CONV1D("e", "p", "w") OUTPUT("\"%e\""),
                  5 },
                { "mean of places",
                  CONV1D("c", "x0", "w") CALL("m", "mean.dim", "\"%c\", [2]") OUTPUT("\"%m\""), 3 },
        };
        const char *const *states =
                LIST("w:32,32,3", "v:32,32,3", "g:16,8,3", "each:32,1,3", "o:32,32,1", "even:32,32,4",
                     "h:32,16,1", "two:32,64,1", "columns:32,1", "b:32", "half:16");
        try_cases(cases, ARRAY_LENGTH(cases), LIST("2,32,40"), states);
        try_cases(cases, ARRAY_LENGTH(cases), LIST("1,32,38"), states);
}

// Tokens seen as lines: nothing is copied on the way.
Test(lines, tokens_lie_as_images_do)
{
        static const Case cases[] = {
                { "linear, convolution, layer norm",
                  CALL("l", "linear.default", "\"%x0\", \"%q\"") CALL("t", "transpose.int", "\"%l\", 1, 2")
                          CONV1D("c", "t", "w") CALL("g", "gelu.default", "\"%c\"")
                                  CALL("u", "transpose.int", "\"%g\", 1, 2")
                                          CALL("n", "layer_norm.default", "\"%u\", [32]") OUTPUT("\"%n\""),
                  3 },
                { "read in both orders",
                  CALL("t", "transpose.int", "\"%x0\", 1, 2") CONV1D("c", "t", "w")
                          CALL("s", "add.Tensor", "\"%c\", \"%t\"") OUTPUT("[\"%c\", \"%s\"]"),
                  4 },
                { "copied by hand",
                  CALL("t", "permute.default", "\"%x0\", [0, 2, 1]") CALL("k", "clone.default", "\"%t\"")
                          CONV1D("c", "k", "w") CALL("u", "transpose.int", "\"%c\", 1, 2")
                                  CALL("n", "layer_norm.default", "\"%u\", [32]") OUTPUT("\"%n\""),
                  2 },
        };
        const char *const *states = LIST("w:32,32,3", "q:32,32");
        try_cases(cases, ARRAY_LENGTH(cases), LIST("3,40,32"), states);
        try_cases(cases, ARRAY_LENGTH(cases), LIST("1,40,32"), states);
}

// An image of tokens that is copied to lie channel by channel is read where it was.
Test(lines, copies_of_tokens_are_put_off)
{
        static const Case cases[] = {
                { "behind a permutation",
                  CALL("t", "permute.default",
                       "\"%x0\", [0, 3, 1, 2]") "{\"name\": \"k\", \"op\": \"call_method\", \"target\": "
                                                "\"contiguous\", "
                                                "\"args\": [\"%t\"]}," CONV("c", "k", "w") CALL(
                                                        "u", "permute.default",
                                                        "\"%c\", [0, 2, 3, 1]") "{\"name\": \"m\", \"op\": "
                                                                                "\"call_method\", "
                                                                                "\"target\": "
                                                                                "\"contiguous\", \"args\": "
                                                                                "[\"%u\"]}," OUTPUT("\"%m\""),
                  2 },
                { "and the copy is a result, too",
                  CALL("t", "permute.default",
                       "\"%x0\", [0, 3, 1, 2]") "{\"name\": \"k\", \"op\": \"call_method\", \"target\": "
                                                "\"contiguous\", "
                                                "\"args\": [\"%t\"]}," CONV("c", "k", "w")
                                                        OUTPUT("[\"%k\", \"%c\"]"),
                  3 },
        };
        try_cases(cases, ARRAY_LENGTH(cases), LIST("2,16,16,8"), LIST("w:8,8,3,3"));
        try_cases(cases, ARRAY_LENGTH(cases), LIST("1,16,16,8"), LIST("w:8,8,3,3"));
}

Test(lines, products_with_constants_are_linear_layers)
{
        static const Case cases[] = {
                { "matmul, bias, activation",
                  CALL("m", "matmul.default", "\"%x0\", \"%w\"") CALL("a", "add.Tensor", "\"%m\", \"%b\"")
                          CALL("g", "gelu.default", "\"%a\"") OUTPUT("\"%g\""),
                  1 },
                { "a turned weight",
                  CALL("t", "t.default", "\"%v\"") CALL("m", "matmul.default", "\"%x0\", \"%t\"")
                          CALL("s", "add.Tensor", "\"%m\", \"%x0\"") OUTPUT("\"%s\""),
                  1 },
                { "mm",
                  CALL("f", "view.default", "\"%x0\", [-1, 24]") CALL("m", "mm.default", "\"%f\", \"%w\"")
                          CALL("r", "relu.default", "\"%m\"") OUTPUT("\"%r\""),
                  1 },
                { "addmm",
                  CALL("f", "view.default", "\"%x0\", [-1, 24]")
                          CALL("m", "addmm.default", "\"%b\", \"%f\", \"%w\"")
                                  CALL("r", "relu.default", "\"%m\"") OUTPUT("\"%r\""),
                  1 },
                { "a batch of one",
                  CALL("f", "view.default", "\"%x0\", [1, 15, 24]") CALL(
                          "u", "unsqueeze.default", "\"%w\", 0") CALL("m", "bmm.default", "\"%f\", \"%u\"")
                          CALL("r", "relu.default", "\"%m\"") OUTPUT("\"%r\""),
                  1 },
                { "a bias of rows",
                  CALL("f", "view.default", "\"%x0\", [-1, 24]")
                          CALL("m", "addmm.default", "\"%one\", \"%f\", \"%w\"") OUTPUT("\"%m\""),
                  1 },
        };
        try_cases(cases, ARRAY_LENGTH(cases), LIST("3,5,24"), LIST("w:24,24", "v:24,24", "b:24", "one:1,24"));
}

// Rows that do not lie one after another are copied for a packed product.
Test(lines, linear_layers_over_turned_tokens)
{
        const char *nodes = CALL("t", "transpose.int", "\"%x0\", 1, 2")
                CALL("l", "linear.default", "\"%t\", \"%w\", \"%b\"") CALL("g", "gelu.default", "\"%l\"")
                        OUTPUT("\"%g\"");
        try_graph("turned tokens", LIST("4,24,7"), LIST("w:40,24", "b:40"), nodes, 1);
        try_graph("of one sample", LIST("1,24,7"), LIST("w:40,24", "b:40"), nodes, 1);
}

Test(lines, in_place_calls_through_a_view_of_everything)
{
        static const Case cases[] = {
                { "divided through a permuted view",
                  CALL("l", "linear.default", "\"%x0\", \"%w\"")
                          CALL("v", "view.default", "\"%l\", [2, 6, 4, 8]")
                                  CALL("p", "permute.default", "\"%v\", [0, 2, 1, 3]")
                                          CALL("q", "div_.Tensor", "\"%p\", \"%s\"")
                                                  CALL("r", "relu_.default", "\"%q\"") OUTPUT("\"%r\""),
                  2 },
                { "and read as it was made",
                  CALL("l", "linear.default", "\"%x0\", \"%w\"")
                          CALL("v", "view.default", "\"%l\", [2, 6, 4, 8]")
                                  CALL("q", "mul_.Tensor", "\"%v\", \"%s\"")
                                          CALL("t", "tanh.default", "\"%l\"") OUTPUT("[\"%t\", \"%q\"]"),
                  3 },
                { "through two views",
                  CALL("l", "linear.default", "\"%x0\", \"%w\"")
                          CALL("v", "view.default", "\"%l\", [2, 6, 4, 8]")
                                  CALL("u", "view.default", "\"%l\", [12, 32]") CALL("q", "mul_.Tensor",
                                                                                     "\"%v\", \"%s\"")
                                          CALL("r", "relu_.default", "\"%u\"") OUTPUT("[\"%r\", \"%q\"]"),
                  3 },
                { "through a part",
                  CALL("l", "linear.default", "\"%x0\", \"%w\"") CALL("v", "slice.Tensor", "\"%l\", 2, 0, 8")
                          CALL("q", "relu_.default", "\"%v\"") CALL("t", "tanh.default", "\"%q\"")
                                  OUTPUT("[\"%l\", \"%t\"]"),
                  3 },
        };
        try_cases(cases, ARRAY_LENGTH(cases), LIST("2,6,24"), LIST("w:32,24", "s:1"));
}

Test(lines, an_image_of_one_channel)
{
        const char *nodes = CONV("c", "x0", "w") CALL("r", "relu.default", "\"%c\"")
                CALL("d", "conv2d.default", "\"%r\", \"%v\", \"%b\", [1, 1], [1, 1]")
                        CALL("s", "sigmoid.default", "\"%d\"") OUTPUT("\"%s\"");
        try_graph("one channel", LIST("2,8,24,24"), LIST("w:16,8,3,3", "v:1,16,3,3", "b:1"), nodes, 3);
}

#define CONV3D(name, in, weight)                                                                             \
        CALL(name, "conv3d.default", "\"%" in "\", \"%" weight "\", \"%b\", [1], [1]")

// A copy in front, a copy behind: volumes stay channels_last in between.
Test(lines, volumes_between_convolutions)
{
        static const Case cases[] = {
                { "activation and residual",
                  CONV3D("c", "x0", "w") CALL("r", "relu.default", "\"%c\"")
                          CALL("s", "add.Tensor", "\"%r\", \"%x0\"") CONV3D("d", "s", "w") OUTPUT("\"%d\""),
                  5 },
                { "one plane and one column of taps",
                  CALL("c", "conv3d.default",
                       "\"%x0\", \"%plane\", null, [1, 2, 2], [0, 1, 1]") CALL("r", "relu.default", "\"%c\"")
                          CALL("d", "conv3d.default", "\"%r\", \"%column\", \"%b\", [2, 1, 1], [1, 0, 0]")
                                  OUTPUT("\"%d\""),
                  4 },
                { "strides",
                  CALL("c", "conv3d.default", "\"%x0\", \"%w\", \"%b\", [2], [1]")
                          CALL("t", "cat.default", "[\"%c\", \"%c\"], 1") OUTPUT("\"%t\""),
                  4 },
                { "pooled",
                  CONV3D("c", "x0", "w") CALL("p", "max_pool3d.default", "\"%c\", [2]") CONV3D("d", "p", "w")
                          OUTPUT("\"%d\""),
                  5 },
                { "mean", CONV3D("c", "x0", "w") CALL("m", "mean.dim", "\"%c\", [2, 3, 4]") OUTPUT("\"%m\""),
                  3 },
        };
        const char *const *states = LIST("w:12,12,3,3,3", "plane:12,12,1,3,3", "column:12,12,3,1,1", "b:12");
        try_cases(cases, ARRAY_LENGTH(cases), LIST("2,12,6,8,9"), states);
        try_cases(cases, ARRAY_LENGTH(cases), LIST("1,12,5,8,7"), states);
}

#define TRANSPOSED3D(name, in, weight, ...)                                                                  \
        CALL(name, "conv_transpose3d.input", "\"%" in "\", \"%" weight "\", \"%b\", " __VA_ARGS__)

// What reads and makes volumes in channels_last.
Test(lines, volumes_between_other_calls)
{
        static const Case cases[] = {
                { "as large again",
                  CONV3D("c", "x0", "w") TRANSPOSED3D("t", "c", "two", "[2], [0]")
                          CALL("k", "cat.default", "[\"%t\", \"%t\"], 1") OUTPUT("\"%k\""),
                  5 },
                { "taps that meet in one place",
                  CONV3D("c", "x0", "w") TRANSPOSED3D("t", "c", "w", "[2, 1, 2], [1], [1, 0, 1]")
                          OUTPUT("\"%t\""),
                  4 },
                { "dilated",
                  CONV3D("c", "x0", "w") TRANSPOSED3D("t", "c", "w", "[1], [2], [0], 1, [2]")
                          OUTPUT("\"%t\""),
                  4 },
                { "normalised",
                  CONV3D("c", "x0", "w") CALL("i", "instance_norm.default",
                                              "\"%c\", \"%b\", \"%g\", null, null, true, 0.1, 1e-05, true")
                          CALL("n", "group_norm.default", "\"%i\", 3, \"%g\", \"%b\"")
                                  CALL("p", "prelu.default", "\"%n\", \"%g\"") CONV3D("d", "p", "w")
                                          OUTPUT("\"%d\""),
                  7 },
                { "resized and padded",
                  CONV3D("c", "x0", "w") CALL("u", "upsample_trilinear3d.vec",
                                              "\"%c\", [7, 9, 10], false, null")
                          CALL("v", "upsample_nearest3d.vec", "\"%u\", null, [1.0, 2.0, 1.5]")
                                  CALL("p", "replication_pad3d.default", "\"%v\", [1, 0, 0, 2, 1, 1]")
                                          CALL("q", "reflection_pad3d.default", "\"%p\", [1, 0, 0, 2, 1, 1]")
                                                  CONV3D("d", "q", "w") OUTPUT("\"%d\""),
                  8 },
        };
        const char *const *states = LIST("w:12,12,3,3,3", "two:12,12,2,2,2", "b:12", "g:12");
        try_cases(cases, ARRAY_LENGTH(cases), LIST("2,12,6,8,9"), states);
        try_cases(cases, ARRAY_LENGTH(cases), LIST("1,12,5,8,7"), states);
}

// PyTorch's kernels for channels_last do not ask the factor of a size that stays or doubles.
Test(lines, factors_near_one_and_two_read_what_they_do_elsewhere)
{
        static const Case image = { "image",
                                    CONV("c", "x0", "w")
                                            CALL("u", "upsample_nearest2d.vec", "\"%c\", null, [2.012, 1.01]")
                                                    CONV("d", "u", "w") OUTPUT("\"%d\""),
                                    7 },
                          line = { "line",
                                   CALL("c", "conv1d.default", "\"%x0\", \"%v\", null, [1], [1]")
                                           CALL("u", "upsample_nearest1d.vec", "\"%c\", null, [2.012]")
                                                   CALL("d", "conv1d.default", "\"%u\", \"%v\"")
                                                           OUTPUT("\"%d\""),
                                   7 };
        try_cases(&image, 1, LIST("2,16,70,70"), LIST("w:16,16,3,3"));
        try_cases(&line, 1, LIST("2,16,50"), LIST("v:16,16,3"));
}

// Results lie channels_last because the weight does.
Test(lines, weights_in_channels_last)
{
        const char *nodes =
                "{\"name\": \"k\", \"op\": \"call_method\", \"target\": \"contiguous\", \"args\": [\"%w\"], "
                "\"kwargs\": {\"memory_format\": {\"$memory_format\": \"channels_last\"}}}," CONV("c", "x0",
                                                                                                  "k")
                        CALL("r", "relu.default", "\"%c\"") CONV("d", "r", "k") OUTPUT("\"%d\"");
        try_graph("several", LIST("2,16,20,20"), LIST("w:16,16,3,3"), nodes, 3);
        try_graph("one", LIST("1,16,20,20"), LIST("w:16,16,3,3"), nodes, 3);
}
