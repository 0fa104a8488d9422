// SPDX-License-Identifier: Apache-2.0
// layout.c: which images stay channels_last, and what is copied.
#include "tests/passes/try_graph.h"

TestSuite(layout, .init = made_start, .timeout = 60);

Test(layout, images_stay_channels_last_between_convolutions_and_leave_as_they_should)
{
        try_graph("pool, cat, flatten", LIST("2,5,16,16"), LIST("w:8,5,3,3", "v:8,5,3,3", "l:3,784"),
                  CONV("c", "x0", "w") CONV("d", "x0", "v") CALL("p", "max_pool2d.default",
                                                                 "\"%c\", [2, 2], [2, 2], [1, 1]")
                          CALL("q", "avg_pool2d.default",
                               "\"%d\", [2, 2], [2, 2], [1, 1]") "{\"name\": \"k\", \"op\": "
                                                                 "\"call_function\", \"target\": "
                                                                 "\"torch.ops.aten.cat.default\", "
                                                                 "\"args\": [[\"%p\", \"%q\"], 1]}," CALL(
                                                                         "m", "adaptive_avg_pool2d.default",
                                                                         "\"%k\", [7, 7]") CALL("f",
                                                                                                "flatten."
                                                                                                "using_ints",
                                                                                                "\"%m\", 1")
                                                                         CALL("s", "slice.Tensor",
                                                                              "\"%f\", 1, 0, 784")
                                                                                 CALL("o", "linear.default",
                                                                                      "\"%s\", \"%l\"")
                                                                                         OUTPUT("[\"%o\", "
                                                                                                "\"%k\"]"),
                  10);
        try_graph("input already channels last", LIST("1,5,16,16"), LIST("w:8,5,3,3"),
                  "{\"name\": \"y\", \"op\": \"call_method\", \"target\": \"contiguous\", \"args\": "
                  "[\"%x0\"], \"kwargs\": "
                  "{\"memory_format\": {\"$memory_format\": "
                  "\"channels_last\"}}}," CONV("c", "y", "w") OUTPUT("\"%c\""),
                  2);
        try_graph("winograd", LIST("2,32,15,17"), LIST("w:32,32,3,3", "v:48,32,3,3"),
                  CONV("c", "x0", "w") CALL("r", "relu.default", "\"%c\"")
                          CALL("s", "add.Tensor", "\"%r\", \"%x0\"") CONV("d", "s", "v")
                                  CALL("t", "silu.default", "\"%d\"") OUTPUT("\"%t\""),
                  5);
        try_graph("scaled by channel", LIST("1,8,16,16", "1,8,1,1"), LIST("w:8,8,3,3"),
                  CONV("c", "x0", "w") CALL("m", "mul.Tensor", "\"%c\", \"%x1\"") CONV("d", "m", "w")
                          CALL("n", "mul.Tensor", "\"%d\", \"%x0\"") OUTPUT("\"%n\""),
                  6);
}

#define DEPTHWISE(name, in)                                                                                  \
        CALL(name, "conv2d.default", "\"%" in "\", \"%w\", null, [1, 1], [1, 1], [1, 1], 8")
#define TOKENS(image)                                                                                        \
        CALL("f", "flatten.using_ints", "\"%" image "\", 2") CALL("t", "transpose.int", "\"%f\", 1, 2")

