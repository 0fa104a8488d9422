// SPDX-License-Identifier: Apache-2.0
// expr_print.c: infix text the way sympy's str() lays it out: " + " and " - " between terms, "*"
// without blanks, parentheses by precedence, floor divisions always in parentheses of their own.
// Operands keep their order: srepr lists them in the order in which sympy prints them.
#include <string.h>
#include "core/base/number.h"
#include "core/graph/expr_code.h"

enum { LOOSE = 0, FLOOR_DIVISION = 35, SUM = 40, PRODUCT = 50, POWER = 60, ATOM = 100, MAX_BYTES = 1 << 20 };

// A printed operand.
typedef struct Part {
        const char *text;
        int binding;
} Part;

static void add_part(Text *out, Part part, int binding)
{
        bool parentheses = part.binding < binding;
        text_add(out, parentheses ? "(" : "");
        text_add(out, part.text);
        text_add(out, parentheses ? ")" : "");
}

static const char *function_of(const ExprOp *op)
{
        static const char *const names[] = {
                [EXPR_MOD] = "Mod",
                [EXPR_CEILDIV] = "CeilDiv",
                [EXPR_TRUEDIV] = "IntTrueDiv",
                [EXPR_MODULAR_INDEXING] = "ModularIndexing",
                [EXPR_MAX] = "Max",
                [EXPR_MIN] = "Min",
                [EXPR_ABS] = "Abs",
                [EXPR_SQRT] = "sqrt",
                [EXPR_FLOOR] = "floor",
                [EXPR_CEIL] = "ceiling",
                [EXPR_TRUNC] = "TruncToInt",
                [EXPR_ROUND] = "RoundToInt",
                [EXPR_TO_FLOAT] = "ToFloat",
                [EXPR_TRUNC_TO_FLOAT] = "TruncToFloat",
                [EXPR_EQ] = "Eq",
                [EXPR_NE] = "Ne",
                [EXPR_SHIFT_LEFT] = "LShift",
                [EXPR_SHIFT_RIGHT] = "RShift",
                [EXPR_WHERE] = "Where",
                [EXPR_UNKNOWN] = NULL,
        };
        if (op->code == EXPR_UNKNOWN)
                return op->text;
        return names[op->code] == NULL ? "Identity" : names[op->code];
}

static int print_sum(Text *out, const ExprOp *op, const Part *parts)
{
        for (uint32_t i = 0; i < op->n_args; i++) {
                bool minus = i > 0 && (op->code == EXPR_SUB || parts[i].text[0] == '-');
                if (i > 0)
                        text_add(out, minus ? " - " : " + ");
                Part part = parts[i];
                if (minus && op->code == EXPR_ADD)
                        part.text++;
                add_part(out, part, op->code == EXPR_SUB && i > 0 ? PRODUCT : SUM);
        }
        return SUM;
}

static int print_product(Text *out, const ExprOp *op, const Part *parts)
{
        uint32_t first = 0;
        if (op->n_args > 1 && strcmp(parts[0].text, "-1") == 0) {
                text_add_char(out, '-');
                first = 1;
        }
        for (uint32_t i = first; i < op->n_args; i++) {
                text_add(out, i > first ? "*" : "");
                add_part(out, parts[i], PRODUCT);
        }
        return PRODUCT;
}

static int print_infix(Text *out, const char *between, const Part *parts, uint32_t n, int operand, int result)
{
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i > 0 ? between : "");
                add_part(out, parts[i], operand);
        }
        return result;
}

static int print_call(Text *out, const ExprOp *op, const Part *parts)
{
        text_add(out, function_of(op));
        text_add_char(out, '(');
        print_infix(out, ", ", parts, op->n_args, LOOSE, ATOM);
        text_add_char(out, ')');
        return ATOM;
}

static int print_number(Text *out, ExprNumber number)
{
        char digits[NUMBER_TEXT_MAX];
        if (number.is_float)
                text_add_n(out, digits, number_print_python(number.f, digits));
        else
                text_add_int(out, number.i);
        return ATOM;
}

static int print_op(Text *out, const ExprOp *op, const Part *parts)
{
        switch (op->code) {
        case EXPR_NUMBER:
                return print_number(out, op->number);
        case EXPR_SYMBOL:
                text_add(out, op->text);
                return ATOM;
        case EXPR_SAME:
                text_add(out, parts[0].text);
                return parts[0].binding;
        case EXPR_NEG:
                text_add_char(out, '-');
                add_part(out, parts[0], PRODUCT);
                return PRODUCT;
        case EXPR_NOT:
                text_add_char(out, '~');
                add_part(out, parts[0], ATOM);
                return POWER;
        case EXPR_ADD:
        case EXPR_SUB:
                return print_sum(out, op, parts);
        case EXPR_MUL:
                return print_product(out, op, parts);
        case EXPR_POW:
                return print_infix(out, "**", parts, op->n_args, ATOM, POWER);
        case EXPR_FLOORDIV:
                text_add_char(out, '(');
                print_infix(out, "//", parts, op->n_args, ATOM, ATOM);
                text_add_char(out, ')');
                return FLOOR_DIVISION;
        case EXPR_LT:
        case EXPR_LE:
        case EXPR_GT:
        case EXPR_GE: {
                static const char *const signs[] = {
                        [EXPR_LT] = " < ", [EXPR_LE] = " <= ", [EXPR_GT] = " > ", [EXPR_GE] = " >= "
                };
                return print_infix(out, signs[op->code], parts, op->n_args, FLOOR_DIVISION, LOOSE);
        }
        case EXPR_AND:
        case EXPR_BIT_AND:
                return print_infix(out, " & ", parts, op->n_args, FLOOR_DIVISION, LOOSE);
        case EXPR_OR:
        case EXPR_BIT_OR:
                return print_infix(out, " | ", parts, op->n_args, FLOOR_DIVISION, LOOSE);
        default:
                return print_call(out, op, parts);
        }
}

// Every operand is printed into the arena; MAX_BYTES bounds what a client's expression may cost.
static Status print_parts(const Expr *expr, Arena *arena, Part *stack)
{
        size_t n_bytes = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < expr->n_ops; i++) {
                const ExprOp *op = &expr->ops[i];
                Text text = { 0 };
                text_add(&text, "");
                n -= op->n_args;
                int binding = print_op(&text, op, stack + n);
                const char *copy = text.failed ? NULL : arena_text(arena, text.data, text.n);
                n_bytes += text.n;
                text_deinit(&text);
                if (copy == NULL)
                        return fail_memory();
                if (n_bytes > MAX_BYTES)
                        return fail(STATUS_TOO_LARGE, "an expression takes more than %d bytes as text",
                                    MAX_BYTES);
                stack[n++] = (Part){ copy, binding };
        }
        return STATUS_OK;
}

Status expr_print(const Expr *expr, Text *out)
{
        _cleanup_(freep) Part *stack = new_array(expr->n_stack, sizeof(*stack));
        Arena arena;
        if (stack == NULL)
                return fail_memory();
        arena_init(&arena, 0);
        Status status = print_parts(expr, &arena, stack);
        if (status == STATUS_OK) {
                text_add(out, stack[0].text);
                status = text_status(out);
        }
        arena_deinit(&arena);
        return status;
}
