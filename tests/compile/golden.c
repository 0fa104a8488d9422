// SPDX-License-Identifier: Apache-2.0
// golden.c: every case of tests/golden as a graph of one node, eager and compiled. Its tensors are
// inputs, and results again, so that writes show.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/ops/golden_file.h"

typedef struct CaseGraph {
        Graph *graph;
        Value inputs[64];
        Node *nodes[64];
        uint32_t n_inputs;
        bool constants; // tensors are state instead of inputs
        bool numbers;   // numbers are inputs, too
} CaseGraph;

static Status add_input(void *context, const Value *leaf, Value *out)
{
        CaseGraph *made = context;
        *out = *leaf;
        bool number = made->numbers && (leaf->kind == VALUE_FLOAT || leaf->kind == VALUE_INT);
        if (leaf->kind != VALUE_TENSOR && !number) {
                value_ref(*out);
                return STATUS_OK;
        }
        out->kind = VALUE_NODE;
        for (uint32_t i = 0; i < made->n_inputs; i++) {
                if (!number && made->inputs[i].kind == VALUE_TENSOR &&
                    made->inputs[i].tensor == leaf->tensor) {
                        out->node = made->nodes[i];
                        return STATUS_OK;
                }
        }
        if (made->n_inputs == 64)
                return fail(STATUS_TOO_LARGE, "too many tensors");
        char name[16];
        State *state;
        snprintf(name, sizeof(name), "x%u", made->n_inputs);
        if (made->constants)
                TRY(graph_add_state(made->graph, name, tensor_ref(leaf->tensor), &state));
        TRY(graph_add_node(
                made->graph,
                &(NodeSpec){ .op = made->constants ? OP_GET_ATTR : OP_PLACEHOLDER, .target = name },
                &out->node));
        made->nodes[made->n_inputs] = out->node;
        made->inputs[made->n_inputs++] = *leaf;
        return STATUS_OK;
}

static Status make_graph(const GoldenCase *golden, CaseGraph *made)
{
        Value args = value_none(), kwargs = value_none();
        Node *node, *output;
        Seq *results, *out_args;
        char target[128];
        snprintf(target, sizeof(target), "torch.ops.%s", golden->op);
        // Edits that observe make such nodes, by the name without an overload.
        bool internal = target_function(target) == NULL;
        if (internal) {
                snprintf(target, sizeof(target), "%s", golden->op);
                *strrchr(target, '.') = '\0';
        }
        TRY(graph_new(GRAPH_FX_JSON, &made->graph));
        TRY(value_map(golden->args, add_input, made, &args));
        if (golden->kwargs.kind == VALUE_DICT)
                TRY(value_map(golden->kwargs, add_input, made, &kwargs));
        if (args.kind == VALUE_LIST)
                args.kind = VALUE_TUPLE;
        TRY(graph_add_node(
                made->graph,
                &(NodeSpec){ .op = OP_CALL_FUNCTION, .target = target, .args = args, .kwargs = kwargs },
                &node));
        node->internal = internal;
        TRY(seq_new(made->n_inputs + 1, &results));
        results->items[0] = (Value){ .kind = VALUE_NODE, .node = node };
        for (uint32_t i = 0; i < made->n_inputs; i++) {
                if (made->inputs[i].kind == VALUE_TENSOR) // a number that is a result would count by value
                        results->items[1 + i] = (Value){ .kind = VALUE_NODE, .node = made->nodes[i] };
        }
        TRY(seq_new(1, &out_args));
        out_args->items[0] = value_seq_take(VALUE_TUPLE, results);
        TRY(graph_add_node(made->graph,
                           &(NodeSpec){ .op = OP_OUTPUT,
                                        .target = "output",
                                        .args = value_seq_take(VALUE_TUPLE, out_args) },
                           &output));
        CheckReport report;
        TRY(graph_finish(made->graph));
        Status status = graph_resolve(made->graph, &report);
        check_report_deinit(&report);
        return status;
}

