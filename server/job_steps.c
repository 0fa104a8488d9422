// SPDX-License-Identifier: Apache-2.0
// The steps of a job; the table at the end tells their order.
#include <string.h>
#include "api/formats/gzip.h"
#include "api/formats/inflate.h"
#include "core/engine/describe.h"
#include "core/base/limits.h"
#include "core/engine/batch.h"
#include "server/job_private.h"

static Status find_session(Job *job)
{
        Session *session = job->run.session;
        if (session == NULL)
                TRY(sessions_find(engine_sessions(job->context.engine), job->call.id, job->call.caller,
                                  &session));
        job->run.session = session;
        job->version = graph_version_ref(session_version(session));
        job->graph = graph_ref(session_graph(session));
        atomic_store(&job->found_graph, true);
        return STATUS_OK;
}

// Which version's graph, or the graph itself.
static Status step_envelope(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        (void)next;
        if (job->is_run) {
                job->run.task.received_ns = job->received_ns;
                job->run.task.ctx.deadline_ns = job_deadline(job);
        }
        if (route_has(job->call.route, BRINGS_GRAPH)) {
                // other jobs hold only the packed body while they wait for their graph
                TRY(call_inflate(&job->call));
                return run_take_graph(&job->context, &job->call, &job->run);
        }
        if (route_has(job->call.route, NEEDS_SESSION))
                return find_session(job);
        if (!route_has(job->call.route, NEEDS_VERSION))
                return STATUS_OK;
        TRY(api_find_version(drive->engine, &job->call, &job->version));
        atomic_store(&job->found_graph, true);
        return STATUS_OK;
}

static Status wait_for_graph(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        void *woken_with = NULL;
        Wait wait;
        if (job->ticket.is_settled) {
                TRY(ticket_take(&job->ticket, &woken_with));
                job->graph = woken_with;
                return STATUS_OK;
        }
        if (job->graph != NULL || job->version == NULL || !route_has(job->call.route, NEEDS_GRAPH))
                return STATUS_OK;
        if (drive->worker == NULL) {
                job->graph = engine_cached_graph(drive->engine, &job->version->key);
                if (job->graph == NULL) { // it is looked up again: it may be deleted until then
                        job->version = graph_version_unref(job->version);
                        job->step = STEP_ENVELOPE;
                        *next = NEXT_ON_WORKER;
                }
                return STATUS_OK;
        }
        TRY(engine_acquire(drive->engine, job->version, &job->ticket, &job->graph, &wait));
        *next = wait.parked ? NEXT_PARKED : NEXT_STEP;
        if (wait.work != NULL)
                job_see_to(drive, &wait);
        return STATUS_OK;
}

static Status step_graph(const Drive *drive, Next *next)
{
        Status status = wait_for_graph(drive, next);
        return status == STATUS_DAMAGED && route_has(drive->job->call.route, SHOWS_DAMAGE) ? STATUS_OK
                                                                                           : status;
}

static bool find_reply(Job *job)
{
        if (job->context.replies == NULL || route_has(job->call.route, NEEDS_SESSION))
                return false;
        job->has_reply_key = reply_cache_key(&job->call, job->version, &job->reply_key);
        if (!job->has_reply_key)
                return false;
        bool found = reply_cache_find(job->context.replies, &job->reply_key, &job->reply);
        if (found)
                profile_stats_add_kept(job->version->stats, clock_ns() - job->received_ns);
        return found;
}

// What the loop's thread takes upon itself for one run.
#ifdef __SANITIZE_THREAD__
enum { INLINE_RUN_NS = 1000000 }; // such a build is twenty times as slow
#else
enum { INLINE_RUN_NS = 50000 };
#endif

// Many inputs, or guards and ranges without end.
static bool is_long_to_bind(const Graph *graph)
{
        int64_t ns = engine_bind_ns(graph);
        return ns < 0 || ns > INLINE_RUN_NS;
}

