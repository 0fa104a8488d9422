// SPDX-License-Identifier: Apache-2.0
// Turns on cores that threads share. A thread that wakes up does not always get a core at once: if
// it had more than its share of late, the kernel leaves the core to the other thread until its next
// tick, which is up to 4 ms away. So threads that others wait for say that they need a core, and a
// thread with a long run gives way at its polls: from the beginning where such runs took long of
// late, else once it has taken long.
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum TurnOf {
        TURN_LOOP = 1,
        TURN_EXPRESS = 2,
} TurnOf;

typedef struct Turns {
        _Atomic unsigned needed; // by these TurnOf
        _Atomic int loop_fd;     // readable: the loop has something to do; -1: none
        _Atomic bool given;      // a thread gives way; one at a time
        pthread_mutex_t mutex;
        pthread_cond_t done; // `needed` became 0
} Turns;

// Of the run that may give way. Its thread's own.
typedef struct Turn {
        int64_t began_ns;  // the run
        bool is_long;      // runs like it took long of late: it gives way from its beginning
        int64_t ran_ns;    // until its last poll, if it may give way
        int64_t given_ns;  // how long it has given way
        int64_t saved_ns;  // how much longer it may, because runs before it gave less than a third
        int64_t looked_ns; // at loop_fd
} Turn;

// Whether runs that take so long give way.
bool turns_long(int64_t run_ns);
void turns_init(Turns *turns);
void turns_deinit(Turns *turns);
// `fd` (borrowed) is readable while the loop has something to do; -1: no longer.
void turns_watch_loop(Turns *turns, int fd);
// Any thread; may be said again. What does not come to turns_done within a moment is forgotten.
void turns_need(Turns *turns, TurnOf of);
void turns_done(Turns *turns, TurnOf of);
// The next run of a thread whose last one was `last`.
Turn turns_next(const Turn *last, bool is_long, int64_t now_ns);
// Waits while a core is needed: if the run has taken or will take long, for at most a third of its
// time and what was saved. Returns at once if nothing is needed.
void turns_give(Turns *turns, Turn *turn, int64_t now_ns);