Test(layout, views_between_images_and_tokens_copy_nothing)
{
        // For one sample, tokens seen as an image have strides that PyTorch calls channels first.
        const char *image = CALL("i", "transpose.int", "\"%x0\", 1, 2")
                CALL("y", "view.default", "\"%i\", [1, 8, 32, 32]") DEPTHWISE("c", "y") TOKENS("c");
        static const struct {
                const char *what, *nodes;
                uint32_t n_code;
        } cases[] = {
                { "linear",
                  CALL("g", "gelu.default", "\"%t\"") CALL("l", "linear.default", "\"%g\", \"%v\"")
                          OUTPUT("\"%l\""),
                  3 },
                { "layer norm", CALL("l", "layer_norm.default", "\"%t\", [8]") OUTPUT("\"%l\""), 2 },
                { "a view is the result", OUTPUT("\"%t\""), 2 },
                { "the result is laid out as the view", CALL("g", "gelu.default", "\"%t\"") OUTPUT("\"%g\""),
                  3 },
                { "image and views are results",
                  CALL("g", "tanh.default", "\"%t\"") CALL("u", "transpose.int", "\"%g\", 0, 1")
                          CALL("l", "layer_norm.default", "\"%t\", [8]") OUTPUT("[\"%c\", \"%f\", \"%u\", "
                                                                                "\"%g\", \"%l\"]"),
                  5 },
                { "other strides beside it", CALL("g", "add.Tensor", "\"%f\", \"%x1\"") OUTPUT("\"%g\""), 3 },
                { "strides are read",
                  CALL("s", "as_strided.default", "\"%f\", [2, 3], [3, 5]")
                          CALL("g", "tanh.default", "\"%s\"") OUTPUT("\"%g\""),
                  3 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text nodes = { 0 };
                text_add(&nodes, image);
                text_add(&nodes, cases[i].nodes);
                try_graph(cases[i].what, LIST("1,1024,8", "1,8,1024"), LIST("w:8,1,3,3", "v:4,8"), nodes.data,
                          cases[i].n_code);
                text_deinit(&nodes);
        }
        try_graph("no image at all", LIST("2,12,10,8"), LIST("w:8,8,3,3"),
                  CALL("y", "permute.default", "\"%x0\", [0, 3, 2, 1]") CONV("c", "y", "w")
                          CALL("p", "permute.default", "\"%c\", [0, 2, 3, 1]")
                                  CALL("q", "permute.default", "\"%p\", [0, 3, 1, 2]") CONV("d", "q", "w")
                                          OUTPUT("\"%d\""),
                  4);
}

Test(layout, some_channels_of_an_image_stay_channels_last)
{
        const char *parts = CONV("c", "x0", "w") CALL("s", "split.Tensor", "\"%c\", 4, 1") ITEM("p", "s", "0")
                ITEM("q", "s", "1") CONV("d", "p", "v") CALL("a", "add.Tensor", "\"%d\", \"%q\"")
                        CONV("e", "a", "v") CAT("k", "\"%d\", \"%e\", \"%q\"", "1");
        // a copy of the image, `p` by itself, the sum, three convolutions, cat, relu, a copy back
        static const struct {
                const char *what, *nodes;
                uint32_t n_code;
        } cases[] = {
                { "joined again", CALL("r", "relu.default", "\"%k\"") OUTPUT("\"%r\""), 9 },
                { "a part is a result, too", CALL("r", "relu.default", "\"%k\"") OUTPUT("[\"%r\", \"%q\"]"),
                  10 },
                { "strides of a part are read",
                  CALL("t", "as_strided.default", "\"%q\", [2, 3], [3, 5], 1024") OUTPUT("[\"%k\", \"%t\"]"),
                  9 },
        };
        for (size_t i = 0; i < 2 * ARRAY_LENGTH(cases); i++) {
                Text nodes = { 0 };
                text_add(&nodes, parts);
                text_add(&nodes, cases[i / 2].nodes);
                try_graph(cases[i / 2].what, i % 2 == 0 ? LIST("2,5,16,16") : LIST("1,5,16,16"),
                          LIST("w:8,5,3,3", "v:4,4,3,3"), nodes.data, cases[i / 2].n_code);
                text_deinit(&nodes);
        }
        try_graph("a slice of channels is added to in place", LIST("1,5,16,16"),
                  LIST("w:8,5,3,3", "v:8,8,3,3"),
                  CONV("c", "x0", "w") CALL("s", "slice.Tensor", "\"%c\", 1, 0, 8")
                          CALL("a", "add_.Tensor", "\"%s\", \"%s\"") CONV("d", "a", "v") OUTPUT("\"%d\""),
                  5);
}

Test(layout, what_is_broadcast_does_not_move_the_others)
{
        // copies of the first image and of the column, the convolution, one product
        try_graph("a column", LIST("1,5,16,16", "1,8,16,40"), LIST("w:8,5,3,3"),
                  CONV("c", "x0", "w") CALL("s", "slice.Tensor", "\"%c\", 3, 0, 1")
                          CALL("m", "mul.Tensor", "\"%x1\", \"%s\"") OUTPUT("\"%m\""),
                  4);
        // an outer product has no operand of its shape: it goes along, and is copied back
        try_graph("a column and a row", LIST("1,5,16,16"), LIST("w:8,5,3,3"),
                  CONV("c", "x0", "w") CALL("s", "slice.Tensor", "\"%c\", 3, 0, 1")
                          CALL("t", "slice.Tensor", "\"%c\", 2, 0, 1")
                                  CALL("m", "mul.Tensor", "\"%t\", \"%s\"") OUTPUT("\"%m\""),
                  4);
}
