// SPDX-License-Identifier: Apache-2.0
// bind_inputs: kinds, literals, shapes, symbols, ranges, guards, each with the words a person gets.
#include "core/eval/bind.h"
#include "core/eval/guards.h"
#include "tests/eval/sample.h"

static Sample sample;
static Input inputs[8];
static SymbolRange ranges[4];
static const char *guards[4];

static void open_sample(void)
{
        sample_open(&sample);
        memset(inputs, 0, sizeof(inputs));
        sample.graph->signature.inputs = inputs;
        sample.graph->signature.ranges = ranges;
        sample.graph->signature.guards = guards;
}

static void close_sample(void)
{
        sample_close(&sample);
}

TestSuite(bind, .init = open_sample, .fini = close_sample);

// "s0", "2*s0" or "" for a constant.
static Input *input(const char *name, int rank, const int64_t *size, const char *const *exprs)
{
        Signature *signature = &sample.graph->signature;
        Input *row = &inputs[signature->n_inputs++];
        row->kind = INPUT_USER;
        row->placeholder = add_input(&sample, name);
        row->value_kind = VALUE_TENSOR;
        row->spec = (TensorSpec){ .dtype = DTYPE_F32, .rank = rank };
        for (int d = 0; d < rank; d++)
                row->spec.size[d] =
                        (SymDim){ .value = size[d],
                                  .expr = exprs == NULL || exprs[d][0] == '\0' ? NULL : exprs[d] };
        signature->n_user_inputs++;
        return row;
}
#define EXPRS(...) ((const char *const[]){ __VA_ARGS__ })

static Value tensor(int rank, const int64_t *size)
{
        return F32(&sample, SIZES(1), NULL).kind == VALUE_TENSOR
                       ? sample_tensor(&sample, DTYPE_F32, rank, size, NULL)
                       : value_none();
}

static Status bind(uint32_t n, const Value *values, Value *out)
{
        Status status = bind_inputs(sample.graph, (ValueSpan){ .items = values, .n = n }, NULL, out);
        for (uint32_t i = 0; status == STATUS_OK && i < sample.graph->signature.n_inputs; i++)
                keep(&sample, out[i]);
        return status;
}

static void expect_ok(uint32_t n, const Value *values)
{
        Value out[8];
        must(bind(n, values, out));
}

static void expect_failure(Status want, const char *message, uint32_t n, const Value *values)
{
        Value out[8];
        cr_assert_eq(bind(n, values, out), want, "%s", failure_current()->message);
        cr_assert_str_eq(failure_current()->message, message);
}

static void add_guard(const char *guard)
{
        guards[sample.graph->signature.n_guards++] = guard;
}

static void add_range(const char *symbol, int64_t min, int64_t max)
{
        ranges[sample.graph->signature.n_ranges++] =
                (SymbolRange){ .symbol = symbol, .min = min, .max = max };
}

static const Value absent = { .kind = VALUE_ABSENT };

Test(bind, state_is_left_to_the_walk)
{
        input("x", SIZES(3), NULL);
        inputs[1] = (Input){ .kind = INPUT_STATE, .path = "w" };
        sample.graph->signature.n_inputs = 2;
        Value in = tensor(SIZES(3)), out[8];
        must(bind(VALUES(in), out));
        cr_assert_eq(out[0].tensor, in.tensor);
        cr_assert_eq(out[1].kind, VALUE_ABSENT);
}

Test(bind, the_count_must_be_right)
{
        input("x", SIZES(3), NULL);
        expect_failure(STATUS_INPUT, "the graph takes 1 input, but 0 were given", 0, NULL);
        expect_failure(STATUS_INPUT, "the graph takes 1 input, but 2 were given",
                       VALUES(tensor(SIZES(3)), tensor(SIZES(3))));
}

