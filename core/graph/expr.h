// SPDX-License-Identifier: Apache-2.0
// Symbolic expressions of dimensions and guards: one capped, iterative parser for three spellings —
// sympy srepr (`Mul(Integer(2), Symbol('s39', ...))`), infix (`2*s39`, `s0//2`) and guards_code
// (`L['x'].size()[0] == L['y'].size()[0]`) — to postfix code in an arena. Arithmetic is checked;
// nothing recurses.
#pragma once
#include "core/base/arena.h"
#include "core/base/text.h"

typedef struct Expr Expr;
typedef struct ExprNumber {
        bool is_float;
        int64_t i;
        double f;
} ExprNumber;

// STATUS_MALFORMED names the place; STATUS_TOO_LARGE beyond 4,096 tokens.
Status expr_parse(const char *text, Arena *arena, Expr **out_expr);
// `lookup` gives the value of a symbol: "s39", or for guards a path such as "x.size()[0]" or "n".
// Returns false when it is unknown. An unknown symbol makes the whole result unknown: *out_known =
// false, STATUS_OK.
Status expr_eval(const Expr *expr, bool (*lookup)(void *context, const char *symbol, ExprNumber *out),
                 void *context, ExprNumber *out_value, bool *out_known);
// The path that begins the text, "L[...": its symbol, in the arena, and how many bytes it takes.
Status expr_path(const char *text, Arena *arena, const char **out_symbol, size_t *out_n);
bool expr_is_name(const char *text);    // one symbol: nothing to parse
uint32_t expr_length(const Expr *expr); // operations, numbers and symbols
// The only free symbol, or NULL when there is none or more than one.
const char *expr_single_symbol(const Expr *expr);
// The first symbol that `knows` does not, or function that cannot be computed; NULL: there is none.
const char *expr_unknown(const Expr *expr, bool (*knows)(const void *context, const char *symbol),
                         const void *context);
// Calls visit on each symbol, with repeats. Stops at the first failure.
Status expr_visit_symbols(const Expr *expr, Status (*visit)(void *context, const char *symbol),
                          void *context);
// Whether it is a·symbol + b of its single symbol, in numbers of 64 bits; b alone where a is 0.
bool expr_linear(const Expr *expr, int64_t *out_a, int64_t *out_b);
// Solves expr(symbol) == value for its single symbol, where expr is linear in it. EXPR_UNSOLVED: it
// is not, or numbers are too large; EXPR_IMPOSSIBLE: no whole number solves it.
typedef enum ExprSolution { EXPR_SOLVED, EXPR_IMPOSSIBLE, EXPR_UNSOLVED } ExprSolution;
ExprSolution expr_solve(const Expr *expr, int64_t value, int64_t *out_symbol_value);
// Infix spelling as PyTorch's str(sympy) gives for sums and products of symbols: "2*s39", "s17 +
// 1". STATUS_TOO_LARGE where the text and its parts take more than a mebibyte, STATUS_NO_MEMORY.
Status expr_print(const Expr *expr, Text *out);
