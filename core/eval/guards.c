// SPDX-License-Identifier: Apache-2.0
// guards.c: what a guard speaks of is a path from the name of an argument, through containers, to a
// leaf: `pair[0].size()[1]`, `d['n']`.
#include "core/eval/guards.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/eval/bind.h"

typedef struct GuardPath {
        const char *at;
        const Tree *tree; // NULL once an input without a tree is reached
        uint32_t leaf;    // of the flat user inputs
} GuardPath;

// The argument of that name: its tree, or the flat input.
static bool argument_named(const Signature *signature, const char *wanted, size_t n, GuardPath *path)
{
        const Tree *trees[2] = { NULL, NULL };
        if (signature->in_tree != NULL && signature->in_tree->n == 2) {
                trees[0] = signature->in_tree->children[0];
                trees[1] = signature->in_tree->children[1];
        }
        for (uint32_t i = 0; trees[0] != NULL && i < signature->n_arguments; i++) {
                const char *name = signature->argument_names[i];
                if (strlen(name) != n || memcmp(name, wanted, n) != 0)
                        continue;
                uint32_t n_positional = trees[0]->n;
                if (i >= n_positional + trees[1]->n)
                        return false;
                path->tree = i < n_positional ? trees[0]->children[i] : trees[1]->children[i - n_positional];
                path->leaf = path->tree->first_leaf;
                return true;
        }
        for (uint32_t i = 0, at = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                if (input->kind == INPUT_STATE)
                        continue;
                if (strlen(bind_name(input)) == n && memcmp(bind_name(input), wanted, n) == 0) {
                        path->tree = NULL;
                        path->leaf = at;
                        return true;
                }
                at++;
        }
        return false;
}

// What stands between brackets, as Python prints it: a number or a string. Strings lose their
// quotes and the escapes of quotes, backslashes and line ends.
typedef struct GuardItem {
        char text[128];
        bool is_number;
} GuardItem;

// Takes "[...]"; false: it is not closed, or too long.
static bool take_item(const char **at, GuardItem *out)
{
        const char *from = *at + 1;
        char quote = *from == '\'' || *from == '"' ? *from++ : '\0';
        size_t n = 0;
        out->is_number = quote == '\0';
        for (; *from != '\0' && *from != (quote == '\0' ? ']' : quote); from++) {
                char c = *from;
                if (c == '\\') {
                        c = *++from;
                        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
                }
                if (c == '\0' || n + 1 == sizeof(out->text))
                        return false;
                out->text[n++] = c;
        }
        out->text[n] = '\0';
        from += quote != '\0' && *from == quote;
        if (*from != ']')
                return false;
        *at = from + 1;
        return true;
}

// `x`; `a[0]` of forward(*a), whose argument is a_0; `k['x']` of forward(**k), whose argument is x.
static bool find_argument(const Signature *signature, GuardPath *path)
{
        size_t n = strcspn(path->at, ".[");
        const char *after = path->at + n;
        GuardItem item;
        char name[200];
        if (argument_named(signature, path->at, n, path)) {
                path->at = after;
                return true;
        }
        if (*after != '[' || !take_item(&after, &item))
                return false;
        if (item.is_number)
                snprintf(name, sizeof(name), "%.*s_%s", (int)MIN(n, (size_t)64), path->at, item.text);
        else
                snprintf(name, sizeof(name), "%s", item.text);
        if (!argument_named(signature, name, strlen(name), path))
                return false;
        path->at = after;
        return true;
}

static bool enter_child(GuardPath *path, uint32_t index)
{
        if (index >= path->tree->n)
                return false;
        path->tree = path->tree->children[index];
        path->leaf = path->tree->first_leaf;
        return true;
}

static bool enter_key(GuardPath *path, const char *key, size_t n)
{
        const Tree *tree = path->tree;
        uint32_t i = 0;
        while (tree->keys != NULL && i < tree->n &&
               (strlen(tree->keys[i]) != n || memcmp(tree->keys[i], key, n) != 0))
                i++;
        return tree->keys != NULL && enter_child(path, i);
}

// "[0]", "['key']" or ".field" into the container.
static bool enter_item(GuardPath *path)
{
        const Tree *tree = path->tree;
        GuardItem item;
        if (tree == NULL || tree->kind == TREE_LEAF)
                return false;
        if (*path->at == '.') {
                const char *field = path->at + 1;
                size_t n = strcspn(field, ".[");
                path->at = field + n;
                return enter_key(path, field, n);
        }
        if (!take_item(&path->at, &item))
                return false;
        if (!item.is_number || tree->kind == TREE_DICT)
                return enter_key(path, item.text, strlen(item.text));
        char *end;
        unsigned long number = strtoul(item.text, &end, 10);
        return end != item.text && *end == '\0' && number < tree->n && enter_child(path, (uint32_t)number);
}

// To the leaf that the path leads to; false: to none.
static bool follow(const Signature *signature, GuardPath *path)
{
        if (!find_argument(signature, path))
                return false;
        while (*path->at == '[' ||
               (*path->at == '.' && path->tree != NULL && path->tree->kind != TREE_LEAF)) {
                if (!enter_item(path))
                        return false;
        }
        return path->tree == NULL || path->tree->kind == TREE_LEAF;
}

// ".size()[1]"; false: it is something else.
static bool read_dimension(const char *text, int *out)
{
        int end = 0;
        return sscanf(text, ".size()[%d]%n", out, &end) == 1 && text[end] == '\0' && *out >= 0;
}

