// SPDX-License-Identifier: Apache-2.0
// job_batch.c: jobs that run together. A worker that is about to run a job looks for waiting jobs
// of the same kind and takes them to the same point. Those with the same program are run as one
// where that pays (core/engine/batch.h); then each goes its own way again. Nobody waits for a batch
// to fill: what has come while workers were busy is taken.
#include <string.h>
#include "core/engine/batch.h"
#include "server/job_private.h"

// A batch needs the memory of many runs. A worker keeps so much of it for the next one.
enum { BATCH_FRAME_BYTES = 4 << 20 };

enum { MOST = 1 << BATCH_SIZES };

uint64_t job_kind(const Job *job)
{
        if (!job->is_run)
                return KIND_OTHER;
        if (route_has(job->call.route, BRINGS_GRAPH))
                return KIND_INLINE;
        uint64_t hash = 1469598103934665603u ^ (uint64_t)job->call.version;
        for (const char *at = job->call.name; *at != '\0'; at++)
                hash = (hash ^ (uint8_t)*at) * 1099511628211u;
        return MAX(hash, (uint64_t)KIND_FIRST_GRAPH);
}

typedef struct Group {
        Drive drives[MOST];
        RunTask *tasks[MOST];
        int64_t since_ns[MOST]; // when it joined
        uint32_t n;
} Group;

static void add(Group *group, const Drive *drive)
{
        group->tasks[group->n] = &drive->job->run.task;
        group->since_ns[group->n] = clock_ns();
        group->drives[group->n++] = *drive;
}

// Those that turn out to be of another kind go on at once.
static void take_along(Group *group, const Drive *drive, uint32_t most)
{
        Task *tasks[MOST];
        Job *first = drive->job;
        uint32_t n = worker_take_alike(drive->worker, first->task.kind, most - 1, tasks);
        for (uint32_t i = 0; i < n; i++) {
                Drive other = job_begin(tasks[i], drive->worker);
                if (!job_advance(&other, STEP_RUN))
                        continue;
                if (other.job->step == STEP_RUN && batch_most(&other.job->run.task) > 1 &&
                    batch_alike(&other.job->run.task, &first->run.task))
                        add(group, &other);
                else
                        job_end(&other);
        }
        workers_ran(first->workers, n);
}

static void run_group(Group *group, const Drive *drive)
{
        Wait wait = { .parked = false };
        batch_run(drive->engine, group->tasks, group->n, drive->frame, &wait.work);
        frame_trim(drive->frame, BATCH_FRAME_BYTES);
        for (uint32_t i = 0; i < group->n; i++) {
                Job *job = group->drives[i].job;
                int64_t share_ns = job->run.task.ran ? job->run.task.profile->run_ns : 0;
                job->step_ns[STEP_RUN] += share_ns;
                // the rest went to the others
                job->queue_ns += clock_ns() - group->since_ns[i] - share_ns;
        }
        if (wait.work != NULL)
                job_see_to(drive, &wait);
}

void job_run_alike(const Drive *drive)
{
        const RunTask *task = &drive->job->run.task;
        uint32_t most = drive->job->task.kind < KIND_FIRST_GRAPH ? 1 : batch_most(task);
        if (task->version != NULL && task->plan.program != NULL &&
            atomic_load_explicit(&task->version->unbatched, memory_order_relaxed) != (most <= 1))
                atomic_store_explicit(&task->version->unbatched, most <= 1, memory_order_relaxed);
        if (most <= 1) {
                job_end(drive);
                return;
        }
        Group group;
        group.n = 0;
        add(&group, drive);
        take_along(&group, drive, most);
        if (group.n > 1)
                run_group(&group, drive);
        for (uint32_t i = 0; i < group.n; i++)
                job_end(&group.drives[i]);
}
