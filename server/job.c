// SPDX-License-Identifier: Apache-2.0
// The driver loop. A step returns what comes next; failures become the reply in one place. Time
// spent in each step is kept for Server-Timing, logs and the profile.
#include "server/job.h"
#include <stdio.h>
#include <string.h>
#include "api/formats/gzip.h"
#include "api/formats/inflate.h"
#include "api/run/codec.h"
#include "core/engine/describe.h"
#include "core/base/limits.h"

// PARKED: the job belongs to the thread that publishes its object or cancels it; it may not be
// touched. AWAY: it cannot continue on the loop thread.
typedef enum Next { NEXT_STEP, NEXT_PARKED, NEXT_AWAY } Next;

typedef struct Drive {
        Job *job;
        Worker *worker; // NULL: on the loop thread, so no disk, no compiling, nothing long
        Frame *frame;
        int n_threads;
        Engine *engine; // the job's, which may be another thread's by now
} Drive;

static void reply_with_failure(Job *job);

enum { WORD_NONE, WORD_DETACHED, WORD_DONE };

static void run_job(Task *task, Worker *worker);

static Job *job_of_task(Task *task)
{
        return (Job *)(void *)((char *)task - offsetof(Job, task));
}

// The pool ends only when no exchange is left: all remaining jobs are detached.
static void drop_task(Task *task)
{
        job_free(job_of_task(task));
}

Status job_new(Workers *workers, Job **out_job)
{
        Job *job = calloc(1, sizeof(*job));
        if (job == NULL)
                return fail_memory();
        run_call_init(&job->run);
        job->workers = workers;
        job->task = (Task){ .run = run_job, .drop = drop_task, .is_request = true };
        *out_job = job;
        return STATUS_OK;
}

Status job_stand_in(const Job *job, Job **out_job)
{
        Job *other = NULL;
        TRY(job_new(job->workers, &other));
        other->call.route = job->call.route;
        memcpy(other->call.request_id, job->call.request_id, sizeof(other->call.request_id));
        memcpy(other->call.name, job->call.name, sizeof(other->call.name));
        other->call.version = job->call.version;
        atomic_store(&other->found_graph, atomic_load(&job->found_graph));
        other->call.trace = job->call.trace;
        other->is_run = job->is_run;
        other->received_ns = job->received_ns;
        other->step = STEP_SEND;
        other->owner = job->owner;
        other->exchange = job->exchange;
        other->finished = job->finished;
        *out_job = other;
        return STATUS_OK;
}

Status job_submit(Job *job)
{
        job->task.n_bytes = job->call.body == NULL ? 0 : job->call.body->n_bytes;
        switch (workers_submit(job->workers, &job->task)) {
        case SUBMITTED:
                return STATUS_OK;
        case QUEUE_BYTES_FULL:
                return fail(STATUS_BUSY,
                            "requests that wait for a worker already hold close to %lld bytes "
                            "(--max-queue-bytes); try again",
                            (long long)limits.max_queue_bytes);
        default:
                return fail(STATUS_BUSY, "%lld requests wait for a worker already (--max-queue); try again",
                            (long long)limits.max_queue);
        }
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
        ticket_drop(&job->ticket); // woken, but cancelled before it took the object
        free(job);
        return NULL;
}

// ---- cancelling ----
// True: the job was only waiting, and belongs to this thread now. False: a worker has it, or is
// about to get it, and will see the flag.
static bool stop(Job *job)
{
        atomic_store(&job->run.task.ctx.cancelled, 1);
        return workers_withdraw(job->workers, &job->task) || ticket_cancel(&job->ticket);
}

void job_cancel(Job *job)
{
        if (!stop(job))
                return;
        fail(STATUS_CANCELLED, "the request was cancelled while it waited");
        reply_with_failure(job);
        job->finished(job);
}

void job_detach(Job *job)
{
        job->detached = true;
        job->exchange = NULL;
        if (stop(job))
                job_free(job);
        else
                // from here on it may be freed, unless the worker finished first: then job_reap
                // does it
                atomic_exchange(&job->last_word, WORD_DETACHED);
}

