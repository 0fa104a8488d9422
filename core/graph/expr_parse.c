// SPDX-License-Identifier: Apache-2.0
// expr_parse.c: precedence climbing with explicit stacks (Dijkstra's shunting yard), so that no
// input can nest us. Three spellings share one grammar: sympy's srepr is calls all the way down,
// infix has operators, guards add paths that begin with L[...].
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/number.h"
#include "core/graph/expr_code.h"

typedef struct Function {
        const char *name;
        ExprCode code;
        uint16_t min_args, max_args;
} Function;

static const Function functions[] = {
        { "Integer", EXPR_SAME, 1, 1 },
        { "Identity", EXPR_SAME, 1, 1 },
        { "Rational", EXPR_TRUEDIV, 2, 2 },
        { "Add", EXPR_ADD, 0, UINT16_MAX },
        { "Mul", EXPR_MUL, 0, UINT16_MAX },
        { "Pow", EXPR_POW, 2, 2 },
        { "PowByNatural", EXPR_POW, 2, 2 },
        { "FloatPow", EXPR_POW, 2, 2 },
        { "FloorDiv", EXPR_FLOORDIV, 2, 2 },
        { "CleanDiv", EXPR_FLOORDIV, 2, 2 },
        { "CeilDiv", EXPR_CEILDIV, 2, 2 },
        { "IntTrueDiv", EXPR_TRUEDIV, 2, 2 },
        { "FloatTrueDiv", EXPR_TRUEDIV, 2, 2 },
        { "Mod", EXPR_MOD, 2, 2 },
        { "PythonMod", EXPR_MOD, 2, 2 },
        { "LShift", EXPR_SHIFT_LEFT, 2, 2 },
        { "RShift", EXPR_SHIFT_RIGHT, 2, 2 },
        { "ModularIndexing", EXPR_MODULAR_INDEXING, 3, 3 },
        { "Max", EXPR_MAX, 1, UINT16_MAX },
        { "Min", EXPR_MIN, 1, UINT16_MAX },
        { "max", EXPR_MAX, 1, UINT16_MAX },
        { "min", EXPR_MIN, 1, UINT16_MAX },
        { "torch.sym_max", EXPR_MAX, 2, 2 },
        { "torch.sym_min", EXPR_MIN, 2, 2 },
        { "Abs", EXPR_ABS, 1, 1 },
        { "abs", EXPR_ABS, 1, 1 },
        { "sqrt", EXPR_SQRT, 1, 1 },
        { "math.sqrt", EXPR_SQRT, 1, 1 },
        { "torch._sym_sqrt", EXPR_SQRT, 1, 1 },
        { "torch.sym_sqrt", EXPR_SQRT, 1, 1 },
        { "floor", EXPR_FLOOR, 1, 1 },
        { "math.floor", EXPR_FLOOR, 1, 1 },
        { "FloorToInt", EXPR_FLOOR, 1, 1 },
        { "ceiling", EXPR_CEIL, 1, 1 },
        { "math.ceil", EXPR_CEIL, 1, 1 },
        { "CeilToInt", EXPR_CEIL, 1, 1 },
        { "TruncToInt", EXPR_TRUNC, 1, 1 },
        { "math.trunc", EXPR_TRUNC, 1, 1 },
        { "int", EXPR_TRUNC, 1, 1 },
        { "torch.sym_int", EXPR_TRUNC, 1, 1 },
        { "TruncToFloat", EXPR_TRUNC_TO_FLOAT, 1, 1 },
        { "RoundToInt", EXPR_ROUND, 1, 1 },
        { "round", EXPR_ROUND, 1, 1 },
        { "ToFloat", EXPR_TO_FLOAT, 1, 1 },
        { "float", EXPR_TO_FLOAT, 1, 1 },
        { "torch.sym_float", EXPR_TO_FLOAT, 1, 1 },
        { "Equality", EXPR_EQ, 2, 2 },
        { "Eq", EXPR_EQ, 2, 2 },
        { "Unequality", EXPR_NE, 2, 2 },
        { "Ne", EXPR_NE, 2, 2 },
        { "StrictLessThan", EXPR_LT, 2, 2 },
        { "LessThan", EXPR_LE, 2, 2 },
        { "StrictGreaterThan", EXPR_GT, 2, 2 },
        { "GreaterThan", EXPR_GE, 2, 2 },
        { "And", EXPR_AND, 0, UINT16_MAX },
        { "Or", EXPR_OR, 0, UINT16_MAX },
        { "Not", EXPR_NOT, 1, 1 },
        { "torch.sym_not", EXPR_NOT, 1, 1 },
        { "Where", EXPR_WHERE, 3, 3 },
        { "torch.sym_ite", EXPR_WHERE, 3, 3 },
        { "", EXPR_SAME, 1, 1 }, // plain parentheses
};

