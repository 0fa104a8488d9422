// SPDX-License-Identifier: Apache-2.0
// numbers.c: float and int inputs. Those that only arithmetic on tensors reads are run-time slots:
// one program serves every value. Those whose value is looked at (attributes, shapes, branches,
// Python arithmetic) count by value.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "core/base/text.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(numbers, .init = start);

// Placeholders x (a tensor), a and b (numbers), then `nodes` as JSON with ' for ".
static Graph *graph_of(const char *nodes, const char *result)
{
        Graph *graph = NULL;
        CheckReport report;
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text,
                  "{'format': 'fx/1', 'nodes': [{'op': 'placeholder', 'name': 'x', 'target': 'x'}, "
                  "{'op': 'placeholder', 'name': 'a', 'target': 'a'}, {'op': 'placeholder', 'name': 'b', "
                  "'target': 'b'}, %s, "
                  "{'op': 'output', 'name': 'output', 'target': 'output', 'args': [%s]}]}",
                  nodes, result);
        cr_assert_eq(text_status(&text), STATUS_OK);
        for (size_t i = 0; i < text.n; i++)
                text.data[i] = text.data[i] == '\'' ? '"' : text.data[i];
        cr_assert_eq(fx_json_read(text.data, text.n, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(graph_resolve(graph, &report), STATUS_OK);
        cr_assert_eq(report.n_rows, 0u);
        check_report_deinit(&report);
        return graph;
}

static Value tensor_of(Dtype dtype)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, 2, (int64_t[]){ 2, 5 });
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int i = 0; i < 10; i++) {
                if (dtype == DTYPE_I64)
                        ((int64_t *)tensor_data(tensor))[i] = i - 4;
                else
                        ((float *)tensor_data(tensor))[i] = (float)(i - 4) / 3;
        }
        return value_tensor_take(tensor);
}

// Compiled for (a, b) and run with (a2, b2) where the program says that it may; `by_value`: bits 1
// (a) and 2 (b) that it depends on.
static void expect_for(Dtype dtype, const char *nodes, const char *result, const Value pairs[4],
                       uint64_t by_value)
{
        Graph *graph = graph_of(nodes, result);
        Value x = tensor_of(dtype), first[3] = { x, pairs[0], pairs[1] },
              second[3] = { x, pairs[2], pairs[3] };
        for (int i = 0; i < 2; i++) {
                char words[600];
                Program *program = NULL;
                CompileOptions options = { .n_threads = 1, .no_passes = i == 1 };
                cr_expect_eq(run_both_open(graph, (ValueSpan){ second, 3 }, (ValueSpan){ first, 3 }, &options,
                                           (Tolerance){ 0 }, words),
                             BOTH_EQUAL, "%s: %s", nodes, words);
                cr_assert_eq(compile_graph(graph, (ValueSpan){ first, 3 }, &options, NULL, &program),
                             STATUS_OK);
                cr_expect_eq(program->by_value & 6, by_value, "%s: by value %lx", nodes,
                             (unsigned long)program->by_value & 6);
                program_unref(program);
        }
        value_unref(x);
        graph_unref(graph);
}

static void expect(const char *nodes, const char *result, uint64_t by_value)
{
        const Value floats[4] = { value_float(0.5), value_float(3), value_float(-1.75), value_float(0.1) };
        const Value ints[4] = { value_int(2), value_int(1), value_int(1), value_int(2) };
        expect_for(DTYPE_F32, nodes, result, floats, by_value);
        expect_for(DTYPE_F32, nodes, result, ints, by_value);
        expect_for(DTYPE_I64, nodes, result, ints, by_value);
        expect_for(DTYPE_I64, nodes, result, floats, by_value);
}

#define FUNCTION(name, target, ...)                                                                          \
        "{'op': 'call_function', 'name': '" name "', 'target': '" target "', 'args': [" __VA_ARGS__ "]}"
#define METHOD(name, target, ...)                                                                            \
        "{'op': 'call_method', 'name': '" name "', 'target': '" target "', 'args': [" __VA_ARGS__ "]}"

// Graphs are written one node to a line.
// clang-format off
Test(numbers, that_scale_a_tensor_are_slots)
{
        expect(
                FUNCTION("y", "operator.mul", "'%x', '%a'")
                ", " FUNCTION("z", "operator.add", "'%b', '%y'"),
                "'%z'", 0);
        expect(
                FUNCTION("y", "torch.mul", "'%x', '%a'")
                ", " METHOD("z", "sub", "'%y', '%b'"),
                "['%y', '%z']", 0);
        expect(
                FUNCTION("y", "torch.ops.aten.mul.Tensor", "'%x', '%a'")
                ", " FUNCTION("z", "torch.ops.aten.gt.Scalar", "'%y', '%b'"),
                "['%y', '%z']", 0);
        expect(
                FUNCTION("y", "operator.truediv", "'%x', '%a'")
                ", " FUNCTION("z", "operator.truediv", "'%b', '%y'"),
                "['%y', '%z']", 0);
        expect(
                FUNCTION("y", "operator.sub", "'%a', '%x'")
                ", " FUNCTION("z", "operator.le", "'%b', '%y'"),
                "['%y', '%z']", 0);
}

