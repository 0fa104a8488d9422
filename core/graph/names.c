// SPDX-License-Identifier: Apache-2.0
// names.c: how torch.fx 2.13 names nodes. A candidate is split into base and number ("add_2" ->
// "add", 2). Per base, the last number tried is remembered, so that n equal candidates cost n
// steps, not n². One quirk of torch.fx is kept: a candidate that already ends in a free number is
// taken as it is, without the check against reserved names, and sets the counter to that number,
// even backwards.
#include "core/graph/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "core/graph/graph.h"

static const char *const reserved[] = {
#define RESERVED(name) name,
#include "core/graph/reserved.def"
#undef RESERVED
};

void namespace_deinit(Namespace *space)
{
        string_map_deinit(&space->used);
        string_map_deinit(&space->counts);
}

static int compare_name(const void *key, const void *row)
{
        return strcmp(key, *(const char *const *)row);
}

bool name_is_reserved(const char *name)
{
        return bsearch(name, reserved, ARRAY_LENGTH(reserved), sizeof(reserved[0]), compare_name) != NULL;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool name_is_plain(const char *name)
{
        if (name[0] == '\0' || is_digit(name[0]))
                return false;
        for (const char *c = name; *c != '\0'; c++) {
                if (!is_word(*c))
                        return false;
        }
        return true;
}

// Runs of characters that no identifier may hold become one underscore each.
static Status clean(Arena *arena, const char *candidate, const char **out_name)
{
        size_t n = strlen(candidate);
        char *name = arena_alloc(arena, n + sizeof("_unnamed"));
        if (name == NULL)
                return fail_memory();
        size_t at = 0;
        if (is_digit(candidate[0]))
                name[at++] = '_';
        bool in_run = false;
        for (size_t i = 0; i < n; i++) {
                bool word = is_word(candidate[i]);
                if (word || !in_run)
                        name[at++] = word ? candidate[i] : '_';
                in_run = !word;
        }
        if (at == 0)
                memcpy(name, "_unnamed", sizeof("_unnamed"));
        *out_name = name;
        return STATUS_OK;
}

// Length of the base: the shortest for which "_digits" or nothing is left. `out_number` is set when
// digits are there.
static size_t split(const char *name, bool *out_numbered, uint64_t *out_number)
{
        size_t n = strlen(name), digits = n;
        while (digits > 0 && is_digit(name[digits - 1]))
                digits--;
        *out_numbered = digits < n && digits >= 2 && name[digits - 1] == '_';
        if (!*out_numbered)
                return n;
        *out_number = 0;
        // beyond 2^60 the exact number no longer matters: it only has to be free
        for (size_t i = digits; i < n; i++) {
                if (*out_number < (uint64_t)1 << 56)
                        *out_number = *out_number * 10 + (uint64_t)(name[i] - '0');
        }
        return digits - 1;
}

static uint64_t count_of(const Namespace *space, const char *base, size_t n)
{
        uintptr_t stored = (uintptr_t)string_map_get_n(&space->counts, base, n);
        return stored == 0 ? 0 : stored - 1;
}

static Status set_count(Namespace *space, Arena *arena, const char *base, size_t n, uint64_t number)
{
        char *key = arena_text(arena, base, n);
        if (key == NULL)
                return fail_memory();
        return string_map_set(&space->counts, key, (void *)(uintptr_t)(number + 1), NULL);
}

Status namespace_create(Namespace *space, Arena *arena, const char *candidate, bool is_builtin,
                        const char **out_name)
{
        const char *name = candidate;
        if (!name_is_plain(candidate))
                TRY(clean(arena, candidate, &name));
        bool numbered;
        uint64_t number;
        size_t n = split(name, &numbered, &number);
        const char *base = name;
        if (!numbered || string_map_get(&space->used, name) != NULL) {
                number = count_of(space, base, n);
                if (!is_builtin && name_is_reserved(name))
                        name = arena_format(arena, "%.*s_%" PRIu64, (int)n, base, ++number);
        }
        while (name != NULL && string_map_get(&space->used, name) != NULL)
                name = arena_format(arena, "%.*s_%" PRIu64, (int)n, base, ++number);
        if (name != NULL && name == candidate)
                name = arena_text(arena, candidate, strlen(candidate));
        if (name == NULL)
                return fail_memory();
        TRY(string_map_set(&space->used, name, (void *)(uintptr_t)name, NULL));
        TRY(set_count(space, arena, base, n, number));
        *out_name = name;
        return STATUS_OK;
}

Status namespace_claim(Namespace *space, Arena *arena, const char *borrow_name)
{
        bool numbered;
        uint64_t number;
        size_t n = split(borrow_name, &numbered, &number);
        if (!numbered)
                number = count_of(space, borrow_name, n);
        TRY(string_map_set(&space->used, borrow_name, (void *)(uintptr_t)borrow_name, NULL));
        return set_count(space, arena, borrow_name, n, number);
}

Status graph_fresh_name(Graph *graph, const char *candidate, const char **out_name)
{
        // Python's table of builtins maps None to None, which torch.fx takes for "no object": the
        // one builtin a node may hide.
        return namespace_create(&graph->names, &graph->arena, candidate, strcmp(candidate, "None") == 0,
                                out_name);
}

// An underscore before each capital that follows a small letter, then all small: "maxPool" ->
// "max_pool".
static Status snake_case(Arena *arena, const char *text, size_t n, const char **out_name)
{
        char *snake = arena_alloc(arena, 2 * n + 1);
        if (snake == NULL)
                return fail_memory();
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
                bool capital = text[i] >= 'A' && text[i] <= 'Z';
                if (capital && i > 0 && text[i - 1] >= 'a' && text[i - 1] <= 'z')
                        snake[at++] = '_';
                snake[at++] = (char)(capital ? text[i] + ('a' - 'A') : text[i]);
        }
        *out_name = snake;
        return STATUS_OK;
}

// A function's __name__: the last part of its qualified name; for an overload of torch.ops the last
// two.
const char *function_name(const char *target)
{
        if (strcmp(target, "torch._segment_reduce") == 0)
                return "segment_reduce";
        if (strncmp(target, "torch.ops.", 10) == 0) {
                const char *namespace_end = strchr(target + 10, '.');
                return namespace_end == NULL ? target + 10 : namespace_end + 1;
        }
        const char *dot = strrchr(target, '.');
        return dot == NULL ? target : dot + 1;
}

Status graph_name_of_target(Graph *graph, Opcode op, const char *target, const char **out_name)
{
        const char *text = target;
        size_t n;
        if (op == OP_CALL_FUNCTION) {
                text = function_name(target);
                n = strlen(text);
        } else {
                n = strlen(text);
                // Python's test for a dunder name also holds for "__": nothing is left of it.
                bool magic = n >= 2 && memcmp(text, "__", 2) == 0 && memcmp(text + n - 2, "__", 2) == 0;
                if (magic) {
                        text += n >= 4 ? 2 : n;
                        n = n >= 4 ? n - 4 : 0;
                }
        }
        return snake_case(&graph->arena, text, n, out_name);
}