bool job_reap(Job *job)
{
        if (!job->detached)
                return false;
        job_free(job);
        return true;
}

// ---- what others wait for ----
static void wake(Ticket *tickets)
{
        while (tickets != NULL) {
                Job *waiter = (Job *)(void *)((char *)tickets - offsetof(Job, ticket));
                tickets = tickets->next;
                workers_resubmit(waiter->workers, &waiter->task);
        }
}

static void do_work(Worker *worker, Engine *engine, EngineWork *work)
{
        worker_stoppable(worker, engine_work_stop(engine_work_ref(work)));
        Ticket *tickets = engine_work_do(work);
        worker_stoppable(worker, NULL);
        engine_work_unref(work);
        wake(tickets);
        jobs_use_idle_time(worker->pool, engine);
}

typedef struct WorkTask {
        Task task;
        Engine *engine;
        EngineWork *work;
} WorkTask;

static void run_work(Task *task, Worker *worker)
{
        WorkTask it = *(WorkTask *)task;
        free(task);
        do_work(worker, it.engine, it.work);
}

static void drop_work(Task *task)
{
        wake(engine_work_drop(((WorkTask *)task)->work));
        free(task);
}

// Does the work here, or queues it. Without memory for a task it is done here.
static void see_to(const Drive *drive, const Wait *wait)
{
        WorkTask *task = wait->at_once ? NULL : calloc(1, sizeof(*task));
        if (task == NULL) {
                do_work(drive->worker, drive->engine, wait->work);
                return;
        }
        *task = (WorkTask){ .task = { .run = run_work, .drop = drop_work },
                            .engine = drive->engine,
                            .work = wait->work };
        workers_resubmit(drive->worker->pool, &task->task);
}

// ---- when nobody waits ----
typedef struct IdleTask {
        Task task;
        Engine *engine;
} IdleTask;

static void run_idle(Task *task, Worker *worker)
{
        Engine *engine = ((IdleTask *)task)->engine;
        free(task);
        EngineWork *work = engine_idle_work(engine, workers_width(worker->pool));
        if (work != NULL)
                do_work(worker, engine, work);
        else
                jobs_use_idle_time(worker->pool, engine);
}

static void drop_idle(Task *task)
{
        free(task);
}

void jobs_use_idle_time(Workers *workers, Engine *engine)
{
        int64_t due_ns;
        IdleTask *task = engine_has_idle_work(engine, &due_ns) ? calloc(1, sizeof(*task)) : NULL;
        if (task == NULL)
                return;
        *task = (IdleTask){ .task = { .run = run_idle, .drop = drop_idle, .is_idle = true, .due_ns = due_ns },
                            .engine = engine };
        if (workers_submit(workers, &task->task) != SUBMITTED) // one is already queued
                free(task);
}

// ---- the way of a run ----
// Which version's graph, or the graph itself.
static Status step_envelope(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        (void)next;
        if (route_has(job->call.route, BRINGS_GRAPH)) {
                // other jobs hold only the packed body while they wait for their graph
                TRY(call_inflate(&job->call));
                return run_take_graph(&job->context, &job->call, &job->run);
        }
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
        if (job->version == NULL || !route_has(job->call.route, NEEDS_GRAPH))
                return STATUS_OK;
        if (drive->worker == NULL) {
                job->graph = engine_cached_graph(drive->engine, &job->version->key);
                if (job->graph == NULL) { // it is looked up again: it may be deleted until then
                        job->version = graph_version_unref(job->version);
                        job->step = STEP_ENVELOPE;
                        *next = NEXT_AWAY;
                }
                return STATUS_OK;
        }
        TRY(engine_acquire(drive->engine, job->version, &job->ticket, &job->graph, &wait));
        *next = wait.parked ? NEXT_PARKED : NEXT_STEP;
        if (wait.work != NULL)
                see_to(drive, &wait);
        return STATUS_OK;
}

