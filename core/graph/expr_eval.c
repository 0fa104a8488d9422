// SPDX-License-Identifier: Apache-2.0
// expr_eval.c: postfix evaluation on a stack whose depth the parser knows. Integers are 64 bits and
// checked; divisions follow Python (floor, sign of the divisor). Linear expressions are solved on
// the same code with values of the form a·symbol + b.
#include <inttypes.h>
#include <math.h>
#include "core/graph/expr_code.h"

static ExprNumber integer(int64_t value)
{
        return (ExprNumber){ .i = value };
}

static ExprNumber real(double value)
{
        return (ExprNumber){ .is_float = true, .f = value };
}

static double as_double(ExprNumber number)
{
        return number.is_float ? number.f : (double)number.i;
}

static bool truth(ExprNumber number)
{
        return number.is_float ? number.f != 0 : number.i != 0;
}

static Status overflow(void)
{
        return fail(STATUS_VALUE, "a size expression overflows 64-bit integers");
}

static Status zero_divisor(void)
{
        return fail(STATUS_VALUE, "a size expression divides by zero");
}

// Rounds towards minus infinity; the remainder takes the divisor's sign.
static Status floor_divide(int64_t a, int64_t b, int64_t *out_quotient, int64_t *out_remainder)
{
        if (b == 0)
                return zero_divisor();
        if (a == INT64_MIN && b == -1)
                return overflow();
        int64_t quotient = a / b, remainder = a % b;
        if (remainder != 0 && (remainder < 0) != (b < 0)) {
                quotient--;
                remainder += b;
        }
        *out_quotient = quotient;
        *out_remainder = remainder;
        return STATUS_OK;
}

static Status float_divide(ExprCode code, double a, double b, ExprNumber *out)
{
        if (b == 0)
                return zero_divisor();
        double quotient = floor(a / b);
        *out = real(code == EXPR_MOD ? a - b * quotient : code == EXPR_CEILDIV ? ceil(a / b) : quotient);
        return STATUS_OK;
}

static Status divide(ExprCode code, ExprNumber a, ExprNumber b, ExprNumber *out)
{
        if (a.is_float || b.is_float)
                return float_divide(code, as_double(a), as_double(b), out);
        int64_t quotient = 0, remainder = 0;
        TRY(floor_divide(a.i, b.i, &quotient, &remainder));
        *out = integer(code == EXPR_MOD       ? remainder
                       : code == EXPR_CEILDIV ? quotient + (remainder != 0)
                                              : quotient);
        return STATUS_OK;
}

static Status power(ExprNumber base, ExprNumber exponent, ExprNumber *out)
{
        if (base.is_float || exponent.is_float || exponent.i < 0) {
                if (as_double(base) == 0 && as_double(exponent) < 0)
                        return zero_divisor();
                *out = real(pow(as_double(base), as_double(exponent)));
                return STATUS_OK;
        }
        int64_t result = 1, square = base.i;
        for (int64_t left = exponent.i; left > 0; left >>= 1) {
                if ((left & 1) && !mul_i64(result, square, &result))
                        return overflow();
                if (left > 1 && !mul_i64(square, square, &square))
                        return overflow();
        }
        *out = integer(result);
        return STATUS_OK;
}

static Status shift(ExprCode code, ExprNumber a, ExprNumber b, ExprNumber *out)
{
        if (a.is_float || b.is_float || b.i < 0)
                return fail(STATUS_VALUE, "a size expression shifts by a negative or fractional number");
        if (code == EXPR_SHIFT_RIGHT) {
                *out = integer(b.i > 62 ? (a.i < 0 ? -1 : 0) : a.i >> b.i);
                return STATUS_OK;
        }
        int64_t result;
        if (a.i != 0 && (b.i > 62 || !mul_i64(a.i, (int64_t)1 << b.i, &result)))
                return overflow();
        *out = integer(a.i == 0 ? 0 : result);
        return STATUS_OK;
}

static Status to_integer(double value, ExprNumber *out)
{
        if (!(value >= -0x1p63 && value < 0x1p63))
                return overflow();
        *out = integer((int64_t)value);
        return STATUS_OK;
}

static Status apply_round(ExprCode code, ExprNumber a, ExprNumber *out)
{
        if (!a.is_float) {
                *out = a;
                return STATUS_OK;
        }
        return to_integer(code == EXPR_FLOOR   ? floor(a.f)
                          : code == EXPR_CEIL  ? ceil(a.f)
                          : code == EXPR_ROUND ? nearbyint(a.f)
                                               : trunc(a.f),
                          out);
}

