// SPDX-License-Identifier: Apache-2.0
// gathers.c: linear layers on rows that an index picks: the numbers of an eager run, and the rows
// that are multiplied.
#include <criterion/criterion.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(gathers, .init = made_start, .timeout = 60);

// Positions -5 .. 5 from noise.
#define POSITIONS(name, from)                                                                                \
        CALL(name "5", "mul.Tensor", "\"%" from "\", 5.99")                                                  \
        CALL(name, "to.dtype", "\"%" name "5\", {\"$dtype\": \"int64\"}")
#define INDICES           POSITIONS("i", "x1") POSITIONS("j", "x2") CALL("k", "abs.default", "\"%i\"")
#define PICK(name, index) CALL(name, "index.Tensor", "\"%x0\", [\"%" index "\"]")

// The most rows that a linear layer of the program reads.
static int64_t most_rows(const Made *made)
{
        CompileOptions options = { .n_threads = 1 };
        Program *program;
        int64_t most = 0;
        cr_assert_eq(compile_graph(made->graph, (ValueSpan){ made->inputs, made->n_inputs }, &options, NULL,
                                   &program),
                     STATUS_OK, "%s", failure_current()->message);
        for (uint32_t i = 0; i < program->recording->n_calls; i++) {
                const OpCall *call = &program->recording->calls[i]->call;
                if (op_role(call) == ROLE_LINEAR || op_role(call) == ROLE_FUSED_LINEAR)
                        most = MAX(most, call->outs[0].meta.size[0]);
        }
        program_unref(program);
        return most;
}

static void try_graph(const char *what, const char *nodes, int64_t rows)
{
        char words[600];
        Made made =
                made_graph(LIST("6,8", "40", "40", "40,5"), LIST("w:7,16", "b:7", "v:7,21", "u:7,8"), nodes);
        CompileOptions options = { .n_threads = 1 };
        cr_expect_eq(
                run_both(made.graph, (ValueSpan){ made.inputs, made.n_inputs }, &options, 1e-5, 1e-5, words),
                BOTH_EQUAL, "%s: %s", what, words);
        int64_t most = most_rows(&made);
        cr_expect_eq(most, rows, "%s: %ld rows are multiplied", what, (long)most);
        made_deinit(&made);
}

Test(gathers, rows_are_multiplied_before_they_are_picked)
{
        try_graph("both ends of edges",
                  INDICES PICK("p", "i") PICK("q", "j") CALL("c", "cat.default", "[\"%p\", \"%q\"], -1")
                          CALL("l", "linear.default", "\"%c\", \"%w\", \"%b\"")
                                  CALL("r", "relu.default", "\"%l\"") OUTPUT("\"%r\""),
                  6);
        try_graph("and results that a view reads",
                  INDICES PICK("p", "i") CALL("q", "index_select.default", "\"%x0\", 0, \"%k\"")
                          CALL("c", "cat.default", "[\"%p\", \"%q\"], 1")
                                  CALL("l", "linear.default", "\"%c\", \"%w\"")
                                          CALL("r", "reshape.default", "\"%l\", [-1]")
                                                  OUTPUT("[\"%r\", \"%l\", \"%p\"]"),
                  6);
        try_graph("one end",
                  INDICES PICK("p", "i") CALL("l", "linear.default", "\"%p\", \"%u\"") OUTPUT("\"%l\""), 6);
        try_graph("rows of edges between them",
                  INDICES PICK("p", "i") PICK("q", "j")
                          CALL("c", "cat.default", "[\"%p\", \"%x3\", \"%q\"], 1")
                                  CALL("l", "linear.default", "\"%c\", \"%v\", \"%b\"") OUTPUT("\"%l\""),
                  40);
        // others read the concatenation; rows are picked along another dimension
        try_graph("others read it",
                  INDICES PICK("p", "i") PICK("q", "j") CALL("c", "cat.default", "[\"%p\", \"%q\"], 1")
                          CALL("l", "linear.default", "\"%c\", \"%w\", \"%b\"") OUTPUT("[\"%l\", \"%c\"]"),
                  40);
        try_graph("a column for each row",
                  INDICES CALL("t", "index_select.default", "\"%x0\", 1, \"%k\"")
                          CALL("s", "slice.Tensor", "\"%t\", 1, 0, 8")
                                  CALL("l", "linear.default", "\"%s\", \"%u\"") OUTPUT("\"%l\""),
                  6);
}
