// SPDX-License-Identifier: Apache-2.0
// The driver loop. A step returns what comes next; failures become the reply in one place. Time
// spent in each step is kept for Server-Timing, logs and the profile.
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/batch.h"
#include "server/job_private.h"

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
        Job *job = malloc(sizeof(*job));
        if (job == NULL)
                return fail_memory();
        memset(job, 0, offsetof(Job, reply.headers));
        run_call_init(&job->run);
        job->workers = workers;
        job->task = (Task){ .run = run_job, .drop = drop_task, .is_request = true };
        *out_job = job;
        return STATUS_OK;
}

const char *job_graph_name(const Job *job)
{
        if (job->call.name[0] != '\0' || !route_has(job->call.route, NEEDS_SESSION))
                return job->call.name;
        return atomic_load(&job->found_graph) && job->version != NULL ? job->version->name : "";
}

Status job_stand_in(const Job *job, Job **out_job)
{
        Job *other = NULL;
        TRY(job_new(job->workers, &other));
        other->call.route = job->call.route;
        memcpy(other->call.request_id, job->call.request_id, sizeof(other->call.request_id));
        copy_cut(other->call.name, sizeof(other->call.name), job_graph_name(job));
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

bool job_answer_late(Job *job, int64_t deadline_ns)
{
        return atomic_compare_exchange_strong(&job->deadline_ns, &deadline_ns, DEADLINE_ANSWERED);
}

bool job_never_late(Job *job)
{
        int64_t deadline_ns = atomic_load(&job->deadline_ns);
        while (deadline_ns != DEADLINE_ANSWERED)
                if (atomic_compare_exchange_weak(&job->deadline_ns, &deadline_ns, 0))
                        return true;
        return false;
}

int64_t job_deadline(const Job *job)
{
        int64_t deadline_ns = atomic_load(&job->deadline_ns), ms = 0;
        if (deadline_ns == 0 || param_text(&job->call, PARAM_DEADLINE_MS) == NULL ||
            param_int(&job->call, PARAM_DEADLINE_MS, &ms) != STATUS_OK)
                return deadline_ns;
        return MIN(deadline_ns, job->received_ns + ms * 1000000);
}

static Status too_late(const Job *job)
{
        double seconds = (double)workers_wait_ns(job->workers, &job->task) / 1e9;
        fail(STATUS_BUSY,
             "runs of this graph wait already: this one would end after about %.3g s, which is after its "
             "deadline; try again",
             seconds);
        char members[64];
        int n = snprintf(members, sizeof(members), RETRY_AFTER_MEMBER "%.0f", seconds + 0.5);
        return failure_members(STATUS_BUSY, members, (size_t)n);
}

// Its place in the queue, by what the request says or else its graph. A body that was not read yet
// says nothing, but its query does.
static void settle_place(Job *job)
{
        Task *task = &job->task;
        int64_t level = job->run.priority;
        BatchPolicy policy = { .max_size = 0 };
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        task->n_bytes = job->call.body == NULL ? 0 : job->call.body->n_bytes;
        task->kind = job_kind(job);
        task->deadline_ns = job_deadline(job);
        if (job->call.quota != NULL) {
                task->n_waiting = &job->call.quota->n_queued;
                task->most_waiting = atomic_load(&job->call.quota->most[QUOTA_QUEUE]);
        }
        if (!job->is_run)
                return;
        if (job->version != NULL)
                version = graph_version_ref(job->version);
        else if (route_has(job->call.route, NEEDS_VERSION) && !route_has(job->call.route, NEEDS_SESSION))
                (void)api_find_version(job->context.engine, &job->call, &version);
        if (version != NULL)
                policy = batch_policy(version);
        if (level == 0 && param_text(&job->call, PARAM_PRIORITY) != NULL)
                (void)param_int(&job->call, PARAM_PRIORITY, &level);
        task->level = (uint8_t)(level == 0 ? policy.priority : level);
        if (policy.max_delay_us == 0 || atomic_load(&version->unbatched) || job->run.session != NULL)
                return;
        // half of what is left until the deadline is for the run itself
        int64_t now_ns = clock_ns();
        task->hold_ns = now_ns + MIN(policy.max_delay_us * 1000, (task->deadline_ns - now_ns) / 2);
        task->hold_for = batch_policy_enough(&policy);
}

Status job_submit(Job *job)
{
        settle_place(job);
        switch (workers_submit(job->workers, &job->task)) {
        case SUBMITTED:
                return STATUS_OK;
        case QUEUE_BYTES_FULL:
                return fail(STATUS_BUSY,
                            "requests that wait for a worker already hold close to %lld bytes "
                            "(--max-queue-bytes); try again",
                            (long long)limits.max_queue_bytes);
        case KIND_FULL:
                return fail(STATUS_BUSY,
                            "%lld requests for this graph wait for a worker already "
                            "(--max-queue-per-graph); try again",
                            (long long)limits.max_queue_per_graph);
        case TOO_LATE:
                return too_late(job);
        case SHARE_FULL:
                return quota_refuse(job->call.quota, QUOTA_QUEUE,
                                    fail(STATUS_BUSY,
                                         "%lld requests of this token wait for a worker already (queue=%lld "
                                         "in the token file); try again",
                                         (long long)job->task.most_waiting,
                                         (long long)job->task.most_waiting));
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
        if (job->call.quota != NULL)
                quota_leave(job->call.quota);
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

static JobStep step_after(const Job *job)
{
        if (job->step == STEP_GRAPH)
                return job->is_run ? STEP_INPUTS : STEP_ANSWER;
        if (job->step == STEP_ENCODE || job->step == STEP_ANSWER)
                return STEP_SEND;
        return (JobStep)(job->step + 1);
}

static void reply_with_failure(Job *job)
{
        if (job->is_run && job->version != NULL)
                profile_stats_add_failure(job->version->stats, clock_ns() - job->received_ns);
        reply_failure(&job->call, failure_current(), &job->reply);
        job->step = STEP_SEND;
}

// ---- the driver ----
bool job_advance(const Drive *drive, JobStep until)
{
        Job *job = drive->job;
        int64_t now = clock_ns();
        while (job->step != STEP_SEND && job->step != until) {
                Next next = NEXT_STEP;
                job->began_ns = now;
                Status status = run_poll(&job->run.task.ctx);
                if (status == STATUS_OK)
                        status = job_steps[job->step](drive, &next);
                if (next == NEXT_PARKED)
                        return false;
                int64_t end = clock_ns();
                job->step_ns[job->step] += end - now;
                now = end;
                if (next == NEXT_ON_WORKER) {
                        job->began_ns = 0;
                        return false;
                }
                if (status == STATUS_OK) {
                        job->step = next == NEXT_REPLIED ? STEP_SEND : step_after(job);
                        continue;
                }
                reply_with_failure(job);
        }
        if (job->step == STEP_SEND) {
                job_wake(run_leave(&job->run));
                job_add_timing(job);
        }
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

Drive job_begin(Task *task, Worker *worker)
{
        Job *job = job_of_task(task);
        Drive drive = { .job = job,
                        .worker = worker,
                        .frame = &worker->frame,
                        .n_threads = worker->n_threads,
                        .engine = job->context.engine,
                        .kind = task->kind };
        int64_t now = clock_ns();
        job->queue_ns += now - task->queued_ns;
        if (job->is_run)
                worker_begins_run(worker, &job->run.task.ctx, now);
        if (job->began_ns != 0) // parked in that step until it was queued again
                job->step_ns[job->step] += task->queued_ns - job->began_ns;
        return drive;
}

void job_end(const Drive *drive)
{
        Job *job = drive->job;
        if (!job_advance(drive, STEP_SEND))
                return;
        let_go(job);
        if (atomic_exchange(&job->last_word, WORD_DONE) == WORD_DETACHED)
                job_free(job);
        else
                job->finished(job);
}

static void run_job(Task *task, Worker *worker)
{
        Drive drive = job_begin(task, worker);
        if (!job_advance(&drive, STEP_RUN))
                return;
        if (drive.job->step == STEP_RUN)
                job_run_alike(&drive);
        else
                job_end(&drive);
}

bool job_try_here(Job *job, Frame *frame)
{
        Drive drive = { .job = job, .frame = frame, .n_threads = 1, .engine = job->context.engine };
        return job->is_run && !route_has(job->call.route, BRINGS_GRAPH) && run_is_bounded(&job->call) &&
               job_advance(&drive, STEP_SEND);
}
