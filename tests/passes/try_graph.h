// SPDX-License-Identifier: Apache-2.0
// try_graph.h: what passes make of a graph of made_graph.h: how many instructions are left, and the
// numbers of an eager run.
#pragma once
#include <criterion/criterion.h>
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

// Numbers as eagerly, and as many instructions as wanted.
static inline void check_made(Made *made, uint32_t n_code, const char *what)
{
        char words[600];
        CompileOptions options = { .n_threads = 1 };
        ValueSpan inputs = { made->inputs, made->n_inputs };
        cr_expect_eq(run_both(made->graph, inputs, &options, 1e-4, 1e-5, words), BOTH_EQUAL, "%s: %s", what,
                     words);
        options.n_threads = 2;
        cr_expect_eq(run_both(made->graph, inputs, &options, 1e-4, 1e-5, words), BOTH_EQUAL,
                     "%s, two threads: %s", what, words);
        options.n_threads = 1;
        Program *program;
        cr_assert_eq(compile_graph(made->graph, inputs, &options, NULL, &program), STATUS_OK);
        if (program->n_code != n_code) {
                Text text = { 0 };
                program_print(program, &text);
                cr_expect(false, "%s: %u instructions instead of %u\n%.*s", what, program->n_code, n_code,
                          (int)text.n, text.data);
                text_deinit(&text);
        }
        program_unref(program);
}

static inline void try_graph(const char *what, const char *const *inputs, const char *const *states,
                             const char *nodes, uint32_t n_code)
{
        Made made = made_graph(inputs, states, nodes);
        check_made(&made, n_code, what);
        made_deinit(&made);
}

#define CONV(name, in, weight)                                                                               \
        CALL(name, "conv2d.default", "\"%" in "\", \"%" weight "\", null, [1, 1], [1, 1]")
#define CAT(name, list, dim) CALL(name, "cat.default", "[" list "], " dim)
#define ITEM(name, of, index)                                                                                \
        "{\"name\": \"" name "\", \"op\": \"call_function\", \"target\": \"_operator.getitem\", "            \
        "\"args\": [\"%" of "\", " index "]},"