// ---- at upload ----
static bool has_dimension(const Input *input, int dim)
{
        return input->value_kind == VALUE_NONE ||
               (input->value_kind == VALUE_TENSOR && dim < input->spec.rank);
}

static bool is_of_word(char c)
{
        return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word)
{
        size_t n = strlen(word);
        for (const char *at = text; n > 0 && (at = strstr(at, word)) != NULL; at++)
                if (!is_of_word(at[n]) && (at == text || !is_of_word(at[-1])))
                        return true;
        return false;
}

// A symbol of the shapes.
static bool is_declared(const Signature *signature, const char *symbol)
{
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const TensorSpec *spec = &signature->inputs[i].spec;
                int n = MAX(spec->rank, signature->inputs[i].value_kind == VALUE_INT ? 1 : 0);
                for (int d = 0; d < n; d++)
                        if (spec->size[d].expr != NULL && has_word(spec->size[d].expr, symbol))
                                return true;
        }
        return false;
}

// Whether an input will give the symbol a number.
static bool leads_somewhere(const void *context, const char *symbol)
{
        const Signature *signature = context;
        GuardPath path = { .at = symbol };
        int dim;
        if (!follow(signature, &path))
                return is_declared(signature, symbol);
        for (uint32_t i = 0, at = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                if (input->kind == INPUT_STATE || at++ != path.leaf)
                        continue;
                return *path.at == '\0' ? input->value_kind != VALUE_TENSOR
                                        : read_dimension(path.at, &dim) && has_dimension(input, dim);
        }
        return false;
}

static Status fail_guard(const char *guard, const char *why)
{
        char reason[200];
        snprintf(reason, sizeof(reason), "%.180s", why);
        return fail(STATUS_UNSUPPORTED, "the export's guard %.300s cannot be checked: %s", guard, reason);
}

static Status check_guard(const Signature *signature, const char *guard, Arena *arena)
{
        Expr *expr;
        Status status = expr_parse(guard, arena, &expr);
        if (status == STATUS_MALFORMED)
                return fail_guard(guard, failure_current()->message);
        TRY(status);
        const char *unknown = expr_unknown(expr, leads_somewhere, signature);
        if (unknown == NULL)
                return STATUS_OK;
        char why[200];
        snprintf(why, sizeof(why), "nothing that the graph takes is %.150s", unknown);
        return fail_guard(guard, why);
}

Status guards_check(const Signature *signature)
{
        Status status = STATUS_OK;
        Arena arena;
        arena_init(&arena, 0);
        for (uint32_t i = 0; i < signature->n_guards && status == STATUS_OK; i++)
                status = check_guard(signature, signature->guards[i], &arena);
        arena_deinit(&arena);
        return status;
}

// ---- in a run ----
typedef struct GuardInputs {
        const Signature *signature;
        ValueSpan user;
        GuardSymbols symbols;
} GuardInputs;

static bool number_of(Value value, ExprNumber *out)
{
        if (value.kind == VALUE_FLOAT)
                *out = (ExprNumber){ .is_float = true, .f = value.f };
        else
                *out = (ExprNumber){ .i = value.kind == VALUE_INT ? value.i : value.b };
        return value.kind == VALUE_INT || value.kind == VALUE_BOOL || value.kind == VALUE_FLOAT;
}

static bool lookup_guard(void *context, const char *symbol, ExprNumber *out)
{
        const GuardInputs *inputs = context;
        GuardPath path = { .at = symbol };
        int dim;
        if (!follow(inputs->signature, &path))
                return inputs->symbols.lookup(inputs->symbols.context, symbol, out);
        if (path.leaf >= inputs->user.n)
                return false;
        Value value = inputs->user.items[path.leaf];
        if (*path.at == '\0')
                return number_of(value, out);
        if (value.kind != VALUE_TENSOR || !read_dimension(path.at, &dim) || dim >= value.tensor->meta.rank)
                return false;
        *out = (ExprNumber){ .i = value.tensor->meta.size[dim] };
        return true;
}

// L['x'].size()[0] <= 64 -> x.size()[0] <= 64, as PyTorch prints it.
static void shown_guard(const char *guard, char *out, size_t cap)
{
        size_t n = 0;
        while (*guard != '\0' && n + 1 < cap) {
                bool local = (guard[0] == 'L' && guard[1] == '[' && (guard[2] == '\'' || guard[2] == '"'));
                const char *end = local ? strchr(guard + 3, guard[2]) : NULL;
                if (end == NULL || end[1] != ']') {
                        out[n++] = *guard++;
                        continue;
                }
                for (guard += 3; guard < end && n + 1 < cap; guard++)
                        out[n++] = *guard;
                guard = end + 2;
        }
        out[n] = '\0';
}

Status guards_hold(const Signature *signature, ValueSpan user, GuardSymbols symbols, Arena *arena)
{
        GuardInputs inputs = { signature, user, symbols };
        for (uint32_t i = 0; i < signature->n_guards; i++) {
                Expr *expr;
                ExprNumber value = { 0 };
                bool known = false;
                TRY(expr_parse(signature->guards[i], arena, &expr));
                TRY(expr_eval(expr, lookup_guard, &inputs, &value, &known));
                if (!known || (value.is_float ? value.f != 0 : value.i != 0))
                        continue;
                char shown[FAILURE_DETAIL_MAX];
                shown_guard(signature->guards[i], shown, sizeof(shown));
                return failure_detail(
                        fail(STATUS_GUARD,
                             "these inputs do not fit what the graph was exported for: it needs %.1000s",
                             shown),
                        "guard", shown);
        }
        return STATUS_OK;
}
