// SPDX-License-Identifier: Apache-2.0
// Arena: many small objects with one lifetime. Blocks grow geometrically; freed all at once. One
// thread at a time.
#pragma once
#include "core/base/budget.h"
#include "core/base/memory.h"

typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
        ArenaBlock *block;  // newest
        size_t used;        // bytes used in the newest block
        size_t total_bytes; // bytes taken from the heap
        size_t max_bytes;   // 0 = no cap; taking more fails, or is charged to `budget`
        Budget *budget;     // of what goes beyond max_bytes; NULL: nothing may
        size_t n_charged;
} Arena;

void arena_init(Arena *arena, size_t max_bytes);
// What goes beyond the cap, charged to a budget. It must outlive the arena.
void arena_init_charged(Arena *arena, size_t max_bytes, Budget *budget);
void arena_deinit(Arena *arena);
// `n_bytes` zeroed bytes, aligned to 16. NULL when out of memory or over max_bytes
// and its budget.
void *arena_alloc(Arena *arena, size_t n_bytes);
void *arena_array(Arena *arena, size_t n, size_t item_bytes); // checked product
char *arena_text(Arena *arena, const char *text, size_t n);   // copy, NUL-terminated
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
