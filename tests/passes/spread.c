// SPDX-License-Identifier: Apache-2.0
// spread.c: batch norms that go into one pass over memory with what reads them.
#include "tests/passes/try_graph.h"

TestSuite(spread, .init = made_start, .timeout = 60);

// With an epsilon of 2 every made variance has a root.
#define NORM(name, in, weight, bias)                                                                         \
        CALL(name, "batch_norm.default",                                                                     \
             "\"%" in "\", " weight ", " bias ", \"%m\", \"%v\", false, 0.1, 2.0, false")
#define GELU(name, in) CALL(name, "gelu.default", "\"%" in "\"")

Test(spread, a_batch_norm_and_its_reader_are_one_instruction)
{
        try_graph("scaled and shifted", LIST("4,6"), LIST("w:6", "b:6", "m:6", "v:6"),
                  NORM("n", "x0", "\"%w\"", "\"%b\"") GELU("g", "n") OUTPUT("\"%g\""), 1);
        try_graph("without weight and bias", LIST("4,6"), LIST("m:6", "v:6"),
                  NORM("n", "x0", "null", "null") GELU("g", "n") OUTPUT("\"%g\""), 1);
        try_graph("with what comes before it", LIST("4,6"), LIST("w:6", "b:6", "m:6", "v:6"),
                  GELU("f", "x0") NORM("n", "f", "\"%w\"", "\"%b\"") GELU("g", "n") OUTPUT("\"%g\""), 1);
}

Test(spread, where_channels_lie_apart_or_are_too_many_it_stays)
{
        const char *const *const inputs[] = { LIST("2,6,7"), LIST("2,6,5,3"), LIST("2,6,3,4,2") };
        for (size_t i = 0; i < ARRAY_LENGTH(inputs); i++)
                try_graph("apart", inputs[i], LIST("w:6", "b:6", "m:6", "v:6"),
                          NORM("n", "x0", "\"%w\"", "\"%b\"") GELU("g", "n") OUTPUT("\"%g\""), 2);
        try_graph("many", LIST("2,1040"), LIST("w:1040", "b:1040", "m:1040", "v:1040"),
                  NORM("n", "x0", "\"%w\"", "\"%b\"") GELU("g", "n") OUTPUT("\"%g\""), 2);
}

Test(spread, one_that_is_read_twice_or_by_no_pointwise_call_stays)
{
        try_graph("a result, too", LIST("4,6"), LIST("w:6", "b:6", "m:6", "v:6"),
                  NORM("n", "x0", "\"%w\"", "\"%b\"") GELU("g", "n") OUTPUT("[\"%g\", \"%n\"]"), 2);
        try_graph("read by a sum", LIST("4,6"), LIST("w:6", "b:6", "m:6", "v:6"),
                  NORM("n", "x0", "\"%w\"", "\"%b\"") CALL("s", "sum.dim_IntList", "\"%n\", [1]")
                          OUTPUT("\"%s\""),
                  2);
}

Test(spread, between_convolutions_it_stays_channels_last)
{
        // a copy of the image, two convolutions, one call between them, a copy of the result
        try_graph("read by a relu", LIST("2,5,16,16"),
                  LIST("k:6,5,3,3", "l:6,6,3,3", "w:6", "b:6", "m:6", "v:6"),
                  CONV("c", "x0", "k") GELU("f", "c") NORM("n", "f", "\"%w\"", "\"%b\"")
                          CALL("r", "relu.default", "\"%n\"") CONV("d", "r", "l") OUTPUT("\"%d\""),
                  5);
}
