// SPDX-License-Identifier: Apache-2.0
#include "server/turns.h"
#include <poll.h>
#include <stdatomic.h>
#include <time.h>
#include "core/base/clock.h"
#include "core/base/memory.h"

static const int64_t LONG_NS = 1000000;     // runs shorter than that do not give way
static const int64_t LOOK_NS = 200000;      // between looks at loop_fd
static const int64_t PATIENCE_NS = 2000000; // with those that say that they need a core
// What a run gives at most for those before it. At its beginning a third of its time is nothing:
// requests that come close together would wait then, though most runs give nothing at all.
static const int64_t MOST_SAVED_NS = 4000000;

bool turns_long(int64_t run_ns)
{
        return run_ns >= LONG_NS;
}

void turns_init(Turns *turns)
{
        pthread_condattr_t monotonic;
        atomic_init(&turns->needed, 0);
        atomic_init(&turns->loop_fd, -1);
        atomic_init(&turns->given, false);
        pthread_mutex_init(&turns->mutex, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&turns->done, &monotonic);
        pthread_condattr_destroy(&monotonic);
}

void turns_deinit(Turns *turns)
{
        pthread_mutex_destroy(&turns->mutex);
        pthread_cond_destroy(&turns->done);
}

void turns_watch_loop(Turns *turns, int fd)
{
        atomic_store(&turns->loop_fd, fd);
}

void turns_need(Turns *turns, TurnOf of)
{
        if ((atomic_load(&turns->needed) & of) == 0)
                atomic_fetch_or(&turns->needed, of);
}

void turns_done(Turns *turns, TurnOf of)
{
        if ((atomic_load(&turns->needed) & of) == 0)
                return;
        unsigned needed = atomic_fetch_and(&turns->needed, ~(unsigned)of) & ~(unsigned)of;
        if (needed != 0 || !atomic_load(&turns->given))
                return;
        pthread_mutex_lock(&turns->mutex);
        pthread_cond_signal(&turns->done);
        pthread_mutex_unlock(&turns->mutex);
}

// The loop has events and has not begun with them. It is asked twice: what it began with in between
// may be done already, and it would never say so.
static bool loop_waits(Turns *turns)
{
        struct pollfd loop = { .fd = atomic_load(&turns->loop_fd), .events = POLLIN };
        if (loop.fd < 0 || poll(&loop, 1, 0) != 1)
                return false;
        turns_need(turns, TURN_LOOP);
        if (poll(&loop, 1, 0) == 1)
                return true;
        turns_done(turns, TURN_LOOP);
        return false;
}

static void wait_until_done(Turns *turns, int64_t now_ns)
{
        int64_t until_ns = now_ns + PATIENCE_NS;
        struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
        int late = 0;
        pthread_mutex_lock(&turns->mutex);
        while (atomic_load(&turns->needed) != 0 && late == 0)
                late = pthread_cond_timedwait(&turns->done, &turns->mutex, &until);
        pthread_mutex_unlock(&turns->mutex);
        if (late != 0)
                atomic_store(&turns->needed, 0);
}

Turn turns_next(const Turn *last, bool is_long, int64_t now_ns)
{
        int64_t saved_ns = last->saved_ns + last->ran_ns / 3 - last->given_ns;
        saved_ns = MIN(MAX(saved_ns, (int64_t)0), MOST_SAVED_NS);
        return (Turn){ .began_ns = now_ns, .is_long = is_long, .saved_ns = saved_ns };
}

void turns_give(Turns *turns, Turn *turn, int64_t now_ns)
{
        int64_t run_ns = now_ns - turn->began_ns;
        if (!turn->is_long && !turns_long(run_ns))
                return;
        turn->ran_ns = run_ns;
        if (turn->given_ns > run_ns / 3 + turn->saved_ns)
                return;
        if (atomic_load_explicit(&turns->needed, memory_order_relaxed) == 0) {
                if (now_ns - turn->looked_ns < LOOK_NS)
                        return;
                turn->looked_ns = now_ns;
                if (!loop_waits(turns))
                        return;
        }
        if (atomic_exchange(&turns->given, true))
                return;
        wait_until_done(turns, now_ns);
        atomic_store(&turns->given, false);
        turn->looked_ns = clock_ns();
        turn->given_ns += turn->looked_ns - now_ns;
}
