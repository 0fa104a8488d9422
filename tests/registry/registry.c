// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include "core/registry/registry.h"

typedef struct Object {
        int n_references, n_bytes;
} Object;

static void ref(void *object)
{
        ((Object *)object)->n_references++;
}
static void unref(void *object)
{
        ((Object *)object)->n_references--;
}
static size_t bytes(const void *object)
{
        return (size_t)((const Object *)object)->n_bytes;
}

static const RegistryType type = { .ref = ref, .unref = unref, .bytes = bytes };
static const RegistryKey key_a = { { 1 } }, key_b = { { 2 } }, key_c = { { 3 } };

static Registry *open_registry(size_t max_bytes)
{
        Registry *registry = NULL;
        cr_assert_eq(registry_open(&type, max_bytes, &registry), STATUS_OK);
        return registry;
}

static Acquired acquire(Registry *registry, const RegistryKey *key, Ticket *ticket, void **object,
                        RegistryEntry **build)
{
        Acquisition got;
        cr_assert_eq(registry_acquire(registry, key, NULL, ticket, &got), STATUS_OK);
        *object = got.object;
        if (got.how == ACQUIRE_START)
                *build = got.build;
        return got.how;
}

Test(registry, the_first_caller_builds_and_later_ones_are_parked_and_served_by_its_publication)
{
        Registry *registry = open_registry(1000);
        Ticket first = { 0 }, second = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        Object made = { 1, 10 };
        cr_assert_eq(acquire(registry, &key_a, &first, &object, &build), ACQUIRE_START);
        cr_assert_eq(acquire(registry, &key_a, &second, &object, &build), ACQUIRE_PARKED);
        Ticket *woken = registry_publish(registry, build, &made);
        int n = 0;
        for (Ticket *ticket = woken; ticket != NULL; ticket = ticket->next, n++) {
                cr_assert_eq(ticket_take(ticket, &object), STATUS_OK);
                cr_assert_eq(object, &made);
        }
        cr_assert_eq(n, 2);
        cr_assert_eq(made.n_references, 3, "the table's and one for each ticket");
        cr_assert_eq(acquire(registry, &key_a, &first, &object, &build), ACQUIRE_READY);
        cr_assert_eq(object, &made);
        cr_assert_eq(made.n_references, 4);
        registry_close(registry);
        cr_assert_eq(made.n_references, 3);
}

Test(registry, a_failed_build_answers_all_its_waiters_and_is_tried_again_by_the_next_caller)
{
        Registry *registry = open_registry(1000);
        Ticket first = { 0 }, second = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        acquire(registry, &key_a, &first, &object, &build);
        acquire(registry, &key_a, &second, &object, &build);
        (void)fail(STATUS_DAMAGED, "flipped bit");
        registry_publish(registry, build, NULL);
        cr_assert_null(first.object);
        cr_assert_eq(first.status, STATUS_DAMAGED);
        cr_assert_str_eq(first.failure->message, "flipped bit");
        cr_assert_str_eq(second.failure->message, "flipped bit");
        free(first.failure);
        free(second.failure);
        cr_assert_eq(acquire(registry, &key_a, &first, &object, &build), ACQUIRE_START,
                     "a failure is not remembered");
        ticket_cancel(&first);
        registry_publish(registry, build, NULL);
        registry_close(registry);
}

Test(registry, a_cancelled_ticket_is_not_among_those_published)
{
        Registry *registry = open_registry(1000);
        Ticket first = { 0 }, second = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        Object made = { 1, 10 };
        acquire(registry, &key_a, &first, &object, &build);
        acquire(registry, &key_a, &second, &object, &build);
        cr_assert(ticket_cancel(&first));
        cr_assert_not(ticket_cancel(&first), "only once");
        Ticket *woken = registry_publish(registry, build, &made);
        cr_assert_eq(woken, &second);
        cr_assert_null(woken->next);
        cr_assert_not(ticket_cancel(&second), "published already");
        registry_close(registry);
}

// The loop thread takes a ticket back while a worker is about to park it.
Test(registry, a_ticket_that_was_taken_back_before_it_was_parked_waits_for_nothing)
{
        Registry *registry = open_registry(1000);
        Ticket ticket = { 0 }, other = { 0 };
        Acquisition got;
        void *object = NULL;
        RegistryEntry *build = NULL;
        Object made = { 1, 10 };
        cr_assert_not(ticket_cancel(&ticket), "it was not parked");
        cr_assert_eq(registry_acquire(registry, &key_a, NULL, &ticket, &got), STATUS_CANCELLED);
        cr_assert_not(registry_has(registry, &key_a), "nobody builds for it");
        cr_assert_eq(acquire(registry, &key_a, &other, &object, &build), ACQUIRE_START);
        cr_assert_eq(registry_acquire(registry, &key_a, NULL, &ticket, &got), STATUS_CANCELLED);
        cr_assert_eq(registry_publish(registry, build, &made), &other);
        cr_assert_null(other.next);
        ticket_drop(&other);
        ticket_drop(&ticket);
        cr_assert_eq(acquire(registry, &key_a, &ticket, &object, &build), ACQUIRE_READY);
        registry_close(registry);
}

