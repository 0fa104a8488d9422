// SPDX-License-Identifier: Apache-2.0
// By itself the C library gives the end of its heap back as soon as a few hundred kilobytes there are free, so that every body, result and
// reply of that size is made of new pages, which the kernel has to find, clear and map: half the time of a request with 600 kB. Here they
// stay, and are given back when a timer fires that was set by the first request since the last time: a busy server maps them again every
// few seconds, an idle one keeps none.
#include "server/memory.h"
#include <malloc.h>

enum {
        KEPT_BYTES = 32 << 20,        // free at the heap's end before it shrinks at once; also the most that one worker's heap keeps
        MAPPED_FROM_BYTES = 32 << 20, // larger blocks are mapped and unmapped one by one
        GIVE_BACK_MS = 2000,
};

static uv_timer_t timer;

void memory_start(uv_loop_t *loop)
{
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
        mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
        uv_timer_init(loop, &timer);
        uv_unref((uv_handle_t *)&timer);
}

static void give_back(uv_timer_t *handle)
{
        (void)handle;
        malloc_trim(0);
}

void memory_freed(void)
{
        if (!uv_is_active((uv_handle_t *)&timer))
                uv_timer_start(&timer, give_back, GIVE_BACK_MS, 0);
}

void memory_stop(void)
{
        uv_close((uv_handle_t *)&timer, NULL);
}
