// SPDX-License-Identifier: Apache-2.0
// guard_path.c: no step looks at all arguments or at all keys; the work is that of reading.
#include "core/graph/guard_path.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/utf8.h"

typedef struct Path {
        const char *at;
        const Tree *tree; // NULL once an input without a tree is reached
        uint32_t leaf;
} Path;

// ---- arguments ----
// Of equal names the first one counts.
static Status name_argument(StringMap *map, const char *name, uint32_t number)
{
        if (string_map_get(map, name) != NULL)
                return STATUS_OK;
        return string_map_set(map, name, (void *)(uintptr_t)(number + 1), NULL);
}

Status guard_paths_init(GuardPaths *paths, const Signature *signature)
{
        *paths = (GuardPaths){ .signature = signature };
        arena_init(&paths->scratch, 0);
        bool has_tree = signature->in_tree != NULL && signature->in_tree->n == 2;
        for (uint32_t i = 0; has_tree && i < signature->n_arguments; i++)
                TRY(name_argument(&paths->arguments, signature->argument_names[i], i));
        paths->user = arena_array(&paths->scratch, signature->n_inputs, sizeof(Input *));
        if (paths->user == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                if (input->kind == INPUT_STATE)
                        continue;
                TRY(name_argument(&paths->inputs, input_name(input), paths->n_user));
                paths->user[paths->n_user++] = input;
        }
        return STATUS_OK;
}

void guard_paths_deinit(GuardPaths *paths)
{
        string_map_deinit(&paths->arguments);
        string_map_deinit(&paths->inputs);
        arena_deinit(&paths->scratch);
}

// The argument of that name: its tree, or the flat input.
static bool argument_named(const GuardPaths *paths, const char *name, size_t n, Path *path)
{
        uint32_t argument = (uint32_t)(uintptr_t)string_map_get_n(&paths->arguments, name, n);
        if (argument > 0) {
                const Tree *positional = paths->signature->in_tree->children[0];
                const Tree *keyword = paths->signature->in_tree->children[1];
                uint32_t i = argument - 1;
                if (i >= positional->n + keyword->n)
                        return false;
                path->tree =
                        i < positional->n ? positional->children[i] : keyword->children[i - positional->n];
                path->leaf = path->tree->first_leaf;
                return true;
        }
        uint32_t input = (uint32_t)(uintptr_t)string_map_get_n(&paths->inputs, name, n);
        path->tree = NULL;
        path->leaf = input - 1;
        return input > 0;
}

// The character that an escape of Python's repr() stands for. `*at` is at the backslash and goes
// behind the escape. Malformed ones, which repr() does not write, stay as they are.
static uint32_t unescape(const char **at, const char *end)
{
        const char *digits = *at + 2;
        char letter = (*at)[1], hex[9] = "";
        size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
        if (n == 0) {
                *at = digits;
                return (unsigned char)(letter == 'n'   ? '\n'
                                       : letter == 't' ? '\t'
                                       : letter == 'r' ? '\r'
                                                       : letter);
        }
        memcpy(hex, digits, MIN(n, (size_t)(end - digits)));
        unsigned long code = strtoul(hex, NULL, 16);
        bool whole = strspn(hex, "0123456789abcdefABCDEF") == n;
        bool fits = whole && code > 0 && code <= 0x10ffff;
        *at = fits ? digits + n : *at + 1;
        return fits ? (uint32_t)code : '\\';
}

// What stands between brackets, as Python prints it: a number or a string. Strings lose their
// quotes and escapes.
typedef struct Item {
        const char *text; // NULL: the item is not closed
        bool is_number;
} Item;

// Takes "[...]".
static Status take_item(GuardPaths *paths, const char **at, Item *out)
{
        const char *from = *at + 1;
        char quote = *from == '\'' || *from == '"' ? *from++ : '\0', end = quote == '\0' ? ']' : quote;
        const char *last = from;
        while (*last != '\0' && *last != end)
                last += 1 + (*last == '\\' && last[1] != '\0');
        char *text = arena_text(&paths->scratch, from, (size_t)(last - from));
        if (text == NULL)
                return fail_memory();
        *out = (Item){ .is_number = quote == '\0' };
        size_t n = 0;
        while (from < last) {
                if (*from == '\\' && from + 1 < last)
                        n += utf8_put(unescape(&from, last), text + n);
                else
                        text[n++] = *from++;
        }
        text[n] = '\0';
        from += quote != '\0' && *from == quote;
        if (*from != ']')
                return STATUS_OK;
        out->text = text;
        *at = from + 1;
        return STATUS_OK;
}

