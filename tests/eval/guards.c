// SPDX-License-Identifier: Apache-2.0
// guards_check and guards_hold: what they cost, and that they stop.
#include "core/eval/guards.h"
#include <stdarg.h>
#include <stdio.h>
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/eval/bind.h"
#include "tests/eval/sample.h"

static Sample sample;

static void open_sample(void)
{
        sample_open(&sample);
}

static void close_sample(void)
{
        sample_close(&sample);
}

TestSuite(guards, .init = open_sample, .fini = close_sample);

static char *text(const char *format, ...)
{
        char line[2000];
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        return arena_text(&sample.graph->arena, line, strlen(line));
}

// forward(d): a dict of `n` tensors, with keys `format` of a number.
static void takes_dict(uint32_t n, const char *format)
{
        Arena *arena = &sample.graph->arena;
        Signature *signature = &sample.graph->signature;
        const char **names = arena_array(arena, 1, sizeof(char *));
        const char **keys = arena_array(arena, n, sizeof(char *));
        Tree *trees = arena_array(arena, n + 4, sizeof(Tree));
        Tree **leaves = arena_array(arena, n, sizeof(Tree *)),
             **others = arena_array(arena, 3, sizeof(Tree *));
        signature->inputs = arena_array(arena, n, sizeof(Input));
        signature->n_inputs = n;
        for (uint32_t i = 0; i < n; i++) {
                Input *input = &signature->inputs[i];
                *input = (Input){ .kind = INPUT_USER, .value_kind = VALUE_TENSOR };
                input->placeholder = add_input(&sample, text("x_%u", i));
                input->spec = (TensorSpec){ .dtype = DTYPE_F32, .rank = 1, .size = { { .expr = "s0" } } };
                keys[i] = text(format, i);
                leaves[i] = &trees[i + 4];
                *leaves[i] = (Tree){ .kind = TREE_LEAF, .first_leaf = i, .n_leaves = 1 };
        }
        names[0] = "d";
        others[0] = &trees[1];
        others[1] = &trees[2];
        others[2] = &trees[3];
        trees[0] = (Tree){ .kind = TREE_TUPLE, .n = 2, .children = others };
        trees[1] = (Tree){ .kind = TREE_TUPLE, .n = 1, .children = &others[2] };
        trees[2] = (Tree){ .kind = TREE_DICT };
        trees[3] = (Tree){ .kind = TREE_DICT, .n = n, .keys = keys, .children = leaves };
        signature->in_tree = trees;
        must(tree_sort_keys(arena, trees));
        signature->argument_names = names;
        signature->n_arguments = 1;
}

static void has_guards(uint32_t n, const char *format)
{
        Signature *signature = &sample.graph->signature;
        signature->guards = arena_array(&sample.graph->arena, n, sizeof(char *));
        for (signature->n_guards = 0; signature->n_guards < n; signature->n_guards++)
                signature->guards[signature->n_guards] =
                        text(format, signature->n_inputs - 1 - signature->n_guards % signature->n_inputs);
}

Test(guards, many_guards_of_many_inputs_are_checked)
{
        takes_dict(1000, "key_%u");
        has_guards(10000, "L['d']['key_%u'].size()[0] > 1");
        must(guards_check(sample.graph));
}

// One after the other, the keys of all guards would be compared 750 million times.
Test(guards, guards_of_very_many_inputs_are_checked, .timeout = 60)
{
        takes_dict(50000, "key_%u");
        has_guards(30000, "L['d']['key_%u'].size()[0] > 1");
        must(guards_check(sample.graph));
}

static Status bind_nothing(uint32_t n, const RunContext *poll)
{
        Value *user = arena_array(&sample.graph->arena, n, sizeof(Value));
        Value *bound = arena_array(&sample.graph->arena, n, sizeof(Value));
        for (uint32_t i = 0; i < n; i++)
                user[i].kind = VALUE_ABSENT;
        return bind_inputs(sample.graph, (ValueSpan){ user, n }, poll, bound);
}

// Inputs with a default value, so that none need be given.
static void are_optional(void)
{
        for (uint32_t i = 0; i < sample.graph->signature.n_inputs; i++)
                sample.graph->signature.inputs[i].placeholder =
                        add_node(&sample, OP_PLACEHOLDER, text("y_%u", i), "y", VALUES(value_none()));
}

Test(guards, a_run_that_parses_or_evaluates_them_stops_at_its_deadline_and_when_it_is_cancelled)
{
        RunContext poll;
        run_context_init(&poll);
        takes_dict(1000, "key_%u");
        are_optional();
        has_guards(10000, "L['d']['key_%u'].size()[0] > 1");
        poll.deadline_ns = clock_ns() - 1;
        cr_assert_eq(bind_nothing(1000, &poll), STATUS_DEADLINE);
        cr_assert_null(atomic_load(&sample.graph->guards), "it parsed them all");
        poll.deadline_ns = 0;
        must(bind_nothing(1000, &poll));
        cr_assert_not_null(atomic_load(&sample.graph->guards));
        atomic_store(&poll.cancelled, 1);
        cr_assert_eq(bind_nothing(1000, &poll), STATUS_CANCELLED);
}

