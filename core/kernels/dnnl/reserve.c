// SPDX-License-Identifier: Apache-2.0
// oneDNN is C++: where an allocation of its containers fails, it throws, nothing in it catches, and
// the process ends. Its operator new is therefore ours: malloc, and when that gives nothing, a
// reserve in the program itself, so that oneDNN always finishes what it was doing and reports what
// its own checked allocations met. The reserve is a stack of blocks that starts again when its last
// block is freed; only a call that needs more than all of it still ends the process. Definitions in
// the executable win over those of libstdc++. Other allocations of oneDNN 2.6 and 3.7 go to
// posix_memalign and are not all checked: dnnl_check_heap asks first whether there is room.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/kernels/dnnl/primitive.h"

enum { RESERVE_BYTES = 8 << 20, RESERVE_ALIGN = 64, ROOM_BYTES = 4 << 20 };

static _Alignas(RESERVE_ALIGN) uint8_t reserve[RESERVE_BYTES]; // costs no memory until it is touched
static size_t top, n_live;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

Status dnnl_check_heap(void)
{
        void *volatile room = malloc(ROOM_BYTES); // volatile: the pair would be taken for nothing
        if (room == NULL)
                return fail_memory();
        free(room);
        return STATUS_OK;
}

static void *take_reserve(size_t n)
{
        void *data = NULL;
        size_t rounded = (n + RESERVE_ALIGN - 1) / RESERVE_ALIGN * RESERVE_ALIGN;
        pthread_mutex_lock(&mutex);
        if (rounded >= n && rounded <= RESERVE_BYTES - top) {
                data = reserve + top;
                top += rounded;
                n_live++;
        }
        pthread_mutex_unlock(&mutex);
        return data;
}

static void *take(size_t alignment, size_t n)
{
        void *data = NULL;
        if (n == 0)
                n = 1;
        if (alignment <= _Alignof(max_align_t))
                data = malloc(n);
        else if (posix_memalign(&data, alignment, n) != 0)
                data = NULL;
        if (data == NULL && alignment <= RESERVE_ALIGN)
                data = take_reserve(n);
        if (data == NULL)
                abort();
        return data;
}

static void give(void *data)
{
        uintptr_t at = (uintptr_t)data, start = (uintptr_t)reserve;
        if (at < start || at >= start + RESERVE_BYTES) {
                free(data);
                return;
        }
        pthread_mutex_lock(&mutex);
        if (--n_live == 0)
                top = 0;
        pthread_mutex_unlock(&mutex);
}

// operator new, new[], delete, delete[] in all the forms libstdc++ brings, by their names in object
// files. Weak: a test may count them.
void *dnnl_new(size_t n) __asm__("_Znwm") __attribute__((weak));
void *dnnl_new_array(size_t n) __asm__("_Znam");
void *dnnl_new_quiet(size_t n, const void *nothrow) __asm__("_ZnwmRKSt9nothrow_t");
void *dnnl_new_array_quiet(size_t n, const void *nothrow) __asm__("_ZnamRKSt9nothrow_t");
void *dnnl_new_aligned(size_t n, size_t alignment) __asm__("_ZnwmSt11align_val_t");
void *dnnl_new_array_aligned(size_t n, size_t alignment) __asm__("_ZnamSt11align_val_t");
void dnnl_delete(void *data) __asm__("_ZdlPv") __attribute__((weak));
void dnnl_delete_array(void *data) __asm__("_ZdaPv");
void dnnl_delete_sized(void *data, size_t n) __asm__("_ZdlPvm") __attribute__((weak));
void dnnl_delete_array_sized(void *data, size_t n) __asm__("_ZdaPvm");
void dnnl_delete_quiet(void *data, const void *nothrow) __asm__("_ZdlPvRKSt9nothrow_t");
void dnnl_delete_array_quiet(void *data, const void *nothrow) __asm__("_ZdaPvRKSt9nothrow_t");
void dnnl_delete_aligned(void *data, size_t alignment) __asm__("_ZdlPvSt11align_val_t");
void dnnl_delete_array_aligned(void *data, size_t alignment) __asm__("_ZdaPvSt11align_val_t");
void dnnl_delete_sized_aligned(void *data, size_t n, size_t alignment) __asm__("_ZdlPvmSt11align_val_t");
void dnnl_delete_array_sized_aligned(void *data, size_t n,
                                     size_t alignment) __asm__("_ZdaPvmSt11align_val_t");

void *dnnl_new(size_t n)
{
        return take(0, n);
}

void *dnnl_new_array(size_t n)
{
        return take(0, n);
}

void *dnnl_new_quiet(size_t n, const void *nothrow)
{
        (void)nothrow;
        return take(0, n);
}

void *dnnl_new_array_quiet(size_t n, const void *nothrow)
{
        (void)nothrow;
        return take(0, n);
}

void *dnnl_new_aligned(size_t n, size_t alignment)
{
        return take(alignment, n);
}

void *dnnl_new_array_aligned(size_t n, size_t alignment)
{
        return take(alignment, n);
}

void dnnl_delete(void *data)
{
        give(data);
}

void dnnl_delete_array(void *data)
{
        give(data);
}

void dnnl_delete_sized(void *data, size_t n)
{
        (void)n;
        give(data);
}

void dnnl_delete_array_sized(void *data, size_t n)
{
        (void)n;
        give(data);
}

void dnnl_delete_quiet(void *data, const void *nothrow)
{
        (void)nothrow;
        give(data);
}

void dnnl_delete_array_quiet(void *data, const void *nothrow)
{
        (void)nothrow;
        give(data);
}

void dnnl_delete_aligned(void *data, size_t alignment)
{
        (void)alignment;
        give(data);
}

void dnnl_delete_array_aligned(void *data, size_t alignment)
{
        (void)alignment;
        give(data);
}

void dnnl_delete_sized_aligned(void *data, size_t n, size_t alignment)
{
        (void)n;
        (void)alignment;
        give(data);
}

void dnnl_delete_array_sized_aligned(void *data, size_t n, size_t alignment)
{
        (void)n;
        (void)alignment;
        give(data);
}
