// SPDX-License-Identifier: Apache-2.0
// What jobs wait for, and what is done when nobody waits: tasks of the workers that do an engine's
// work and wake the jobs whose tickets come back.
#include "server/job_private.h"

// ---- what others wait for ----
void job_wake(Ticket *tickets)
{
        while (tickets != NULL) {
                Job *waiter = (Job *)(void *)((char *)tickets - offsetof(Job, ticket));
                tickets = tickets->next;
                workers_resubmit(waiter->workers, &waiter->task);
        }
}

static void do_work(Worker *worker, Engine *engine, EngineWork *work)
{
        if (engine_work_insists(work))
                worker_insists(worker);
        worker_stoppable(worker, engine_work_stop(engine_work_ref(work)));
        Ticket *tickets = engine_work_do(work);
        worker_stoppable(worker, NULL);
        engine_work_unref(work);
        job_wake(tickets);
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
        job_wake(engine_work_drop(((WorkTask *)task)->work));
        free(task);
}

// Does the work here, or queues it. Without memory for a task it is done here.
void job_see_to(const Drive *drive, const Wait *wait)
{
        WorkTask *task = wait->at_once ? NULL : calloc(1, sizeof(*task));
        if (task == NULL) {
                do_work(drive->worker, drive->engine, wait->work);
                return;
        }
        *task = (WorkTask){ .task = { .run = run_work, .drop = drop_work, .kind = drive->kind },
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
        int64_t due_ns, by_ns;
        IdleTask *task = engine_has_idle_work(engine, &due_ns, &by_ns) ? calloc(1, sizeof(*task)) : NULL;
        if (task == NULL)
                return;
        *task = (IdleTask){ .task = { .run = run_idle,
                                      .drop = drop_idle,
                                      .is_idle = true,
                                      .due_ns = due_ns,
                                      .by_ns = by_ns },
                            .engine = engine };
        if (workers_submit(workers, &task->task) != SUBMITTED) // one is already queued
                free(task);
}
