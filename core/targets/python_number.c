// SPDX-License-Identifier: Apache-2.0
// python_number.c: Python's arithmetic on values that are no tensors. Model: ints are int64 with
// every overflow refused (Python would grow them); floats are IEEE doubles with Python's own floor
// division and modulo; int with float compares exactly, not through rounding.
#include "core/targets/python_number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const py_binary_signs[PY_BINARY_COUNT] = {
        [PY_ADD] = "+", [PY_SUB] = "-",     [PY_MUL] = "*",     [PY_TRUEDIV] = "/", [PY_FLOORDIV] = "//",
        [PY_MOD] = "%", [PY_POW] = "**",    [PY_MATMUL] = "@",  [PY_AND] = "&",     [PY_OR] = "|",
        [PY_XOR] = "^", [PY_LSHIFT] = "<<", [PY_RSHIFT] = ">>", [PY_EQ] = "==",     [PY_NE] = "!=",
        [PY_LT] = "<",  [PY_LE] = "<=",     [PY_GT] = ">",      [PY_GE] = ">=",
};

static Status fail_operands(PyBinary op, Value a, Value b)
{
        bool order = op >= PY_LT;
        return fail(STATUS_VALUE,
                    order ? "'%s' not supported between instances of '%s' and '%s'"
                          : "unsupported operand type(s) for %s: '%s' and '%s'",
                    py_binary_signs[op], value_kind_name(a.kind), value_kind_name(b.kind));
}

static Status fail_wide(PyBinary op)
{
        return fail(STATUS_VALUE, "the integer result of %s does not fit 64 bits", py_binary_signs[op]);
}

// ---- ints ----
static Status int_power(int64_t base, int64_t exponent, Value *out)
{
        int64_t result = 1;
        while (exponent > 0) {
                if ((exponent & 1) != 0 && !mul_i64(result, base, &result))
                        return fail_wide(PY_POW);
                exponent >>= 1;
                if (exponent > 0 && !mul_i64(base, base, &base))
                        return fail_wide(PY_POW);
        }
        *out = value_int(result);
        return STATUS_OK;
}

// a / b rounded once, as Python divides ints that a double cannot hold.
static double int_quotient(int64_t a, int64_t b)
{
        const int64_t exact = (int64_t)1 << 53;
        if (a >= -exact && a <= exact && b >= -exact && b <= exact)
                return (double)a / (double)b;
        uint64_t size_a = a < 0 ? 0 - (uint64_t)a : (uint64_t)a,
                 size_b = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
        if (size_a == 0)
                return 0;
        int shift = 62 + __builtin_clzll(size_a);
        unsigned __int128 wide = (unsigned __int128)size_a << shift, quotient = wide / size_b;
        quotient |= (unsigned __int128)(wide % size_b != 0); // sticky bit: the rounding below is the only one
        double result = ldexp((double)quotient, -shift);
        return (a < 0) != (b < 0) ? -result : result;
}

static Status int_shift(PyBinary op, int64_t a, int64_t b, Value *out)
{
        if (b < 0)
                return fail(STATUS_VALUE, "negative shift count");
        if (op == PY_RSHIFT) {
                *out = value_int(a >> MIN(b, 63));
                return STATUS_OK;
        }
        int64_t shifted;
        if (a != 0 && (b > 62 || !mul_i64(a, (int64_t)1 << b, &shifted)))
                return fail_wide(op);
        *out = value_int(a == 0 ? 0 : shifted);
        return STATUS_OK;
}

