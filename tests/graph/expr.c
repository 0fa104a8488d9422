// SPDX-License-Identifier: Apache-2.0
// Expressions in their three spellings. The srepr and str pairs were printed by sympy 1.14 with
// PyTorch 2.13's functions.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/graph/expr.h"

typedef struct Symbols {
        const char *name[6];
        int64_t value[6];
} Symbols;

static bool look_up(void *context, const char *symbol, ExprNumber *out)
{
        const Symbols *symbols = context;
        for (int i = 0; i < 6 && symbols->name[i] != NULL; i++) {
                if (strcmp(symbols->name[i], symbol) == 0) {
                        *out = (ExprNumber){ .i = symbols->value[i] };
                        return true;
                }
        }
        return false;
}

static Arena arena;

static void setup(void)
{
        arena_init(&arena, 0);
}

static void teardown(void)
{
        arena_deinit(&arena);
}

static Expr *parse(const char *text)
{
        Expr *expr = NULL;
        cr_assert_eq(expr_parse(text, &arena, &expr), STATUS_OK, "%s", failure_current()->message);
        return expr;
}

static ExprNumber evaluate(const char *text, Symbols *symbols)
{
        ExprNumber number = { 0 };
        bool known = false;
        cr_assert_eq(expr_eval(parse(text), look_up, symbols, &number, &known), STATUS_OK, "%s: %s", text,
                     failure_current()->message);
        cr_assert(known, "%s", text);
        return number;
}

Test(expr, srepr_infix_and_guards_evaluate_alike, .init = setup, .fini = teardown)
{
        Symbols symbols = { { "s0", "s1", "x.size()[0]", "d['a'].size()[1]", "n", "pair[0].size()[0]" },
                            { 7, 3, 5, 4, -2, 5 } };
        static const struct {
                const char *text;
                int64_t want;
        } rows[] = {
                { "Integer(-2)", -2 },
                { "Symbol('s0', positive=True, integer=True)", 7 },
                { "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))", 15 },
                { "Mul(Integer(2), Symbol('s0', integer=True), Symbol('s1'))", 42 },
                { "FloorDiv(Add(Symbol('s0'), Integer(-3)), Integer(2))", 2 },
                { "Pow(Symbol('s0'), Integer(3))", 343 },
                { "Max(Integer(1), Symbol('s1'), Symbol('s0'))", 7 },
                { "Min(Integer(32), Mul(Integer(32), Symbol('s1')))", 32 },
                { "Mod(Symbol('s0'), Integer(4))", 3 },
                { "PythonMod(Integer(-7), Integer(3))", 2 },
                { "ModularIndexing(Symbol('s0'), Integer(2), Integer(2))", 1 },
                { "GreaterThan(Symbol('s0'), Integer(7))", 1 },
                { "StrictLessThan(Symbol('s0'), Integer(7))", 0 },
                { "And(Equality(Symbol('s0'), Integer(7)), Not(Unequality(Symbol('s1'), Integer(3))))", 1 },
                { "TruncToInt(IntTrueDiv(Symbol('s0'), Integer(2)))", 3 },
                { "CeilToInt(IntTrueDiv(Symbol('s0'), Integer(2)))", 4 },
                { "2*s0 + 1", 15 },
                { "2 * (s0 + 1)", 16 },
                { "s0//2", 3 },
                { "-s0//2", -4 },
                { "-s0 % 4", 1 },
                { "s0 - 1 - 1", 5 },
                { "2**s1**2", 512 },
                { "-2**2", -4 },
                { "2**-(-1)", 2 },
                { "s0 << 2 | 1", 29 },
                { "not s0 == 7 or s1 >= 3 and s0 != 3", 1 },
                { "2 <= s1 <= 64", 1 },
                { "2 <= s0 <= 6", 0 },
                { "1 < s1 < s0 < 100", 1 },
                { "((s0 - 1)//2)*4 + 4", 16 },
                { "L['x'].size()[0] == L['pair'][0].size()[0]", 1 },
                { "((-1) + L['x'].size()[0]) == L['d']['a'].size()[1]", 1 },
                { "2*(((-3) + L['x'].size()[0]) // 2) < (-2) + L['x'].size()[0]", 1 },
                { "(max(1, (-2) + L['x'].size()[0])*max(1, L['n'])) != 1", 1 },
                { "L['n'] >= -2 and L['n'] <= 4", 1 },
                { "math.trunc(0.5*torch.sym_float(L['x'].size()[0])) == 2", 1 },
                { "torch.sym_float(L['x'].size()[0]).is_integer()", 1 },
                { "True", 1 },
                { "false", 0 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                ExprNumber number = evaluate(rows[i].text, &symbols);
                cr_assert(!number.is_float && number.i == rows[i].want, "%s = %lld, want %lld", rows[i].text,
                          (long long)number.i, (long long)rows[i].want);
        }
}

Test(expr, fractions_stay_floats, .init = setup, .fini = teardown)
{
        Symbols symbols = { { "s0" }, { 7 } };
        cr_assert_float_eq(evaluate("s0/2", &symbols).f, 3.5, 0);
        cr_assert_float_eq(
                evaluate("FloatPow(ToFloat(Symbol('s0')), Float('0.5', precision=53))", &symbols).f,
                2.6457513110645907, 0);
        cr_assert_float_eq(evaluate("Mul(Rational(1, 2), Symbol('s0'))", &symbols).f, 3.5, 0);
        cr_assert_float_eq(evaluate("7.5 // 2", &symbols).f, 3, 0);
}

Test(expr, an_unknown_symbol_or_function_makes_the_result_unknown, .init = setup, .fini = teardown)
{
        Symbols symbols = { { "s0" }, { 7 } };
        static const char *const texts[] = { "s0 + s9", "some.function(s0, 1) + 1", "L['y'].size()[0]" };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                ExprNumber number;
                bool known = true;
                cr_assert_eq(expr_eval(parse(texts[i]), look_up, &symbols, &number, &known), STATUS_OK);
                cr_assert(!known, "%s", texts[i]);
        }
}