static Status step_inputs(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        RunTask *task = &job->run.task;
        if (drive->worker == NULL && is_long_to_bind(job->graph)) {
                *next = NEXT_ON_WORKER;
                return STATUS_OK;
        }
        if (task->graph == NULL)
                task->graph = graph_ref(job->graph);
        task->version = job->version == NULL ? NULL : graph_version_ref(job->version);
        TRY(call_inflate(&job->call));
        if (find_reply(job)) {
                *next = NEXT_REPLIED;
                return STATUS_OK;
        }
        job->run.recipe.engine = drive->engine;
        job->run.recipe.caller = job->call.caller;
        TRY(run_decode(&job->call, &job->run));
        job->call.body = storage_unref(job->call.body);
        task->ctx.deadline_ns = task->received_ns + task->deadline_ms * 1000000;
        int64_t known = atomic_load(&job->deadline_ns);
        if (known == 0 || task->ctx.deadline_ns < known) // if the loop answers meanwhile: so be it
                atomic_compare_exchange_strong(&job->deadline_ns, &known, task->ctx.deadline_ns);
        return STATUS_OK;
}

// Decodes the graphs that the recipe calls, one after the other. *out_all: they are there.
static Status wait_for_called(const Drive *drive, Next *next, bool *out_all)
{
        Job *job = drive->job;
        GraphVersion *version;
        void *woken_with = NULL;
        if (job->ticket.is_settled) {
                TRY(ticket_take(&job->ticket, &woken_with));
                run_take_called(&job->run, woken_with);
        }
        *out_all = false;
        while ((version = run_next_called(&job->run)) != NULL) {
                Graph *graph = NULL;
                Wait wait;
                TRY(engine_acquire(drive->engine, version, &job->ticket, &graph, &wait));
                *next = wait.parked ? NEXT_PARKED : NEXT_STEP;
                if (wait.work != NULL)
                        job_see_to(drive, &wait);
                if (wait.parked)
                        return STATUS_OK;
                run_take_called(&job->run, graph);
        }
        *out_all = true;
        return STATUS_OK;
}

static Status step_derive(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        bool known = false, all = false;
        if (!run_has_recipe(&job->run))
                return STATUS_OK;
        if (!job->ticket.is_settled) {
                TRY(run_derive_known(&job->context, &job->run, &known));
                if (known)
                        return STATUS_OK;
        }
        if (drive->worker == NULL) {
                *next = NEXT_ON_WORKER;
                return STATUS_OK;
        }
        TRY(wait_for_called(drive, next, &all));
        return all ? run_derive(&job->context, &job->run) : STATUS_OK;
}

static Status step_bind(const Drive *drive, Next *next)
{
        RunCall *run = &drive->job->run;
        if (drive->worker == NULL && is_long_to_bind(run->task.graph)) {
                *next = NEXT_ON_WORKER;
                return STATUS_OK;
        }
        return run_bind(run);
}

// Runs that are predicted to take longer, and larger replies, go to the workers. So do runs whose
// time depends on their values and cannot be predicted.
enum { INLINE_VALUES = 4096 };

static bool is_brief(const RunCall *run)
{
        const PlannedRun *plan = &run->task.plan;
        if (run->profile_in_reply && plan->graph->n_nodes > INLINE_VALUES)
                return false;
        if (run->top > 0) // labels may have to be read from disk
                return false;
        if (run->task.version != NULL && batch_policy(run->task.version).max_delay_us > 0)
                return false; // it is to wait for others
        int64_t ns = engine_predict_ns(plan);
        return ns >= 0 && ns + engine_bind_ns(plan->graph) <= INLINE_RUN_NS &&
               engine_result_values(plan) <= INLINE_VALUES;
}

