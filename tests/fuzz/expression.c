// SPDX-License-Identifier: Apache-2.0
// Expressions of dimensions and guards: parsed, evaluated with and without known symbols, solved,
// printed; what is printed must parse.
#include "core/graph/expr.h"
#include "tests/fuzz/fuzz.h"

static bool look_up(void *context, const char *symbol, ExprNumber *out)
{
        int64_t value = *(const int64_t *)context;
        if (value == INT64_MAX)
                return false; // nothing is known
        *out = (ExprNumber){ .is_float = symbol[0] == 'f', .i = value, .f = (double)value / 2 };
        return true;
}

static void evaluate(const Expr *expr)
{
        static const int64_t values[] = { 0, 1, -1, 2, 3, 1000, INT64_MIN, INT64_MAX - 1, INT64_MAX };
        for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
                ExprNumber number;
                bool known;
                Status status = expr_eval(expr, look_up, (void *)(uintptr_t)&values[i], &number, &known);
                if (status != STATUS_OK)
                        require_told(status);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *text = strndup((const char *)data, n);
        Arena arena;
        Expr *expr = NULL, *again = NULL;
        arena_init(&arena, 0);
        require(text != NULL, "no memory");
        Status status = expr_parse(text, &arena, &expr);
        if (status != STATUS_OK) {
                require_told(status);
        } else {
                Text printed = { 0 };
                int64_t solution;
                evaluate(expr);
                for (int64_t value = -3; value <= 3; value++)
                        expr_solve(expr, value, &solution);
                expr_single_symbol(expr);
                status = expr_print(expr, &printed);
                text_add_char(&printed, '\0');
                if (status == STATUS_OK)
                        status = expr_parse(printed.data, &arena, &again);
                if (status != STATUS_OK)
                        require_told(status);
                text_deinit(&printed);
        }
        arena_deinit(&arena);
        free(text);
        return 0;
}
