// SPDX-License-Identifier: Apache-2.0
// guards.c: ranges and guards of the derived graph from its base's. Guards on an erased argument
// are dropped, and so are those on a symbol that only erased arguments had. Guards on what moved
// within a list name it by its placeholder.
#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit_parts.h"
#include "core/graph/expr.h"
#include "core/graph/guard_path.h"

Status edit_derive_ranges(Edit *edit)
{
        const Signature *from = &edit->base->signature;
        Signature *to = &edit->work->signature;
        to->ranges = arena_array(&edit->work->arena, from->n_ranges + 1, sizeof(SymbolRange));
        if (to->ranges == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < from->n_ranges; i++) {
                to->ranges[i] = from->ranges[i];
                TRY(edit_keep_text(edit, from->ranges[i].symbol, &to->ranges[i].symbol));
        }
        to->n_ranges = from->n_ranges;
        return STATUS_OK;
}

// Paths of guards before and after. Where a list lost an entry, those behind it have other paths.
typedef struct GuardMove {
        Edit *edit;
        const Signature *before;
        Signature *after;
        const Input *const *copy; // of each entry of `before`; NULL: it is gone
        GuardPaths from, to;
        SizeWords from_words, to_words;
        Arena scratch;
        Text text;      // of the guard that is being written
        size_t n_bytes; // of those before
} GuardMove;

static bool any_path_changes(const GuardMove *move)
{
        for (uint32_t i = 0; i < move->before->n_inputs; i++) {
                const Input *from = &move->before->inputs[i], *to = move->copy[i];
                if (from->kind != INPUT_STATE &&
                    (to == NULL || strcmp(input_name(from), input_name(to)) != 0))
                        return true;
        }
        return false;
}

// By the input's own name, if that leads to it.
static Status write_flat_path(GuardMove *move, const Input *input, int dim, bool *out_written)
{
        const char *name = input_name(input);
        GuardPlace place;
        TRY(guard_paths_find(&move->to, name, &place));
        *out_written = place.input == input && dim != GUARD_OTHER && strpbrk(name, "'\\") == NULL;
        if (*out_written) {
                text_addf(&move->text, "L['%s']", name);
                if (dim != GUARD_WHOLE)
                        text_addf(&move->text, ".size()[%d]", dim);
        }
        return STATUS_OK;
}

// The path that `guard` begins with. *out_stays: what it speaks of is still there.
static Status move_path(GuardMove *move, const char *guard, size_t *out_n, bool *out_stays)
{
        const char *symbol;
        GuardPlace before, after;
        TRY(expr_path(guard, &move->scratch, &symbol, out_n));
        TRY(guard_paths_find(&move->from, symbol, &before));
        TRY(guard_paths_find(&move->to, symbol, &after));
        const Input *input = before.input == NULL ? NULL : move->copy[before.input - move->before->inputs];
        *out_stays = after.input == input;
        if (*out_stays)
                text_add_n(&move->text, guard, *out_n);
        else if (input != NULL)
                TRY(write_flat_path(move, input, before.dim, out_stays));
        *out_stays = *out_stays && (before.input == NULL || input != NULL);
        return STATUS_OK;
}

// The word that `guard` begins with. *out_stays: it is no symbol that only erased inputs gave.
static void move_word(GuardMove *move, const char *guard, size_t *out_n, bool *out_stays)
{
        size_t n = size_word_length(guard);
        *out_stays = string_map_get_n(&move->from_words.map, guard, n) == NULL ||
                     string_map_get_n(&move->to_words.map, guard, n) != NULL;
        text_add_n(&move->text, guard, n);
        *out_n = n;
}

// Names of placeholders may be longer than places in lists.
static Status check_guard_bytes(const GuardMove *move)
{
        TRY(text_status(&move->text));
        return move->n_bytes + move->text.n <= (size_t)limits.max_guards
                       ? STATUS_OK
                       : fail(STATUS_TOO_LARGE,
                              "the guards that stay have more than %lld bytes (max_guards in GET /v1)",
                              (long long)limits.max_guards);
}

static Status move_guard(GuardMove *move, const char *guard)
{
        Signature *to = move->after;
        bool stays = true;
        move->text.n = 0;
        for (size_t n; *guard != '\0' && stays; guard += n) {
                n = 1;
                if (guard[0] == 'L' && guard[1] == '[')
                        TRY(move_path(move, guard, &n, &stays));
                else if (size_word_length(guard) > 0)
                        move_word(move, guard, &n, &stays);
                else
                        text_add_n(&move->text, guard, n);
                TRY(check_guard_bytes(move));
        }
        if (!stays)
                return STATUS_OK;
        move->n_bytes += move->text.n + 1;
        return edit_keep_text(move->edit, move->text.data, &to->guards[to->n_guards++]);
}

static Status move_guards(GuardMove *move)
{
        Signature *to = move->after;
        if (to->in_tree != NULL)
                TRY(tree_sort_keys(&move->edit->work->arena, to->in_tree));
        TRY(guard_paths_init(&move->to, to));
        TRY(guard_paths_init(&move->from, move->before));
        TRY(size_words_init(&move->to_words, to));
        TRY(size_words_init(&move->from_words, move->before));
        for (uint32_t i = 0; i < move->before->n_guards; i++)
                TRY(move_guard(move, move->before->guards[i]));
        return STATUS_OK;
}

static void guard_move_deinit(GuardMove *move)
{
        guard_paths_deinit(&move->from);
        guard_paths_deinit(&move->to);
        size_words_deinit(&move->from_words);
        size_words_deinit(&move->to_words);
        arena_deinit(&move->scratch);
        text_deinit(&move->text);
}

Status edit_derive_guards(Edit *edit, const Input *const *copy)
{
        const Signature *from = &edit->base->signature;
        Signature *to = &edit->work->signature;
        _cleanup_(guard_move_deinit)
                GuardMove move = { .edit = edit, .before = from, .after = to, .copy = copy };
        to->guards = arena_array(&edit->work->arena, from->n_guards + 1, sizeof(char *));
        if (to->guards == NULL)
                return fail_memory();
        if (from->n_guards > 0 && any_path_changes(&move)) {
                arena_init(&move.scratch, 0);
                return move_guards(&move);
        }
        for (uint32_t i = 0; i < from->n_guards; i++)
                TRY(edit_keep_text(edit, from->guards[i], &to->guards[to->n_guards++]));
        return STATUS_OK;
}
