// SPDX-License-Identifier: Apache-2.0
// `desk` is the only field that two threads look at without a lock. Whoever parks, settles or takes
// back a ticket holds the lock of the desk that it is parked at; a ticket that is not parked
// belongs to its owner, and ticket_cancel may only mark it.
#include "core/base/ticket.h"
#include <stdlib.h>

// Where cancelled tickets are.
static bool never(TicketDesk *desk, Ticket *ticket)
{
        (void)desk;
        (void)ticket;
        return false;
}

static TicketDesk cancelled = { .cancel = never };

bool ticket_cancel(Ticket *ticket)
{
        TicketDesk *desk = NULL;
        while (!atomic_compare_exchange_strong(&ticket->desk, &desk, &cancelled)) {
                if (desk == &cancelled)
                        return false;
                if (desk->cancel(desk, ticket))
                        return true;
                desk = NULL; // it was settled meanwhile
        }
        return false;
}

Status ticket_take(Ticket *ticket, void **out_object)
{
        Status status = STATUS_OK;
        if (ticket->object != NULL)
                *out_object = take_ptr(ticket->object);
        else if (ticket->failure == NULL)
                status = fail_memory();
        else {
                status = ticket->status;
                *failure_current() = *ticket->failure;
        }
        free(take_ptr(ticket->failure));
        ticket->is_settled = false;
        return status;
}

void ticket_drop(Ticket *ticket)
{
        if (ticket->object != NULL)
                ticket->unref(ticket->object);
        free(ticket->failure);
        *ticket = (Ticket){ .next = NULL };
}

Status ticket_park(Ticket *ticket, TicketDesk *desk, void *place)
{
        TicketDesk *none = NULL;
        ticket->place = place;
        if (!atomic_compare_exchange_strong(&ticket->desk, &none, desk))
                return fail(STATUS_CANCELLED, "the request was cancelled");
        return STATUS_OK;
}

bool ticket_is_at(const Ticket *ticket, const TicketDesk *desk)
{
        return atomic_load(&ticket->desk) == desk;
}

void ticket_leave(Ticket *ticket)
{
        ticket->next = NULL;
        ticket->place = NULL;
        atomic_store(&ticket->desk, &cancelled);
}

void ticket_settle(Ticket *ticket, void *take_object, const Failure *failure)
{
        ticket->place = NULL;
        ticket->is_settled = true;
        ticket->object = take_object;
        if (take_object != NULL) {
                ticket->unref = atomic_load(&ticket->desk)->unref;
        } else {
                ticket->status = failure->status == STATUS_OK ? STATUS_INTERNAL : failure->status;
                ticket->failure = malloc(sizeof(*ticket->failure));
                if (ticket->failure != NULL)
                        *ticket->failure = *failure;
        }
        atomic_store(&ticket->desk, NULL);
}
