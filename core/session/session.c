// SPDX-License-Identifier: Apache-2.0
// session.c: one mutex for the tables, who is in which session, and the tickets that wait. It is
// held for look-ups and exchanges of pointers only. Sessions that nobody is in form a list, the one
// that was used longest ago first, so that ending idle ones looks at no other.
#include "core/session/session.h"
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/map.h"

struct Sessions {
        TicketDesk desk; // the first member: of all sessions
        pthread_mutex_t mutex;
        StringMap by_id;       // -> Session *, counted
        StringMap by_sequence; // -> Session * of those that have one; also in by_id
        Session *idlest, *busiest;
        size_t bytes;
        uint64_t opened, expired;
};

struct Session {
        RefCount ref;
        char id[SESSION_ID_CHARS + 1];
        SessionSubject subject; // its graph is counted
        Sessions *sessions;
        uint32_t n;
        Storage **now; // changed under the mutex, by whoever is in the session
        Generator generator;
        // under the mutex:
        bool entered, removed;
        Session *idler, *busier; // in the list, unless it is entered or removed
        Ticket *first, **last;   // waiting
        uint32_t n_waiting;
        int64_t used_ns;
        SessionFigures figures;
};

// ---- life ----
static Session *session_free(Session *session)
{
        for (uint32_t i = 0; i < session->n && session->now != NULL; i++)
                storage_unref(session->now[i]);
        free(session->now);
        graph_unref(session->subject.graph);
        session->subject.unref(session->subject.version);
        free(session);
        return NULL;
}

Session *session_ref(Session *session)
{
        refcount_get(&session->ref);
        return session;
}

Session *session_unref(Session *session)
{
        return session == NULL || !refcount_put(&session->ref) ? NULL : session_free(session);
}

static void unref_object(void *object)
{
        session_unref(object);
}

static bool cancel(TicketDesk *desk, Ticket *ticket)
{
        Sessions *sessions = (Sessions *)desk;
        pthread_mutex_lock(&sessions->mutex);
        bool there = ticket_is_at(ticket, desk);
        if (there) {
                Session *session = ticket->place;
                Ticket **at = &session->first;
                while (*at != ticket)
                        at = &(*at)->next;
                *at = ticket->next;
                if (session->last == &ticket->next)
                        session->last = at;
                session->n_waiting--;
                ticket_leave(ticket);
        }
        pthread_mutex_unlock(&sessions->mutex);
        return there;
}

Status sessions_open(Sessions **out_sessions)
{
        Sessions *sessions = calloc(1, sizeof(*sessions));
        if (sessions == NULL)
                return fail_memory();
        sessions->desk = (TicketDesk){ .cancel = cancel, .unref = unref_object };
        pthread_mutex_init(&sessions->mutex, NULL);
        *out_sessions = sessions;
        return STATUS_OK;
}

Sessions *sessions_close(Sessions *sessions)
{
        if (sessions == NULL)
                return NULL;
        for (uint32_t i = 0; i < sessions->by_id.n; i++)
                if (sessions->by_id.entries[i].key != NULL)
                        session_unref(sessions->by_id.entries[i].value);
        string_map_deinit(&sessions->by_id);
        string_map_deinit(&sessions->by_sequence);
        pthread_mutex_destroy(&sessions->mutex);
        free(sessions);
        return NULL;
}

static Status make_id(char out_id[SESSION_ID_CHARS + 1])
{
        static const char digits[] = "0123456789abcdef";
        uint8_t chance[SESSION_ID_CHARS / 2];
        if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
                return fail(STATUS_INTERNAL, "the system gives no random numbers");
        for (size_t i = 0; i < sizeof(chance); i++) {
                out_id[2 * i] = digits[chance[i] >> 4];
                out_id[2 * i + 1] = digits[chance[i] & 15];
        }
        out_id[SESSION_ID_CHARS] = '\0';
        return STATUS_OK;
}

// ---- the list and the tables, under the mutex ----
static void unlist(Session *session)
{
        Sessions *sessions = session->sessions;
        *(session->idler == NULL ? &sessions->idlest : &session->idler->busier) = session->busier;
        *(session->busier == NULL ? &sessions->busiest : &session->busier->idler) = session->idler;
        session->idler = session->busier = NULL;
}

static void list(Session *session)
{
        Sessions *sessions = session->sessions;
        session->used_ns = clock_ns();
        session->idler = sessions->busiest;
        *(session->idler == NULL ? &sessions->idlest : &session->idler->busier) = session;
        sessions->busiest = session;
}

static Session *use(Session *session)
{
        if (!session->entered) {
                unlist(session);
                list(session);
        }
        return session_ref(session);
}

// The table's reference is the caller's.
static void take_out(Sessions *sessions, Session *session)
{
        const char *sequence = session->subject.sequence;
        if (!session->entered)
                unlist(session);
        session->removed = true;
        sessions->bytes -= session->figures.bytes;
        string_map_remove(&sessions->by_id, session->id);
        if (string_map_get(&sessions->by_sequence, sequence) == session)
                string_map_remove(&sessions->by_sequence, sequence);
}

