// SPDX-License-Identifier: Apache-2.0
// First in, first out, under one mutex. A job is driven to its end or to where it parks; then the thread takes the next.
#include "server/workers.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { STACK_BYTES = 2 << 20, FRAME_KEPT_BYTES = 256 << 20 };

struct Workers {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        Job *head, **tail;
        int64_t n_queued, n_running, max_queued;
        bool stopping;
        int n_threads;
        pthread_t threads[];
};

static void *work(void *argument)
{
        Workers *workers = argument;
        Frame frame;
        frame_init(&frame);
        pthread_mutex_lock(&workers->mutex);
        for (;;) {
                while (workers->head == NULL && !workers->stopping)
                        pthread_cond_wait(&workers->filled, &workers->mutex);
                Job *job = workers->head;
                if (job == NULL)
                        break;
                workers->head = job->next;
                if (workers->head == NULL)
                        workers->tail = &workers->head;
                job->next = NULL;
                workers->n_queued--;
                workers->n_running++;
                pthread_mutex_unlock(&workers->mutex);
                job_advance(job, &frame);
                frame_trim(&frame, FRAME_KEPT_BYTES);
                pthread_mutex_lock(&workers->mutex);
                workers->n_running--;
        }
        pthread_mutex_unlock(&workers->mutex);
        frame_deinit(&frame);
        return NULL;
}

Status workers_start(int n_threads, int64_t max_queued, Workers **out_workers)
{
        Workers *workers = calloc(1, sizeof(*workers) + (size_t)n_threads * sizeof(pthread_t));
        if (workers == NULL)
                return fail_memory();
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        pthread_mutex_init(&workers->mutex, NULL);
        pthread_cond_init(&workers->filled, NULL);
        workers->tail = &workers->head;
        workers->max_queued = max_queued;
        while (workers->n_threads < n_threads && pthread_create(&workers->threads[workers->n_threads], &attributes, work, workers) == 0)
                workers->n_threads++;
        pthread_attr_destroy(&attributes);
        if (workers->n_threads < n_threads) {
                workers_stop(workers);
                return fail(STATUS_INTERNAL, "worker threads could not be started");
        }
        *out_workers = workers;
        return STATUS_OK;
}

Workers *workers_stop(Workers *workers)
{
        if (workers == NULL)
                return NULL;
        pthread_mutex_lock(&workers->mutex);
        workers->stopping = true;
        pthread_cond_broadcast(&workers->filled);
        pthread_mutex_unlock(&workers->mutex);
        for (int i = 0; i < workers->n_threads; i++)
                pthread_join(workers->threads[i], NULL);
        pthread_mutex_destroy(&workers->mutex);
        pthread_cond_destroy(&workers->filled);
        free(workers);
        return NULL;
}

static bool push(Workers *workers, Job *job, bool bounded)
{
        pthread_mutex_lock(&workers->mutex);
        bool room = !bounded || workers->n_queued < workers->max_queued;
        if (room) {
                job->next = NULL;
                job->queued_ns = clock_ns();
                *workers->tail = job;
                workers->tail = &job->next;
                workers->n_queued++;
                pthread_cond_signal(&workers->filled);
        }
        pthread_mutex_unlock(&workers->mutex);
        return room;
}

bool workers_submit(Workers *workers, Job *job)
{
        return push(workers, job, true);
}

void workers_resubmit(Workers *workers, Job *job)
{
        push(workers, job, false);
}

void workers_counts(Workers *workers, int64_t *out_queued, int64_t *out_running)
{
        pthread_mutex_lock(&workers->mutex);
        *out_queued = workers->n_queued;
        *out_running = workers->n_running;
        pthread_mutex_unlock(&workers->mutex);
}

int granted_cores(void)
{
        cpu_set_t mask;
        int n = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
        FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
        long quota, period;
        if (file != NULL) {
                if (fscanf(file, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0) {
                        long cores = quota / period; // 500m is half a core: one worker
                        n = (int)MIN((long)n, MAX(cores, 1l));
                }
                fclose(file);
        }
        return MAX(n, 1);
}
