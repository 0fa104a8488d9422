// SPDX-License-Identifier: Apache-2.0
// Time. Monotonic everywhere; wall clock only for showing.
#pragma once
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline int64_t clock_wall_ms(void)
{
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
