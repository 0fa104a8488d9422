// SPDX-License-Identifier: Apache-2.0
// Kinds of tasks by turns (fair.h), under one mutex. A task is run to its end or to where it parks;
// then the thread takes the next. One idle task may wait beside them, looked at when the queue is
// empty or the task is overdue. Threads with nothing to do sleep no longer than until it is due.
//
// Beside the workers there is one express thread. While all workers are busy with runs that take
// SHORT_PART times as long, a request runs on it at once instead of after one of them; the cores
// are shared for that moment. So a graph with long runs does not delay those with short ones. It
// sleeps no longer than until the hold of such a request ends.
//
// By itself the C library gives the end of its heap back as soon as a few hundred kilobytes there
// are free, so that every body, result and reply of that size is made of new pages, which the
// kernel has to find, clear and map: a third of a request with 600 kB. Here freed memory stays
// while requests follow each other, and the last thread that finds nothing to do gives it back. It
// wakes the others: only a thread itself can give back the end of its heap.
#include "server/workers.h"
#include <pthread.h>
#include "core/base/limits.h"
#include "server/fair.h"

enum {
        STACK_BYTES = 2 << 20,
        FRAME_KEPT_BYTES = 256 << 20,
        TRIMS_WANTED = 2, // the second one for what runs still held at the first
        SHORT_PART = 4,
};
static const int64_t QUIET_NS = 100000000, TRIM_EVERY_NS = 2000000000;

struct Workers {
        pthread_mutex_t mutex;
        pthread_cond_t filled, express; // what workers sleep on; what the express thread sleeps on
        FairQueue queue;
        Task *idle;                              // at most one waits
        int64_t n_queued, n_running, max_queued; // requests
        size_t queued_bytes;
        Turns turns;
        _Atomic int n_waiting;          // workers that have nothing to do
        bool express_waits;             // the express thread has nothing to do
        int64_t express_until_ns;       // before this, if nothing wakes it up; INT64_MAX: for ever
        uint64_t n_taken, n_taken_then; // tasks, now and when memory was given back last
        int64_t trimmed_ns;             // when that was
        int n_trims_wanted;             // workers_give_back
        uint64_t n_shrinks, n_trims;    // workers_shrink; how often memory was given back
        bool stopping, idle_running;
        _Atomic bool wakes_late;           // workers_wake_late
        _Atomic int n_owed;                // workers that were not woken up yet
        int64_t overdue_from_ns;           // no idle task goes before others until then
        int n_workers, n_threads, n_ended; // n_threads: with the express thread, which is the last
        pthread_t *threads;
        Worker workers[];
};

// ---- the queues, under the mutex ----
static void unlink_task(Workers *workers, Task *task)
{
        if (task->is_idle)
                workers->idle = NULL;
        else
                fair_remove(&workers->queue, task);
        task->is_queued = false;
        workers->queued_bytes -= task->n_bytes;
        workers->n_queued -= task->is_request;
        if (task->n_waiting != NULL)
                atomic_fetch_sub(task->n_waiting, 1);
}

static void stop_idle_task(Workers *workers)
{
        for (int i = 0; i < workers->n_threads; i++)
                if (workers->workers[i].is_idle_task && workers->workers[i].stop != NULL)
                        atomic_store(workers->workers[i].stop, 1);
}

// What a task of the express thread takes at most; 0: none is for it. Workers that run no request
// (a build) or one of a kind whose time is not known count as busy for long.
static int64_t express_ns(Workers *workers)
{
        int64_t least_ns = INT64_MAX;
        if (workers->n_waiting > 0 || workers->queue.n_queued == 0)
                return 0;
        for (int i = 0; i < workers->n_workers; i++) {
                int64_t mean_ns = fair_flow(&workers->queue, workers->workers[i].kind)->mean_ns;
                if (workers->workers[i].runs_request && mean_ns != 0)
                        least_ns = MIN(least_ns, mean_ns);
        }
        return least_ns / SHORT_PART;
}

