// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use, and how they are dealt to workers.
#pragma once

// Affinity mask (cpusets show in it) and cgroup quotas, rounded down; at least 1.
int granted_cores(void);
// What cgroups allow: `memberships` is the text of /proc/self/cgroup, `mount` where cgroups are
// mounted. Version 2 (cpu.max) and version 1 (cpu.cfs_quota_us), the least of a group and all above
// it. INT_MAX: no quota. 500m counts as one core.
int cgroup_cores(const char *memberships, const char *mount);

typedef struct WorkerPlan {
        int n_workers; // runs at the same time
        int n_wide;    // threads of the first worker; all others have one
} WorkerPlan;
// Of --workers and --threads (0: not said). Workers are what was asked for, else what the cores
// allow; threads never exceed the cores that the other workers leave. Alone, a worker has all
// cores.
WorkerPlan plan_workers(int n_cores, int n_workers, int n_threads);