// Python's operators: how tightly they bind. `unary`: the operator precedes its operand.
typedef struct Operator {
        const char *text;
        ExprCode code;
        int8_t binding;
        bool unary, right, word;
} Operator;

static const Operator operators[] = {
        { "or", EXPR_OR, 1, false, false, true },           { "and", EXPR_AND, 2, false, false, true },
        { "not", EXPR_NOT, 3, true, true, true },           { "==", EXPR_EQ, 4, false, false, false },
        { "!=", EXPR_NE, 4, false, false, false },          { "<=", EXPR_LE, 4, false, false, false },
        { ">=", EXPR_GE, 4, false, false, false },          { "<<", EXPR_SHIFT_LEFT, 7, false, false, false },
        { ">>", EXPR_SHIFT_RIGHT, 7, false, false, false }, { "<", EXPR_LT, 4, false, false, false },
        { ">", EXPR_GT, 4, false, false, false },           { "|", EXPR_BIT_OR, 5, false, false, false },
        { "&", EXPR_BIT_AND, 6, false, false, false },      { "+", EXPR_SAME, 10, true, true, false },
        { "-", EXPR_NEG, 10, true, true, false },           { "~", EXPR_NOT, 10, true, true, false },
        { "+", EXPR_ADD, 8, false, false, false },          { "-", EXPR_SUB, 8, false, false, false },
        { "**", EXPR_POW, 11, false, true, false },         { "*", EXPR_MUL, 9, false, false, false },
        { "//", EXPR_FLOORDIV, 9, false, false, false },    { "/", EXPR_TRUEDIV, 9, false, false, false },
        { "%", EXPR_MOD, 9, false, false, false },
};

// What waits on the stack: an operator, or an open parenthesis of a call (`function` set) or a
// group (its row is the one without a name).
typedef struct Pending {
        const Operator *sign;
        const Function *function;
        const char *unknown; // name of a function that is in no table
        uint16_t n_args;
        bool empty; // nothing stands behind the parenthesis yet
} Pending;

typedef struct Parser {
        const char *text, *at;
        Arena *arena;
        ExprOp *ops;
        uint32_t *starts; // per value on the evaluation stack: where its code begins
        Pending *pending;
        uint32_t n_ops, n_pending, n_tokens, depth, max_depth;
        uint32_t ops_capacity, starts_capacity, pending_capacity;
        const char *symbol;
        bool many_symbols;
} Parser;

static Status refuse(const Parser *parser, const char *what)
{
        return fail(STATUS_MALFORMED, "expression \"%.120s\", column %zu: %s", parser->text,
                    (size_t)(parser->at - parser->text) + 1, what);
}

static Status count_token(Parser *parser)
{
        if (++parser->n_tokens > EXPR_MAX_TOKENS)
                return fail(STATUS_TOO_LARGE, "expression \"%.120s...\" has more than %d tokens",
                            parser->text, EXPR_MAX_TOKENS);
        return STATUS_OK;
}

static bool is_word(char c)
{
        return isalnum((unsigned char)c) || c == '_';
}