Test(bind, a_missing_input_is_named_with_all_that_the_graph_takes)
{
        input("x", SIZES(3), NULL);
        input("mask", SIZES(3), NULL);
        expect_failure(STATUS_INPUT, "input \"mask\" is missing; the graph takes: x, mask",
                       VALUES(tensor(SIZES(3)), absent));
        cr_assert_str_eq(failure_current()->argument, "mask");
}

Test(bind, defaults_and_starred_placeholders_may_be_absent)
{
        inputs[0] = (Input){ .kind = INPUT_USER, .spec = { .rank = -1 } };
        inputs[0].placeholder = add_node(&sample, OP_PLACEHOLDER, "scale", "scale", VALUES(value_int(1)));
        inputs[1] = (Input){ .kind = INPUT_USER, .spec = { .rank = -1 } };
        inputs[1].placeholder = add_node(&sample, OP_PLACEHOLDER, "rest", "*rest", 0, NULL);
        sample.graph->signature.n_inputs = 2;
        Value out[8];
        must(bind(VALUES(absent, absent), out));
        cr_assert_eq(out[0].kind, VALUE_ABSENT);
}

Test(bind, kinds_are_checked_first)
{
        input("x", SIZES(3), NULL);
        inputs[1] = (Input){ .kind = INPUT_USER, .value_kind = VALUE_INT, .spec = { .rank = -1 } };
        inputs[1].placeholder = add_input(&sample, "n");
        sample.graph->signature.n_inputs = 2;
        expect_failure(STATUS_INPUT, "input \"x\" must be a tensor, not int",
                       VALUES(value_int(1), value_int(1)));
        expect_failure(STATUS_INPUT, "input \"n\" must be int, not float",
                       VALUES(tensor(SIZES(4)), value_float(1)));
        expect_ok(VALUES(tensor(SIZES(3)), value_int(1)));
}

Test(bind, literals_are_filled_in_or_must_be_equal)
{
        Value word = sample_text(&sample, "mean");
        inputs[0] = (Input){ .kind = INPUT_LITERAL,
                             .placeholder = add_input(&sample, "scale"),
                             .literal = value_float(0.5) };
        inputs[1] = (Input){ .kind = INPUT_LITERAL,
                             .placeholder = add_input(&sample, "mode"),
                             .literal = value_ref(word) };
        sample.graph->signature.n_inputs = 2;
        Value out[8];
        must(bind(VALUES(absent, absent), out));
        cr_assert_float_eq(out[0].f, 0.5, 0);
        cr_assert_eq(out[1].str, word.str);
        expect_ok(VALUES(value_float(0.5), sample_text(&sample, "mean")));
        expect_failure(STATUS_INPUT,
                       "input \"scale\" was fixed to 0.5 when the graph was exported, but got 2",
                       VALUES(value_int(2), absent));
        expect_failure(STATUS_INPUT,
                       "input \"mode\" was fixed to \"mean\" when the graph was exported, but got \"sum\"",
                       VALUES(absent, sample_text(&sample, "sum")));
}

Test(bind, ranks_and_fixed_sizes_are_checked_before_symbols)
{
        input("x", SIZES(-1, 3), EXPRS("s31", ""));
        expect_failure(STATUS_SHAPE, "input \"x\" has shape [3], expected [s31, 3]",
                       VALUES(tensor(SIZES(3))));
        expect_failure(STATUS_SHAPE, "input \"x\" has shape [2, 4], expected [s31, 3]",
                       VALUES(tensor(SIZES(2, 4))));
        cr_assert_str_eq(failure_current()->detail_key, "guard");
        cr_assert_str_eq(failure_current()->detail, "x.size()[1] == 3");
        expect_ok(VALUES(tensor(SIZES(5, 3))));
        expect_ok(VALUES(tensor(SIZES(0, 3))));
}

Test(bind, a_tensor_of_unknown_rank_takes_any_shape)
{
        input("x", 0, NULL, NULL)->spec.rank = -1;
        expect_ok(VALUES(tensor(SIZES(2, 3, 4))));
}

