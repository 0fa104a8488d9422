// SPDX-License-Identifier: Apache-2.0
// pointwise_binary.c: overloads of two operands: arithmetic, comparisons, logic, bits.
#include <math.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/pointwise.h"

// ---- add, sub ----
static Status check_factor(const OpCall *call, const PointBound *bound, bool negated)
{
        TRY(point_check_cast(call, bound));
        Value alpha = arg_number(call, ADD_ALPHA);
        if (alpha.kind == VALUE_BOOL && bound->common != DTYPE_BOOL)
                return fail(STATUS_VALUE, "Boolean alpha only supported for Boolean results.");
        bool is_complex = point_is_complex(bound->common);
        if (alpha.kind == VALUE_COMPLEX && !is_complex)
                return fail(STATUS_VALUE,
                            "For non-complex input tensors, argument alpha must not be a complex number.");
        if (alpha.kind == VALUE_FLOAT && !dtype_is_float(bound->common) && !is_complex)
                return fail(
                        STATUS_VALUE,
                        "For integral input tensors, argument alpha must not be a floating point number.");
        if (negated && alpha.kind == VALUE_INT)
                alpha.i = (int64_t)(0 - (uint64_t)alpha.i);
        // alpha must fit the result's dtype; a bool result takes any number.
        return bound->common == DTYPE_BOOL ? STATUS_OK : number_check_fits(alpha, bound->common);
}

static Status check_alpha(const OpCall *call, const PointBound *bound)
{
        return check_factor(call, bound, false);
}

static bool input_is_bool(const OpCall *call, int arg)
{
        const Value *value = &call->args[arg];
        return value->kind == VALUE_TENSOR ? value->tensor->meta.dtype == DTYPE_BOOL
                                           : value->kind == VALUE_BOOL;
}

static Status check_sub(const OpCall *call, const PointBound *bound)
{
        bool left = input_is_bool(call, SELF), right = input_is_bool(call, BINARY_OTHER);
        if (left && right)
                return fail(STATUS_DTYPE, "Subtraction, the `-` operator, with two bool tensors is not "
                                          "supported. Use the `^` or `logical_xor()` operator "
                                          "instead.");
        if (left || right)
                return fail(STATUS_DTYPE, "Subtraction, the `-` operator, with a bool tensor is not "
                                          "supported. If you are trying to invert a mask, use the "
                                          "`~` or `logical_not()` operator instead.");
        return check_factor(call, bound, true); // PyTorch adds -alpha times the other
}

// ---- div ----
static const PointOp *select_div(const OpCall *call)
{
        static const PointOp forms[2][3] = {
                { { .kernel = &point_div, .args = "tt.", .typing = TYPE_FLOAT, .exact_scalar = true },
                  { .kernel = &point_div_trunc, .args = "tt.", .exact_scalar = true },
                  { .kernel = &point_div_floor, .args = "tt.", .exact_scalar = true } },
                { { .kernel = &point_div, .args = "ts.", .typing = TYPE_FLOAT, .exact_scalar = true },
                  { .kernel = &point_div_trunc, .args = "ts.", .exact_scalar = true },
                  { .kernel = &point_div_floor, .args = "ts.", .exact_scalar = true } },
        };
        const char *mode = arg_text(call, DIV_ROUNDING_MODE);
        int form = mode == NULL ? 0 : strcmp(mode, "trunc") == 0 ? 1 : strcmp(mode, "floor") == 0 ? 2 : -1;
        if (form < 0) {
                fail(STATUS_VALUE,
                     "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
                     mode);
                return NULL;
        }
        return &forms[call->schema->args[BINARY_OTHER].type != ARG_TENSOR][form];
}

// ---- pow ----
static Status check_pow_scalar(const OpCall *call, const PointBound *bound)
{
        Value exponent = arg_number(call, POW_TENSOR_SCALAR_EXPONENT);
        if (dtype_is_int(bound->common) && exponent.kind == VALUE_INT && exponent.i < 0)
                return fail(STATUS_VALUE, "Integers to negative integer powers are not allowed.");
        return bound->common == DTYPE_F32 || bound->common == DTYPE_F64
                       ? STATUS_OK
                       : number_check_fits(exponent, bound->common);
}

// NAN for complex numbers that are not real.
static double real_value(Value number)
{
        return number.kind == VALUE_FLOAT     ? number.f
               : number.kind == VALUE_INT     ? (double)number.i
               : number.kind == VALUE_COMPLEX ? (number.c.im == 0 ? number.c.re : NAN)
                                              : number.b;
}