static void skip_blanks(Parser *parser)
{
        while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n')
                parser->at++;
}

static Status push(Parser *parser, Pending pending)
{
        TRY(array_reserve(&parser->pending, &parser->pending_capacity, parser->n_pending + 1,
                          sizeof(*parser->pending)));
        parser->pending[parser->n_pending++] = pending;
        return STATUS_OK;
}

static Status add_op(Parser *parser, ExprOp op)
{
        if (op.n_args > parser->depth)
                return refuse(parser, "an operand is missing");
        TRY(array_reserve(&parser->ops, &parser->ops_capacity, parser->n_ops + 1, sizeof(*parser->ops)));
        TRY(array_reserve(&parser->starts, &parser->starts_capacity, parser->depth + 1,
                          sizeof(*parser->starts)));
        if (op.n_args == 0)
                parser->starts[parser->depth] = parser->n_ops;
        parser->depth = parser->depth - op.n_args + 1;
        if (parser->depth > parser->max_depth)
                parser->max_depth = parser->depth;
        parser->ops[parser->n_ops++] = op;
        return STATUS_OK;
}

// ---- operands ----

static Status add_symbol(Parser *parser, const char *name)
{
        if (name == NULL)
                return fail_memory();
        if (parser->symbol == NULL)
                parser->symbol = name;
        else if (strcmp(parser->symbol, name) != 0)
                parser->many_symbols = true;
        return add_op(parser, (ExprOp){ .code = EXPR_SYMBOL, .text = name });
}

static Status add_number(Parser *parser, ExprNumber number)
{
        return add_op(parser, (ExprOp){ .code = EXPR_NUMBER, .number = number });
}

// A quoted text; escapes do not occur in names.
static Status read_quoted(Parser *parser, const char **out_start, size_t *out_n)
{
        char quote = *parser->at;
        if (quote != '\'' && quote != '"')
                return refuse(parser, "expected a quoted text");
        const char *end = strchr(parser->at + 1, quote);
        if (end == NULL)
                return refuse(parser, "the quoted text does not end");
        *out_start = parser->at + 1;
        *out_n = (size_t)(end - parser->at - 1);
        parser->at = end + 1;
        return STATUS_OK;
}

// Symbol('s0', positive=True, integer=True) and Float('1.5', precision=53): whatever follows the
// text is ignored.
static Status read_quoted_atom(Parser *parser, bool is_symbol)
{
        const char *start = NULL;
        size_t n = 0;
        parser->at++;
        skip_blanks(parser);
        TRY(read_quoted(parser, &start, &n));
        const char *close = strchr(parser->at, ')');
        if (close == NULL)
                return refuse(parser, "expected ')'");
        parser->at = close + 1;
        if (is_symbol)
                return add_symbol(parser, arena_text(parser->arena, start, n));
        char *number = arena_text(parser->arena, start, n), *end;
        if (number == NULL)
                return fail_memory();
        double value = strtod(number, &end);
        if (n == 0 || *end != '\0')
                return refuse(parser, "Float needs a number");
        return add_number(parser, (ExprNumber){ .is_float = true, .f = value });
}

// The bracket behind a number or a quoted key, which may hold brackets itself; NULL: there is none.
static const char *end_of_item(const char *item)
{
        char quote = *item == '\'' || *item == '"' ? *item++ : '\0';
        while (quote != '\0' && *item != '\0' && *item != quote)
                item += 1 + (*item == '\\' && item[1] != '\0');
        return strchr(item, ']');
}