// What there is for the express thread.
typedef struct Express {
        Task *task;     // NULL: none now
        int64_t due_ns; // then: when the first that is held may go; INT64_MAX: none is held
} Express;

static Express find_express(Workers *workers)
{
        int64_t most_ns = express_ns(workers);
        if (most_ns == 0)
                return (Express){ .due_ns = INT64_MAX };
        return (Express){ .task = fair_next_short(&workers->queue, most_ns, clock_ns()),
                          .due_ns = fair_due_short_ns(&workers->queue, most_ns) };
}

// With a task the express thread needs a core, before it wakes up.
static void wake_express(Workers *workers)
{
        if (!workers->express_waits)
                return;
        Express found = find_express(workers);
        if (found.task != NULL)
                turns_need(&workers->turns, TURN_EXPRESS);
        if (found.task != NULL || found.due_ns < workers->express_until_ns)
                pthread_cond_signal(&workers->express);
}

static void append_task(Workers *workers, Task *task)
{
        task->is_queued = true;
        task->queued_ns = clock_ns();
        if (task->is_idle)
                workers->idle = task;
        else
                fair_add(&workers->queue, task);
        workers->queued_bytes += task->n_bytes;
        workers->n_queued += task->is_request;
        if (task->n_waiting != NULL)
                atomic_fetch_add(task->n_waiting, 1);
        if (!task->is_idle && workers->n_waiting == 0 && workers->idle_running)
                stop_idle_task(workers);
        wake_express(workers);
}

// The mutex is free: a thread that wakes up while it is held sleeps at once again.
static void wake_one(Workers *workers, bool any_waits)
{
        if (any_waits)
                pthread_cond_signal(&workers->filled);
}

// A queue that is never empty does not keep it back for ever; those that wait get as much time
// between two of them as the first one took.
static bool is_overdue(const Workers *workers, const Task *idle)
{
        return idle != NULL && idle->by_ns != 0 && !workers->idle_running &&
               clock_ns() >= MAX(idle->by_ns, workers->overdue_from_ns);
}

static Task *next_task(Workers *workers)
{
        if (is_overdue(workers, workers->idle))
                return workers->idle;
        int64_t now_ns = workers->queue.n_held == 0 ? INT64_MAX : clock_ns();
        Task *idle = workers->idle, *task = fair_next(&workers->queue, now_ns);
        if (task != NULL)
                return task;
        return workers->idle_running || idle == NULL || idle->due_ns > clock_ns() ? NULL : idle;
}

// When memory should be given back, if nothing is taken until then; INT64_MAX: not by this thread,
// or nothing was freed.
static int64_t trim_due(const Workers *workers)
{
        if (workers->n_waiting < workers->n_workers || workers->n_taken == workers->n_taken_then)
                return INT64_MAX;
        return MAX(clock_ns() + QUIET_NS, workers->trimmed_ns + TRIM_EVERY_NS);
}

static void wake_all(Workers *workers)
{
        pthread_cond_broadcast(&workers->filled);
        pthread_cond_signal(&workers->express);
}

static void trim_memory(Workers *workers)
{
        workers->n_taken_then = workers->n_taken;
        workers->trimmed_ns = clock_ns();
        workers->n_trims++;
        wake_all(workers);
        pthread_mutex_unlock(&workers->mutex);
        memory_trim();
        pthread_mutex_lock(&workers->mutex);
}

void workers_give_back(Workers *workers)
{
        pthread_mutex_lock(&workers->mutex);
        workers->n_trims_wanted = TRIMS_WANTED;
        pthread_mutex_unlock(&workers->mutex);
}

void workers_shrink(Workers *workers)
{
        pthread_mutex_lock(&workers->mutex);
        workers->n_shrinks++;
        wake_all(workers);
        pthread_mutex_unlock(&workers->mutex);
}

static void shrink(Workers *workers, Worker *worker)
{
        worker->n_shrunk = workers->n_shrinks;
        pthread_mutex_unlock(&workers->mutex);
        frame_trim(&worker->frame, 0);
        pthread_mutex_lock(&workers->mutex);
}