// *out_before: the caller's; the session that had this sequence, or NULL.
static Status insert(Sessions *sessions, Session *session, Session **out_before)
{
        const char *sequence = session->subject.sequence;
        Session *before = string_map_get(&sessions->by_sequence, sequence);
        uint32_t n = sessions->by_id.n_live - (before != NULL);
        if (n >= (uint32_t)limits.max_sessions)
                return fail(STATUS_BUSY,
                            "%lld sessions are open (--max-sessions); DELETE one, or wait until an idle one "
                            "ends (--session-idle-s)",
                            (long long)limits.max_sessions);
        TRY(string_map_reserve(&sessions->by_id));
        TRY(string_map_reserve(&sessions->by_sequence));
        if (before != NULL)
                take_out(sessions, before);
        *out_before = before;
        (void)string_map_set(&sessions->by_id, session->id, session, NULL);
        if (sequence[0] != '\0')
                (void)string_map_set(&sessions->by_sequence, sequence, session, NULL);
        list(session);
        sessions->opened++;
        return STATUS_OK;
}

Status sessions_add(Sessions *sessions, const SessionSubject *subject, Session **out_session)
{
        Session *session = calloc(1, sizeof(*session)), *before = NULL;
        if (session == NULL) {
                subject->unref(subject->version);
                return fail_memory();
        }
        refcount_init(&session->ref);
        session->subject = *subject;
        graph_ref(subject->graph);
        session->sessions = sessions;
        session->n = state_count(subject->graph);
        session->now = new_array(session->n, sizeof(*session->now));
        session->last = &session->first;
        generator_init(&session->generator);
        if (subject->seeded)
                generator_seed(&session->generator, subject->seed);
        Status status = session->now == NULL ? fail_memory() : make_id(session->id);
        if (status == STATUS_OK) {
                pthread_mutex_lock(&sessions->mutex);
                status = insert(sessions, session, &before);
                if (status == STATUS_OK)
                        session_ref(session);
                pthread_mutex_unlock(&sessions->mutex);
        }
        session_unref(before);
        if (status != STATUS_OK)
                session_unref(session);
        else
                *out_session = session;
        return status;
}

// ---- finding and removing ----
Status sessions_find(Sessions *sessions, const char *id, const char *owner, Session **out_session)
{
        pthread_mutex_lock(&sessions->mutex);
        Session *session = string_map_get(&sessions->by_id, id);
        if (session != NULL && strcmp(session->subject.owner, owner) != 0)
                session = NULL;
        if (session != NULL)
                use(session);
        pthread_mutex_unlock(&sessions->mutex);
        if (session == NULL)
                return fail(
                        STATUS_NOT_FOUND,
                        "there is no session '%.40s'; it may have ended (--session-idle-s), and belongs to "
                        "the token that opened it: POST /v1/graphs/NAME/sessions opens one",
                        id);
        *out_session = session;
        return STATUS_OK;
}

Status sessions_find_sequence(Sessions *sessions, const char *sequence, Session **out_session)
{
        pthread_mutex_lock(&sessions->mutex);
        Session *session = string_map_get(&sessions->by_sequence, sequence);
        if (session != NULL)
                use(session);
        pthread_mutex_unlock(&sessions->mutex);
        *out_session = session;
        return session != NULL ? STATUS_OK
                               : fail(STATUS_NOT_FOUND, "no such sequence is under way; it may have ended "
                                                        "(--session-idle-s)");
}

void sessions_remove(Sessions *sessions, Session *session)
{
        pthread_mutex_lock(&sessions->mutex);
        bool there = !session->removed;
        if (there)
                take_out(sessions, session);
        pthread_mutex_unlock(&sessions->mutex);
        if (there)
                session_unref(session);
}

void session_end(Session *session)
{
        sessions_remove(session->sessions, session);
}

static Session *take_idle(Sessions *sessions, int64_t before_ns)
{
        pthread_mutex_lock(&sessions->mutex);
        Session *idle = sessions->idlest;
        if (idle != NULL && idle->used_ns >= before_ns)
                idle = NULL;
        if (idle != NULL) {
                take_out(sessions, idle);
                sessions->expired++;
        }
        pthread_mutex_unlock(&sessions->mutex);
        return idle;
}

void sessions_expire(Sessions *sessions, int64_t now_ns)
{
        Session *idle;
        while ((idle = take_idle(sessions, now_ns - limits.session_idle_s * 1000000000)) != NULL)
                session_unref(idle);
}

SessionUse sessions_use(Sessions *sessions)
{
        pthread_mutex_lock(&sessions->mutex);
        SessionUse use = { .n = sessions->by_id.n_live,
                           .bytes = sessions->bytes,
                           .opened = sessions->opened,
                           .expired = sessions->expired };
        pthread_mutex_unlock(&sessions->mutex);
        return use;
}

// ---- what is there ----
const char *session_id(const Session *session)
{
        return session->id;
}