// L['x'].size()[0] -> "x.size()[0]", L['n'] -> "n", L['d']['a'][1] -> "d['a'][1]". It stands at the
// first bracket.
static Status scan_path(Parser *parser, const char **out_symbol)
{
        const char *name = NULL;
        size_t n = 0;
        parser->at++;
        TRY(read_quoted(parser, &name, &n));
        if (*parser->at != ']')
                return refuse(parser, "expected ']'");
        const char *rest = ++parser->at;
        while (*parser->at == '[' || (*parser->at == '.' && is_word(parser->at[1]))) {
                const char *close = parser->at;
                if (*parser->at == '[') {
                        close = end_of_item(parser->at + 1);
                        if (close == NULL)
                                return refuse(parser, "expected ']'");
                        close++;
                } else {
                        for (close++; is_word(*close); close++)
                                continue;
                        if (*close == '(') {
                                close = strchr(close, ')');
                                if (close == NULL)
                                        return refuse(parser, "expected ')'");
                                close++;
                        }
                }
                parser->at = close;
        }
        *out_symbol = arena_format(parser->arena, "%.*s%.*s", (int)n, name, (int)(parser->at - rest), rest);
        return *out_symbol == NULL ? fail_memory() : STATUS_OK;
}

static Status read_path(Parser *parser)
{
        const char *symbol;
        TRY(scan_path(parser, &symbol));
        return add_symbol(parser, symbol);
}

Status expr_path(const char *text, Arena *arena, const char **out_symbol, size_t *out_n)
{
        Parser parser = { .text = text, .at = text + 1, .arena = arena };
        TRY(scan_path(&parser, out_symbol));
        *out_n = (size_t)(parser.at - text);
        return STATUS_OK;
}

// A sign belongs to a number only behind the letter of an exponent.
static const char *end_of_number(const char *at)
{
        while (isalnum((unsigned char)*at) || *at == '.')
                at += 1 + ((*at == 'e' || *at == 'E') && (at[1] == '+' || at[1] == '-'));
        return at;
}

static Status read_number(Parser *parser)
{
        NumberKind kind;
        ExprNumber number = { 0 };
        double value;
        const char *end = number_scan(parser->at, end_of_number(parser->at), &kind, &number.i, &value);
        if (end == NULL)
                return refuse(parser, "expected a number");
        number.is_float = kind != NUMBER_INT;
        if (number.is_float) {
                bool whole = strcspn(parser->at, ".eE") >= (size_t)(end - parser->at);
                if (whole)
                        return refuse(parser, "the number does not fit 64 bits");
                number.f = value;
        }
        parser->at = end;
        return add_number(parser, number);
}

static Status open_call(Parser *parser, const char *name, size_t n)
{
        Pending call = { .empty = true };
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
                if (strncmp(functions[i].name, name, n) == 0 && functions[i].name[n] == '\0')
                        call.function = &functions[i];
        }
        if (call.function == NULL) {
                call.unknown = arena_text(parser->arena, name, n);
                if (call.unknown == NULL)
                        return fail_memory();
        }
        parser->at++;
        return push(parser, call);
}

// A name: constant, symbol, the path of an input, or a call that opens. *out_operand: an operand is
// complete.
static Status read_name(Parser *parser, bool *out_operand)
{
        const char *start = parser->at;
        while (is_word(*parser->at) || (*parser->at == '.' && is_word(parser->at[1])))
                parser->at++;
        size_t n = (size_t)(parser->at - start);
        *out_operand = true;
        if (n == 1 && *start == 'L' && *parser->at == '[')
                return read_path(parser);
        skip_blanks(parser);
        if (*parser->at == '(') {
                if ((n == 6 && memcmp(start, "Symbol", 6) == 0) || (n == 5 && memcmp(start, "Float", 5) == 0))
                        return read_quoted_atom(parser, n == 6);
                *out_operand = false;
                return open_call(parser, start, n);
        }
        bool truth = (n == 4 && (memcmp(start, "True", 4) == 0 || memcmp(start, "true", 4) == 0));
        if (truth || (n == 5 && (memcmp(start, "False", 5) == 0 || memcmp(start, "false", 5) == 0)))
                return add_number(parser, (ExprNumber){ .i = truth });
        if ((n == 2 && memcmp(start, "oo", 2) == 0) || (n == 6 && memcmp(start, "int_oo", 6) == 0))
                return add_number(parser, (ExprNumber){ .is_float = true, .f = INFINITY });
        return add_symbol(parser, arena_text(parser->arena, start, n));
}