// Exponents with another formula in PyTorch, the roots of bfloat16, too: results differ in signs of
// zero and at infinity. Squares and cubes of halves are no other numbers than their powers: in
// float32 a square is exact.
static Status adjust_pow_scalar(const OpCall *call, PointBound *bound)
{
        static const struct {
                double exponent;
                const PointKernel *kernel;
                bool f16, bf16;
        } forms[] = {
                { 0.5, &point_sqrt, false, true },       { -0.5, &point_rsqrt, false, true },
                { 2, &point_square, true, true },        { 3, &point_cube, true, true },
                { -1, &point_reciprocal, false, false }, { -2, &point_inverse_square, false, false },
        };
        double value = real_value(arg_number(call, POW_TENSOR_SCALAR_EXPONENT));
        bool full =
                bound->common == DTYPE_F32 || bound->common == DTYPE_F64 || point_is_complex(bound->common);
        for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
                bool other = full || (bound->common == DTYPE_F16 && forms[i].f16) ||
                             (bound->common == DTYPE_BF16 && forms[i].bf16);
                if (forms[i].exponent == value && other)
                        bound->kernel = forms[i].kernel;
        }
        return STATUS_OK;
}

// 1 to the power of anything is 1, of infinite and complex numbers, too. To PyTorch True is not 1.
static const PointOp *select_pow_of_scalar(const OpCall *call)
{
        static const PointOp power = { .kernel = &point_pow, .args = "st", .layout = LAYOUT_CONTIGUOUS },
                             one = { .kernel = &point_fill,
                                     .args = "st",
                                     .constants = { 1 },
                                     .layout = LAYOUT_CONTIGUOUS };
        const Value base = arg_number(call, SELF);
        return base.kind != VALUE_BOOL && real_value(base) == 1 ? &one : &power;
}

// x ** 1 is x and x ** 0 is 1, whatever x is. bool ** bool has no kernel in PyTorch; a Python bool
// does not reach it.
static const PointOp *select_pow_scalar(const OpCall *call)
{
        static const PointOp power = {
                .kernel = &point_pow, .args = "ts", .check = check_pow_scalar, .adjust = adjust_pow_scalar
        };
        static const PointOp same = { .kernel = &point_copy, .args = "ts" },
                             one = { .kernel = &point_fill, .args = "ts", .constants = { 1 } };
        double value = real_value(arg_number(call, POW_TENSOR_SCALAR_EXPONENT));
        return value == 1 ? &same : value == 0 ? &one : &power;
}

static Status check_heaviside(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        if (arg_meta(call, SELF)->dtype != arg_meta(call, HEAVISIDE_VALUES)->dtype)
                return fail(STATUS_DTYPE,
                            "heaviside is not yet implemented for tensors with different dtypes.");
        return STATUS_OK;
}

#define TENSORS   "(Tensor self, Tensor other) -> Tensor"
#define SCALAR    "(Tensor self, Scalar other) -> Tensor"
#define REVERSED  "(Scalar self, Tensor other) -> Tensor"
#define ALPHA     "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
#define ALPHA_NUM "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
#define MODE      "(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"
#define MODE_NUM  "(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"

#define ARITHMETIC(name, ...) ARITHMETIC_AS(ROLE_NONE, name, __VA_ARGS__)
#define ARITHMETIC_AS(role_, name, ...)                                                                      \
        POINT_AS(.role = role_, name ".Tensor" TENSORS, OP_INPLACE | OP_NUMBERS, .args = "tt", __VA_ARGS__), \
                POINT_AS(.role = role_, name ".Scalar" SCALAR, OP_INPLACE, .args = "ts", __VA_ARGS__)
#define WITH_ALPHA(role_, number_role, name, ...)                                                            \
        POINT_AS(.role = role_, name ".Tensor" ALPHA, OP_INPLACE | OP_NUMBERS, .args = "tta", __VA_ARGS__),  \
                POINT_AS(.role = number_role, name ".Scalar" ALPHA_NUM, OP_INPLACE, .args = "tsa",           \
                         __VA_ARGS__)