Graph *session_graph(const Session *session)
{
        return session->subject.graph;
}

void *session_version(const Session *session)
{
        return session->subject.version;
}

uint32_t session_n(const Session *session)
{
        return session->n;
}

Storage *const *session_now(const Session *session)
{
        return session->now;
}

const Generator *session_generator(const Session *session)
{
        return &session->generator;
}

void session_look(Session *session, Storage **out_now, Generator *out_generator, SessionFigures *out_figures)
{
        pthread_mutex_lock(&session->sessions->mutex);
        for (uint32_t i = 0; i < session->n && out_now != NULL; i++)
                out_now[i] = session->now[i] == NULL ? NULL : storage_ref(session->now[i]);
        if (out_generator != NULL)
                *out_generator = session->generator;
        *out_figures = session->figures;
        pthread_mutex_unlock(&session->sessions->mutex);
}

// ---- one at a time ----
static Status park(Session *session, Ticket *ticket)
{
        if (session->n_waiting >= (uint32_t)limits.max_session_queue)
                return fail(STATUS_BUSY,
                            "%lld runs of this session wait already (--max-session-queue); try again",
                            (long long)limits.max_session_queue);
        TRY(ticket_park(ticket, &session->sessions->desk, session));
        ticket->next = NULL;
        *session->last = ticket;
        session->last = &ticket->next;
        session->n_waiting++;
        return STATUS_OK;
}

Status session_enter(Session *session, Ticket *ticket, bool *out_entered)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&session->sessions->mutex);
        *out_entered = !session->removed && !session->entered;
        if (session->removed)
                status = fail(STATUS_NOT_FOUND, "the session '%s' has ended", session->id);
        else if (!session->entered) {
                unlist(session);
                session->entered = true;
        } else if (ticket != NULL)
                status = park(session, ticket);
        pthread_mutex_unlock(&session->sessions->mutex);
        return status;
}

Ticket *session_leave(Session *session)
{
        pthread_mutex_lock(&session->sessions->mutex);
        session->entered = false;
        if (!session->removed)
                list(session);
        Ticket *tickets = session->first;
        for (Ticket *at = tickets; at != NULL; at = at->next)
                ticket_settle(at, session_ref(session), NULL);
        session->first = NULL;
        session->last = &session->first;
        session->n_waiting = 0;
        pthread_mutex_unlock(&session->sessions->mutex);
        return tickets;
}

// Under the mutex. `all`: also where the state has nothing.
static Status exchange(Session *session, RunState *state, bool all)
{
        Sessions *sessions = session->sessions;
        size_t added = 0, dropped = 0;
        for (uint32_t i = 0; i < session->n; i++) {
                bool changes = all || state->after[i] != NULL;
                added += state->after[i] == NULL ? 0 : state->after[i]->n_bytes;
                dropped += !changes || session->now[i] == NULL ? 0 : session->now[i]->n_bytes;
        }
        if (session->removed)
                return fail(STATUS_NOT_FOUND, "the session '%s' has ended", session->id);
        if (added > dropped && sessions->bytes + (added - dropped) > (size_t)limits.max_session_bytes)
                return fail(STATUS_TOO_LARGE,
                            "the state of all sessions would take more than %lld bytes "
                            "(--max-session-bytes, FXSERVE_MAX_SESSION_BYTES)",
                            (long long)limits.max_session_bytes);
        sessions->bytes += added - dropped;
        session->figures.bytes += added - dropped;
        for (uint32_t i = 0; i < session->n; i++) {
                Storage *before = session->now[i];
                if (!all && state->after[i] == NULL)
                        continue;
                session->now[i] = state->after[i];
                state->after[i] = before;
        }
        return STATUS_OK;
}

// The bytes outlive the budget of the run that made them.
static Status check_left(const Session *session, const RunState *state)
{
        if (state->n != session->n)
                return fail(STATUS_INTERNAL, "the state of another graph");
        for (uint32_t i = 0; i < state->n; i++)
                if (state->after[i] != NULL)
                        (void)storage_charge(state->after[i], NULL);
        return STATUS_OK;
}

Status session_commit(Session *session, RunState *state, const Generator *generator)
{
        TRY(check_left(session, state));
        pthread_mutex_lock(&session->sessions->mutex);
        Status status = exchange(session, state, false);
        if (status == STATUS_OK) {
                session->figures.runs++;
                if (generator != NULL)
                        session->generator = *generator;
        }
        pthread_mutex_unlock(&session->sessions->mutex);
        return status;
}

Status session_restore(Session *session, RunState *state, const Generator *generator)
{
        TRY(check_left(session, state));
        pthread_mutex_lock(&session->sessions->mutex);
        Status status = session->entered
                                ? fail(STATUS_BUSY, "a run of this session is going on; try again after it")
                                : exchange(session, state, true);
        if (status == STATUS_OK)
                session->generator = *generator;
        pthread_mutex_unlock(&session->sessions->mutex);
        return status;
}