// ---- operators ----

static const Operator *match_operator(const Parser *parser, bool unary)
{
        for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
                size_t n = strlen(operators[i].text);
                if (operators[i].unary == unary && strncmp(parser->at, operators[i].text, n) == 0 &&
                    !(operators[i].word && is_word(parser->at[n])))
                        return &operators[i];
        }
        return NULL;
}

static Status emit(Parser *parser, const Operator *sign)
{
        return add_op(parser, (ExprOp){ .code = sign->code, .n_args = sign->unary ? 1 : 2 });
}

// Operators that bind at least as tightly as what comes get their operands now.
static Status settle(Parser *parser, int binding, bool right)
{
        while (parser->n_pending > 0) {
                const Operator *top = parser->pending[parser->n_pending - 1].sign;
                if (top == NULL || top->binding < binding || (top->binding == binding && right))
                        break;
                parser->n_pending--;
                TRY(emit(parser, top));
        }
        return STATUS_OK;
}

static bool is_comparison(const Operator *sign)
{
        return sign->code >= EXPR_EQ && sign->code <= EXPR_GE;
}

// a < b < c is a < b and b < c: when the second comparison arrives, the first is settled and b's
// code is written once more.
static Status chain_comparison(Parser *parser, bool *out_chained)
{
        static const Operator both = { "", EXPR_AND, 4, false, false, false };
        TRY(settle(parser, 5, false));
        const Operator *top = parser->n_pending == 0 ? NULL : parser->pending[parser->n_pending - 1].sign;
        if (top == NULL || !is_comparison(top))
                return STATUS_OK;
        uint32_t from = parser->starts[parser->depth - 1], to = parser->n_ops;
        TRY(settle(parser, 4, false));
        TRY(push(parser, (Pending){ .sign = &both }));
        for (uint32_t i = from; i < to; i++) {
                TRY(count_token(parser));
                TRY(add_op(parser, parser->ops[i]));
        }
        *out_chained = true;
        return STATUS_OK;
}

static Status close_call(Parser *parser)
{
        TRY(settle(parser, 0, false));
        if (parser->n_pending == 0)
                return refuse(parser, "')' without '('");
        Pending call = parser->pending[--parser->n_pending];
        uint16_t n_args = (uint16_t)(call.n_args + (call.empty ? 0 : 1));
        parser->at++;
        if (call.function == NULL)
                return add_op(parser,
                              (ExprOp){ .code = EXPR_UNKNOWN, .n_args = n_args, .text = call.unknown });
        if (n_args < call.function->min_args || n_args > call.function->max_args)
                return refuse(parser, "wrong number of arguments");
        return add_op(parser, (ExprOp){ .code = call.function->code, .n_args = n_args });
}

static Status next_argument(Parser *parser)
{
        TRY(settle(parser, 0, false));
        Pending *call = parser->n_pending == 0 ? NULL : &parser->pending[parser->n_pending - 1];
        if (call == NULL || (call->function != NULL && call->function->name[0] == '\0'))
                return refuse(parser, "',' outside of a call");
        call->n_args++;
        parser->at++;
        return STATUS_OK;
}

// One token where an operand is due. *out_operand: it is complete now.
static Status read_operand(Parser *parser, bool *out_operand)
{
        const Operator *unary = match_operator(parser, true);
        char c = *parser->at;
        *out_operand = true;
        if (c == ')' && parser->n_pending > 0 && parser->pending[parser->n_pending - 1].sign == NULL &&
            parser->pending[parser->n_pending - 1].empty)
                return close_call(parser);
        if (parser->n_pending > 0)
                parser->pending[parser->n_pending - 1].empty = false;
        if (unary != NULL) {
                parser->at += strlen(unary->text);
                TRY(push(parser, (Pending){ .sign = unary }));
                *out_operand = false;
                return STATUS_OK;
        }
        if (c == '(') {
                *out_operand = false;
                return open_call(parser, "", 0);
        }
        if (isdigit((unsigned char)c))
                return read_number(parser);
        if (is_word(c))
                return read_name(parser, out_operand);
        return refuse(parser, c == '\0' ? "the expression ends too early" : "expected an operand");
}