Test(bind, a_symbol_has_one_value_in_all_inputs)
{
        input("x", SIZES(-1, 3), EXPRS("s31", ""));
        input("y", SIZES(-1), EXPRS("s31"));
        expect_ok(VALUES(tensor(SIZES(2, 3)), tensor(SIZES(2))));
        expect_failure(STATUS_SHAPE,
                       "input \"y\" has shape [4], expected [s31] with s31 = 2 as in input \"x\"",
                       VALUES(tensor(SIZES(2, 3)), tensor(SIZES(4))));
}

Test(bind, a_compound_size_is_computed_or_solved)
{
        input("x", SIZES(-1), EXPRS("2*s39"));
        input("y", SIZES(-1), EXPRS("s39 + 1"));
        expect_ok(VALUES(tensor(SIZES(6)), tensor(SIZES(4))));
        expect_failure(STATUS_SHAPE, "input \"y\" has shape [4], expected [s39 + 1], where s39 + 1 is 4.5",
                       VALUES(tensor(SIZES(7)), tensor(SIZES(4))));
        expect_failure(STATUS_SHAPE, "input \"y\" has shape [5], expected [s39 + 1], where s39 + 1 is 4",
                       VALUES(tensor(SIZES(6)), tensor(SIZES(5))));
}

// As a module that torch.export made does: it solves sizes for their symbols without asking for
// whole numbers. What needs them has guards.
Test(bind, a_symbol_that_no_size_has_alone_may_be_a_fraction)
{
        input("x", SIZES(-1), EXPRS("8*s40"));
        input("y", SIZES(-1), EXPRS("4*s40"));
        add_range("8*s40", 8, 800);
        add_range("s40", 3, 100);
        expect_ok(VALUES(tensor(SIZES(32)), tensor(SIZES(16))));
        expect_ok(VALUES(tensor(SIZES(30)), tensor(SIZES(15))));
        expect_failure(STATUS_SHAPE, "input \"y\" has shape [14], expected [4*s40], where 4*s40 is 15",
                       VALUES(tensor(SIZES(30)), tensor(SIZES(14))));
        expect_failure(STATUS_SHAPE, "input \"y\" has shape [15], expected [4*s40], where 4*s40 is 15.5",
                       VALUES(tensor(SIZES(31)), tensor(SIZES(15))));
        expect_failure(STATUS_GUARD, "s40 is 2.5; the graph was exported for s40 >= 3",
                       VALUES(tensor(SIZES(20)), tensor(SIZES(10))));
        expect_failure(STATUS_GUARD, "8*s40 is 804; the graph was exported for 8*s40 <= 800",
                       VALUES(tensor(SIZES(804)), tensor(SIZES(402))));
        forget_guards(sample.graph);
        add_guard("s40 % 2 == 0");
        expect_ok(VALUES(tensor(SIZES(30)), tensor(SIZES(15))));
        expect_failure(STATUS_GUARD,
                       "these inputs do not fit what the graph was exported for: it needs s40 % 2 == 0",
                       VALUES(tensor(SIZES(24)), tensor(SIZES(12))));
}

Test(bind, plain_symbols_decide_before_compound_ones)
{
        input("x", SIZES(-1), EXPRS("2*s39"));
        input("y", SIZES(-1), EXPRS("s39"));
        expect_ok(VALUES(tensor(SIZES(6)), tensor(SIZES(3))));
        expect_failure(STATUS_SHAPE, "input \"x\" has shape [8], expected [2*s39], where 2*s39 is 6",
                       VALUES(tensor(SIZES(8)), tensor(SIZES(3))));
}

