// SPDX-License-Identifier: Apache-2.0
// Ticket: how a request waits without holding a thread, whatever it waits for: a graph that is
// being decoded, a program that is being built. It waits for one thing at a time.
//
//            ticket_park                 ticket_settle
//     free ───────────────▶ parked ─────────────────────▶ settled ──ticket_take──▶ free
//       │                      │
//       └────ticket_cancel─────┴──▶ cancelled: parks nowhere until ticket_drop
//
// A desk is whatever tickets are parked at. It links parked tickets by `next`, as it likes, under a
// lock of its own. When what they wait for is there, or has failed, it settles them and returns
// them to whoever published, who wakes their owners. A desk lives longer than all tickets.
#pragma once
#include <stdatomic.h>
#include "core/base/memory.h"
#include "core/base/status.h"

typedef struct Ticket Ticket;
typedef struct TicketDesk TicketDesk;
struct TicketDesk {
        // Under the desk's lock: when the ticket is parked here (ticket_is_at), unlinks it, calls
        // ticket_leave and returns true. May be called by any thread.
        bool (*cancel)(TicketDesk *desk, Ticket *ticket);
        void (*unref)(void *object); // of what tickets wait for
};

// Embedded in whatever waits; zeroed before its first use.
struct Ticket {
        Ticket *next;               // in the desk's list, then in that of the tickets to wake
        void *place;                // while parked: where, for the desk
        _Atomic(TicketDesk *) desk; // NULL: not parked
        bool is_settled;
        void *object;          // settled: counted, or NULL
        void (*unref)(void *); // of `object`
        Status status;         // why there is no object
        Failure *failure;      // heap copy; NULL when memory was out
};

// ---- for whoever waits ----
// Takes the ticket back, for good: it will not be parked again. True: it was parked, and nobody
// will wake its owner. False: it is not parked, or its owner is about to be woken. Any thread.
bool ticket_cancel(Ticket *ticket);
// After the owner was woken: the object, whose reference is the caller's from then on, or the
// failure, which becomes this thread's. The ticket is free then.
Status ticket_take(Ticket *ticket, void **out_object);
// Lets go of what a ticket that is not parked holds; it is as new then.
void ticket_drop(Ticket *ticket);

// ---- for desks, under their lock ----
// Before the ticket is linked. STATUS_CANCELLED: it was taken back already.
Status ticket_park(Ticket *ticket, TicketDesk *desk, void *place);
bool ticket_is_at(const Ticket *ticket, const TicketDesk *desk);
void ticket_leave(Ticket *ticket); // after it was unlinked for ticket_cancel
// After it was unlinked: gives it `object` (takes a reference) or, when that is NULL, a copy of
// `failure`: the thread that is woken is not the one that failed.
void ticket_settle(Ticket *ticket, void *take_object, const Failure *failure);