Test(expr, overflow_and_division_by_zero_are_failures_not_numbers, .init = setup, .fini = teardown)
{
        Symbols symbols = { { "s0", "z" }, { INT64_MAX, 0 } };
        static const char *const texts[] = { "s0 + 1",    "s0*2",
                                             "-s0 - 2",   "s0**2",
                                             "2**63",     "1 << 63",
                                             "s0 // z",   "s0 % z",
                                             "s0 / z",    "Mod(1, z)",
                                             "z**-1",     "abs(-s0 - 1)",
                                             "int(1e30)", "ModularIndexing(s0, z, 2)" };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                ExprNumber number;
                bool known;
                cr_assert_eq(expr_eval(parse(texts[i]), look_up, &symbols, &number, &known), STATUS_VALUE,
                             "%s", texts[i]);
        }
}

Test(expr, malformed_text_is_refused_with_its_place, .init = setup, .fini = teardown)
{
        static const struct {
                const char *text, *message;
        } rows[] = {
                { "", "column 1" },
                { "s0 +", "ends too early" },
                { "s0 s1", "column 4: expected an operator" },
                { "(s0", "expected ')'" },
                { "s0)", "')' without '('" },
                { "Add(s0, )", "column 9" },
                { "Integer(1, 2)", "wrong number of arguments" },
                { "Integer()", "wrong number of arguments" },
                { "(s0, s1)", "',' outside of a call" },
                { "Symbol(s0)", "quoted text" },
                { "Symbol('s0", "does not end" },
                { "Symbol('s0'", "expected ')'" },
                { "Float('x')", "Float needs a number" },
                { "L['x'.size()", "expected ']'" },
                { "99999999999999999999", "does not fit 64 bits" },
                { "s0 $ 1", "expected an operator" },
                { "1..2", "column 1" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Expr *expr = NULL;
                cr_assert_eq(expr_parse(rows[i].text, &arena, &expr), STATUS_MALFORMED, "%s", rows[i].text);
                cr_assert(strstr(failure_current()->message, rows[i].message) != NULL, "%s: %s", rows[i].text,
                          failure_current()->message);
        }
}

Test(expr, a_hundred_thousand_levels_are_refused_without_harm, .init = setup, .fini = teardown)
{
        enum { N = 100000 };
        static const char *const openings[] = { "(", "-", "Add(", "not ", "Max(1," };
        for (size_t k = 0; k < ARRAY_LENGTH(openings); k++) {
                size_t n = strlen(openings[k]);
                char *text = malloc(n * N + 3);
                for (size_t i = 0; i < N; i++)
                        memcpy(text + n * i, openings[k], n);
                memcpy(text + n * N, "s0", 3);
                Expr *expr;
                cr_assert_eq(expr_parse(text, &arena, &expr), STATUS_TOO_LARGE);
                free(text);
        }
}

Test(expr, a_long_sum_within_the_cap_evaluates, .init = setup, .fini = teardown)
{
        char text[2 * 2000 + 2];
        for (int i = 0; i < 2000; i++)
                memcpy(text + 2 * i, "1+", 2);
        memcpy(text + 4000, "1", 2);
        cr_assert_eq(evaluate(text, &(Symbols){ 0 }).i, 2001);
        char nested[2048 * 2] = "";
        memset(nested, '(', 1500);
        strcpy(nested + 1500, "1");
        memset(nested + 1501, ')', 1500);
        cr_assert_eq(evaluate(nested, &(Symbols){ 0 }).i, 1);
}

Test(expr, comparisons_nested_in_comparisons_do_not_blow_up, .init = setup, .fini = teardown)
{
        // Each level copies the one inside it: the cap on tokens counts the copies.
        char text[512];
        strcpy(text, "s0");
        for (int level = 1; level <= 20; level++) {
                char next[600];
                snprintf(next, sizeof(next), "0<(%s)<9", text);
                memcpy(text, next, MIN(strlen(next) + 1, sizeof(text)));
                Expr *expr = NULL;
                Status status = expr_parse(text, &arena, &expr);
                cr_assert(level < 8    ? status == STATUS_OK
                          : level > 14 ? status == STATUS_TOO_LARGE
                                       : true,
                          "level %d: %s", level, status_code(status));
        }
        cr_assert_eq(evaluate("0 < (1 < 2 < 3) < 2", &(Symbols){ 0 }).i, 1);
        cr_assert_eq(evaluate("0 < (1 < 2 < 2) < 2", &(Symbols){ 0 }).i, 0);
}

Test(expr, the_single_symbol_is_known, .init = setup, .fini = teardown)
{
        cr_assert_str_eq(expr_single_symbol(parse("2*s39 + s39")), "s39");
        cr_assert_null(expr_single_symbol(parse("s0 + s1")));
        cr_assert_null(expr_single_symbol(parse("3 + 4")));
}

Test(expr, linear_expressions_are_solved_for_their_symbol, .init = setup, .fini = teardown)
{
        static const struct {
                const char *text;
                int64_t value, want; // want -1: no whole number, -2: not linear, or too large
        } rows[] = {
                { "s39", 5, 5 },
                { "2*s39", 8, 4 },
                { "2*s39", 7, -1 },
                { "Add(Mul(Integer(2), Symbol('s39')), Integer(1))", 9, 4 },
                { "3*(s39 - 2) + s39", 14, 5 },
                { "10 - s39", 4, 6 },
                { "s39 + Max(1, 2)", 7, 5 },
                { "s39//2", 3, -2 },
                { "s39*s39", 9, -2 },
                { "s39 - s39", 0, -2 },
                { "s39 - s39", 1, -1 },
                { "s0 + s1", 3, -2 },
                { "9223372036854775807*s39*2", 3, -2 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                int64_t solution = -3;
                ExprSolution wanted = rows[i].want >= 0    ? EXPR_SOLVED
                                      : rows[i].want == -1 ? EXPR_IMPOSSIBLE
                                                           : EXPR_UNSOLVED;
                cr_assert_eq(expr_solve(parse(rows[i].text), rows[i].value, &solution), wanted, "%s",
                             rows[i].text);
                cr_assert_eq(solution, wanted == EXPR_SOLVED ? rows[i].want : -3, "%s", rows[i].text);
        }
}

Test(expr, printing_gives_sympys_infix, .init = setup, .fini = teardown)
{
        static const char *const rows[][2] = {
                { "Add(Symbol('s17', positive=True, integer=True), Integer(1))", "s17 + 1" },
                { "Add(Mul(Integer(2), Symbol('s39')), Integer(1))", "2*s39 + 1" },
                { "Add(Mul(Integer(2), Symbol('s0'), Symbol('s1')), Integer(-3))", "2*s0*s1 - 3" },
                { "Add(Pow(Symbol('s0'), Integer(2)), Symbol('s0'))", "s0**2 + s0" },
                { "FloorDiv(Symbol('s0'), Integer(2))", "(s0//2)" },
                { "Add(FloorDiv(Symbol('s0'), Integer(2)), Integer(1))", "((s0//2)) + 1" },
                { "Add(Mul(Integer(4), FloorDiv(Add(Symbol('s0'), Integer(-1)), Integer(2))), Integer(4))",
                  "4*(((s0 - 1)//2)) + 4" },
                { "Add(Mul(Integer(-1), Symbol('s0')), Symbol('s1'))", "-s0 + s1" },
                { "Mul(Integer(-1), Symbol('s0'))", "-s0" },
                { "Add(Integer(3), Mul(Integer(-1), Symbol('s0')))", "3 - s0" },
                { "Mul(Symbol('s0'), Add(Symbol('s1'), Integer(1)))", "s0*(s1 + 1)" },
                { "Mul(Symbol('s2'), FloorDiv(Add(Symbol('s0'), Symbol('s1')), Integer(3)))",
                  "s2*(((s0 + s1)//3))" },
                { "Mod(Symbol('s0'), Integer(2))", "Mod(s0, 2)" },
                { "Max(Integer(1), Symbol('s0'))", "Max(1, s0)" },
                { "IntTrueDiv(Symbol('s0'), Integer(2))", "IntTrueDiv(s0, 2)" },
                { "GreaterThan(Symbol('s0'), Integer(2))", "s0 >= 2" },
                { "And(StrictGreaterThan(Symbol('s0'), Integer(1)), StrictLessThan(Symbol('s1'), "
                  "Integer(3)))",
                  "(s0 > 1) & (s1 < 3)" },
                { "Equality(Symbol('s0'), Symbol('s1'))", "Eq(s0, s1)" },
                { "2*s39", "2*s39" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Text text = { 0 };
                cr_assert_eq(expr_print(parse(rows[i][0]), &text), STATUS_OK);
                cr_assert_str_eq(text.data, rows[i][1]);
                text_deinit(&text);
        }
}

// Looking for each number's end in all that follows would take minutes.
Test(expr, a_long_name_behind_many_numbers_is_read_once, .init = setup, .fini = teardown, .timeout = 60)
{
        enum { NUMBERS = 2000, NAME = 1 << 26 };
        char *text = malloc(2 * NUMBERS + NAME + 1), *at = text;
        cr_assert_not_null(text);
        for (int i = 0; i < NUMBERS; i++, at += 2)
                memcpy(at, "1+", 2);
        memset(at, 'x', NAME);
        at[NAME] = '\0';
        parse(text);
        free(text);
}
