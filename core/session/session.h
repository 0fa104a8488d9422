// SPDX-License-Identifier: Apache-2.0
// Sessions: state that lives on from one run to the next. A session belongs to one version of a
// graph, whose decoded graph it holds, and has a storage for each entry of the state that a run has
// written; all others are the graph's own. Its runs go one after the other: a run that finds it
// entered parks a ticket. Storages are replaced, never written to, so that whoever has taken
// references may read them at any time.
//
// Any thread. Bounded by limits.max_sessions, max_session_bytes, max_session_queue, session_idle_s.
#pragma once
#include "core/base/ticket.h"
#include "core/eval/state.h"
#include "core/kernels/random/generator.h"

typedef struct Sessions Sessions;
typedef struct Session Session;
enum { SESSION_ID_CHARS = 32, SESSION_OWNER_MAX = 64, SESSION_SEQUENCE_MAX = 320 };

Status sessions_open(Sessions **out_sessions);
Sessions *sessions_close(Sessions *sessions); // NULL-safe; no session is in use

// `version` is counted by the caller for the session, which gives it to `unref`.
typedef struct SessionSubject {
        Graph *graph; // the session counts it
        void *version;
        void (*unref)(void *version);
        uint64_t seed;
        bool seeded; // its random numbers begin with `seed`; else with one of the system's
        char owner[SESSION_OWNER_MAX + 1]; // whose it is: the name of a token, "" without tokens
        // a name that the caller found for it, by which sessions_find_sequence finds it; "": none
        char sequence[SESSION_SEQUENCE_MAX + 1];
} SessionSubject;
// Takes subject->version, also on failure. An older session with the same `sequence` is removed.
// STATUS_BUSY: there are limits.max_sessions.
Status sessions_add(Sessions *sessions, const SessionSubject *subject, Session **out_session);
// Counted. STATUS_NOT_FOUND: there is none with this id, or it is somebody else's.
Status sessions_find(Sessions *sessions, const char *id, const char *owner, Session **out_session);
Status sessions_find_sequence(Sessions *sessions, const char *sequence, Session **out_session);
// Nobody finds it from now on. A run that is in it ends, and what it writes is dropped.
void sessions_remove(Sessions *sessions, Session *session);
void session_end(Session *session); // the same
// Removes those that nobody used for limits.session_idle_s.
void sessions_expire(Sessions *sessions, int64_t now_ns);
typedef struct SessionUse {
        uint32_t n;
        size_t bytes;
        uint64_t opened, expired;
} SessionUse;
SessionUse sessions_use(Sessions *sessions);

Session *session_ref(Session *session);
Session *session_unref(Session *session); // NULL-safe, returns NULL
DEFINE_CLEANUP(Session, session_unref)
const char *session_id(const Session *session);
Graph *session_graph(const Session *session);  // borrowed
void *session_version(const Session *session); // borrowed
uint32_t session_n(const Session *session);    // state_count of the graph
// What is there now: `out_now` gets session_n storages, counted, or NULL where nothing was written.
// `out_generator` may be NULL.
typedef struct SessionFigures {
        uint64_t runs; // that succeeded
        size_t bytes;
} SessionFigures;
void session_look(Session *session, Storage **out_now, Generator *out_generator, SessionFigures *out_figures);

// ---- one at a time ----
// *out_entered: the caller is alone in the session until session_leave. Else the ticket is parked
// (`ticket` NULL: it is not), and comes back with the session, counted, when it is worth another
// try. STATUS_NOT_FOUND: it was removed. STATUS_BUSY: limits.max_session_queue tickets wait.
Status session_enter(Session *session, Ticket *ticket, bool *out_entered);
// The tickets that are to be woken, linked by `next`.
Ticket *session_leave(Session *session);
// Whoever has entered it may read these until it leaves.
Storage *const *session_now(const Session *session);
const Generator *session_generator(const Session *session);
// All that a run left takes its place; `state->after` has what was there before. `generator` may be
// NULL. Or nothing changes: STATUS_TOO_LARGE, all sessions would hold more than
// limits.max_session_bytes; STATUS_NOT_FOUND, it was removed.
// The same for what a snapshot holds: entries without one are the graph's own again. Outside of the
// session; STATUS_BUSY: a run is in it.
Status session_restore(Session *session, RunState *state, const Generator *generator);
Status session_commit(Session *session, RunState *state, const Generator *generator);
