// SPDX-License-Identifier: Apache-2.0
// The driver loop. A step returns what comes next; failures become the reply in one place. Time spent in each step is kept for
// Server-Timing, logs and the profile.
#include "server/job.h"
#include <stdio.h>
#include <string.h>

const char *const step_names[STEP_COUNT] = { "graph", "decode", "run", "encode", "answer", "send" };

typedef enum Next { NEXT_STEP, NEXT_PARKED } Next;

Status job_new(Job **out_job)
{
        Job *job = calloc(1, sizeof(*job));
        if (job == NULL)
                return fail_memory();
        run_call_init(&job->run);
        *out_job = job;
        return STATUS_OK;
}

Job *job_free(Job *job)
{
        if (job == NULL)
                return NULL;
        run_call_deinit(&job->run);
        api_call_deinit(&job->call);
        api_reply_deinit(&job->reply);
        graph_version_unref(job->version);
        graph_unref(job->graph);
        free(job->ticket.failure);
        free(job->counts);
        free(job);
        return NULL;
}

void job_cancel(Job *job)
{
        atomic_store(&job->run.ctx.cancelled, 1);
}

static Job *job_of(Ticket *ticket)
{
        return (Job *)(void *)((char *)ticket - offsetof(Job, ticket));
}

// The failure of somebody else's build becomes this thread's.
static Status ticket_take(Job *job)
{
        if (job->ticket.object != NULL) {
                job->graph = job->ticket.object;
                job->ticket.object = NULL;
                return STATUS_OK;
        }
        if (job->ticket.failure == NULL)
                return fail(STATUS_INTERNAL, "a graph could not be loaded");
        *failure_current() = *job->ticket.failure;
        free(job->ticket.failure);
        job->ticket.failure = NULL;
        return job->ticket.status;
}

// Loads the graph for everybody who waits for it, this job included.
static Status load(Job *job, RegistryEntry *build)
{
        Ticket *tickets = engine_load(job->context.engine, job->version, build);
        while (tickets != NULL) {
                Job *waiter = job_of(tickets);
                tickets = tickets->next;
                if (waiter != job)
                        waiter->requeue(waiter);
        }
        return ticket_take(job);
}

static Status step_graph(Job *job, Next *next)
{
        Acquired how;
        RegistryEntry *build;
        if (job->call.route == ROUTE_RUN_INLINE)
                return run_inline_graph(&job->context, &job->call, &job->run);
        if (!api_needs_version(job->call.route))
                return STATUS_OK;
        if (job->version == NULL) {
                TRY(engine_find(job->context.engine, job->call.name, job->call.version, &job->version));
                if (!api_needs_graph(job->call.route))
                        return STATUS_OK;
                TRY(engine_acquire(job->context.engine, job->version, &job->ticket, &how, &job->graph, &build));
                if (how == ACQUIRE_PARKED)
                        *next = NEXT_PARKED;
                else if (how == ACQUIRE_PARKED_START)
                        TRY(load(job, build));
        } else {
                TRY(ticket_take(job)); // woken
        }
        return STATUS_OK;
}

static Status step_decode(Job *job)
{
        RunCall *run = &job->run;
        if (run->graph == NULL)
                run->graph = graph_ref(job->graph);
        run->version = job->version == NULL ? NULL : graph_version_ref(job->version);
        TRY(run_options(&job->call, run));
        TRY(run_decode(&job->call, run));
        job->call.body = storage_unref(job->call.body);
        run->ctx.deadline_ns = job->received_ns + run->deadline_ms * 1000000;
        return STATUS_OK;
}

static Status step_encode(Job *job)
{
        RunProfile *profile = job->run.profile;
        snprintf(profile->id, sizeof(profile->id), "%s", job->call.request_id);
        if (job->version != NULL) {
                memcpy(profile->graph_name, job->version->name, sizeof(job->version->name));
                profile->version = job->version->stored.version;
        }
        profile->decode_ns = job->step_ns[STEP_DECODE];
        profile->compile_ns += job->step_ns[STEP_GRAPH];
        profile->queue_ns = job->queue_ns;
        TRY(run_encode(&job->run, job->received_ns, &job->reply));
        engine_record(job->context.engine, job->version, profile);
        return STATUS_OK;
}

static Status do_step(Job *job, Next *next)
{
        switch (job->step) {
        case STEP_GRAPH:
                return step_graph(job, next);
        case STEP_DECODE:
                return step_decode(job);
        case STEP_RUN:
                return run_execute(&job->run);
        case STEP_ENCODE:
                return step_encode(job);
        default:
                api_answer(&job->context, &job->call, job->graph, job->version, &job->reply);
                return STATUS_OK;
        }
}

static JobStep step_after(const Job *job)
{
        switch (job->step) {
        case STEP_GRAPH:
                return job->is_run ? STEP_DECODE : STEP_ANSWER;
        case STEP_DECODE:
                return STEP_RUN;
        case STEP_RUN:
                return STEP_ENCODE;
        default:
                return STEP_SEND;
        }
}

static void add_timing(Job *job)
{
        const int64_t *ns = job->step_ns;
        if (job->is_run)
                api_reply_header(&job->reply, "Server-Timing",
                                 "decode;dur=%.3f, queue;dur=%.3f, compile;dur=%.3f, run;dur=%.3f, encode;dur=%.3f",
                                 (double)ns[STEP_DECODE] / 1e6, (double)job->queue_ns / 1e6, (double)ns[STEP_GRAPH] / 1e6,
                                 (double)ns[STEP_RUN] / 1e6, (double)ns[STEP_ENCODE] / 1e6);
}

void job_advance(Job *job, Frame *frame)
{
        job->run.frame = frame;
        job->run.engine = job->context.engine;
        int64_t now = clock_ns();
        job->queue_ns += now - job->queued_ns;
        while (job->step != STEP_SEND) {
                Next next = NEXT_STEP;
                Status status = do_step(job, &next);
                if (next == NEXT_PARKED)
                        return; // whoever publishes has the job from here on
                int64_t end = clock_ns();
                job->step_ns[job->step] += end - now;
                now = end;
                if (status == STATUS_OK) {
                        job->step = step_after(job);
                        continue;
                }
                reply_failure(failure_current(), job->call.request_id, &job->reply);
                job->step = STEP_SEND;
        }
        add_timing(job);
        job->finished(job);
}
