// SPDX-License-Identifier: Apache-2.0
// made_graph.h: graphs from text, for tests of passes: nodes as FX JSON, states as "name:4,3" and
// inputs as "1,3,8,8". Inputs and states hold noise, the same in every run of a test.
#pragma once
#include "core/graph/graph.h"

typedef struct Made {
        Graph *graph;
        Value inputs[4];
        uint32_t n_inputs;
} Made;

// Tables of operators, and the noise from its beginning: the start of a test suite.
void made_start(void);
// A graph whose inputs are %x0, %x1 … and whose states are named as in `states`. Both lists end
// with NULL. States whose name holds "var" are positive, those whose name begins with "levels" are
// int8, with "bf16" or "f16" of that dtype, those whose name begins with "inf" have one infinite
// number. The caller ends it with
// made_deinit.
Made made_graph(const char *const *inputs, const char *const *states, const char *nodes);
void made_deinit(Made *made);

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define CALL(name, target, ...)                                                                              \
        "{\"name\": \"" name "\", \"op\": \"call_function\", \"target\": \"torch.ops.aten." target           \
        "\", \"args\": [" __VA_ARGS__ "]},"
#define OUTPUT(...)                                                                                          \
        "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [" __VA_ARGS__ "]}"
