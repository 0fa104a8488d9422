// SPDX-License-Identifier: Apache-2.0
// The postfix code behind Expr. Private to this room.
#pragma once
#include "core/graph/expr.h"

// One operation on the topmost values. VARIADIC ones take what their call was given.
typedef enum ExprCode {
        EXPR_NUMBER,
        EXPR_SYMBOL,
        EXPR_ADD,
        EXPR_SUB,
        EXPR_MUL,
        EXPR_TRUEDIV,
        EXPR_FLOORDIV,
        EXPR_MOD,
        EXPR_POW,
        EXPR_NEG,
        EXPR_SAME,
        EXPR_SHIFT_LEFT,
        EXPR_SHIFT_RIGHT,
        EXPR_CEILDIV,
        EXPR_MODULAR_INDEXING,
        EXPR_MAX,
        EXPR_MIN,
        EXPR_ABS,
        EXPR_SQRT,
        EXPR_FLOOR,
        EXPR_CEIL,
        EXPR_TRUNC,
        EXPR_ROUND,
        EXPR_TO_FLOAT,
        EXPR_TRUNC_TO_FLOAT,
        EXPR_IS_INTEGER,
        EXPR_EQ,
        EXPR_NE,
        EXPR_LT,
        EXPR_LE,
        EXPR_GT,
        EXPR_GE,
        EXPR_AND,
        EXPR_OR,
        EXPR_NOT,
        EXPR_BIT_AND,
        EXPR_BIT_OR,
        EXPR_WHERE,
        EXPR_UNKNOWN, // a function we do not know: the result is not known
} ExprCode;

typedef struct ExprOp {
        ExprCode code;
        uint16_t n_args; // values taken from the stack
        ExprNumber number;
        const char *text; // SYMBOL: its name; UNKNOWN: the function's
} ExprOp;

struct Expr {
        const ExprOp *ops;
        uint32_t n_ops;
        uint32_t n_stack;   // deepest stack that evaluation needs
        const char *symbol; // the only free symbol; NULL: none or several
};

enum { EXPR_MAX_TOKENS = 4096 };

// One operation on numbers. STATUS_VALUE: overflow or division by zero. EXPR_UNKNOWN and the two
// leaves are the caller's.
Status expr_apply(ExprCode code, const ExprNumber *args, uint32_t n_args, ExprNumber *out);