static Status int_divide(PyBinary op, int64_t a, int64_t b, Value *out)
{
        if (b == 0)
                return fail(STATUS_VALUE, "%s",
                            op == PY_TRUEDIV ? "division by zero"
                            : op == PY_MOD   ? "integer modulo by zero"
                                             : "integer division or modulo by zero");
        if (op == PY_TRUEDIV) {
                *out = value_float(int_quotient(a, b));
                return STATUS_OK;
        }
        if (b == -1) {
                int64_t negated;
                if (op == PY_FLOORDIV && !sub_i64(0, a, &negated))
                        return fail_wide(op);
                *out = value_int(op == PY_FLOORDIV ? negated : 0);
                return STATUS_OK;
        }
        int64_t quotient = a / b, rest = a % b;
        if (rest != 0 && (rest < 0) != (b < 0)) {
                quotient--;
                rest += b;
        }
        *out = value_int(op == PY_FLOORDIV ? quotient : rest);
        return STATUS_OK;
}

static Status float_binary(PyBinary op, double a, double b, Value *out);

static Status int_binary(PyBinary op, int64_t a, int64_t b, bool both_bool, Value *out)
{
        int64_t result;
        switch (op) {
        case PY_ADD:
                if (!add_i64(a, b, &result))
                        return fail_wide(op);
                break;
        case PY_SUB:
                if (!sub_i64(a, b, &result))
                        return fail_wide(op);
                break;
        case PY_MUL:
                if (!mul_i64(a, b, &result))
                        return fail_wide(op);
                break;
        case PY_AND:
                result = a & b;
                break;
        case PY_OR:
                result = a | b;
                break;
        case PY_XOR:
                result = a ^ b;
                break;
        case PY_LSHIFT:
        case PY_RSHIFT:
                return int_shift(op, a, b, out);
        case PY_POW:
                if (b < 0)
                        return float_binary(op, (double)a, (double)b, out);
                return int_power(a, b, out);
        default:
                return int_divide(op, a, b, out);
        }
        bool logic = both_bool && (op == PY_AND || op == PY_OR || op == PY_XOR);
        *out = logic ? value_bool(result != 0) : value_int(result);
        return STATUS_OK;
}

// ---- floats ----
static double float_modulo(double a, double b)
{
        double rest = fmod(a, b);
        if (rest == 0)
                return copysign(0, b);
        return (b < 0) != (rest < 0) ? rest + b : rest;
}

static double float_floor_divide(double a, double b)
{
        double rest = fmod(a, b), quotient = (a - rest) / b;
        if (rest != 0 && (b < 0) != (rest < 0))
                quotient -= 1;
        if (quotient == 0)
                return copysign(0, a / b);
        double whole = floor(quotient);
        return quotient - whole > 0.5 ? whole + 1 : whole;
}

static Status float_power(double a, double b, Value *out)
{
        if (a == 0 && b < 0)
                return fail(STATUS_VALUE, "0.0 cannot be raised to a negative power");
        if (a < 0 && isfinite(a) && isfinite(b) && floor(b) != b)
                return fail(STATUS_VALUE, "a negative number to a fractional power is complex, which numbers "
                                          "here cannot be; use a complex tensor");
        double result = pow(a, b);
        if (isinf(result) && isfinite(a) && isfinite(b))
                return fail(STATUS_VALUE, "the result of ** is too large for a float");
        *out = value_float(result);
        return STATUS_OK;
}

static Status float_binary(PyBinary op, double a, double b, Value *out)
{
        if ((op == PY_TRUEDIV || op == PY_FLOORDIV || op == PY_MOD) && b == 0)
                return fail(STATUS_VALUE, "%s",
                            op == PY_TRUEDIV ? "float division by zero"
                            : op == PY_MOD   ? "float modulo"
                                             : "float floor division by zero");
        double result;
        switch (op) {
        case PY_ADD:
                result = a + b;
                break;
        case PY_SUB:
                result = a - b;
                break;
        case PY_MUL:
                result = a * b;
                break;
        case PY_TRUEDIV:
                result = a / b;
                break;
        case PY_FLOORDIV:
                result = float_floor_divide(a, b);
                break;
        case PY_MOD:
                result = float_modulo(a, b);
                break;
        case PY_POW:
                return float_power(a, b, out);
        default:
                return fail_operands(op, value_float(a), value_float(b));
        }
        *out = value_float(result);
        return STATUS_OK;
}

