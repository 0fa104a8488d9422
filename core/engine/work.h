// SPDX-License-Identifier: Apache-2.0
// What some caller has to do so that others can go on: a graph to be decoded, a program to be
// built. Whoever asks first gets the work to do; all who ask, the first one too, may park a ticket
// (core/base/ticket.h) that comes back when it is done.
#pragma once
#include "core/base/ticket.h"

typedef struct Engine Engine;
typedef struct EngineWork EngineWork;

// What came of asking for something that may have to be made first.
typedef struct Wait {
        bool parked;      // the ticket was: from then on the asker may be another thread's
        EngineWork *work; // the caller's to see to, now or later, on whichever worker; NULL: none
        bool at_once;     // not worth a place in the queue
} Wait;

// Does it and publishes; returns the tickets to wake. Never fails: the failure travels in the
// tickets. Stops when nobody wants it any more.
Ticket *engine_work_do(EngineWork *take_work);
// The same without doing it: who waits gets STATUS_CANCELLED.
Ticket *engine_work_drop(EngineWork *take_work);
// What to set to 1 to make it stop; NULL: it does not. Whoever may do so while it is done has a
// reference of its own.
_Atomic int *engine_work_stop(EngineWork *work);
// Idle work that others have stopped often enough: only the server's end stops it.
bool engine_work_insists(const EngineWork *work);
EngineWork *engine_work_ref(EngineWork *work);
EngineWork *engine_work_unref(EngineWork *work);

// Work for when nobody waits: programs of graphs that came in with a closed signature, tuning of
// stored graphs. True: there is some; *out_due_ns (clock_ns(), may be past) says from when on, and
// *out_by_ns from when on others should wait for it (0: never).
bool engine_has_idle_work(Engine *engine, int64_t *out_due_ns, int64_t *out_by_ns);
// A piece of it, for runs that may use `n_threads`, one at a time; NULL: there was nothing to do.
// When it is stopped, it comes back later.
EngineWork *engine_idle_work(Engine *engine, int n_threads);
