// SPDX-License-Identifier: Apache-2.0
// What Python's operators do with numbers, sequences, texts and None: the meaning of `_operator.*`
// and builtins where no tensor takes part. Integers are 64 bits wide here; a result that Python
// would hold in more fails. Values are borrowed, results owned by the caller.
#pragma once
#include "core/tensor/value.h"

typedef enum PyBinary {
        PY_ADD,
        PY_SUB,
        PY_MUL,
        PY_TRUEDIV,
        PY_FLOORDIV,
        PY_MOD,
        PY_POW,
        PY_MATMUL,
        PY_AND,
        PY_OR,
        PY_XOR,
        PY_LSHIFT,
        PY_RSHIFT,
        PY_EQ,
        PY_NE,
        PY_LT,
        PY_LE,
        PY_GT,
        PY_GE,
        PY_BINARY_COUNT,
} PyBinary;

extern const char *const py_binary_signs[PY_BINARY_COUNT]; // "+", "//", "=="

// STATUS_VALUE in Python's words: "unsupported operand type(s) for +: 'int' and 'str'", "division
// by zero".
Status python_binary(PyBinary op, Value a, Value b, Value *out);
Status python_negate(Value a, Value *out);
Status python_invert(Value a, Value *out); // ~
Status python_abs(Value a, Value *out);
// bool(value) of anything but a tensor.
bool python_truth(Value value);
// a == b with nothing but numbers, texts, None, dtypes, devices and containers of these. Tensors
// are equal when they are the same object.
bool python_equal(Value a, Value b);
// float -> int as math.trunc, floor or ceil do; ints and bools stay. STATUS_VALUE for nan, inf and
// results beyond 64 bits.
Status python_to_int(Value number, double (*rounding)(double), Value *out);
// round(number, digits): half to even; `digits` VALUE_NONE gives an int.
Status python_round(Value number, Value digits, Value *out);
// float(number).
static inline double python_float(Value number)
{
        return number.kind == VALUE_FLOAT  ? number.f
               : number.kind == VALUE_BOOL ? (double)number.b
                                           : (double)number.i;
}
static inline bool python_is_integral(Value value)
{
        return value.kind == VALUE_INT || value.kind == VALUE_BOOL;
}
static inline int64_t python_int(Value number) // of VALUE_BOOL or VALUE_INT
{
        return number.kind == VALUE_BOOL ? (int64_t)number.b : number.i;
}