Test(bind, ranges_hold_above_and_below_but_two_is_no_lower_bound)
{
        input("x", SIZES(-1, 3), EXPRS("s31", ""));
        add_range("s31", 2, 64);
        expect_ok(VALUES(tensor(SIZES(1, 3))));
        expect_ok(VALUES(tensor(SIZES(64, 3))));
        expect_failure(STATUS_GUARD,
                       "input \"x\" has size 65 in dimension 0 (s31); the graph was exported for s31 <= 64",
                       VALUES(tensor(SIZES(65, 3))));
        cr_assert_str_eq(failure_current()->detail, "x.size()[0] <= 64");
        ranges[0].min = 4;
        expect_failure(STATUS_GUARD,
                       "input \"x\" has size 3 in dimension 0 (s31); the graph was exported for s31 >= 4",
                       VALUES(tensor(SIZES(3, 3))));
        cr_assert_str_eq(failure_current()->detail, "x.size()[0] >= 4");
}

Test(bind, ranges_of_expressions_hold_too)
{
        input("x", SIZES(-1), EXPRS("s0"));
        add_range("2*s0", 0, 10);
        expect_ok(VALUES(tensor(SIZES(5))));
        expect_failure(STATUS_GUARD, "2*s0 is 12; the graph was exported for 2*s0 <= 10",
                       VALUES(tensor(SIZES(6))));
}

Test(bind, ranges_of_fractions_hold_too)
{
        input("x", SIZES(-1), EXPRS("s0"));
        add_range("s0/2", 4, 10);
        expect_ok(VALUES(tensor(SIZES(9))));
        expect_failure(STATUS_GUARD, "s0/2 is 3.5; the graph was exported for s0/2 >= 4",
                       VALUES(tensor(SIZES(7))));
        expect_failure(STATUS_GUARD, "s0/2 is 10.5; the graph was exported for s0/2 <= 10",
                       VALUES(tensor(SIZES(21))));
}

Test(bind, a_guard_is_shown_as_pytorch_prints_it)
{
        input("x", SIZES(-1), EXPRS("s0"));
        input("y", SIZES(-1), EXPRS("s1"));
        add_guard("L['x'].size()[0] <= L['y'].size()[0]");
        expect_ok(VALUES(tensor(SIZES(2)), tensor(SIZES(3))));
        expect_failure(STATUS_GUARD,
                       "these inputs do not fit what the graph was exported for: it needs x.size()[0] <= "
                       "y.size()[0]",
                       VALUES(tensor(SIZES(4)), tensor(SIZES(3))));
        cr_assert_str_eq(failure_current()->detail_key, "guard");
        cr_assert_str_eq(failure_current()->detail, "x.size()[0] <= y.size()[0]");
}

Test(bind, guards_reach_into_nested_arguments_and_ints)
{
        static Tree leaves[4] = { { .kind = TREE_LEAF, .first_leaf = 0, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 1, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 2, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 3, .n_leaves = 1 } };
        static const char *dict_keys[] = { "a", "b" }, *kwarg_keys[] = { "n" },
                          *names[] = { "d", "pair", "n" };
        static Tree *in_dict[] = { &leaves[0], &leaves[1] }, *in_pair[] = { &leaves[2] };
        static Tree dict = { .kind = TREE_DICT, .n = 2, .keys = dict_keys, .children = in_dict },
                    pair = { .kind = TREE_TUPLE, .n = 1, .children = in_pair, .first_leaf = 2 };
        static Tree *positional[] = { &dict, &pair }, *keyword[] = { &leaves[3] };
        static Tree args = { .kind = TREE_TUPLE, .n = 2, .children = positional },
                    kwargs = { .kind = TREE_DICT, .n = 1, .keys = kwarg_keys, .children = keyword };
        static Tree *both[] = { &args, &kwargs };
        static Tree whole = { .kind = TREE_TUPLE, .n = 2, .children = both };
        input("d_a", SIZES(-1), EXPRS("s0"));
        input("d_b", SIZES(-1), EXPRS("s1"));
        input("pair_0", SIZES(-1), EXPRS("s2"));
        inputs[3] = (Input){ .kind = INPUT_USER,
                             .value_kind = VALUE_INT,
                             .spec = { .rank = -1 },
                             .placeholder = add_input(&sample, "n") };
        Signature *signature = &sample.graph->signature;
        signature->n_inputs = 4;
        signature->in_tree = &whole;
        signature->argument_names = names;
        signature->n_arguments = 3;
        add_guard("L['d']['b'].size()[0] == L['pair'][0].size()[0]");
        add_guard("L['n'] >= 0 and L['n'] <= L['d']['a'].size()[0]");
        Value two = tensor(SIZES(2)), three = tensor(SIZES(3));
        expect_ok(VALUES(two, three, three, value_int(2)));
        expect_failure(STATUS_GUARD,
                       "these inputs do not fit what the graph was exported for: it needs d['b'].size()[0] "
                       "== pair[0].size()[0]",
                       VALUES(two, two, three, value_int(2)));
        expect_failure(STATUS_GUARD,
                       "these inputs do not fit what the graph was exported for: it needs n >= 0 and n <= "
                       "d['a'].size()[0]",
                       VALUES(two, three, three, value_int(3)));
}

