// SPDX-License-Identifier: Apache-2.0
// python_number.c: what 64-bit integers refuse where Python would go on, and the corners of its
// arithmetic that cases.json cannot carry.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/targets/python_number.h"

static Value binary(PyBinary op, Value a, Value b)
{
        Value out = value_none();
        cr_assert_eq(python_binary(op, a, b, &out), STATUS_OK, "%s", failure_current()->message);
        return out;
}

static void expect_int(PyBinary op, int64_t a, int64_t b, int64_t want)
{
        Value got = binary(op, value_int(a), value_int(b));
        cr_expect_eq(got.kind, VALUE_INT);
        cr_expect_eq(got.i, want, "%ld %s %ld = %ld", (long)a, py_binary_signs[op], (long)b, (long)got.i);
}

static void expect_refused(PyBinary op, int64_t a, int64_t b)
{
        Value out = value_none();
        cr_expect_eq(python_binary(op, value_int(a), value_int(b), &out), STATUS_VALUE, "%ld %s %ld", (long)a,
                     py_binary_signs[op], (long)b);
        cr_expect_eq(out.kind, VALUE_NONE);
}

Test(ints, results_over_64_bits_are_refused)
{
        expect_refused(PY_ADD, INT64_MAX, 1);
        expect_refused(PY_SUB, INT64_MIN, 1);
        expect_refused(PY_MUL, INT64_MAX, 2);
        expect_refused(PY_POW, 10, 19);
        expect_refused(PY_POW, 2, 63);
        expect_refused(PY_POW, 2, INT64_MAX);
        expect_refused(PY_LSHIFT, 1, 63);
        expect_refused(PY_LSHIFT, 1, INT64_MAX);
        expect_refused(PY_FLOORDIV, INT64_MIN, -1);
        Value out;
        cr_expect_eq(python_negate(value_int(INT64_MIN), &out), STATUS_VALUE);
        cr_expect_eq(python_abs(value_int(INT64_MIN), &out), STATUS_VALUE);
}

Test(ints, results_at_the_edge_of_64_bits_are_exact)
{
        expect_int(PY_POW, 2, 62, (int64_t)1 << 62);
        expect_int(PY_POW, -2, 63, INT64_MIN);
        expect_int(PY_POW, 1, INT64_MAX, 1);
        expect_int(PY_POW, -1, INT64_MAX, -1);
        expect_int(PY_MOD, INT64_MIN, -1, 0);
        expect_int(PY_FLOORDIV, INT64_MIN, 1, INT64_MIN);
        expect_int(PY_RSHIFT, -1, INT64_MAX, -1);
        expect_int(PY_LSHIFT, 0, INT64_MAX, 0);
        expect_int(PY_FLOORDIV, INT64_MAX, -2, -4611686018427387904);
}

Test(ints, true_division_rounds_once)
{
        // Double division of the rounded operands would give other last bits: values from Python.
        cr_expect_eq(binary(PY_TRUEDIV, value_int(9007199254740993), value_int(9007199254740991)).f,
                     1.0000000000000002);
        cr_expect_eq(binary(PY_TRUEDIV, value_int(INT64_MAX), value_int(3)).f, 3.0744573456182584e+18);
        cr_expect_eq(binary(PY_TRUEDIV, value_int(-9223372036854775807), value_int(9007199254740995)).f,
                     -1023.9999999999997);
        cr_expect_eq(binary(PY_TRUEDIV, value_int(9223372036854775807), value_int(9223372036854775805)).f,
                     1.0);
}

Test(order, ints_and_floats_compare_exactly)
{
        Value big = value_int((1l << 53) + 1), close = value_float(9007199254740992.0);
        cr_expect_not(binary(PY_EQ, big, close).b);
        cr_expect(binary(PY_GT, big, close).b);
        cr_expect(binary(PY_LT, value_int(INT64_MAX), value_float(9223372036854775808.0)).b);
        cr_expect_not(binary(PY_LE, value_float(NAN), value_int(0)).b);
        cr_expect(binary(PY_NE, value_float(NAN), value_float(NAN)).b);
}

Test(floats, zero_results_keep_pythons_sign)
{
        cr_expect(signbit(binary(PY_MOD, value_float(0.0), value_float(-3.0)).f) != 0);
        cr_expect(signbit(binary(PY_FLOORDIV, value_float(-0.0), value_float(3.0)).f) != 0);
        cr_expect_eq(binary(PY_MOD, value_float(-1e-20), value_float(3.0)).f, 3.0);
        cr_expect_eq(binary(PY_MOD, value_float(5.0), value_float(INFINITY)).f, 5.0);
        cr_expect_eq(binary(PY_MOD, value_float(-5.0), value_float(INFINITY)).f, INFINITY);
}

Test(floats, powers_that_are_complex_or_too_large_are_refused)
{
        Value out;
        cr_expect_eq(python_binary(PY_POW, value_float(-8), value_float(1.0 / 3), &out), STATUS_VALUE);
        cr_expect_eq(python_binary(PY_POW, value_float(1e300), value_float(2), &out), STATUS_VALUE);
        cr_expect_eq(python_binary(PY_POW, value_float(0), value_float(-1), &out), STATUS_VALUE);
        cr_expect_eq(binary(PY_POW, value_float(INFINITY), value_float(2)).f, INFINITY);
        cr_expect_eq(binary(PY_POW, value_float(-2), value_float(3)).f, -8.0);
}

Test(conversions, floats_that_no_int64_holds_are_refused)
{
        Value out;
        cr_expect_eq(python_to_int(value_float(NAN), trunc, &out), STATUS_VALUE);
        cr_expect_eq(python_to_int(value_float(9223372036854775808.0), trunc, &out), STATUS_VALUE);
        cr_assert_eq(python_to_int(value_float(-9223372036854775808.0), trunc, &out), STATUS_OK);
        cr_expect_eq(out.i, INT64_MIN);
        cr_assert_eq(python_round(value_float(1e22), value_int(2), &out), STATUS_OK);
        cr_expect_eq(out.f, 1e22);
        cr_assert_eq(python_round(value_float(0.15), value_int(1), &out), STATUS_OK);
        cr_expect_eq(out.f, 0.1);
}

Test(sequences, repeating_without_end_is_refused)
{
        Value list, out;
        cr_assert_eq(value_ints_new(VALUE_LIST, (const int64_t[]){ 1, 2 }, 2, &list), STATUS_OK);
        cr_expect_eq(python_binary(PY_MUL, list, value_int(INT64_MAX), &out), STATUS_TOO_LARGE);
        cr_expect_eq(python_binary(PY_MUL, list, value_int(1 << 20), &out), STATUS_TOO_LARGE);
        Value none = binary(PY_MUL, list, value_int(-1));
        cr_expect_eq(none.seq->n, 0);
        value_clear(&none);
        value_clear(&list);
}