// s0 + s0 + ...
static const char *sum_of(uint32_t n)
{
        char *sum = arena_alloc(&sample.graph->arena, 5 * (size_t)n);
        for (uint32_t i = 0; i < n; i++)
                memcpy(sum + 5 * (size_t)i, i + 1 < n ? "s0 + " : "s0", i + 1 < n ? 5 : 2);
        return sum;
}

static void has_ranges(uint32_t n, uint32_t n_terms)
{
        Signature *signature = &sample.graph->signature;
        const char *sum = sum_of(n_terms);
        signature->ranges = arena_array(&sample.graph->arena, n, sizeof(SymbolRange));
        for (signature->n_ranges = 0; signature->n_ranges < n; signature->n_ranges++)
                signature->ranges[signature->n_ranges] = (SymbolRange){
                        .symbol = text("%u*s0 + %s", signature->n_ranges, sum), .min = 3, .max = INT64_MAX
                };
}

// 400,000 operations, of which one bind cannot hold all.
Test(guards, long_ranges_are_parsed_once_for_all_runs)
{
        takes_dict(1, "key_%u");
        cr_assert_eq(guards_bind_ns(sample.graph), -1);
        has_ranges(1000, 190);
        must(guards_check(sample.graph));
        cr_assert_gt(guards_bind_ns(sample.graph), 1000000);
        Value three = F32(&sample, SIZES(3), NULL), out;
        must(bind_inputs(sample.graph, (ValueSpan){ &three, 1 }, NULL, &out));
        keep(&sample, out);
        sample.graph->signature.ranges[999].max = 5;
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &three, 1 }, NULL, &out), STATUS_GUARD);
}

Test(guards, sizes_may_have_very_many_symbols)
{
        enum { MANY = 1000 };
        Value values[MANY], out[MANY], three = F32(&sample, SIZES(3), NULL),
                                       six = F32(&sample, SIZES(6), NULL);
        takes_dict(MANY, "key_%u");
        for (uint32_t i = 0; i < MANY; i++) {
                sample.graph->signature.inputs[i].spec.size[0].expr =
                        i < MANY - 1 ? text("s%u", i) : "2*s998";
                values[i] = i < MANY - 1 ? three : six;
        }
        must(guards_check(sample.graph));
        must(bind_inputs(sample.graph, (ValueSpan){ values, MANY }, NULL, out));
        for (uint32_t i = 0; i < MANY; i++)
                value_unref(out[i]);
        values[MANY - 1] = three;
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ values, MANY }, NULL, out), STATUS_SHAPE);
}

Test(guards, a_range_of_a_symbol_that_was_solved_for_speaks_of_the_symbol)
{
        SymbolRange range = { .symbol = "s0", .min = 3, .max = 9 };
        takes_dict(1, "key_%u");
        sample.graph->signature.inputs[0].spec.size[0].expr = "2*s0";
        sample.graph->signature.ranges = &range;
        sample.graph->signature.n_ranges = 1;
        Value four = F32(&sample, SIZES(4), NULL), out;
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &four, 1 }, NULL, &out), STATUS_GUARD);
        cr_assert_str_eq(failure_current()->message, "s0 is 2; the graph was exported for s0 >= 3");
}

// Reading inputs hashes the names of all arguments, and messages print some.
Test(guards, graphs_of_long_names_take_long_to_bind)
{
        enum { LONG = 100000 };
        takes_dict(1, "key_%u");
        char *name = arena_alloc(&sample.graph->arena, LONG + 1);
        memset(name, 'k', LONG);
        sample.graph->signature.argument_names[0] = name;
        must(guards_check(sample.graph));
        cr_assert_gt(guards_bind_ns(sample.graph), 50000);
}

Test(guards, sizes_and_ranges_that_cannot_be_read_or_are_too_long_are_refused)
{
        takes_dict(2, "key_%u");
        must(guards_check(sample.graph));
        cr_assert_lt(guards_bind_ns(sample.graph), 1000);
        forget_guards(sample.graph);
        sample.graph->signature.inputs[1].spec.size[0].expr = "2*";
        cr_assert_eq(guards_check(sample.graph), STATUS_MALFORMED);
        sample.graph->signature.inputs[1].spec.size[0].expr = "2*s0";
        limits.max_guards = 5;
        must(guards_check(sample.graph));
        forget_guards(sample.graph);
        limits.max_guards = 4;
        cr_assert_eq(guards_check(sample.graph), STATUS_TOO_LARGE);
        limits.max_guards = 1 << 20;
}

Test(guards, their_text_has_a_limit)
{
        limits.max_guards = 2 * (strlen("L['d']['key_0'].size()[0] > 1") + 1);
        takes_dict(2, "key_%u");
        has_guards(2, "L['d']['key_%u'].size()[0] > 1");
        must(guards_check(sample.graph));
        forget_guards(sample.graph);
        limits.max_guards--;
        cr_assert_eq(guards_check(sample.graph), STATUS_TOO_LARGE);
        limits.max_guards = 1 << 20;
}