Test(numbers, in_a_chain_that_is_fused_are_slots)
{
        expect(
                FUNCTION("p", "torch.neg", "'%x'")
                ", " FUNCTION("y", "operator.mul", "'%p', '%a'")
                ", " FUNCTION("z", "operator.add", "'%y', '%b'")
                ", " FUNCTION("r", "torch.relu", "'%z'")
                ", " FUNCTION("u", "operator.mul", "'%r', '%a'"),
                "'%u'", 0);
}

Test(numbers, used_twice_are_one_input)
{
        expect(
                FUNCTION("y", "operator.mul", "'%x', '%a'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%a'")
                ", " FUNCTION("u", "torch.abs", "'%z'"),
                "'%u'", 0);
}

Test(numbers, that_become_attributes_count_by_value)
{
        expect(
                FUNCTION("y", "torch.clamp", "'%x', '%a'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%b'"),
                "'%z'", 2);
        expect(FUNCTION("y", "torch.ops.aten.add.Tensor",
                        "'%x', '%x'") ", "
                                      "{'op': 'call_function', 'name': 'z', 'target': 'torch.add', "
                                      "'args': ['%y', '%a'], 'kwargs': {'alpha': '%b'}}",
               "'%z'", 4);
}

Test(numbers, that_python_computes_with_count_by_value)
{
        expect(
                FUNCTION("c", "operator.add", "'%a', '%b'")
                ", " FUNCTION("y", "operator.mul", "'%x', '%c'"),
                "'%y'", 6);
        expect(
                FUNCTION("c", "operator.gt", "'%a', 0")
                ", " FUNCTION("y", "operator.mul", "'%x', '%b'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%c'"),
                "'%z'", 2);
}

Test(numbers, that_are_part_of_the_result_count_by_value)
{
        expect(FUNCTION("y", "operator.mul", "'%x', '%a'"), "['%y', '%b', '%a']", 6);
}

Test(numbers, in_a_container_count_by_value)
{
        expect(
                FUNCTION("l", "builtins.list", "{'$tuple': ['%a', 2]}")
                ", " FUNCTION("i", "operator.getitem", "'%l', 0")
                ", " FUNCTION("y", "operator.mul", "'%x', '%i'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%b'"),
                "'%z'", 2);
}

Test(numbers, that_give_a_shape_count_by_value)
{
        const Value ints[4] = { value_int(1), value_int(5), value_int(2), value_int(5) };
        expect_for(
                DTYPE_F32, METHOD("y", "sum", "'%x', 0")
                ", " METHOD("v", "expand", "'%y', '%a', '%b'"),
                "'%v'", ints, 6);
}

Test(numbers, stay_open_beside_an_eager_tail)
{
        expect(
                FUNCTION("y", "operator.mul", "'%x', '%a'")
                ", " FUNCTION("m", "operator.gt", "'%y', 0")
                ", " FUNCTION("p", "operator.getitem", "'%y', '%m'")
                ", " FUNCTION("q", "operator.mul", "'%p', '%b'")
                ", " METHOD("s", "sum", "'%q'"),
                "['%s', '%y']", 0);
        // The rest takes it as a number.
        expect(
                FUNCTION("y", "torch.relu", "'%x'")
                ", " METHOD("t", "sum", "'%y'")
                ", " METHOD("n", "item", "'%t'")
                ", " FUNCTION("k", "operator.add", "'%n', '%a'")
                ", " FUNCTION("z", "operator.mul", "'%y', '%k'")
                ", " FUNCTION("u", "operator.mul", "'%y', '%b'"),
                "['%z', '%u', '%k']", 0);
}

Test(numbers, of_a_program_are_checked_for_their_kind)
{
        Graph *graph = graph_of(FUNCTION("y", "operator.mul", "'%x', '%a'"), "'%y'");
        Value inputs[3] = { tensor_of(DTYPE_F32), value_float(2), value_none() }, out = value_none();
        CompileOptions options = { .n_threads = 1 };
        Program *program = NULL;
        Frame frame;
        RunContext ctx;
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(compile_graph(graph, (ValueSpan){ inputs, 3 }, &options, NULL, &program), STATUS_OK);
        inputs[1] = value_float(NAN);
        cr_assert_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { inputs, 3 } }, &ctx, &out, NULL),
                     STATUS_OK);
        cr_expect(isnan(*(float *)tensor_data(out.tensor)));
        value_unref(out);
        inputs[1] = value_none();
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { inputs, 3 } }, &ctx, &out, NULL),
                     STATUS_INTERNAL);
        program_unref(program);
        inputs[1] = value_int(2);
        cr_assert_eq(compile_graph(graph, (ValueSpan){ inputs, 3 }, &options, NULL, &program), STATUS_OK);
        inputs[1] = value_float(2);
        cr_expect_eq(program_run(program, &frame, &(ProgramRun){ .inputs = { inputs, 3 } }, &ctx, &out, NULL),
                     STATUS_INTERNAL);
        inputs[1] = value_int(2);
        ProgramKey with_int, with_float;
        cr_assert_eq(program_key(graph, (ValueSpan){ inputs, 3 }, &options, 0, &with_int), STATUS_OK);
        inputs[1] = value_float(2);
        cr_assert_eq(program_key(graph, (ValueSpan){ inputs, 3 }, &options, 0, &with_float), STATUS_OK);
        cr_expect_neq(memcmp(&with_int, &with_float, sizeof(with_int)), 0);
        frame_deinit(&frame);
        program_unref(program);
        value_unref(inputs[0]);
        graph_unref(graph);
}