static void trim_heap_end(Workers *workers, Worker *worker)
{
        worker->n_trimmed = workers->n_trims;
        pthread_mutex_unlock(&workers->mutex);
        memory_trim_heap_end();
        pthread_mutex_lock(&workers->mutex);
}

// Although requests go on: after much was freed at once. By whoever ends a task.
static void trim_if_wanted(Workers *workers)
{
        if (workers->n_trims_wanted == 0 || clock_ns() < workers->trimmed_ns + TRIM_EVERY_NS)
                return;
        workers->n_trims_wanted--;
        trim_memory(workers);
}

static void sleep_until(Workers *workers, pthread_cond_t *changed, int64_t until_ns)
{
        struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
        if (until_ns == INT64_MAX)
                pthread_cond_wait(changed, &workers->mutex);
        else
                pthread_cond_timedwait(changed, &workers->mutex, &until);
}

static void sleep_until_filled(Workers *workers)
{
        const Task *idle = workers->idle_running ? NULL : workers->idle;
        uint64_t n_taken = workers->n_taken;
        workers->n_waiting++;
        int64_t trim_ns = trim_due(workers), until_ns = MIN(trim_ns, fair_due_ns(&workers->queue));
        sleep_until(workers, &workers->filled, idle == NULL ? until_ns : MIN(until_ns, idle->due_ns));
        workers->n_waiting--;
        if (!workers->stopping && n_taken == workers->n_taken && clock_ns() >= trim_ns)
                trim_memory(workers);
}

static void sleep_until_express(Workers *workers, int64_t until_ns)
{
        workers->express_waits = true;
        workers->express_until_ns = until_ns;
        turns_done(&workers->turns, TURN_EXPRESS);
        sleep_until(workers, &workers->express, until_ns);
        workers->express_waits = false;
}

// One request may wait however large it is: what it holds was granted when it was read.
static Submitted room_for(Workers *workers, const Task *task)
{
        if (task->is_idle)
                return workers->idle == NULL ? SUBMITTED : IDLE_TASK_WAITS;
        if (workers->n_queued >= workers->max_queued)
                return QUEUE_FULL;
        if (task->n_waiting != NULL && task->most_waiting > 0 &&
            atomic_load(task->n_waiting) >= task->most_waiting)
                return SHARE_FULL;
        bool fits = workers->n_queued == 0 ||
                    workers->queued_bytes + task->n_bytes <= (size_t)limits.max_queue_bytes;
        if (!fits)
                return QUEUE_BYTES_FULL;
        const FairFlow *flow = fair_flow(&workers->queue, task->kind);
        if (flow->n_requests == 0)
                return SUBMITTED;
        if (flow->n_requests >= limits.max_queue_per_graph)
                return KIND_FULL;
        bool late = task->deadline_ns != 0 &&
                    fair_end_ns(&workers->queue, task->kind, task->level, workers->n_workers) >
                            task->deadline_ns - clock_ns();
        return late ? TOO_LATE : SUBMITTED;
}

int64_t workers_wait_ns(Workers *workers, const Task *task)
{
        pthread_mutex_lock(&workers->mutex);
        int64_t ns = fair_end_ns(&workers->queue, task->kind, task->level, workers->n_workers);
        pthread_mutex_unlock(&workers->mutex);
        return ns;
}

// ---- threads ----
static void polled(RunWatch *watch, int64_t now_ns)
{
        Worker *worker = (Worker *)((char *)watch - offsetof(Worker, watch));
        atomic_store_explicit(&worker->beat_ns, now_ns, memory_order_relaxed);
        bool alone = worker->n_threads == 1; // or several threads of the run would come here
        if (alone && !worker->is_express && atomic_load(&worker->pool->n_waiting) == 0)
                turns_give(&worker->pool->turns, &worker->turn, now_ns);
}

void worker_begins_run(Worker *worker, RunContext *ctx, int64_t now_ns)
{
        atomic_store_explicit(&worker->beat_ns, now_ns, memory_order_relaxed);
        worker->turn = turns_next(&worker->turn, worker->is_long, now_ns);
        ctx->watch = &worker->watch;
}

