// SPDX-License-Identifier: Apache-2.0
// How many cores and how much memory this process may use, and how workers share the cores.
#pragma once
#include <stdint.h>

// Affinity mask (cpusets show in it) and cgroup quotas, rounded down; at least 1.
int granted_cores(void);
// The quota of cgroups: `memberships` is the text of /proc/self/cgroup, `mount` where cgroups are
// mounted. Version 2 (cpu.max) and version 1 (cpu.cfs_quota_us); the least of a group and all above
// it. INT_MAX: no quota. 500m counts as one core.
int cgroup_cores(const char *memberships, const char *mount);
// Bytes that the cgroup's limit leaves; 0: it has none, or one above what the machine has.
int64_t granted_memory(void);
// As cgroup_cores: memory.max, memory.limit_in_bytes. INT64_MAX: no limit.
int64_t cgroup_memory(const char *memberships, const char *mount);

typedef struct WorkerPlan {
        int n_workers; // runs at the same time
        int n_wide;    // threads of the first worker; all others have one
} WorkerPlan;
// From --workers and --threads (0: not given). The number of workers is what was asked for, else
// what the cores allow. The wide worker gets the cores that the other workers leave; a single
// worker has all cores.
WorkerPlan plan_workers(int n_cores, int n_workers, int n_threads);