// The guards are taken away behind the check: runs do not read the texts again.
Test(guards, runs_use_the_guards_that_the_check_parsed)
{
        takes_dict(1, "key_%u");
        has_guards(1, "L['d']['key_%u'].size()[0] > 2");
        must(guards_check(sample.graph));
        sample.graph->signature.guards[0] = "no longer a guard";
        Value two = F32(&sample, SIZES(2), NULL), three = F32(&sample, SIZES(3), NULL), out;
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &two, 1 }, NULL, &out), STATUS_GUARD);
        must(bind_inputs(sample.graph, (ValueSpan){ &three, 1 }, NULL, &out));
        keep(&sample, out);
}

Test(guards, keys_may_be_long)
{
        char key[310], guard[400];
        memset(key, 'k', 300);
        snprintf(key + 300, sizeof(key) - 300, "_%%u");
        snprintf(guard, sizeof(guard), "L['d']['%s'].size()[0] > 2", key);
        takes_dict(2, key);
        has_guards(2, guard);
        must(guards_check(sample.graph));
        Value two = F32(&sample, SIZES(2), NULL), three = F32(&sample, SIZES(3), NULL), out[2];
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ (Value[]){ two, two }, 2 }, NULL, out),
                     STATUS_GUARD);
        must(bind_inputs(sample.graph, (ValueSpan){ (Value[]){ three, three }, 2 }, NULL, out));
        keep(&sample, out[0]);
        keep(&sample, out[1]);
}

// As repr() of Python writes it; PyTorch's guards hold such keys.
Test(guards, keys_may_hold_any_characters)
{
        static const struct {
                const char *key, *printed;
        } cases[] = {
                { "\x01\x7f", "'\\x01\\x7f'" },
                { "\xc2\xa0\xe2\x80\x8b", "'\\xa0\\u200b'" },
                { "\xf3\xa0\x80\x81 a", "'\\U000e0001 a'" },
                { "\xc3\xa9\xe4\xb8\xad", "'\xc3\xa9\xe4\xb8\xad'" },
                { "it's", "\"it's\"" },
                { "'\"\\]", "'\\'\"\\\\]'" },
                { "\n\t\r", "'\\n\\t\\r'" },
                { "\\x01", "'\\\\x01'" },
                { "3", "3" },
                { "1.5", "1.5" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                sample_close(&sample);
                sample_open(&sample);
                takes_dict(1, "");
                sample.graph->signature.in_tree->children[0]->children[0]->keys =
                        (const char *[]){ cases[i].key };
                has_guards(1, "");
                sample.graph->signature.guards[0] = text("L['d'][%s].size()[0] > 2", cases[i].printed);
                Value two = F32(&sample, SIZES(2), NULL), three = F32(&sample, SIZES(3), NULL), out;
                cr_assert_eq(guards_check(sample.graph), STATUS_OK, "%s: %s", cases[i].printed,
                             failure_current()->message);
                cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &two, 1 }, NULL, &out), STATUS_GUARD);
                must(bind_inputs(sample.graph, (ValueSpan){ &three, 1 }, NULL, &out));
                keep(&sample, out);
        }
}

Test(guards, escapes_that_python_does_not_write_lead_nowhere)
{
        static const char *const printed[] = {
                "'\\x1'", "'\\x'", "'\\u00'", "'\\U00110000'", "'\\x00'", "'\\"
        };
        takes_dict(1, "key");
        has_guards(1, "");
        for (size_t i = 0; i < ARRAY_LENGTH(printed); i++) {
                sample.graph->signature.guards[0] = text("L['d'][%s].size()[0] > 2", printed[i]);
                cr_assert_eq(guards_check(sample.graph), STATUS_UNSUPPORTED);
                forget_guards(sample.graph);
        }
}

Test(guards, of_tensors_of_any_rank_hold_if_there_is_such_a_dimension)
{
        takes_dict(1, "key_%u");
        has_guards(1, "L['d']['key_%u'].size()[1] > 2");
        cr_assert_eq(guards_check(sample.graph), STATUS_UNSUPPORTED);
        forget_guards(sample.graph);
        sample.graph->signature.inputs[0].spec = (TensorSpec){ .dtype = DTYPE_NONE, .rank = -1 };
        must(guards_check(sample.graph));
        Value one = F32(&sample, SIZES(3), NULL), two = F32(&sample, SIZES(1, 2), NULL),
              three = F32(&sample, SIZES(1, 3), NULL), out;
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &one, 1 }, NULL, &out), STATUS_GUARD);
        cr_assert_eq(bind_inputs(sample.graph, (ValueSpan){ &two, 1 }, NULL, &out), STATUS_GUARD);
        must(bind_inputs(sample.graph, (ValueSpan){ &three, 1 }, NULL, &out));
        keep(&sample, out);
}