static void run_next(Workers *workers, Worker *worker, Task *task)
{
        bool is_request = task->is_request, is_idle = task->is_idle;
        FairDone done = { .kind = task->kind, .level = task->level };
        done.charged_ns = is_request ? fair_begin(&workers->queue, task) : 0;
        int64_t start_ns = clock_ns();
        unlink_task(workers, task);
        worker->n_taken = 1;
        workers->n_taken++;
        workers->n_running += is_request;
        workers->idle_running |= is_idle;
        worker->is_idle_task = is_idle;
        worker->runs_request = is_request;
        worker->kind = done.kind;
        worker->is_long = turns_long(fair_flow(&workers->queue, done.kind)->mean_ns);
        wake_express(workers);
        if (workers->queue.n_queued > 0 && workers->n_waiting == 0 && workers->idle_running)
                // this thread still counted as free when that task was queued
                stop_idle_task(workers);
        if (workers->queue.n_held > 0 && workers->n_waiting > 0)
                pthread_cond_signal(&workers->filled); // somebody else looks when a held task is due
        pthread_mutex_unlock(&workers->mutex);
        task->run(task, worker); // may be gone now
        atomic_store_explicit(&worker->beat_ns, 0, memory_order_relaxed);
        frame_trim(&worker->frame, FRAME_KEPT_BYTES);
        pthread_mutex_lock(&workers->mutex);
        done.took_ns = clock_ns() - start_ns;
        done.n_tasks = is_request ? worker->n_taken : 0;
        if (!is_idle)
                fair_end(&workers->queue, &done);
        workers->n_running -= is_request;
        worker->is_idle_task = worker->runs_request = false;
        if (is_idle) {
                workers->idle_running = false;
                workers->overdue_from_ns = start_ns + 2 * done.took_ns;
                pthread_cond_signal(&workers->filled); // somebody looks when the next one is due
        }
        trim_if_wanted(workers);
}

static void work_or_sleep(Workers *workers, Worker *worker)
{
        Task *task = next_task(workers);
        if (task != NULL)
                run_next(workers, worker, task);
        else
                sleep_until_filled(workers);
}

static void express_or_sleep(Workers *workers, Worker *worker)
{
        Express found = find_express(workers);
        if (found.task == NULL) {
                sleep_until_express(workers, found.due_ns);
                return;
        }
        turns_need(&workers->turns, TURN_EXPRESS);
        run_next(workers, worker, found.task);
}

static void *work(void *argument)
{
        Worker *worker = argument;
        Workers *workers = worker->pool;
        frame_init(&worker->frame);
        pthread_mutex_lock(&workers->mutex);
        while (!workers->stopping) {
                // The first two let go of the mutex: whether to end is asked again behind them.
                if (worker->n_shrunk != workers->n_shrinks)
                        shrink(workers, worker);
                else if (worker->n_trimmed != workers->n_trims)
                        trim_heap_end(workers, worker);
                else if (worker->is_express)
                        express_or_sleep(workers, worker);
                else
                        work_or_sleep(workers, worker);
        }
        workers->n_ended++;
        pthread_cond_broadcast(&workers->filled); // workers_end waits for it
        pthread_mutex_unlock(&workers->mutex);
        frame_deinit(&worker->frame);
        return NULL;
}

uint32_t worker_take_alike(Worker *worker, uint64_t kind, uint32_t most, Task **out_tasks)
{
        enum { MOST_LOOKED_AT = 256 };
        Workers *workers = worker->pool;
        uint32_t n = 0, looked = 0;
        pthread_mutex_lock(&workers->mutex);
        FairPlaces places = { .begun = false };
        for (Task *task; n < most && looked < MOST_LOOKED_AT; looked++) {
                task = fair_walk(&workers->queue, kind, &places);
                if (task == NULL)
                        break;
                if (!task->is_request || task->kind != kind)
                        continue;
                unlink_task(workers, task);
                out_tasks[n++] = task;
        }
        workers->n_taken += n;
        workers->n_running += n;
        worker->n_taken += n;
        pthread_mutex_unlock(&workers->mutex);
        return n;
}

