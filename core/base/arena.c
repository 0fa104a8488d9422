// SPDX-License-Identifier: Apache-2.0
// arena.c: a list of zeroed blocks, newest first; objects are cut from the newest. A block is twice
// as large as the one before, up to 1 MiB, or as large as the object that did not fit.
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_FIRST_BLOCK = 4096, ARENA_LARGEST_BLOCK = 1 << 20 };

struct ArenaBlock {
        _Alignas(ARENA_ALIGN) ArenaBlock *previous;
        size_t n_bytes; // of `data`
        _Alignas(ARENA_ALIGN) unsigned char data[];
};

void arena_init(Arena *arena, size_t max_bytes)
{
        *arena = (Arena){ .max_bytes = max_bytes };
}

void arena_init_charged(Arena *arena, size_t max_bytes, Budget *budget)
{
        *arena = (Arena){ .max_bytes = max_bytes, .budget = budget };
}

void arena_deinit(Arena *arena)
{
        if (arena == NULL)
                return;
        while (arena->block != NULL) {
                ArenaBlock *block = arena->block;
                arena->block = block->previous;
                free(block);
        }
        if (arena->n_charged > 0)
                budget_give(arena->budget, arena->n_charged);
        arena->used = arena->total_bytes = arena->n_charged = 0;
}

// The bytes of a block of `size`, if the cap or else the budget has room for them.
static bool charge(Arena *arena, size_t size, size_t *out_total)
{
        if (!add_size(size, sizeof(ArenaBlock), out_total))
                return false;
        size_t left = arena->max_bytes - MIN(arena->max_bytes, arena->total_bytes - arena->n_charged);
        if (arena->max_bytes == 0 || *out_total <= left)
                return true;
        if (arena->budget == NULL || !budget_take(arena->budget, *out_total))
                return false;
        arena->n_charged += *out_total;
        return true;
}

// A new newest block with room for `n_bytes`; shrinks to the object when the usual size would go
// over the cap.
static bool arena_grow(Arena *arena, size_t n_bytes)
{
        size_t size = arena->block == NULL ? ARENA_FIRST_BLOCK
                                           : MIN(arena->block->n_bytes * 2, (size_t)ARENA_LARGEST_BLOCK);
        size = MAX(size, n_bytes);
        size_t total, charged = arena->n_charged;
        if (!charge(arena, size, &total)) {
                size = n_bytes;
                if (!charge(arena, size, &total))
                        return false;
        }
        ArenaBlock *block = calloc(1, total);
        if (block == NULL) {
                if (arena->n_charged > charged)
                        budget_give(arena->budget, arena->n_charged - charged);
                arena->n_charged = charged;
                return false;
        }
        block->previous = arena->block;
        block->n_bytes = size;
        arena->block = block;
        arena->used = 0;
        arena->total_bytes += total;
        return true;
}

void *arena_alloc(Arena *arena, size_t n_bytes)
{
        size_t rounded;
        if (!add_size(n_bytes == 0 ? 1 : n_bytes, ARENA_ALIGN - 1, &rounded))
                return NULL;
        rounded &= ~(size_t)(ARENA_ALIGN - 1);
        if (arena->block == NULL || arena->block->n_bytes - arena->used < rounded) {
                if (!arena_grow(arena, rounded))
                        return NULL;
        }
        void *object = arena->block->data + arena->used;
        arena->used += rounded;
        return object;
}

void *arena_array(Arena *arena, size_t n, size_t item_bytes)
{
        size_t n_bytes;
        return mul_size(n, item_bytes, &n_bytes) ? arena_alloc(arena, n_bytes) : NULL;
}

char *arena_text(Arena *arena, const char *text, size_t n)
{
        size_t n_bytes;
        char *copy = add_size(n, 1, &n_bytes) ? arena_alloc(arena, n_bytes) : NULL;
        if (copy != NULL && n > 0)
                memcpy(copy, text, n);
        return copy;
}

char *arena_format(Arena *arena, const char *format, ...)
{
        va_list args, again;
        va_start(args, format);
        va_copy(again, args);
        int n = vsnprintf(NULL, 0, format, args);
        va_end(args);
        char *text = n < 0 ? NULL : arena_alloc(arena, (size_t)n + 1);
        if (text != NULL)
                vsnprintf(text, (size_t)n + 1, format, again);
        va_end(again);
        return text;
}