static Status complex_binary(PyBinary op, Value a, Value b, Value *out)
{
        double ar = a.kind == VALUE_COMPLEX ? a.c.re : python_float(a),
               ai = a.kind == VALUE_COMPLEX ? a.c.im : 0;
        double br = b.kind == VALUE_COMPLEX ? b.c.re : python_float(b),
               bi = b.kind == VALUE_COMPLEX ? b.c.im : 0;
        Value result = { .kind = VALUE_COMPLEX };
        if (op == PY_ADD || op == PY_SUB) {
                result.c.re = op == PY_ADD ? ar + br : ar - br;
                result.c.im = op == PY_ADD ? ai + bi : ai - bi;
        } else if (op == PY_MUL) {
                result.c.re = ar * br - ai * bi;
                result.c.im = ar * bi + ai * br;
        } else {
                return fail_operands(op, a, b);
        }
        *out = result;
        return STATUS_OK;
}

// ---- order and equality ----
// -1, 0, 1, or 2 when unordered (nan). A long double holds every int64
// and every double, so nothing is rounded.
static int number_order(Value a, Value b)
{
        long double x = a.kind == VALUE_FLOAT ? (long double)a.f : (long double)python_int(a);
        long double y = b.kind == VALUE_FLOAT ? (long double)b.f : (long double)python_int(b);
        return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static bool numbers_equal(Value a, Value b)
{
        if (a.kind != VALUE_COMPLEX && b.kind != VALUE_COMPLEX)
                return number_order(a, b) == 0;
        double ar = a.kind == VALUE_COMPLEX ? a.c.re : python_float(a),
               ai = a.kind == VALUE_COMPLEX ? a.c.im : 0;
        double br = b.kind == VALUE_COMPLEX ? b.c.re : python_float(b),
               bi = b.kind == VALUE_COMPLEX ? b.c.im : 0;
        return ar == br && ai == bi;
}

static bool sequences_equal(Value a, Value b)
{
        if ((a.kind == VALUE_LIST) != (b.kind == VALUE_LIST) || a.seq->n != b.seq->n)
                return false;
        for (uint32_t i = 0; i < a.seq->n; i++) {
                if (!python_equal(a.seq->items[i], b.seq->items[i])) // depth: limits.max_nested_values
                        return false;
        }
        return true;
}

static bool dicts_equal(const Dict *a, const Dict *b)
{
        if (a->n != b->n)
                return false;
        for (uint32_t i = 0; i < a->n; i++) {
                const Value *other = dict_get(b, a->items[i].key->text);
                if (other == NULL || !python_equal(a->items[i].value, *other))
                        return false;
        }
        return true;
}

bool python_equal(Value a, Value b)
{
        if (value_is_number(a) && value_is_number(b))
                return numbers_equal(a, b);
        if (value_is_sequence(a) && value_is_sequence(b))
                return sequences_equal(a, b);
        if (a.kind != b.kind)
                return false;
        switch (a.kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
                return true;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                return a.str->n == b.str->n && memcmp(a.str->text, b.str->text, a.str->n) == 0;
        case VALUE_DTYPE:
                return a.dtype == b.dtype;
        case VALUE_MEMORY_FORMAT:
                return a.memory_format == b.memory_format;
        case VALUE_DICT:
                return dicts_equal(a.dict, b.dict);
        case VALUE_TENSOR:
                return a.tensor == b.tensor;
        default:
                return false;
        }
}

static Status order_result(PyBinary op, int order, Value *out)
{
        bool held = order != 2;
        if (op == PY_LT)
                held &= order < 0;
        else if (op == PY_LE)
                held &= order <= 0;
        else if (op == PY_GT)
                held &= order > 0;
        else
                held &= order >= 0;
        *out = value_bool(held);
        return STATUS_OK;
}

static Status compare(PyBinary op, Value a, Value b, Value *out)
{
        if (op == PY_EQ || op == PY_NE) {
                *out = value_bool(python_equal(a, b) == (op == PY_EQ));
                return STATUS_OK;
        }
        if (value_is_number(a) && value_is_number(b) && a.kind != VALUE_COMPLEX && b.kind != VALUE_COMPLEX)
                return order_result(op, number_order(a, b), out);
        if (a.kind == VALUE_STR && b.kind == VALUE_STR) {
                int order = strcmp(a.str->text, b.str->text);
                return order_result(op, order < 0 ? -1 : order > 0, out);
        }
        if (!value_is_sequence(a) || !value_is_sequence(b) ||
            (a.kind == VALUE_LIST) != (b.kind == VALUE_LIST))
                return fail_operands(op, a, b);
        uint32_t n = MIN(a.seq->n, b.seq->n);
        for (uint32_t i = 0; i < n; i++) {
                if (!python_equal(a.seq->items[i], b.seq->items[i]))
                        // depth: limits.max_nested_values
                        return compare(op, a.seq->items[i], b.seq->items[i], out);
        }
        return order_result(op, a.seq->n < b.seq->n ? -1 : a.seq->n > b.seq->n, out);
}

// ---- sequences ----
enum { SEQUENCE_MAX = 65536 };

static Status sequence_concat(Value a, Value b, Value *out)
{
        // torch.Size + tuple and tuple + torch.Size are torch.Size.
        ValueKind kind = a.kind == VALUE_LIST                           ? VALUE_LIST
                         : a.kind == VALUE_SIZE || b.kind == VALUE_SIZE ? VALUE_SIZE
                                                                        : VALUE_TUPLE;
        uint64_t n = (uint64_t)a.seq->n + b.seq->n;
        if (n > SEQUENCE_MAX)
                return fail(STATUS_TOO_LARGE, "a %s of %llu items is over the limit of %d",
                            value_kind_name(kind), (unsigned long long)n, SEQUENCE_MAX);
        Seq *seq;
        TRY(seq_new((uint32_t)n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(i < a.seq->n ? a.seq->items[i] : b.seq->items[i - a.seq->n]);
        *out = value_seq_take(kind, seq);
        return STATUS_OK;
}

static Status sequence_repeat(Value a, int64_t times, Value *out)
{
        times = MAX(times, 0);
        int64_t n;
        if (!mul_i64(times, (int64_t)a.seq->n, &n) || n > SEQUENCE_MAX)
                return fail(STATUS_TOO_LARGE, "a repeated %s is over the limit of %d items",
                            value_kind_name(a.kind), SEQUENCE_MAX);
        Seq *seq;
        TRY(seq_new((uint32_t)n, &seq));
        for (uint32_t i = 0; i < (uint32_t)n; i++)
                seq->items[i] = value_ref(a.seq->items[i % a.seq->n]);
        *out = value_seq_take(a.kind, seq);
        return STATUS_OK;
}

Status python_binary(PyBinary op, Value a, Value b, Value *out)
{
        if (op >= PY_EQ)
                return compare(op, a, b, out);
        if (value_is_number(a) && value_is_number(b)) {
                if (a.kind == VALUE_COMPLEX || b.kind == VALUE_COMPLEX)
                        return complex_binary(op, a, b, out);
                if (op != PY_MATMUL && python_is_integral(a) && python_is_integral(b))
                        return int_binary(op, python_int(a), python_int(b),
                                          a.kind == VALUE_BOOL && b.kind == VALUE_BOOL, out);
                return op == PY_MATMUL ? fail_operands(op, a, b)
                                       : float_binary(op, python_float(a), python_float(b), out);
        }
        if (op == PY_ADD && value_is_sequence(a) && value_is_sequence(b) &&
            (a.kind == VALUE_LIST) == (b.kind == VALUE_LIST))
                return sequence_concat(a, b, out);
        if (op == PY_MUL && value_is_sequence(a) && python_is_integral(b))
                return sequence_repeat(a, python_int(b), out);
        if (op == PY_MUL && value_is_sequence(b) && python_is_integral(a))
                return sequence_repeat(b, python_int(a), out);
        return fail_operands(op, a, b);
}

// ---- one operand ----
static Status fail_operand(const char *what, Value a)
{
        return fail(STATUS_VALUE, "bad operand type for %s: '%s'", what, value_kind_name(a.kind));
}

Status python_negate(Value a, Value *out)
{
        if (a.kind == VALUE_FLOAT) {
                *out = value_float(-a.f);
                return STATUS_OK;
        }
        if (a.kind == VALUE_COMPLEX) {
                *out = (Value){ .kind = VALUE_COMPLEX, .c = { -a.c.re, -a.c.im } };
                return STATUS_OK;
        }
        return python_is_integral(a) ? int_binary(PY_SUB, 0, python_int(a), false, out)
                                     : fail_operand("unary -", a);
}

Status python_invert(Value a, Value *out)
{
        if (!python_is_integral(a))
                return fail_operand("unary ~", a);
        *out = value_int(~python_int(a));
        return STATUS_OK;
}

Status python_abs(Value a, Value *out)
{
        if (a.kind == VALUE_COMPLEX) {
                *out = value_float(hypot(a.c.re, a.c.im));
                return STATUS_OK;
        }
        if (a.kind == VALUE_FLOAT) {
                *out = value_float(fabs(a.f));
                return STATUS_OK;
        }
        if (!python_is_integral(a))
                return fail_operand("abs()", a);
        int64_t whole = python_int(a);
        return int_binary(whole < 0 ? PY_SUB : PY_ADD, 0, whole, false, out);
}

bool python_truth(Value value)
{
        switch (value.kind) {
        case VALUE_NONE:
                return false;
        case VALUE_BOOL:
                return value.b;
        case VALUE_INT:
                return value.i != 0;
        case VALUE_FLOAT:
                return value.f != 0;
        case VALUE_COMPLEX:
                return value.c.re != 0 || value.c.im != 0;
        case VALUE_STR:
                return value.str->n > 0;
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                return value.seq->n > 0;
        case VALUE_DICT:
                return value.dict->n > 0;
        default:
                return true;
        }
}

Status python_to_int(Value number, double (*rounding)(double), Value *out)
{
        if (python_is_integral(number)) {
                *out = value_int(python_int(number));
                return STATUS_OK;
        }
        if (number.kind != VALUE_FLOAT)
                return fail(STATUS_VALUE, "must be a real number, not %s", value_kind_name(number.kind));
        double whole = rounding(number.f);
        if (isnan(whole) || isinf(whole))
                return fail(STATUS_VALUE, "cannot convert float %s to integer",
                            isnan(whole) ? "NaN" : "infinity");
        if (whole >= 9223372036854775808.0 || whole < -9223372036854775808.0)
                return fail(STATUS_VALUE, "the float %.17g does not fit a 64-bit integer", whole);
        *out = value_int((int64_t)whole);
        return STATUS_OK;
}

Status python_round(Value number, Value digits, Value *out)
{
        if (digits.kind == VALUE_NONE || python_is_integral(number)) {
                if (digits.kind != VALUE_NONE && python_int(digits) < 0)
                        return fail(STATUS_VALUE, "round() of an int to a negative number of digits is not "
                                                  "supported; round a float");
                return python_to_int(number, rint, out);
        }
        if (number.kind != VALUE_FLOAT || !python_is_integral(digits))
                return fail(STATUS_VALUE, "round() takes a real number and a number of digits, not %s and %s",
                            value_kind_name(number.kind), value_kind_name(digits.kind));
        int64_t n = python_int(digits);
        if (n < 0)
                return fail(STATUS_VALUE, "round() to a negative number of digits is not supported");
        *out = number;
        if (!isfinite(number.f) || n > 322)
                return STATUS_OK;
        char text[700]; // 309 digits before the point, at most 322 behind it
        snprintf(text, sizeof(text), "%.*f", (int)n, number.f);
        *out = value_float(strtod(text, NULL));
        return STATUS_OK;
}