Test(registry, one_ticket_waits_at_one_desk_after_the_other_and_is_taken_back_wherever_it_is)
{
        Registry *graphs = open_registry(1000), *programs = open_registry(1000);
        Ticket ticket = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        acquire(graphs, &key_a, &ticket, &object, &build);
        (void)fail(STATUS_IO, "no such file");
        cr_assert_eq(registry_publish(graphs, build, NULL), &ticket);
        cr_assert(ticket.is_settled);
        cr_assert_eq(ticket_take(&ticket, &object), STATUS_IO);
        cr_assert_str_eq(failure_current()->message, "no such file");
        cr_assert_not(ticket.is_settled);
        acquire(programs, &key_a, &ticket, &object, &build);
        cr_assert(ticket_cancel(&ticket));
        cr_assert_not(registry_has(programs, &key_a));
        cr_assert_null(registry_publish(programs, build, NULL));
        registry_close(graphs);
        registry_close(programs);
}

Test(registry, the_least_recently_used_objects_leave_when_the_byte_cap_is_passed)
{
        Registry *registry = open_registry(25);
        Object a = { 0, 10 }, b = { 0, 10 }, c = { 0, 10 };
        registry_put(registry, &key_a, &a);
        registry_put(registry, &key_b, &b);
        unref(registry_peek(registry, &key_a)); // a is now newer than b
        registry_put(registry, &key_c, &c);
        cr_assert_eq(a.n_references, 1);
        cr_assert_eq(b.n_references, 0);
        cr_assert_eq(c.n_references, 1);
        cr_assert_null(registry_peek(registry, &key_b));
        cr_assert_eq(registry_stats(registry).evictions, 1);
        cr_assert_eq(registry_stats(registry).bytes, 20);
        registry_close(registry);
}

Test(registry, an_object_larger_than_the_cap_stays_until_the_next_one_comes)
{
        Registry *registry = open_registry(5);
        Object a = { 0, 10 }, b = { 0, 1 };
        registry_put(registry, &key_a, &a);
        cr_assert_eq(a.n_references, 1);
        registry_put(registry, &key_b, &b);
        cr_assert_eq(a.n_references, 0);
        registry_close(registry);
}

Test(registry, dropping_a_key_during_its_build_still_serves_the_waiters)
{
        Registry *registry = open_registry(1000);
        Ticket ticket = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        Object made = { 1, 10 };
        acquire(registry, &key_a, &ticket, &object, &build);
        registry_drop(registry, &key_a);
        Ticket *woken = registry_publish(registry, build, &made);
        cr_assert_eq(woken, &ticket);
        cr_assert_eq(ticket.object, &made);
        cr_assert_eq(made.n_references, 1, "only the ticket's: the table let go");
        cr_assert_null(registry_peek(registry, &key_a));
        registry_close(registry);
}

Test(registry, an_object_takes_the_place_of_one_that_is_there_or_being_built)
{
        Registry *registry = open_registry(1000);
        Ticket ticket = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        Object made = { 1, 10 }, put = { 1, 20 }, last = { 1, 30 };
        acquire(registry, &key_a, &ticket, &object, &build);
        cr_assert_eq(registry_replace(registry, &key_a, &put), STATUS_OK);
        cr_assert_eq(registry_peek(registry, &key_a), &put, "before the build has ended");
        registry_publish(registry, build, &made);
        cr_assert_eq(ticket.object, &made, "the build still serves who waits");
        cr_assert_eq(registry_replace(registry, &key_a, &last), STATUS_OK);
        cr_assert_eq(registry_peek(registry, &key_a), &last);
        cr_assert_eq(registry_stats(registry).n_entries, 1);
        cr_assert_eq(registry_stats(registry).bytes, 30);
        cr_assert_eq(put.n_references, 2, "mine and that of the one who looked");
        registry_close(registry);
}