// `x`; `a[0]` of forward(*a), whose argument is a_0; `k['x']` of forward(**k), whose argument is x.
static Status find_argument(GuardPaths *paths, Path *path, bool *out_found)
{
        size_t n = strcspn(path->at, ".[");
        const char *symbol = path->at, *after = symbol + n;
        Item item = { NULL, false };
        *out_found = argument_named(paths, symbol, n, path);
        if (!*out_found && *after == '[') {
                TRY(take_item(paths, &after, &item));
                const char *name = item.text;
                if (name != NULL && item.is_number) {
                        name = arena_format(&paths->scratch, "%.*s_%s", (int)n, symbol, item.text);
                        if (name == NULL)
                                return fail_memory();
                }
                *out_found = name != NULL && argument_named(paths, name, strlen(name), path);
        }
        path->at = after;
        return STATUS_OK;
}

// ---- symbols of sizes ----
size_t size_word_length(const char *text)
{
        size_t n = 0;
        while (isalnum((unsigned char)text[n]) || text[n] == '_')
                n++;
        return n;
}

static Status add_words(SizeWords *words, const char *expr)
{
        for (const char *at = expr; *at != '\0';) {
                size_t n = size_word_length(at);
                bool symbol = n > 0 && !isdigit((unsigned char)*at) && at[n] != '(';
                if (symbol && string_map_get_n(&words->map, at, n) == NULL) {
                        char *word = arena_text(&words->texts, at, n);
                        if (word == NULL)
                                return fail_memory();
                        TRY(string_map_set(&words->map, word, word, NULL));
                }
                at += n + (n == 0);
        }
        return STATUS_OK;
}

int input_n_sizes(const Input *input)
{
        return MAX(input->spec.rank, input->value_kind == VALUE_INT ? 1 : 0);
}

Status size_words_init(SizeWords *words, const Signature *signature)
{
        *words = (SizeWords){ .map = { 0 } };
        arena_init(&words->texts, 0);
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                for (int d = 0; d < input_n_sizes(input); d++)
                        if (input->spec.size[d].expr != NULL)
                                TRY(add_words(words, input->spec.size[d].expr));
        }
        return STATUS_OK;
}

void size_words_deinit(SizeWords *words)
{
        string_map_deinit(&words->map);
        arena_deinit(&words->texts);
}

// ---- containers ----
static bool enter_child(Path *path, uint32_t index)
{
        if (index >= path->tree->n)
                return false;
        path->tree = path->tree->children[index];
        path->leaf = path->tree->first_leaf;
        return true;
}

static bool enter_key(Path *path, const char *key, size_t n)
{
        return enter_child(path, tree_find(path->tree, key, n));
}

// "[0]", "['key']" or ".field" into the container.
static Status enter_item(GuardPaths *paths, Path *path, bool *out_found)
{
        const Tree *tree = path->tree;
        Item item;
        *out_found = false;
        if (tree == NULL || tree->kind == TREE_LEAF)
                return STATUS_OK;
        if (*path->at == '.') {
                const char *field = path->at + 1;
                size_t n = strcspn(field, ".[");
                path->at = field + n;
                *out_found = enter_key(path, field, n);
                return STATUS_OK;
        }
        TRY(take_item(paths, &path->at, &item));
        if (item.text == NULL)
                return STATUS_OK;
        if (!item.is_number || tree->kind == TREE_DICT) {
                *out_found = enter_key(path, item.text, strlen(item.text));
                return STATUS_OK;
        }
        char *end;
        unsigned long number = strtoul(item.text, &end, 10);
        *out_found =
                end != item.text && *end == '\0' && number < tree->n && enter_child(path, (uint32_t)number);
        return STATUS_OK;
}

// ".size()[1]"; GUARD_OTHER: it is something else.
static int read_dimension(const char *text)
{
        static const char before[] = ".size()[";
        int end = 0, dim = 0;
        if (*text == '\0')
                return GUARD_WHOLE;
        if (strncmp(text, before, strlen(before)) != 0 || text[strlen(before)] < '0' ||
            text[strlen(before)] > '9')
                return GUARD_OTHER;
        return sscanf(text + strlen(before), "%4d]%n", &dim, &end) == 1 && end > 0 &&
                               text[strlen(before) + (size_t)end] == '\0'
                       ? dim
                       : GUARD_OTHER;
}

Status guard_paths_find(GuardPaths *paths, const char *symbol, GuardPlace *out_place)
{
        Path path = { .at = symbol };
        bool found;
        TRY(find_argument(paths, &path, &found));
        while (found &&
               (*path.at == '[' || (*path.at == '.' && path.tree != NULL && path.tree->kind != TREE_LEAF)))
                TRY(enter_item(paths, &path, &found));
        found = found && (path.tree == NULL || path.tree->kind == TREE_LEAF) && path.leaf < paths->n_user;
        *out_place = (GuardPlace){ NULL, 0, GUARD_OTHER };
        if (found)
                *out_place = (GuardPlace){ paths->user[path.leaf], path.leaf, read_dimension(path.at) };
        return STATUS_OK;
}