// forward(*a, **k), fields, dicts with numbers as keys, and keys that Python prints with escapes.
Test(bind, guards_reach_whatever_python_calls_an_input)
{
        static Tree leaves[4] = { { .kind = TREE_LEAF, .first_leaf = 0, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 1, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 2, .n_leaves = 1 },
                                  { .kind = TREE_LEAF, .first_leaf = 3, .n_leaves = 1 } };
        static const char *dict_keys[] = { "3", "it's]\n" }, *kwarg_keys[] = { "x" }, *fields[] = { "q" },
                          *names[] = { "a_0", "a_1", "x" };
        static Tree *in_dict[] = { &leaves[0], &leaves[1] }, *in_fields[] = { &leaves[2] };
        static Tree dict = { .kind = TREE_DICT, .n = 2, .keys = dict_keys, .children = in_dict }, record = {
                .kind = TREE_NAMEDTUPLE, .n = 1, .keys = fields, .children = in_fields, .first_leaf = 2
        };
        static Tree *positional[] = { &dict, &record }, *keyword[] = { &leaves[3] };
        static Tree args = { .kind = TREE_TUPLE, .n = 2, .children = positional },
                    kwargs = { .kind = TREE_DICT, .n = 1, .keys = kwarg_keys, .children = keyword };
        static Tree *both[] = { &args, &kwargs };
        static Tree whole = { .kind = TREE_TUPLE, .n = 2, .children = both };
        static const char *const wanted[] = { "L['a'][0][3].size()[0] == 2",
                                              "L['a'][0]['it\\'s]\\n'].size()[0] == 2",
                                              "L['a'][1].q.size()[0] == 2", "L['k']['x'].size()[0] == 2" };
        static const char *const inputs_of[] = { "a_0_3", "a_0_s", "a_1_q", "x" };
        for (int i = 0; i < 4; i++)
                input(inputs_of[i], SIZES(-1), EXPRS("s0"));
        Signature *signature = &sample.graph->signature;
        signature->in_tree = &whole;
        signature->argument_names = names;
        signature->n_arguments = 3;
        Value two = tensor(SIZES(2)), three = tensor(SIZES(3));
        for (int i = 0; i < 4; i++) {
                signature->n_guards = 0;
                forget_guards(sample.graph);
                add_guard(wanted[i]);
                expect_ok(VALUES(two, two, two, two));
                Value out[8];
                cr_assert_eq(bind(VALUES(three, three, three, three), out), STATUS_GUARD, "%s", wanted[i]);
        }
}

// An int whose symbol or value the exporter noted, as api reads it: in size[0] of a spec of rank 0.
static void int_input(const char *name, SymDim dim)
{
        Signature *signature = &sample.graph->signature;
        Input *row = &inputs[signature->n_inputs++];
        *row = (Input){ .kind = INPUT_USER,
                        .value_kind = VALUE_INT,
                        .placeholder = add_input(&sample, name) };
        row->spec = (TensorSpec){ .dtype = DTYPE_I64, .size = { dim } };
        signature->n_user_inputs++;
}

