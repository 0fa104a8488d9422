// SPDX-License-Identifier: Apache-2.0
// memory.c: growing arrays and copies of text, sizes checked.
#include "core/base/memory.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
        HEAP_KEPT_BYTES = 31 << 20,  // free at a heap's end before it shrinks at once
        MAPPED_FROM_BYTES = 32 << 20 // larger blocks are mapped and unmapped one by one
};

Status array_reserve(void *items, uint32_t *capacity, uint32_t n_needed, size_t item_bytes)
{
        if (n_needed <= *capacity)
                return STATUS_OK;
        uint32_t n = *capacity < 4 ? 8 : *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
        n = MAX(n, n_needed);
        size_t n_bytes;
        if (!mul_size(n, item_bytes, &n_bytes))
                return fail_memory();
        void *old;
        memcpy(&old, items, sizeof(old));
        void *grown = realloc(old, n_bytes);
        if (grown == NULL)
                return fail_memory();
        memcpy(items, &grown, sizeof(grown));
        *capacity = n;
        return STATUS_OK;
}

void memory_keep_heap(void)
{
        mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
        mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
}

// A sanitizer brings a heap of its own, and the C library's is not set up then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void memory_trim(void)
{
}

void memory_trim_heap_end(void)
{
}
#else
void memory_trim(void)
{
        malloc_trim(0);
}

// With a free block of HEAP_KEPT_BYTES at its end the heap shrinks. None of its pages is touched.
void memory_trim_heap_end(void)
{
        void *volatile block = malloc(HEAP_KEPT_BYTES);
        free(block);
}
#endif

void memory_prefer_huge(void *data, size_t n_bytes)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)data + page - 1) / page * page;
        uintptr_t end = ((uintptr_t)data + n_bytes) / page * page;
        if (data != NULL && n_bytes >= MAPPED_FROM_BYTES && end > start)
                (void)madvise((char *)data + (start - (uintptr_t)data), end - start, MADV_HUGEPAGE);
}

char *copy_text(const char *text, size_t n)
{
        size_t length = n == 0 ? 0 : strnlen(text, n);
        size_t n_bytes;
        if (!add_size(length, 1, &n_bytes))
                return NULL;
        char *copy = malloc(n_bytes);
        if (copy == NULL)
                return NULL;
        if (length > 0)
                memcpy(copy, text, length);
        copy[length] = '\0';
        return copy;
}
