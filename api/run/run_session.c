// SPDX-License-Identifier: Apache-2.0
// Runs in sessions: which one, waiting for it, what stays in it, and when a sequence ends.
//
// A sequence is a session that its client named: by the owner, the graph and an id. A start whose
// run fails leaves none; an end whose run fails leaves it as it was.
#include <stdio.h>
#include <string.h>
#include "api/run/run.h"

static bool is_of(const Session *session, const GraphVersion *version)
{
        const GraphVersion *of = session_version(session);
        return strcmp(of->name, version->name) == 0 && of->stored.version == version->stored.version &&
               memcmp(&of->key, &version->key, sizeof(of->key)) == 0;
}

Status run_take_session(RunCall *run, const char *id)
{
        const GraphVersion *version = run->task.version;
        _cleanup_(session_unrefp) Session *session = NULL;
        if (run->session != NULL && strcmp(session_id(run->session), id) != 0)
                return fail(STATUS_VALUE, "the path and the body name different sessions");
        if (run->session != NULL)
                return STATUS_OK;
        if (version == NULL)
                return fail(STATUS_VALUE, "a graph that comes along with the request has no sessions");
        TRY(sessions_find(engine_sessions(run->recipe.engine), id, run->call->caller, &session));
        const GraphVersion *of = session_version(session);
        if (!is_of(session, version))
                return fail(
                        STATUS_CONFLICT,
                        "the session is one of graph '%s' version %lld: POST /v1/sessions/%s/run runs that",
                        of->name, (long long)of->stored.version, id);
        run->session = take_ptr(session);
        return STATUS_OK;
}

Status run_enter(RunCall *run, Ticket *ticket, bool *out_entered)
{
        *out_entered = true;
        if (run->session == NULL || run->entered)
                return STATUS_OK;
        Status status = session_enter(run->session, ticket, out_entered);
        if (status == STATUS_NOT_FOUND && run->oip != NULL)
                return fail(STATUS_VALUE, "the sequence ended, or began again, while this request waited");
        if (status != STATUS_OK || !*out_entered)
                return status;
        run->entered = true;
        return run_task_enter(&run->task, run->session);
}

Status run_commit(RunCall *run)
{
        if (run->session == NULL)
                return STATUS_OK;
        TRY(run_task_commit(&run->task, run->session));
        run->committed = true;
        return STATUS_OK;
}

Ticket *run_leave(RunCall *run)
{
        run_end_sequence(run);
        if (!run->entered)
                return NULL;
        run_state_clear(&run->task.state);
        run->task.ctx.state = NULL;
        run->entered = false;
        return session_leave(run->session);
}

// ---- sequences: sessions that clients name themselves ----
static void unref_version(void *version)
{
        graph_version_unref(version);
}

static Status open_sequence(RunCall *run, SessionSubject *subject)
{
        const RunTask *task = &run->task;
        subject->graph = task->graph;
        subject->unref = unref_version;
        subject->version = graph_version_ref(task->version);
        snprintf(subject->owner, sizeof(subject->owner), "%s", run->call->caller);
        TRY(sessions_add(engine_sessions(run->recipe.engine), subject, &run->session));
        run->opened = true;
        return STATUS_OK;
}

Status run_take_sequence(RunCall *run, const char *id, bool starts, bool ends)
{
        const GraphVersion *version = run->task.version;
        _cleanup_(session_unrefp) Session *session = NULL;
        SessionSubject subject = { .graph = NULL };
        if (version == NULL)
                return fail(STATUS_VALUE, "a graph that comes along with the request has no sequences");
        // names of tokens and of graphs have no line ends
        snprintf(subject.sequence, sizeof(subject.sequence), "%s\n%s\n%s", run->call->caller, version->name,
                 id);
        run->ends = ends;
        if (starts)
                return open_sequence(run, &subject);
        Status status =
                sessions_find_sequence(engine_sessions(run->recipe.engine), subject.sequence, &session);
        if (status != STATUS_OK)
                return fail(STATUS_VALUE,
                            "no sequence %.40s of '%s' is under way: its first request needs "
                            "\"sequence_start\": true, and it may have ended (--session-idle-s)",
                            id + 1, version->name);
        const GraphVersion *of = session_version(session);
        if (!is_of(session, version))
                return fail(
                        STATUS_CONFLICT,
                        "sequence %.40s began with version %lld of '%s': name that version in the path, or "
                        "start again",
                        id + 1, (long long)of->stored.version, of->name);
        run->session = take_ptr(session);
        return STATUS_OK;
}

void run_end_sequence(RunCall *run)
{
        bool fails = run->opened && !run->committed, ends = run->ends && run->committed;
        if (run->session != NULL && (fails || ends))
                session_end(run->session);
}