void workers_ran(Workers *workers, uint32_t n)
{
        pthread_mutex_lock(&workers->mutex);
        workers->n_running -= n;
        pthread_mutex_unlock(&workers->mutex);
}

void worker_stoppable(Worker *worker, _Atomic int *stop)
{
        Workers *workers = worker->pool;
        pthread_mutex_lock(&workers->mutex);
        worker->stop = stop;
        if (stop != NULL && (workers->stopping || (worker->is_idle_task && workers->queue.n_queued > 0 &&
                                                   workers->n_waiting == 0)))
                atomic_store(stop, 1);
        pthread_mutex_unlock(&workers->mutex);
}

void worker_insists(Worker *worker)
{
        pthread_mutex_lock(&worker->pool->mutex);
        worker->is_idle_task = false;
        pthread_mutex_unlock(&worker->pool->mutex);
}

static int start_threads(Workers *workers, int n_threads)
{
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        int n = 0;
        while (n < n_threads &&
               pthread_create(&workers->threads[n], &attributes, work, &workers->workers[n]) == 0)
                n++;
        pthread_attr_destroy(&attributes);
        return n;
}

Status workers_start(int n_workers, int n_wide, int64_t max_queued, Workers **out_workers)
{
        int n_threads = n_workers + 1;
        Workers *workers = calloc(1, sizeof(*workers) + (size_t)n_threads * sizeof(Worker));
        if (workers == NULL)
                return fail_memory();
        pthread_mutex_init(&workers->mutex, NULL);
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&workers->filled, &monotonic);
        pthread_cond_init(&workers->express, &monotonic);
        pthread_condattr_destroy(&monotonic);
        turns_init(&workers->turns);
        workers->max_queued = max_queued;
        workers->n_workers = n_workers;
        workers->threads = new_array((size_t)n_threads, sizeof(pthread_t));
        for (int i = 0; i < n_threads; i++)
                workers->workers[i] = (Worker){ .watch = { polled },
                                                .pool = workers,
                                                .n_threads = i == 0 ? n_wide : 1,
                                                .is_express = i == n_workers };
        memory_keep_heap();
        pthread_mutex_lock(&workers->mutex);
        workers->n_threads = workers->threads == NULL ? 0 : start_threads(workers, n_threads);
        pthread_mutex_unlock(&workers->mutex);
        if (workers->n_threads < n_threads) {
                workers_stop(workers);
                return fail(STATUS_INTERNAL, "worker threads could not be started");
        }
        *out_workers = workers;
        return STATUS_OK;
}

Turns *workers_turns(Workers *workers)
{
        return &workers->turns;
}

int workers_width(const Workers *workers)
{
        return workers->workers[workers->n_workers > 1 ? 1 : 0].n_threads;
}

static void tell_to_end(Workers *workers)
{
        pthread_mutex_lock(&workers->mutex);
        workers->stopping = true;
        for (int i = 0; i < workers->n_threads; i++)
                if (workers->workers[i].stop != NULL)
                        atomic_store(workers->workers[i].stop, 1);
        pthread_cond_broadcast(&workers->filled);
        pthread_cond_signal(&workers->express);
        pthread_mutex_unlock(&workers->mutex);
}

bool workers_end(Workers *workers, int64_t wait_ns)
{
        int64_t end_ns = clock_ns() + wait_ns;
        struct timespec end = { .tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000 };
        tell_to_end(workers);
        pthread_mutex_lock(&workers->mutex);
        while (workers->n_ended < workers->n_threads &&
               pthread_cond_timedwait(&workers->filled, &workers->mutex, &end) == 0)
                continue;
        bool all = workers->n_ended == workers->n_threads;
        pthread_mutex_unlock(&workers->mutex);
        return all;
}