Test(registry, a_build_stops_when_the_last_caller_that_waits_for_it_has_left_and_the_next_caller_starts_anew)
{
        Registry *registry = open_registry(1000);
        Ticket first = { 0 }, second = { 0 }, third = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL, *again = NULL;
        _Atomic int stop = 0;
        acquire(registry, &key_a, &first, &object, &build);
        registry_watch(registry, build, &stop);
        acquire(registry, &key_a, &second, &object, &build);
        cr_assert(ticket_cancel(&first));
        cr_assert_eq(atomic_load(&stop), 0, "the one that came first is not the owner");
        cr_assert(ticket_cancel(&second));
        cr_assert_eq(atomic_load(&stop), 1);
        cr_assert_not(registry_has(registry, &key_a));
        cr_assert_eq(acquire(registry, &key_a, &third, &object, &again), ACQUIRE_START,
                     "nobody waits for what is stopping");
        (void)fail(STATUS_CANCELLED, "stopped");
        cr_assert_null(registry_publish(registry, build, NULL));
        Object made = { 1, 10 };
        cr_assert_eq(registry_publish(registry, again, &made), &third);
        cr_assert_eq(third.object, &made);
        registry_close(registry);
}

Test(registry,
     a_build_that_was_asked_for_without_waiting_goes_on_when_its_waiters_leave_but_not_when_it_is_dropped)
{
        Registry *registry = open_registry(1000);
        Ticket ticket = { 0 };
        Acquisition got;
        _Atomic int stop = 0;
        void *object = NULL;
        RegistryEntry *none = NULL;
        cr_assert_eq(registry_acquire(registry, &key_a, NULL, NULL, &got), STATUS_OK);
        cr_assert_eq(got.how, ACQUIRE_START);
        registry_watch(registry, got.build, &stop);
        cr_assert_eq(acquire(registry, &key_a, &ticket, &object, &none), ACQUIRE_PARKED);
        ticket_cancel(&ticket);
        cr_assert_eq(atomic_load(&stop), 0);
        registry_drop(registry, &key_a);
        cr_assert_eq(atomic_load(&stop), 1);
        Object made = { 1, 10 };
        cr_assert_null(registry_publish(registry, got.build, &made));
        cr_assert_eq(made.n_references, 0, "nobody wanted it");
        registry_close(registry);
}

Test(registry, a_dropped_build_with_waiters_is_finished_for_them)
{
        Registry *registry = open_registry(1000);
        Ticket ticket = { 0 };
        void *object = NULL;
        RegistryEntry *build = NULL;
        _Atomic int stop = 0;
        acquire(registry, &key_a, &ticket, &object, &build);
        registry_watch(registry, build, &stop);
        registry_drop_group(registry, &key_b);
        registry_drop(registry, &key_a);
        cr_assert_eq(atomic_load(&stop), 0);
        ticket_cancel(&ticket);
        cr_assert_eq(atomic_load(&stop), 1, "now nobody is left");
        registry_publish(registry, build, NULL);
        registry_close(registry);
}

Test(registry, what_nobody_used_for_a_while_leaves_when_that_is_asked_for)
{
        Registry *registry = open_registry(1000);
        Object a = { 1, 10 }, b = { 1, 20 };
        registry_put(registry, &key_a, &a);
        registry_put(registry, &key_b, &b);
        registry_age(registry);
        registry_drop_unused(registry);
        cr_assert_eq(registry_stats(registry).n_entries, 2, "used since the call before");
        unref(registry_peek(registry, &key_b));
        registry_age(registry);
        registry_drop_unused(registry);
        cr_assert_eq(a.n_references, 1);
        cr_assert(registry_is_ready(registry, &key_b));
        registry_age(registry);
        registry_drop_unused(registry);
        cr_assert_eq(b.n_references, 1);
        cr_assert_eq(registry_stats(registry).bytes, 0);
        registry_close(registry);
}

Test(registry, the_least_recently_used_of_a_group_leaves_when_the_group_is_full)
{
        static const RegistryType crowded = {
                .ref = ref, .unref = unref, .bytes = bytes, .max_per_group = 2
        };
        Registry *registry = NULL;
        Object a = { 0, 1 }, b = { 0, 1 }, c = { 0, 1 }, other = { 0, 1 };
        // the same bucket
        RegistryKey group = { { 7 } }, key_d = { { 4 } }, group_of_other = { { 7, 0, 0, 0, 1 } };
        void *found[8];
        cr_assert_eq(registry_open(&crowded, 1000, &registry), STATUS_OK);
        registry_put_in(registry, &key_d, &group_of_other, &other);
        registry_put_in(registry, &key_a, &group, &a);
        registry_put_in(registry, &key_b, &group, &b);
        unref(registry_peek(registry, &key_a));
        registry_put_in(registry, &key_c, &group, &c);
        cr_assert_eq(b.n_references, 0);
        cr_assert_eq(registry_group(registry, &group, 8, found), 2);
        cr_assert_eq(found[0], &c, "the most recently used first");
        cr_assert_eq(found[1], &a);
        unref(&a);
        unref(&c);
        registry_drop_group(registry, &group);
        cr_assert_eq(a.n_references + c.n_references, 0);
        cr_assert_eq(other.n_references, 1);
        registry_close(registry);
}