static Status step_program(const Drive *drive, Next *next)
{
        PlannedRun *plan = &drive->job->run.task.plan;
        Ticket *ticket = &drive->job->ticket;
        bool again = true;
        Wait wait;
        if (drive->worker == NULL) {
                if (engine_plan_ready(drive->engine, plan) && is_brief(&drive->job->run))
                        return STATUS_OK;
                engine_unplan(plan);
                *next = NEXT_ON_WORKER;
                return STATUS_OK;
        }
        if (ticket->is_settled)
                TRY(engine_planned(plan, ticket, &again));
        if (!again && plan->n_threads <= drive->n_threads)
                return STATUS_OK;
        engine_unplan(plan); // it may have been made for a wider worker
        plan->n_threads = engine_width(plan, drive->n_threads);
        TRY(engine_plan(drive->engine, plan, ticket, &wait));
        *next = wait.parked ? NEXT_PARKED : NEXT_STEP;
        if (wait.work != NULL)
                job_see_to(drive, &wait);
        if (wait.work != NULL && wait.at_once)
                engine_plan_ready(drive->engine, plan); // never parked: the job is still here
        return STATUS_OK;
}

static Status step_session(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        bool entered = false;
        void *woken_with = NULL;
        if (job->run.session == NULL)
                return STATUS_OK;
        if (job->ticket.is_settled) {
                TRY(ticket_take(&job->ticket, &woken_with));
                session_unref(woken_with);
        }
        TRY(run_enter(&job->run, drive->worker == NULL ? NULL : &job->ticket, &entered));
        if (!entered)
                *next = drive->worker == NULL ? NEXT_ON_WORKER : NEXT_PARKED;
        return STATUS_OK;
}

// Reads the reply's bytes in mapped files, here and not on the loop thread: unreadable pages are
// found before the reply is sent.
static void touch_pieces(const ApiReply *reply)
{
        enum { PAGE_BYTES = 4096 };
        for (uint32_t i = 0; i < reply->n_pieces; i++) {
                const volatile uint8_t *data = reply->pieces[i].data;
                size_t n = storage_is_mapped(reply->pieces[i].owner) ? reply->pieces[i].n : 0;
                for (size_t at = 0; at < n; at += PAGE_BYTES)
                        (void)data[at];
        }
}

// A result that was made from unreadable weights is not sent.
static Status check_pages(Job *job, const Graph *graph, Status status)
{
        touch_pieces(&job->reply);
        Status pages = graph == job->run.task.graph ? run_check_pages(&job->context, &job->run)
                                                    : engine_check_pages(job->context.engine, graph);
        if (pages == STATUS_OK)
                pages = engine_check_program(job->context.engine, &job->run.task.plan);
        if (pages == STATUS_OK)
                return status;
        api_reply_deinit(&job->reply);
        return pages;
}

static Status step_run(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        RunTask *task = &job->run.task;
        (void)next;
        task->ctx.n_threads = task->plan.n_threads;
        return check_pages(job, task->graph, run_execute(&job->run, drive->frame));
}

static int64_t decode_ns(const Job *job)
{
        return job->step_ns[STEP_ENVELOPE] + job->step_ns[STEP_GRAPH] + job->step_ns[STEP_INPUTS] +
               job->step_ns[STEP_DERIVE] + job->step_ns[STEP_BIND];
}

// What was not committed is not sent either. Nothing that can fail comes after it.
static Status commit(Job *job)
{
        Status status = job->run.session == NULL || job_never_late(job)
                                ? run_commit(&job->run)
                                : fail(STATUS_DEADLINE, "the run was answered by its deadline");
        if (status != STATUS_OK)
                api_reply_deinit(&job->reply);
        return status;
}