#define PAIR(name, kernel_) POINT_OP(name TENSORS, 0, .args = "tt", .kernel = &point_##kernel_)
#define PAIR_INPLACE(name, kernel_, ...)                                                                     \
        POINT_OP(name TENSORS, OP_INPLACE, .args = "tt", .kernel = &point_##kernel_, ##__VA_ARGS__)

// Half types are computed in float32, whose neighbours are others.
static Status adjust_nextafter(const OpCall *call, PointBound *bound)
{
        (void)call;
        if (!dtype_is_float(bound->common))
                return fail(STATUS_DTYPE, "\"nextafter_cpu\" not implemented for '%s'",
                            dtype_words(bound->common));
        if ((DTYPES_HALFS >> bound->common & 1) != 0) {
                bound->kernel = &point_nextafter_short;
                bound->params.of[0].f = bound->common == DTYPE_F16 ? 10 : 7;
                bound->params.of[1].f = bound->common == DTYPE_F16 ? -14 : -126;
        }
        return STATUS_OK;
}

// Of two tensors, a tensor and a number, a number and a tensor.
#define LOG_PRODUCT(name, kernel_, by_number, of_number)                                                     \
        POINT_OP(name TENSORS, 0, .args = "tt", .kernel = &point_##kernel_, .typing = TYPE_FLOAT),           \
                POINT_OP(name by_number SCALAR, 0, .args = "ts", .kernel = &point_##kernel_,                 \
                         .typing = TYPE_FLOAT),                                                              \
                POINT_OP(name of_number REVERSED, 0, .args = "st", .kernel = &point_##kernel_,               \
                         .typing = TYPE_FLOAT)

const OpDef pointwise_binary_ops[] = {
        WITH_ALPHA(ROLE_ADD, ROLE_ADD_NUMBER, "add", .kernel = &point_add, .check = check_alpha),
        WITH_ALPHA(ROLE_SUB, ROLE_SUB, "sub", .kernel = &point_sub, .check = check_sub),
        WITH_ALPHA(ROLE_SUB, ROLE_SUB, "subtract", .kernel = &point_sub, .check = check_sub),
        POINT_OP("rsub.Tensor" ALPHA, OP_NUMBERS, .args = "tta", .kernel = &point_rsub,
                 .layout = LAYOUT_LAST_FIRST, .check = check_sub),
        POINT_OP("rsub.Scalar" ALPHA_NUM, 0, .args = "tsa", .kernel = &point_rsub,
                 .layout = LAYOUT_LAST_FIRST, .check = check_sub),
        ARITHMETIC_AS(ROLE_MUL, "mul", .kernel = &point_mul, .exact_scalar = true),
        ARITHMETIC_AS(ROLE_MUL, "multiply", .kernel = &point_mul, .exact_scalar = true),
        ARITHMETIC_AS(ROLE_DIV, "div", .kernel = &point_div, .typing = TYPE_FLOAT, .exact_scalar = true),
        ARITHMETIC_AS(ROLE_DIV, "divide", .kernel = &point_div, .typing = TYPE_FLOAT, .exact_scalar = true),
        ARITHMETIC_AS(ROLE_DIV, "true_divide", .kernel = &point_div, .typing = TYPE_FLOAT,
                      .exact_scalar = true),
        POINT_OP("div.Tensor_mode" MODE, OP_INPLACE | OP_NUMBERS, .select = select_div),
        POINT_OP("div.Scalar_mode" MODE_NUM, OP_INPLACE, .select = select_div),
        POINT_OP("divide.Tensor_mode" MODE, OP_INPLACE | OP_NUMBERS, .select = select_div),
        POINT_OP("divide.Scalar_mode" MODE_NUM, OP_INPLACE, .select = select_div),
        POINT_OP("floor_divide" TENSORS, OP_NUMBERS, .args = "tt", .kernel = &point_div_floor,
                 .exact_scalar = true),
        POINT_OP("floor_divide.Scalar" SCALAR, OP_INPLACE, .args = "ts", .kernel = &point_div_floor,
                 .exact_scalar = true),
        ARITHMETIC("remainder", .kernel = &point_remainder),
        POINT_OP("remainder.Scalar_Tensor" REVERSED, 0, .args = "st", .kernel = &point_remainder),
        ARITHMETIC("fmod", .kernel = &point_fmod),
        POINT_OP("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", 0, .args = "tt",
                 .kernel = &point_pow),
        POINT_OP("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", 0, .select = select_pow_scalar),
        POINT_OP("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", 0, .select = select_pow_of_scalar),
        PAIR("maximum", maximum),
        PAIR("minimum", minimum),
        PAIR("max.other", maximum),
        PAIR("min.other", minimum),
        PAIR("fmax", fmax),
        PAIR("fmin", fmin),
        PAIR("logaddexp", logaddexp),
        PAIR("logaddexp2", logaddexp2),
        PAIR_INPLACE("atan2", atan2, .typing = TYPE_FLOAT),
        PAIR_INPLACE("arctan2", atan2, .typing = TYPE_FLOAT),
        PAIR_INPLACE("hypot", hypot),
        PAIR_INPLACE("igamma", gammainc),
        PAIR_INPLACE("igammac", gammaincc),
        PAIR("special_gammainc", gammainc),
        PAIR("special_gammaincc", gammaincc),
        PAIR_INPLACE("gcd", gcd),
        PAIR_INPLACE("lcm", lcm),
        POINT_OP("heaviside(Tensor self, Tensor values) -> Tensor", OP_INPLACE, .args = "tt",
                 .kernel = &point_heaviside, .check = check_heaviside),
        ARITHMETIC("copysign", .kernel = &point_copysign, .typing = TYPE_FLOAT),
        POINT_OP("xlogy.Tensor" TENSORS, OP_INPLACE, .args = "tt", .kernel = &point_xlogy,
                 .typing = TYPE_FLOAT),
        POINT_OP("xlogy.Scalar_Other" SCALAR, OP_INPLACE, .args = "ts", .kernel = &point_xlogy,
                 .typing = TYPE_FLOAT),
        POINT_OP("xlogy.Scalar_Self" REVERSED, 0, .args = "st", .kernel = &point_xlogy, .typing = TYPE_FLOAT),
        LOG_PRODUCT("special_xlogy", xlogy, ".other_scalar", ".self_scalar"),
        LOG_PRODUCT("special_xlog1py", xlog1py, ".other_scalar", ".self_scalar"),
        LOG_PRODUCT("special_zeta", zeta, ".other_scalar", ".self_scalar"),
        POINT_OP("nextafter(Tensor self, Tensor other) -> Tensor", OP_INPLACE, .args = "tt",
                 .kernel = &point_nextafter, .adjust = adjust_nextafter),
};
OP_FILE(pointwise_binary_ops);

#define BITS(name, kernel_)                                                                                  \
        POINT_OP(name ".Tensor" TENSORS, OP_INPLACE, .args = "tt", .kernel = &point_##kernel_),              \
                POINT_OP(name ".Scalar" SCALAR, OP_INPLACE, .args = "ts", .kernel = &point_##kernel_),       \
                POINT_OP(name ".Scalar_Tensor" REVERSED, 0, .args = "st", .kernel = &point_##kernel_)
#define SHIFT(name, kernel_)                                                                                 \
        POINT_OP(name ".Tensor" TENSORS, OP_INPLACE, .args = "tt", .kernel = &point_##kernel_),              \
                POINT_OP(name ".Tensor_Scalar" SCALAR, OP_INPLACE, .args = "ts",                             \
                         .kernel = &point_##kernel_),                                                        \
                POINT_OP(name ".Scalar_Tensor" REVERSED, 0, .args = "st", .kernel = &point_##kernel_)
#define OPERATOR(name, kernel_)                                                                              \
        POINT_OP(name ".Tensor" TENSORS, OP_INPLACE, .args = "tt", .kernel = &point_##kernel_),              \
                POINT_OP(name ".Scalar" SCALAR, OP_INPLACE, .args = "ts", .kernel = &point_##kernel_)
#define COMPARE(name, kernel_)                                                                               \
        POINT_OP(name ".Tensor" TENSORS, OP_INPLACE | OP_NUMBERS, .args = "tt", .kernel = &point_##kernel_), \
                POINT_OP(name ".Scalar" SCALAR, OP_INPLACE, .args = "ts", .kernel = &point_##kernel_)
#define LOGICAL(name, kernel_)                                                                               \
        POINT_OP(name TENSORS, OP_INPLACE, .args = "mm", .kernel = &point_##kernel_, .typing = TYPE_MASK)

const OpDef pointwise_logic_ops[] = {
        COMPARE("eq", eq),
        COMPARE("ne", ne),
        COMPARE("lt", lt),
        COMPARE("le", le),
        COMPARE("gt", gt),
        COMPARE("ge", ge),
        COMPARE("not_equal", ne),
        COMPARE("less", lt),
        COMPARE("less_equal", le),
        COMPARE("greater", gt),
        COMPARE("greater_equal", ge),
        LOGICAL("logical_and", logical_and),
        LOGICAL("logical_or", logical_or),
        LOGICAL("logical_xor", logical_xor),
        BITS("bitwise_and", bitwise_and),
        BITS("bitwise_or", bitwise_or),
        BITS("bitwise_xor", bitwise_xor),
        SHIFT("bitwise_left_shift", lshift),
        SHIFT("bitwise_right_shift", rshift),
        OPERATOR("__and__", bitwise_and),
        OPERATOR("__or__", bitwise_or),
        OPERATOR("__xor__", bitwise_xor),
        OPERATOR("__lshift__", lshift),
        OPERATOR("__rshift__", rshift),
};
OP_FILE(pointwise_logic_ops);