Workers *workers_stop(Workers *workers)
{
        if (workers == NULL)
                return NULL;
        tell_to_end(workers);
        for (int i = 0; i < workers->n_threads; i++)
                pthread_join(workers->threads[i], NULL);
        Task *task;
        while ((task = fair_next(&workers->queue, INT64_MAX)) != NULL || (task = workers->idle) != NULL) {
                unlink_task(workers, task);
                task->drop(task); // may queue others
        }
        pthread_mutex_destroy(&workers->mutex);
        pthread_cond_destroy(&workers->filled);
        pthread_cond_destroy(&workers->express);
        turns_deinit(&workers->turns);
        free(workers->threads);
        free(workers);
        return NULL;
}

static void hasten(Task *idle, const Task *other)
{
        idle->due_ns = MIN(idle->due_ns, other->due_ns);
        if (other->by_ns != 0)
                idle->by_ns = idle->by_ns == 0 ? other->by_ns : MIN(idle->by_ns, other->by_ns);
}

void workers_wake_late(Workers *workers, bool late)
{
        atomic_store(&workers->wakes_late, late);
        workers_wake(workers);
}

void workers_wake(Workers *workers)
{
        if (atomic_load_explicit(&workers->n_owed, memory_order_relaxed) == 0)
                return;
        for (int n = atomic_exchange(&workers->n_owed, 0); n > 0; n--)
                pthread_cond_signal(&workers->filled);
}

// Not where the queue is short: those that wait would fill it while workers are free.
static bool may_wake_late(const Workers *workers)
{
        int64_t least = MIN(workers->max_queued, limits.max_queue_per_graph);
        return atomic_load(&workers->wakes_late) &&
               workers->n_queued < MIN(least / 4, (int64_t)WORKERS_LATE_MOST);
}

Submitted workers_submit(Workers *workers, Task *task)
{
        pthread_mutex_lock(&workers->mutex);
        Submitted how = room_for(workers, task);
        bool any_waits = workers->n_waiting > 0;
        bool late = any_waits && task->is_request && may_wake_late(workers);
        if (how == SUBMITTED)
                append_task(workers, task);
        else if (how == IDLE_TASK_WAITS)
                hasten(workers->idle, task);
        else
                any_waits = false;
        if (late && how == SUBMITTED && atomic_load(&workers->n_owed) < atomic_load(&workers->n_waiting))
                atomic_fetch_add(&workers->n_owed, 1);
        pthread_mutex_unlock(&workers->mutex);
        wake_one(workers, any_waits && !late);
        return how;
}

void workers_resubmit(Workers *workers, Task *task)
{
        task->hold_ns = 0;
        pthread_mutex_lock(&workers->mutex);
        append_task(workers, task);
        bool any_waits = workers->n_waiting > 0;
        pthread_mutex_unlock(&workers->mutex);
        wake_one(workers, any_waits);
}

bool workers_withdraw(Workers *workers, Task *task)
{
        pthread_mutex_lock(&workers->mutex);
        bool found = task->is_queued;
        if (found)
                unlink_task(workers, task);
        pthread_mutex_unlock(&workers->mutex);
        return found;
}

void workers_counts(Workers *workers, int64_t *out_queued, int64_t *out_running)
{
        pthread_mutex_lock(&workers->mutex);
        *out_queued = workers->n_queued;
        *out_running = workers->n_running;
        pthread_mutex_unlock(&workers->mutex);
}

int workers_stalled(Workers *workers, int64_t silence_ns)
{
        int64_t now = clock_ns();
        int n = 0;
        for (int i = 0; i < workers->n_workers; i++) {
                int64_t beat = atomic_load_explicit(&workers->workers[i].beat_ns, memory_order_relaxed);
                n += beat != 0 && now - beat > silence_ns;
        }
        return n;
}

bool workers_progress(Workers *workers, const RunContext *ctx, uint32_t *out_done, uint32_t *out_nodes)
{
        for (int i = 0; i < workers->n_threads; i++) {
                Frame *frame = &workers->workers[i].frame;
                if (atomic_load_explicit(&frame->running, memory_order_acquire) != ctx)
                        continue;
                *out_done = atomic_load_explicit(&frame->n_done, memory_order_relaxed);
                *out_nodes = atomic_load_explicit(&frame->n_nodes, memory_order_relaxed);
                return true;
        }
        return false;
}