Test(bind, a_symbolic_int_has_a_range)
{
        int_input("n", (SymDim){ .value = 4, .expr = "s5" });
        add_range("s5", 3, 9);
        expect_ok(VALUES(value_int(3)));
        expect_ok(VALUES(value_int(9)));
        expect_failure(STATUS_GUARD, "n is 10; the graph was exported for s5 <= 9", VALUES(value_int(10)));
        cr_assert_str_eq(failure_current()->argument, "n");
        expect_failure(STATUS_GUARD, "n is 2; the graph was exported for s5 >= 3", VALUES(value_int(2)));
}

Test(bind, a_symbolic_int_agrees_with_the_sizes_it_stands_for)
{
        input("x", SIZES(-1), EXPRS("s0"));
        int_input("n", (SymDim){ .expr = "s0" });
        int_input("m", (SymDim){ .expr = "2*s0" });
        int_input("four", (SymDim){ .value = 4 });
        Value x = tensor(SIZES(3));
        expect_ok(VALUES(x, value_int(3), value_int(6), value_int(4)));
        expect_failure(STATUS_SHAPE, "input \"n\" is 4, expected s0 with s0 = 3 as in input \"x\"",
                       VALUES(x, value_int(4), value_int(6), value_int(4)));
        expect_failure(STATUS_SHAPE, "input \"m\" is 5, expected 2*s0, where 2*s0 is 6",
                       VALUES(x, value_int(3), value_int(5), value_int(4)));
        expect_failure(STATUS_SHAPE, "input \"four\" is 5, expected 4",
                       VALUES(x, value_int(3), value_int(6), value_int(5)));
}

Test(bind, a_guard_about_what_is_not_known_holds)
{
        input("x", SIZES(-1), EXPRS("s0"));
        add_guard("L['elsewhere'].size()[0] == 3");
        add_guard("s9 == 3");
        expect_ok(VALUES(tensor(SIZES(2))));
}

// What guards_check says of one guard; NULL: it can be checked.
static const char *checked(const char *guard)
{
        sample.graph->signature.n_guards = 0;
        forget_guards(sample.graph);
        add_guard(guard);
        Status status = guards_check(sample.graph);
        cr_assert(status == STATUS_OK || status == STATUS_UNSUPPORTED);
        return status == STATUS_OK ? NULL : failure_current()->message;
}

Test(bind, guards_are_checked_before_any_run_for_what_they_speak_of)
{
        input("x", SIZES(-1, 4), EXPRS("2*s10", ""));
        int_input("n", (SymDim){ .value = 4, .expr = "s2" });
        cr_expect_null(checked("L['x'].size()[0] % 2 == 0"));
        cr_expect_null(checked("L['x'].size()[1] == 4 and L['n'] > 1"));
        cr_expect_null(checked("s10 + s2 > 3"));
        static const char *const wrong[][2] = {
                { "L['y'].size()[0] > 1", "nothing that the graph takes is y.size()[0]" },
                { "L['x'].size()[2] > 1", "nothing that the graph takes is x.size()[2]" },
                { "L['x'].stride()[0] > 1", "nothing that the graph takes is x.stride()[0]" },
                { "L['x'] > 1", "nothing that the graph takes is x" },
                { "s1 > 1", "nothing that the graph takes is s1" },
                { "L[''] > 1", "nothing that the graph takes is " },
                { "u0 > 1", "nothing that the graph takes is u0" },
                { "L['n'] > 1 or unheard_of(L['n']) == 2", "nothing that the graph takes is unheard_of" },
                { "(L['n'] ^ 1) == 7", "guard (L['n'] ^ 1) == 7 cannot be checked" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
                const char *said = checked(wrong[i][0]);
                cr_expect(said != NULL && strstr(said, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                          said == NULL ? "it can be checked" : said);
        }
}