// One token after an operand. *out_operand: still at the end of an operand.
static Status read_operator(Parser *parser, bool *out_operand)
{
        *out_operand = true;
        if (*parser->at == ')')
                return close_call(parser);
        if (strncmp(parser->at, ".is_integer()", 13) == 0) {
                parser->at += 13;
                return add_op(parser, (ExprOp){ .code = EXPR_IS_INTEGER, .n_args = 1 });
        }
        *out_operand = false;
        if (*parser->at == ',')
                return next_argument(parser);
        const Operator *sign = match_operator(parser, false);
        if (sign == NULL)
                return refuse(parser, "expected an operator");
        bool chained = false;
        if (is_comparison(sign))
                TRY(chain_comparison(parser, &chained));
        if (!chained)
                TRY(settle(parser, sign->binding, sign->right));
        parser->at += strlen(sign->text);
        TRY(push(parser, (Pending){ .sign = sign }));
        return STATUS_OK;
}

static Status parse(Parser *parser)
{
        bool operand = false;
        for (;;) {
                skip_blanks(parser);
                if (*parser->at == '\0' && operand)
                        break;
                TRY(count_token(parser));
                TRY(operand ? read_operator(parser, &operand) : read_operand(parser, &operand));
        }
        TRY(settle(parser, 0, false));
        if (parser->n_pending > 0)
                return refuse(parser, "expected ')'");
        return STATUS_OK;
}

static Status keep(const Parser *parser, Expr **out_expr)
{
        Expr *expr = arena_alloc(parser->arena, sizeof(*expr));
        ExprOp *ops = arena_array(parser->arena, parser->n_ops, sizeof(*ops));
        if (expr == NULL || ops == NULL)
                return fail_memory();
        memcpy(ops, parser->ops, parser->n_ops * sizeof(*ops));
        *expr = (Expr){ .ops = ops,
                        .n_ops = parser->n_ops,
                        .n_stack = parser->max_depth,
                        .symbol = parser->many_symbols ? NULL : parser->symbol };
        *out_expr = expr;
        return STATUS_OK;
}

Status expr_parse(const char *text, Arena *arena, Expr **out_expr)
{
        Parser parser = { .text = text, .at = text, .arena = arena };
        Status status = parse(&parser);
        if (status == STATUS_OK)
                status = keep(&parser, out_expr);
        free(parser.ops);
        free(parser.starts);
        free(parser.pending);
        return status;
}

bool expr_is_name(const char *text)
{
        size_t n = 0;
        while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') || text[n] == '_' ||
               (n > 0 && text[n] >= '0' && text[n] <= '9'))
                n++;
        return n > 0 && text[n] == '\0';
}

uint32_t expr_length(const Expr *expr)
{
        return expr->n_ops;
}

const char *expr_single_symbol(const Expr *expr)
{
        return expr->symbol;
}

const char *expr_unknown(const Expr *expr, bool (*knows)(const void *context, const char *symbol),
                         const void *context)
{
        for (uint32_t i = 0; i < expr->n_ops; i++) {
                const ExprOp *op = &expr->ops[i];
                if (op->code == EXPR_UNKNOWN || (op->code == EXPR_SYMBOL && !knows(context, op->text)))
                        return op->text;
        }
        return NULL;
}

Status expr_visit_symbols(const Expr *expr, Status (*visit)(void *context, const char *symbol), void *context)
{
        for (uint32_t i = 0; i < expr->n_ops; i++)
                if (expr->ops[i].code == EXPR_SYMBOL)
                        TRY(visit(context, expr->ops[i].text));
        return STATUS_OK;
}
