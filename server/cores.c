// SPDX-License-Identifier: Apache-2.0
// Quotas are read from the process's own group and every group above it, since each of them binds.
// In a container the path in /proc/self/cgroup may lie outside of the mount: missing files are
// skipped, and the root of the mount is read in any case.
#include "server/cores.h"
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum { PATH_BYTES = 1024 };

static int least(int a, int b)
{
        return a < b ? a : b;
}

static int cores_of(long long quota, long long period)
{
        if (quota <= 0 || period <= 0)
                return INT_MAX;
        return (int)MIN(MAX(quota / period, 1), INT_MAX);
}

// The number in a file; 0 when there is none ("max", -1, no such file).
static long long read_number(const char *folder, const char *name)
{
        char path[2 * PATH_BYTES];
        long long number = 0;
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
                return 0;
        if (fscanf(file, "%lld", &number) != 1)
                number = 0;
        fclose(file);
        return number;
}

static int quota_of_folder(const char *folder, bool is_v2)
{
        char path[2 * PATH_BYTES];
        long long quota = 0, period = 0;
        if (!is_v2)
                return cores_of(read_number(folder, "cpu.cfs_quota_us"),
                                read_number(folder, "cpu.cfs_period_us"));
        snprintf(path, sizeof(path), "%s/cpu.max", folder);
        FILE *file = fopen(path, "re");
        if (file == NULL)
                return INT_MAX;
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
                quota = 0; // "max 100000"
        fclose(file);
        return cores_of(quota, period);
}

// The group `path` below `root`, and all above it.
static int quota_of_path(const char *root, const char *path, bool is_v2)
{
        char folder[2 * PATH_BYTES];
        int n = snprintf(folder, sizeof(folder), "%s%s", root, path);
        int cores = INT_MAX;
        if (n < 0 || (size_t)n >= sizeof(folder))
                return quota_of_folder(root, is_v2);
        size_t root_n = strlen(root);
        for (;;) {
                cores = least(cores, quota_of_folder(folder, is_v2));
                char *slash = strrchr(folder, '/');
                if (strlen(folder) <= root_n || slash == NULL || slash < folder + root_n)
                        return cores;
                *slash = '\0';
        }
}

static bool lists_cpu(const char *controllers)
{
        char list[PATH_BYTES], *rest = list;
        snprintf(list, sizeof(list), "%s", controllers);
        for (const char *name; (name = strsep(&rest, ",")) != NULL;)
                if (strcmp(name, "cpu") == 0)
                        return true;
        return false;
}

// One line: hierarchy:controllers:path. Version 2 has hierarchy 0 and no controllers.
static int quota_of_line(char *line, const char *mount)
{
        char root[2 * PATH_BYTES];
        char *controllers = strchr(line, ':'),
             *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
                return INT_MAX;
        *controllers++ = '\0';
        *path++ = '\0';
        if (*controllers == '\0') {
                int unified = quota_of_path(mount, path, true);
                snprintf(root, sizeof(root), "%s/unified", mount); // beside version 1
                return least(unified, quota_of_path(root, path, true));
        }
        if (!lists_cpu(controllers))
                return INT_MAX;
        snprintf(root, sizeof(root), "%s/%s", mount, controllers);
        int cores = quota_of_path(root, path, false);
        snprintf(root, sizeof(root), "%s/cpu", mount);
        return least(cores, quota_of_path(root, path, false));
}

int cgroup_cores(const char *memberships, const char *mount)
{
        char *copy = strdup(memberships), *rest = copy;
        int cores = INT_MAX;
        for (char *line; copy != NULL && (line = strsep(&rest, "\n")) != NULL;)
                cores = least(cores, quota_of_line(line, mount));
        free(copy);
        return cores;
}

int granted_cores(void)
{
        char memberships[8192];
        cpu_set_t mask;
        int n = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
        FILE *file = fopen("/proc/self/cgroup", "re");
        if (file != NULL) {
                memberships[fread(memberships, 1, sizeof(memberships) - 1, file)] = '\0';
                fclose(file);
                n = least(n, cgroup_cores(memberships, "/sys/fs/cgroup"));
        }
        return MAX(n, 1);
}

WorkerPlan plan_workers(int n_cores, int n_workers, int n_threads)
{
        WorkerPlan plan = { .n_workers = n_workers };
        n_threads = MIN(n_threads, n_cores);
        if (n_workers <= 0)
                plan.n_workers = MAX(n_cores - MAX(n_threads - 1, 0), 1);
        int left = MAX(n_cores - (plan.n_workers - 1), 1); // for the wide worker
        if (n_threads <= 0)
                n_threads = plan.n_workers == 1 ? n_cores : 1;
        plan.n_wide = MIN(n_threads, left);
        return plan;
}
