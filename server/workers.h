// SPDX-License-Identifier: Apache-2.0
// The worker pool: threads that drive jobs, fed by one bounded queue.
#pragma once
#include "server/job.h"

typedef struct Workers Workers;

Status workers_start(int n_threads, int64_t max_queued, Workers **out_workers);
// Ends the threads after the jobs they have; the queue must be empty.
Workers *workers_stop(Workers *workers);
// False when the queue is full: the caller still owns the job. Any thread.
bool workers_submit(Workers *workers, Job *job);
// For jobs that were accepted before: never refused. Any thread.
void workers_resubmit(Workers *workers, Job *job);
void workers_counts(Workers *workers, int64_t *out_queued, int64_t *out_running);
// Cores this process may use: affinity mask and cgroup cpu.max, at least 1.
int granted_cores(void);