static Status step_encode(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        RunTask *task = &job->run.task;
        RunProfile *profile = task->profile;
        (void)next;
        copy_cut(profile->id, sizeof(profile->id), job->call.request_id);
        profile->trace = job->call.trace;
        if (job->version != NULL) {
                memcpy(profile->graph_name, job->version->name, sizeof(job->version->name));
                profile->version = job->version->stored.version;
                copy_cut(profile->content_id, sizeof(profile->content_id), job->version->stored.id.hex);
        }
        profile->decode_ns = decode_ns(job);
        profile->compile_ns = job->step_ns[STEP_PROGRAM];
        profile->queue_ns = job->queue_ns;
        // results may be weights themselves, so the pages are checked again
        TRY(check_pages(job, task->graph, run_encode(&job->run, &job->reply)));
        TRY(run_keep(&job->context, &job->run));
        if (drive->worker != NULL)
                TRY(reply_gzip(&job->call, &task->ctx, &job->reply));
        TRY(commit(job));
        engine_record(drive->engine, task->authored == NULL ? job->version : NULL, profile);
        if (job->has_reply_key)
                reply_cache_keep(job->context.replies, &job->reply_key, &job->run, &job->reply);
        return STATUS_OK;
}

// For all routes but runs.
static Status step_answer(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        (void)next;
        TRY(call_inflate(&job->call));
        job->context.ctx = &job->run.task.ctx;
        job->context.received_ns = job->received_ns;
        job->context.deadline_ns = job->received_ns + limits.run_deadline_ms * 1000000;
        api_answer(&job->context, &job->call, job->graph, job->version, &job->reply);
        jobs_use_idle_time(job->workers, drive->engine); // an upload may have brought some
        if (job->reply.status == 204)                    // deleted
                workers_give_back(job->workers);
        if (job->graph != NULL)
                TRY(check_pages(job, job->graph, STATUS_OK));
        return reply_gzip(&job->call, &job->run.task.ctx, &job->reply);
}

Status (*const job_steps[STEP_SEND])(const Drive *drive, Next *next) = {
        [STEP_ENVELOPE] = step_envelope, // which graph
        [STEP_GRAPH] = step_graph,       // its ticket, unless it is decoded
        [STEP_INPUTS] = step_inputs,     // the codec reads the body into the task
        [STEP_DERIVE] = step_derive,     // with rules: the graph that they make of it
        [STEP_BIND] = step_bind,         // against the signature; a missing input shows here
        [STEP_PROGRAM] = step_program,   // its ticket, unless it is built or the run goes eagerly
        [STEP_SESSION] = step_session,   // in a session: its ticket, while another run is in it
        [STEP_RUN] = step_run,           // the task has its result
        [STEP_ENCODE] = step_encode,     // the codec writes it into the reply
        [STEP_ANSWER] = step_answer,     // instead of all after STEP_GRAPH, for what is no run
};

// `name;dur=1.234`, in milliseconds; returns the end. printf() would take longer than a small run.
static char *add_duration(char *at, const char *name, int64_t ns)
{
        size_t n = strlen(name);
        char digits[24];
        int n_digits = 0;
        memcpy(at, name, n);
        memcpy(at + n, ";dur=", 5);
        at += n + 5;
        for (int64_t us = (MAX(ns, 0) + 500) / 1000; us > 0 || n_digits < 4; us /= 10)
                digits[n_digits++] = (char)('0' + us % 10);
        while (n_digits > 0) {
                *at++ = digits[--n_digits];
                if (n_digits == 3)
                        *at++ = '.';
        }
        *at = '\0';
        return at;
}

void job_add_timing(Job *job)
{
        const int64_t *ns = job->step_ns;
        if (!job->is_run || job->has_timing)
                return;
        job->has_timing = true;
        char *at = api_reply_header_room(&job->reply, "Server-Timing");
        if (at == NULL)
                return;
        at = add_duration(at, "decode", decode_ns(job));
        at = add_duration(at, ", queue", job->queue_ns);
        at = add_duration(at, ", compile", ns[STEP_PROGRAM]);
        at = add_duration(at, ", run", ns[STEP_RUN]);
        add_duration(at, ", encode", ns[STEP_ENCODE]);
}