// Other numbers of the same kinds.
static void change_numbers(const CaseGraph *made, Value *out_inputs)
{
        for (uint32_t i = 0; i < made->n_inputs; i++) {
                out_inputs[i] = made->inputs[i];
                if (out_inputs[i].kind == VALUE_FLOAT)
                        out_inputs[i].f = out_inputs[i].f / 2 + 1.25;
                else if (out_inputs[i].kind == VALUE_INT)
                        out_inputs[i].i = out_inputs[i].i == 1 ? 2 : 1;
        }
}

// Whether the case says nothing that the plain form, which another test runs, does not: neither a
// tensor nor a number stands elsewhere, or another case has the same arguments and another seed.
static bool is_plain(const GoldenCase *golden, const CaseGraph *made)
{
        bool plain = made->numbers || (made->constants && made->n_inputs == 0);
        for (uint32_t i = 0; i < made->n_inputs && made->numbers; i++)
                plain &= made->inputs[i].kind == VALUE_TENSOR;
        return plain || ((made->numbers || made->constants) && golden->seed != 0);
}

static void run_group(const char *group, bool constants, bool numbers)
{
        static const char *const names[] = { "equal", "DIFFERENT", "dynamic", "failing alike" };
        char path[512], words[600];
        GoldenFile file;
        GoldenCase golden;
        uint32_t counts[4] = { 0 }, n_plain = 0;
        bool more = true;
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, group);
        cr_assert_eq(golden_open(path, &file), STATUS_OK, "%s", failure_current()->message);
        CompileOptions options = { .n_threads = 1 };
        for (;;) {
                CaseGraph made = { .constants = constants, .numbers = numbers };
                Value other[64];
                cr_assert_eq(golden_next(&file, &golden, &more), STATUS_OK);
                if (!more)
                        break;
                BothResult result = BOTH_DIFFER;
                Status status = make_graph(&golden, &made);
                bool plain = status == STATUS_OK && is_plain(&golden, &made);
                if (status != STATUS_OK)
                        snprintf(words, sizeof(words), "no graph: %.400s", failure_current()->message);
                else if (!plain) {
                        uint32_t n = constants ? 0 : made.n_inputs;
                        change_numbers(&made, other);
                        result = run_both_open(made.graph, (ValueSpan){ made.inputs, n },
                                               (ValueSpan){ other, n }, &options,
                                               (Tolerance){ golden.rtol, golden.atol }, words);
                }
                if (plain)
                        n_plain++;
                else
                        counts[result]++;
                if (result == BOTH_DIFFER && !plain)
                        fprintf(stderr, "%s line %d, %s: %s\n", group, golden.line, golden.op, words);
                graph_unref(made.graph);
                golden_case_deinit(&golden);
        }
        golden_close(&file);
        fprintf(stderr, "%-10s", group);
        for (int i = 0; i < 4; i++)
                fprintf(stderr, " %4u %s", counts[i], names[i]);
        fprintf(stderr, " %4u as in the plain form\n", n_plain);
        cr_assert_gt(counts[BOTH_EQUAL] + n_plain, 0);
        cr_assert_eq(counts[BOTH_DIFFER], 0);
}

#define GOLDEN_GROUP(group)                                                                                  \
        Test(golden, group##_compiled_gives_what_eager_gives, .timeout = 280)                                \
        {                                                                                                    \
                run_group(#group, false, false);                                                             \
        }                                                                                                    \
        Test(golden, group##_compiled_with_constants_gives_what_eager_gives, .timeout = 280)                 \
        {                                                                                                    \
                run_group(#group, true, false);                                                              \
        }                                                                                                    \
        Test(golden, group##_compiled_for_other_numbers_gives_what_eager_gives, .timeout = 280)              \
        {                                                                                                    \
                run_group(#group, false, true);                                                              \
        }
#include "tests/ops/golden_groups.def"
#undef GOLDEN_GROUP
