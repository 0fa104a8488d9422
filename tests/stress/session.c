// SPDX-License-Identifier: Apache-2.0
// Many threads run in the same few sessions, wait for them, give up, look at them and remove them.
// Checked: one thread at a time is in a session, every parked ticket comes back once or was
// cancelled, and what is committed counts every commit.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/session/session.h"

enum { N_THREADS = 6, N_SESSIONS = 3 };

typedef struct Waiter {
        Ticket ticket;
        pthread_mutex_t mutex;
        pthread_cond_t woken;
        int n_wakes;
} Waiter;

static Sessions *sessions;
static Graph *graph;
static char ids[N_SESSIONS][SESSION_ID_CHARS + 1];
static _Atomic int inside[N_SESSIONS];
static _Atomic int64_t n_commits[N_SESSIONS];
static _Atomic long n_waits, n_cancels;
static int64_t end_ns;

static void complain(const char *what)
{
        fprintf(stderr, "stress_session: %s\n", what);
        abort();
}

static void wake_all(Ticket *tickets)
{
        while (tickets != NULL) {
                Waiter *waiter = (Waiter *)tickets;
                tickets = tickets->next;
                pthread_mutex_lock(&waiter->mutex);
                waiter->n_wakes++;
                pthread_cond_signal(&waiter->woken);
                pthread_mutex_unlock(&waiter->mutex);
        }
}

static void take(Waiter *waiter)
{
        void *session = NULL;
        pthread_mutex_lock(&waiter->mutex);
        while (waiter->n_wakes == 0)
                pthread_cond_wait(&waiter->woken, &waiter->mutex);
        if (waiter->n_wakes != 1)
                complain("a ticket came back twice");
        waiter->n_wakes = 0;
        pthread_mutex_unlock(&waiter->mutex);
        if (ticket_take(&waiter->ticket, &session) != STATUS_OK)
                complain("a ticket came back without its session");
        session_unref(session);
        ticket_drop(&waiter->ticket);
}

static int64_t count_in(Storage *storage)
{
        int64_t count = 0;
        if (storage != NULL)
                memcpy(&count, storage->data, sizeof(count));
        return count;
}

static void run(Session *session, int k)
{
        RunState state = { .n = 1, .now = session_now(session), .after = calloc(1, sizeof(Storage *)) };
        if (atomic_fetch_add(&inside[k], 1) != 0)
                complain("two runs in one session");
        int64_t count = count_in(state.now[0]) + 1;
        if (storage_new(sizeof(count), false, NULL, &state.after[0]) != STATUS_OK)
                complain("no memory");
        memcpy(state.after[0]->data, &count, sizeof(count));
        if (session_commit(session, &state, NULL) == STATUS_OK)
                atomic_fetch_add(&n_commits[k], 1);
        else
                complain("a commit failed");
        run_state_clear(&state);
        atomic_fetch_sub(&inside[k], 1);
        wake_all(session_leave(session));
}

static void look(Session *session)
{
        Storage *now = NULL;
        SessionFigures figures;
        session_look(session, &now, NULL, &figures);
        if (count_in(now) != (int64_t)figures.runs)
                complain("state and count of runs differ");
        storage_unref(now);
}

static void no_version(void *version)
{
        (void)version;
}

// Sequences begin, begin again and end meanwhile.
static void use_sequences(unsigned *seed)
{
        SessionSubject subject = { .graph = graph, .unref = no_version, .owner = "me" };
        _cleanup_(session_unrefp) Session *session = NULL;
        snprintf(subject.sequence, sizeof(subject.sequence), "s%d", rand_r(seed) % N_SESSIONS);
        if (rand_r(seed) % 2 == 0 && sessions_add(sessions, &subject, &session) != STATUS_OK)
                complain("a sequence does not begin");
        else if (session == NULL &&
                 sessions_find_sequence(sessions, subject.sequence, &session) == STATUS_OK &&
                 rand_r(seed) % 2 == 0)
                session_end(session);
}