static Status step_graph(const Drive *drive, Next *next)
{
        Status status = wait_for_graph(drive, next);
        return status == STATUS_DAMAGED && route_has(drive->job->call.route, SHOWS_DAMAGE) ? STATUS_OK
                                                                                           : status;
}

static Status step_inputs(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        RunTask *task = &job->run.task;
        (void)next;
        if (task->graph == NULL)
                task->graph = graph_ref(job->graph);
        task->version = job->version == NULL ? NULL : graph_version_ref(job->version);
        task->received_ns = job->received_ns;
        TRY(call_inflate(&job->call));
        TRY(run_decode(&job->call, &job->run));
        job->call.body = storage_unref(job->call.body);
        task->ctx.deadline_ns = task->received_ns + task->deadline_ms * 1000000;
        int64_t known = atomic_load(&job->deadline_ns);
        if (known == 0 || task->ctx.deadline_ns < known)
                atomic_store(&job->deadline_ns, task->ctx.deadline_ns);
        return STATUS_OK;
}

static Status step_bind(const Drive *drive, Next *next)
{
        (void)next;
        return run_bind(&drive->job->run);
}

// Runs that are predicted to take longer, and larger replies, go to the workers. So do runs whose
// time depends on their values and cannot be predicted.
enum { INLINE_RUN_NS = 50000, INLINE_VALUES = 4096 };

static bool is_brief(const RunCall *run)
{
        const PlannedRun *plan = &run->task.plan;
        if (run->profile_in_reply && plan->graph->n_nodes > INLINE_VALUES)
                return false;
        int64_t ns = engine_predict_ns(plan);
        return ns >= 0 && ns <= INLINE_RUN_NS && engine_result_values(plan) <= INLINE_VALUES;
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
                *next = NEXT_AWAY;
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
                see_to(drive, &wait);
        if (wait.work != NULL && wait.at_once)
                engine_plan_ready(drive->engine, plan); // never parked: the job is still here
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
        Status pages = engine_check_pages(job->context.engine, graph);
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
               job->step_ns[STEP_BIND];
}

static Status step_encode(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        RunTask *task = &job->run.task;
        RunProfile *profile = task->profile;
        (void)next;
        snprintf(profile->id, sizeof(profile->id), "%s", job->call.request_id);
        profile->trace = job->call.trace;
        if (job->version != NULL) {
                memcpy(profile->graph_name, job->version->name, sizeof(job->version->name));
                profile->version = job->version->stored.version;
        }
        profile->decode_ns = decode_ns(job);
        profile->compile_ns = job->step_ns[STEP_PROGRAM];
        profile->queue_ns = job->queue_ns;
        // results may be weights themselves, so the pages are checked again
        TRY(check_pages(job, task->graph, run_encode(&job->run, &job->reply)));
        engine_record(drive->engine, job->version, profile);
        return drive->worker == NULL ? STATUS_OK : reply_gzip(&job->call, &task->ctx, &job->reply);
}

// For all routes but runs.
static Status step_answer(const Drive *drive, Next *next)
{
        Job *job = drive->job;
        (void)next;
        TRY(call_inflate(&job->call));
        api_answer(&job->context, &job->call, job->graph, job->version, &job->reply);
        jobs_use_idle_time(job->workers, drive->engine); // an upload may have brought some
        if (job->reply.status == 204)                    // deleted
                workers_give_back(job->workers);
        if (job->graph != NULL)
                TRY(check_pages(job, job->graph, STATUS_OK));
        return reply_gzip(&job->call, &job->run.task.ctx, &job->reply);
}

static Status (*const steps[STEP_SEND])(const Drive *drive, Next *next) = {
        [STEP_ENVELOPE] = step_envelope, // which graph
        [STEP_GRAPH] = step_graph,       // its ticket, unless it is decoded
        [STEP_INPUTS] = step_inputs,     // the codec reads the body into the task
        [STEP_BIND] = step_bind,         // against the signature; a missing input shows here
        [STEP_PROGRAM] = step_program,   // its ticket, unless it is built or the run goes eagerly
        [STEP_RUN] = step_run,           // the task has its result
        [STEP_ENCODE] = step_encode,     // the codec writes it into the reply
        [STEP_ANSWER] = step_answer,     // instead of all after STEP_GRAPH, for what is no run
};