static Status apply_unary(ExprCode code, ExprNumber a, ExprNumber *out)
{
        switch (code) {
        case EXPR_NEG:
        case EXPR_ABS:
                if (a.is_float)
                        *out = real(code == EXPR_NEG ? -a.f : fabs(a.f));
                else if (a.i == INT64_MIN)
                        return overflow();
                else
                        *out = integer(code == EXPR_NEG || a.i < 0 ? -a.i : a.i);
                return STATUS_OK;
        case EXPR_SQRT:
                *out = real(sqrt(as_double(a)));
                return STATUS_OK;
        case EXPR_TO_FLOAT:
                *out = real(as_double(a));
                return STATUS_OK;
        case EXPR_TRUNC_TO_FLOAT:
                *out = real(trunc(as_double(a)));
                return STATUS_OK;
        case EXPR_IS_INTEGER:
                *out = integer(!a.is_float || floor(a.f) == a.f);
                return STATUS_OK;
        case EXPR_NOT:
                *out = integer(!truth(a));
                return STATUS_OK;
        case EXPR_FLOOR:
        case EXPR_CEIL:
        case EXPR_TRUNC:
        case EXPR_ROUND:
                return apply_round(code, a, out);
        default:
                *out = a;
                return STATUS_OK;
        }
}

// -1, 0, 1; 2 when one of them is NaN.
static int compare(ExprNumber a, ExprNumber b)
{
        if (!a.is_float && !b.is_float)
                return (a.i > b.i) - (a.i < b.i);
        double x = as_double(a), y = as_double(b);
        return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static bool holds(ExprCode code, int order)
{
        switch (code) {
        case EXPR_EQ:
                return order == 0;
        case EXPR_NE:
                return order != 0;
        case EXPR_LT:
                return order == -1;
        case EXPR_LE:
                return order == -1 || order == 0;
        case EXPR_GT:
                return order == 1;
        default:
                return order == 1 || order == 0;
        }
}

static Status apply_arithmetic(ExprCode code, ExprNumber a, ExprNumber b, ExprNumber *out)
{
        if (a.is_float || b.is_float) {
                double x = as_double(a), y = as_double(b);
                *out = real(code == EXPR_ADD ? x + y : code == EXPR_SUB ? x - y : x * y);
                return STATUS_OK;
        }
        int64_t result;
        bool fits = code == EXPR_ADD   ? add_i64(a.i, b.i, &result)
                    : code == EXPR_SUB ? sub_i64(a.i, b.i, &result)
                                       : mul_i64(a.i, b.i, &result);
        if (!fits)
                return overflow();
        *out = integer(result);
        return STATUS_OK;
}

static Status apply_binary(ExprCode code, ExprNumber a, ExprNumber b, ExprNumber *out)
{
        switch (code) {
        case EXPR_ADD:
        case EXPR_SUB:
        case EXPR_MUL:
                return apply_arithmetic(code, a, b, out);
        case EXPR_TRUEDIV:
                if (as_double(b) == 0)
                        return zero_divisor();
                *out = real(as_double(a) / as_double(b));
                return STATUS_OK;
        case EXPR_FLOORDIV:
        case EXPR_MOD:
        case EXPR_CEILDIV:
                return divide(code, a, b, out);
        case EXPR_POW:
                return power(a, b, out);
        case EXPR_SHIFT_LEFT:
        case EXPR_SHIFT_RIGHT:
                return shift(code, a, b, out);
        case EXPR_MAX:
        case EXPR_MIN:
                *out = compare(a, b) == (code == EXPR_MAX ? -1 : 1) ? b : a;
                return STATUS_OK;
        case EXPR_AND:
                *out = integer(truth(a) && truth(b));
                return STATUS_OK;
        case EXPR_OR:
                *out = integer(truth(a) || truth(b));
                return STATUS_OK;
        case EXPR_BIT_AND:
        case EXPR_BIT_OR:
                *out = integer(code == EXPR_BIT_AND ? a.i & b.i : a.i | b.i);
                return a.is_float || b.is_float
                               ? fail(STATUS_VALUE, "a size expression combines bits of a fraction")
                               : STATUS_OK;
        default:
                *out = integer(holds(code, compare(a, b)));
                return STATUS_OK;
        }
}

Status expr_apply(ExprCode code, const ExprNumber *args, uint32_t n_args, ExprNumber *out)
{
        if (code == EXPR_MODULAR_INDEXING) {
                ExprNumber quotient;
                TRY(divide(EXPR_FLOORDIV, args[0], args[1], &quotient));
                return divide(EXPR_MOD, quotient, args[2], out);
        }
        if (code == EXPR_WHERE) {
                *out = truth(args[0]) ? args[1] : args[2];
                return STATUS_OK;
        }
        if (n_args == 0) { // Add(), Mul(), And(), Or()
                *out = integer(code == EXPR_MUL || code == EXPR_AND);
                return STATUS_OK;
        }
        if (n_args == 1)
                return apply_unary(code, args[0], out);
        ExprNumber sum = args[0];
        for (uint32_t i = 1; i < n_args; i++)
                TRY(apply_binary(code, sum, args[i], &sum));
        *out = sum;
        return STATUS_OK;
}

Status expr_eval(const Expr *expr, bool (*lookup)(void *context, const char *symbol, ExprNumber *out),
                 void *context, ExprNumber *out_value, bool *out_known)
{
        enum { SMALL = 32 };
        ExprNumber small[SMALL];
        _cleanup_(freep) ExprNumber *large = NULL;
        ExprNumber *stack = small;
        if (expr->n_stack > SMALL) {
                stack = large = new_array(expr->n_stack, sizeof(*large));
                if (large == NULL)
                        return fail_memory();
        }
        uint32_t n = 0;
        for (uint32_t i = 0; i < expr->n_ops; i++) {
                const ExprOp *op = &expr->ops[i];
                ExprNumber value = op->number;
                if (op->code == EXPR_UNKNOWN ||
                    (op->code == EXPR_SYMBOL && !lookup(context, op->text, &value))) {
                        *out_known = false;
                        return STATUS_OK;
                }
                n -= op->n_args;
                if (op->code != EXPR_NUMBER && op->code != EXPR_SYMBOL)
                        TRY(expr_apply(op->code, stack + n, op->n_args, &value));
                stack[n++] = value;
        }
        *out_value = stack[0];
        *out_known = true;
        return STATUS_OK;
}

// ---- a·symbol + b ----

typedef struct Linear {
        int64_t a, b;
} Linear;

static bool combine(ExprCode code, Linear x, Linear y, Linear *out)
{
        switch (code) {
        case EXPR_ADD:
                return add_i64(x.a, y.a, &out->a) && add_i64(x.b, y.b, &out->b);
        case EXPR_SUB:
                return sub_i64(x.a, y.a, &out->a) && sub_i64(x.b, y.b, &out->b);
        case EXPR_MUL:
                if (x.a != 0 && y.a != 0)
                        return false;
                return mul_i64(x.a != 0 ? x.a : y.a, x.a != 0 ? y.b : x.b, &out->a) &&
                       mul_i64(x.b, y.b, &out->b);
        default:
                return false;
        }
}

static bool apply_linear(const ExprOp *op, const Linear *args, Linear *out)
{
        if (op->code == EXPR_NEG || (op->code == EXPR_SAME && op->n_args == 1))
                return op->code == EXPR_SAME ? (*out = args[0], true)
                                             : combine(EXPR_SUB, (Linear){ 0 }, args[0], out);
        if (op->code == EXPR_ADD || op->code == EXPR_SUB || op->code == EXPR_MUL) {
                Linear sum = op->code == EXPR_MUL ? (Linear){ .b = 1 } : (Linear){ 0 };
                for (uint32_t i = 0; i < op->n_args; i++) {
                        if (i == 0 && op->n_args > 0)
                                sum = args[0];
                        else if (!combine(op->code, sum, args[i], &sum))
                                return false;
                }
                *out = sum;
                return true;
        }
        // Any other function of constants is a constant.
        enum { MOST = 3 };
        if (op->n_args > MOST)
                return false;
        ExprNumber numbers[MOST], result;
        for (uint32_t i = 0; i < MOST && i < op->n_args; i++) {
                if (args[i].a != 0)
                        return false;
                numbers[i] = integer(args[i].b);
        }
        if (op->code == EXPR_UNKNOWN || expr_apply(op->code, numbers, op->n_args, &result) != STATUS_OK ||
            result.is_float)
                return false;
        *out = (Linear){ .b = result.i };
        return true;
}

bool expr_linear(const Expr *expr, int64_t *out_a, int64_t *out_b)
{
        if (expr->symbol == NULL)
                return false;
        _cleanup_(freep) Linear *stack = new_array(expr->n_stack, sizeof(*stack));
        uint32_t n = 0;
        for (uint32_t i = 0; stack != NULL && i < expr->n_ops; i++) {
                const ExprOp *op = &expr->ops[i];
                Linear result = { .a = op->code == EXPR_SYMBOL, .b = op->number.i };
                if (op->code == EXPR_NUMBER && op->number.is_float)
                        return false;
                n -= op->n_args;
                if (op->code != EXPR_NUMBER && op->code != EXPR_SYMBOL &&
                    !apply_linear(op, stack + n, &result))
                        return false;
                stack[n++] = result;
        }
        if (stack == NULL)
                return false;
        *out_a = stack[0].a;
        *out_b = stack[0].b;
        return true;
}

ExprSolution expr_solve(const Expr *expr, int64_t value, int64_t *out_symbol_value)
{
        int64_t a, b, rest;
        if (!expr_linear(expr, &a, &b) || !sub_i64(value, b, &rest) || (rest == INT64_MIN && a == -1))
                return EXPR_UNSOLVED;
        if (a == 0)
                return rest == 0 ? EXPR_UNSOLVED : EXPR_IMPOSSIBLE;
        if (rest % a != 0)
                return EXPR_IMPOSSIBLE;
        *out_symbol_value = rest / a;
        return EXPR_SOLVED;
}