static void *work(void *argument)
{
        unsigned seed = (unsigned)(uintptr_t)argument;
        Waiter waiter = { .n_wakes = 0 };
        pthread_mutex_init(&waiter.mutex, NULL);
        pthread_cond_init(&waiter.woken, NULL);
        while (clock_ns() < end_ns) {
                int k = rand_r(&seed) % N_SESSIONS;
                bool entered = false;
                Session *session;
                if (sessions_find(sessions, ids[k], "me", &session) != STATUS_OK)
                        complain("a session is gone");
                if (rand_r(&seed) % 8 == 0)
                        look(session);
                if (rand_r(&seed) % 8 == 0)
                        use_sequences(&seed);
                if (session_enter(session, &waiter.ticket, &entered) != STATUS_OK)
                        complain("entering failed");
                if (entered) {
                        run(session, k);
                } else if (rand_r(&seed) % 4 == 0 && ticket_cancel(&waiter.ticket)) {
                        atomic_fetch_add(&n_cancels, 1);
                        ticket_drop(&waiter.ticket);
                } else {
                        atomic_fetch_add(&n_waits, 1);
                        take(&waiter);
                }
                session_unref(session);
        }
        pthread_mutex_destroy(&waiter.mutex);
        pthread_cond_destroy(&waiter.woken);
        return NULL;
}

static Session *open_session(void)
{
        Session *session;
        SessionSubject subject = { .graph = graph, .unref = no_version, .owner = "me" };
        if (sessions_add(sessions, &subject, &session) != STATUS_OK)
                complain("a session does not open");
        return session;
}

static void open_all(void)
{
        Tensor *tensor;
        TensorMeta meta;
        State *state;
        meta_init(&meta, DTYPE_I64, 0, NULL);
        if (sessions_open(&sessions) != STATUS_OK || graph_new(GRAPH_FX_JSON, &graph) != STATUS_OK ||
            tensor_new(&meta, NULL, &tensor) != STATUS_OK ||
            graph_add_state(graph, "n", tensor, &state) != STATUS_OK)
                complain("no graph");
        for (int k = 0; k < N_SESSIONS; k++) {
                Session *session = open_session();
                memcpy(ids[k], session_id(session), sizeof(ids[k]));
                session_unref(session);
        }
}

// Those that were not used since then end, wherever they stand among the others.
static void check_expiry(void)
{
        int64_t idle_ns = limits.session_idle_s * 1000000000;
        uint64_t before = sessions_use(sessions).expired;
        Session *first = open_session(), *second = open_session(), *found = NULL;
        int64_t since_ns = clock_ns();
        while (clock_ns() <= since_ns) {
        }
        if (sessions_find(sessions, session_id(first), "me", &found) != STATUS_OK)
                complain("a session is gone");
        session_unref(found);
        sessions_expire(sessions, since_ns + idle_ns);
        if (sessions_find(sessions, session_id(first), "me", &found) != STATUS_OK ||
            sessions_find(sessions, session_id(second), "me", &found) != STATUS_NOT_FOUND)
                complain("another session ended than the idle one");
        session_unref(found);
        sessions_expire(sessions, clock_ns() + idle_ns + 1000000000);
        session_unref(first);
        session_unref(second);
        SessionUse use = sessions_use(sessions);
        if (use.n != 0 || use.bytes != 0 || use.expired < before + 2)
                complain("sessions remain");
}

// Alone again: what is there counts all commits; ended sessions take nothing more.
static void check_end(void)
{
        for (int k = 0; k < N_SESSIONS; k++) {
                Session *session, *stranger;
                Storage *now = NULL;
                SessionFigures figures;
                bool entered = true;
                if (sessions_find(sessions, ids[k], "me", &session) != STATUS_OK ||
                    sessions_find(sessions, ids[k], "you", &stranger) != STATUS_NOT_FOUND)
                        complain("a session is somebody else's");
                session_look(session, &now, NULL, &figures);
                if (count_in(now) != atomic_load(&n_commits[k]))
                        complain("a commit was lost");
                storage_unref(now);
                sessions_remove(sessions, session);
                if (session_enter(session, NULL, &entered) != STATUS_NOT_FOUND || entered)
                        complain("an ended session was entered");
                session_unref(session);
        }
        check_expiry();
}

int main(int argc, char **argv)
{
        pthread_t threads[N_THREADS];
        end_ns = clock_ns() + (argc > 1 ? atoll(argv[1]) : 2) * 1000000000;
        open_all();
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        check_end();
        sessions_close(sessions);
        graph_unref(graph);
        printf("stress_session: %ld commits in the first session, %ld waits, %ld cancels\n",
               (long)atomic_load(&n_commits[0]), atomic_load(&n_waits), atomic_load(&n_cancels));
        return 0;
}