static JobStep step_after(const Job *job)
{
        if (job->step == STEP_GRAPH)
                return job->is_run ? STEP_INPUTS : STEP_ANSWER;
        if (job->step == STEP_ENCODE || job->step == STEP_ANSWER)
                return STEP_SEND;
        return (JobStep)(job->step + 1);
}

// The codec decides what a run's failure looks like.
static void reply_with_failure(Job *job)
{
        void (*error)(const Failure *, const char *, ApiReply *) =
                job->is_run ? codec_of(&job->call)->error : reply_failure;
        error(failure_current(), job->call.request_id, &job->reply);
        job->step = STEP_SEND;
}

static void add_timing(Job *job)
{
        const int64_t *ns = job->step_ns;
        if (job->is_run)
                api_reply_header(
                        &job->reply, "Server-Timing",
                        "decode;dur=%.3f, queue;dur=%.3f, compile;dur=%.3f, run;dur=%.3f, encode;dur=%.3f",
                        (double)decode_ns(job) / 1e6, (double)job->queue_ns / 1e6,
                        (double)ns[STEP_PROGRAM] / 1e6, (double)ns[STEP_RUN] / 1e6,
                        (double)ns[STEP_ENCODE] / 1e6);
}

// ---- the driver ----
// Continues until the reply is there (true), or the job is parked or must leave the loop thread.
// Between steps it stops if it was cancelled.
static bool advance(const Drive *drive)
{
        Job *job = drive->job;
        int64_t now = clock_ns();
        while (job->step != STEP_SEND) {
                Next next = NEXT_STEP;
                job->began_ns = now;
                Status status = run_poll(&job->run.task.ctx);
                if (status == STATUS_OK)
                        status = steps[job->step](drive, &next);
                if (next == NEXT_PARKED)
                        return false;
                int64_t end = clock_ns();
                job->step_ns[job->step] += end - now;
                now = end;
                if (next == NEXT_AWAY) {
                        job->began_ns = 0;
                        return false;
                }
                if (status == STATUS_OK) {
                        job->step = step_after(job);
                        continue;
                }
                reply_with_failure(job);
        }
        add_timing(job);
        return true;
}

// Frees everything that the reply does not need. Large memory goes back to the kernel here and not
// on the loop thread, where others would wait; the last reference to a deleted graph may be among
// it.
static void let_go(Job *job)
{
        job->call.body = storage_unref(job->call.body);
        run_task_empty(&job->run.task);
        job->graph = graph_unref(job->graph);
}

static void run_job(Task *task, Worker *worker)
{
        Job *job = job_of_task(task);
        Drive drive = { .job = job,
                        .worker = worker,
                        .frame = &worker->frame,
                        .n_threads = worker->n_threads,
                        .engine = job->context.engine };
        int64_t now = clock_ns();
        job->queue_ns += now - task->queued_ns;
        if (job->is_run) {
                atomic_store_explicit(&worker->beat_ns, now, memory_order_relaxed);
                job->run.task.ctx.beat = &worker->beat_ns;
        }
        if (job->began_ns != 0) // parked in that step until it was queued again
                job->step_ns[job->step] += task->queued_ns - job->began_ns;
        if (!advance(&drive))
                return;
        let_go(job);
        if (atomic_exchange(&job->last_word, WORD_DONE) == WORD_DETACHED)
                job_free(job);
        else
                job->finished(job);
}

bool job_try_here(Job *job, Frame *frame)
{
        Drive drive = { .job = job, .frame = frame, .n_threads = 1, .engine = job->context.engine };
        return job->is_run && !route_has(job->call.route, BRINGS_GRAPH) && advance(&drive);
}
