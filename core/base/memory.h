// SPDX-License-Identifier: Apache-2.0
// Cleanup attributes, ownership helpers, reference counts, checked arithmetic.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/param.h> // MIN, MAX
#include "core/base/status.h"

// A local that owns something: _cleanup_(freep) char *text = NULL;  Hand over with take_ptr().
#define _cleanup_(function) __attribute__((cleanup(function)))
#define take_ptr(pointer)                                                                                    \
        __extension__({                                                                                      \
                __typeof__(pointer) taken_ = (pointer);                                                      \
                (pointer) = NULL;                                                                            \
                taken_;                                                                                      \
        })
// Defines `void NAMEp(TYPE **p)` for use with _cleanup_.
#define DEFINE_CLEANUP(TYPE, NAME)                                                                           \
        static inline void NAME##p(TYPE **pointer_)                                                          \
        {                                                                                                    \
                if (*pointer_ != NULL)                                                                       \
                        NAME(*pointer_);                                                                     \
        }
// Advises the system to use huge pages for a large new block of any size. Freeing gigabytes in
// small pages takes a worker longer than a deadline allows.
void memory_prefer_huge(void *data, size_t n_bytes);
// Tells malloc, once for the process, that runs take and free large blocks again and again: they
// stay in the heap, which would otherwise ask the system for zeroed pages each time.
void memory_keep_heap(void);
// Gives the system back what is free in the heaps of all threads, but for the ends of the heaps of
// threads other than the first.
void memory_trim(void);
// Gives back the end of the calling thread's heap. After memory_keep_heap.
void memory_trim_heap_end(void);

static inline void freep(void *pointer)
{
        free(*(void **)pointer);
}

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

typedef struct RefCount {
        _Atomic uint32_t count;
} RefCount;

static inline void refcount_init(RefCount *ref)
{
        atomic_init(&ref->count, 1);
}
static inline void refcount_get(RefCount *ref)
{
        atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
}
// True when the caller dropped the last reference and must destroy the object.
static inline bool refcount_put(RefCount *ref)
{
        return atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) == 1;
}

// Checked arithmetic on sizes: false on overflow (result then undefined).
static inline bool mul_size(size_t a, size_t b, size_t *out)
{
        return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_size(size_t a, size_t b, size_t *out)
{
        return !__builtin_add_overflow(a, b, out);
}
static inline bool mul_i64(int64_t a, int64_t b, int64_t *out)
{
        return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_i64(int64_t a, int64_t b, int64_t *out)
{
        return !__builtin_add_overflow(a, b, out);
}
static inline bool sub_i64(int64_t a, int64_t b, int64_t *out)
{
        return !__builtin_sub_overflow(a, b, out);
}

// Grows `*items` (elements of `item_bytes`) so that it holds at least `n_needed`; doubles.
// STATUS_NO_MEMORY leaves it as it was.
Status array_reserve(void *items, uint32_t *capacity, uint32_t n_needed, size_t item_bytes);

// n * item_bytes zeroed bytes, or NULL (also when the product overflows).
static inline void *new_array(size_t n, size_t item_bytes)
{
        size_t n_bytes;
        return mul_size(n, item_bytes, &n_bytes) ? calloc(1, n_bytes == 0 ? 1 : n_bytes) : NULL;
}
// strndup that never reads past n; NULL on out-of-memory.
char *copy_text(const char *text, size_t n);
